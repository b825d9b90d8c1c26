//! Locks on files: flock(2), and the record locks of fcntl(2).

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd};

use lind_abi::flags::{LockOp, Whence};
use lind_abi::layout::Flock;
use lind_abi::{Errno, Fd, InOut, Result};
use rustix::fs::{FileType, FlockOperation, OFlags};
use rustix::thread::futex;

use crate::call::Ctx;
use crate::fd::locks::{END, Lock, Mode, Owner};
use crate::fd::{File, FileRef, Kind};
use crate::host;

const F_RDLCK: i16 = 0;
const F_WRLCK: i16 = 1;
pub(super) const F_UNLCK: i16 = 2;

/// Whether to wait for a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Yes,
    No,
}

/// flock(2). The host keeps these: they belong to the open file description, which is the same for
/// the host.
pub(crate) fn flock(cx: &Ctx<'_>, fd: Fd, op: LockOp) -> Result<()> {
    let file = cx.file(fd)?;
    let operation = match (op.0 & !LockOp::LOCK_NB, op.has(LockOp::LOCK_NB)) {
        (LockOp::LOCK_SH, false) => FlockOperation::LockShared,
        (LockOp::LOCK_SH, true) => FlockOperation::NonBlockingLockShared,
        (LockOp::LOCK_EX, false) => FlockOperation::LockExclusive,
        (LockOp::LOCK_EX, true) => FlockOperation::NonBlockingLockExclusive,
        (LockOp::LOCK_UN, _) => FlockOperation::Unlock,
        _ => return Err(Errno::EINVAL),
    };
    cx.blocking(|| rustix::fs::flock(file.host(), operation).map_err(host::errno))
}

/// F_GETLK
pub(super) fn record_test(
    cx: &Ctx<'_>,
    fd: Fd,
    file: &FileRef,
    arg: InOut<Flock>,
    of_description: bool,
) -> Result<i32> {
    let mut flock = cx.load(cx.reading(arg))?;
    let wanted = Lock {
        owner: owner(cx, fd, file, &flock, of_description)?,
        mode: mode(flock.kind)?.ok_or(Errno::EINVAL)?,
        range: range(file, &flock)?,
    };
    match cx.kernel.locks.obstacle(file.id()?, &wanted, &|| holder(cx, file)) {
        None => flock.kind = F_UNLCK,
        Some((holder, mode, range)) => {
            flock.kind = if mode == Mode::Shared { F_RDLCK } else { F_WRLCK };
            flock.whence = i16::try_from(Whence::SEEK_SET).unwrap_or(0);
            flock.start = offset(range.start)?;
            flock.len = if range.end == END { 0 } else { offset(range.end - range.start)? };
            flock.pid = match holder {
                Some(Owner::Cage(id)) => id.0.cast_signed(),
                Some(Owner::Description(_)) | None => -1,
            };
        }
    }
    cx.store(cx.writing(arg), &flock)?;
    Ok(0)
}

/// F_SETLK, F_SETLKW
pub(super) fn record_lock(
    cx: &Ctx<'_>,
    fd: Fd,
    file: &FileRef,
    arg: InOut<Flock>,
    of_description: bool,
    wait: Wait,
) -> Result<i32> {
    let flock = cx.load(cx.reading(arg))?;
    let (mode, range) = (mode(flock.kind)?, range(file, &flock)?);
    let owner = owner(cx, fd, file, &flock, of_description)?;
    let (locks, id) = (&cx.kernel.locks, file.id()?);
    let Some(mode) = mode else {
        return locks.give_up(id, owner, &range).map(|()| 0);
    };
    check_access(file, mode)?;
    let wanted = Lock { owner, mode, range };
    let open = || holder(cx, file);
    match wait {
        Wait::No => locks.take(id, wanted, &open)?,
        Wait::Yes => locks.take_patiently(id, &wanted, &open, |word, value, limit| {
            let limit = limit.and_then(|limit| rustix::fs::Timespec::try_from(limit).ok());
            cx.blocking(|| match futex::wait(word, futex::Flags::PRIVATE, value, limit.as_ref()) {
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::TIMEDOUT) => Ok(()),
                slept => slept.map_err(host::errno),
            })
        })?,
    }
    // Another thread may have closed the descriptor meanwhile, and its close found no lock to give
    // up.
    let closed = cx.owner(fd.cage)?.fds.get(fd.number).map_or(true, |now| !std::ptr::eq::<File>(&*now, &**file));
    if closed && !of_description {
        locks.give_up_file(id, owner);
        return Err(Errno::EBADF);
    }
    Ok(0)
}

