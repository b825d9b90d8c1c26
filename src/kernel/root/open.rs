//! Opening inside the root.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::{Errno, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};

use super::budget::Budget;
use super::table::{Dir, Found, MountId, Table};
use super::walk::Way;
use super::{Change, Last, PATIENCE, Root, Walls};
use crate::host;

/// The open(2) flags that reach the host. O_ASYNC would send its signals to the runner.
const PASSED: u32 = 0o3
    | 0o100
    | 0o200
    | 0o1000
    | 0o2000
    | 0o4000
    | 0o4_010_000
    | 0o40000
    | 0o100_000
    | O_TMPFILE
    | 0o400_000
    | 0o1_000_000
    | O_PATH;
const O_CREAT: u32 = 0o100;
const O_TMPFILE: u32 = 0o20_200_000;
const O_PATH: u32 = 0o10_000_000;
/// The flags that open(2) heeds beside O_PATH: O_DIRECTORY and O_NOFOLLOW.
const WITH_PATH: u32 = O_PATH | 0o200_000 | 0o400_000;

/// Flags and mode as the host is given them.
#[derive(Clone, Copy)]
struct How {
    flags: OFlags,
    mode: Mode,
}

impl How {
    fn new(flags: u32, mode: u32) -> How {
        let flags = flags & if flags & O_PATH != 0 { WITH_PATH } else { PASSED };
        let creates = flags & O_CREAT != 0 || flags & O_TMPFILE == O_TMPFILE;
        let mode = Mode::from_raw_mode(if creates { mode & 0o7777 } else { 0 });
        // A terminal must not become the runner's own.
        let flags = OFlags::from_bits_retain(flags) | OFlags::CLOEXEC;
        let flags = if flags.contains(OFlags::PATH) { flags } else { flags | OFlags::NOCTTY };
        How { flags, mode }
    }

    fn has(self, flags: OFlags) -> bool {
        self.flags.contains(flags)
    }

    /// Whether a file is changed by being opened so, or can be then.
    fn changes(self) -> bool {
        !self.has(OFlags::PATH)
            && (self.flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC | OFlags::CREATE)
                || self.has(OFlags::TMPFILE))
    }

    /// To look at what would be opened so.
    fn look(self) -> How {
        let follows = self.last() == Last::Follow && !self.has(OFlags::NOFOLLOW);
        let nofollow = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
        How { flags: OFlags::PATH | OFlags::CLOEXEC | nofollow, mode: Mode::empty() }
    }

    /// The same, but for what is there already.
    fn without_making(self) -> How {
        How { flags: self.flags.difference(OFlags::CREATE), mode: Mode::empty() }
    }

    fn last(self) -> Last {
        let follows = !self.has(OFlags::NOFOLLOW) && !self.has(OFlags::CREATE | OFlags::EXCL);
        if follows { Last::Follow } else { Last::NoFollow }
    }
}

/// openat2(2)
fn host_open(dir: BorrowedFd<'_>, path: &CStr, how: How, resolve: ResolveFlags) -> Result<OwnedFd> {
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(dir, path, how.flags, how.mode, resolve | ResolveFlags::NO_MAGICLINKS) {
            // A rename crossed a `..`: the host asks to look again.
            Err(rustix::io::Errno::AGAIN) if tries < PATIENCE => tries += 1,
            result => return result.map_err(host::errno),
        }
    }
}

impl Root {
    /// openat(2) inside the root. `flags` and `mode` are the host's.
    ///
    /// # Errors
    /// The errors of openat(2).
    pub fn open(&self, dir: Dir<'_>, path: &CStr, flags: u32, mode: u32) -> Result<Found> {
        self.open_within(dir, path, (flags, mode), ResolveFlags::empty())
    }

    /// Opens an open file once more: `flags` are open(2)'s.
    ///
    /// # Errors
    /// ENOENT if /proc is not mounted; the errors of open(2).
    pub(crate) fn open_again(&self, file: BorrowedFd<'_>, flags: u32) -> Result<OwnedFd> {
        let flags = flags & if flags & O_PATH != 0 { WITH_PATH } else { PASSED };
        let flags = OFlags::from_bits_retain(flags).difference(OFlags::CREATE | OFlags::NOFOLLOW) | OFlags::CLOEXEC;
        let flags = if flags.contains(OFlags::PATH) { flags } else { flags | OFlags::NOCTTY };
        self.again(file, |dir, name| rustix::fs::openat(dir, name, flags, Mode::empty()).map_err(host::errno))
    }

