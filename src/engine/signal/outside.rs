//! Receives signals from outside in a process that runs no guest of its own and passes them on.

#![allow(unsafe_code)]

use std::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use lind_kernel::cage::signal::Origin;

use super::host_signals::origin_of;
use super::process_signals::{ENDING, set, set_of, stop_process};

/// The signals from outside for a process without guests of its own: it represents a guest in
/// another runner.
pub struct Outside(OwnedFd);

impl Outside {
    /// Blocks them from now on, for the calling thread and those that it starts.
    ///
    /// # Errors
    /// The host's error.
    pub fn hold() -> std::io::Result<Outside> {
        Outside::of(set())
    }

    /// Blocks only those with which people end programs.
    ///
    /// # Errors
    /// The host's error.
    pub fn hold_ending() -> std::io::Result<Outside> {
        Outside::of(set_of(&ENDING))
    }

    fn of(set: libc::sigset_t) -> std::io::Result<Outside> {
        // SAFETY: the set is initialised; signalfd returns a new descriptor or -1.
        let fd = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and owned by nobody else.
        Ok(Outside(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next signal that has come, and its origin. Signals that this process has sent to its own
    /// group are for the others.
    pub fn next(&self) -> Option<(u8, Origin)> {
        loop {
            let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
            rustix::io::read(&self.0, &mut bytes).ok().filter(|&count| count == bytes.len())?;
            let word =
                |at: usize| bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, i32::from_ne_bytes);
            let number = word(offset_of!(libc::signalfd_siginfo, ssi_signo));
            let code = word(offset_of!(libc::signalfd_siginfo, ssi_code));
            let sender = word(offset_of!(libc::signalfd_siginfo, ssi_pid));
            let sender = rustix::process::Pid::from_raw(sender).filter(|_| code == libc::SI_USER);
            if sender != Some(rustix::process::getpid()) {
                let origin = if is_key(number, sender) { Origin::Terminal } else { origin_of(number, code) };
                return Some((u8::try_from(number).ok()?, origin));
            }
        }
    }
}

/// Stops this process by the signal that has stopped the guest, for its parent to see.
pub fn stop_by(number: u8) {
    let number = i32::from(number);
    if [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&number) {
        let mut before = MaybeUninit::uninit();
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the sets are this thread's own; the signal is for the calling thread.
        unsafe {
            // The signal that this process has sent to its group must not stop it again.
            libc::sigtimedwait(&set_of(&[number]), std::ptr::null_mut(), &raw const at_once);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &set_of(&[number]), before.as_mut_ptr());
            libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::syscall(libc::SYS_gettid), number);
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        }
        if was_continued() {
            return;
        }
        // The signal is ignored, or stops no orphaned group. The guest is stopped all the same.
    }
    stop_process();
}

/// Whether SIGCONT waits to be read: it is blocked, and a signal that stops removes it.
fn was_continued() -> bool {
    let mut pending = MaybeUninit::uninit();
    // SAFETY: sigpending makes it a set.
    unsafe { libc::sigpending(pending.as_mut_ptr()) == 0 && libc::sigismember(pending.as_ptr(), libc::SIGCONT) == 1 }
}

/// Whether another client of this one's group has sent what the terminal's keys mean: for the whole
/// group, as it does when it has taken the key from the terminal.
fn is_key(number: i32, sender: Option<rustix::process::Pid>) -> bool {
    let keys = [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP];
    let in_group = |sender| rustix::process::getpgid(Some(sender)) == Ok(rustix::process::getpgrp());
    let program =
        |process: &str| std::fs::metadata(format!("/proc/{process}/exe")).map(|file| (file.dev(), file.ino()));
    let is_client = |sender: rustix::process::Pid| {
        let (own, other) = (program("self"), program(&sender.as_raw_nonzero().to_string()));
        own.is_ok_and(|own| other.is_ok_and(|other| own == other))
    };
    keys.contains(&number) && sender.is_some_and(|sender| in_group(sender) && is_client(sender))
}

impl AsFd for Outside {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
