//! Opening a file for a confined cage.

use std::ffi::CStr;

use lind_abi::{Errno, Result};
use rustix::fs::{FileType, OFlags, ResolveFlags};

use super::access::MAKE_REG;
use super::check::{of_flags, permit_opened};
use crate::call::Ctx;
use crate::host;
use crate::root::table::{Dir, Found};

/// How often an open is made again because the name has been made or removed meanwhile.
const PATIENCE: u32 = 256;

/// As [`Root::open_within`](crate::root::Root::open_within): the file that was looked at is the one
/// that is opened, or a new one is made.
///
/// # Errors
/// EACCES where the domain does not allow it; the errors of open(2).
pub(crate) fn open(
    cx: &Ctx<'_>,
    dir: Dir<'_>,
    path: &CStr,
    (flags, mode): (u32, u32),
    resolve: ResolveFlags,
) -> Result<Found> {
    let root = &cx.kernel.root;
    let asked = OFlags::from_bits_retain(flags);
    if !cx.cage.confined.is() || asked.contains(OFlags::PATH) {
        return root.open_within(dir, path, (flags, mode), resolve);
    }
    let (create, alone) = (asked.contains(OFlags::CREATE), asked.contains(OFlags::CREATE | OFlags::EXCL));
    let stays = alone || asked.contains(OFlags::NOFOLLOW);
    let look = OFlags::PATH | if stays { OFlags::NOFOLLOW } else { OFlags::empty() };
    for _ in 0..PATIENCE {
        let found = match root.open_within(dir, path, (look.bits(), 0), resolve) {
            Err(Errno::ENOENT) if create => {
                may_make(cx, dir, of_flags(flags, false))?;
                // A file that has come meanwhile is looked at first.
                let new = flags | OFlags::EXCL.bits();
                match root.open_within(dir, path, (new, mode), resolve) {
                    Err(Errno::EEXIST) if !alone => continue,
                    opened => return opened,
                }
            }
            found => found?,
        };
        return if alone { Err(Errno::EEXIST) } else { open_found(cx, found, flags) };
    }
    Err(Errno::EAGAIN)
}

/// Whether a file may be made in a directory and opened then.
fn may_make(cx: &Ctx<'_>, dir: Dir<'_>, wanted: u64) -> Result<()> {
    // Of a path that was not walked the directory is not known.
    if dir.walked { permit_opened(cx.kernel, cx.cage, dir, MAKE_REG | wanted) } else { Err(Errno::EACCES) }
}

/// Opens what was found, if that is allowed.
fn open_found(cx: &Ctx<'_>, found: Found, flags: u32) -> Result<Found> {
    let asked = OFlags::from_bits_retain(flags);
    let stat = rustix::fs::fstat(&found).map_err(host::errno)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    match kind {
        FileType::Symlink => return Err(Errno::ELOOP),
        FileType::Directory if asked.contains(OFlags::CREATE) && !asked.contains(OFlags::TMPFILE) => {
            return Err(Errno::EISDIR);
        }
        _ => {}
    }
    let is_directory = kind == FileType::Directory && !asked.contains(OFlags::TMPFILE);
    permit_opened(cx.kernel, cx.cage, found.dir(), of_flags(flags, is_directory))?;
    let flags = asked.difference(OFlags::CREATE | OFlags::NOFOLLOW).bits();
    let file = cx.kernel.root.open_found(found.dir(), flags)?;
    Ok(Found { file, mount: found.mount })
}
