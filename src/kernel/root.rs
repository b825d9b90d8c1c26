//! The root: keeps guest paths inside the guest's root.
//!
//! Two walls can do it, and a system call is written once for both:
//! - **Chroot**: the process has changed its root. The host resolves guest paths as they are.
//! - **Openat2**: openat2(2) confines each look-up. An absolute path starts at the root
//!   (`RESOLVE_IN_ROOT`). A relative one must stay beneath its directory (`RESOLVE_BENEATH`); where
//!   it does not, the directory's own path under the root is put before it and the look-up starts
//!   at the root. Calls that have no such flag act on what was looked up: the object itself
//!   ([`Root::object`]), or the last component in its parent, which they never follow
//!   ([`Root::parent`]).
//!
//! Neither interprets `..` or symbolic links: the host does, so a rename meanwhile cannot lead
//! outside. Behind chroot, a directory that someone *outside* moves out of the root leads out by
//! `..`, as on any Linux.
//!
//! If the host permits no mounts, there may be a table of them ([`table::Table`]) beside the second
//! wall. A path is then led to the mount it ends in ([`walk`]), and the host only resolves paths
//! beneath that mount's source.
//!
//! /proc and /dev are not resolved by the host: `pseudo` finds out which paths lead there before
//! one comes here.

mod budget;
pub mod devices;
mod directory;
mod links;
mod mounts;
mod names;
mod open;
pub mod table;
#[cfg(test)]
mod tests;
mod walk;

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use lind_abi::{Errno, Result};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};

use crate::host;
use crate::host::mounts::Parting;
use devices::Devices;
pub use directory::Directory;
use links::Links;
use table::{Dir, MountId, Table};

/// How often a look-up that met a rename is made again.
const PATIENCE: u32 = 256;

/// Room for the host's list of mounts: mostly enough, so that it is read in one piece.
const MOUNTS: usize = 8 << 10;

/// The mechanism that keeps guests inside the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Walls {
    /// The process has changed its root: host resolution cannot leave it.
    Chroot,
    /// Every look-up is confined by openat2(2).
    Openat2,
}

/// Whether a symbolic link that ends a path is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Last {
    /// The link's target.
    Follow,
    /// The link itself.
    NoFollow,
    /// The name itself in its directory: neither a link nor a mount is followed.
    Name,
}

/// The change that a call makes to a name in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Makes a name.
    Make,
    /// Removes a name.
    Remove,
    /// Moves it, by [`Root::rename`].
    Move,
}

/// The guest's root directory.
pub struct Root {
    directory: OwnedFd,
    walls: Walls,
    /// The names of open files, and a way to reach them again. None where the host has no /proc.
    links: Option<Links>,
    /// Whether a /proc is mounted somewhere inside the root. Its links to open files lead out, and
    /// the memory of this process is in it.
    shows_processes: bool,
    hides: bool,
    devices: Devices,
    parting: Option<Parting>,
    read_only: bool,
    table: Option<Table>,
    /// Further mounts: their paths, and whether they are read-only.
    mounted: Vec<(Vec<u8>, bool)>,
    /// Which of them are the user's, and can be changed.
    volumes: Vec<Vec<u8>>,
    /// Paths where grates keep files of their own.
    in_grates: Vec<Vec<u8>>,
}

impl Root {
    /// The root is `directory`, kept by `walls`; `name` is its name at the host, if known. Has to
    /// be made before the process changes its root, because it opens the device nodes and /proc by
    /// their host names.
    pub fn new(directory: OwnedFd, name: Option<&Path>, walls: Walls) -> Root {
        let links = Links::find();
        let hides = [c"dev", c"proc", c"sys"]
            .iter()
            .any(|name| rustix::fs::statat(&directory, *name, AtFlags::SYMLINK_NOFOLLOW).is_ok());
        let mut root = Root {
            directory,
            walls,
            links,
            shows_processes: false,
            hides,
            devices: Devices::find(),
            parting: None,
            read_only: false,
            table: None,
            mounted: Vec::new(),
            volumes: Vec::new(),
            in_grates: Vec::new(),
        };
        // If it cannot be found out, the slower way is the safe one.
        root.shows_processes = root.contains_proc(name).unwrap_or(true);
        root.set_walls(walls);
        root
    }

