//! Names of open files as guests see them: paths from the root.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::{Errno, Result};
use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::table::{Dir, MountId, Table};
use super::{PATIENCE, Root, Walls, identity};
use crate::host::{self, PATH_MAX};

impl Root {
    /// The path of an open directory, as a guest would spell it. A rename may make it untrue at any
    /// time.
    ///
    /// # Errors
    /// ENOENT when it has been removed or moved out of the root.
    pub fn path_of(&self, dir: Dir<'_>) -> Result<CString> {
        self.below_root(dir.mount, self.host_path(dir.fd)?)
    }

    /// The path of an open file inside the root, as a guest would spell it, and ` (deleted)` behind
    /// that of one that has been removed. Like any path it may be untrue by now.
    ///
    /// # Errors
    /// ENOENT when it has been moved out of the root.
    pub fn name_of(&self, file: Dir<'_>) -> Result<Vec<u8>> {
        self.below_root(file.mount, self.host_name(file.fd)?).map(CString::into_bytes)
    }

    /// As `name_of`, by whichever mount, having made sure that the name led to this very file.
    ///
    /// # Errors
    /// ENOENT when it is outside, has been removed, or has another name by now.
    pub fn certain_name_of(&self, file: BorrowedFd<'_>) -> Result<Vec<u8>> {
        match &self.table {
            Some(table) => self.name_by(table, file, |_| true),
            None => {
                let name = self.name_of(Dir::new(file, MountId::ROOT))?;
                self.certainly(file, name).map(|(name, _)| name)
            }
        }
    }

    /// The name of an open file, if that is in a volume. It may be out of date, as any path may.
    pub(crate) fn name_in_volume(&self, file: BorrowedFd<'_>) -> Option<Vec<u8>> {
        let names = match &self.table {
            Some(table) => self.names_by(table, file).ok()?.collect(),
            None => vec![self.name_of(Dir::new(file, MountId::ROOT)).ok()?],
        };
        names.into_iter().find(|name| self.mount_of(name).is_some_and(|(at, _)| self.volumes().contains(at)))
    }

    /// As `certain_name_of`, by a mount for which `fits` is true.
    fn name_by(&self, table: &Table, file: BorrowedFd<'_>, fits: impl Fn(MountId) -> bool) -> Result<Vec<u8>> {
        let mut certain = self.names_by(table, file)?.filter_map(|name| {
            let (name, by) = self.certainly(file, name).ok()?;
            fits(by).then_some(name)
        });
        certain.next().ok_or(Errno::ENOENT)
    }

    /// The names of an open file, one for each mount that shows it.
    fn names_by(&self, table: &Table, file: BorrowedFd<'_>) -> Result<impl Iterator<Item = Vec<u8>>> {
        let path = self.host_name(file)?;
        let of = |source: BorrowedFd<'_>| self.host_name(source).ok().map(CString::into_bytes);
        let name = |(mount, rest): (MountId, &[u8])| Some([&self.mounted_at(table, mount).ok()?, rest].concat());
        Ok(table.by_source(path.to_bytes(), of).into_iter().filter_map(name).collect::<Vec<_>>().into_iter())
    }

    /// This name, if it leads to this file, and the mount by which it does.
    fn certainly(&self, file: BorrowedFd<'_>, name: Vec<u8>) -> Result<(Vec<u8>, MountId)> {
        let name = CString::new(name).map_err(|_| Errno::ENOENT)?;
        let found = self.open(self.top(), &name, (OFlags::PATH | OFlags::NOFOLLOW).bits(), 0)?;
        if identity(found.as_fd())? == identity(file)? {
            Ok((name.into_bytes(), found.mount))
        } else {
            Err(Errno::ENOENT)
        }
    }

    /// Checks whether the mode, owner or times of an open file may be changed. A file that was
    /// received in a message, or came from outside, has no known mount: it may be changed only if
    /// it has a name on a writable mount, or no name at all, as memory files and pipes.
    ///
    /// # Errors
    /// EROFS.
    pub(crate) fn check_changeable(&self, file: Dir<'_>) -> Result<()> {
        if file.mount != MountId::NONE || self.mounted.is_empty() {
            return self.check_writable(file.mount);
        }
        let nameless = rustix::fs::fstat(file.fd).map_err(host::errno)?.st_nlink == 0
            || self.host_name(file.fd).is_ok_and(|name| !name.to_bytes().starts_with(b"/"));
        let named = || match &self.table {
            Some(table) => self.name_by(table, file.fd, |mount| !table.is_read_only(mount)).is_ok(),
            None => self.certain_name_of(file.fd).is_ok_and(|name| !self.is_mounted_read_only(&name)),
        };
        if nameless || named() { Ok(()) } else { Err(Errno::EROFS) }
    }

    /// Whether the mount of the host's in which a path of the root lies is read-only. The root
    /// itself is.
    fn is_mounted_read_only(&self, path: &[u8]) -> bool {
        self.mount_of(path).is_none_or(|(_, read_only)| *read_only)
    }

    /// The mount of the host's in which a path of the root lies.
    fn mount_of(&self, path: &[u8]) -> Option<&(Vec<u8>, bool)> {
        let holds = |at: &[u8]| path.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
        self.mounted.iter().rev().find(|(at, _)| holds(at))
    }

