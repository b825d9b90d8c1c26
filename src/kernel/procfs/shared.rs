//! Shared memory with names: the files of /dev/shm.
//!
//! Files without a place on any disk (memfd_create(2)), known by name to the cages of one runner
//! and gone with the last of name, descriptors and mappings. There are no directories.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use lind_abi::{Errno, Result};

use crate::fd::{File, Kind};
use crate::host;
use crate::lock::Locked;

/// Names there may be: each holds a host descriptor.
const MOST: usize = 1024;

/// NAME_MAX
const LONGEST: usize = 255;

/// The files of /dev/shm.
#[derive(Debug, Default)]
pub(crate) struct SharedFiles(Mutex<BTreeMap<Box<[u8]>, Arc<File>>>);

impl SharedFiles {
    fn files(&self) -> MutexGuard<'_, BTreeMap<Box<[u8]>, Arc<File>>> {
        self.0.locked()
    }

    /// The file of a name.
    pub fn get(&self, name: &[u8]) -> Option<Arc<File>> {
        self.files().get(name).cloned()
    }

    /// All names.
    pub fn names(&self) -> Vec<Box<[u8]>> {
        self.files().keys().cloned().collect()
    }

    /// The file of a name, made if there is none; whether it was made.
    ///
    /// # Errors
    /// ENAMETOOLONG; ENOSPC when there are too many; the host's errors.
    pub fn get_or_make(&self, name: &[u8], mode: u32) -> Result<(Arc<File>, bool)> {
        check(name)?;
        let mut files = self.files();
        if let Some(file) = files.get(name) {
            return Ok((Arc::clone(file), false));
        }
        if files.len() >= MOST {
            return Err(Errno::ENOSPC);
        }
        let file = Arc::new(File::new(make(mode)?, Kind::Host));
        files.insert(name.into(), Arc::clone(&file));
        Ok((file, true))
    }

    /// unlink(2)
    ///
    /// # Errors
    /// ENOENT.
    pub fn remove(&self, name: &[u8]) -> Result<()> {
        self.files().remove(name).map(drop).ok_or(Errno::ENOENT)
    }

    /// link(2)
    ///
    /// # Errors
    /// EEXIST, ENAMETOOLONG, ENOSPC.
    pub fn link(&self, file: Arc<File>, name: &[u8]) -> Result<()> {
        check(name)?;
        let mut files = self.files();
        if files.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        if files.len() >= MOST {
            return Err(Errno::ENOSPC);
        }
        files.insert(name.into(), file);
        Ok(())
    }

    /// rename(2); without `replace`, EEXIST for a name that is taken.
    ///
    /// # Errors
    /// ENOENT, EEXIST, ENAMETOOLONG.
    pub fn rename(&self, old: &[u8], new: &[u8], replace: bool) -> Result<()> {
        check(new)?;
        let mut files = self.files();
        if !files.contains_key(old) {
            return Err(Errno::ENOENT);
        }
        if !replace && files.contains_key(new) {
            return Err(Errno::EEXIST);
        }
        if let Some(file) = files.remove(old) {
            files.insert(new.into(), file);
        }
        Ok(())
    }
}

fn check(name: &[u8]) -> Result<()> {
    if name.len() > LONGEST { Err(Errno::ENAMETOOLONG) } else { Ok(()) }
}

fn make(mode: u32) -> Result<std::os::fd::OwnedFd> {
    use rustix::fs::{MemfdFlags, Mode};
    let file = rustix::fs::memfd_create(c"shm", MemfdFlags::CLOEXEC).map_err(host::errno)?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o777)).map_err(host::errno)?;
    Ok(file)
}
