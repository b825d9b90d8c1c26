//! Reading and writing where that is more than the host's business: terminals, and a limit on the size of files.
//!
//! A table of descriptors knows whether it ever had such a file or limit; only then is one looked for.

use lind_abi::flags::Signals;
use lind_abi::layout::Iovec;
use lind_abi::{Errno, Fd, In, Len, Off, Out, Result};
use rustix::fs::{FileType, OFlags};

use crate::cage::signal::{self, Info, number};
use crate::call::Ctx;
use crate::fd::{File, FileRef, Kind};
use crate::host;
use crate::sys::signal::read_signals;
use crate::terminal::{Change, check_front, typed};

/// What a master takes at once: as much as the host's does.
const MOST: u16 = 4096;

/// A read(2), where it is not the host's business. Those in the background do not read from their terminal.
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
        _ => Ok(None),
    }
}

/// A readv(2); of signals those that fit into the first part.
///
/// # Errors
/// As `read`.
#[cold]
pub(super) fn readv(cx: &Ctx<'_>, fd: Fd, iov: In<Iovec>, count: Len) -> Result<Option<usize>> {
    let listens = cx.file(fd).is_ok_and(|file| matches!(file.kind, Kind::Signalfd(_)));
    if !listens {
        return read(cx, fd, Out::new(0, iov.cage), Len(0));
    }
    let first = cx.load(iov)?;
    if count.0 == 0 || count.0 > MOST_PARTS {
        return Err(Errno::EINVAL);
    }
    read(cx, fd, Out::new(first.base.into(), iov.cage), Len(first.len.into()))
}

/// Before a preadv2(2), which could pass by what `read` does.
///
/// # Errors
/// ESPIPE for what has no positions.
#[cold]
pub(super) fn check_positioned(cx: &Ctx<'_>, fd: Fd) -> Result<()> {
    match cx.file(fd)?.kind {
        Kind::Signalfd(_) | Kind::Process(_) | Kind::Queue(_) => Err(Errno::ESPIPE),
        _ => Ok(()),
    }
}

/// What is left to do of a write(2).
pub(super) enum Watched {
    /// Nothing: so much was written.
    Done(usize),
    /// To write so much, as ever.
    Write(Len),
}

/// A write(2), as far as it is not the host's business.
///
/// # Errors
/// EINTR, EIO, EFBIG.
#[cold]
pub(super) fn write(cx: &Ctx<'_>, fd: Fd, buf: In<u8>, len: Len) -> Result<Watched> {
    // The short way here has not asked as whom.
    cx.cage.as_itself()?;
    let file = cx.file(fd)?;
    match file.kind {
        Kind::Terminal => check_front(cx, &file.share(), Change::Write).map(|()| Watched::Write(len)),
        Kind::Master(_) => to_master(cx, &file, buf, len).map(Watched::Done),
        _ => within_limit(cx, fd, None, len).map(Watched::Write),
    }
}

/// A writev(2), where the file is one to look at. A master takes its parts one by one.
#[cold]
pub(super) fn writev(cx: &Ctx<'_>, fd: Fd, iov: In<Iovec>, count: Len) -> Option<Result<usize>> {
    let file = cx.file(fd).ok()?;
    match file.kind {
        Kind::Terminal => check_front(cx, &file.share(), Change::Write).err().map(Err),
        Kind::Master(_) => Some(vector_to_master(cx, &file, iov, count)),
        _ => limited_vector(cx, fd, iov, count, None),
    }
}

/// A pwritev2(2), where the limit on the size of files is met.
#[cold]
pub(super) fn pwritev(cx: &Ctx<'_>, fd: Fd, iov: In<Iovec>, count: Len, offset: Off) -> Option<Result<usize>> {
    limited_vector(cx, fd, iov, count, (offset.0 >= 0).then_some(offset.0))
}

/// Writes the first part of a vector that the limit does not let through as a whole.
fn limited_vector(cx: &Ctx<'_>, fd: Fd, iov: In<Iovec>, count: Len, at: Option<i64>) -> Option<Result<usize>> {
    if count.0 > MOST_PARTS {
        return None;
    }
    let parts = cx.load_array(iov, usize::try_from(count.0).ok()?).ok()?;
    let total: u64 = parts.iter().map(|part| u64::from(part.len)).sum();
    match within_limit(cx, fd, at, Len(total)) {
        Err(errno) => Some(Err(errno)),
        Ok(allowed) if allowed.0 >= total => None,
        Ok(allowed) => {
            let first = parts.into_iter().find(|part| part.len > 0)?;
            let (buf, len) = (In::new(first.base.into(), iov.cage), Len(allowed.0.min(first.len.into())));
            Some(match at {
                Some(at) => super::pwrite64(cx, fd, buf, len, Off(at)),
                None => super::write(cx, fd, buf, len),
            })
        }
    }
}

/// How much of `len` bytes may be written at `at`, or where the file stands: RLIMIT_FSIZE.
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
    let Some(size) = regular(&file) else { return Ok(len) };
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
pub(super) fn before_growing(cx: &Ctx<'_>, file: &File, size: u64) -> Result<()> {
    let limit = cx.cage.settings().limits.file_size.0;
    match regular(file) {
        Some(old) if size > old && size > limit => Err(too_big(cx)),
        _ => Ok(()),
    }
}

/// The size of a regular file.
fn regular(file: &File) -> Option<u64> {
    let stat = rustix::fs::fstat(file.host()).ok()?;
    FileType::from_raw_mode(stat.st_mode).is_file().then_some(u64::try_from(stat.st_size).ok()?)
}

fn too_big(cx: &Ctx<'_>) -> Errno {
    let info = Info::kernel(number(Signals::SIGXFSZ));
    let _ = signal::send_to_thread(cx.kernel, cx.thread, info);
    Errno::EFBIG
}

/// UIO_MAXIOV
const MOST_PARTS: u64 = 1024;

fn vector_to_master(cx: &Ctx<'_>, file: &FileRef, iov: In<Iovec>, count: Len) -> Result<usize> {
    if count.0 > MOST_PARTS {
        return Err(Errno::EINVAL);
    }
    let parts = cx.load_array(iov, usize::try_from(count.0).map_err(|_| Errno::EINVAL)?)?;
    let mut done = 0;
    for part in parts.into_iter().filter(|part| part.len > 0) {
        let len = Len(part.len.into());
        match to_master(cx, file, In::new(part.base.into(), iov.cage), len) {
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

/// What is typed at a pseudoterminal may mean signals. What is looked at is what is written: a copy.
fn to_master(cx: &Ctx<'_>, file: &FileRef, buf: In<u8>, len: Len) -> Result<usize> {
    let mut bytes = [0_u8; MOST as usize];
    let bytes = &mut bytes[..usize::try_from(len.0.min(MOST.into())).map_err(|_| Errno::EINVAL)?];
    cx.copy_in(buf, bytes)?;
    let written = cx.blocking(|| rustix::io::write(file.host(), bytes).map_err(host::errno))?;
    typed(cx, &file.share(), &bytes[..written]);
    Ok(written)
}
