//! How guest paths are kept inside the guest's root.
//!
//! Two walls can do it, and a system call is written once for both:
//! - **Chroot**: the process has changed its root. The host resolves guest paths as they are.
//! - **Openat2**: openat2(2) confines each look-up. An absolute path starts at the root (`RESOLVE_IN_ROOT`). A relative one
//!   must stay beneath its directory (`RESOLVE_BENEATH`); where it does not, the directory's own path
//!   under the root is put before it and the look-up starts at the root. Calls that have no such flag act on what was looked
//!   up: the object itself ([`Root::object`]), or the last component in its parent, which they
//!   never follow ([`Root::parent`]).
//!
//! Nothing here interprets `..` or symbolic links: the host does, so a rename meanwhile cannot lead outside.
//! Behind chroot, a directory that someone *outside* moves out of the root leads out by `..`, as on any Linux.
//!
//! /proc and /dev are not the host's business: `pseudo` finds out which paths lead there before one comes here.

pub mod devices;
mod directory;
mod links;
mod mounts;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use lind_abi::{Errno, Result};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};

use crate::host::mounts::Parting;
use crate::host::{self, PATH_MAX};
use devices::Devices;
pub use directory::Directory;
use links::Links;

/// How often a look-up that met a rename is made again.
const PATIENCE: u32 = 256;

/// Room for what the host says about mounts: mostly enough, so that it is read in one piece.
const MOUNTS: usize = 8 << 10;

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
/// What open(2) looks at beside O_PATH: O_DIRECTORY and O_NOFOLLOW.
const WITH_PATH: u32 = O_PATH | 0o200_000 | 0o400_000;

/// What keeps guests inside the root.
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
    /// The link's target is meant.
    Follow,
    /// The link itself is meant.
    NoFollow,
}

/// The guest's root directory.
pub struct Root {
    directory: OwnedFd,
    walls: Walls,
    /// The names of open files, and a way to reach them again. None where the host has no /proc.
    links: Option<Links>,
    /// Whether a /proc is mounted somewhere inside the root. Its links to open files lead out, and the memory of this
    /// process is in it.
    shows_processes: bool,
    hides: bool,
    devices: Devices,
    parting: Option<Parting>,
    read_only: bool,
}

