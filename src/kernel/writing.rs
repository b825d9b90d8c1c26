//! Opening for writing, which fails for a file that a cage executes.
//!
//! Whether a file is being executed is only known when it is open. So the host opens it without
//! O_TRUNC, and empties it after that check.

use std::os::fd::OwnedFd;

use lind_abi::flags::OpenFlags;
use lind_abi::{Errno, Result};
use rustix::fs::FileType;

use crate::call::Ctx;
use crate::fd::locks::FileId;
use crate::host;

/// O_ACCMODE
const ACCESS: u32 = 3;

/// Opens by `open`, which gets flags of open(2).
///
/// # Errors
/// ETXTBSY; the errors of `open`, and EINTR while it waits.
pub(crate) fn open_unless_run(
    cx: &Ctx<'_>,
    flags: u32,
    mut open: impl FnMut(u32) -> Result<OwnedFd>,
) -> Result<OwnedFd> {
    let has = |flag: u32| flags & flag == flag;
    let (writes, empties) = (flags & ACCESS != 0, has(OpenFlags::O_TRUNC));
    let new = has(OpenFlags::O_CREAT | OpenFlags::O_EXCL) || has(OpenFlags::O_TMPFILE);
    if has(OpenFlags::O_PATH) || !(writes || empties) {
        return cx.blocking(|| open(flags));
    }
    let keeping = flags & !OpenFlags::O_TRUNC;
    if new {
        return unless_leased(cx, flags, || open(keeping));
    }
    // The file that exists already, if it is to be emptied: a new file is empty, and no watcher
    // sees a change. A file that is not to be
    // written is looked up, not opened.
    let there = match (empties, writes) {
        (false, _) => keeping,
        (true, true) => keeping & !OpenFlags::O_CREAT,
        (true, false) => OpenFlags::O_PATH | flags & (OpenFlags::O_NOFOLLOW | OpenFlags::O_DIRECTORY),
    };
    let (file, made) = match unless_leased(cx, flags, || open(there)) {
        Err(Errno::ENOENT) if has(OpenFlags::O_CREAT) && empties => (unless_leased(cx, flags, || open(keeping))?, true),
        found => (found?, false),
    };
    let stat = rustix::fs::fstat(&file).map_err(host::errno)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind == FileType::RegularFile {
        cx.kernel.busy.check(FileId::from(&stat))?;
    }
    // Somebody else may have made it at that moment.
    let just_made = made && stat.st_size == 0;
    if empties && writes && kind == FileType::RegularFile && !just_made {
        rustix::fs::ftruncate(&file, 0).map_err(host::errno)?;
    }
    if empties && !writes && !just_made {
        // Only the host's open can empty a file through a descriptor for reading. If the name
        // leads to another file by now, that file is emptied.
        return unless_leased(cx, flags, || open(flags));
    }
    Ok(file)
}

/// Waits for leases. A cage that starts a program holds a lease on its file for a moment (longer
/// while a large program is read). The host then answers an open(2) with O_NONBLOCK by EAGAIN,
/// which regular files never do otherwise, so the open is tried again. EAGAIN is returned if a
/// lease is still there after a second, and at once while cages have leases of their own.
///
/// # Errors
/// EINTR, and the errors of `open`.
fn unless_leased(cx: &Ctx<'_>, flags: u32, mut open: impl FnMut() -> Result<OwnedFd>) -> Result<OwnedFd> {
    const PATIENCE: u32 = 1000;
    for _ in 0..PATIENCE {
        match cx.blocking(&mut open) {
            Err(Errno::EAGAIN) if flags & OpenFlags::O_NONBLOCK != 0 && !cx.kernel.async_io.has_leases() => {
                cx.pause(1_000_000)?;
            }
            result => return result,
        }
    }
    Err(Errno::EAGAIN)
}
