//! Frees the memory of the runner's own code.

#![allow(unsafe_code)]

/// Unmaps the pages of code and constants of this process's program file, which a waiting process
/// does not use. The host still has them, and maps a page again when it is used.
pub fn let_go() {
    unsafe extern "C" {
        /// The linker's symbols for the start of the program file's mapping, and for the end of its
        /// code.
        static __executable_start: u8;
        static etext: u8;
    }
    const PAGE: usize = 4096;
    let (start, end) = (&raw const __executable_start, &raw const etext);
    let length = (end.addr() / PAGE * PAGE).saturating_sub(start.addr());
    // SAFETY: the pages between the two are mapped from the file and never written, so that they
    // come back as they were.
    unsafe { libc::madvise(start.cast_mut().cast(), length, libc::MADV_DONTNEED) };
}

#[cfg(test)]
mod tests {
    #[test]
    fn code_goes_on() {
        let before = std::env::args().count();
        super::let_go();
        assert_eq!(std::env::args().count(), before);
    }
}
