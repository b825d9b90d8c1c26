//! POSIX message queues.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::flags::OpenFlags;
use lind_abi::layout::{MqAttr, Sigevent, Timespec};
use lind_abi::{Errno, Fd, In, Len, Mode, NewFd, Out, Result, Str};

use crate::cage::signal::{self, Info, LAST};
use crate::call::{Ctx, PathBytes};
use crate::event::{Event, Seen};
use crate::fd::{FileRef, Kind};
use crate::host::{clock, errno};
use crate::ipc::{End, Letter, Notice, Notification, READ, Sent, Size, WRITE, Way};
use crate::sys::wait::Deadline;

/// MQ_PRIO_MAX
const PRIORITIES: u32 = 32768;
const NONBLOCK: i64 = OpenFlags::O_NONBLOCK as i64;

/// mq_open(2). As on Linux the descriptor closes on exec whatever the flags say.
pub(crate) fn mq_open(cx: &Ctx<'_>, name: Str, flags: OpenFlags, mode: Mode, attr: In<MqAttr>) -> Result<NewFd> {
    let mut buf = PathBytes::default();
    let name = cx.string(name, &mut buf)?;
    let wanted = match flags.0 & 3 {
        0 => READ,
        1 => WRITE,
        2 => READ | WRITE,
        _ => return Err(Errno::EINVAL),
    };
    let make = if flags.has(OpenFlags::O_CREAT) {
        let size = if attr.is_null() {
            Size::DEFAULT
        } else {
            let attr = cx.load(attr)?;
            Size::new(attr.maxmsg, attr.msgsize)?
        };
        Some((mode.0 & 0o777 & !cx.cage.umask.load(Ordering::Relaxed), size))
    } else {
        None
    };
    cx.cage.fds.check_room(1)?;
    let only_new = flags.has(OpenFlags::O_EXCL);
    let queue = cx.kernel.ipc.lock().named.find(cx, name.to_bytes(), make, only_new, wanted)?;
    let file = End::open(queue, wanted, flags.has(OpenFlags::O_NONBLOCK))?;
    cx.cage.fds.add_from(0, file, true).map(NewFd)
}

/// mq_unlink(2)
pub(crate) fn mq_unlink(cx: &Ctx<'_>, name: Str) -> Result<()> {
    let mut buf = PathBytes::default();
    let name = cx.string(name, &mut buf)?;
    cx.kernel.ipc.lock().named.remove(cx, name.to_bytes())
}

/// mq_timedsend(2)
pub(crate) fn mq_timedsend(
    cx: &Ctx<'_>,
    fd: Fd,
    msg: In<u8>,
    len: Len,
    priority: u32,
    timeout: In<Timespec>,
) -> Result<()> {
    let deadline = until(cx, timeout)?;
    if priority >= PRIORITIES {
        return Err(Errno::EINVAL);
    }
    let file = cx.file(fd)?;
    let end = end_of(&file, WRITE)?;
    let len = usize::try_from(len.0).ok().filter(|len| *len <= end.queue.size.longest).ok_or(Errno::EMSGSIZE)?;
    let mut message = vec![0; len];
    cx.copy_in(msg, &mut message)?;
    loop {
        let seen = match end.queue.send(message, priority) {
            Sent::Done(None) => return Ok(()),
            Sent::Done(Some(notification)) => {
                notify(cx, notification);
                return Ok(());
            }
            Sent::Full(back, seen) => {
                message = back;
                seen
            }
        };
        check_waits(&file)?;
        end.queue.wait(false, |event| wait(cx, event, seen, &deadline))?;
    }
}

/// mq_timedreceive(2)
pub(crate) fn mq_timedreceive(
    cx: &Ctx<'_>,
    fd: Fd,
    msg: Out<u8>,
    len: Len,
    priority: Out<u32>,
    timeout: In<Timespec>,
) -> Result<usize> {
    let deadline = until(cx, timeout)?;
    let file = cx.file(fd)?;
    let end = end_of(&file, READ)?;
    if len.0 < end.queue.size.longest as u64 {
        return Err(Errno::EMSGSIZE);
    }
    loop {
        let seen = match end.queue.receive() {
            // A message whose receiver has no room for it is lost, as on Linux.
            Ok((message, of)) => {
                if !priority.is_null() {
                    cx.store(priority, &of)?;
                }
                return cx.copy_out(msg, &message).map(|()| message.len());
            }
            Err(seen) => seen,
        };
        check_waits(&file)?;
        end.queue.wait(true, |event| wait(cx, event, seen, &deadline))?;
    }
}

/// mq_notify(2). With SIGEV_THREAD, which libc implements by threads, the cookie goes to an end of
/// a pair of sockets instead of a netlink socket.
pub(crate) fn mq_notify(cx: &Ctx<'_>, fd: Fd, event_at: In<Sigevent>) -> Result<()> {
    const SIGEV_SIGNAL: i32 = 0;
    const SIGEV_NONE: i32 = 1;
    const SIGEV_THREAD: i32 = 2;
    let event = if event_at.is_null() { None } else { Some(cx.load(event_at)?) };
    let mut letter = None;
    let way = match event.map(|event| (event.notify, event.signo, event.value)) {
        // Linux permits this as well, although it has no use.
        Some((SIGEV_SIGNAL, 0, _)) => Way::None,
        Some((SIGEV_SIGNAL, signo, value)) => {
            let signal = u8::try_from(signo).ok().filter(|signal| (1..=LAST).contains(signal)).ok_or(Errno::EINVAL)?;
            Way::Signal(signal, value)
        }
        Some((SIGEV_THREAD, socket, cookie)) => {
            let source = In::new(cookie.into(), event_at.cage);
            letter = Some(letter_to(cx, Fd { number: socket, cage: cx.cage.id }, source)?);
            Way::Letter
        }
        Some((SIGEV_NONE, ..)) | None => Way::None,
        Some(_) => return Err(Errno::EINVAL),
    };
    let file = cx.file(fd)?;
    let end = end_of(&file, READ | WRITE)?;
    if event.is_none() {
        end.queue.unregister(cx.cage.id);
        return Ok(());
    }
    end.queue.register(Notice { cage: cx.cage.id, way, by: Arc::downgrade(&file.share()) }, letter)
}

