//! Duplicates of descriptors, and their flags: dup(2) and its variants, fcntl(2).

use std::os::fd::{AsFd, BorrowedFd};

use lind_abi::flags::{FcntlCmd, FdFlags};
use lind_abi::layout::Flock;
use lind_abi::{Errno, Fd, InOut, NewFd, Result};
use rustix::fs::{OFlags, SealFlags};

use super::lock::{F_UNLCK, Wait, record_lock, record_test};
use super::owner::{O_ASYNC, async_flag, of_owner, set_async};
use crate::call::Ctx;
use crate::fd::{FileRef, Kind};
use crate::host;

const FD_CLOEXEC: i32 = 1;
/// The flags that F_SETFL changes: O_APPEND, O_NONBLOCK, O_DIRECT, O_NOATIME. O_ASYNC is the
/// kernel's own; Linux passes over the rest.
const SETTABLE: u32 = 0o2000 | 0o4000 | 0o40000 | 0o1_000_000;

/// dup(2)
pub(crate) fn dup(cx: &Ctx<'_>, fd: Fd) -> Result<NewFd> {
    cx.cage.fds.add_from(0, cx.file(fd)?.into_share(), false).map(NewFd)
}

/// dup2(2)
pub(crate) fn dup2(cx: &Ctx<'_>, old: Fd, new: Fd) -> Result<NewFd> {
    if old == new {
        cx.file(old)?;
        return Ok(NewFd(new.number));
    }
    duplicate(cx, old, new, false)
}

/// dup3(2)
pub(crate) fn dup3(cx: &Ctx<'_>, old: Fd, new: Fd, flags: FdFlags) -> Result<NewFd> {
    if old == new || flags.beyond(FdFlags::O_CLOEXEC) {
        return Err(Errno::EINVAL);
    }
    duplicate(cx, old, new, flags.has(FdFlags::O_CLOEXEC))
}

fn duplicate(cx: &Ctx<'_>, old: Fd, new: Fd, cloexec: bool) -> Result<NewFd> {
    let file = cx.file(old)?.into_share();
    let number = usize::try_from(new.number).map_err(|_| Errno::EBADF)?;
    cx.owner(new.cage)?.fds.put(number, file, cloexec, Some(cx.reader(new.cage)))?;
    Ok(NewFd(new.number))
}

/// fcntl(2)
pub(crate) fn fcntl(cx: &Ctx<'_>, fd: Fd, cmd: FcntlCmd, arg: InOut<Flock>) -> Result<i32> {
    if asks_nobody(cmd) {
        return carry_out(cx, fd, cmd, arg);
    }
    cx.cage.as_itself()?;
    let result = carry_out(cx, fd, cmd, arg);
    if cx.cage.id != cx.thread.cage.id {
        // A call that a grate makes for itself leaves its client's thread as it was.
        let _ = cx.thread.cage.as_itself();
    }
    result
}

/// Commands about the number alone, which the host never sees, and those that read flags. Grates
/// use these for every number of a client, and taking on the client's identity may be expensive: it
/// sets all its groups.
fn asks_nobody(cmd: FcntlCmd) -> bool {
    matches!(
        cmd.0,
        FcntlCmd::F_GETFD | FcntlCmd::F_SETFD | FcntlCmd::F_GETFL | FcntlCmd::F_DUPFD | FcntlCmd::F_DUPFD_CLOEXEC
    )
}

fn carry_out(cx: &Ctx<'_>, fd: Fd, cmd: FcntlCmd, arg: InOut<Flock>) -> Result<i32> {
    // The argument is a number or a pointer, depending on the command; a number has 32 bits.
    let number = u32::try_from(arg.addr & u64::from(u32::MAX)).unwrap_or(0);
    let table = &cx.owner(fd.cage)?.fds;
    match cmd.0 {
        FcntlCmd::F_GETFD => table.cloexec(fd.number).map(|on| if on { FD_CLOEXEC } else { 0 }),
        FcntlCmd::F_SETFD => table.set_cloexec(fd.number, number & FD_CLOEXEC.unsigned_abs() != 0).map(|()| 0),
        FcntlCmd::F_GETFL => get_flags(cx.host_fd(fd)?.as_fd()).map(|flags| flags | async_flag(cx, fd)),
        FcntlCmd::F_SETFL => {
            set_flags(cx.host_fd(fd)?.as_fd(), number)?;
            set_async(cx, fd, number & O_ASYNC != 0).map(|()| 0)
        }
        FcntlCmd::F_DUPFD | FcntlCmd::F_DUPFD_CLOEXEC => {
            // As for dup, the new number belongs to the cage that the call acts on, so a grate can
            // pass on a descriptor of its own.
            let file = cx.file(fd)?;
            if fd.cage != cx.cage.id {
                cx.permit_given(cx.cage, &file)?;
            }
            let (file, table) = (file.into_share(), &cx.cage.fds);
            let from = usize::try_from(number).unwrap_or(usize::MAX);
            if from >= table.limit() {
                return Err(Errno::EINVAL);
            }
            table.add_from(from, file, cmd.0 == FcntlCmd::F_DUPFD_CLOEXEC)
        }
        _ => of_file(cx, fd, cmd, arg, number),
    }
}

