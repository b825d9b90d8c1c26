//! Opening and closing: open(2), close(2), memfd_create(2) and their relatives.

use std::ffi::{CStr, CString};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use lind_abi::flags::{CloseRangeFlags, MemfdFlags, OpenFlags};
use lind_abi::layout::OpenHow;
use lind_abi::{DirFd, Errno, Fd, In, Len, Mode, NewFd, Path, Result, Str};

use super::numbered;
use crate::call::{Ctx, PathBytes};
use crate::fd::{File, Kind};
use crate::host;
use crate::landlock;
use crate::path::Within;
use crate::procfs::{self, Opened, Reached};
use crate::root::Last;
use crate::root::table::Dir;
use crate::writing::open_unless_run;

/// open(2)
pub(crate) fn open(cx: &Ctx<'_>, path: Path, flags: OpenFlags, mode: Mode) -> Result<NewFd> {
    openat(cx, cx.here(), path, flags, mode)
}

/// creat(2)
pub(crate) fn creat(cx: &Ctx<'_>, path: Path, mode: Mode) -> Result<NewFd> {
    let flags = OpenFlags(OpenFlags::O_CREAT | OpenFlags::O_WRONLY | OpenFlags::O_TRUNC);
    openat(cx, cx.here(), path, flags, mode)
}

/// openat(2)
pub(crate) fn openat(cx: &Ctx<'_>, dir: DirFd, path: Path, flags: OpenFlags, mode: Mode) -> Result<NewFd> {
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    match open_at(cx, dir, path, (flags, mode), Within::default()) {
        Err(Errno::ENOTDIR) => numbered::open(cx, dir, path, (flags, mode)),
        opened => opened,
    }
}

/// To open a file so is to change it, or to be able to.
const CHANGES: u32 = OpenFlags::O_WRONLY | OpenFlags::O_RDWR | OpenFlags::O_CREAT | OpenFlags::O_TRUNC;

fn open_at(
    cx: &Ctx<'_>,
    dir: DirFd,
    path: &CStr,
    (flags, mode): (OpenFlags, Mode),
    mut within: Within,
) -> Result<NewFd> {
    if cx.kernel.root.read_only() && flags.0 & CHANGES != 0 && !flags.has(OpenFlags::O_PATH) {
        return Err(Errno::EROFS);
    }
    let cloexec = flags.has(OpenFlags::O_CLOEXEC);
    let last = if flags.has(OpenFlags::O_NOFOLLOW) || flags.has(OpenFlags::O_CREAT | OpenFlags::O_EXCL) {
        Last::NoFollow
    } else {
        Last::Follow
    };
    let masked = mode.0 & !cx.cage.umask.load(Ordering::Relaxed);
    let on_host = |dir: Dir<'_>, path: &CStr, within: Within| {
        let mut mount = dir.mount;
        let host = open_unless_run(cx, flags.0, |flags| {
            // A fifo waits for its other end.
            let found = landlock::open(cx, dir, path, (flags, masked), within.resolve())?;
            mount = found.mount;
            if flags & OpenFlags::O_CREAT != 0 {
                cx.kernel.set_ids.note(&cx.kernel.root, found.as_fd(), masked);
            }
            cx.kernel.root.check_opened(found.as_fd()).map(|()| found.file)
        })?;
        Ok(Opened::New(File::new(host, Kind::Named(mount))))
    };
    let mut whole = None;
    if within.is_scoped() {
        let start = cx.directory(dir)?;
        let inside = start.place().is_some();
        if !inside && !cx.kernel.root.is_top(start.dir()) {
            // From below the root nothing but the host's can be reached.
            let opened = on_host(start.dir(), path, within)?;
            return cx.cage.fds.add_from(0, opened.share(), cloexec).map(NewFd);
        }
        if inside && within.starts_anew() {
            whole = Some(without_root(path)?);
        } else if within.take_in_root() {
            whole = Some(CString::new([b"/", path.to_bytes()].concat()).map_err(|_| Errno::EINVAL)?);
        } else if path.to_bytes().starts_with(b"/") {
            return Err(Errno::EXDEV);
        }
    }
    let path = whole.as_deref().unwrap_or(path);
    let on_host = |dir: Dir<'_>, path: &CStr| on_host(dir, path, within);
    let ours = |reached| match reached {
        Reached::Place(place) => {
            cx.permit_place_open(&place, flags.0)?;
            procfs::open(cx, place, flags)
        }
        Reached::Missing(place, name) => {
            cx.permit_place(&place, landlock::access::MAKE_REG)?;
            cx.permit_place_open(&place, flags.0)?;
            procfs::create(cx, &place, &name, flags, mode)
        }
        Reached::File(file) => {
            cx.permit_file(cx.cage, &file, flags.0)?;
            procfs::reopen(cx, &file, flags)
        }
        Reached::Host(..) => Err(Errno::ENOENT),
    };
    let opened = if flags.has(OpenFlags::O_CREAT) {
        cx.make_within(dir, path, last, within, on_host, ours)?
    } else {
        cx.act_within(dir, path, last, within, on_host, ours)?
    };
    cx.cage.fds.add_from(0, opened.share(), cloexec).map(NewFd)
}

