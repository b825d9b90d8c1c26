//! Signals: what is pending, and what a signal does.
//!
//! Default actions happen; handlers do not run yet, so a signal that has one stays pending. The end of the calling
//! thread's own cage is left for its engine to carry out, as exit(2) leaves it.

use std::sync::atomic::Ordering;

use lind_abi::flags::Signals;
use lind_abi::layout::Sigaction;
use lind_abi::{Errno, Result};

use super::exit::{self, Status};
use super::{Cage, Next, Thread};
use crate::Kernel;

/// The highest signal.
pub(crate) const LAST: u8 = 64;
/// The handler values that are no functions.
pub(crate) const SIG_DFL: u32 = 0;
/// See `SIG_DFL`.
pub(crate) const SIG_IGN: u32 = 1;

/// The signals that cannot be blocked, ignored or handled.
#[allow(clippy::cast_possible_truncation, reason = "signal numbers are small")]
pub(crate) const UNBLOCKABLE: u64 = bit(Signals::SIGKILL as u8) | bit(Signals::SIGSTOP as u8);

/// What a signal does to a cage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Ignore,
    End,
    /// Nothing stops yet.
    Stop,
    Handle,
}

/// The bit of a signal (1 to 64) in a set.
pub(crate) const fn bit(signal: u8) -> u64 {
    1 << (signal - 1)
}

fn action(disposition: &Sigaction, signal: u8) -> Action {
    let default = || match u32::from(signal) {
        Signals::SIGCHLD | Signals::SIGURG | Signals::SIGWINCH | Signals::SIGCONT => Action::Ignore,
        Signals::SIGSTOP | Signals::SIGTSTP | Signals::SIGTTIN | Signals::SIGTTOU => Action::Stop,
        _ => Action::End,
    };
    match disposition.handler {
        SIG_DFL => default(),
        SIG_IGN => Action::Ignore,
        _ => Action::Handle,
    }
}

impl Cage {
    fn action(&self, signal: u8) -> Action {
        action(&self.settings().actions[usize::from(signal) - 1], signal)
    }

    /// Replaces what a signal does, and returns what it did. Where it is now ignored, pending ones are gone.
    pub(crate) fn set_action(&self, signal: u8, new: Option<Sigaction>) -> Sigaction {
        let old = {
            let mut settings = self.settings();
            let slot = &mut settings.actions[usize::from(signal) - 1];
            let old = *slot;
            *slot = new.unwrap_or(old);
            old
        };
        if new.is_some_and(|new| action(&new, signal) == Action::Ignore) {
            self.pending.fetch_and(!bit(signal), Ordering::AcqRel);
            for thread in self.threads() {
                thread.pending.fetch_and(!bit(signal), Ordering::AcqRel);
            }
        }
        old
    }
}

/// Sends a signal to a cage. `at` is the thread whose call this is.
///
/// # Errors
/// EINVAL for a signal that would stop the cage: nothing stops yet.
pub(crate) fn send(kernel: &Kernel, at: &Thread, cage: &Cage, signal: u8) -> Result<()> {
    let blocked = |thread: &std::sync::Arc<Thread>| thread.worker || thread.blocks(signal);
    deliver(kernel, at, cage, signal, cage.threads().iter().all(blocked), &cage.pending)
}

/// Sends a signal to one thread. See `send`.
///
/// # Errors
/// As for `send`.
pub(crate) fn send_to_thread(kernel: &Kernel, at: &Thread, thread: &Thread, signal: u8) -> Result<()> {
    deliver(kernel, at, &thread.cage, signal, thread.blocks(signal), &thread.pending)
}

fn deliver(
    kernel: &Kernel,
    at: &Thread,
    cage: &Cage,
    signal: u8,
    blocked: bool,
    pending: &std::sync::atomic::AtomicU64,
) -> Result<()> {
    match cage.action(signal) {
        Action::Stop => return Err(Errno::EINVAL),
        Action::End if !blocked || bit(signal) & UNBLOCKABLE != 0 => end(kernel, at, cage, signal),
        Action::Ignore if !blocked => {}
        _ => {
            pending.fetch_or(bit(signal), Ordering::AcqRel);
        }
    }
    Ok(())
}

/// Acts on what is pending for a thread and not blocked, after its mask or a disposition has changed.
pub(crate) fn act_on_pending(kernel: &Kernel, thread: &Thread) {
    let cage = &*thread.cage;
    let pending = thread.pending.load(Ordering::Acquire) | cage.pending.load(Ordering::Acquire);
    let ready = pending & !thread.mask.load(Ordering::Acquire);
    for signal in (1..=LAST).filter(|&signal| ready & bit(signal) != 0) {
        match cage.action(signal) {
            Action::End => return end(kernel, thread, cage, signal),
            Action::Ignore => {
                thread.pending.fetch_and(!bit(signal), Ordering::AcqRel);
                cage.pending.fetch_and(!bit(signal), Ordering::AcqRel);
            }
            Action::Stop | Action::Handle => {}
        }
    }
}

fn end(kernel: &Kernel, at: &Thread, cage: &Cage, signal: u8) {
    let status = Status::signaled(signal);
    if at.cage.id == cage.id {
        at.set_next(Next::Exit(status));
    } else {
        exit::begin(kernel, cage, status);
    }
}

impl Thread {
    fn blocks(&self, signal: u8) -> bool {
        self.mask.load(Ordering::Acquire) & bit(signal) & !UNBLOCKABLE != 0
    }
}
