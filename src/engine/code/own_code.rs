//! The runner's own code, as it is mapped.

#![allow(unsafe_code)]

/// Unmaps the pages of this process's program file that are code and constants, which a process that waits has no use for. The host has
/// them still, and maps those again that are used.
pub fn let_go() {
    unsafe extern "C" {
        /// Where the program file is mapped, and where its code ends; the linker knows.
        static __executable_start: u8;
        static etext: u8;
    }
    const PAGE: usize = 4096;
    let (start, end) = (&raw const __executable_start, &raw const etext);
    let length = (end.addr() / PAGE * PAGE).saturating_sub(start.addr());
    // SAFETY: what lies between the two is mapped from the file and never written, so that it comes back as it was.
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
