//! Changing modes, owners and times.

use std::ffi::CStr;

use lind_abi::flags::AtFlags;
use lind_abi::layout::{Timespec, Timeval, Utimbuf};
use lind_abi::{DirFd, Errno, Fd, Gid, In, Mode, Path, Result, Uid};
use rustix::fs::{FileType, OFlags, Timestamps};

use super::dup::check_opened;
use super::stat::last;
use crate::call::{Ctx, PathBytes};
use crate::fd::{File, Kind};
use crate::host;
use crate::path::Start;
use crate::procfs::Reached;
use crate::root::Last;
use crate::root::table::Dir;

const UTIME_NOW: i64 = 0x3fff_ffff;

/// chmod(2)
pub(crate) fn chmod(cx: &Ctx<'_>, path: Path, mode: Mode) -> Result<()> {
    fchmodat2(cx, cx.here(), path, mode, AtFlags(0))
}

/// fchmodat(2) in the kernel's form, without flags.
pub(crate) fn fchmodat(cx: &Ctx<'_>, dir: DirFd, path: Path, mode: Mode) -> Result<()> {
    fchmodat2(cx, dir, path, mode, AtFlags(0))
}

/// fchmodat2(2). A symbolic link's own mode cannot be changed: EOPNOTSUPP.
pub(crate) fn fchmodat2(cx: &Ctx<'_>, dir: DirFd, path: Path, mode: Mode, flags: AtFlags) -> Result<()> {
    if flags.beyond(AtFlags::AT_SYMLINK_NOFOLLOW | AtFlags::AT_EMPTY_PATH) {
        return Err(Errno::EINVAL);
    }
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    let mode = rustix::fs::Mode::from_raw_mode(mode.0 & 0o7777);
    let root = &cx.kernel.root;
    // Changed by its name in /proc, which leads to the very file that is open and no further.
    let change = |file: Dir<'_>| {
        let stat = changeable(cx, file)?;
        if FileType::from_raw_mode(stat.st_mode).is_symlink() {
            return Err(Errno::EOPNOTSUPP);
        }
        root.again(file.fd, |dir, name| {
            rustix::fs::chmodat(dir, name, mode, rustix::fs::AtFlags::empty()).map_err(host::errno)
        })?;
        cx.kernel.set_ids.note(root, file.fd, mode.as_raw_mode());
        Ok(())
    };
    if path.is_empty() && flags.has(AtFlags::AT_EMPTY_PATH) {
        return of_open(&cx.itself(dir)?, change);
    }
    let follow = if last(flags) == Last::Follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    let on_host =
        |start: Dir<'_>, path: &CStr| change(root.open(start, path, (OFlags::PATH | follow).bits(), 0)?.dir());
    cx.act(dir, path, last(flags), on_host, |reached| of_ours(cx, reached, change))
}

/// fchmod(2)
pub(crate) fn fchmod(cx: &Ctx<'_>, fd: Fd, mode: Mode) -> Result<()> {
    let file = cx.file(fd)?;
    check_ours(&file)?;
    changeable(cx, file.dir())?;
    rustix::fs::fchmod(file.host(), rustix::fs::Mode::from_raw_mode(mode.0 & 0o7777)).map_err(host::errno)?;
    cx.kernel.set_ids.note(&cx.kernel.root, file.host(), mode.0);
    Ok(())
}

/// chown(2)
pub(crate) fn chown(cx: &Ctx<'_>, path: Path, uid: Uid, gid: Gid) -> Result<()> {
    fchownat(cx, cx.here(), path, uid, gid, AtFlags(0))
}

/// lchown(2)
pub(crate) fn lchown(cx: &Ctx<'_>, path: Path, uid: Uid, gid: Gid) -> Result<()> {
    fchownat(cx, cx.here(), path, uid, gid, AtFlags(AtFlags::AT_SYMLINK_NOFOLLOW))
}

/// fchown(2)
pub(crate) fn fchown(cx: &Ctx<'_>, fd: Fd, uid: Uid, gid: Gid) -> Result<()> {
    let file = cx.file(fd)?;
    check_ours(&file)?;
    changeable(cx, file.dir())?;
    check_opened(&file)?;
    host::fs::chown(file.host(), c"", uid.0, gid.0, AtFlags::AT_EMPTY_PATH)
}

/// fchownat(2)
pub(crate) fn fchownat(cx: &Ctx<'_>, dir: DirFd, path: Path, uid: Uid, gid: Gid, flags: AtFlags) -> Result<()> {
    if flags.beyond(AtFlags::AT_SYMLINK_NOFOLLOW | AtFlags::AT_EMPTY_PATH) {
        return Err(Errno::EINVAL);
    }
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    let change = |file: Dir<'_>| {
        changeable(cx, file)?;
        host::fs::chown(file.fd, c"", uid.0, gid.0, AtFlags::AT_EMPTY_PATH)
    };
    if path.is_empty() && flags.has(AtFlags::AT_EMPTY_PATH) {
        return of_open(&cx.itself(dir)?, change);
    }
    let root = &cx.kernel.root;
    let on_host = |start: Dir<'_>, path: &CStr| {
        root.change(start, path, last(flags), |dir, name, at| host::fs::chown(dir.fd, name, uid.0, gid.0, at.bits()))
    };
    cx.act(dir, path, last(flags), on_host, |reached| of_ours(cx, reached, change))
}