    /// As `open`, with openat2(2)'s flags for the look-up. With RESOLVE_BENEATH or RESOLVE_IN_ROOT,
    /// look-ups start at `dir`, whether the path is absolute or not.
    ///
    /// # Errors
    /// The errors of openat2(2).
    pub fn open_within(
        &self,
        dir: Dir<'_>,
        path: &CStr,
        (flags, mode): (u32, u32),
        resolve: ResolveFlags,
    ) -> Result<Found> {
        let how = How::new(flags, mode);
        let alone = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let resolve = if dir.walked { resolve.difference(ResolveFlags::IN_ROOT) | alone } else { resolve };
        if let Some(table) = &self.table {
            return self.open_in(table, dir, path, how, resolve);
        }
        let open = |dir: BorrowedFd<'_>, path: &CStr, within| host_open(dir, path, how, within | resolve);
        let file = match self.walls {
            Walls::Chroot => open(dir.fd, path, ResolveFlags::empty()),
            // Inside a directory that is inside.
            Walls::Openat2 if resolve.intersects(ResolveFlags::BENEATH | ResolveFlags::IN_ROOT) => {
                open(dir.fd, path, ResolveFlags::empty())
            }
            Walls::Openat2 if path.to_bytes().first() == Some(&b'/') => {
                open(self.directory(), path, ResolveFlags::IN_ROOT)
            }
            Walls::Openat2 => match open(dir.fd, path, ResolveFlags::BENEATH) {
                Err(Errno::EXDEV) => match self.path_below_root(dir.fd, path) {
                    Ok(whole) => open(self.directory(), &whole, ResolveFlags::IN_ROOT),
                    Err(Errno::ENAMETOOLONG) => {
                        let (start, rest) = self.climb(dir.fd, path)?;
                        let opened = open(start.as_fd(), rest, ResolveFlags::BENEATH);
                        opened.map_err(|errno| if errno == Errno::EXDEV { Errno::ENAMETOOLONG } else { errno })
                    }
                    Err(errno) => Err(errno),
                },
                result => result,
            },
        }?;
        Ok(Found { file, mount: MountId::ROOT })
    }

    /// As `open_within`, through the mounts of a table.
    fn open_in(&self, table: &Table, dir: Dir<'_>, path: &CStr, how: How, resolve: ResolveFlags) -> Result<Found> {
        let scoped = resolve.intersects(ResolveFlags::BENEATH | ResolveFlags::IN_ROOT);
        if scoped && !table.is_covered(dir.mount) {
            return self.open_beneath(dir, path, how, resolve);
        }
        // The way from the root to a mount counts.
        let crosses = resolve.contains(ResolveFlags::NO_XDEV) && path.to_bytes().first() == Some(&b'/');
        if let Some((dir, path)) = self.directly(table, dir, path).filter(|_| !scoped && !crosses) {
            match self.open_beneath(dir, path, how, resolve | ResolveFlags::BENEATH) {
                Err(Errno::EXDEV) => {}
                found => return found,
            }
        }
        let way = Way { last: how.last(), resolve };
        let outside = ResolveFlags::BENEATH | ResolveFlags::IN_ROOT;
        let resolve = resolve.difference(outside) | ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let mut tries = 0;
        loop {
            let led = self.lead(table, dir, path, way)?;
            if led.name.is_empty() {
                return self.open_itself(led.at, how);
            }
            match self.open_beneath(led.at.dir(), &led.name, how, resolve) {
                // A file that was not a link when it was looked at has been replaced by one.
                Err(Errno::ELOOP) if way.last == Last::Follow && tries < PATIENCE => tries += 1,
                found => return found,
            }
        }
    }

    /// Opens a file that lies in a mount of the host's.
    fn open_beneath(&self, dir: Dir<'_>, path: &CStr, how: How, resolve: ResolveFlags) -> Result<Found> {
        let fixed = how.changes() && self.check_writable(dir.mount).is_err();
        let how = if fixed { only_read(dir.fd, path, how, resolve)? } else { how };
        let budget = self.table.as_ref().and_then(|table| table.budget(dir.mount));
        let file = match budget.filter(|_| how.has(OFlags::CREATE)) {
            Some(budget) => open_counted(budget, dir.fd, path, how, resolve)?,
            None => host_open(dir.fd, path, how, resolve)?,
        };
        if fixed && how.changes() && is_regular(file.as_fd())? {
            // It was a fifo when it was looked at; another mount may let it be changed.
            return Err(Errno::EROFS);
        }
        if !how.has(OFlags::PATH) {
            check_no_device(file.as_fd())?;
        }
        Ok(Found { file, mount: dir.mount })
    }

