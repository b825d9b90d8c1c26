//! The root of a container: a directory of the host as it is, with mounts in it. It can be changed
//! unless it is said to be read-only; an engine has made it for this container alone.
//!
//! Links on the way to a mount point are followed inside the root, as other runtimes do: images
//! have links such as /var/run.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, OpenTreeFlags, mount, open_tree};

use super::mounts::{Made, open};
use super::root::{CLONE, attach};
use crate::launch::Mounts;
use crate::plan::container::{Mount, What};

/// The mounts in such a root.
pub struct Whole {
    /// Whether the root itself cannot be changed.
    pub read_only: bool,
    /// The mounts, in this order.
    pub mounts: Vec<Mount>,
    /// Files and directories that are empty in it.
    pub masked: Vec<PathBuf>,
    /// Files and directories that cannot be changed in it.
    pub unchanged: Vec<PathBuf>,
}

/// A mount whose source is open.
struct Opened {
    tree: OwnedFd,
    kind: FileType,
}

impl Whole {
    /// Makes the mounts, in this process's namespace alone.
    ///
    /// # Errors
    /// A mount that the host refuses, or whose source does not exist.
    pub fn bind(&self, root: &Path) -> Result<Made> {
        // Mounts in the root could hide them.
        let sources = self.mounts.iter().map(opened).collect::<Result<Vec<_>>>()?;
        let place = open(CWD, root).with_context(|| root.display().to_string())?;
        let tree = open_tree(&place, c"", CLONE).with_context(|| root.display().to_string())?;
        lind_kernel::restrict_mount(tree.as_fd(), false, true)?;
        attach(&tree, &place).with_context(|| root.display().to_string())?;
        for (mount, source) in self.mounts.iter().zip(sources) {
            let made = match source {
                Some(Opened { tree: source, kind }) => {
                    point(&tree, &mount.guest, kind).and_then(|at| Ok(attach(&source, &at)?))
                }
                None => memory(&tree, mount),
            };
            made.with_context(|| format!("cannot mount at {}", mount.guest.display()))?;
        }
        for path in &self.unchanged {
            protect(&tree, path).with_context(|| format!("cannot make {} read-only", path.display()))?;
        }
        for path in &self.masked {
            mask(&tree, path).with_context(|| format!("cannot hide {}", path.display()))?;
        }
        lind_kernel::restrict_mount(tree.as_fd(), self.read_only, false)?;
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let mounted = self.mounts.iter().map(|mount| (bytes(&mount.guest), mount.read_only));
        let top = (!self.read_only).then(|| (b"/".to_vec(), false));
        Ok(Made { root: root.to_owned(), mounts: Mounts::Whole(top.into_iter().chain(mounted).collect()), keeps: None })
    }
}

/// Copies the mount of a file or directory of the host, without attaching it. None for a file
/// system in memory.
fn opened(mount: &Mount) -> Result<Option<Opened>> {
    let (source, recursive) = match &mount.what {
        What::Bind { source, recursive } => (source.as_path(), *recursive),
        What::Device(device) => (device.path(), false),
        What::Memory { .. } => return Ok(None),
    };
    let shown = || format!("{} for {}", source.display(), mount.guest.display());
    let place = open(CWD, source).with_context(shown)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode);
    let flags = if recursive { CLONE } else { CLONE - OpenTreeFlags::AT_RECURSIVE };
    let tree = open_tree(&place, c"", flags).with_context(shown)?;
    // A device that does not count cannot be opened.
    if !matches!(mount.what, What::Device(_)) {
        lind_kernel::restrict_mount(tree.as_fd(), mount.read_only, recursive).with_context(shown)?;
    }
    Ok(Some(Opened { tree, kind }))
}

/// Mounts a file system in memory.
fn memory(top: &OwnedFd, of: &Mount) -> Result<()> {
    let What::Memory { size, mode } = &of.what else { return Ok(()) };
    let at = point(top, &of.guest, FileType::Directory)?;
    let size = size.map(|size| format!("size={size},")).unwrap_or_default();
    over(&at, &format!("{size}mode={mode:o}"), of.read_only)
}

/// Mounts a file system in memory over an open directory.
fn over(at: &OwnedFd, data: &str, read_only: bool) -> Result<()> {
    let data = std::ffi::CString::new(data)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let flags = if read_only { flags | MountFlags::RDONLY } else { flags };
    mount("tmpfs", format!("/proc/self/fd/{}", at.as_raw_fd()), "tmpfs", flags, Some(data.as_c_str()))
        .context("cannot mount a tmpfs")
}

