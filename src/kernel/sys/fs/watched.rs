//! Reads and writes that need the kernel's attention: on terminals, and under a limit on the size
//! of files.
//!
//! A table of descriptors records whether it ever had such a file or limit; only then is one looked
//! for.

use std::os::fd::BorrowedFd;

use lind_abi::flags::{MsgFlags, Signals};
use lind_abi::{Errno, Fd, In, Len, Off, Out, Result};
use rustix::fs::{FileType, OFlags};

use super::vector::Parts;
use crate::cage::signal::{self, Info, number};
use crate::call::Ctx;
use crate::fd::{FileRef, Kind};
use crate::host;
use crate::host::fs::Vector;
use crate::host::net::Address;
use crate::procfs;
use crate::sys::net::{note_received, send_with_token};
use crate::sys::signal::read_signals;
use crate::terminal::{Change, check_front, typed};

/// The most that a master takes at once, as on the host.
const MOST: u16 = 4096;

/// A read(2) that needs the kernel's attention. Background processes do not read from their
/// terminal.
///
/// # Errors
/// EINTR, EIO; EINVAL, EAGAIN.
#[cold]
pub(super) fn read(cx: &Ctx<'_>, fd: Fd, buf: Out<u8>, len: Len) -> Result<Option<usize>> {
    let Ok(file) = cx.file(fd) else { return Ok(None) };
    match &file.kind {
        Kind::Terminal => check_front(cx, &file.share(), Change::Read).map(|()| None),
        Kind::Signalfd(listener) => read_signals(cx, &file.share(), listener, buf, len).map(Some),
        Kind::Process(_) | Kind::Queue(_) => Err(Errno::EINVAL),
        Kind::Socket(_) if cx.kernel.senders.asked() => {
            note_received(&file, None);
            Ok(None)
        }
        _ => Ok(None),
    }
}

/// A readv(2); of signals those that fit into the first part.
///
/// # Errors
/// As `read`.
#[cold]
pub(super) fn readv(cx: &Ctx<'_>, fd: Fd, vector: &Parts) -> Result<Option<usize>> {
    let listens = matches!(cx.file(fd)?.kind, Kind::Signalfd(_));
    let Some(first) = vector.parts.first().filter(|_| listens) else {
        return if listens { Err(Errno::EINVAL) } else { read(cx, fd, Out::new(0, vector.cage), Len(0)) };
    };
    read(cx, fd, Out::new(first.base.into(), vector.cage), Len(first.len.into()))
}

/// Called before a preadv2(2), which would otherwise bypass the checks of `read`.
///
/// # Errors
/// ESPIPE for a file without positions.
#[cold]
pub(super) fn check_positioned(cx: &Ctx<'_>, fd: Fd) -> Result<()> {
    match cx.file(fd)?.kind {
        Kind::Signalfd(_) | Kind::Process(_) | Kind::Queue(_) => Err(Errno::ESPIPE),
        _ => Ok(()),
    }
}

/// The part of a write(2) that is still to do.
pub(super) enum Watched {
    /// Nothing: so much was written.
    Done(usize),
    /// To write so much in the usual way.
    Write(Len),
}

/// A write(2), as far as it is not the host's business.
///
/// # Errors
/// EINTR, EIO, EFBIG.
#[cold]
pub(super) fn write(cx: &Ctx<'_>, fd: Fd, buf: In<u8>, len: Len) -> Result<Watched> {
    // The fast path has not taken on the cage's identity.
    cx.cage.as_itself()?;
    let file = cx.file(fd)?;
    match file.kind {
        Kind::Terminal => check_front(cx, &file.share(), Change::Write).map(|()| Watched::Write(len)),
        Kind::Socket(_) if cx.kernel.senders.asked() => {
            let mut data = Vector::with_room(1);
            data.push(cx.input(buf, len)?);
            let sent = send_with_token(cx, fd, &data, &Address::NONE, MsgFlags(0))?;
            Ok(sent.map_or(Watched::Write(len), Watched::Done))
        }
        _ if takes_parts(&file) => take(cx, &file, buf, len).map(Watched::Done),
        _ => within_limit(cx, fd, None, len).map(Watched::Write),
    }
}

/// Makes a writev(2), if the file is one to look at; None if the rest of the vector is to be
/// written in the usual way.
///
/// # Errors
/// As `write`.
#[cold]
pub(super) fn writev(cx: &Ctx<'_>, fd: Fd, vector: &mut Parts) -> Result<Option<usize>> {
    let file = cx.file(fd)?;
    match file.kind {
        Kind::Terminal => check_front(cx, &file.share(), Change::Write)?,
        Kind::Socket(_) if cx.kernel.senders.asked() => {
            return send_with_token(cx, fd, &vector.ranges(cx)?, &Address::NONE, MsgFlags(0));
        }
        _ if takes_parts(&file) => return take_vector(cx, &file, vector).map(Some),
        _ => vector.cut(within_limit(cx, fd, None, Len(vector.bytes()))?.0),
    }
    Ok(None)
}