    /// Opens a mounted file.
    fn open_itself(&self, file: Found, how: How) -> Result<Found> {
        if how.has(OFlags::CREATE | OFlags::EXCL) {
            return Err(Errno::EEXIST);
        }
        if how.has(OFlags::DIRECTORY) {
            return Err(Errno::ENOTDIR);
        }
        if how.has(OFlags::PATH) {
            return Ok(file);
        }
        let again = self.open_found(file.dir(), how.flags.bits())?;
        Ok(Found { file: again, mount: file.mount })
    }

    /// Opens once more what was opened by a name, as its mount allows.
    ///
    /// # Errors
    /// As for `open_again`; EROFS, and EACCES for devices of mounts.
    pub(crate) fn open_found(&self, file: Dir<'_>, flags: u32) -> Result<OwnedFd> {
        let how = How::new(flags & !O_CREAT, 0);
        if self.table.is_some() && file.mount != MountId::NONE && !how.has(OFlags::PATH) {
            check_no_device(file.fd)?;
            let stat = rustix::fs::fstat(file.fd).map_err(host::errno)?;
            // To write to a fifo changes nothing.
            let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            if how.has(OFlags::TMPFILE) || how.changes() && regular {
                self.check_writable(file.mount)?;
            }
        }
        self.open_again(file.fd, flags)
    }

    /// As `parent`, through the mounts of a table.
    pub(super) fn parent_in<T>(
        &self,
        table: &Table,
        dir: Dir<'_>,
        path: &CStr,
        change: Change,
        act: impl FnOnce(Dir<'_>, &CStr) -> Result<T>,
    ) -> Result<T> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        let act = |dir: Dir<'_>, name: &CStr| {
            self.check_name(table, dir, name, change)?;
            let act = || act(dir, name);
            match (change, table.budget(dir.mount)) {
                (Change::Make, Some(budget)) => budget.changing().make_new((dir.fd, name), act),
                (Change::Remove, Some(budget)) => budget.changing().remove(act),
                _ => act(),
            }
        };
        if let Some((dir, path)) = self.directly(table, dir, path).filter(|(_, path)| *path != c".") {
            let (parent, name) = super::split(path);
            if parent.is_empty() {
                return act(dir, name);
            }
            let parent = std::ffi::CString::new(parent).map_err(|_| Errno::EINVAL)?;
            let how = How { flags: OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, mode: Mode::empty() };
            match host_open(dir.fd, &parent, how, ResolveFlags::BENEATH) {
                Err(Errno::EXDEV) => {}
                found => return act(Dir::new(found?.as_fd(), dir.mount), name),
            }
        }
        let led = self.lead(table, dir, path, Way { last: Last::Name, resolve: ResolveFlags::empty() })?;
        act(led.at.dir(), &led.name)
    }

    fn check_name(&self, table: &Table, dir: Dir<'_>, name: &CStr, change: Change) -> Result<()> {
        match (change, self.check_writable(dir.mount)) {
            (Change::Move, _) => Ok(()),
            (Change::Make, Err(_)) if rustix::fs::statat(dir.fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() => {
                Err(Errno::EEXIST)
            }
            (_, Err(errno)) => Err(errno),
            (Change::Remove, Ok(())) if table.is_point(dir, name) => Err(Errno::EBUSY),
            _ => Ok(()),
        }
    }

    /// renameat2(2), between what [`Root::parent`] found.
    ///
    /// # Errors
    /// EXDEV between mounts, EROFS, EBUSY; what the host says.
    pub fn rename(&self, (from, old): (Dir<'_>, &CStr), (to, new): (Dir<'_>, &CStr), flags: RenameFlags) -> Result<()> {
        self.check_move((from, old), (to, new))?;
        let act = || rustix::fs::renameat_with(from, old, to, new, flags).map_err(host::errno);
        match self.table.as_ref().and_then(|table| table.budget(from.mount)) {
            Some(budget) => budget.changing().rename((from.fd, old), (to.fd, new), flags, act),
            None => act(),
        }
    }

    /// Before a name is moved, or two change places.
    fn check_move(&self, (from, old): (Dir<'_>, &CStr), (to, new): (Dir<'_>, &CStr)) -> Result<()> {
        let Some(table) = &self.table else { return Ok(()) };
        self.check_same(from.mount, to.mount)?;
        self.check_writable(from.mount)?;
        if table.is_point(from, old) || table.is_point(to, new) { Err(Errno::EBUSY) } else { Ok(()) }
    }

    /// Before a file of one mount gets a name in another.
    ///
    /// # Errors
    /// EXDEV.
    pub fn check_same(&self, one: MountId, other: MountId) -> Result<()> {
        if one == other { Ok(()) } else { Err(Errno::EXDEV) }
    }
}