/// The commands that are about the open file.
fn of_file(cx: &Ctx<'_>, fd: Fd, cmd: FcntlCmd, arg: InOut<Flock>, number: u32) -> Result<i32> {
    let file = cx.file(fd)?;
    // Record locks look at how it was opened themselves, and come often.
    if !matches!(cmd.0, FcntlCmd::F_SETLK | FcntlCmd::F_SETLKW) {
        check_opened(&file)?;
    }
    if let Some(result) = of_owner(cx, &file, cmd, arg, number) {
        return result;
    }
    match cmd.0 {
        FcntlCmd::F_GETLK => record_test(cx, fd, &file, arg, false),
        FcntlCmd::F_SETLK => record_lock(cx, fd, &file, arg, false, Wait::No),
        FcntlCmd::F_SETLKW => record_lock(cx, fd, &file, arg, false, Wait::Yes),
        FcntlCmd::F_OFD_GETLK => record_test(cx, fd, &file, arg, true),
        FcntlCmd::F_OFD_SETLK => record_lock(cx, fd, &file, arg, true, Wait::No),
        FcntlCmd::F_OFD_SETLKW => record_lock(cx, fd, &file, arg, true, Wait::Yes),
        FcntlCmd::F_GETPIPE_SZ => size(rustix::pipe::fcntl_getpipe_size(file.host())),
        FcntlCmd::F_SETPIPE_SZ => set_pipe_size(&file, number),
        FcntlCmd::F_GETLEASE => lease(&file),
        FcntlCmd::F_SETLEASE => file.make_notice().set_lease(cx, &file, fd.number, number.cast_signed()).map(|()| 0),
        FcntlCmd::F_NOTIFY => file.make_notice().set_events(cx, &file, fd.number, number).map(|()| 0),
        FcntlCmd::F_GET_SEALS => {
            rustix::fs::fcntl_get_seals(file.host()).map(|seals| seals.bits().cast_signed()).map_err(host::errno)
        }
        FcntlCmd::F_CREATED_QUERY => host::fs::created(file.host()),
        FcntlCmd::F_ADD_SEALS => rustix::fs::fcntl_add_seals(file.host(), SealFlags::from_bits_retain(number))
            .map(|()| 0)
            .map_err(host::errno),
        _ => Err(Errno::EINVAL),
    }
}

/// F_GETLEASE. A file that no cage has opened by its name has none.
fn lease(file: &FileRef) -> Result<i32> {
    if matches!(file.kind, Kind::Named(_)) { host::lease::get(file.host()) } else { Ok(i32::from(F_UNLCK)) }
}

/// The host refuses sizes beyond its limit for pipes, and sizes beyond the largest 32-bit power of
/// two as invalid.
fn set_pipe_size(file: &FileRef, number: u32) -> Result<i32> {
    const MOST: u32 = 1 << 31;
    if number > MOST {
        return size(rustix::pipe::fcntl_getpipe_size(file.host())).and(Err(Errno::EINVAL));
    }
    size(rustix::pipe::fcntl_setpipe_size(file.host(), number as usize))
}

/// Whether a file is open, not only named: O_PATH.
///
/// # Errors
/// EBADF.
pub(super) fn check_opened(file: &FileRef) -> Result<()> {
    let flags = rustix::fs::fcntl_getfl(file.host()).map_err(host::errno)?;
    if flags.contains(OFlags::PATH) { Err(Errno::EBADF) } else { Ok(()) }
}

fn get_flags(file: BorrowedFd<'_>) -> Result<i32> {
    rustix::fs::fcntl_getfl(file).map(|flags| flags.bits().cast_signed()).map_err(host::errno)
}

fn set_flags(file: BorrowedFd<'_>, flags: u32) -> Result<i32> {
    rustix::fs::fcntl_setfl(file, OFlags::from_bits_retain(flags & SETTABLE)).map(|()| 0).map_err(host::errno)
}

fn size(size: rustix::io::Result<usize>) -> Result<i32> {
    i32::try_from(size.map_err(host::errno)?).map_err(|_| Errno::EOVERFLOW)
}
