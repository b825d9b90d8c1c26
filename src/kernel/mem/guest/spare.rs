//! Room of the runner itself in the host's address space, where the user limits it (RLIMIT_AS).
//!
//! An allocation of a few bytes that fails ends the runner and all cages in it. So requests that
//! take much of the host on behalf of a guest (a cage, a thread, an instance, a compilation, memory
//! that the kernel keeps for a cage) are refused while there is still something left.
#![allow(unsafe_code)]

use core::ptr;
use std::sync::OnceLock;

use lind_abi::{Errno, Result};

/// The part that is kept for allocations that cannot be refused.
const RUNNERS: usize = 64 << 20;

/// Whether the user limits it.
pub fn is_limited() -> bool {
    static LIMITED: OnceLock<bool> = OnceLock::new();
    *LIMITED.get_or_init(|| rustix::process::getrlimit(rustix::process::Resource::As).current.is_some())
}

/// Whether there is room for `more` bytes, and for the runner's own needs beside.
///
/// # Errors
/// ENOMEM.
pub fn check(more: usize) -> Result<()> {
    if !is_limited() {
        return Ok(());
    }
    let len = more.checked_add(RUNNERS).ok_or(Errno::ENOMEM)?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a mapping at an address of the host's choosing touches nothing that exists, and it
    // alone is unmapped.
    unsafe {
        let found = libc::mmap(ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0);
        if found == libc::MAP_FAILED {
            return Err(Errno::ENOMEM);
        }
        libc::munmap(found, len);
    }
    Ok(())
}
