//! The end of a wait. It is a time, not a length, so that a resumed wait does not become longer.

use lind_abi::layout::Timespec;
use lind_abi::{In, Result};

use crate::call::Ctx;
use crate::host::clock;

const SECOND: i64 = 1_000_000_000;

/// The end of a wait.
#[derive(Clone, Copy)]
pub(crate) enum Deadline {
    /// It never ends by time.
    Never,
    /// At once. Kept apart because asking the clock would be the larger part of such a call.
    Now,
    /// At a time of the monotonic clock.
    At(Timespec),
}

impl Deadline {
    /// `time` from now, with less than a second of nanoseconds.
    pub(crate) fn after(time: Timespec) -> Deadline {
        if time.sec == 0 && time.nsec == 0 {
            return Deadline::Now;
        }
        let now = now();
        let nsec = now.nsec + time.nsec;
        let sec = now.sec.saturating_add(time.sec).saturating_add(nsec / SECOND);
        Deadline::At(Timespec { sec, nsec: nsec % SECOND })
    }

    /// Milliseconds from now; negative is never.
    pub(crate) fn after_milliseconds(timeout: i32) -> Deadline {
        match i64::from(timeout) {
            ..0 => Deadline::Never,
            timeout => Deadline::after(Timespec { sec: timeout / 1000, nsec: timeout % 1000 * 1_000_000 }),
        }
    }

    /// The guest's timeout from now; NULL is never.
    ///
    /// # Errors
    /// EFAULT, EINVAL.
    pub(crate) fn load(cx: &Ctx<'_>, timeout: In<Timespec>) -> Result<Deadline> {
        if timeout.is_null() { Ok(Deadline::Never) } else { cx.load_timespec(timeout).map(Deadline::after) }
    }

    /// The time left until then, zero if it has passed. None if it never comes.
    pub(crate) fn remaining(&self) -> Option<Timespec> {
        let end = match self {
            Deadline::Never => return None,
            Deadline::Now => return Some(Timespec::default()),
            Deadline::At(end) => end,
        };
        let now = now();
        let (sec, nsec) = (end.sec.saturating_sub(now.sec), end.nsec - now.nsec);
        let left = if nsec < 0 { Timespec { sec: sec - 1, nsec: nsec + SECOND } } else { Timespec { sec, nsec } };
        Some(if left.sec < 0 { Timespec::default() } else { left })
    }

    /// The time of the monotonic clock; None if it never comes.
    pub(crate) fn time(&self) -> Option<Timespec> {
        match self {
            Deadline::Never => None,
            Deadline::Now => Some(Timespec::default()),
            Deadline::At(time) => Some(*time),
        }
    }

    /// Whether it has come before there was anything to wait for.
    pub(crate) fn is_now(&self) -> bool {
        matches!(self, Deadline::Now)
    }

    /// Whether it has come.
    pub(crate) fn has_passed(&self) -> bool {
        self.remaining().is_some_and(|left| left.sec == 0 && left.nsec == 0)
    }
}

fn now() -> Timespec {
    clock::gettime(libc::CLOCK_MONOTONIC).expect("the host has a monotonic clock")
}
