//! Waiting inside the kernel: for children, for signals, for the end of a stop.
//!
//! Like every wait it is a host call that the host's notification signal interrupts, so the code
//! around it is that of any other blocking call ([`Ctx::blocking`](crate::call::Ctx::blocking)).

use std::sync::atomic::{AtomicU32, Ordering};

use lind_abi::Result;
use lind_abi::layout::Timespec;

use crate::host::futex;

/// An event that threads can wait for.
#[derive(Debug, Default)]
pub struct Event {
    /// Counts changes.
    generation: AtomicU32,
    waiting: AtomicU32,
}

/// The number of times that an event had happened at a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen(u32);

impl Event {
    /// Has to be taken before looking at the state that the event is about.
    pub fn seen(&self) -> Seen {
        Seen(self.generation.load(Ordering::SeqCst))
    }

    /// Notifies of a change of the state that it is about. Costs a host call only if a thread
    /// waits.
    pub fn notify_all(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) != 0 {
            futex::wake_own(&self.generation);
        }
    }

    /// Waits for a change after `seen`, until `deadline` on the monotonic clock. It may return
    /// without a change.
    ///
    /// # Errors
    /// EINTR, ETIMEDOUT.
    pub fn wait(&self, seen: Seen, deadline: Option<&Timespec>) -> Result<()> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let result = futex::wait_own(&self.generation, seen.0, deadline);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        match result {
            // It has changed already.
            Err(lind_abi::Errno::EAGAIN) => Ok(()),
            result => result,
        }
    }
}