/// Opens the file by which the locks of cages on a regular file are held at the host: the caller's
/// own open file if possible, since a watcher of inotify(7) would see another one opened. A file
/// that came from outside is opened again, as others may share it; so is one that is open for
/// writing only, which cannot hold shared locks.
fn holder(cx: &Ctx<'_>, file: &File) -> Option<OwnedFd> {
    let stat = rustix::fs::fstat(file.host()).ok()?;
    if !FileType::from_raw_mode(stat.st_mode).is_file() {
        return None;
    }
    let access = rustix::fs::fcntl_getfl(file.host()).ok()? & OFlags::RWMODE;
    if matches!(file.kind, Kind::Named(_)) && access != OFlags::WRONLY {
        return file.lend().ok();
    }
    let open = |access: OFlags| {
        let flags = access | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let reopen = |links: BorrowedFd<'_>, name: &CStr| {
            rustix::fs::openat(links, name, flags, rustix::fs::Mode::empty()).map_err(host::errno)
        };
        cx.kernel.root.again(file.host(), reopen).ok()
    };
    open(OFlags::RDWR).or_else(|| open(OFlags::RDONLY)).or_else(|| open(OFlags::WRONLY))
}

fn owner(cx: &Ctx<'_>, fd: Fd, file: &File, flock: &Flock, of_description: bool) -> Result<Owner> {
    if !of_description {
        let cage = cx.owner(fd.cage)?;
        return Ok(cage.fds.lock_owner(&cx.kernel.locks, cage.id));
    }
    if flock.pid != 0 {
        return Err(Errno::EINVAL);
    }
    file.owner_in(&cx.kernel.locks)
}

fn mode(kind: i16) -> Result<Option<Mode>> {
    match kind {
        F_RDLCK => Ok(Some(Mode::Shared)),
        F_WRLCK => Ok(Some(Mode::Exclusive)),
        F_UNLCK => Ok(None),
        _ => Err(Errno::EINVAL),
    }
}

/// A lock to read needs a file open for reading, and so on.
fn check_access(file: &File, mode: Mode) -> Result<()> {
    let flags = rustix::fs::fcntl_getfl(file.host()).map_err(host::errno)?;
    let access = flags & OFlags::RWMODE;
    let other = if mode == Mode::Shared { OFlags::WRONLY } else { OFlags::RDONLY };
    if flags.contains(OFlags::PATH) || access == other { Err(Errno::EBADF) } else { Ok(()) }
}

/// The bytes a guest means. A negative length counts backwards; 0 is to the end of all files.
fn range(file: &File, flock: &Flock) -> Result<std::ops::Range<u64>> {
    let origin = match u32::try_from(flock.whence) {
        Ok(Whence::SEEK_SET) => 0,
        Ok(Whence::SEEK_CUR) => offset(host::fs::lseek(file.host(), 0, Whence::SEEK_CUR)? as u64)?,
        Ok(Whence::SEEK_END) => rustix::fs::fstat(file.host()).map_err(host::errno)?.st_size,
        _ => return Err(Errno::EINVAL),
    };
    let start = origin.checked_add(flock.start).ok_or(Errno::EOVERFLOW)?;
    let (start, end) = match flock.len {
        0 => (start, None),
        len if len > 0 => (start, Some(start.checked_add(len - 1).ok_or(Errno::EOVERFLOW)?)),
        len => (start.checked_add(len).ok_or(Errno::EINVAL)?, Some(start - 1)),
    };
    let start = u64::try_from(start).map_err(|_| Errno::EINVAL)?;
    let end = end.map_or(Ok(END), |last| u64::try_from(last).map(|last| last + 1).map_err(|_| Errno::EINVAL))?;
    Ok(start..end)
}

fn offset(value: u64) -> Result<i64> {
    i64::try_from(value).map_err(|_| Errno::EOVERFLOW)
}
