//! The mounts of a sandbox's root, and the walk to the places where they are made.

use std::ffi::OsStr;
use std::io::PipeWriter;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::{FileType, Mode, OFlags};

use super::whole::Whole;
use crate::amount::Amount;
use crate::launch::Mounts;
use crate::plan::volume::{Tmpfs, Volume};

/// A root to make: the image, and what is mounted over it.
pub struct Tree {
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
    /// If the image itself is the root: the mounts in it, instead of all others.
    pub whole: Option<Whole>,
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

/// A mount over the image.
pub(super) enum Mount<'a> {
    /// A volume, by its number.
    Volume(usize),
    /// An empty directory that hides one of a volume.
    Hidden(&'a Path),
    /// A file system in memory.
    Memory(&'a Tmpfs),
}

impl Tree {
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

/// The bytes of size for each of which a file system in memory may have one file. The host counts a
/// file, and each KiB of extended attributes, as one inode, of about a KiB of memory: so inodes add
/// at most a quarter to the size.
const BYTES_PER_FILE: u64 = 4096;

/// The fewest files that such a file system may have.
const FEWEST_FILES: u64 = 64;

/// For how many files a directory in memory of this size has room.
pub(super) fn files_within(size: Amount) -> u64 {
    (size.number / BYTES_PER_FILE).max(FEWEST_FILES)
}

pub(super) fn open(dir: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(dir, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a directory again, to list or change it.
pub(super) fn again(directory: impl AsFd) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(directory, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
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
