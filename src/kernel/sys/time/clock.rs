//! Reading clocks.

use std::sync::Arc;

use lind_abi::flags::Clock;
use lind_abi::layout::{Timespec, Timeval, Timezone, Tms};
use lind_abi::{CageId, Errno, Out, Result};

use crate::cage::timer::Measure;
use crate::cage::{Cage, Thread, usage};
use crate::call::Ctx;
use crate::host;

/// The source of a clock.
enum Source {
    /// A clock of the host.
    Host(i32),
    /// The processor time of the cage.
    Process,
    /// The processor time of the calling thread.
    ThisThread,
    /// The processor time of a thread of the cage.
    Thread(Arc<Thread>),
    /// The processor time of a cage that descends from it.
    Descendant(Arc<Cage>),
}

/// EINVAL for a clock that is not there, or of a process that the cage does not see.
fn source(cx: &Ctx<'_>, clock: Clock) -> Result<Source> {
    match clock.0 {
        Clock::CLOCK_PROCESS_CPUTIME_ID => Ok(Source::Process),
        Clock::CLOCK_THREAD_CPUTIME_ID => Ok(Source::ThisThread),
        Clock::CLOCK_REALTIME..=Clock::CLOCK_BOOTTIME_ALARM | Clock::CLOCK_TAI => {
            Ok(Source::Host(clock.0.cast_signed()))
        }
        _ => cpu_clock(cx, clock.0.cast_signed()),
    }
}

/// Clocks with negative ids: clock_getcpuclockid(3) puts the complement of an id above three bits
/// for the kind of time (2: scheduled time) and for a thread's clock (4).
fn cpu_clock(cx: &Ctx<'_>, clock: i32) -> Result<Source> {
    const SCHED: i32 = 2;
    const PER_THREAD: i32 = 4;
    let id = u32::try_from(!(clock >> 3)).map_err(|_| Errno::EINVAL)?;
    match clock & 7 {
        SCHED if id == 0 || id == cx.cage.id.0 => Ok(Source::Process),
        kind if kind == SCHED | PER_THREAD && (id == 0 || id == cx.thread.tid) => Ok(Source::ThisThread),
        kind if kind == SCHED | PER_THREAD => cx.cage.thread(id).map(Source::Thread).ok_or(Errno::EINVAL),
        SCHED => descendant(cx, id).map(Source::Descendant).ok_or(Errno::EINVAL),
        _ => Err(Errno::EINVAL),
    }
}

fn descendant(cx: &Ctx<'_>, id: u32) -> Option<Arc<Cage>> {
    cx.kernel.cages.get(CageId(id)).filter(|cage| cage.descends_from(cx.cage.id))
}

/// The processor time that a clock measures.
///
/// # Errors
/// EOPNOTSUPP for other clocks and for those of another process, for which no call can wait; EINVAL
/// for one that does not exist.
pub(super) fn cpu_time(cx: &Ctx<'_>, clock: Clock) -> Result<Measure> {
    match source(cx, clock)? {
        Source::Host(_) | Source::Descendant(_) => Err(Errno::EOPNOTSUPP),
        Source::Process => Ok(Measure::Process),
        Source::ThisThread => Ok(Measure::Thread(cx.thread.tid)),
        Source::Thread(thread) => Ok(Measure::Thread(thread.tid)),
    }
}

/// clock_gettime(2)
#[inline]
pub(crate) fn clock_gettime(cx: &Ctx<'_>, clock: Clock, tp: Out<Timespec>) -> Result<()> {
    // The two that programs read all the time.
    if clock.0 <= Clock::CLOCK_MONOTONIC {
        return cx.store(tp, &host::clock::gettime(clock.0.cast_signed())?);
    }
    let now = match source(cx, clock)? {
        Source::Host(clock) => host::clock::gettime(clock)?,
        Source::Process => cx.cage.cpu_time(),
        Source::ThisThread => host::clock::gettime(libc::CLOCK_THREAD_CPUTIME_ID)?,
        Source::Thread(thread) => usage::cpu_time(&thread),
        Source::Descendant(cage) => cage.cpu_time(),
    };
    cx.store(tp, &now)
}

/// clock_getres(2)
pub(crate) fn clock_getres(cx: &Ctx<'_>, clock: Clock, res: Out<Timespec>) -> Result<()> {
    let resolution = match source(cx, clock)? {
        Source::Host(clock) => host::clock::getres(clock)?,
        Source::Process | Source::ThisThread | Source::Thread(_) | Source::Descendant(_) => {
            Timespec { sec: 0, nsec: 1 }
        }
    };
    cx.store_if(res, &resolution)
}

/// gettimeofday(2)
pub(crate) fn gettimeofday(cx: &Ctx<'_>, tv: Out<Timeval>, tz: Out<Timezone>) -> Result<()> {
    let now = host::clock::gettime(libc::CLOCK_REALTIME)?;
    cx.store_if(tv, &Timeval { sec: now.sec, usec: now.nsec / 1000 })?;
    cx.store_if(tz, &Timezone::default())
}

/// time(2)
pub(crate) fn time(cx: &Ctx<'_>, out: Out<i64>) -> Result<i64> {
    let now = host::clock::gettime(libc::CLOCK_REALTIME_COARSE)?;
    cx.store_if(out, &now.sec)?;
    Ok(now.sec)
}

/// times(2), in hundredths of a second.
pub(crate) fn times(cx: &Ctx<'_>, buf: Out<Tms>) -> Result<i64> {
    let ticks = |time: Timeval| time.sec * 100 + time.usec / 10_000;
    if !buf.is_null() {
        let (own, children) = (cx.cage.usage(), cx.cage.children_usage());
        let times = Tms {
            utime: ticks(own.utime),
            stime: ticks(own.stime),
            cutime: ticks(children.utime),
            cstime: ticks(children.stime),
        };
        cx.store(buf, &times)?;
    }
    let up = host::clock::gettime(libc::CLOCK_BOOTTIME)?;
    Ok(up.sec * 100 + up.nsec / 10_000_000)
}
