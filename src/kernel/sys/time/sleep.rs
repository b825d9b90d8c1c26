//! Sleeping.

use lind_abi::flags::{Clock, TimerFlags};
use lind_abi::layout::Timespec;
use lind_abi::{Errno, In, Out, Result};
use rustix::time::ClockId;

use super::clock::cpu_time;
use crate::cage::timer::Measure;
use crate::call::Ctx;
use crate::host::clock::sleep_until;

const NANOS: i64 = 1_000_000_000;

/// nanosleep(2)
pub(crate) fn nanosleep(cx: &Ctx<'_>, req: In<Timespec>, rem: Out<Timespec>) -> Result<()> {
    sleep_for(cx, ClockId::Monotonic, cx.load_timespec(req)?, rem)
}

/// clock_nanosleep(2). Unknown flags are ignored, as on Linux.
pub(crate) fn clock_nanosleep(
    cx: &Ctx<'_>,
    clock: Clock,
    flags: TimerFlags,
    req: In<Timespec>,
    rem: Out<Timespec>,
) -> Result<()> {
    let id = match clock.0 {
        Clock::CLOCK_REALTIME => ClockId::Realtime,
        Clock::CLOCK_MONOTONIC => ClockId::Monotonic,
        Clock::CLOCK_BOOTTIME => ClockId::Boottime,
        Clock::CLOCK_THREAD_CPUTIME_ID => return Err(Errno::EINVAL),
        _ => return sleep_on_cpu(cx, clock, flags, req, rem),
    };
    let time = cx.load_timespec(req)?;
    if flags.has(TimerFlags::TIMER_ABSTIME) {
        return cx.blocking(|| sleep_until(id, &time));
    }
    // A relative wait is the same on a clock that can be set.
    let id = if clock.0 == Clock::CLOCK_REALTIME { ClockId::Monotonic } else { id };
    sleep_for(cx, id, time, rem)
}

/// A sleep until processor time has been used: by other threads, so not by the clock of the calling
/// one.
fn sleep_on_cpu(cx: &Ctx<'_>, clock: Clock, flags: TimerFlags, req: In<Timespec>, rem: Out<Timespec>) -> Result<()> {
    /// How often is looked, at most and at least.
    const OFTEN: i64 = 1_000_000;
    const SELDOM: i64 = 100_000_000;
    let nanos = |time: Timespec| time.sec.saturating_mul(NANOS).saturating_add(time.nsec);
    let measure = cpu_time(cx, clock)?;
    if measure == Measure::Thread(cx.thread.tid) {
        return Err(Errno::EINVAL);
    }
    let time = nanos(cx.load_timespec(req)?);
    let now = || measure.now(cx.cage).map(|now| i64::try_from(now).unwrap_or(i64::MAX));
    let absolute = flags.has(TimerFlags::TIMER_ABSTIME);
    let end = if absolute { time } else { now()?.saturating_add(time) };
    loop {
        // The thread whose time is waited for may end.
        let Ok(now) = now() else { return Ok(()) };
        let left = end - now;
        if left <= 0 {
            return Ok(());
        }
        let threads = i64::try_from(cx.cage.thread_count().max(1)).unwrap_or(1);
        let nap = (left / threads).clamp(OFTEN, SELDOM);
        if cx.pause(u32::try_from(nap).unwrap_or(0)) == Err(Errno::EINTR) {
            if !absolute {
                cx.store_if(rem, &Timespec { sec: left / NANOS, nsec: left % NANOS })?;
            }
            return Err(Errno::EINTR);
        }
    }
}

/// Sleeps to a deadline, so that a wait that is taken up again is not a longer one.
fn sleep_for(cx: &Ctx<'_>, clock: ClockId, time: Timespec, rem: Out<Timespec>) -> Result<()> {
    let now = || rustix::time::clock_gettime(clock);
    let start = now();
    let nsec = start.tv_nsec + time.nsec;
    let deadline =
        Timespec { sec: start.tv_sec.saturating_add(time.sec).saturating_add(nsec / NANOS), nsec: nsec % NANOS };
    let slept = cx.blocking(|| sleep_until(clock, &deadline));
    if slept == Err(Errno::EINTR) {
        let now = now();
        let (sec, nsec) = (deadline.sec - now.tv_sec, deadline.nsec - now.tv_nsec);
        let left = if nsec < 0 { Timespec { sec: sec - 1, nsec: nsec + NANOS } } else { Timespec { sec, nsec } };
        cx.store_if(rem, &if left.sec < 0 { Timespec::default() } else { left })?;
    }
    slept
}
