//! The guest's root, put together from mounts in a mount namespace of the runner's own: the host resolves paths, so a mount
//! costs nothing per call.
//!
//! At the top is a file system in memory, on which nothing can be changed once all is mounted. In it are the entries of the
//! image, read-only, what `-v` names, and directories for /tmp and the home directory. Nothing of the host that was not
//! named is in it. Wherever a mount goes, no symbolic link is followed: a program of an earlier run may have made it.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount, open_tree,
};

use super::volume::{TMPFS_SIZE, Tmpfs, Volume};

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
}

/// Entries of an image that are left out: what the plan or the kernel puts there, and what runs in front of programs.
const NOT_OF_IMAGE: [&[u8]; 5] = [b"tmp", b"proc", b"dev", b"sys", b"grates"];

/// Makes the root and returns where it is mounted: over the image, in this process's namespace alone.
///
/// # Errors
/// Where the host permits no mounts; which of them it refuses.
pub fn build(plan: &Plan) -> Result<PathBuf> {
    enter_namespace()?;
    let image = open(CWD, &plan.image).with_context(|| format!("image {}", plan.image.display()))?;
    let volumes = plan
        .volumes
        .iter()
        .map(|volume| tree(&volume.host, volume.read_only).with_context(|| format!("-v {}", volume.host.display())))
        .collect::<Result<Vec<_>>>()?;
    let entries = image_entries(&image)?;
    memory(&plan.image, TMPFS_SIZE)?;
    let top = open(CWD, &plan.image)?;
    for entry in &entries {
        entry.place(&top).with_context(|| format!("image {}: {}", plan.image.display(), entry.name()))?;
    }
    for path in &plan.scratch {
        let at = make(&top, path, FileType::Directory)?;
        rustix::fs::fchmod(again(&at)?, Mode::from_raw_mode(0o1777))?;
        let tree = open_tree(&at, c"", CLONE)?;
        lind_kernel::restrict_mount(tree.as_fd(), false, false)?;
        attach(&tree, &at)?;
    }
    for (volume, tree) in plan.volumes.iter().zip(&volumes) {
        let (tree, kind) = tree;
        make(&top, &volume.guest, *kind)
            .and_then(|at| attach(tree, &at))
            .with_context(|| format!("cannot mount {} at {}", volume.host.display(), volume.guest.display()))?;
    }
    for tmpfs in &plan.tmpfs {
        let at = make(&top, &tmpfs.guest, FileType::Directory)?;
        let place = plan.image.join(tmpfs.guest.strip_prefix("/")?);
        drop(at);
        memory(&place, &tmpfs.size).with_context(|| format!("--tmpfs {}", tmpfs.guest.display()))?;
        std::fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o1777))?;
    }
    lind_kernel::restrict_mount(top.as_fd(), true, false)?;
    Ok(plan.image.clone())
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
                "the host permits neither mounts nor user namespaces ({error:#}): run as root, or allow user \
                 namespaces (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
            )
        })?;
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).context("/")?;
    Ok(())
}

/// A file system in memory at a directory.
fn memory(at: &Path, size: &str) -> Result<()> {
    let data = std::ffi::CString::new(format!("size={size},mode=0755"))?;
    mount("tmpfs", at, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(data.as_c_str())).context("tmpfs")
}

fn open(dir: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(dir, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// An open directory once more, to read or change it.
fn again(directory: impl AsFd) -> rustix::io::Result<OwnedFd> {
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

fn attach(tree: &OwnedFd, at: &OwnedFd) -> Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, c"", at, c"", flags)?)
}

/// One entry of the image's top.
struct Entry {
    name: Vec<u8>,
    what: What,
}

enum What {
    Tree(OwnedFd, FileType),
    Link(Vec<u8>),
}

impl Entry {
    fn name(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    fn place(&self, top: &OwnedFd) -> Result<()> {
        match &self.what {
            What::Link(text) => Ok(rustix::fs::symlinkat(&text[..], top, &self.name[..])?),
            What::Tree(tree, kind) => {
                attach(tree, &make(top, &Path::new("/").join(OsStr::from_bytes(&self.name)), *kind)?)
            }
        }
    }
}

fn image_entries(image: &OwnedFd) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(again(image)?)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name.starts_with(b".") || NOT_OF_IMAGE.contains(&&name[..]) {
            continue;
        }
        let at =
            rustix::fs::openat(image, &name[..], OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&at)?.st_mode);
        let what = match kind {
            FileType::Symlink => What::Link(rustix::fs::readlinkat(&at, c"", Vec::new())?.into_bytes()),
            FileType::Directory | FileType::RegularFile => {
                let tree = open_tree(&at, c"", CLONE)?;
                lind_kernel::restrict_mount(tree.as_fd(), true, true)?;
                What::Tree(tree, kind)
            }
            _ => continue,
        };
        entries.push(Entry { name, what });
    }
    Ok(entries)
}

/// The directory or file at a guest path, made with the directories on its way where they are missing and may be made.
fn make(top: &OwnedFd, path: &Path, kind: FileType) -> Result<OwnedFd> {
    let names: Vec<&OsStr> = path.strip_prefix("/")?.iter().collect();
    let mut at = top.try_clone()?;
    for (number, name) in names.iter().enumerate() {
        let last = number + 1 == names.len();
        let wanted = if last { kind } else { FileType::Directory };
        let next = match step(at.as_fd(), name) {
            Err(rustix::io::Errno::NOENT) => {
                create(at.as_fd(), name, wanted).map_err(|error| hidden(path, name, error))?;
                step(at.as_fd(), name)
            }
            found => found,
        };
        at = next.map_err(|error| hidden(path, name, error))?;
        let found = FileType::from_raw_mode(rustix::fs::fstat(&at)?.st_mode);
        if (found == FileType::Directory) != (wanted == FileType::Directory) {
            bail!("{}: one is a directory and the other is not", path.display());
        }
    }
    Ok(at)
}

/// Says why there can be no mount point.
fn hidden(path: &Path, name: &OsStr, error: rustix::io::Errno) -> anyhow::Error {
    let (path, name) = (path.display(), Path::new(name).display());
    match error {
        rustix::io::Errno::LOOP => anyhow!("{path}: {name} is a symbolic link; name the path that it leads to"),
        rustix::io::Errno::ROFS => {
            anyhow!(
                "{path}: there is no {name}, and it would have to be made in a read-only mount; choose another path (HOST:GUEST)"
            )
        }
        error => anyhow!("{path}: {name}: {error}"),
    }
}

fn step(dir: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    rustix::fs::openat2(dir, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}

fn create(dir: BorrowedFd<'_>, name: &OsStr, kind: FileType) -> rustix::io::Result<()> {
    if kind == FileType::Directory {
        return rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o755));
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o644)).map(drop)
}
