//! What a grate notes of a run, in a file in memory: it is read when the run has ended.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, ensure};
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::Value;

/// The longest that a grate may have noted.
const MOST: u64 = 16 << 20;

/// Where a grate writes what it notes.
pub struct Notes(File);

impl Notes {
    /// Nothing is noted yet.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new(name: &str) -> Result<Notes> {
        let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC).context("cannot create a file in memory")?);
        // Whoever reads it at the end may be a thread with a table of its own.
        lind_kernel::fd::keep_also(file.as_fd());
        Ok(Notes(file))
    }

    /// As an option of a grate names it, before the walls go up.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }

    /// What was noted, at the end of the run.
    ///
    /// # Errors
    /// When the grate did not come to its end, or what is there is no TOML.
    pub fn read(&self) -> Result<Value> {
        let size = self.0.metadata()?.len();
        ensure!(size > 0, "a grate was killed before it wrote its notes");
        ensure!(size <= MOST, "the notes of a grate are larger than {} MiB", MOST >> 20);
        let mut bytes = vec![0; usize::try_from(size)?];
        self.0.read_exact_at(&mut bytes, 0)?;
        Ok(toml::from_str(std::str::from_utf8(&bytes)?)?)
    }
}