/// The places in a root of paths that may lead over links. Of a path that does not exist yet the
/// rest is kept as it is. Paths that cages have of their own are left out.
///
/// # Errors
/// A root that cannot be opened.
pub fn places<'a>(root: &Path, paths: impl Iterator<Item = &'a PathBuf>) -> Result<Vec<PathBuf>> {
    let top = open(CWD, root).with_context(|| root.display().to_string())?;
    let own = [Path::new("/dev"), Path::new("/proc"), Path::new("/sys"), Path::new("/")];
    let mut all: Vec<PathBuf> = paths.map(|path| place(&top, root, path)).collect();
    all.retain(|path| path != own[3] && !own[..3].iter().any(|own| path.starts_with(own)));
    all.sort();
    all.dedup();
    Ok(all)
}

fn place(top: &OwnedFd, root: &Path, path: &Path) -> PathBuf {
    for above in path.ancestors() {
        let Ok(found) = find(top, above) else { continue };
        let found = std::fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd()));
        let inside = found.ok().and_then(|found| Some(Path::new("/").join(found.strip_prefix(root).ok()?)));
        if let (Some(inside), Ok(rest)) = (inside, path.strip_prefix(above)) {
            // Joined with nothing, it would end with a slash.
            return if rest.as_os_str().is_empty() { inside } else { inside.join(rest) };
        }
    }
    path.to_owned()
}

/// Opens a path inside the root.
fn find(top: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(top, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// Opens the mount point at a path. If it is missing, it is created, with the directories on its
/// way.
fn point(top: &OwnedFd, path: &Path, kind: FileType) -> Result<OwnedFd> {
    let found = match find(top, path) {
        Err(Errno::NOENT) => create(top, path, kind)?,
        found => found.with_context(|| path.display().to_string())?,
    };
    let is_folder = FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode) == FileType::Directory;
    if is_folder != (kind == FileType::Directory) {
        bail!("{}: a directory and a file cannot be mounted on each other", path.display());
    }
    Ok(found)
}

fn create(top: &OwnedFd, path: &Path, kind: FileType) -> Result<OwnedFd> {
    let (parent, name) = path.parent().zip(path.file_name()).with_context(|| path.display().to_string())?;
    let folder = point(top, parent, FileType::Directory)?;
    let made = if kind == FileType::Directory {
        rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o755))
    } else {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&folder, name, flags, Mode::from_raw_mode(0o644)).map(drop)
    };
    made.with_context(|| format!("cannot create {} in the root", path.display()))?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(&folder, name, flags, Mode::empty()).with_context(|| path.display().to_string())
}

/// Makes a path read-only, if it exists.
fn protect(top: &OwnedFd, path: &Path) -> Result<()> {
    let Some(place) = existing(top, path)? else { return Ok(()) };
    let tree = open_tree(&place, c"", CLONE)?;
    lind_kernel::restrict_mount(tree.as_fd(), true, true)?;
    Ok(attach(&tree, &place)?)
}

/// Puts something empty over a path, if it exists.
fn mask(top: &OwnedFd, path: &Path) -> Result<()> {
    let Some(place) = existing(top, path)? else { return Ok(()) };
    if FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode) == FileType::Directory {
        return over(&place, "size=4096,nr_inodes=2,mode=0555", true);
    }
    // Without the restriction of other mounts: a device that does not count cannot be opened.
    let nothing = open(CWD, Path::new("/dev/null"))?;
    Ok(attach(&open_tree(&nothing, c"", CLONE)?, &place)?)
}

fn existing(top: &OwnedFd, path: &Path) -> Result<Option<OwnedFd>> {
    match find(top, path) {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        found => Ok(Some(found?)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn mount_points_are_found_and_created_inside_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("run")).unwrap();
        fs::create_dir(root.join("var")).unwrap();
        symlink("/run", root.join("var/run")).unwrap();
        symlink("../../../..", root.join("up")).unwrap();
        let top = open(CWD, &root).unwrap();
        point(&top, Path::new("/var/run/secrets/token"), FileType::RegularFile).unwrap();
        assert!(root.join("run/secrets/token").is_file());
        point(&top, Path::new("/up/made"), FileType::Directory).unwrap();
        assert!(root.join("made").is_dir() && !folder.path().join("made").exists());
        let error = point(&top, Path::new("/run"), FileType::RegularFile).unwrap_err();
        assert!(error.to_string().contains("cannot be mounted on each other"), "{error}");
        assert!(existing(&top, Path::new("/run/secrets/token/x")).unwrap().is_none());
        let paths = ["/var/run/secrets/token", "/var/run/new/file", "/up/made", "/proc/x", "/"].map(PathBuf::from);
        let expected = ["/made", "/run/new/file", "/run/secrets/token"].map(PathBuf::from);
        assert_eq!(places(&root.canonicalize().unwrap(), paths.iter()).unwrap(), expected);
    }
}
