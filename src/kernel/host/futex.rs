//! futex(2) on guest words.

use lind_abi::Result;
use lind_abi::layout::Timespec;
use syscalls::{Sysno, raw_syscall};

use super::result;
use crate::mem::HostRange;

/// Waits on a word with FUTEX_WAIT_BITSET: until `deadline`, a time of the clock that `op` says.
pub fn wait(word: HostRange<'_>, op: u32, value: u32, deadline: Option<&Timespec>, mask: u32) -> Result<usize> {
    let deadline = deadline.map_or(0, |time| &raw const *time as usize);
    // SAFETY: the host reads the word, in a guest's reservation, and `deadline`.
    result(unsafe {
        raw_syscall!(Sysno::futex, word.as_ptr() as usize, op as usize, value as usize, deadline, 0usize, mask as usize)
    })
}

/// The operations that do not wait. `other` is the second word, `value2` stands where the timeout would.
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
