//! How many names there may be in a mount: the bound on the files of a directory of the host's that
//! takes the place of one in memory.
//!
//! Each name counts one, hard links too. A file without a name costs whoever has it open a file
//! descriptor, and these are bounded. All changes of names in such a mount are made one after the
//! other, since the host does not say whether an open made a file, or a rename replaced one: what
//! was there before is looked at, and stays true until the change is made.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard};

use lind_abi::{Errno, Result};
use rustix::fs::{AtFlags, RenameFlags};

use super::table::Identity;
use crate::lock::Locked;

/// The names in a mount.
#[derive(Debug)]
pub(super) struct Budget {
    most: u64,
    count: Mutex<u64>,
}

impl Budget {
    /// For a mount without any.
    pub(super) fn new(most: u64) -> Budget {
        Budget { most, count: Mutex::new(0) }
    }

    /// Until it is dropped nobody else changes names.
    pub(super) fn changing(&self) -> Changing<'_> {
        Changing { most: self.most, count: self.count.locked() }
    }
}

/// The right to change names.
pub(super) struct Changing<'b> {
    most: u64,
    count: MutexGuard<'b, u64>,
}

impl Changing<'_> {
    /// How many names there may be, and how many more than there are.
    pub(super) fn room(&self) -> (u64, u64) {
        (self.most, self.most.saturating_sub(*self.count))
    }

    /// Makes a name that is not there.
    ///
    /// # Errors
    /// ENOSPC; the errors of `act`.
    pub(super) fn make<T>(&mut self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        if *self.count >= self.most {
            return Err(Errno::ENOSPC);
        }
        let made = act()?;
        *self.count += 1;
        Ok(made)
    }

    /// Makes a name, unless it is there: then `act` says so.
    ///
    /// # Errors
    /// As for `make`.
    pub(super) fn make_new<T>(
        &mut self,
        (dir, name): (BorrowedFd<'_>, &CStr),
        act: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        match identity(dir, name) {
            Some(_) => act(),
            None => self.make(act),
        }
    }

    /// Takes a name away.
    ///
    /// # Errors
    /// The errors of `act`.
    pub(super) fn remove<T>(&mut self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let removed = act()?;
        *self.count = self.count.saturating_sub(1);
        Ok(removed)
    }

    /// Moves a name to another, which may be there.
    ///
    /// # Errors
    /// The errors of `act`.
    pub(super) fn rename(
        &mut self,
        (from, old): (BorrowedFd<'_>, &CStr),
        (to, new): (BorrowedFd<'_>, &CStr),
        flags: RenameFlags,
        act: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        // Of two names of one file both stay, and of two that change places.
        let replaced = identity(to, new).filter(|_| flags.is_empty());
        let replaces = replaced.is_some() && replaced != identity(from, old);
        if replaces { self.remove(act) } else { act() }
    }
}

/// Which file has a name. No link is followed.
fn identity(dir: BorrowedFd<'_>, name: &CStr) -> Option<Identity> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{Mode, OFlags};

    use super::super::table::{Dir, MountId, Table};
    use super::super::{Change, Root, Walls};
    use super::*;
    use crate::host;

    const MOST: u64 = 8;
    const WRITE: u32 = OFlags::WRONLY.bits() | OFlags::CREATE.bits();

    /// A root with a mount at /t whose names are counted.
    struct Bounded {
        root: Root,
        mount: MountId,
        folder: tempfile::TempDir,
    }

    impl Bounded {
        fn new() -> Bounded {
            let folder = tempfile::tempdir().unwrap();
            for name in ["root", "root/t", "t"] {
                std::fs::create_dir(folder.path().join(name)).unwrap();
            }
            let open = |path: &Path| rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
            let top: OwnedFd = open(&folder.path().join("root"));
            let mut table = Table::new(top.try_clone().unwrap()).unwrap();
            let point = table.step(&table.top().unwrap(), b"t").unwrap();
            let mount = table.mount(point, b"/t", open(&folder.path().join("t")), false).unwrap();
            table.bound(mount, MOST);
            let mut root = Root::new(top, Some(folder.path()), Walls::Openat2);
            root.set_table(table, &[]);
            Bounded { root, mount, folder }
        }

        fn open(&self, path: &CStr, flags: u32) -> Result<()> {
            self.root.open(self.root.top(), path, flags, 0o600).map(drop)
        }

        fn mkdir(&self, path: &CStr) -> Result<()> {
            self.root.parent(self.root.top(), path, Change::Make, |dir, name| {
                rustix::fs::mkdirat(dir, name, Mode::RWXU).map_err(host::errno)
            })
        }

        fn link(&self, old: &CStr, path: &CStr) -> Result<()> {
            let from = std::fs::File::open(self.folder.path().join("t")).unwrap();
            self.root.parent(self.root.top(), path, Change::Make, |dir, name| {
                rustix::fs::linkat(&from, old, dir, name, AtFlags::empty()).map_err(host::errno)
            })
        }

        fn remove(&self, path: &CStr, flags: AtFlags) -> Result<()> {
            self.root.parent(self.root.top(), path, Change::Remove, |dir, name| {
                rustix::fs::unlinkat(dir, name, flags).map_err(host::errno)
            })
        }

        fn rename(&self, old: &CStr, new: &CStr, flags: RenameFlags) -> Result<()> {
            let top: Dir<'_> = self.root.top();
            self.root.parent(top, old, Change::Move, |from, old| {
                self.root.parent(top, new, Change::Move, |to, new| self.root.rename((from, old), (to, new), flags))
            })
        }

        fn count(&self) -> u64 {
            *self.root.table().unwrap().budget(self.mount).unwrap().changing().count
        }

        fn names(&self) -> u64 {
            std::fs::read_dir(self.folder.path().join("t")).unwrap().count() as u64
        }
    }

    #[test]
    fn each_name_counts_once_however_it_comes_and_goes() {
        let tree = Bounded::new();
        let plain = RenameFlags::empty();
        std::os::unix::fs::symlink("target", tree.folder.path().join("t/dangles")).unwrap();
        tree.open(c"/t/a", WRITE).unwrap();
        tree.open(c"/t/a", WRITE).unwrap();
        assert_eq!(tree.open(c"/t/a", WRITE | OFlags::EXCL.bits()), Err(Errno::EEXIST));
        assert_eq!(tree.count(), 1);
        // The link was made outside; what it leads to is made here.
        tree.open(c"/t/dangles", WRITE).unwrap();
        assert_eq!(tree.count(), 2);
        tree.link(c"a", c"/t/b").unwrap();
        tree.mkdir(c"/t/d").unwrap();
        assert_eq!(tree.mkdir(c"/t/d"), Err(Errno::EEXIST));
        assert_eq!(tree.count(), 4);
        // Two names of one file stay two.
        tree.rename(c"/t/a", c"/t/b", plain).unwrap();
        tree.rename(c"/t/a", c"/t/target", RenameFlags::EXCHANGE).unwrap();
        assert_eq!(tree.rename(c"/t/a", c"/t/target", RenameFlags::NOREPLACE), Err(Errno::EEXIST));
        assert_eq!(tree.count(), 4);
        tree.rename(c"/t/a", c"/t/target", plain).unwrap();
        assert_eq!(tree.count(), 3);
        tree.rename(c"/t/target", c"/t/new", plain).unwrap();
        tree.remove(c"/t/d", AtFlags::REMOVEDIR).unwrap();
        assert_eq!(tree.remove(c"/t/d", AtFlags::REMOVEDIR), Err(Errno::ENOENT));
        assert_eq!((tree.count(), tree.names()), (2, 3));
    }

    #[test]
    fn a_full_mount_takes_no_name_until_one_goes() {
        let tree = Bounded::new();
        let made = (0..20).filter(|i| tree.mkdir(&std::ffi::CString::new(format!("/t/{i}")).unwrap()).is_ok()).count();
        assert_eq!(made as u64, MOST);
        assert_eq!(tree.open(c"/t/new", WRITE), Err(Errno::ENOSPC));
        assert_eq!(tree.mkdir(c"/t/0/below"), Err(Errno::ENOSPC));
        assert_eq!(tree.mkdir(c"/t/0"), Err(Errno::EEXIST));
        assert_eq!(tree.open(c"/t/0", WRITE), Err(Errno::EISDIR));
        tree.remove(c"/t/0", AtFlags::REMOVEDIR).unwrap();
        for _ in 0..100 {
            tree.open(c"/t/new", WRITE).unwrap();
            tree.remove(c"/t/new", AtFlags::empty()).unwrap();
        }
        assert_eq!(tree.root.check_attributes(tree.mount), Err(Errno::EOPNOTSUPP));
    }

    #[test]
    fn threads_that_race_for_names_leave_the_count_right() {
        let tree = Bounded::new();
        std::thread::scope(|scope| {
            for thread in 0..4_u32 {
                let tree = &tree;
                scope.spawn(move || {
                    let mut random = 12345 + thread;
                    for _ in 0..1500 {
                        random = random.wrapping_mul(1_103_515_245).wrapping_add(12345);
                        let name = |shift: u32| [c"/t/a", c"/t/b", c"/t/c"][(random >> shift) as usize % 3];
                        let _ = match (random >> 16) % 5 {
                            0 => tree.open(name(8), WRITE),
                            1 => tree.open(name(8), WRITE | OFlags::EXCL.bits()),
                            2 => tree.remove(name(8), AtFlags::empty()),
                            3 => tree
                                .link(CStr::from_bytes_with_nul(&name(8).to_bytes_with_nul()[3..]).unwrap(), name(12)),
                            _ => tree.rename(name(8), name(12), RenameFlags::empty()),
                        };
                        assert!(tree.count() <= MOST);
                    }
                });
            }
        });
        assert_eq!(tree.count(), tree.names());
    }

    #[test]
    fn a_fifo_that_waits_keeps_nobody_from_making_names() {
        let tree = Bounded::new();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            tree.folder.path().join("t/fifo"),
            rustix::fs::FileType::Fifo,
            Mode::RWXU,
            0,
        )
        .unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| tree.open(c"/t/fifo", WRITE).unwrap());
            for _ in 0..100 {
                tree.open(c"/t/other", WRITE).unwrap();
                tree.remove(c"/t/other", AtFlags::empty()).unwrap();
            }
            tree.open(c"/t/fifo", OFlags::RDONLY.bits()).unwrap();
        });
        assert_eq!(tree.open(c"/t/fifo", WRITE | OFlags::EXCL.bits()), Err(Errno::EEXIST));
    }
}
