//! alarm(2), setitimer(2), timer_create(2): timers that send signals.
//!
//! Setting the host's clock does not move timers of CLOCK_REALTIME that are set already.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::flags::{Clock, TimerFlags};
use lind_abi::layout::{Itimerspec, Itimerval, Sigevent, Timespec, Timeval};
use lind_abi::{Errno, In, Out, Result};

use crate::cage::signal::LAST;
use crate::cage::timer::{Left, Measure, Notice, Timer};
use crate::cage::{Cage, parent_of};
use crate::call::Ctx;
use crate::timers::Nanos;

use super::clock::cpu_time;

const SECOND: Nanos = 1_000_000_000;

/// The cage itself, to be known to its timers.
fn own(cx: &Ctx<'_>) -> Result<Arc<Cage>> {
    parent_of(cx.kernel, cx.cage.id)
}

/// alarm(2)
pub(crate) fn alarm(cx: &Ctx<'_>, seconds: u32) -> Result<u32> {
    let before =
        own(cx)?.interval_timer(&cx.kernel.timers, 0)?.set(cx.kernel, Nanos::from(seconds) * SECOND, 0, false)?;
    // Rounded, but never to "no alarm".
    let rounded = (before.value + SECOND / 2) / SECOND;
    Ok(u32::try_from(if before.value > 0 { rounded.max(1) } else { 0 }).unwrap_or(u32::MAX))
}

/// getitimer(2)
pub(crate) fn getitimer(cx: &Ctx<'_>, which: i32, value: Out<Itimerval>) -> Result<()> {
    let left = own(cx)?.interval_timer(&cx.kernel.timers, which)?.left()?;
    cx.store(value, &to_timeval(left))
}

/// setitimer(2). NULL stops the timer, as on Linux.
pub(crate) fn setitimer(cx: &Ctx<'_>, which: i32, new: In<Itimerval>, old: Out<Itimerval>) -> Result<()> {
    let new = if new.is_null() { Itimerval::default() } else { cx.load(new)? };
    let nanos = |time: Timeval| match time {
        Timeval { sec: 0.., usec: 0..1_000_000 } => Ok(Nanos::from(time.sec) * SECOND + Nanos::from(time.usec) * 1000),
        _ => Err(Errno::EINVAL),
    };
    let (value, interval) = (nanos(new.value)?, nanos(new.interval)?);
    let before = own(cx)?.interval_timer(&cx.kernel.timers, which)?.set(cx.kernel, value, interval, false)?;
    cx.store_if(old, &to_timeval(before))
}

fn to_timeval(left: Left) -> Itimerval {
    let time = |nanos: Nanos| Timeval {
        sec: i64::try_from(nanos / SECOND).unwrap_or(i64::MAX),
        usec: i64::try_from(nanos % SECOND / 1000).unwrap_or(0),
    };
    // A remaining time does not become 0 by rounding.
    let value = if left.value > 0 { left.value.max(1000) } else { 0 };
    Itimerval { interval: time(left.interval), value: time(value) }
}

/// timer_create(2)
pub(crate) fn timer_create(cx: &Ctx<'_>, clock: Clock, event: In<Sigevent>, id: Out<i32>) -> Result<()> {
    const SIGEV_SIGNAL: i32 = 0;
    const SIGEV_NONE: i32 = 1;
    const SIGEV_THREAD: i32 = 2;
    const SIGEV_THREAD_ID: i32 = 4;
    let measure = match clock.0 {
        Clock::CLOCK_REALTIME | Clock::CLOCK_MONOTONIC | Clock::CLOCK_BOOTTIME | Clock::CLOCK_TAI => {
            Measure::Clock(clock.0.cast_signed())
        }
        Clock::CLOCK_REALTIME_ALARM | Clock::CLOCK_BOOTTIME_ALARM => return Err(Errno::EPERM),
        _ => cpu_time(cx, clock)?,
    };
    let notice = if event.is_null() {
        None
    } else {
        let event: Sigevent = cx.load(event)?;
        let signal = || u8::try_from(event.signo).ok().filter(|s| (1..=LAST).contains(s)).ok_or(Errno::EINVAL);
        Some(match event.notify {
            SIGEV_NONE => Notice::Nothing,
            SIGEV_SIGNAL | SIGEV_THREAD => Notice::Signal { signal: signal()?, value: event.value, thread: None },
            SIGEV_THREAD_ID => {
                let tid = u32::try_from(event.tid).ok().filter(|&tid| cx.cage.thread(tid).is_some());
                let thread = Some(tid.ok_or(Errno::EINVAL)?);
                Notice::Signal { signal: signal()?, value: event.value, thread }
            }
            _ => return Err(Errno::EINVAL),
        })
    };
    let timer = own(cx)?.create_timer(&cx.kernel.timers, measure, notice)?;
    cx.store(id, &timer).inspect_err(|_| {
        let _ = cx.cage.delete_timer(timer);
    })
}

/// timer_settime(2)
pub(crate) fn timer_settime(
    cx: &Ctx<'_>,
    id: i32,
    flags: TimerFlags,
    new: In<Itimerspec>,
    old: Out<Itimerspec>,
) -> Result<()> {
    let interval = nanos(cx.load_timespec(new.cast())?);
    let value = nanos(cx.load_timespec(In::new(new.addr.saturating_add(16), new.cage))?);
    let timer: Arc<Timer> = cx.cage.created_timer(id)?;
    let before = timer.set(cx.kernel, value, interval, flags.has(TimerFlags::TIMER_ABSTIME))?;
    cx.store_if(old, &to_timespec(before))
}

/// timer_gettime(2)
pub(crate) fn timer_gettime(cx: &Ctx<'_>, id: i32, value: Out<Itimerspec>) -> Result<()> {
    let left = cx.cage.created_timer(id)?.left()?;
    cx.store(value, &to_timespec(left))
}

/// timer_getoverrun(2)
pub(crate) fn timer_getoverrun(cx: &Ctx<'_>, id: i32) -> Result<i32> {
    Ok(cx.cage.created_timer(id)?.overrun.load(Ordering::Relaxed))
}

/// timer_delete(2)
pub(crate) fn timer_delete(cx: &Ctx<'_>, id: i32) -> Result<()> {
    cx.cage.delete_timer(id)
}

fn nanos(time: Timespec) -> Nanos {
    Nanos::from(time.sec) * SECOND + Nanos::from(time.nsec)
}

fn to_timespec(left: Left) -> Itimerspec {
    let time = |nanos: Nanos| Timespec {
        sec: i64::try_from(nanos / SECOND).unwrap_or(i64::MAX),
        nsec: i64::try_from(nanos % SECOND).unwrap_or(0),
    };
    Itimerspec { interval: time(left.interval), value: time(left.value) }
}
