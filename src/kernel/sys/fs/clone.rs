//! Requests that have files share their blocks: FICLONE, FICLONERANGE, FIDEDUPERANGE.
//!
//! Faulty requests get Linux's errors; the rest is EOPNOTSUPP, as on most file systems, and
//! programs copy then. The host is not asked: sharing blocks would bypass the limits on what a cage
//! may write.

use lind_abi::{Errno, Fd, In, InOut, Result};
use rustix::fs::{FileType, OFlags, Stat};

use super::dup::check_opened;
use crate::call::Ctx;
use crate::fd::FileRef;
use crate::host::errno;

/// FICLONE and FICLONERANGE: `to` would share blocks of `source`.
///
/// # Errors
/// EBADF, EXDEV, EISDIR, EINVAL, in Linux's order; EOPNOTSUPP.
pub(super) fn range(cx: &Ctx<'_>, to: &FileRef, source: Fd) -> Result<i32> {
    check_opened(to)?;
    let from = cx.file(source)?;
    check_opened(&from)?;
    let (from_stat, to_stat) = (stat(&from)?, stat(to)?);
    if from_stat.st_dev != to_stat.st_dev {
        return Err(Errno::EXDEV);
    }
    let kinds = [&from_stat, &to_stat].map(|stat| FileType::from_raw_mode(stat.st_mode));
    if kinds.contains(&FileType::Directory) {
        return Err(Errno::EISDIR);
    }
    if kinds != [FileType::RegularFile; 2] {
        return Err(Errno::EINVAL);
    }
    let (reads, writes) = (access(&from)?.0, access(to)?);
    if !reads || !writes.1 || writes.2 { Err(Errno::EBADF) } else { Err(Errno::EOPNOTSUPP) }
}

/// FIDEDUPERANGE: ranges of other files with the same bytes as one of `from` would share its
/// blocks.
///
/// # Errors
/// ENOMEM for more of them than a page holds, EINVAL, EISDIR; EOPNOTSUPP.
pub(super) fn same(cx: &Ctx<'_>, from: &FileRef, arg: InOut<u8>) -> Result<i32> {
    const HEAD: u64 = 24;
    const EACH: u64 = 32;
    const PAGE: u64 = 4096;
    check_opened(from)?;
    let counts = cx.load::<u64>(In::new(arg.addr.saturating_add(16), arg.cage))?;
    let count = counts & 0xffff;
    if HEAD + count * EACH > PAGE {
        return Err(Errno::ENOMEM);
    }
    let mut ranges = vec![0; usize::try_from(count * EACH).map_err(|_| Errno::ENOMEM)?];
    cx.copy_in(In::new(arg.addr.saturating_add(HEAD), arg.cage), &mut ranges)?;
    let reserved = counts >> 16 != 0;
    if !access(from)?.0 || reserved {
        return Err(Errno::EINVAL);
    }
    match FileType::from_raw_mode(stat(from)?.st_mode) {
        FileType::Directory => Err(Errno::EISDIR),
        FileType::RegularFile => Err(Errno::EOPNOTSUPP),
        _ => Err(Errno::EINVAL),
    }
}

fn stat(file: &FileRef) -> Result<Stat> {
    rustix::fs::fstat(file.host()).map_err(errno)
}

/// Whether it is open for reading, for writing, and to append.
fn access(file: &FileRef) -> Result<(bool, bool, bool)> {
    let flags = rustix::fs::fcntl_getfl(file.host()).map_err(errno)?;
    let mode = flags & OFlags::ACCMODE;
    let (reads, writes) = (mode != OFlags::WRONLY, mode != OFlags::RDONLY);
    Ok((reads, writes, flags.contains(OFlags::APPEND)))
}
