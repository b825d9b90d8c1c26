//! Copying an address space for fork(2).
//!
//! Shared mappings are mapped again. Of private ones only pages that exist are copied: the host's page map tells which those
//! are; where it cannot be asked, all pages are looked at and those that are zero are left out. Other threads of the
//! parent may write meanwhile: the child then has a page as it was before or after, as with Linux, which
//! copies a page when it is first written.

use std::ops::Range;
use std::os::fd::OwnedFd;

use lind_abi::{Errno, Result};

use super::mapping::host_prot;
use super::vmmap::{OnFork, Region, Use};
use super::{GuestMemory, Memory, PAGE};
use crate::host::pagemap;

/// [`PAGE`] as a length.
const PAGE_LEN: usize = 4096;
const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// The host's page map of this process, for finding the pages that exist. Opened before the process confines itself.
pub struct PageMap {
    file: Option<OwnedFd>,
}

impl PageMap {
    /// Opens it. Without /proc, or on hosts before Linux 6.7, copies take longer.
    pub fn open() -> PageMap {
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
        let file = rustix::fs::open("/proc/self/pagemap", flags, rustix::fs::Mode::empty());
        PageMap { file: file.ok().filter(pagemap::can_scan) }
    }

    /// No page map.
    pub fn none() -> PageMap {
        PageMap { file: None }
    }
}

impl Memory {
    /// A copy of this space for a child.
    ///
    /// # Errors
    /// ENOMEM when the host has no room.
    pub fn fork(&self, pages: &PageMap) -> Result<Memory> {
        let map = self.map();
        let guest = GuestMemory::reserve()?;
        let forked = map.forked();
        for (range, region) in forked.regions() {
            self.fork_region(&guest, range, region, pages)?;
        }
        drop(map);
        Ok(Memory { guest, map: std::sync::Mutex::new(forked) })
    }

    fn fork_region(&self, child: &GuestMemory, range: Range<u64>, region: &Region, pages: &PageMap) -> Result<()> {
        let (start, len) = (range.start, range.end - range.start);
        if region.usage == Use::Guard {
            return Ok(());
        }
        let prot = host_prot(region.prot);
        if region.shared {
            child.share_from(&self.guest, start, len)?;
            return child.protect(start, len, prot);
        }
        child.map_anonymous(start, len, READ_WRITE)?;
        if region.on_fork != OnFork::Wipe {
            let readable = prot & READ_WRITE != 0;
            if !readable {
                self.guest.protect(start, len, libc::PROT_READ)?;
            }
            let copied = self.copy_pages(child, range, region, pages);
            if !readable {
                self.guest.protect(start, len, prot)?;
            }
            copied?;
        }
        if prot == READ_WRITE { Ok(()) } else { child.protect(start, len, prot) }
    }

    fn copy_pages(&self, child: &GuestMemory, range: Range<u64>, region: &Region, pages: &PageMap) -> Result<()> {
        match &pages.file {
            Some(file) if !region.file => {
                let host = self.guest.range(range.start, range.end - range.start)?;
                pagemap::existing(file, host, |at, len| copy(child, &self.guest, range.start + at, len))
            }
            // Of a file the map tells what has been touched, and the child has no mapping of the file to get the rest from.
            _ => (range.start..range.end).step_by(PAGE_LEN).try_for_each(|page| self.copy_unless_zero(child, page)),
        }
    }

    fn copy_unless_zero(&self, child: &GuestMemory, page: u64) -> Result<()> {
        let mut bytes = [0; PAGE_LEN];
        match self.guest.read(page, &mut bytes) {
            Ok(()) if bytes.iter().all(|byte| *byte == 0) => Ok(()),
            Ok(()) => child.write(page, &bytes),
            // Past the end of its file.
            Err(Errno::EFAULT) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}

fn copy(child: &GuestMemory, parent: &GuestMemory, start: u64, len: u64) -> Result<()> {
    /// From here on one host call costs less than the faults it saves.
    const POPULATE: u64 = 4 * PAGE;
    if len >= POPULATE {
        // If the host cannot, the copy faults the pages in.
        let _ = child.advise(start, len, libc::MADV_POPULATE_WRITE);
    }
    match GuestMemory::copy_between(child, start, parent, start, len) {
        // Another thread of the parent has unmapped it meanwhile.
        Err(Errno::EFAULT) => Ok(()),
        copied => copied,
    }
}

#[cfg(test)]
mod tests;
