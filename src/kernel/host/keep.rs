//! Keeps a file of memory in memory: it is mapped once more, outside all guests, and that mapping
//! is locked.

use std::os::fd::BorrowedFd;

use lind_abi::{Errno, Result};
use rustix::mm::{MapFlags, MlockFlags, ProtFlags, mlock_with, mmap, munmap};

use super::errno;
use crate::mem::budget::Share;

/// A file that is kept in memory as long as this lives.
#[derive(Debug)]
pub struct Locked {
    start: usize,
    len: usize,
    _share: Share,
}

impl Locked {
    /// Keeps the first `len` bytes of a file, which must have as many.
    ///
    /// # Errors
    /// ENOMEM, also if too little is left of the host's limit on locked memory.
    pub fn new(file: BorrowedFd<'_>, len: u64) -> Result<Locked> {
        let len = usize::try_from(len).map_err(|_| Errno::ENOMEM)?;
        let mut share = Share::default();
        if !share.has_room(1) {
            return Err(Errno::ENOMEM);
        }
        share.set(1);
        // SAFETY: it is mapped where nothing is, and nobody reads it or refers to it.
        let start = unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, 0) };
        let locked = Locked { start: start.map_err(errno)?.expose_provenance(), len, _share: share };
        // SAFETY: as above.
        let kept = unsafe { mlock_with(std::ptr::with_exposed_provenance_mut(locked.start), len, MlockFlags::empty()) };
        kept.map_err(|_| Errno::ENOMEM)?;
        Ok(locked)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: it is this one's own mapping, and nobody refers to it.
        let _ = unsafe { munmap(std::ptr::with_exposed_provenance_mut(self.start), self.len) };
    }
}
