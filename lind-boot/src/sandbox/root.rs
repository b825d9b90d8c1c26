//! The guest's root, built from mounts. Where the host permits it, they are made in a mount
//! namespace of the runner: the host resolves paths, so a mount costs nothing per call. Elsewhere
//! the kernel crate keeps them ([`super::table`]).
//!
//! At the top is a file system in memory, which is read-only once all is mounted. It has the
//! entries of the image, read-only, the volumes of `-v`, and directories for /tmp and the home
//! directory; no other file of the host is in it. No symbolic link on the way to a mount point is
//! followed: a program of an earlier run may have created it.

use std::ffi::OsStr;
use std::io::PipeWriter;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount, open_tree,
};

use super::amount::Kind;
use super::image::{self, Entry, What};
use super::options::How;
use super::table::{self, Kept};
use super::volume::{TMPFS_SIZE, Tmpfs, Volume};
use crate::limits;

/// The mounts of a root.
pub struct Plan {
    /// The directory whose entries are the guest's root, read-only.
    pub image: PathBuf,
    /// Directories in memory, empty at first, in which the guest may change everything.
    pub scratch: Vec<PathBuf>,
    /// File systems in memory with sizes of their own.
    pub tmpfs: Vec<Tmpfs>,
    /// Directories and files of the host, in this order: a later one may be inside an earlier one.
    pub volumes: Vec<Volume>,
    /// Directories in volumes that the guest sees empty.
    pub hidden: Vec<PathBuf>,
}

/// The makers of mounts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Maker {
    /// The host, in a mount namespace that this process has entered.
    Host,
    /// The kernel crate.
    Kernel,
}

impl Maker {
    /// Chooses the maker: the one that the option names, or else the host if it can.
    ///
    /// # Errors
    /// When the host is named and permits no mounts.
    pub fn choose(how: How) -> Result<Maker> {
        match how {
            How::Kernel => Ok(Maker::Kernel),
            How::Bind => enter_namespace().map(|()| Maker::Host),
            How::Auto => Ok(if enter_namespace().is_ok() { Maker::Host } else { Maker::Kernel }),
        }
    }
}

/// A root that has been made.
pub struct Made {
    /// Its path.
    pub root: PathBuf,
    /// The mounts in it.
    pub mounts: Mounts,
    /// The root exists until this is closed.
    pub keeps: Option<PipeWriter>,
}

/// The mounts in a root.
#[derive(Default)]
pub enum Mounts {
    /// No known mounts.
    #[default]
    None,
    /// Mounts of the host: the path of each, and whether it is read-only.
    Host(Vec<(Vec<u8>, bool)>),
    /// Mounts that the kernel crate shall keep.
    Kernel(Box<Kept>),
}

/// Makes the root.
///
/// # Errors
/// A mount that the host refuses, or that is impossible.
pub fn build(plan: &Plan, maker: Maker) -> Result<Made> {
    // All entries of the image are open at once.
    limits::raise_files();
    match maker {
        Maker::Host => bind(plan),
        Maker::Kernel => table::build(plan),
    }
    .map_err(limits::explain)
}

/// Mounts the root over the image, in this process's namespace alone.
fn bind(plan: &Plan) -> Result<Made> {
    let volumes = plan
        .volumes
        .iter()
        .map(|volume| tree(&volume.host, volume.read_only).with_context(|| format!("-v {}", volume.host.display())))
        .collect::<Result<Vec<_>>>()?;
    let parts = image::parts(&plan.image, &plan.scratch, plan.mounted().map(|(path, _)| path))?;
    let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
    let trees = parts.iter().filter(|part| matches!(part.what, What::Tree(..))).map(|part| (bytes(&part.path), true));
    let mounted = trees.chain(plan.mounted().map(|(path, read_only)| (bytes(path), read_only))).collect();
    memory(&plan.image, TMPFS_SIZE)?;
    let top = open(CWD, &plan.image)?;
    for part in parts {
        let path = part.path.clone();
        place(part, &top).with_context(|| format!("image {}: {}", plan.image.display(), path.display()))?;
    }
    for path in &plan.scratch {
        let at = make(&top, path, FileType::Directory, &ByHost)?;
        rustix::fs::fchmod(again(&at)?, Mode::from_raw_mode(0o1777))?;
        let tree = open_tree(&at, c"", CLONE)?;
        lind_kernel::restrict_mount(tree.as_fd(), false, false)?;
        attach(&tree, &at)?;
    }
    for mount in plan.mounts() {
        match mount {
            Mount::Volume(number) => {
                let (volume, (tree, kind)) = (&plan.volumes[number], &volumes[number]);
                make(&top, &volume.guest, *kind, &ByHost)
                    .and_then(|at| Ok(attach(tree, &at)?))
                    .with_context(|| format!("cannot mount {} at {}", volume.host.display(), volume.guest.display()))?;
            }
            Mount::Hidden(path) => {
                make(&top, path, FileType::Directory, &ByHost)?;
                memory(&at_path(plan, path)?, "4k").with_context(|| format!("{}", path.display()))?;
                lind_kernel::restrict_mount(open(CWD, &at_path(plan, path)?)?.as_fd(), true, false)?;
            }
            Mount::Memory(tmpfs) => {
                make(&top, &tmpfs.guest, FileType::Directory, &ByHost)?;
                let place = at_path(plan, &tmpfs.guest)?;
                memory(&place, &tmpfs.size).with_context(|| format!("--tmpfs {}", tmpfs.guest.display()))?;
                std::fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o1777))?;
            }
        }
    }
    lind_kernel::restrict_mount(top.as_fd(), true, false)?;
    Ok(Made { root: plan.image.clone(), mounts: Mounts::Host(mounted), keeps: None })
}