/// Called before a pwritev2(2): cuts the vector to the limit on the size of files.
///
/// # Errors
/// EFBIG at the limit, with SIGXFSZ.
#[cold]
pub(super) fn pwritev(cx: &Ctx<'_>, fd: Fd, vector: &mut Parts, offset: Off) -> Result<()> {
    vector.cut(within_limit(cx, fd, Some(offset.0), Len(vector.bytes()))?.0);
    Ok(())
}

/// How much of `len` bytes may be written at `at`, or at the file's own position: RLIMIT_FSIZE.
///
/// # Errors
/// EFBIG at the limit, with SIGXFSZ.
#[cold]
pub(super) fn within_limit(cx: &Ctx<'_>, fd: Fd, at: Option<i64>, len: Len) -> Result<Len> {
    cx.cage.as_itself()?;
    let limit = cx.cage.settings().limits.file_size.0;
    if limit == u64::MAX || len.0 == 0 {
        return Ok(len);
    }
    let file = cx.file(fd)?;
    let Some(size) = regular(file.host()) else { return Ok(len) };
    let appends = rustix::fs::fcntl_getfl(file.host()).is_ok_and(|flags| flags.contains(OFlags::APPEND));
    let start = match at {
        _ if appends => size,
        Some(at) => u64::try_from(at).map_err(|_| Errno::EINVAL)?,
        None => rustix::fs::tell(file.host()).map_err(host::errno)?,
    };
    if start >= limit {
        return Err(too_big(cx));
    }
    Ok(Len(len.0.min(limit - start)))
}

/// Before a file gets this size.
///
/// # Errors
/// EFBIG beyond the limit, with SIGXFSZ.
#[cold]
pub(super) fn before_growing(cx: &Ctx<'_>, file: BorrowedFd<'_>, size: u64) -> Result<()> {
    let limit = cx.cage.settings().limits.file_size.0;
    match regular(file) {
        Some(old) if size > old && size > limit => Err(too_big(cx)),
        _ => Ok(()),
    }
}

/// The size of a regular file.
fn regular(file: BorrowedFd<'_>) -> Option<u64> {
    let stat = rustix::fs::fstat(file).ok()?;
    FileType::from_raw_mode(stat.st_mode).is_file().then_some(u64::try_from(stat.st_size).ok()?)
}

fn too_big(cx: &Ctx<'_>) -> Errno {
    let info = Info::kernel(number(Signals::SIGXFSZ));
    let _ = signal::send_to_thread(cx.kernel, cx.thread, info);
    Errno::EFBIG
}

/// Whether the kernel takes written data itself, the parts of a vector one by one: for a master, or
/// a setting in /proc.
fn takes_parts(file: &FileRef) -> bool {
    match &file.kind {
        Kind::Master(_) => true,
        // The host refuses what is open for reading only.
        Kind::Pseudo(place) => place.is_setting() && opens_for_writing(file),
        _ => false,
    }
}

fn opens_for_writing(file: &FileRef) -> bool {
    rustix::fs::fcntl_getfl(file.host())
        .is_ok_and(|flags| !flags.contains(OFlags::PATH) && flags & OFlags::RWMODE != OFlags::RDONLY)
}

fn take(cx: &Ctx<'_>, file: &FileRef, buf: In<u8>, len: Len) -> Result<usize> {
    match &file.kind {
        Kind::Pseudo(place) => procfs::change(cx, place, buf, len),
        _ => to_master(cx, file, buf, len),
    }
}

fn take_vector(cx: &Ctx<'_>, file: &FileRef, vector: &Parts) -> Result<usize> {
    let mut done = 0;
    for part in vector.parts.iter().filter(|part| part.len > 0) {
        let len = Len(part.len.into());
        match take(cx, file, In::new(part.base.into(), vector.cage), len) {
            Ok(written) => {
                done += written;
                if written as u64 != len.0 {
                    break;
                }
            }
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// Writes to the master of a pseudoterminal, where characters may mean signals. The bytes are
/// copied, so that those looked at are those written.
fn to_master(cx: &Ctx<'_>, file: &FileRef, buf: In<u8>, len: Len) -> Result<usize> {
    let mut bytes = [0_u8; MOST as usize];
    let bytes = &mut bytes[..usize::try_from(len.0.min(MOST.into())).map_err(|_| Errno::EINVAL)?];
    cx.copy_in(buf, bytes)?;
    let written = cx.blocking(|| rustix::io::write(file.host(), bytes).map_err(host::errno))?;
    typed(cx.kernel, &file.share(), &bytes[..written]);
    Ok(written)
}
