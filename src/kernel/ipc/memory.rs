//! Shared memory segments: memory files that are mapped shared.
//!
//! The cages that have one attached are recorded in their memory maps (`Region::segment`), which
//! fork, exec, munmap and exit keep up to date. The pages go with the last mapping; a segment that
//! was removed keeps its id until then.

use std::os::fd::OwnedFd;

use lind_abi::layout::ShmidDs;
use lind_abi::{Errno, Result};
use rustix::fs::MemfdFlags;

use super::{Permissions, Table, now};
use crate::host;
use crate::host::keep::Locked;
use crate::mem::space;

/// shmctl(2): shown in the mode of a segment that was removed and is attached.
const SHM_DEST: u32 = 0o1000;

/// A segment of shared memory.
#[derive(Debug)]
pub(crate) struct Segment {
    pub file: OwnedFd,
    pub size: u64,
    attached: i64,
    detached: i64,
    creator: u32,
    last: u32,
    /// As long as it is to stay in memory: SHM_LOCK.
    pub locked: Option<Locked>,
    /// To go when nobody has it attached any more.
    pub removed: bool,
}

impl Segment {
    /// A segment of zeroes.
    ///
    /// # Errors
    /// EINVAL for no size or more than a guest can address; ENOMEM.
    pub fn new(size: u64, creator: u32) -> Result<Segment> {
        if size == 0 || size > space::END - space::FIRST {
            return Err(Errno::EINVAL);
        }
        let file = rustix::fs::memfd_create(c"SYSV", MemfdFlags::CLOEXEC).map_err(host::errno)?;
        rustix::fs::ftruncate(&file, size.next_multiple_of(crate::mem::PAGE)).map_err(host::errno)?;
        Ok(Segment { file, size, attached: 0, detached: 0, creator, last: 0, locked: None, removed: false })
    }

    /// How many bytes of it take memory.
    pub fn resident(&self) -> u64 {
        const BLOCK: u64 = 512;
        rustix::fs::fstat(&self.file).map_or(0, |stat| u64::try_from(stat.st_blocks).unwrap_or(0) * BLOCK)
    }

    /// Notes an attachment by a process.
    pub fn note_attached(&mut self, by: u32) {
        (self.attached, self.last) = (now(), by);
    }

    /// Notes a detachment.
    pub fn note_detached(&mut self, by: u32) {
        (self.detached, self.last) = (now(), by);
    }

    /// IPC_STAT.
    pub fn to_guest(&self, permissions: &Permissions, attachments: u32) -> ShmidDs {
        ShmidDs {
            perm: permissions.to_guest(),
            segsz: u32::try_from(self.size).unwrap_or(u32::MAX),
            atime: self.attached,
            dtime: self.detached,
            ctime: permissions.changed,
            cpid: self.creator.cast_signed(),
            lpid: self.last.cast_signed(),
            nattch: attachments,
            ..ShmidDs::default()
        }
    }
}

impl Table<Segment> {
    /// Lets a segment be found no more, and go when nobody has it attached any more.
    pub fn let_go(&mut self, id: i32) {
        if let Ok(object) = self.find(id) {
            object.value.removed = true;
            object.permissions.mark(SHM_DEST);
        }
        self.forget_key(id);
    }
}
