//! Attributes of files: stat(2), statfs(2) and their relatives.

use std::ffi::CStr;
use std::os::fd::AsFd;

use lind_abi::flags::{AccessFlags, AccessMode, AtFlags, StatxMask};
use lind_abi::layout::{Stat, Statfs, Statx};
use lind_abi::{DirFd, Errno, Fd, In, Out, Path, Result};
use rustix::fs::{FileType, Mode, OFlags};

use crate::call::{Ctx, PathBytes};
use crate::fd::{File, Kind};
use crate::host;
use crate::path::Start;
use crate::procfs::{self, Reached};
use crate::root::Last;
use crate::root::table::Dir;

/// AT_STATX_SYNC_TYPE
const SYNC: u32 = AtFlags::AT_STATX_FORCE_SYNC | AtFlags::AT_STATX_DONT_SYNC;

/// stat(2)
pub(crate) fn stat(cx: &Ctx<'_>, path: Path, buf: Out<Stat>) -> Result<()> {
    newfstatat(cx, cx.here(), path, buf, AtFlags(0))
}

/// lstat(2)
pub(crate) fn lstat(cx: &Ctx<'_>, path: Path, buf: Out<Stat>) -> Result<()> {
    newfstatat(cx, cx.here(), path, buf, AtFlags(AtFlags::AT_SYMLINK_NOFOLLOW))
}

/// fstat(2)
pub(crate) fn fstat(cx: &Ctx<'_>, fd: Fd, buf: Out<Stat>) -> Result<()> {
    stat_open(cx, &Start::File(cx.file(fd)?), buf)
}

/// stat(2) of an open file.
fn stat_open(cx: &Ctx<'_>, file: &Start, buf: Out<Stat>) -> Result<()> {
    match file.place() {
        Some(place) => procfs::stat(cx, place, buf),
        None => host::fs::fstat(file.as_fd(), cx.output_of(buf)?),
    }
}

/// newfstatat(2)
pub(crate) fn newfstatat(cx: &Ctx<'_>, dir: DirFd, path: Path, to: Out<Stat>, flags: AtFlags) -> Result<()> {
    if flags.beyond(AtFlags::AT_SYMLINK_NOFOLLOW | AtFlags::AT_NO_AUTOMOUNT | AtFlags::AT_EMPTY_PATH) {
        return Err(Errno::EINVAL);
    }
    let mut bytes = PathBytes::default();
    let path = cx.path(path, &mut bytes)?;
    let buf = cx.output_of(to)?;
    if path.is_empty() && flags.has(AtFlags::AT_EMPTY_PATH) {
        return stat_open(cx, &cx.itself(dir)?, to);
    }
    let on_host = |start: Dir<'_>, path: &CStr| {
        cx.kernel.root.object(start, path, last(flags), |dir, name, at| host::fs::stat(dir.fd, name, buf, at.bits()))
    };
    cx.act(dir, path, last(flags), on_host, |reached| match reached {
        Reached::Place(place) => procfs::stat(cx, &place, to),
        Reached::File(file) => stat_open(cx, &Start::File(file), to),
        _ => Err(Errno::ENOENT),
    })
}

/// statx(2)
pub(crate) fn statx(
    cx: &Ctx<'_>,
    dir: DirFd,
    path: Path,
    flags: AtFlags,
    mask: StatxMask,
    to: Out<Statx>,
) -> Result<()> {
    if flags.beyond(AtFlags::AT_SYMLINK_NOFOLLOW | AtFlags::AT_NO_AUTOMOUNT | AtFlags::AT_EMPTY_PATH | SYNC) {
        return Err(Errno::EINVAL);
    }
    let mut bytes = PathBytes::default();
    let path = cx.path(path, &mut bytes)?;
    let buf = cx.output_of(to)?;
    let sync = flags.0 & SYNC;
    let of_open = |file: Start| match file.place() {
        Some(place) => procfs::statx(cx, place, mask.0, to),
        None => host::fs::statx(file.as_fd(), c"", AtFlags::AT_EMPTY_PATH | sync, mask.0, buf),
    };
    if path.is_empty() && flags.has(AtFlags::AT_EMPTY_PATH) {
        return of_open(cx.itself(dir)?);
    }
    let on_host = |start: Dir<'_>, path: &CStr| {
        cx.kernel.root.object(start, path, last(flags), |dir, name, at| {
            host::fs::statx(dir.fd, name, at.bits() | sync, mask.0, buf)
        })
    };
    cx.act(dir, path, last(flags), on_host, |reached| match reached {
        Reached::Place(place) => procfs::statx(cx, &place, mask.0, to),
        Reached::File(file) => of_open(Start::File(file)),
        _ => Err(Errno::ENOENT),
    })
}

/// access(2)
pub(crate) fn access(cx: &Ctx<'_>, path: Path, mode: AccessMode) -> Result<()> {
    faccessat2(cx, cx.here(), path, mode, AccessFlags(0))
}

/// faccessat(2) in the kernel's form, without flags.
pub(crate) fn faccessat(cx: &Ctx<'_>, dir: DirFd, path: Path, mode: AccessMode) -> Result<()> {
    faccessat2(cx, dir, path, mode, AccessFlags(0))
}

