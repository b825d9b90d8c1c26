//! Names of files: link(2), symlink(2), rename(2), unlink(2), mknod(2), readlink(2).

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use lind_abi::flags::{AtFlags, RenameFlags};
use lind_abi::{DirFd, Errno, Fd, Len, Mode, Out, Path, Result};
use rustix::fs::{FileType, OFlags};

use super::at::unchangeable;
use super::numbered;
use crate::call::{Ctx, PathBytes};
use crate::fd::{FileRef, Kind};
use crate::host;
use crate::landlock::access;
use crate::procfs::{Place, Reached};
use crate::root::table::Dir;
use crate::root::{Change, Last};

/// S_IFMT
const FORMAT: u32 = 0o170_000;

/// unlink(2)
pub(crate) fn unlink(cx: &Ctx<'_>, path: Path) -> Result<()> {
    unlinkat(cx, cx.here(), path, AtFlags(0))
}

/// unlinkat(2)
pub(crate) fn unlinkat(cx: &Ctx<'_>, dir: DirFd, path: Path, flags: AtFlags) -> Result<()> {
    if flags.beyond(AtFlags::AT_REMOVEDIR) {
        return Err(Errno::EINVAL);
    }
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    let host_flags = rustix::fs::AtFlags::from_bits_retain(flags.0);
    let removed_kind = if flags.0 == 0 { FileType::RegularFile } else { FileType::Directory };
    let on_host = |start: Dir<'_>, path: &CStr| {
        cx.kernel.root.parent(start, path, Change::Remove, |dir, name| {
            cx.permit_name(dir, name, Change::Remove, removed_kind)?;
            rustix::fs::unlinkat(dir, name, host_flags).map_err(host::errno)
        })
    };
    let removed = cx.act(dir, path, Last::Name, on_host, |reached| match reached {
        Reached::Place(place) => match place.memory(cx) {
            Some(_) if cx.permit_place(&place, access::REMOVE_FILE).is_err() => Err(Errno::EACCES),
            Some(_) if flags.has(AtFlags::AT_REMOVEDIR) => Err(Errno::ENOTDIR),
            Some((name, _)) => cx.kernel.shared.remove(name),
            None => Err(Errno::EPERM),
        },
        _ => Err(Errno::ENOENT),
    });
    match removed {
        Err(Errno::ENOTDIR) if flags.0 == 0 => numbered::unlink(cx, dir, path),
        removed => removed,
    }
}

/// rename(2)
pub(crate) fn rename(cx: &Ctx<'_>, old: Path, new: Path) -> Result<()> {
    renameat2(cx, cx.here(), old, cx.here(), new, RenameFlags(0))
}

/// renameat(2)
pub(crate) fn renameat(cx: &Ctx<'_>, old_dir: DirFd, old: Path, new_dir: DirFd, new: Path) -> Result<()> {
    renameat2(cx, old_dir, old, new_dir, new, RenameFlags(0))
}

/// renameat2(2)
pub(crate) fn renameat2(
    cx: &Ctx<'_>,
    old_dir: DirFd,
    old: Path,
    new_dir: DirFd,
    new: Path,
    flags: RenameFlags,
) -> Result<()> {
    let (noreplace, exchange) = (RenameFlags::RENAME_NOREPLACE, RenameFlags::RENAME_EXCHANGE);
    if flags.beyond(noreplace | exchange) || flags.has(noreplace | exchange) {
        return Err(Errno::EINVAL);
    }
    let (mut old_buf, mut new_buf) = (PathBytes::default(), PathBytes::default());
    let (old, new) = (cx.path(old, &mut old_buf)?, cx.path(new, &mut new_buf)?);
    let host_flags = rustix::fs::RenameFlags::from_bits_retain(flags.0);
    let root = &cx.kernel.root;
    let on_host = |(from, old): (Dir<'_>, &CStr), (to, new): (Dir<'_>, &CStr)| {
        root.parent(from, old, Change::Move, |old_dir, old| {
            root.parent(to, new, Change::Move, |new_dir, new| {
                cx.permit_move((old_dir, old), (new_dir, new), flags.has(exchange))?;
                root.rename((old_dir, old), (new_dir, new), host_flags)
            })
        })
    };
    let ours = |old: Reached, new: Reached| match (&old, &new) {
        (Reached::Missing(..), _) => Err(Errno::ENOENT),
        (Reached::Place(old), Reached::Place(_) | Reached::Missing(..)) => {
            let (from, _) = old.memory(cx).ok_or(Errno::EPERM)?;
            let to = memory_name(cx, &new).ok_or(Errno::EPERM)?;
            cx.permit_place(old, access::REMOVE_FILE | access::MAKE_REG)?;
            if flags.has(exchange) {
                return Err(Errno::EINVAL);
            }
            cx.kernel.shared.rename(from, to, !flags.has(noreplace))
        }
        _ => Err(Errno::EXDEV),
    };
    cx.act_on_two((old_dir, old, Last::Name), (new_dir, new), on_host, ours)
}

