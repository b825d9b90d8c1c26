//! The notes of a grate about a run, in a file in memory. They are read when the run has ended.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, ensure};
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::Value;

/// The longest notes of a grate, in bytes.
const MOST: u64 = 16 << 20;

/// The file in which a grate writes its notes.
pub struct Notes(File);

impl Notes {
    /// An empty file.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn new(name: &str) -> Result<Notes> {
        let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC).context("cannot create a file in memory")?);
        // The thread that reads it at the end may have a descriptor table of its own.
        lind_kernel::fd::keep_also(file.as_fd());
        Ok(Notes(file))
    }

    /// Its path for an option of a grate, valid before the walls go up.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }

    /// Parses the notes at the end of the run.
    ///
    /// # Errors
    /// When the grate was killed before it wrote them, or they are not TOML.
    pub fn read(&self) -> Result<Value> {
        let size = self.0.metadata()?.len();
        ensure!(size > 0, "a grate was killed before it wrote its notes");
        ensure!(size <= MOST, "the notes of a grate are larger than {} MiB", MOST >> 20);
        let mut bytes = vec![0; usize::try_from(size)?];
        self.0.read_exact_at(&mut bytes, 0)?;
        Ok(toml::from_str(std::str::from_utf8(&bytes)?)?)
    }
}