/// Only sockets that socketpair(2) has made are accepted, whose other end cannot be outside.
fn letter_to(cx: &Ctx<'_>, socket: Fd, cookie: In<u8>) -> Result<Letter> {
    const WOKEN: u8 = 1;
    let mut text = [0; Letter::LEN];
    cx.copy_in(cookie, &mut text)?;
    text[Letter::LEN - 1] = WOKEN;
    let file = cx.file(socket)?;
    match &file.kind {
        Kind::Socket(socket) if socket.pair.is_some() => Ok(Letter { socket: file.share(), text }),
        Kind::Socket(_) => Err(Errno::EINVAL),
        _ => Err(Errno::ENOTSOCK),
    }
}

/// mq_getsetattr(2)
pub(crate) fn mq_getsetattr(cx: &Ctx<'_>, fd: Fd, new: In<MqAttr>, old: Out<MqAttr>) -> Result<()> {
    let new = if new.is_null() { None } else { Some(cx.load(new)?.flags) };
    if new.is_some_and(|flags| flags & !NONBLOCK != 0) {
        return Err(Errno::EINVAL);
    }
    let file = cx.file(fd)?;
    let end = end_of(&file, READ | WRITE)?;
    let mut flags = rustix::fs::fcntl_getfl(file.host()).map_err(errno)?;
    let number = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
    let was = MqAttr {
        flags: if flags.contains(rustix::fs::OFlags::NONBLOCK) { NONBLOCK } else { 0 },
        maxmsg: number(end.queue.size.messages),
        msgsize: number(end.queue.size.longest),
        curmsgs: number(end.queue.len()),
        ..MqAttr::default()
    };
    if let Some(new) = new {
        flags.set(rustix::fs::OFlags::NONBLOCK, new & NONBLOCK != 0);
        rustix::fs::fcntl_setfl(file.host(), flags).map_err(errno)?;
    }
    if old.is_null() { Ok(()) } else { cx.store(old, &was) }
}

/// The queue of a descriptor that was opened for one of these.
fn end_of(file: &FileRef, access: u32) -> Result<&End> {
    match &file.kind {
        Kind::Queue(end) if end.is_for(access) => Ok(end),
        _ => Err(Errno::EBADF),
    }
}

fn check_waits(file: &FileRef) -> Result<()> {
    let flags = rustix::fs::fcntl_getfl(file.host()).map_err(errno)?;
    if flags.contains(rustix::fs::OFlags::NONBLOCK) { Err(Errno::EAGAIN) } else { Ok(()) }
}

/// The time is one of CLOCK_REALTIME; setting that clock does not move a wait that has begun.
fn until(cx: &Ctx<'_>, timeout: In<Timespec>) -> Result<Deadline> {
    if timeout.is_null() {
        return Ok(Deadline::Never);
    }
    let end = cx.load_timespec(timeout)?;
    let now = clock::gettime(libc::CLOCK_REALTIME)?;
    let (sec, nsec) = (end.sec.saturating_sub(now.sec), end.nsec - now.nsec);
    let left = if nsec < 0 { (sec.saturating_sub(1), nsec + 1_000_000_000) } else { (sec, nsec) };
    Ok(if left.0 < 0 { Deadline::Now } else { Deadline::after(Timespec { sec: left.0, nsec: left.1 }) })
}

fn wait(cx: &Ctx<'_>, event: &Event, seen: Seen, deadline: &Deadline) -> Result<()> {
    super::wait(cx, event, seen, deadline).map_err(|errno| match errno {
        Errno::EAGAIN => Errno::ETIMEDOUT,
        errno => errno,
    })
}

/// A message has come to a queue that was empty.
fn notify(cx: &Ctx<'_>, notification: Notification) {
    const SI_MESGQ: i32 = -3;
    let Some((cage, signal, value)) = notification.signal() else { return };
    let Some(cage) = cx.kernel.cages.get(cage) else { return };
    let mut info = Info::from(cx.cage, signal, SI_MESGQ);
    info.fields[2] = value;
    // A full queue loses the signal, as on Linux.
    let _ = signal::send(cx.kernel, &cage, info);
}

#[cfg(test)]
mod tests {
    use lind_abi::{Errno, nr};

    use crate::testing::both_walls;

    /// Queues that have no name any more still count.
    #[test]
    fn queues_without_a_name_count() {
        both_walls(|w| {
            let open = |n: i32| {
                let name = w.str(&format!("queue{n}"));
                let fd = w.call(nr::mq_open, &[name, 0o102, 0o600, 0])?;
                w.ok(nr::mq_unlink, &[name]);
                Ok(fd)
            };
            let first = open(0).unwrap();
            let mut made = 1;
            while open(made).is_ok() {
                made += 1;
                assert!(made <= 256);
            }
            assert_eq!((made, open(made)), (256, Err(Errno::ENOSPC)));
            w.ok(nr::close, &[first]);
            open(made).unwrap();
        });
    }
}