/// link(2)
pub(crate) fn link(cx: &Ctx<'_>, old: Path, new: Path) -> Result<()> {
    linkat(cx, cx.here(), old, cx.here(), new, AtFlags(0))
}

/// linkat(2). A name for an open file, by AT_EMPTY_PATH or through /proc/self/fd, is only for files
/// opened by a name inside the root (O_TMPFILE counts), not for files that were handed in.
pub(crate) fn linkat(cx: &Ctx<'_>, old_dir: DirFd, old: Path, new_dir: DirFd, new: Path, flags: AtFlags) -> Result<()> {
    if flags.beyond(AtFlags::AT_SYMLINK_FOLLOW | AtFlags::AT_EMPTY_PATH) {
        return Err(Errno::EINVAL);
    }
    let (mut old_buf, mut new_buf) = (PathBytes::default(), PathBytes::default());
    let (old, new) = (cx.path(old, &mut old_buf)?, cx.path(new, &mut new_buf)?);
    if old.is_empty() && flags.has(AtFlags::AT_EMPTY_PATH) {
        let file = cx.file(Fd { number: old_dir.number, cage: old_dir.cage })?;
        let on_host = |to: Dir<'_>, new: &CStr| link_open(cx, &file, to, new);
        return cx.act(new_dir, new, Last::Name, on_host, unchangeable);
    }
    let last = if flags.has(AtFlags::AT_SYMLINK_FOLLOW) { Last::Follow } else { Last::NoFollow };
    let root = &cx.kernel.root;
    let on_host = |(from, old): (Dir<'_>, &CStr), (to, new): (Dir<'_>, &CStr)| {
        root.object(from, old, last, |old_dir, old, _| {
            root.parent(to, new, Change::Make, |new_dir, new| {
                root.check_same(old_dir.mount, new_dir.mount)?;
                if cx.cage.confined.is() {
                    cx.permit_link(old_dir, (new_dir, new))?;
                }
                let link = |dir: BorrowedFd<'_>, name: &CStr, follow: bool| {
                    let flags = if follow { rustix::fs::AtFlags::SYMLINK_FOLLOW } else { rustix::fs::AtFlags::empty() };
                    rustix::fs::linkat(dir, name, new_dir, new, flags).map_err(host::errno)
                };
                if old.is_empty() {
                    // The object is open; only by this name does the host link it without more
                    // privileges.
                    root.again(old_dir.fd, |dir, name| link(dir, name, true))
                } else {
                    link(old_dir.fd, old, last == Last::Follow)
                }
            })
        })
    };
    cx.act_on_two((old_dir, old, last), (new_dir, new), on_host, |old, new| match (old, new) {
        (Reached::Missing(..), _) => Err(Errno::ENOENT),
        (Reached::File(file), Reached::Host(to, new)) => link_open(cx, &file, to.dir(), &new),
        (Reached::Place(old), new @ (Reached::Place(_) | Reached::Missing(..))) => {
            let (_, file) = old.memory(cx).ok_or(Errno::EPERM)?;
            cx.permit_place(&old, access::MAKE_REG)?;
            cx.kernel.shared.link(file, memory_name(cx, &new).ok_or(Errno::EPERM)?)
        }
        _ => Err(Errno::EXDEV),
    })
}

/// Gives an open file a name.
fn link_open(cx: &Ctx<'_>, file: &FileRef, to: Dir<'_>, new: &CStr) -> Result<()> {
    let Kind::Named(mount) = file.kind else { return Err(Errno::ENOENT) };
    let root = &cx.kernel.root;
    root.parent(to, new, Change::Make, |new_dir, new| {
        root.check_same(mount, new_dir.mount)?;
        cx.permit_link(file.dir(), (new_dir, new))?;
        let follow = rustix::fs::AtFlags::SYMLINK_FOLLOW;
        root.again(file.host(), |dir, name| rustix::fs::linkat(dir, name, new_dir, new, follow).map_err(host::errno))?;
        let mode = rustix::fs::fstat(file.host()).map_or(0, |stat| stat.st_mode);
        // Its own descriptor still gives it no name.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if mode & 0o6000 != 0
            && let Ok(named) = rustix::fs::openat(new_dir, new, flags, rustix::fs::Mode::empty())
        {
            cx.kernel.set_ids.note(root, named.as_fd(), mode);
        }
        Ok(())
    })
}

/// The name in /dev/shm that a path means.
fn memory_name<'r>(cx: &Ctx<'_>, reached: &'r Reached) -> Option<&'r [u8]> {
    match reached {
        Reached::Place(place) => place.memory(cx).map(|(name, _)| name),
        Reached::Missing(place, name) => place.holds_memory().then_some(name),
        _ => None,
    }
}

