//! Directories: mkdir(2), rmdir(2), getdents64(2), chdir(2), getcwd(2), and umask(2).

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::flags::{AccessFlags, AccessMode, AtFlags};
use lind_abi::{DirFd, Errno, Fd, In, Len, Mode, Out, Path, Result};
use rustix::fs::{FileType, OFlags, SeekFrom};

use super::at::unchangeable;
use super::name::unlinkat;
use crate::authority;
use crate::cage::capability;
use crate::call::{Ctx, PathBytes};
use crate::fd::{File, Kind};
use crate::host;
use crate::path::below_own_root;
use crate::procfs::{self, Place, Reached};
use crate::root::table::Dir;
use crate::root::{Change, Directory, Last};

/// mkdir(2)
pub(crate) fn mkdir(cx: &Ctx<'_>, path: Path, mode: Mode) -> Result<()> {
    mkdirat(cx, cx.here(), path, mode)
}

/// mkdirat(2)
pub(crate) fn mkdirat(cx: &Ctx<'_>, dir: DirFd, path: Path, mode: Mode) -> Result<()> {
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    // mkdir(2) looks at the permission bits and the sticky bit.
    let mode = rustix::fs::Mode::from_raw_mode(mode.0 & !cx.cage.umask.load(Ordering::Relaxed) & 0o1777);
    let on_host = |start: Dir<'_>, path: &CStr| {
        cx.kernel.root.parent(start, path, Change::Make, |dir, name| {
            cx.permit_name(dir, name, Change::Make, FileType::Directory)?;
            rustix::fs::mkdirat(dir, name, mode).map_err(host::errno)
        })
    };
    cx.act(dir, path, Last::Name, on_host, unchangeable)
}

/// rmdir(2)
pub(crate) fn rmdir(cx: &Ctx<'_>, path: Path) -> Result<()> {
    unlinkat(cx, cx.here(), path, AtFlags(AtFlags::AT_REMOVEDIR))
}

/// getdents64(2)
pub(crate) fn getdents64(cx: &Ctx<'_>, fd: Fd, buf: Out<u8>, len: Len) -> Result<usize> {
    let file = cx.file(fd)?;
    // The host's type of this length is unsigned int; more than a guest's memory cannot be meant.
    let len = Len(len.0 & u64::from(u32::MAX));
    let Kind::Pseudo(place) = &file.kind else {
        return host::fs::getdents(file.host(), cx.output(buf, len)?);
    };
    if !place.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    let from = rustix::fs::tell(file.host()).map_err(host::errno)?;
    let (written, position) = procfs::list(cx, place, from, buf, len)?;
    rustix::fs::seek(file.host(), SeekFrom::Start(position)).map_err(host::errno)?;
    Ok(written)
}

/// getdents(2), which puts the type behind the name: the entries are of the same size.
pub(crate) fn getdents(cx: &Ctx<'_>, fd: Fd, buf: Out<u8>, len: Len) -> Result<usize> {
    const LENGTH: usize = 16;
    const KIND: usize = 18;
    let written = getdents64(cx, fd, buf, len)?;
    let mut entries = vec![0; written];
    cx.copy_in(In::new(buf.addr, buf.cage), &mut entries)?;
    let mut rest = &mut entries[..];
    // Another thread may have written there meanwhile.
    while let Some(&[low, high]) = rest.get(LENGTH..KIND) {
        let length = usize::from(u16::from_le_bytes([low, high]));
        let Some((entry, after)) = rest.split_at_mut_checked(length).filter(|_| length > KIND) else { break };
        entry[KIND..].rotate_left(1);
        rest = after;
    }
    cx.copy_out(buf, &entries)?;
    Ok(written)
}

/// chdir(2)
pub(crate) fn chdir(cx: &Ctx<'_>, path: Path) -> Result<()> {
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    cx.cage.cwd.store(Arc::new(directory_at(cx, path)?));
    Ok(())
}

/// fchdir(2)
pub(crate) fn fchdir(cx: &Ctx<'_>, fd: Fd) -> Result<()> {
    cx.cage.cwd.store(Arc::new(open_directory(cx, &*cx.file(fd)?)?));
    Ok(())
}

/// The directory that a path leads to, if it may be searched.
fn directory_at(cx: &Ctx<'_>, path: &CStr) -> Result<Directory> {
    let on_host = |start: Dir<'_>, path: &CStr| directory_of_host(cx, start, path);
    cx.act(cx.here(), path, Last::Follow, on_host, |reached| match reached {
        Reached::Place(place) => own_directory(cx, place),
        Reached::File(file) => open_directory(cx, &file),
        _ => Err(Errno::ENOENT),
    })
}

fn open_directory(cx: &Ctx<'_>, file: &File) -> Result<Directory> {
    match &file.kind {
        Kind::Named(_) => directory_of_host(cx, file.dir(), c"."),
        Kind::Pseudo(place) => own_directory(cx, place.clone()),
        _ => Err(Errno::ENOTDIR),
    }
}

fn own_directory(cx: &Ctx<'_>, place: Place) -> Result<Directory> {
    if !place.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    procfs::access(cx, &place, AccessMode(AccessMode::X_OK), 0)?;
    Directory::ours(&cx.kernel.root, place)
}

fn directory_of_host(cx: &Ctx<'_>, dir: Dir<'_>, path: &CStr) -> Result<Directory> {
    let directory = cx.kernel.root.open(dir, path, (OFlags::PATH | OFlags::DIRECTORY).bits(), 0)?;
    host::fs::access(directory.as_fd(), c"", AccessMode::X_OK, AccessFlags::AT_EMPTY_PATH | AccessFlags::AT_EACCESS)?;
    Ok(Directory::new(directory))
}

/// chroot(2). A grate that has found the directory for its client passes an empty path, and a
/// descriptor of its own as second argument.
pub(crate) fn chroot(cx: &Ctx<'_>, path: Path, dir: DirFd) -> Result<()> {
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    // Where a grate keeps files, the kernel may not even know the directory.
    if !authority::follow_root(cx.kernel, cx.cage) {
        return Err(Errno::EPERM);
    }
    let directory = if path.is_empty() && dir.cage != cx.cage.id {
        open_directory(cx, &*cx.file(Fd { number: dir.number, cage: dir.cage })?)?
    } else {
        directory_at(cx, path)?
    };
    if !cx.cage.settings().credentials.can(capability::SYS_CHROOT) {
        return Err(Errno::EPERM);
    }
    let is_top = directory.place().is_none() && cx.kernel.root.is_top(directory.dir());
    cx.cage.root.set((!is_top).then(|| Arc::new(directory)));
    Ok(())
}

/// getcwd(2): the length with its NUL.
pub(crate) fn getcwd(cx: &Ctx<'_>, buf: Out<u8>, len: Len) -> Result<usize> {
    let cwd = cx.cage.cwd.load();
    let path = cwd.path(&cx.kernel.root)?.into_bytes();
    let mut path = match below_own_root(cx, &path)? {
        Some(path) => path,
        None => [b"(unreachable)", &path[..]].concat(),
    };
    path.push(0);
    if path.len() as u64 > len.0 {
        return Err(Errno::ERANGE);
    }
    cx.copy_out(buf, &path)?;
    Ok(path.len())
}

/// umask(2)
#[inline]
pub(crate) fn umask(cx: &Ctx<'_>, mask: Mode) -> Result<Mode> {
    Ok(Mode(cx.cage.umask.swap(mask.0 & 0o777, Ordering::Relaxed)))
}
