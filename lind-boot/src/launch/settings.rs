//! Settings of grates in TOML files. They are read here, and each grate gets them as JSON: only
//! lind-boot reads TOML.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use lind_engine::code::manifest::Use;
use lind_kernel::text::shown;
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, ResolveFlags};

use crate::files::open_as;
use crate::plan::document::{MOST, from_toml};
use crate::plan::step::HostFile;

/// The root of the guest, for files inside it.
pub struct Inside<'a> {
    /// Its path.
    pub root: &'a Path,
    /// The working directory in it.
    pub cwd: &'a Path,
}

/// Opens a file of settings for a grate. A file in JSON is passed on as it is.
///
/// # Errors
/// A file that cannot be read, or a mistake in it.
pub fn open(file: &HostFile, inside: &Inside<'_>) -> Result<OwnedFd> {
    let opened = if file.is_inside() { inside.open(&file.path) } else { open_as(Use::Reads, &file.path) }?;
    if file.path.as_os_str().as_bytes().ends_with(b".json") {
        return Ok(opened);
    }
    let name = shown(file.path.as_os_str().as_bytes());
    let mut text = String::new();
    File::from(opened).take(MOST + 1).read_to_string(&mut text).with_context(|| name.clone())?;
    let document = from_toml(&name, &text)?;
    let mut memory = File::from(rustix::fs::memfd_create("settings", MemfdFlags::CLOEXEC)?);
    memory.write_all(document.as_bytes())?;
    memory.rewind()?;
    Ok(memory.into())
}

impl Inside<'_> {
    /// Opens a regular file, whatever links a guest has left in the root.
    fn open(&self, path: &Path) -> Result<OwnedFd> {
        let described = |errno: rustix::io::Errno| {
            anyhow!("{}: {}", shown(path.as_os_str().as_bytes()), lind_abi::Errno::from_raw(errno.raw_os_error()))
        };
        let flags = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let root = rustix::fs::openat(CWD, self.root, flags | OFlags::DIRECTORY, Mode::empty()).map_err(described)?;
        let path_inside = self.cwd.join(path);
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let file = rustix::fs::openat2(root.as_fd(), &path_inside, flags, Mode::empty(), resolve).map_err(described)?;
        let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        ensure!(kind.is_file(), "{}: is not a regular file", shown(path.as_os_str().as_bytes()));
        Ok(file)
    }
}
