//! The mounts that the kernel keeps itself, for hosts that permit none: which directories and files
//! of the host guests find, where, and whether they may change them.
//!
//! A mount is its source, which stays open, and a point: a directory or file that it covers, in
//! another mount. The point is identified by its file, not by its name, as on Linux: if a directory
//! above is renamed, the mount moves with it. A guest's open file is a host descriptor and the
//! mount by which it was found ([`Dir`], [`Found`]), because two mounts may show the same
//! directory. How a path leads through mounts is in `walk`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::{Errno, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};

use super::budget::Budget;
use super::identity;
use crate::host;

/// Which file a file is: its device and its number there.
pub(super) type Identity = (u64, u64);

/// A mount, by its index in the table. The first is the root directory itself; without a table it
/// is the only one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MountId(u16);

impl MountId {
    /// The root directory.
    pub const ROOT: MountId = MountId(0);
    /// The mount of files that were not found by a name.
    pub const NONE: MountId = MountId(u16::MAX);
}

/// A directory at which a look-up starts, and the mount by which it was found. With an empty path
/// it may be any file.
#[derive(Clone, Copy, Debug)]
pub struct Dir<'a> {
    /// The directory.
    pub fd: BorrowedFd<'a>,
    /// Its mount.
    pub mount: MountId,
    /// The path is one name that a walk has arrived at: no link is followed from here.
    pub walked: bool,
}

impl<'a> Dir<'a> {
    /// A directory at which any path starts.
    pub fn new(fd: BorrowedFd<'a>, mount: MountId) -> Dir<'a> {
        Dir { fd, mount, walked: false }
    }

    /// The directory at which a walk has ended, for the last name of its path.
    pub fn walked(self) -> Dir<'a> {
        Dir { walked: true, ..self }
    }
}

impl AsFd for Dir<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd
    }
}

/// The file that a look-up found, and the mount it is in.
#[derive(Debug)]
pub struct Found {
    /// The file.
    pub file: OwnedFd,
    /// Its mount.
    pub mount: MountId,
}

impl Found {
    /// The file as the start of a look-up.
    pub fn dir(&self) -> Dir<'_> {
        Dir::new(self.file.as_fd(), self.mount)
    }
}

impl AsFd for Found {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The directory or file that a mount covers.
#[derive(Debug)]
struct Point {
    mount: MountId,
    place: OwnedFd,
    id: Identity,
}

#[derive(Debug)]
struct Mount {
    source: OwnedFd,
    id: Identity,
    directory: bool,
    read_only: bool,
    /// None for the root directory.
    point: Option<Point>,
    /// The path where it was mounted.
    path: Vec<u8>,
    /// Whether it stays there: nobody can rename a directory above.
    fixed: bool,
    /// Whether other mounts are in it.
    covered: bool,
    /// How many names there may be in it, where that is bounded.
    budget: Option<Budget>,
}

/// The mounts. The root directory's comes first.
#[derive(Debug)]
pub struct Table(Vec<Mount>);

impl Table {
    /// A root directory in which guests can change nothing.
    ///
    /// # Errors
    /// The errors of fstat(2).
    pub fn new(root: OwnedFd) -> Result<Table> {
        let id = identity(root.as_fd())?;
        let root = Mount {
            source: root,
            id,
            directory: true,
            read_only: true,
            point: None,
            path: Vec::new(),
            fixed: true,
            covered: false,
            budget: None,
        };
        Ok(Table(vec![root]))
    }

    /// The root directory, to walk from.
    ///
    /// # Errors
    /// EMFILE.
    pub fn top(&self) -> Result<Found> {
        self.source(MountId::ROOT)
    }

    /// Opens the entry `name` of a directory. Symbolic links are not followed: ELOOP.
    ///
    /// # Errors
    /// The errors of openat2(2).
    pub fn step(&self, dir: &Found, name: &[u8]) -> Result<Found> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let file = rustix::fs::openat2(&dir.file, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
            .map_err(host::errno)?;
        let id = identity(file.as_fd())?;
        match self.crossing(dir.mount, id) {
            Some(mount) => self.source(mount),
            None => Ok(Found { file, mount: dir.mount }),
        }
    }

