//! futex(2), on guest words and on words of the kernel.

use std::sync::atomic::AtomicU32;

use lind_abi::Result;
use lind_abi::layout::Timespec;
use syscalls::{Sysno, raw_syscall};

use super::result;
use crate::mem::HostRange;

/// Waits on a word with FUTEX_WAIT_BITSET: until `deadline`, by the clock in `op`.
pub fn wait(word: HostRange<'_>, op: u32, value: u32, deadline: Option<&Timespec>, mask: u32) -> Result<usize> {
    let deadline = deadline.map_or(0, |time| &raw const *time as usize);
    // SAFETY: the host reads the word, in a guest's reservation, and `deadline`.
    result(unsafe {
        raw_syscall!(Sysno::futex, word.as_ptr() as usize, op as usize, value as usize, deadline, 0usize, mask as usize)
    })
}

/// The operations that do not wait. `other` is the second word; `value2` is passed in place of the
/// timeout.
pub fn wake(
    word: HostRange<'_>,
    op: u32,
    value: u32,
    value2: u32,
    other: Option<HostRange<'_>>,
    value3: u32,
) -> Result<usize> {
    let other = other.map_or(0, |word| word.as_ptr() as usize);
    // SAFETY: the host reads and (FUTEX_WAKE_OP) writes the two words, in guests' reservations.
    result(unsafe {
        raw_syscall!(
            Sysno::futex,
            word.as_ptr() as usize,
            op as usize,
            value as usize,
            value2 as usize,
            other,
            value3 as usize
        )
    })
}

/// Waits on a word of the kernel's own while it has this value, until `deadline` on the monotonic
/// clock.
pub fn wait_own(word: &AtomicU32, value: u32, deadline: Option<&Timespec>) -> Result<()> {
    const WAIT_BITSET_PRIVATE: usize = 9 | 128;
    let deadline = deadline.map_or(0, |time| &raw const *time as usize);
    let (at, any) = (word.as_ptr() as usize, u32::MAX as usize);
    // SAFETY: the host reads the word and `deadline`, both borrowed for the call.
    result(unsafe { raw_syscall!(Sysno::futex, at, WAIT_BITSET_PRIVATE, value as usize, deadline, 0usize, any) })
        .map(drop)
}

/// Wakes everybody who waits on a word of the kernel's own.
pub fn wake_own(word: &AtomicU32) {
    const WAKE_PRIVATE: usize = 1 | 128;
    // SAFETY: the host uses the address only as the name of a queue.
    let _ = result(unsafe { raw_syscall!(Sysno::futex, word.as_ptr() as usize, WAKE_PRIVATE, i32::MAX as usize) });
}