/// Opens what may have to be made, in a mount whose names are counted.
fn open_counted(budget: &Budget, dir: BorrowedFd<'_>, path: &CStr, how: How, resolve: ResolveFlags) -> Result<OwnedFd> {
    for _ in 0..PATIENCE {
        let mut changing = budget.changing();
        let found = match host_open(dir, path, how.look(), resolve) {
            Err(Errno::ENOENT) => return changing.make(|| host_open(dir, path, how, resolve)),
            found => found?,
        };
        let stat = rustix::fs::fstat(&found).map_err(host::errno)?;
        let waits = FileType::from_raw_mode(stat.st_mode) == FileType::Fifo && !how.has(OFlags::EXCL);
        if !waits {
            return host_open(dir, path, how, resolve);
        }
        // Its other end may be opened by somebody who makes a name first.
        drop(changing);
        match host_open(dir, path, how.without_making(), resolve) {
            Err(Errno::ENOENT) => {}
            opened => return opened,
        }
    }
    Err(Errno::EAGAIN)
}

/// How something is opened where nothing can be changed: as it was meant, if that changes nothing.
fn only_read(dir: BorrowedFd<'_>, path: &CStr, how: How, resolve: ResolveFlags) -> Result<How> {
    let found = match host_open(dir, path, how.look(), resolve) {
        Err(Errno::ENOENT) if how.has(OFlags::CREATE) => return Err(Errno::EROFS),
        found => found?,
    };
    if how.has(OFlags::CREATE | OFlags::EXCL) {
        return Err(Errno::EEXIST);
    }
    let stat = rustix::fs::fstat(&found).map_err(host::errno)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if how.has(OFlags::CREATE) && kind == FileType::Directory {
        return Err(Errno::EISDIR);
    }
    if how.has(OFlags::TMPFILE) {
        // Only where the path leads: it may lead out of this mount.
        return Err(if kind == FileType::Directory { Errno::EROFS } else { Errno::ENOTDIR });
    }
    let how = how.without_making();
    match kind {
        FileType::RegularFile if how.changes() => Err(Errno::EROFS),
        FileType::Directory if how.changes() => Err(Errno::EISDIR),
        // The remaining kinds have no length; a file that replaces it before the open may have one,
        // so O_TRUNC is dropped.
        _ => Ok(How { flags: how.flags.difference(OFlags::TRUNC), ..how }),
    }
}

fn is_regular(file: BorrowedFd<'_>) -> Result<bool> {
    let stat = rustix::fs::fstat(file).map_err(host::errno)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

/// Refuses device nodes, which have no effect on a mount.
fn check_no_device(file: BorrowedFd<'_>) -> Result<()> {
    let stat = rustix::fs::fstat(file).map_err(host::errno)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::CharacterDevice | FileType::BlockDevice => Err(Errno::EACCES),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn source(path: &Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    /// The contents of a read-only mount may be changed by another mount, or from outside.
    #[test]
    fn what_becomes_a_file_while_it_is_opened_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("root/shown")).unwrap();
        std::fs::create_dir(path("shown")).unwrap();
        std::fs::write(path("shown/file"), "kept").unwrap();
        std::os::unix::fs::symlink("file", path("shown/link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path("shown/fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let mut table = Table::new(source(&path("root"))).unwrap();
        let point = table.step(&table.top().unwrap(), b"shown").unwrap();
        table.mount(point, b"/shown", source(&path("shown")), true).unwrap();
        let mut root = Root::new(source(&path("root")), Some(folder.path()), Walls::Openat2);
        root.set_table(table, &[]);
        let done = AtomicBool::new(false);
        let mut written = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for name in ["shown/fifo", "shown/link"] {
                        let _ = std::fs::rename(path(name), path("shown/what"));
                        let _ = std::fs::rename(path("shown/what"), path(name));
                    }
                }
            });
            for _ in 0..30_000 {
                let flags = (OFlags::WRONLY | OFlags::NONBLOCK).bits();
                let found = root.open(root.top(), c"/shown/what", flags, 0);
                written += usize::from(found.is_ok());
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(written, 0);
    }
}
