//! The guest's root, put together from mounts. Where the host permits it they are made in a mount namespace of the runner's own: the host
//! resolves paths, so a mount costs nothing per call. Elsewhere the kernel crate keeps them ([`super::table`]).
//!
//! At the top is a file system in memory, on which nothing can be changed once all is mounted. In it are the entries of the
//! image, read-only, what `-v` names, and directories for /tmp and the home directory. Nothing of the host that was not
//! named is in it. Wherever a mount goes, no symbolic link is followed: a program of an earlier run may have made it.

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

/// What a root is made of.
pub struct Plan {
    /// The directory whose entries are the guest's root, read-only.
    pub image: PathBuf,
    /// Directories in memory, empty at first, of which the guest may change what is in them.
    pub scratch: Vec<PathBuf>,
    /// File systems in memory with sizes of their own.
    pub tmpfs: Vec<Tmpfs>,
    /// What of the host there is, in this order: a later one may lie in an earlier one.
    pub volumes: Vec<Volume>,
    /// Directories in volumes that the guest finds empty.
    pub hidden: Vec<PathBuf>,
}

/// Who makes the mounts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Maker {
    /// The host, in a mount namespace of this process, which has been entered.
    Host,
    /// The kernel crate.
    Kernel,
}

impl Maker {
    /// Who can, as far as it is left open.
    ///
    /// # Errors
    /// When the host shall make them and permits none.
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
    /// Where it is.
    pub root: PathBuf,
    /// What is mounted in it.
    pub mounts: Mounts,
    /// As long as it is open, the root stays.
    pub keeps: Option<PipeWriter>,
}

/// What is mounted in a root.
#[derive(Default)]
pub enum Mounts {
    /// Nothing that is known of.
    #[default]
    None,
    /// What the host has mounted: where, and whether it cannot be changed.
    Host(Vec<(Vec<u8>, bool)>),
    /// What the kernel crate is to.
    Kernel(Box<Kept>),
}

/// Makes the root.
///
/// # Errors
/// Which mount the host refuses; what of the plan cannot be.
pub fn build(plan: &Plan, maker: Maker) -> Result<Made> {
    // All names of the image are open at once.
    limits::raise_files();
    match maker {
        Maker::Host => bind(plan),
        Maker::Kernel => table::build(plan),
    }
    .map_err(limits::explain)
}

