//! Removes states: their own files, and no others beside them.

use std::os::fd::OwnedFd;
use std::path::Path;

use anyhow::{Context, Result};
use lind_kernel::stdio;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::launch::state_files;
use crate::plan::state::{DATA, DATABASE, LOG, State};

/// Removes a state that no process has open.
///
/// # Errors
/// The host's error.
pub fn remove(state: &State) -> Result<()> {
    let shown = || state.file.display().to_string();
    if state.folder {
        return folder(&state.file).with_context(shown);
    }
    std::fs::remove_file(&state.file).with_context(shown)?;
    let _ = std::fs::remove_file(state.log());
    Ok(())
}

/// The database is removed last: as long as it exists this is a state, which can be removed.
fn folder(path: &Path) -> Result<()> {
    let folder = rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    if let Ok(data) = state_files::directory(&folder, DATA) {
        data_files(&data)?;
        unless_used(rustix::fs::unlinkat(&folder, DATA, AtFlags::REMOVEDIR))?;
    }
    for name in [[DATABASE, LOG].concat(), DATABASE.to_owned()] {
        match rustix::fs::unlinkat(&folder, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno).context(name),
        }
    }
    if !unless_used(rustix::fs::rmdir(path))? {
        stdio::say_line(&format!("{}: was not removed, because it has files that are not the state's", path.display()));
    }
    Ok(())
}

fn data_files(data: &OwnedFd) -> Result<()> {
    for entry in rustix::fs::Dir::read_from(data)? {
        let entry = entry?;
        if entry.file_name().to_bytes().iter().all(u8::is_ascii_digit) {
            // A directory of such a name is not ours, and stays.
            let _ = rustix::fs::unlinkat(data, entry.file_name(), AtFlags::empty());
        }
    }
    Ok(())
}

/// Whether a directory was removed. A directory that is not empty stays.
fn unless_used(removed: rustix::io::Result<()>) -> Result<bool> {
    match removed {
        Ok(()) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