/// A path relative to the directory that acts as its root.
fn without_root(path: &CStr) -> Result<CString> {
    let slashes = path.to_bytes().iter().take_while(|&&byte| byte == b'/').count();
    let relative = &path.to_bytes()[slashes..];
    CString::new(if relative.is_empty() { b"." } else { relative }).map_err(|_| Errno::EINVAL)
}

/// openat2(2)
pub(crate) fn openat2(cx: &Ctx<'_>, dir: DirFd, path: Path, how: In<OpenHow>, size: Len) -> Result<NewFd> {
    const FIRST_VERSION: u64 = 24;
    const KNOWN: u32 = OpenFlags::O_WRONLY
        | OpenFlags::O_RDWR
        | OpenFlags::O_CREAT
        | OpenFlags::O_EXCL
        | OpenFlags::O_NOCTTY
        | OpenFlags::O_TRUNC
        | OpenFlags::O_APPEND
        | OpenFlags::O_NONBLOCK
        | OpenFlags::O_SYNC
        | OpenFlags::O_ASYNC
        | OpenFlags::O_DIRECT
        | OpenFlags::O_LARGEFILE
        | OpenFlags::O_TMPFILE
        | OpenFlags::O_NOFOLLOW
        | OpenFlags::O_NOATIME
        | OpenFlags::O_CLOEXEC
        | OpenFlags::O_PATH;
    const TREE: u32 = OpenFlags::O_TMPFILE & !OpenFlags::O_DIRECTORY;
    const WITH_PATH: u32 = OpenFlags::O_PATH | OpenFlags::O_DIRECTORY | OpenFlags::O_NOFOLLOW | OpenFlags::O_CLOEXEC;
    let [flags, mode, resolve] = cx.load_versioned(how, size, FIRST_VERSION)?;
    let flags = OpenFlags(u32::try_from(flags).map_err(|_| Errno::EINVAL)?);
    let creates = flags.has(OpenFlags::O_CREAT) || flags.0 & TREE != 0;
    let with_path = flags.has(OpenFlags::O_PATH) && flags.beyond(WITH_PATH);
    if flags.beyond(KNOWN) || with_path || mode & !if creates { 0o7777 } else { 0 } != 0 {
        return Err(Errno::EINVAL);
    }
    let within = Within::new(resolve)?;
    let mode = Mode(u32::try_from(mode).map_err(|_| Errno::EINVAL)?);
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    if path.is_empty() {
        return Err(Errno::ENOENT);
    }
    open_at(cx, dir, path, (flags, mode), within)
}

/// close(2). The host's file closes with its last user.
#[inline]
pub(crate) fn close(cx: &Ctx<'_>, fd: Fd) -> Result<()> {
    if fd.number < 0 {
        return Err(Errno::EBADF);
    }
    cx.owner(fd.cage)?.fds.remove(fd.number, cx.reader(fd.cage)).map(drop)?;
    crate::terminal::gone(cx.kernel);
    Ok(())
}

/// close_range(2)
pub(crate) fn close_range(cx: &Ctx<'_>, first: u32, last: u32, flags: CloseRangeFlags) -> Result<()> {
    if first > last || flags.beyond(CloseRangeFlags::CLOSE_RANGE_CLOEXEC) {
        return Err(Errno::EINVAL);
    }
    for number in cx.cage.fds.open_in(first, last) {
        // Another thread may have closed it since.
        let _ = if flags.has(CloseRangeFlags::CLOSE_RANGE_CLOEXEC) {
            cx.cage.fds.set_cloexec(number, true)
        } else {
            cx.cage.fds.remove(number, cx.reader(cx.cage.id)).map(drop)
        };
    }
    Ok(())
}

/// memfd_create(2)
pub(crate) fn memfd_create(cx: &Ctx<'_>, name: Str, flags: MemfdFlags) -> Result<NewFd> {
    let known =
        MemfdFlags::MFD_CLOEXEC | MemfdFlags::MFD_ALLOW_SEALING | MemfdFlags::MFD_NOEXEC_SEAL | MemfdFlags::MFD_EXEC;
    if flags.beyond(known) {
        return Err(Errno::EINVAL);
    }
    let mut buf = PathBytes::default();
    let name =
        cx.string(name, &mut buf).map_err(|errno| if errno == Errno::ENAMETOOLONG { Errno::EINVAL } else { errno })?;
    let host_flags = rustix::fs::MemfdFlags::from_bits_retain(flags.0) | rustix::fs::MemfdFlags::CLOEXEC;
    let host = rustix::fs::memfd_create(name, host_flags).map_err(host::errno)?;
    cx.cage.fds.add_host(host, flags.has(MemfdFlags::MFD_CLOEXEC)).map(NewFd)
}
