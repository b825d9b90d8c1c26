//! timerfd.

use std::os::fd::BorrowedFd;

use lind_abi::flags::{Clock, TimerfdFlags, TimerfdSetFlags};
use lind_abi::layout::{Itimerspec, Timespec};
use lind_abi::{Errno, Fd, In, NewFd, Out, Result};
use rustix::time::{self, TimerfdClockId, TimerfdTimerFlags};

use crate::call::Ctx;
use crate::fd::{FileRef, Kind};
use crate::host::errno;

/// timerfd_create(2). The clocks that wake a sleeping machine are EPERM, as without the capability.
pub(crate) fn timerfd_create(cx: &Ctx<'_>, clock: Clock, flags: TimerfdFlags) -> Result<NewFd> {
    if flags.beyond(TimerfdFlags::TFD_NONBLOCK | TimerfdFlags::TFD_CLOEXEC) {
        return Err(Errno::EINVAL);
    }
    let clock = match clock.0 {
        Clock::CLOCK_REALTIME => TimerfdClockId::Realtime,
        Clock::CLOCK_MONOTONIC => TimerfdClockId::Monotonic,
        Clock::CLOCK_BOOTTIME => TimerfdClockId::Boottime,
        Clock::CLOCK_REALTIME_ALARM | Clock::CLOCK_BOOTTIME_ALARM => return Err(Errno::EPERM),
        _ => return Err(Errno::EINVAL),
    };
    let mut host_flags = time::TimerfdFlags::CLOEXEC;
    host_flags.set(time::TimerfdFlags::NONBLOCK, flags.has(TimerfdFlags::TFD_NONBLOCK));
    let host = time::timerfd_create(clock, host_flags).map_err(errno)?;
    cx.cage.fds.add_host(host, flags.has(TimerfdFlags::TFD_CLOEXEC)).map(NewFd)
}

/// timerfd_settime(2)
pub(crate) fn timerfd_settime(
    cx: &Ctx<'_>,
    fd: Fd,
    flags: TimerfdSetFlags,
    new: In<Itimerspec>,
    old: Out<Itimerspec>,
) -> Result<()> {
    let interval = cx.load_timespec(new.cast())?;
    let value = cx.load_timespec(In::new(new.addr.saturating_add(16), new.cage))?;
    let flags = TimerfdTimerFlags::from_bits(flags.0).ok_or(Errno::EINVAL)?;
    let spec = time::Itimerspec { it_interval: to_host(interval), it_value: to_host(value) };
    let before = time::timerfd_settime(timer(&cx.file(fd)?)?, flags, &spec).map_err(errno)?;
    cx.store_if(old, &to_guest(&before))
}

/// timerfd_gettime(2)
pub(crate) fn timerfd_gettime(cx: &Ctx<'_>, fd: Fd, value: Out<Itimerspec>) -> Result<()> {
    let now = time::timerfd_gettime(timer(&cx.file(fd)?)?).map_err(errno)?;
    cx.store(value, &to_guest(&now))
}

/// EINVAL for a file that is a timer only to the host.
fn timer(file: &FileRef) -> Result<BorrowedFd<'_>> {
    match file.kind {
        Kind::Signalfd(_) | Kind::Process(_) => Err(Errno::EINVAL),
        _ => Ok(file.host()),
    }
}

fn to_host(time: Timespec) -> time::Timespec {
    time::Timespec { tv_sec: time.sec, tv_nsec: time.nsec }
}

fn to_guest(spec: &time::Itimerspec) -> Itimerspec {
    let time = |t: time::Timespec| Timespec { sec: t.tv_sec, nsec: t.tv_nsec };
    Itimerspec { interval: time(spec.it_interval), value: time(spec.it_value) }
}
