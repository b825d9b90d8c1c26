//! The guest's root, built from mounts. Where the host permits it, they are made in a mount
//! namespace of the runner: the host resolves paths, so a mount costs nothing per call. Elsewhere
//! the kernel crate keeps them ([`super::table`]).
//!
//! At the top is a file system in memory, which is read-only once all is mounted. It has the
//! entries of the image, read-only, the volumes of `-v`, and directories for /tmp and the home
//! directory; no other file of the host is in it. No symbolic link on the way to a mount point is
//! followed: a program of an earlier run may have created it.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount, open_tree,
};

use super::image::{self, Entry, What};
use super::mounts::{Made, Mount, Steps, Tree, again, directory, files_within, link, make, open};
use super::table;
use crate::amount::Amount;
use crate::cli::sandbox::How;
use crate::launch::{Mounts, limits};
use crate::plan::volume::TMPFS_SIZE;
use crate::walls;

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

/// Makes the root.
///
/// # Errors
/// A mount that the host refuses, or that is impossible.
pub fn build(tree: &Tree, maker: Maker) -> Result<Made> {
    // All entries of the image are open at once.
    limits::raise_files();
    if let Some(whole) = &tree.whole {
        return whole.bind(&tree.image);
    }
    match maker {
        Maker::Host => bind(tree),
        Maker::Kernel => table::build(tree),
    }
    .map_err(limits::explain)
}

/// Mounts the root over the image, in this process's namespace alone.
fn bind(tree: &Tree) -> Result<Made> {
    let volumes = tree
        .volumes
        .iter()
        .map(|volume| copied(&volume.host, volume.read_only).with_context(|| format!("-v {}", volume.host.display())))
        .collect::<Result<Vec<_>>>()?;
    let parts = image::parts(&tree.image, &tree.scratch, tree.mounted().map(|(path, _)| path))?;
    let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
    let trees = parts.iter().filter(|part| matches!(part.what, What::Tree(..))).map(|part| (bytes(&part.path), true));
    let mounted = trees.chain(tree.mounted().map(|(path, read_only)| (bytes(path), read_only))).collect();
    memory(&tree.image, TMPFS_SIZE)?;
    let top = open(CWD, &tree.image)?;
    for part in parts {
        let path = part.path.clone();
        place(part, &top).with_context(|| format!("image {}: {}", tree.image.display(), path.display()))?;
    }
    for path in &tree.scratch {
        let at = make(&top, path, FileType::Directory, &ByHost)?;
        rustix::fs::fchmod(again(&at)?, Mode::from_raw_mode(0o1777))?;
        let tree = open_tree(&at, c"", CLONE)?;
        lind_kernel::restrict_mount(tree.as_fd(), false, false)?;
        attach(&tree, &at)?;
    }
    for mount in tree.mounts() {
        match mount {
            Mount::Volume(number) => {
                let (volume, (tree, kind)) = (&tree.volumes[number], &volumes[number]);
                make(&top, &volume.guest, *kind, &ByHost)
                    .and_then(|at| Ok(attach(tree, &at)?))
                    .with_context(|| format!("cannot mount {} at {}", volume.host.display(), volume.guest.display()))?;
            }
            Mount::Hidden(path) => {
                make(&top, path, FileType::Directory, &ByHost)?;
                memory(&at_path(tree, path)?, Amount { number: 4096, ..TMPFS_SIZE })
                    .with_context(|| format!("{}", path.display()))?;
                lind_kernel::restrict_mount(open(CWD, &at_path(tree, path)?)?.as_fd(), true, false)?;
            }
            Mount::Memory(tmpfs) => {
                make(&top, &tmpfs.guest, FileType::Directory, &ByHost)?;
                let place = at_path(tree, &tmpfs.guest)?;
                memory(&place, tmpfs.size).with_context(|| format!("--tmpfs {}", tmpfs.guest.display()))?;
                std::fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o1777))?;
            }
        }
    }
    lind_kernel::restrict_mount(top.as_fd(), true, false)?;
    Ok(Made { root: tree.image.clone(), mounts: Mounts::Host(mounted), keeps: None })
}

/// The host path of a guest path, while the root is being built.
fn at_path(tree: &Tree, guest: &Path) -> Result<PathBuf> {
    Ok(tree.image.join(guest.strip_prefix("/")?))
}

/// The flags for copying a mount, with the mounts below it.
pub(super) const CLONE: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE
    .union(OpenTreeFlags::OPEN_TREE_CLOEXEC)
    .union(OpenTreeFlags::AT_EMPTY_PATH)
    .union(OpenTreeFlags::AT_RECURSIVE);

/// Enters a new mount namespace, in a user namespace if that is necessary. Mounts in it stay in it.
fn enter_namespace() -> Result<()> {
    // In a chroot it cannot be found out any more behind this.
    let _ = crate::installed::program();
    if walls::unshare_mounts(false).is_err() {
        walls::unshare_mounts(true).map_err(|error| {
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

/// Mounts a file system in memory at a directory.
pub(super) fn memory(at: &Path, size: Amount) -> Result<()> {
    let (size, files) = (size.number, files_within(size));
    let data = std::ffi::CString::new(format!("size={size},nr_inodes={files},mode=0755"))?;
    mount("tmpfs", at, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(data.as_c_str()))
        .context("cannot mount a tmpfs")
}

/// Copies the mounts at a host path without attaching them, and returns the kind of file there.
fn copied(host: &Path, read_only: bool) -> Result<(OwnedFd, FileType)> {
    let source = open(CWD, host)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&source)?.st_mode);
    let kind = if kind == FileType::Directory { kind } else { FileType::RegularFile };
    let tree = open_tree(&source, c"", CLONE)?;
    lind_kernel::restrict_mount(tree.as_fd(), read_only, true)?;
    Ok((tree, kind))
}

pub(super) fn attach(tree: &OwnedFd, at: &OwnedFd) -> rustix::io::Result<()> {
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
