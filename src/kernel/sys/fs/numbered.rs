//! Files with numbers for names, in a directory from outside the root that an option of a grate
//! names.
//!
//! Such a directory belongs to the user and its files to the grate, but another program may have
//! put something there. So a name is one number, a link is never followed, and only a regular file
//! with one name is opened. Opening it does not truncate it.

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

/// The flags of open(2) that matter here.
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

/// openat(2), after it has found that no path starts here.
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
        // It has a name elsewhere, by which another program may use it.
        FileType::RegularFile if stat.st_nlink > 1 => Err(Errno::EMLINK),
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Errno::EISDIR),
        _ => Err(Errno::ENXIO),
    }
}

/// unlinkat(2), after it has found that no path starts here.
pub(super) fn unlink(cx: &Ctx<'_>, dir: DirFd, path: &CStr) -> Result<()> {
    let folder = folder(cx, dir, path)?;
    if cx.kernel.root.read_only() {
        return Err(Errno::EROFS);
    }
    rustix::fs::unlinkat(folder.host(), path, AtFlags::empty()).map_err(host::errno)
}

#[cfg(test)]
mod tests {
    use lind_abi::{Errno, nr};

    use crate::fd::{File, Kind};
    use crate::testing::both_walls;

    const CREATE: i64 = 0o102;

    #[test]
    fn a_directory_that_was_handed_over_has_numbers_alone() {
        both_walls(|w| {
            let outside = w.outside();
            let folder = w.host(move || {
                std::os::unix::fs::symlink("secret", outside.join("7")).unwrap();
                std::fs::create_dir(outside.join("8")).unwrap();
                std::fs::hard_link(outside.join("secret"), outside.join("10")).unwrap();
                std::fs::File::open(outside).unwrap()
            });
            let folder = File::new(folder.into(), Kind::Numbered);
            let folder = i64::from(w.thread.cage.fds.add(folder, false).unwrap());
            let file = w.ok(nr::openat, &[folder, w.str("5"), CREATE, 0o600]);
            assert_eq!(w.ok(nr::pwrite64, &[file, w.data(b"text"), 4, 0]), 4);
            w.ok(nr::close, &[file]);
            let again = w.ok(nr::openat, &[folder, w.str("5"), 0, 0]);
            assert_eq!(w.filled(nr::read, |b, len| vec![again, b, len]), b"text");
            let others = ["secret", "../outside/5", "..", ".", "5/", "+5", "5x", "111111111111111111111"];
            let refused = others.map(|name| (name, Errno::EACCES));
            for (name, errno) in
                [("7", Errno::ELOOP), ("8", Errno::EISDIR), ("9", Errno::ENOENT), ("10", Errno::EMLINK)]
                    .into_iter()
                    .chain(refused)
            {
                assert_eq!(w.err(nr::openat, &[folder, w.str(name), 2, 0]), errno, "{name}");
            }
            assert_eq!(w.err(nr::openat, &[folder, w.str("10"), 2 | 0o1000, 0]), Errno::EMLINK);
            let outside = w.outside();
            assert_eq!(w.host(move || std::fs::read(outside.join("secret")).unwrap()), b"secret");
            for name in others {
                assert_eq!(w.err(nr::unlinkat, &[folder, w.str(name), 0]), Errno::EACCES, "{name}");
            }
            assert_eq!(w.err(nr::openat, &[folder, w.str("/5/x"), 0, 0]), Errno::ENOENT);
            let made = w.ok(nr::open, &[w.str("/file"), CREATE, 0o600]);
            w.ok(nr::close, &[made]);
            assert_eq!(w.err(nr::openat, &[folder, w.str("/file/x"), 0, 0]), Errno::ENOTDIR);
            w.ok(nr::unlinkat, &[folder, w.str("5"), 0]);
            assert_eq!(w.err(nr::unlinkat, &[folder, w.str("5"), 0]), Errno::ENOENT);
            assert_eq!(w.err(nr::unlinkat, &[folder, w.str("8"), 0x200]), Errno::ENOTDIR);
            assert_eq!(w.err(nr::mkdirat, &[folder, w.str("6"), 0o700]), Errno::ENOTDIR);
            assert_eq!(w.err(nr::renameat, &[folder, w.str("7"), folder, w.str("6")]), Errno::ENOTDIR);
            assert_eq!(w.err(nr::fchdir, &[folder]), Errno::ENOTDIR);
            let path = format!("/proc/self/fd/{folder}/7");
            assert_eq!(w.err(nr::open, &[w.str(&path), 0, 0]), Errno::ENOTDIR);
        });
    }
}