    /// Makes an empty directory or file in a directory; also in the root directory, where guests
    /// cannot.
    ///
    /// # Errors
    /// EROFS; the host's errors.
    pub fn create(&self, dir: &Found, name: &[u8], directory: bool) -> Result<()> {
        if dir.mount != MountId::ROOT && self.is_read_only(dir.mount) {
            return Err(Errno::EROFS);
        }
        if directory {
            return rustix::fs::mkdirat(&dir.file, name, Mode::from_raw_mode(0o755)).map_err(host::errno);
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&dir.file, name, flags, Mode::from_raw_mode(0o644)).map(drop).map_err(host::errno)
    }

    /// Mounts `source` over `point`, which was found at `path`.
    ///
    /// # Errors
    /// EMFILE for too many mounts; ENOTDIR where only one of the two is a directory.
    pub fn mount(&mut self, point: Found, path: &[u8], source: OwnedFd, read_only: bool) -> Result<MountId> {
        let number =
            u16::try_from(self.0.len()).ok().filter(|&number| number < MountId::NONE.0).ok_or(Errno::EMFILE)?;
        let directory = |file: &OwnedFd| {
            let stat = rustix::fs::fstat(file).map_err(host::errno)?;
            Ok(FileType::from_raw_mode(stat.st_mode).is_dir())
        };
        let kind = directory(&source)?;
        if kind != directory(&point.file)? {
            return Err(Errno::ENOTDIR);
        }
        let (id, place) = (identity(source.as_fd())?, identity(point.as_fd())?);
        // Mounts below this point are hidden from now on.
        let hidden = |other: &&mut Mount| other.path.starts_with(path) && other.path.get(path.len()) == Some(&b'/');
        self.0.iter_mut().filter(hidden).for_each(|other| other.fixed = false);
        let around = self.at_mut(point.mount);
        around.covered = true;
        // Nothing in the root directory is renamed, and no point is.
        let fixed = point.mount == MountId::ROOT || (around.fixed && around.id == place);
        let point = Point { mount: point.mount, place: point.file, id: place };
        let path = path.to_vec();
        let point = Some(point);
        self.0.push(Mount { source, id, directory: kind, read_only, point, path, fixed, covered: false, budget: None });
        Ok(MountId(number))
    }

    /// Bounds a mount whose source is empty: to so many names, and no extended attributes, which
    /// would be files' worth of the host's memory without a name.
    pub fn bound(&mut self, mount: MountId, names: u64) {
        self.at_mut(mount).budget = Some(Budget::new(names));
    }

    /// How many names there may be in a mount, where that is bounded.
    pub(super) fn budget(&self, mount: MountId) -> Option<&Budget> {
        self.0.get(usize::from(mount.0))?.budget.as_ref()
    }

    fn at(&self, mount: MountId) -> &Mount {
        &self.0[usize::from(mount.0)]
    }

    fn at_mut(&mut self, mount: MountId) -> &mut Mount {
        &mut self.0[usize::from(mount.0)]
    }

    fn ids(&self) -> impl DoubleEndedIterator<Item = (MountId, &Mount)> {
        // `mount` makes no more than have numbers.
        self.0.iter().enumerate().map(|(number, mount)| (MountId(u16::try_from(number).unwrap_or(u16::MAX)), mount))
    }

    /// The mounts: the path of each, its source, and whether it is read-only.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], BorrowedFd<'_>, bool)> {
        self.0.iter().map(|mount| (&mount.path[..], mount.source.as_fd(), mount.read_only))
    }

    /// A mount's own directory or file.
    ///
    /// # Errors
    /// EMFILE.
    pub(super) fn source(&self, mount: MountId) -> Result<Found> {
        let file = rustix::io::fcntl_dupfd_cloexec(&self.at(mount).source, 3).map_err(host::errno)?;
        Ok(Found { file, mount })
    }

