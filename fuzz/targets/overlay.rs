//! Damaged states of overlays. The reader is in C (`../overlay.c`).
#![no_main]

unsafe extern "C" {
    fn lind_fuzz_overlay(bytes: *const u8, size: usize);
}

// SAFETY: the function reads `size` bytes, which there are.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| unsafe { lind_fuzz_overlay(bytes.as_ptr(), bytes.len()) });