    /// Makes sure that the host's directories which are open here lead nowhere else, by `..` for
    /// example; called before the process changes its root. `others` have been detached already.
    ///
    /// # Errors
    /// EPERM without rights over mounts.
    pub fn detach(&mut self, others: &[BorrowedFd<'_>]) -> Result<()> {
        if let Some(links) = &mut self.links {
            links.detach()?;
        }
        let ours = self.links.as_ref().map(Links::directory).into_iter();
        let mounts: Vec<_> = ours.chain(others.iter().copied()).collect();
        self.parting = Parting::of(&mounts);
        Ok(())
    }

    /// Closes what was open only for the walls to be put up.
    pub fn walls_are_up(&mut self) {
        self.devices.close_slaves();
    }

    /// The mounts inside the root that the host does not know: `names` are those of their sources.
    pub fn set_table(&mut self, table: Table, names: &[&Path]) {
        let shows = |name: &&Path| self.contains_proc(Some(name)).unwrap_or(true);
        self.shows_processes = self.shows_processes || names.iter().any(shows);
        self.set_walls(Walls::Openat2);
        self.mounted = table.iter().skip(1).map(|(path, _, read_only)| (path.to_vec(), read_only)).collect();
        self.table = Some(table);
    }

    /// The names in /dev at which the host has mounted something: there the host's files are seen
    /// instead of the kernel's own.
    pub(crate) fn mounted_in_dev(&self) -> impl Iterator<Item = &[u8]> {
        self.mounted.iter().filter(|_| self.table.is_none()).filter_map(|(path, _)| {
            path.strip_prefix(b"/dev/")?.split(|&byte| byte == b'/').next().filter(|name| !name.is_empty())
        })
    }

    /// Sets the mounts inside the root that the host has made: their paths, and whether they are
    /// read-only.
    pub fn set_mounted(&mut self, mounted: Vec<(Vec<u8>, bool)>) {
        self.mounted = mounted;
    }

    /// The mounts inside the root: their paths, and whether they are read-only. If there are any,
    /// the root itself is read-only, unless `/` is among them.
    pub fn mounted(&self) -> &[(Vec<u8>, bool)] {
        &self.mounted
    }

    /// Which of the mounts are directories of the user's that can be changed.
    pub fn set_volumes(&mut self, volumes: Vec<Vec<u8>>) {
        self.volumes = volumes;
    }

    /// See [`Root::set_volumes`].
    pub(crate) fn volumes(&self) -> &[Vec<u8>] {
        &self.volumes
    }

    /// Sets the directories whose files grates of the line keep in memory: to guests they look like
    /// mounts.
    pub fn set_in_grates(&mut self, places: Vec<Vec<u8>>) {
        self.in_grates = places;
    }

    /// See [`Root::set_in_grates`].
    pub fn in_grates(&self) -> &[Vec<u8>] {
        &self.in_grates
    }

    /// The mounts that the kernel keeps itself.
    pub fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    /// Sets the walls that are up by now. Over a root that contains a /proc, chroot is not
    /// sufficient: look-ups are still confined one by one.
    pub fn set_walls(&mut self, walls: Walls) {
        self.walls = if self.shows_processes { Walls::Openat2 } else { walls };
    }

    /// Makes this root read-only from now on: the first cage that is made in it can only read.
    pub fn set_read_only(&mut self) {
        self.read_only = true;
    }

    /// Whether cages can only read.
    pub fn read_only(&self) -> bool {
        self.read_only
    }

    /// Whether /proc is mounted anywhere inside the root.
    fn contains_proc(&self, name: Option<&Path>) -> Option<bool> {
        let name = match name {
            Some(name) => name.as_os_str().as_bytes().to_vec(),
            None => self.host_name(self.directory()).ok()?.into_bytes(),
        };
        if let Ok(points) = host::mounts::procs() {
            return Some(points.iter().any(|point| mounts::at_or_below(point, &name)));
        }
        // mountinfo contains more and takes twice as long to write.
        let mut mounts = Vec::with_capacity(MOUNTS);
        File::open("/proc/thread-self/mounts").ok()?.read_to_end(&mut mounts).ok()?;
        Some(mounts.split(|&byte| byte == b'\n').any(|line| mounts::proc_at_or_below(line, &name)))
    }

    /// The root directory itself.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// The same, to look for something in it.
    pub fn top(&self) -> Dir<'_> {
        Dir::new(self.directory(), MountId::ROOT)
    }

