//! Opens the files of a state for the grate: the database and its log, and the directory of data
//! files if the state is a directory.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use lind_engine::code::manifest::Use;
use rustix::fs::{FileType, Mode, OFlags};

use crate::files::open_as;
use crate::plan::state::{self, DATA, DATABASE, LOG};

/// Opens the state that a word names: its database, its log, and the directory of its data files if
/// it has one. Missing files are created.
///
/// # Errors
/// A file that is not a state; the host's error.
pub fn state(word: &[u8]) -> Result<Vec<Option<OwnedFd>>> {
    let (bare, slash) = state::without_slash(word);
    let path = Path::new(OsStr::from_bytes(bare));
    if state::is_folder(path, slash)? {
        return folder(path).with_context(|| path.display().to_string());
    }
    let log = [bare, LOG.as_bytes()].concat();
    let open = |path| open_as(Use::State, path).map(Some);
    Ok(vec![open(path)?, open(Path::new(OsStr::from_bytes(&log)))?, None])
}

/// Somebody else may have created the directory, so links in it are not followed.
fn folder(path: &Path) -> Result<Vec<Option<OwnedFd>>> {
    if !path.exists() {
        DirBuilder::new().mode(0o700).create(path)?;
    }
    let folder = rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut files = Vec::new();
    for name in [DATABASE.to_owned(), [DATABASE, LOG].concat()] {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file =
            rustix::fs::openat(&folder, &name, flags, Mode::from_raw_mode(0o600)).with_context(|| name.clone())?;
        ensure!(FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode).is_file(), "{name}: not a regular file");
        files.push(Some(file));
    }
    match rustix::fs::mkdirat(&folder, DATA, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(errno) => return Err(errno).context(DATA),
    }
    files.push(Some(directory(&folder, DATA).context(DATA)?));
    Ok(files)
}

/// Opens a directory in another for listing, if it is not a link.
///
/// # Errors
/// The host's error.
pub fn directory(folder: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

/// Opens the same directory for listing.
///
/// # Errors
/// The host's error.
pub fn listed(folder: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    directory(folder, ".")
}