/// A mount over the image.
pub(super) enum Mount<'a> {
    /// A volume, by its number.
    Volume(usize),
    /// An empty directory that hides one of a volume.
    Hidden(&'a Path),
    /// A file system in memory.
    Memory(&'a Tmpfs),
}

impl Plan {
    /// The mounts, outer before inner, whatever their order on the line. Of several at one path the
    /// last is visible.
    pub(super) fn mounts(&self) -> Vec<Mount<'_>> {
        let volumes = self.volumes.iter().enumerate().map(|(number, volume)| (&volume.guest, Mount::Volume(number)));
        let memory = self.tmpfs.iter().map(|tmpfs| (&tmpfs.guest, Mount::Memory(tmpfs)));
        let hidden = self.hidden.iter().map(|path| (path, Mount::Hidden(path)));
        let mut all: Vec<_> = volumes.chain(memory).chain(hidden).collect();
        all.sort_by_key(|(guest, _)| guest.components().count());
        all.into_iter().map(|(_, mount)| mount).collect()
    }

    /// The paths of all mounts over the image, and whether each is read-only.
    pub(super) fn mounted(&self) -> impl Iterator<Item = (&Path, bool)> {
        let scratch = self.scratch.iter().map(|path| (path.as_path(), false));
        scratch.chain(self.mounts().into_iter().map(|mount| match mount {
            Mount::Volume(number) => (self.volumes[number].guest.as_path(), self.volumes[number].read_only),
            Mount::Hidden(path) => (path, true),
            Mount::Memory(tmpfs) => (tmpfs.guest.as_path(), false),
        }))
    }
}

/// The path of a guest path while the root is being built.
fn at_path(plan: &Plan, guest: &Path) -> Result<PathBuf> {
    Ok(plan.image.join(guest.strip_prefix("/")?))
}

/// The flags for copying a mount, with the mounts below it.
const CLONE: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE
    .union(OpenTreeFlags::OPEN_TREE_CLOEXEC)
    .union(OpenTreeFlags::AT_EMPTY_PATH)
    .union(OpenTreeFlags::AT_RECURSIVE);

/// Enters a new mount namespace, in a user namespace if that is necessary. Mounts in it stay in it.
fn enter_namespace() -> Result<()> {
    if crate::confine::unshare_mounts(false).is_err() {
        crate::confine::unshare_mounts(true).map_err(|error| {
            anyhow!(
                "the host permits neither mounts nor user namespaces ({error:#}): use --mounts=kernel, or run as root, or allow user \
                 namespaces (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
            )
        })?;
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .context("cannot make the mounts private")?;
    Ok(())
}

/// The bytes of size for each of which a file system in memory may have one file. The host counts a
/// file, and each KiB of extended attributes, as one inode, of about a KiB of memory: so inodes add
/// at most a quarter to the size.
const BYTES_PER_FILE: u64 = 4096;

/// The fewest files that such a file system may have.
const FEWEST_FILES: u64 = 64;

/// For how many files a directory in memory of this size has room.
pub(super) fn files_within(size: &str) -> Result<u64> {
    let bytes = Kind::Bytes.parse(size).with_context(|| format!("{size}: not a size"))?;
    Ok((bytes / BYTES_PER_FILE).max(FEWEST_FILES))
}

/// Mounts a file system in memory at a directory.
fn memory(at: &Path, size: &str) -> Result<()> {
    let files = files_within(size)?;
    let data = std::ffi::CString::new(format!("size={size},nr_inodes={files},mode=0755"))?;
    mount("tmpfs", at, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(data.as_c_str()))
        .context("cannot mount a tmpfs")
}

pub(super) fn open(dir: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(dir, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a directory again, to list or change it.
pub(super) fn again(directory: impl AsFd) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(directory, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Copies the mounts at a host path without attaching them, and returns the kind of file there.
fn tree(host: &Path, read_only: bool) -> Result<(OwnedFd, FileType)> {
    let source = open(CWD, host)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&source)?.st_mode);
    let kind = if kind == FileType::Directory { kind } else { FileType::RegularFile };
    let tree = open_tree(&source, c"", CLONE)?;
    lind_kernel::restrict_mount(tree.as_fd(), read_only, true)?;
    Ok((tree, kind))
}

fn attach(tree: &OwnedFd, at: &OwnedFd) -> rustix::io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, c"", at, c"", flags)
}