    /// The mechanism that keeps guests inside.
    pub fn walls(&self) -> Walls {
        self.walls
    }

    /// The device nodes that guests may open though they lie outside the root.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Acts on the object a path leads to: `act` gets a directory, a path and `AT_*` flags that
    /// mean it.
    ///
    /// # Errors
    /// The errors of the look-up or of `act`.
    pub fn object<T>(
        &self,
        dir: Dir<'_>,
        path: &CStr,
        last: Last,
        act: impl FnOnce(Dir<'_>, &CStr, AtFlags) -> Result<T>,
    ) -> Result<T> {
        let follow = last == Last::Follow;
        match self.walls {
            Walls::Chroot if !dir.walked => {
                act(dir, path, if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW })
            }
            _ => {
                let flags = OFlags::PATH | if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
                let object = self.open(dir, path, flags.bits(), 0)?;
                act(object.dir(), c"", AtFlags::EMPTY_PATH)
            }
        }
    }

    /// As `object`, for calls that change the object.
    ///
    /// # Errors
    /// As for `object`; EROFS.
    pub fn change<T>(
        &self,
        dir: Dir<'_>,
        path: &CStr,
        last: Last,
        act: impl FnOnce(Dir<'_>, &CStr, AtFlags) -> Result<T>,
    ) -> Result<T> {
        self.object(dir, path, last, |dir, name, at| {
            self.check_writable(dir.mount)?;
            act(dir, name, at)
        })
    }

    /// Fails if the mount `mount` is read-only; called before a file found by it is changed. The
    /// host itself guards its own mounts.
    ///
    /// # Errors
    /// EROFS.
    #[inline]
    pub fn check_writable(&self, mount: MountId) -> Result<()> {
        match &self.table {
            Some(table) if table.is_read_only(mount) => Err(Errno::EROFS),
            _ => Ok(()),
        }
    }

    /// How many names there may be in a mount, and how many more than there are. None where
    /// nothing counts them.
    pub fn names(&self, mount: MountId) -> Option<(u64, u64)> {
        self.table.as_ref()?.budget(mount).map(|budget| budget.changing().room())
    }

    /// Before an extended attribute of what was found by a mount is changed.
    ///
    /// # Errors
    /// EROFS; EOPNOTSUPP where the names are counted.
    pub fn check_attributes(&self, mount: MountId) -> Result<()> {
        self.check_writable(mount)?;
        match self.table.as_ref().and_then(|table| table.budget(mount)) {
            Some(_) => Err(Errno::EOPNOTSUPP),
            None => Ok(()),
        }
    }

    /// Acts on the last component of a path, for calls that never follow it: `act` gets a directory
    /// and the name in it, trailing slashes included. If the name is `.`, `..` or `/` such calls
    /// fail and act on nothing.
    ///
    /// # Errors
    /// The errors of the look-up of the directory or of `act`; ENOENT for an empty path; EROFS, and
    /// EBUSY for a name that a mount covers.
    pub fn parent<T>(
        &self,
        dir: Dir<'_>,
        path: &CStr,
        change: Change,
        act: impl FnOnce(Dir<'_>, &CStr) -> Result<T>,
    ) -> Result<T> {
        if self.walls == Walls::Chroot {
            return act(dir, path);
        }
        if let Some(table) = &self.table {
            return self.parent_in(table, dir, path, change, act);
        }
        let (parent, name) = split(path);
        match parent {
            [] if name.is_empty() => Err(Errno::ENOENT),
            [] => act(dir, name),
            parent => {
                let parent = std::ffi::CString::new(parent).map_err(|_| Errno::EINVAL)?;
                let parent = self.open(dir, &parent, (OFlags::PATH | OFlags::DIRECTORY).bits(), 0)?;
                act(parent.dir(), name)
            }
        }
    }

    /// Reaches an open file by a name: `act` gets a directory and the name of a link in it that
    /// leads to the file.
    ///
    /// # Errors
    /// ENOENT if /proc is not mounted; the errors of `act`.
    pub fn again<T>(&self, file: BorrowedFd<'_>, act: impl FnOnce(BorrowedFd<'_>, &CStr) -> Result<T>) -> Result<T> {
        self.links.as_ref().ok_or(Errno::ENOENT)?.again(file, act)
    }

    /// Whether an open directory is the root itself.
    pub(crate) fn is_top(&self, dir: Dir<'_>) -> bool {
        dir.mount == MountId::ROOT && identity(dir.fd).is_ok_and(|id| Ok(id) == identity(self.directory()))
    }

    /// Whether the root has a /dev or /proc of its own, which the kernel's hide.
    pub(crate) fn hides_any(&self) -> bool {
        self.hides
    }

    /// Whether there is a symbolic link on the way of a path, as far as it exists. A component that
    /// leads out of a directory that may not be left counts as one.
    pub(crate) fn crosses_link(&self, dir: Dir<'_>, path: &CStr) -> bool {
        let absolute = path.to_bytes().first() == Some(&b'/');
        let (dir, path, within) = match (self.walls, &self.table) {
            (_, Some(table)) => match self.directly(table, dir, path) {
                Some((dir, path)) => (dir.fd, path, ResolveFlags::BENEATH),
                None => return true,
            },
            (Walls::Chroot, _) => (dir.fd, path, ResolveFlags::empty()),
            (Walls::Openat2, _) if absolute => (self.directory(), path, ResolveFlags::IN_ROOT),
            (Walls::Openat2, _) => (dir.fd, path, ResolveFlags::BENEATH),
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = rustix::fs::openat2(dir, path, flags, Mode::empty(), within | ResolveFlags::NO_SYMLINKS);
        matches!(found, Err(rustix::io::Errno::LOOP | rustix::io::Errno::XDEV | rustix::io::Errno::AGAIN))
    }

    /// Refuses a file that shows the host's processes, in case the root contains a /proc.
    ///
    /// # Errors
    /// EACCES.
    #[inline]
    pub fn check_opened(&self, file: BorrowedFd<'_>) -> Result<()> {
        const PROC_SUPER_MAGIC: i64 = 0x9fa0;
        if !self.shows_processes {
            return Ok(());
        }
        match rustix::fs::fstatfs(file) {
            Ok(stat) if stat.f_type == PROC_SUPER_MAGIC => Err(Errno::EACCES),
            _ => Ok(()),
        }
    }
}

/// Whether two directories are the same, found by the same mount.
pub(crate) fn is_same(one: Dir<'_>, other: Dir<'_>) -> bool {
    one.mount == other.mount && identity(one.fd).is_ok_and(|id| Ok(id) == identity(other.fd))
}

/// The device and inode of an open file.
fn identity(file: BorrowedFd<'_>) -> Result<(u64, u64)> {
    let stat = rustix::fs::fstat(file).map_err(host::errno)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// The directory part of a path, up to its last slash, and the last component with the slashes
/// after it.
fn split(path: &CStr) -> (&[u8], &CStr) {
    let bytes = path.to_bytes_with_nul();
    let end = path.to_bytes().iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let start = bytes[..end].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let name = CStr::from_bytes_with_nul(&bytes[start..]).expect("the tail of a C string is one");
    // Nothing but slashes: the root, in itself.
    let parent = if end == 0 { path.to_bytes() } else { &bytes[..start] };
    (parent, name)
}
