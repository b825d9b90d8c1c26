//! The runner's own descriptors, which must not keep files of the cages open.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use lind_abi::Result;
use rustix::fs::FileType;

use super::File;
use super::table::STANDARD;
use crate::Kernel;
use crate::cage::Cage;
use crate::host;

/// Called by the runner after the first cage was made and before it runs: closes the runner's
/// descriptors 0 and 1, so that they are closed when the cages close theirs.
pub fn leave_to_cages(kernel: &Kernel) {
    // The descriptors are replaced by one that can be neither read nor written.
    let nothing = kernel.root.directory();
    let _ = rustix::stdio::dup2_stdin(nothing.as_fd());
    let _ = rustix::stdio::dup2_stdout(nothing.as_fd());
}

/// Makes sure that the caller of this process has opened so many descriptors behind the standard
/// ones, for the first cage. To be called before the process opens files, which could get their
/// numbers.
///
/// # Errors
/// The number of a descriptor that is not open, or is a directory, where paths would begin.
pub fn ensure_preserved(count: u32) -> std::result::Result<(), String> {
    for number in STANDARD..STANDARD + count {
        let Ok(file) = host::own_again(number) else { return Err(format!("descriptor {number} is not open")) };
        if rustix::fs::fstat(&file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir()) {
            return Err(format!("descriptor {number} is a directory, where paths of the host would begin; mount it"));
        }
    }
    Ok(())
}

/// Closes what the starter of this process has left open behind the standard files and `preserved`
/// others, but for `kept`: somebody may wait for the end of a pipe that was left by mistake. To be
/// called before this process opens other files.
pub fn close_inherited(preserved: u32, kept: Option<BorrowedFd<'_>>) {
    let first = STANDARD + preserved;
    match kept.map(|kept| kept.as_raw_fd().unsigned_abs()).filter(|kept| *kept >= first) {
        Some(kept) => {
            if kept > first {
                host::close_numbers(first, kept - 1);
            }
            host::close_numbers(kept + 1, u32::MAX);
        }
        None => host::close_numbers(first, u32::MAX),
    }
}

/// Gives a cage a file from outside, for the programs it starts. Returns its number; None for a
/// directory, at which paths could begin.
///
/// # Errors
/// EMFILE when the cage has no more numbers.
pub fn hand_over(cage: &Cage, file: OwnedFd) -> Result<Option<i32>> {
    let directory = rustix::fs::fstat(&file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir());
    if directory { Ok(None) } else { cage.fds.add(File::handed_in(file), true).map(Some) }
}

/// Called by a thread of the runner that runs no guest, before a guest runs: gives it a descriptor
/// table of its own, with only standard error. In doing so the host copies all open descriptors,
/// and a guest's close would not be the last.
///
/// The host counts references to a file at each call of a process whose table several threads
/// share. If the waiting thread leaves the shared table, a cage alone in its runner is spared that:
/// 16 to 18 ns of a pread in alternating runs on a busy machine.
pub fn keep_none() {
    host::close_own_from(FIRST_TO_GO.load(Ordering::Relaxed));
}

/// The first descriptor that such a thread gives up.
static FIRST_TO_GO: AtomicU32 = AtomicU32::new(3);

/// Called before such threads start: they keep this descriptor too, and those below it.
pub fn keep_also(file: BorrowedFd<'_>) {
    FIRST_TO_GO.fetch_max(file.as_raw_fd().unsigned_abs() + 1, Ordering::Relaxed);
}