/// utimensat(2). A NULL path means the descriptor itself.
pub(crate) fn utimensat(cx: &Ctx<'_>, dir: DirFd, path: Path, times: In<Timespec>, flags: AtFlags) -> Result<()> {
    let times = if times.is_null() {
        NOW
    } else {
        // The upper half of a guest's nanoseconds is padding.
        let [access, change] =
            cx.load(times.cast::<[Timespec; 2]>())?.map(|t| Timespec { nsec: t.nsec & 0xffff_ffff, ..t });
        [access, change]
    };
    set_times(cx, dir, path, times, flags)
}

/// utimes(2)
pub(crate) fn utimes(cx: &Ctx<'_>, path: Path, times: In<Timeval>) -> Result<()> {
    futimesat(cx, cx.here(), path, times)
}

/// futimesat(2)
pub(crate) fn futimesat(cx: &Ctx<'_>, dir: DirFd, path: Path, times: In<Timeval>) -> Result<()> {
    if times.is_null() {
        return set_times(cx, dir, path, NOW, AtFlags(0));
    }
    let times = cx.load(times.cast::<[Timeval; 2]>())?;
    if times.iter().any(|time| !(0..1_000_000).contains(&time.usec)) {
        return Err(Errno::EINVAL);
    }
    let times = times.map(|time| Timespec { sec: time.sec, nsec: time.usec * 1000 });
    set_times(cx, dir, path, times, AtFlags(0))
}

/// utime(2)
pub(crate) fn utime(cx: &Ctx<'_>, path: Path, times: In<Utimbuf>) -> Result<()> {
    if times.is_null() {
        return set_times(cx, cx.here(), path, NOW, AtFlags(0));
    }
    let times = cx.load(times)?;
    let times = [times.actime, times.modtime].map(|sec| Timespec { sec, nsec: 0 });
    set_times(cx, cx.here(), path, times, AtFlags(0))
}

const NOW: [Timespec; 2] = [Timespec { sec: 0, nsec: UTIME_NOW }; 2];

fn set_times(cx: &Ctx<'_>, dir: DirFd, path: Path, times: [Timespec; 2], flags: AtFlags) -> Result<()> {
    if flags.beyond(AtFlags::AT_SYMLINK_NOFOLLOW | AtFlags::AT_EMPTY_PATH) {
        return Err(Errno::EINVAL);
    }
    let [last_access, last_modification] = times.map(|t| rustix::fs::Timespec { tv_sec: t.sec, tv_nsec: t.nsec });
    let times = Timestamps { last_access, last_modification };
    if path.addr == 0 {
        let file = cx.file(Fd { number: dir.number, cage: dir.cage })?;
        check_ours(&file)?;
        changeable(cx, file.dir())?;
        return rustix::fs::futimens(file.host(), &times).map_err(host::errno);
    }
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    let set = |dir: Dir<'_>, name: &CStr, at| rustix::fs::utimensat(dir, name, &times, at).map_err(host::errno);
    let change = |file: Dir<'_>| {
        changeable(cx, file)?;
        set(file, c"", rustix::fs::AtFlags::EMPTY_PATH)
    };
    if path.is_empty() && flags.has(AtFlags::AT_EMPTY_PATH) {
        return of_open(&cx.itself(dir)?, change);
    }
    let on_host = |start: Dir<'_>, path: &CStr| cx.kernel.root.change(start, path, last(flags), set);
    cx.act(dir, path, last(flags), on_host, |reached| of_ours(cx, reached, change))
}

/// Changes what is open, which may be a place in our trees: nothing changes there.
fn of_open(file: &Start, change: impl FnOnce(Dir<'_>) -> Result<()>) -> Result<()> {
    if file.place().is_some() { Err(Errno::EPERM) } else { change(file.dir()) }
}

/// Changes what a path led to in our trees: shared memory, or an open file.
fn of_ours(cx: &Ctx<'_>, reached: Reached, change: impl FnOnce(Dir<'_>) -> Result<()>) -> Result<()> {
    match reached {
        Reached::Place(place) => change(place.memory(cx).ok_or(Errno::EPERM)?.1.dir()),
        // A file that was handed in is not changed by its name.
        Reached::File(file) if matches!(file.kind, Kind::Named(_)) => change(file.dir()),
        Reached::File(_) => Err(Errno::EPERM),
        _ => Err(Errno::ENOENT),
    }
}

fn check_ours(file: &File) -> Result<()> {
    if matches!(file.kind, Kind::Pseudo(_)) { Err(Errno::EPERM) } else { Ok(()) }
}

/// Devices belong to the host: the nodes of every root, and terminals that were handed in. Guests
/// use them as they are.
fn changeable(cx: &Ctx<'_>, file: Dir<'_>) -> Result<rustix::fs::Stat> {
    let stat = rustix::fs::fstat(file).map_err(host::errno)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::CharacterDevice | FileType::BlockDevice => Err(Errno::EPERM),
        _ => cx.kernel.root.check_changeable(file).map(|()| stat),
    }
}
