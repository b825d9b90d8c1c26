//! The guest's root where the host permits no mounts: the kernel crate keeps them.
//!
//! The root is a directory of the host that no other user can enter, with an empty directory or
//! file for each mount. Directories in memory are further ones beside it. A separate process
//! removes all of that when the runner has ended, in whatever way.

use std::ffi::OsStr;
use std::io::{PipeWriter, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow};
use lind_kernel::root::table::{Found, MountId, Table};
use rustix::fs::{CWD, FileType};

use super::image::{self, What};
use super::mounts::{Made, Mount, Steps, Tree, directory, files_within, link, make, open};
use super::removal;
use crate::cli::tools::RemoveAtEnd;
use crate::launch::{Kept, Mounts};
use crate::plan::volume::TMPFS_SIZE;
use crate::private;

/// Makes the root.
///
/// # Errors
/// A mount that is impossible.
pub fn build(tree: &Tree) -> Result<Made> {
    let (folder, open_end) = own_folder()?;
    let root = folder.join("root");
    std::fs::create_dir(&root)?;
    let top = open(CWD, &root)?;
    let mut rows = Kept { table: Table::new(top.try_clone()?)?, sources: Vec::new() };
    for part in image::parts(&tree.image, &tree.scratch, tree.mounted().map(|(path, _)| path))? {
        let path = &part.path;
        let source = tree.image.join(path.strip_prefix("/")?);
        match part.what {
            What::Link(text) => link(&rows.table.top()?, path, &text, &rows.table),
            What::Opened(mode) => directory(&rows.table.top()?, path, mode, &rows.table),
            What::Tree(file, _) => rows.mount(path, (file, &source), true).map(drop),
        }
        .with_context(|| format!("image {}: {}", tree.image.display(), path.display()))?;
    }
    for (number, path) in tree.scratch.iter().enumerate() {
        let own = folder.join(number.to_string());
        std::fs::create_dir(&own)?;
        std::fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o1777))?;
        let mount = rows.mount(path, (open(CWD, &own)?, &own), false)?;
        rows.table.bound(mount, files_within(TMPFS_SIZE));
    }
    let empty = folder.join("empty");
    std::fs::create_dir(&empty)?;
    for mount in tree.mounts() {
        match mount {
            Mount::Volume(number) => {
                let volume = &tree.volumes[number];
                open(CWD, &volume.host)
                    .with_context(|| format!("-v {}", volume.host.display()))
                    .and_then(|source| rows.mount(&volume.guest, (source, &volume.host), volume.read_only))
                    .with_context(|| format!("cannot mount {} at {}", volume.host.display(), volume.guest.display()))?;
            }
            Mount::Hidden(path) => {
                rows.mount(path, (open(CWD, &empty)?, &empty), true)?;
            }
            // The imfs grate answers for all files in it.
            Mount::Memory(tmpfs) => {
                make(&rows.table.top()?, &tmpfs.guest, FileType::Directory, &rows.table)?;
            }
        }
    }
    Ok(Made { root, mounts: Mounts::Kernel(Box::new(rows)), keeps: Some(open_end) })
}

impl Kept {
    fn mount(&mut self, at: &Path, (source, name): (OwnedFd, &Path), read_only: bool) -> Result<MountId> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&source)?.st_mode);
        let point = make(&self.table.top()?, at, kind, &self.table)?;
        let mount = self.table.mount(point, at.as_os_str().as_bytes(), source, read_only)?;
        self.sources.push(name.to_owned());
        Ok(mount)
    }
}

impl Steps for Table {
    type At = Found;

    fn step(&self, dir: &Found, name: &OsStr) -> rustix::io::Result<Found> {
        Table::step(self, dir, name.as_bytes()).map_err(errno)
    }

    fn create(&self, dir: &Found, name: &OsStr, directory: bool) -> rustix::io::Result<()> {
        Table::create(self, dir, name.as_bytes(), directory).map_err(errno)
    }

    fn copy(&self, dir: &Found) -> Result<Found> {
        Ok(Found { file: dir.as_fd().try_clone_to_owned()?, mount: dir.mount })
    }
}

fn errno(errno: lind_kernel::Errno) -> rustix::io::Errno {
    rustix::io::Errno::from_raw_os_error(errno.raw())
}

/// Creates a directory for this run. It is removed when all copies of the pipe's end are closed.
fn own_folder() -> Result<(PathBuf, PipeWriter)> {
    let mut why = anyhow!("there is no directory for mounts");
    for parent in private::candidates() {
        let mut number = [0; 8];
        rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty())?;
        let folder = parent.join(format!("mounts-{:016x}", u64::from_ne_bytes(number)));
        match private::make(&parent).and_then(|()| private::make(&folder)) {
            Ok(()) => {
                let open_end = remove_at_end(&folder)?;
                return Ok((folder, open_end));
            }
            Err(error) => why = error,
        }
    }
    Err(why.context("cannot create a directory for the mounts: set XDG_RUNTIME_DIR to a directory of yours"))
}

/// Starts the process that removes a directory or a socket when this one has ended.
///
/// # Errors
/// The host's error.
pub fn remove_at_end(path: &Path) -> Result<PipeWriter> {
    let program = crate::installed::program().context("cannot find the file of lind-boot itself (mount /proc)")?;
    let (end, open_end) = std::io::pipe()?;
    let started = Command::new(program)
        .arg("remove-at-end")
        .arg(path)
        .current_dir("/")
        .stdin(end)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Signals of the terminal are for the command alone.
        .process_group(0)
        .spawn();
    match started {
        Ok(_) => Ok(open_end),
        Err(error) => {
            let _ = removed(path);
            Err(error).with_context(|| format!("cannot start the process that removes {}", path.display()))
        }
    }
}

/// Waits until no process can write to standard input any more, and removes the directory or the
/// socket.
pub fn remove(options: &RemoveAtEnd) {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let _ = removed(&options.path);
}

fn removed(path: &Path) -> Result<()> {
    if path.symlink_metadata()?.is_dir() { removal::remove(path) } else { Ok(std::fs::remove_file(path)?) }
}