/// Makes the root over the image, in this process's namespace alone.
fn bind(plan: &Plan) -> Result<Made> {
    let volumes = plan
        .volumes
        .iter()
        .map(|volume| tree(&volume.host, volume.read_only).with_context(|| format!("-v {}", volume.host.display())))
        .collect::<Result<Vec<_>>>()?;
    let parts = image::parts(&plan.image, plan.mounted().map(|(path, _)| path))?;
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

/// One of what is mounted over the image.
pub(super) enum Mount<'a> {
    /// A volume, by its number.
    Volume(usize),
    /// An empty directory in one.
    Hidden(&'a Path),
    /// A file system in memory.
    Memory(&'a Tmpfs),
}

impl Plan {
    /// What is mounted, outer before inner, whatever order it was named in; of several at one place the last is seen.
    pub(super) fn mounts(&self) -> Vec<Mount<'_>> {
        let volumes = self.volumes.iter().enumerate().map(|(number, volume)| (&volume.guest, Mount::Volume(number)));
        let memory = self.tmpfs.iter().map(|tmpfs| (&tmpfs.guest, Mount::Memory(tmpfs)));
        let hidden = self.hidden.iter().map(|path| (path, Mount::Hidden(path)));
        let mut all: Vec<_> = volumes.chain(memory).chain(hidden).collect();
        all.sort_by_key(|(guest, _)| guest.components().count());
        all.into_iter().map(|(_, mount)| mount).collect()
    }

    /// Where there is something else than the image, and whether it cannot be changed.
    pub(super) fn mounted(&self) -> impl Iterator<Item = (&Path, bool)> {
        let scratch = self.scratch.iter().map(|path| (path.as_path(), false));
        scratch.chain(self.mounts().into_iter().map(|mount| match mount {
            Mount::Volume(number) => (self.volumes[number].guest.as_path(), self.volumes[number].read_only),
            Mount::Hidden(path) => (path, true),
            Mount::Memory(tmpfs) => (tmpfs.guest.as_path(), false),
        }))
    }
}

/// Where a guest path is as long as the root is being made.
fn at_path(plan: &Plan, guest: &Path) -> Result<PathBuf> {
    Ok(plan.image.join(guest.strip_prefix("/")?))
}

/// The flags by which a mount is copied, with what is mounted below it.
const CLONE: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE
    .union(OpenTreeFlags::OPEN_TREE_CLOEXEC)
    .union(OpenTreeFlags::AT_EMPTY_PATH)
    .union(OpenTreeFlags::AT_RECURSIVE);

/// A mount namespace of this process, in a user namespace if need be. What is mounted in it stays in it.
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

/// For how many bytes of its size a file system in memory has room for one file. The host counts a file and each KiB of extended attributes
/// as one, about a KiB of its own memory: so at most a quarter comes on top of the size.
const BYTES_PER_FILE: u64 = 4096;

/// The fewest files that one has room for.
const FEWEST_FILES: u64 = 64;

/// A file system in memory at a directory.
fn memory(at: &Path, size: &str) -> Result<()> {
    let bytes = Kind::Bytes.parse(size).with_context(|| format!("{size}: not a size"))?;
    let files = (bytes / BYTES_PER_FILE).max(FEWEST_FILES);
    let data = std::ffi::CString::new(format!("size={size},nr_inodes={files},mode=0755"))?;
    mount("tmpfs", at, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(data.as_c_str()))
        .context("cannot mount a tmpfs")
}

pub(super) fn open(dir: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(dir, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// An open directory once more, to read or change it.
pub(super) fn again(directory: impl AsFd) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(directory, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// A copy of the mounts at a place of the host, attached nowhere yet, and what is there.
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

/// Puts a part of the image where it belongs.
fn place(entry: Entry, top: &OwnedFd) -> Result<()> {
    let path = &entry.path;
    match entry.what {
        What::Link(text) => link(top, path, &text, &ByHost),
        What::Opened(mode) => directory(top, path, mode, &ByHost),
        What::Tree(file, kind) => {
            let tree = match open_tree(&file, c"", CLONE) {
                // It has been removed since the image was listed.
                Err(rustix::io::Errno::NOENT) => return Ok(()),
                tree => tree?,
            };
            drop(file);
            lind_kernel::restrict_mount(tree.as_fd(), true, true)?;
            match attach(&tree, &make(top, path, kind, &ByHost)?) {
                // The host refuses a source that was removed after the copy. The point that was made for it goes too.
                Err(rustix::io::Errno::NOENT) => {
                    let flags = if kind == FileType::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                    Ok(rustix::fs::unlinkat(top, path.strip_prefix("/")?, flags)?)
                }
                attached => Ok(attached?),
            }
        }
    }
}

/// Steps from a directory to what is in it, and makes what is not.
pub(super) trait Steps {
    /// A directory or file.
    type At: AsFd;
    /// What is called `name`; no symbolic link is followed.
    fn step(&self, dir: &Self::At, name: &OsStr) -> rustix::io::Result<Self::At>;
    /// Makes a directory or an empty file.
    fn create(&self, dir: &Self::At, name: &OsStr, directory: bool) -> rustix::io::Result<()>;
    /// The same directory once more.
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

/// The directory or file at a guest path, made with the directories on its way where they are missing and may be made.
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

/// Makes a symbolic link at a guest path, whose directory is there.
pub(super) fn link<S: Steps>(top: &S::At, path: &Path, text: &[u8], steps: &S) -> Result<()> {
    let (parent, name) = path.parent().zip(path.file_name()).context("a link has a name")?;
    Ok(rustix::fs::symlinkat(text, make(top, parent, FileType::Directory, steps)?, name)?)
}

/// Says why there can be no mount point.
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
