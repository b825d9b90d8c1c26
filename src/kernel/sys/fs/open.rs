//! Opening and closing.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use lind_abi::flags::{CloseRangeFlags, MemfdFlags, OpenFlags};
use lind_abi::{DirFd, Errno, Fd, Mode, NewFd, Path, Result, Str};

use crate::call::Ctx;
use crate::fd::{File, Kind};
use crate::host;
use crate::mem::PathBytes;
use crate::pseudo::{self, Opened, Reached};
use crate::root::Last;

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
    let cloexec = flags.has(OpenFlags::O_CLOEXEC);
    let last = if flags.has(OpenFlags::O_NOFOLLOW) || flags.has(OpenFlags::O_CREAT | OpenFlags::O_EXCL) {
        Last::NoFollow
    } else {
        Last::Follow
    };
    let masked = mode.0 & !cx.cage.umask.load(Ordering::Relaxed);
    let on_host = |dir: BorrowedFd<'_>, path: &CStr| {
        // A fifo waits for its other end.
        let host = cx.blocking(|| cx.kernel.root.open(dir, path, flags.0, masked))?;
        cx.kernel.root.check_opened(host.as_fd())?;
        Ok(Opened::New(File::new(host, Kind::Named)))
    };
    let ours = |reached| match reached {
        Reached::Place(place) => pseudo::open(cx, place, flags),
        Reached::Missing(place, name) => pseudo::create(cx, &place, &name, flags, mode),
        Reached::File(file) => pseudo::reopen(cx, &file, flags),
        Reached::Host(..) => Err(Errno::ENOENT),
    };
    let opened = if flags.has(OpenFlags::O_CREAT) {
        cx.make(dir, path, last, on_host, ours)?
    } else {
        cx.act(dir, path, last, on_host, ours)?
    };
    cx.cage.fds.add_from(0, opened.share(), cloexec).map(NewFd)
}

/// close(2). The host's file closes with its last user.
#[inline]
pub(crate) fn close(cx: &Ctx<'_>, fd: Fd) -> Result<()> {
    if fd.number < 0 {
        return Err(Errno::EBADF);
    }
    cx.owner(fd.cage)?.fds.remove(fd.number, &cx.caller.reader).map(drop)?;
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
            cx.cage.fds.remove(number, &cx.caller.reader).map(drop)
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