    /// The same, as long as the table is there.
    pub(super) fn source_dir(&self, mount: MountId) -> Dir<'_> {
        Dir::new(self.at(mount).source.as_fd(), mount)
    }

    /// Whether it is a directory.
    pub(super) fn is_directory(&self, mount: MountId) -> bool {
        self.at(mount).directory
    }

    /// Whether nothing can be changed by a mount.
    pub(super) fn is_read_only(&self, mount: MountId) -> bool {
        self.0.get(usize::from(mount.0)).is_some_and(|mount| mount.read_only)
    }

    /// Whether other mounts are in it, so that the host alone cannot find what is there.
    pub(super) fn is_covered(&self, mount: MountId) -> bool {
        self.0.get(usize::from(mount.0)).is_some_and(|mount| mount.covered)
    }

    /// Whether this is the mount's own directory or file.
    pub(super) fn is_source(&self, mount: MountId, id: Identity) -> bool {
        self.at(mount).id == id
    }

    /// The mount that is on top of a file which was found by another. Mounts on top of others at
    /// the same place are followed.
    pub(super) fn crossing(&self, mount: MountId, id: Identity) -> Option<MountId> {
        let mut found = None;
        let (mut mount, mut id) = (mount, id);
        while self.is_covered(mount) {
            let over = |point: &Point| point.mount == mount && point.id == id;
            let Some((next, own)) = self.ids().rfind(|(_, other)| other.point.as_ref().is_some_and(over)) else {
                break;
            };
            found = Some(next);
            (mount, id) = (next, own.id);
        }
        found
    }

    /// The directory or file that a mount covers; None for the root directory.
    pub(super) fn point(&self, mount: MountId) -> Option<Dir<'_>> {
        self.at(mount).point.as_ref().map(|point| Dir::new(point.place.as_fd(), point.mount))
    }

    /// The path of a mount, if nobody can rename a directory above it.
    pub(super) fn fixed_path(&self, mount: MountId) -> Option<&[u8]> {
        let mount = self.at(mount);
        mount.fixed.then_some(&mount.path[..])
    }

    /// Whether a name in a directory is what a mount covers, by whichever mount it was found.
    pub(super) fn is_point(&self, dir: Dir<'_>, name: &std::ffi::CStr) -> bool {
        if self.0.iter().all(|mount| mount.point.as_ref().is_none_or(|point| point.mount == MountId::ROOT))
            && dir.mount != MountId::ROOT
        {
            return false;
        }
        let Ok(stat) = rustix::fs::statat(dir.fd, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
        let id = (stat.st_dev, stat.st_ino);
        self.0.iter().any(|mount| mount.point.as_ref().is_some_and(|point| point.id == id))
    }

    /// The mount that an absolute path leads into despite all possible renames, and how much of the
    /// path leads there. The host finds the rest alone.
    pub(super) fn jump(&self, path: &[u8]) -> Option<(MountId, usize)> {
        let leads = |mount: &Mount| {
            mount.fixed && path.starts_with(&mount.path) && path.get(mount.path.len()).is_none_or(|&byte| byte == b'/')
        };
        let (mut found, mut longest) = (None, 0);
        for (id, mount) in self.ids().skip(1) {
            if mount.path.len() >= longest && leads(mount) {
                (found, longest) = (Some(id), mount.path.len());
            }
        }
        found.filter(|id| !self.is_covered(*id) && self.is_directory(*id)).map(|id| (id, longest))
    }

    /// The mounts whose sources contain this path of the host's, with the rest of the path: the
    /// last mount first.
    pub(super) fn by_source<'p>(
        &self,
        path: &'p [u8],
        name: impl Fn(BorrowedFd<'_>) -> Option<Vec<u8>>,
    ) -> Vec<(MountId, &'p [u8])> {
        let below = |(id, mount): (MountId, &Mount)| {
            let source = name(mount.source.as_fd())?;
            let source = source.strip_suffix(b"/").unwrap_or(&source);
            let rest = path.strip_prefix(source)?;
            (rest.is_empty() || rest[0] == b'/').then_some((id, rest))
        };
        self.ids().rev().filter_map(below).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &std::path::Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    /// A table with these mounts, each at the path of its source.
    fn table(folder: &std::path::Path, mounts: &[(&str, bool)]) -> Table {
        for name in ["root", "a", "b"] {
            std::fs::create_dir(folder.join(name)).unwrap();
        }
        let mut table = Table::new(open(&folder.join("root"))).unwrap();
        for (number, (path, read_only)) in mounts.iter().enumerate() {
            let mut at = table.top().unwrap();
            for name in path.split('/').filter(|name| !name.is_empty()) {
                if table.step(&at, name.as_bytes()).is_err() {
                    table.create(&at, name.as_bytes(), true).unwrap();
                }
                at = table.step(&at, name.as_bytes()).unwrap();
            }
            let source = open(&folder.join(["a", "b"][number % 2]));
            table.mount(at, path.as_bytes(), source, *read_only).unwrap();
        }
        table
    }

    #[test]
    fn a_path_jumps_to_where_nobody_can_rename_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let table = table(folder.path(), &[("/x", false), ("/y/z", true)]);
        let jump = |path: &str| table.jump(path.as_bytes());
        assert_eq!(jump("/x/file"), Some((MountId(1), 2)));
        assert_eq!(jump("/x"), Some((MountId(1), 2)));
        assert_eq!(jump("/y/z//file"), Some((MountId(2), 4)));
        assert_eq!([jump("/xy"), jump("/y"), jump("/"), jump("//x/file"), jump("/y/../x")], [None; 5]);
        assert!(table.is_read_only(MountId(2)) && !table.is_read_only(MountId(1)) && table.is_read_only(MountId::ROOT));
        assert!(!table.is_read_only(MountId::NONE) && !table.is_covered(MountId::NONE));
    }

    #[test]
    fn what_others_are_mounted_in_is_walked() {
        let folder = tempfile::tempdir().unwrap();
        let table = table(folder.path(), &[("/x", false), ("/x/in/deep", false), ("/x", true)]);
        assert_eq!(table.jump(b"/x/file"), Some((MountId(3), 2)), "the last that was mounted there");
        assert_eq!(table.jump(b"/x/in/deep/file"), Some((MountId(3), 2)));
        assert_eq!((table.fixed_path(MountId(2)), table.fixed_path(MountId(3))), (None, Some(&b"/x"[..])));
        let x = table.step(&table.top().unwrap(), b"x").unwrap();
        assert_eq!(x.mount, MountId(3));
        let point = table.point(MountId(1)).unwrap();
        assert_eq!(table.crossing(point.mount, identity(point.fd).unwrap()), Some(MountId(3)));
    }

    #[test]
    fn what_a_later_mount_hides_is_not_jumped_to() {
        let folder = tempfile::tempdir().unwrap();
        let table = table(folder.path(), &[("/y/z", false), ("/yy", false), ("/y", true)]);
        let jump = |path: &str| table.jump(path.as_bytes());
        assert_eq!(jump("/y/z/file"), Some((MountId(3), 2)));
        assert_eq!(jump("/yy/file"), Some((MountId(2), 3)));
    }

    #[test]
    fn a_file_is_mounted_over_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut table = table(folder.path(), &[("/x", true)]);
        std::fs::write(folder.path().join("file"), "").unwrap();
        let x = table.step(&table.top().unwrap(), b"x").unwrap();
        assert_eq!(table.create(&x, b"new", true), Err(Errno::EROFS));
        let wrong = table.mount(x, b"/x", open(&folder.path().join("file")), false);
        assert_eq!(wrong, Err(Errno::ENOTDIR));
    }
}
