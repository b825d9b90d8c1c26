//! epoll(7).

use std::os::fd::AsFd;

use lind_abi::flags::{EpollEvents, EpollFlags, EpollOp};
use lind_abi::layout::{EpollEvent, Sigset, Timespec};
use lind_abi::{Errno, Fd, In, Len, NewFd, Out, Result};
use rustix::event::epoll::CreateFlags;

use super::Deadline;
use super::mask;
use crate::call::Ctx;
use crate::fd::{File, Interests, Kind, ready_fd};
use crate::host::{errno, wait};
use crate::spin;
use crate::terminal::polled;

/// epoll_create(2)
pub(crate) fn epoll_create(cx: &Ctx<'_>, size: i32) -> Result<NewFd> {
    if size <= 0 {
        return Err(Errno::EINVAL);
    }
    epoll_create1(cx, EpollFlags(0))
}

/// epoll_create1(2)
pub(crate) fn epoll_create1(cx: &Ctx<'_>, flags: EpollFlags) -> Result<NewFd> {
    if flags.beyond(EpollFlags::EPOLL_CLOEXEC) {
        return Err(Errno::EINVAL);
    }
    let host = rustix::event::epoll::create(CreateFlags::CLOEXEC).map_err(errno)?;
    let file = File::new(host, Kind::Epoll(Interests::default()));
    cx.cage.fds.add(file, flags.has(EpollFlags::EPOLL_CLOEXEC)).map(NewFd)
}

/// epoll_ctl(2). EPOLLWAKEUP is ignored, as on Linux without the right to keep the system awake.
pub(crate) fn epoll_ctl(cx: &Ctx<'_>, fd: Fd, op: EpollOp, target: Fd, event: In<EpollEvent>) -> Result<()> {
    let mut wanted = EpollEvent::default();
    if op.0 != EpollOp::EPOLL_CTL_DEL {
        wanted = cx.load(event)?;
        wanted.events &= !EpollEvents::EPOLLWAKEUP;
    }
    let epoll = cx.file(fd)?;
    let number = target.number;
    let target = cx.file(target)?;
    let Kind::Epoll(interests) = &epoll.kind else { return Err(Errno::EINVAL) };
    if op.0 == EpollOp::EPOLL_CTL_ADD {
        // Before the host is asked: the socket may become another meanwhile.
        target.note_watcher(&epoll.share());
        if matches!(&target.kind, Kind::Pseudo(place) if place.lists_mounts()) {
            // It can be read at any time. No mount is ever added or removed: of that there is no
            // event.
            target.wait_by(|| ready_fd::new(cx.kernel, true).inspect(|ready| ready_fd::show(ready.as_fd(), true)))?;
        }
    }
    if op.0 != EpollOp::EPOLL_CTL_DEL && wanted.events & EpollEvents::EPOLLIN != 0 {
        polled(cx, &target);
    }
    interests.control(epoll.host(), op, number, &target, &wanted)
}

/// epoll_wait(2)
pub(crate) fn epoll_wait(cx: &Ctx<'_>, fd: Fd, events: Out<EpollEvent>, max: i32, timeout: i32) -> Result<usize> {
    wait_until(cx, fd, events, max, Deadline::after_milliseconds(timeout))
}

/// epoll_pwait(2)
pub(crate) fn epoll_pwait(
    cx: &Ctx<'_>,
    fd: Fd,
    events: Out<EpollEvent>,
    max: i32,
    timeout: i32,
    set: In<Sigset>,
    size: Len,
) -> Result<usize> {
    let deadline = Deadline::after_milliseconds(timeout);
    mask(cx, set, size)?.wait(cx, deadline, |deadline| wait_until(cx, fd, events, max, deadline))
}

/// epoll_pwait2(2)
pub(crate) fn epoll_pwait2(
    cx: &Ctx<'_>,
    fd: Fd,
    events: Out<EpollEvent>,
    max: i32,
    timeout: In<Timespec>,
    set: In<Sigset>,
    size: Len,
) -> Result<usize> {
    let deadline = Deadline::load(cx, timeout)?;
    mask(cx, set, size)?.wait(cx, deadline, |deadline| wait_until(cx, fd, events, max, deadline))
}

fn wait_until(cx: &Ctx<'_>, fd: Fd, events: Out<EpollEvent>, max: i32, deadline: Deadline) -> Result<usize> {
    const SIZE: u64 = size_of::<EpollEvent>() as u64;
    let max = u64::try_from(max).ok().filter(|max| (1..=i32::MAX as u64 / SIZE).contains(max)).ok_or(Errno::EINVAL)?;
    let events = cx.output(events.cast(), Len(max * SIZE))?;
    let epoll = cx.host_fd(fd)?;
    let wait = |timeout| wait::epoll_wait(epoll.as_fd(), events, timeout);
    if !deadline.is_now()
        && let Some(ready) = spin::for_events(cx, || wait(Some(Timespec::default())))
    {
        return ready;
    }
    cx.blocking(|| wait(deadline.remaining()))
}
