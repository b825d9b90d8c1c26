//! When a wait ends. A time, not a length, so that a wait that was interrupted and goes on is not a longer one.

use lind_abi::layout::Timespec;
use lind_abi::{In, Result};
use rustix::time::{ClockId, clock_gettime};

use crate::call::Ctx;

const SECOND: i64 = 1_000_000_000;

/// A time on the monotonic clock, or never.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Option<Timespec>);

impl Deadline {
    /// The wait does not end by time.
    pub(crate) const NEVER: Deadline = Deadline(None);

    /// `time` from now, at most 10^9 - 1 nanoseconds in its part below a second.
    pub(crate) fn after(time: Timespec) -> Deadline {
        let now = clock_gettime(ClockId::Monotonic);
        let nsec = now.tv_nsec + time.nsec;
        let sec = now.tv_sec.saturating_add(time.sec).saturating_add(nsec / SECOND);
        Deadline(Some(Timespec { sec, nsec: nsec % SECOND }))
    }

    /// Milliseconds from now; negative is never.
    pub(crate) fn after_milliseconds(timeout: i32) -> Deadline {
        let timeout = i64::from(timeout);
        if timeout < 0 {
            return Deadline::NEVER;
        }
        Deadline::after(Timespec { sec: timeout / 1000, nsec: timeout % 1000 * 1_000_000 })
    }

    /// The guest's timeout from now; NULL is never.
    ///
    /// # Errors
    /// EFAULT, EINVAL.
    pub(crate) fn load(cx: &Ctx<'_>, timeout: In<Timespec>) -> Result<Deadline> {
        if timeout.is_null() { Ok(Deadline::NEVER) } else { cx.load_timespec(timeout).map(Deadline::after) }
    }

    /// The time itself; None if it never comes.
    pub(crate) fn time(&self) -> Option<&Timespec> {
        self.0.as_ref()
    }

    /// What is left until then, nothing if it has passed. None if it never comes.
    pub(crate) fn remaining(&self) -> Option<Timespec> {
        let Deadline(Some(end)) = self else { return None };
        let now = clock_gettime(ClockId::Monotonic);
        let (sec, nsec) = (end.sec.saturating_sub(now.tv_sec), end.nsec - now.tv_nsec);
        let left = if nsec < 0 { Timespec { sec: sec - 1, nsec: nsec + SECOND } } else { Timespec { sec, nsec } };
        Some(if left.sec < 0 { Timespec::default() } else { left })
    }

    /// Whether it has come.
    pub(crate) fn has_passed(&self) -> bool {
        self.remaining().is_some_and(|left| left.sec == 0 && left.nsec == 0)
    }
}