/// faccessat2(2)
pub(crate) fn faccessat2(cx: &Ctx<'_>, dir: DirFd, path: Path, mode: AccessMode, flags: AccessFlags) -> Result<()> {
    let known = AccessFlags::AT_SYMLINK_NOFOLLOW | AccessFlags::AT_EACCESS | AccessFlags::AT_EMPTY_PATH;
    if flags.beyond(known) || mode.beyond(AccessMode::R_OK | AccessMode::W_OK | AccessMode::X_OK) {
        return Err(Errno::EINVAL);
    }
    let mut bytes = PathBytes::default();
    let path = cx.path(path, &mut bytes)?;
    let mut effective = flags.0 & AccessFlags::AT_EACCESS;
    let by_kernel = effective;
    if effective == 0 && cx.cage.as_real()? {
        effective = AccessFlags::AT_EACCESS;
    }
    let of_open = |file: Start| match file.place() {
        Some(place) => procfs::access(cx, place, mode, by_kernel),
        None => {
            host::fs::access(file.as_fd(), c"", mode.0, AccessFlags::AT_EMPTY_PATH | effective)?;
            writable(cx, file.dir(), mode)
        }
    };
    if path.is_empty() && flags.has(AccessFlags::AT_EMPTY_PATH) {
        return of_open(cx.itself(dir)?);
    }
    let last = if flags.has(AccessFlags::AT_SYMLINK_NOFOLLOW) { Last::NoFollow } else { Last::Follow };
    let on_host = |start: Dir<'_>, path: &CStr| {
        cx.kernel.root.object(start, path, last, |dir, name, at| {
            host::fs::access(dir.fd, name, mode.0, at.bits() | effective)?;
            writable(cx, dir, mode)
        })
    };
    cx.act(dir, path, last, on_host, |reached| match reached {
        Reached::Place(place) => procfs::access(cx, &place, mode, by_kernel),
        Reached::File(file) => of_open(Start::File(file)),
        _ => Err(Errno::ENOENT),
    })
}

/// Whether the mount of the file permits writing it: for fifos and sockets that does not matter.
fn writable(cx: &Ctx<'_>, file: Dir<'_>, mode: AccessMode) -> Result<()> {
    let checked = if mode.has(AccessMode::W_OK) { cx.kernel.root.check_writable(file.mount) } else { Ok(()) };
    if checked.is_err() {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(file).map_err(host::errno)?.st_mode);
        if matches!(kind, FileType::Fifo | FileType::Socket) {
            return Ok(());
        }
    }
    checked
}

/// statfs(2)
pub(crate) fn statfs(cx: &Ctx<'_>, path: Path, buf: Out<Statfs>) -> Result<()> {
    let mut bytes = PathBytes::default();
    let path = cx.path(path, &mut bytes)?;
    let on_host = |dir: Dir<'_>, path: &CStr| {
        let file = cx.kernel.root.open(dir, path, OFlags::PATH.bits(), Mode::empty().bits())?;
        statfs_host(cx, file.dir(), buf)
    };
    cx.act(cx.here(), path, Last::Follow, on_host, |reached| match reached {
        Reached::Place(place) => procfs::statfs(cx, &place, buf),
        Reached::File(file) => statfs_open(cx, &file, buf),
        _ => Err(Errno::ENOENT),
    })
}

/// fstatfs(2)
pub(crate) fn fstatfs(cx: &Ctx<'_>, fd: Fd, buf: Out<Statfs>) -> Result<()> {
    statfs_open(cx, &*cx.file(fd)?, buf)
}

fn statfs_open(cx: &Ctx<'_>, file: &File, buf: Out<Statfs>) -> Result<()> {
    match &file.kind {
        Kind::Pseudo(place) => procfs::statfs(cx, place, buf),
        Kind::Named(_) => statfs_host(cx, file.dir(), buf),
        _ => host::fs::statfs(file.host(), cx.output_of(buf)?),
    }
}

/// The host's facts about a file system, and the mount's flags if it is one of the kernel's.
fn statfs_host(cx: &Ctx<'_>, file: Dir<'_>, buf: Out<Statfs>) -> Result<()> {
    const ST_RDONLY: i64 = 1;
    const ST_NOSUID: i64 = 2;
    const ST_NODEV: i64 = 4;
    host::fs::statfs(file.fd, cx.output_of(buf)?)?;
    let root = &cx.kernel.root;
    if root.table().is_none() {
        return Ok(());
    }
    let mut found: Statfs = cx.load(In::new(buf.addr, buf.cage))?;
    found.flags |= ST_NOSUID | ST_NODEV | if root.check_writable(file.mount).is_err() { ST_RDONLY } else { 0 };
    if let Some((most, left)) = root.names(file.mount) {
        (found.files, found.ffree) = (most, left);
    }
    cx.store(buf, &found)
}

/// Whether a final symbolic link is followed.
pub(super) fn last(flags: AtFlags) -> Last {
    if flags.has(AtFlags::AT_SYMLINK_NOFOLLOW) { Last::NoFollow } else { Last::Follow }
}