    /// The present path of a mount; empty for the root directory.
    fn mounted_at(&self, table: &Table, mount: MountId) -> Result<Vec<u8>> {
        match (table.fixed_path(mount), table.point(mount)) {
            (Some(path), _) => Ok(path.to_vec()),
            (None, Some(point)) => self.name_of(point),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// A directory's path from its mount's own.
    pub(super) fn path_in_mount(&self, table: &Table, dir: Dir<'_>) -> Result<Vec<u8>> {
        let source = self.host_path(table.source_dir(dir.mount).fd)?.into_bytes();
        below(&source, &self.host_path(dir.fd)?.into_bytes()).map(<[u8]>::to_vec)
    }

    /// The host's name of an open file.
    pub(crate) fn host_name(&self, file: BorrowedFd<'_>) -> Result<CString> {
        self.again(file, |links, name| rustix::fs::readlinkat(links, name, Vec::new()).map_err(host::errno))
    }

    /// A path of the host's in a mount, as seen from the root.
    fn below_root(&self, mount: MountId, path: CString) -> Result<CString> {
        let mut whole = path.into_bytes();
        if let Some(table) = &self.table {
            let source = self.host_name(table.source_dir(mount).fd)?.into_bytes();
            whole = [&self.mounted_at(table, mount)?, below(&source, &whole)?].concat();
        } else if self.walls == Walls::Openat2 {
            let root = self.host_path(self.directory())?.into_bytes();
            whole = below(&root, &whole)?.to_vec();
        }
        match whole.first() {
            None => Ok(c"/".to_owned()),
            Some(b'/') => CString::new(whole).map_err(|_| Errno::ENOENT),
            // The host marks paths outside the process's root as unreachable; a mounted file that
            // was renamed or removed has no name left.
            Some(_) => Err(Errno::ENOENT),
        }
    }

    /// The path of an open directory, having made sure that it led there.
    fn certain_path_of(&self, dir: BorrowedFd<'_>) -> Result<CString> {
        let id = identity(dir)?;
        for _ in 0..PATIENCE {
            let path = self.path_of(Dir::new(dir, MountId::ROOT))?;
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS;
            let found = rustix::fs::openat2(self.directory(), &path, flags, Mode::empty(), resolve);
            if found.is_ok_and(|found| identity(found.as_fd()) == Ok(id)) {
                return Ok(path);
            }
        }
        Err(Errno::ENOENT)
    }

    /// A path that starts at `dir`, as one that starts at the root.
    pub(super) fn path_below_root(&self, dir: BorrowedFd<'_>, path: &CStr) -> Result<CString> {
        let start = self.certain_path_of(dir)?;
        let whole = [start.to_bytes(), b"/", path.to_bytes()].concat();
        if whole.len() >= PATH_MAX { Err(Errno::ENAMETOOLONG) } else { CString::new(whole).map_err(|_| Errno::EINVAL) }
    }

    /// Follows leading `..` components of a path, from a directory too deep to have a path. Returns
    /// the directory reached and the rest of the path.
    ///
    /// # Errors
    /// ENOENT when the directory is outside; the errors of opening.
    pub(super) fn climb<'p>(&self, dir: BorrowedFd<'_>, path: &'p CStr) -> Result<(OwnedFd, &'p CStr)> {
        let root = identity(self.directory())?;
        let up = |dir: BorrowedFd<'_>, name: &CStr| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::openat(dir, name, flags, Mode::empty()).map_err(host::errno)
        };
        let mut at = up(dir, c".")?;
        let mut rest = path;
        while let Some((name, after)) = first_component(rest) {
            match name {
                b"." => {}
                b".." if identity(at.as_fd())? == root => {}
                b".." => at = up(at.as_fd(), c"..")?,
                _ => break,
            }
            rest = after;
        }
        // The root must be above: a directory that was moved out would lead elsewhere.
        let mut above = up(at.as_fd(), c".")?;
        while identity(above.as_fd())? != root {
            let next = up(above.as_fd(), c"..")?;
            if identity(next.as_fd())? == identity(above.as_fd())? {
                return Err(Errno::ENOENT);
            }
            above = next;
        }
        Ok((at, if rest.is_empty() { c"." } else { rest }))
    }

    /// The host's path of a directory.
    fn host_path(&self, dir: BorrowedFd<'_>) -> Result<CString> {
        match host::place::path(dir) {
            // A directory that may not be searched any more still has a path.
            Err(Errno::EACCES) if rustix::fs::fstat(dir).is_ok_and(|stat| stat.st_nlink > 0) => self.host_name(dir),
            path => path,
        }
    }
}

/// The rest of a path behind that of a directory above it.
fn below<'p>(directory: &[u8], path: &'p [u8]) -> Result<&'p [u8]> {
    let directory = directory.strip_suffix(b"/").unwrap_or(directory);
    let rest = path.strip_prefix(directory).ok_or(Errno::ENOENT)?;
    // `/rooted` is not in `/root`.
    if rest.first().is_none_or(|&byte| byte == b'/') { Ok(rest) } else { Err(Errno::ENOENT) }
}

/// The first component of a relative path, and what follows it and its slashes.
fn first_component(path: &CStr) -> Option<(&[u8], &CStr)> {
    let bytes = path.to_bytes();
    let end = bytes.iter().position(|&byte| byte == b'/').unwrap_or(bytes.len());
    let slashes = bytes[end..].iter().take_while(|&&byte| byte == b'/').count();
    let rest =
        CStr::from_bytes_with_nul(&path.to_bytes_with_nul()[end + slashes..]).expect("the tail of a C string is one");
    (end > 0).then_some((&bytes[..end], rest))
}