impl Root {
    /// The root is `directory`, kept by `walls`; its name at the host, if that is known. To be made before the process changes its root, because it opens
    /// the device nodes and /proc by their host names.
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
        };
        // Where it cannot be known, the slower way is the safe one.
        root.shows_processes = root.contains_proc(name).unwrap_or(true);
        root.set_walls(walls);
        root
    }

    /// Makes sure that the host's directories which are open here lead nowhere else, by `..` for example: to be called before the process
    /// changes its root. `others` have been detached already.
    ///
    /// # Errors
    /// EPERM without rights over mounts.
    pub fn detach(&mut self, others: Option<BorrowedFd<'_>>) -> Result<()> {
        if let Some(links) = &mut self.links {
            links.detach()?;
        }
        self.devices.detach()?;
        let ours = self.links.as_ref().map(Links::directory).into_iter().chain(self.devices.slaves());
        let mounts: Vec<_> = ours.chain(others).collect();
        self.parting = Parting::of(&mounts);
        Ok(())
    }

    /// Says which walls have been put up since. Over a root with a /proc inside, chroot is not trusted: look-ups are
    /// confined one by one all the same.
    pub fn set_walls(&mut self, walls: Walls) {
        self.walls = if self.shows_processes { Walls::Openat2 } else { walls };
    }

    /// From now on nothing is changed by way of this root: a first cage that is made in it can only read.
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
        // mountinfo says more and takes twice as long to write.
        let mut mounts = Vec::with_capacity(MOUNTS);
        File::open("/proc/thread-self/mounts").ok()?.read_to_end(&mut mounts).ok()?;
        Some(mounts.split(|&byte| byte == b'\n').any(|line| mounts::proc_at_or_below(line, &name)))
    }

    /// The root directory itself.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// What keeps guests inside.
    pub fn walls(&self) -> Walls {
        self.walls
    }

    /// The device nodes that guests may open though they lie outside the root.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// openat(2) inside the root. `flags` and `mode` are the host's.
    ///
    /// # Errors
    /// What openat(2) says.
    pub fn open(&self, dir: BorrowedFd<'_>, path: &CStr, flags: u32, mode: u32) -> Result<OwnedFd> {
        self.open_within(dir, path, (flags, mode), ResolveFlags::empty())
    }

    /// Acts on the object a path leads to: `act` gets a directory, a path and `AT_*` flags that mean it.
    ///
    /// # Errors
    /// What the look-up or `act` says.
    pub fn object<T>(
        &self,
        dir: BorrowedFd<'_>,
        path: &CStr,
        last: Last,
        act: impl FnOnce(BorrowedFd<'_>, &CStr, AtFlags) -> Result<T>,
    ) -> Result<T> {
        let follow = last == Last::Follow;
        match self.walls {
            Walls::Chroot => act(dir, path, if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW }),
            Walls::Openat2 => {
                let flags = OFlags::PATH | if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
                let object = self.open(dir, path, flags.bits(), 0)?;
                act(object.as_fd(), c"", AtFlags::EMPTY_PATH)
            }
        }
    }

    /// Acts on the last component of a path, for calls that never follow it: `act` gets a directory and the
    /// name in it, trailing slashes included. Where the name is `.`, `..` or `/` such calls fail and act on nothing.
    ///
    /// # Errors
    /// What the look-up of the directory or `act` says; ENOENT for an empty path.
    pub fn parent<T>(
        &self,
        dir: BorrowedFd<'_>,
        path: &CStr,
        act: impl FnOnce(BorrowedFd<'_>, &CStr) -> Result<T>,
    ) -> Result<T> {
        if self.walls == Walls::Chroot {
            return act(dir, path);
        }
        let (parent, name) = split(path);
        match parent {
            [] if name.is_empty() => Err(Errno::ENOENT),
            [] => act(dir, name),
            parent => {
                let parent = CString::new(parent).map_err(|_| Errno::EINVAL)?;
                let parent = self.open(dir, &parent, (OFlags::PATH | OFlags::DIRECTORY).bits(), 0)?;
                act(parent.as_fd(), name)
            }
        }
    }

    /// The path of an open directory, as a guest would spell it. A rename may make it untrue at any time.
    ///
    /// # Errors
    /// ENOENT when it has been removed or moved out of the root.
    pub fn path_of(&self, dir: BorrowedFd<'_>) -> Result<CString> {
        self.below_root(self.host_path(dir)?)
    }

    /// The path of an open file inside the root, as a guest would spell it, and ` (deleted)` behind that of one that has
    /// been removed. Like any path it may be untrue by now.
    ///
    /// # Errors
    /// ENOENT when it has been moved out of the root.
    pub fn name_of(&self, file: BorrowedFd<'_>) -> Result<Vec<u8>> {
        self.below_root(self.host_name(file)?).map(CString::into_bytes)
    }

    /// As `name_of`, having made sure that the name led to this very file.
    ///
    /// # Errors
    /// ENOENT when it is outside, has been removed, or has another name by now.
    pub fn certain_name_of(&self, file: BorrowedFd<'_>) -> Result<Vec<u8>> {
        let name = CString::new(self.name_of(file)?).map_err(|_| Errno::ENOENT)?;
        let found = self.open(self.directory(), &name, (OFlags::PATH | OFlags::NOFOLLOW).bits(), 0)?;
        if identity(found.as_fd())? == identity(file)? { Ok(name.into_bytes()) } else { Err(Errno::ENOENT) }
    }

    /// What the host calls an open file.
    fn host_name(&self, file: BorrowedFd<'_>) -> Result<CString> {
        self.again(file, |links, name| rustix::fs::readlinkat(links, name, Vec::new()).map_err(host::errno))
    }

    /// A path of the host's, as seen from the root.
    fn below_root(&self, path: CString) -> Result<CString> {
        let mut whole = path.into_bytes();
        if self.walls == Walls::Openat2 {
            let root = self.host_path(self.directory())?.into_bytes();
            let shared = if root == b"/" { 0 } else { root.len() };
            if whole.get(..shared) != Some(&root[..shared]) {
                return Err(Errno::ENOENT);
            }
            whole.drain(..shared);
        }
        match whole.first() {
            None => Ok(c"/".to_owned()),
            Some(b'/') => CString::new(whole).map_err(|_| Errno::ENOENT),
            // `/rooted` is not in `/root`; and what the process's root cannot reach, the host says is unreachable.
            Some(_) => Err(Errno::ENOENT),
        }
    }

    /// The path of an open directory, having made sure that it led there.
    fn certain_path_of(&self, dir: BorrowedFd<'_>) -> Result<CString> {
        let id = identity(dir)?;
        for _ in 0..PATIENCE {
            let path = self.path_of(dir)?;
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
    fn path_below_root(&self, dir: BorrowedFd<'_>, path: &CStr) -> Result<CString> {
        let start = self.certain_path_of(dir)?;
        let whole = [start.to_bytes(), b"/", path.to_bytes()].concat();
        if whole.len() >= PATH_MAX { Err(Errno::ENAMETOOLONG) } else { CString::new(whole).map_err(|_| Errno::EINVAL) }
    }

    /// Follows the dots that a path begins with, from a directory too deep to have a path. Returns where they lead and
    /// the rest of the path.
    ///
    /// # Errors
    /// ENOENT when the directory is outside; what opening says.
    fn climb<'p>(&self, dir: BorrowedFd<'_>, path: &'p CStr) -> Result<(OwnedFd, &'p CStr)> {
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

    /// Reaches an open file by a name: `act` gets a directory and the name of a link in it that leads to the file.
    ///
    /// # Errors
    /// ENOENT where /proc is not mounted; what `act` says.
    pub fn again<T>(&self, file: BorrowedFd<'_>, act: impl FnOnce(BorrowedFd<'_>, &CStr) -> Result<T>) -> Result<T> {
        self.links.as_ref().ok_or(Errno::ENOENT)?.again(file, act)
    }

    /// Opens an open file once more: `flags` are open(2)'s.
    ///
    /// # Errors
    /// ENOENT where /proc is not mounted; what open(2) says.
    pub(crate) fn open_again(&self, file: BorrowedFd<'_>, flags: u32) -> Result<OwnedFd> {
        let flags = flags & if flags & O_PATH != 0 { WITH_PATH } else { PASSED };
        let flags = OFlags::from_bits_retain(flags).difference(OFlags::CREATE | OFlags::NOFOLLOW) | OFlags::CLOEXEC;
        let flags = if flags.contains(OFlags::PATH) { flags } else { flags | OFlags::NOCTTY };
        self.again(file, |dir, name| rustix::fs::openat(dir, name, flags, Mode::empty()).map_err(host::errno))
    }

    /// Whether an open directory is the root itself.
    pub(crate) fn is_top(&self, dir: BorrowedFd<'_>) -> bool {
        identity(dir).is_ok_and(|id| Ok(id) == identity(self.directory()))
    }

    /// Whether the root has a /dev or /proc of its own, which the kernel's hide.
    pub(crate) fn hides_any(&self) -> bool {
        self.hides
    }

    /// Whether there is a symbolic link on the way of a path, as far as it exists. What leads out of a directory that may not
    /// be left counts as one.
    pub(crate) fn crosses_link(&self, dir: BorrowedFd<'_>, path: &CStr) -> bool {
        let absolute = path.to_bytes().first() == Some(&b'/');
        let (dir, within) = match self.walls {
            Walls::Chroot => (dir, ResolveFlags::empty()),
            Walls::Openat2 if absolute => (self.directory(), ResolveFlags::IN_ROOT),
            Walls::Openat2 => (dir, ResolveFlags::BENEATH),
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = rustix::fs::openat2(dir, path, flags, Mode::empty(), within | ResolveFlags::NO_SYMLINKS);
        matches!(found, Err(rustix::io::Errno::LOOP | rustix::io::Errno::XDEV | rustix::io::Errno::AGAIN))
    }

    /// Refuses a file that tells of the host's processes, should the root contain a /proc.
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

    /// Where the host says a directory is.
    fn host_path(&self, dir: BorrowedFd<'_>) -> Result<CString> {
        match host::place::path(dir) {
            // One that may not be entered any more has a path all the same.
            Err(Errno::EACCES) if rustix::fs::fstat(dir).is_ok_and(|stat| stat.st_nlink > 0) => self.host_name(dir),
            path => path,
        }
    }

    /// As `open`, with openat2(2)'s flags for the look-up. What does not leave `dir` starts there, absolute or not.
    ///
    /// # Errors
    /// What openat2(2) says.
    pub fn open_within(
        &self,
        dir: BorrowedFd<'_>,
        path: &CStr,
        (flags, mode): (u32, u32),
        resolve: ResolveFlags,
    ) -> Result<OwnedFd> {
        let flags = flags & if flags & O_PATH != 0 { WITH_PATH } else { PASSED };
        let creates = flags & O_CREAT != 0 || flags & O_TMPFILE == O_TMPFILE;
        let mode = Mode::from_raw_mode(if creates { mode & 0o7777 } else { 0 });
        // A terminal must not become the runner's own.
        let flags = OFlags::from_bits_retain(flags) | OFlags::CLOEXEC;
        let flags = if flags.contains(OFlags::PATH) { flags } else { flags | OFlags::NOCTTY };
        let open = |dir: BorrowedFd<'_>, path: &CStr, within: ResolveFlags| {
            let mut tries = 0;
            loop {
                match rustix::fs::openat2(dir, path, flags, mode, within | resolve | ResolveFlags::NO_MAGICLINKS) {
                    // A rename crossed a `..`: the host asks to look again.
                    Err(rustix::io::Errno::AGAIN) if tries < PATIENCE => tries += 1,
                    result => return result.map_err(host::errno),
                }
            }
        };
        match self.walls {
            Walls::Chroot => open(dir, path, ResolveFlags::empty()),
            // Inside a directory that is inside.
            Walls::Openat2 if resolve.intersects(ResolveFlags::BENEATH | ResolveFlags::IN_ROOT) => {
                open(dir, path, ResolveFlags::empty())
            }
            Walls::Openat2 if path.to_bytes().first() == Some(&b'/') => {
                open(self.directory(), path, ResolveFlags::IN_ROOT)
            }
            Walls::Openat2 => match open(dir, path, ResolveFlags::BENEATH) {
                Err(Errno::EXDEV) => match self.path_below_root(dir, path) {
                    Ok(whole) => open(self.directory(), &whole, ResolveFlags::IN_ROOT),
                    Err(Errno::ENAMETOOLONG) => {
                        let (start, rest) = self.climb(dir, path)?;
                        let opened = open(start.as_fd(), rest, ResolveFlags::BENEATH);
                        opened.map_err(|errno| if errno == Errno::EXDEV { Errno::ENAMETOOLONG } else { errno })
                    }
                    Err(errno) => Err(errno),
                },
                result => result,
            },
        }
    }
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

/// Which file an open file is.
fn identity(file: BorrowedFd<'_>) -> Result<(u64, u64)> {
    let stat = rustix::fs::fstat(file).map_err(host::errno)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// The directory part of a path, up to its last slash, and the last component with the slashes after it.
fn split(path: &CStr) -> (&[u8], &CStr) {
    let bytes = path.to_bytes_with_nul();
    let end = path.to_bytes().iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let start = bytes[..end].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let name = CStr::from_bytes_with_nul(&bytes[start..]).expect("the tail of a C string is one");
    // Nothing but slashes: the root, in itself.
    let parent = if end == 0 { path.to_bytes() } else { &bytes[..start] };
    (parent, name)
}
