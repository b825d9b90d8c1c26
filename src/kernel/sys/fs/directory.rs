//! Directories: mkdir(2), rmdir(2), getdents64(2), chdir(2), getcwd(2), and umask(2).

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::flags::{AccessFlags, AccessMode, AtFlags};
use lind_abi::{DirFd, Errno, Fd, In, Len, Mode, Out, Path, Result};
use rustix::fs::{OFlags, SeekFrom};

use super::at::unchangeable;
use super::name::unlinkat;
use crate::call::{Ctx, PathBytes};
use crate::fd::{File, Kind};
use crate::host;
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
        cx.kernel
            .root
            .parent(start, path, Change::Make, |dir, name| rustix::fs::mkdirat(dir, name, mode).map_err(host::errno))
    };
    cx.act(dir, path, Last::NoFollow, on_host, unchangeable)
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
    let on_host = |start: Dir<'_>, path: &CStr| enter(cx, start, path);
    cx.act(cx.here(), path, Last::Follow, on_host, |reached| match reached {
        Reached::Place(place) => enter_place(cx, place),
        Reached::File(file) => enter_open(cx, &file),
        _ => Err(Errno::ENOENT),
    })
}

/// fchdir(2)
pub(crate) fn fchdir(cx: &Ctx<'_>, fd: Fd) -> Result<()> {
    enter_open(cx, &*cx.file(fd)?)
}

fn enter_open(cx: &Ctx<'_>, file: &File) -> Result<()> {
    match &file.kind {
        Kind::Named(_) => enter(cx, file.dir(), c"."),
        Kind::Pseudo(place) => enter_place(cx, place.clone()),
        _ => Err(Errno::ENOTDIR),
    }
}

/// Makes a directory of our own trees the cage's own.
fn enter_place(cx: &Ctx<'_>, place: Place) -> Result<()> {
    if !place.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    procfs::access(cx, &place, AccessMode(AccessMode::X_OK), 0)?;
    cx.cage.cwd.store(Arc::new(Directory::ours(&cx.kernel.root, place)?));
    Ok(())
}

/// Makes a directory the cage's own, if it may be searched.
fn enter(cx: &Ctx<'_>, dir: Dir<'_>, path: &CStr) -> Result<()> {
    let directory = cx.kernel.root.open(dir, path, (OFlags::PATH | OFlags::DIRECTORY).bits(), 0)?;
    host::fs::access(directory.as_fd(), c"", AccessMode::X_OK, AccessFlags::AT_EMPTY_PATH | AccessFlags::AT_EACCESS)?;
    cx.cage.cwd.store(Arc::new(Directory::new(directory)));
    Ok(())
}

/// getcwd(2): the length with its NUL.
pub(crate) fn getcwd(cx: &Ctx<'_>, buf: Out<u8>, len: Len) -> Result<usize> {
    let cwd = cx.cage.cwd.load();
    let path = cwd.path(&cx.kernel.root)?;
    let path = path.as_bytes_with_nul();
    if path.len() as u64 > len.0 {
        return Err(Errno::ERANGE);
    }
    cx.copy_out(buf, path)?;
    Ok(path.len())
}

/// umask(2)
#[inline]
pub(crate) fn umask(cx: &Ctx<'_>, mask: Mode) -> Result<Mode> {
    Ok(Mode(cx.cage.umask.swap(mask.0 & 0o777, Ordering::Relaxed)))
}
