//! Reading and writing where that is more than the host's business: terminals.
//!
//! A table of descriptors knows whether it ever had such a file; only then is one looked for.

use lind_abi::layout::Iovec;
use lind_abi::{Errno, Fd, In, Len, Result};

use crate::call::Ctx;
use crate::fd::{FileRef, Kind};
use crate::host;
use crate::terminal::{Change, check_front, typed};

/// What a master takes at once: as much as the host's does.
const MOST: u16 = 4096;

/// Before a read(2): those in the background do not read from their terminal.
///
/// # Errors
/// EINTR, EIO.
#[cold]
pub(super) fn before_reading(cx: &Ctx<'_>, fd: Fd) -> Result<()> {
    match cx.file(fd) {
        Ok(file) if matches!(file.kind, Kind::Terminal) => check_front(cx, &file.share(), Change::Read),
        _ => Ok(()),
    }
}

/// A write(2), where the file is one to look at.
#[cold]
pub(super) fn write(cx: &Ctx<'_>, fd: Fd, buf: In<u8>, len: Len) -> Option<Result<usize>> {
    let file = cx.file(fd).ok()?;
    match file.kind {
        Kind::Terminal => check_front(cx, &file.share(), Change::Write).err().map(Err),
        Kind::Master(_) => Some(to_master(cx, &file, buf, len)),
        _ => None,
    }
}

/// A writev(2), where the file is one to look at. A master takes its first part that is not empty.
#[cold]
pub(super) fn writev(cx: &Ctx<'_>, fd: Fd, iov: In<Iovec>, count: Len) -> Option<Result<usize>> {
    let file = cx.file(fd).ok()?;
    match file.kind {
        Kind::Terminal => check_front(cx, &file.share(), Change::Write).err().map(Err),
        Kind::Master(_) => Some(vector_to_master(cx, &file, iov, count)),
        _ => None,
    }
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