/// Puts a part of the image at its path.
fn place(entry: Entry, top: &OwnedFd) -> Result<()> {
    let path = &entry.path;
    match entry.what {
        What::Link(text) => link(top, path, &text, &ByHost),
        What::Opened(mode) => directory(top, path, mode, &ByHost),
        What::Tree(file, kind) => {
            let tree = match open_tree(&file, c"", CLONE) {
                // The file was removed after the image was listed.
                Err(rustix::io::Errno::NOENT) => return Ok(()),
                tree => tree?,
            };
            drop(file);
            lind_kernel::restrict_mount(tree.as_fd(), true, true)?;
            match attach(&tree, &make(top, path, kind, &ByHost)?) {
                // The host refuses a source that was removed after the copy. Its mount point is
                // removed, too.
                Err(rustix::io::Errno::NOENT) => {
                    let flags = if kind == FileType::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                    Ok(rustix::fs::unlinkat(top, path.strip_prefix("/")?, flags)?)
                }
                attached => Ok(attached?),
            }
        }
    }
}

/// Walks from a directory to its entries, and creates missing ones.
pub(super) trait Steps {
    /// A directory or file.
    type At: AsFd;
    /// Opens the entry `name`; no symbolic link is followed.
    fn step(&self, dir: &Self::At, name: &OsStr) -> rustix::io::Result<Self::At>;
    /// Makes a directory or an empty file.
    fn create(&self, dir: &Self::At, name: &OsStr, directory: bool) -> rustix::io::Result<()>;
    /// Duplicates a directory.
    fn copy(&self, dir: &Self::At) -> Result<Self::At>;
}

struct ByHost;

impl Steps for ByHost {
    type At = OwnedFd;

    fn step(&self, dir: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        rustix::fs::openat2(dir, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
    }

    fn create(&self, dir: &OwnedFd, name: &OsStr, directory: bool) -> rustix::io::Result<()> {
        if directory {
            return rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o755));
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o644)).map(drop)
    }

    fn copy(&self, dir: &OwnedFd) -> Result<OwnedFd> {
        Ok(dir.try_clone()?)
    }
}

/// Opens the directory or file at a guest path. It is created if it is missing, with the
/// directories on its way, where that is permitted.
pub(super) fn make<S: Steps>(top: &S::At, path: &Path, kind: FileType, steps: &S) -> Result<S::At> {
    let names: Vec<&OsStr> = path.strip_prefix("/")?.iter().collect();
    let mut at = steps.copy(top)?;
    for (number, name) in names.iter().enumerate() {
        let last = number + 1 == names.len();
        let directory = !last || kind == FileType::Directory;
        let next = match steps.step(&at, name) {
            Err(rustix::io::Errno::NOENT) => {
                steps.create(&at, name, directory).map_err(|error| hidden(path, name, error))?;
                steps.step(&at, name)
            }
            found => found,
        };
        at = next.map_err(|error| hidden(path, name, error))?;
        let found = FileType::from_raw_mode(rustix::fs::fstat(&at)?.st_mode);
        if (found == FileType::Directory) != directory {
            bail!("{}: a directory and a file cannot be mounted on each other", path.display());
        }
    }
    Ok(at)
}

/// Makes a directory at a guest path, with these permissions.
pub(super) fn directory<S: Steps>(top: &S::At, path: &Path, mode: Mode, steps: &S) -> Result<()> {
    Ok(rustix::fs::fchmod(again(make(top, path, FileType::Directory, steps)?)?, mode)?)
}

/// Creates a symbolic link at a guest path whose directory exists.
pub(super) fn link<S: Steps>(top: &S::At, path: &Path, text: &[u8], steps: &S) -> Result<()> {
    let (parent, name) = path.parent().zip(path.file_name()).context("a link has a name")?;
    Ok(rustix::fs::symlinkat(text, make(top, parent, FileType::Directory, steps)?, name)?)
}

/// An error that says why a mount point cannot be created.
fn hidden(path: &Path, name: &OsStr, error: rustix::io::Errno) -> anyhow::Error {
    let (path, name) = (path.display(), Path::new(name).display());
    match error {
        rustix::io::Errno::LOOP => anyhow!("{path}: {name} is a symbolic link; name the path that it leads to"),
        rustix::io::Errno::ROFS => {
            anyhow!(
                "{path}: {name} does not exist, and cannot be created in a read-only volume; name another path after a colon, such as /mnt/{name}"
            )
        }
        error => anyhow!("{path}: {name}: {error}"),
    }
}
