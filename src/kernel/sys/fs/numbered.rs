//! Files with numbers for names, in a directory from outside the root that an option of a grate names.
//!
//! Such a directory belongs to the user and its files to the grate, but somebody else may have put something there. So a name is one number, a
//! link is never followed, and what is opened is a regular file with one name. It is not made shorter by that.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use lind_abi::flags::OpenFlags;
use lind_abi::{DirFd, Errno, Mode, NewFd, Result};
use rustix::fs::{AtFlags, FileType, OFlags, ResolveFlags};

use crate::call::Ctx;
use crate::fd::{FileRef, Kind};
use crate::host;

/// The digits of the largest number.
const LONGEST: usize = 20;

/// What of open(2)'s flags says something here.
const PASSED: u32 = OpenFlags::O_WRONLY | OpenFlags::O_RDWR | OpenFlags::O_CREAT | OpenFlags::O_EXCL;

/// The directory, if it is one and the path a number. ENOTDIR and EACCES where not.
fn folder(cx: &Ctx<'_>, dir: DirFd, path: &CStr) -> Result<FileRef> {
    let file = cx.owner(dir.cage)?.fds.get(dir.number).map_err(|_| Errno::ENOTDIR)?;
    let name = path.to_bytes();
    // An absolute path has met something else on its way.
    if !matches!(file.kind, Kind::Numbered) || name.starts_with(b"/") {
        return Err(Errno::ENOTDIR);
    }
    let is_number = !name.is_empty() && name.len() <= LONGEST && name.iter().all(u8::is_ascii_digit);
    if is_number { Ok(file) } else { Err(Errno::EACCES) }
}

/// openat(2), where it has said that no path starts here.
pub(super) fn open(cx: &Ctx<'_>, dir: DirFd, path: &CStr, (flags, mode): (OpenFlags, Mode)) -> Result<NewFd> {
    let folder = folder(cx, dir, path)?;
    let creates = flags.has(OpenFlags::O_CREAT);
    let masked = if creates { mode.0 & !cx.cage.umask.load(Ordering::Relaxed) & 0o777 } else { 0 };
    // A fifo is not waited for.
    let fixed = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let host_flags = OFlags::from_bits_retain(flags.0 & PASSED) | fixed;
    let mode = rustix::fs::Mode::from_raw_mode(masked);
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let file = rustix::fs::openat2(folder.host(), path, host_flags, mode, within).map_err(host::errno)?;
    check_regular(&file)?;
    cx.cage.fds.add_host(file, flags.has(OpenFlags::O_CLOEXEC)).map(NewFd)
}

fn check_regular(file: &OwnedFd) -> Result<()> {
    let stat = rustix::fs::fstat(file).map_err(host::errno)?;
    match FileType::from_raw_mode(stat.st_mode) {
        // It would have a name elsewhere, by which somebody else means it.
        FileType::RegularFile if stat.st_nlink > 1 => Err(Errno::EMLINK),
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Errno::EISDIR),
        _ => Err(Errno::ENXIO),
    }
}

/// unlinkat(2), where it has said that no path starts here.
pub(super) fn unlink(cx: &Ctx<'_>, dir: DirFd, path: &CStr) -> Result<()> {
    let folder = folder(cx, dir, path)?;
    if cx.kernel.root.read_only() {
        return Err(Errno::EROFS);
    }
    rustix::fs::unlinkat(folder.host(), path, AtFlags::empty()).map_err(host::errno)
}