/// symlink(2)
pub(crate) fn symlink(cx: &Ctx<'_>, target: Path, path: Path) -> Result<()> {
    symlinkat(cx, target, cx.here(), path)
}

/// symlinkat(2). The target is any string: where it leads is judged when it is followed.
pub(crate) fn symlinkat(cx: &Ctx<'_>, target: Path, dir: DirFd, path: Path) -> Result<()> {
    let (mut target_buf, mut buf) = (PathBytes::default(), PathBytes::default());
    let (target, path) = (cx.path(target, &mut target_buf)?, cx.path(path, &mut buf)?);
    let on_host = |start: Dir<'_>, path: &CStr| {
        cx.kernel.root.parent(start, path, Change::Make, |dir, name| {
            cx.permit_name(dir, name, Change::Make, FileType::Symlink)?;
            rustix::fs::symlinkat(target, dir, name).map_err(host::errno)
        })
    };
    cx.act(dir, path, Last::Name, on_host, unchangeable)
}

/// readlink(2)
pub(crate) fn readlink(cx: &Ctx<'_>, path: Path, buf: Out<u8>, len: Len) -> Result<usize> {
    readlinkat(cx, cx.here(), path, buf, len)
}

/// readlinkat(2). An empty path means a link that was opened with O_PATH | O_NOFOLLOW.
pub(crate) fn readlinkat(cx: &Ctx<'_>, dir: DirFd, path: Path, to: Out<u8>, len: Len) -> Result<usize> {
    // The length is an int.
    let len = u32::try_from(len.0 & u64::from(u32::MAX)).unwrap_or(0);
    if len.cast_signed() <= 0 {
        return Err(Errno::EINVAL);
    }
    let mut bytes = PathBytes::default();
    let path = cx.path(path, &mut bytes)?;
    let buf = cx.output(to, Len(u64::from(len)))?;
    let of_place = |place: &Place| {
        let text = place.link(cx)?;
        let shown = &text[..text.len().min(buf.len())];
        cx.copy_out(to, shown).map(|()| shown.len())
    };
    if path.is_empty() {
        let file = cx.itself(dir)?;
        return match file.place() {
            // The host's error for a file that is not a link.
            Some(place) if !place.is_link() => Err(Errno::ENOENT),
            Some(place) => of_place(place),
            None => host::fs::readlink(file.dir().fd, c"", buf),
        };
    }
    let on_host = |start: Dir<'_>, path: &CStr| {
        cx.kernel.root.object(start, path, Last::NoFollow, |dir, name, _| match host::fs::readlink(dir.fd, name, buf) {
            // For an open file, the host reports that it is not a link in this way.
            Err(Errno::ENOENT) if name.is_empty() => Err(Errno::EINVAL),
            result => result,
        })
    };
    cx.act(dir, path, Last::NoFollow, on_host, |reached| match reached {
        Reached::Place(place) => of_place(&place),
        Reached::File(_) => Err(Errno::EINVAL),
        _ => Err(Errno::ENOENT),
    })
}

/// mknod(2)
pub(crate) fn mknod(cx: &Ctx<'_>, path: Path, mode: Mode, dev: u64) -> Result<()> {
    mknodat(cx, cx.here(), path, mode, dev)
}

/// mknodat(2). Device nodes are EPERM for everybody, except for device 0:0, by which overlayfs
/// marks a removed name.
pub(crate) fn mknodat(cx: &Ctx<'_>, dir: DirFd, path: Path, mode: Mode, dev: u64) -> Result<()> {
    let kind = match FileType::from_raw_mode(if mode.0 & FORMAT == 0 { mode.0 | 0o100_000 } else { mode.0 }) {
        kind @ (FileType::RegularFile | FileType::Fifo | FileType::Socket) => kind,
        kind @ FileType::CharacterDevice if dev == 0 => kind,
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Directory => return Err(Errno::EPERM),
        _ => return Err(Errno::EINVAL),
    };
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    let mode = rustix::fs::Mode::from_raw_mode(mode.0 & !cx.cage.umask.load(Ordering::Relaxed) & 0o7777);
    let on_host = |start: Dir<'_>, path: &CStr| {
        cx.kernel.root.parent(start, path, Change::Make, |dir, name| {
            cx.permit_name(dir, name, Change::Make, kind)?;
            rustix::fs::mknodat(dir, name, kind, mode, 0).map_err(host::errno)?;
            // Another file may have the name by now: then that is looked at when it gets its bits.
            if let Ok(file) = rustix::fs::openat(
                dir,
                name,
                OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                rustix::fs::Mode::empty(),
            ) {
                cx.kernel.set_ids.note(&cx.kernel.root, file.as_fd(), mode.as_raw_mode());
            }
            Ok(())
        })
    };
    cx.act(dir, path, Last::Name, on_host, unchangeable)
}
