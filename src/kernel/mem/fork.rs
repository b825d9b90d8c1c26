//! Copying an address space for fork(2).
//!
//! Shared mappings are mapped again. Of private ones only pages that exist are copied: the host's
//! page map shows them; if it cannot be read, all pages are looked at and zero pages are left out.
//! Other threads of the parent may write meanwhile: the child then has a page as it was before or
//! after, as with Linux, which copies a page when it is first written. Pages that earlier forks
//! have frozen are not copied, but mapped (`freeze`).

mod freeze;

use std::ops::Range;
use std::os::fd::OwnedFd;

use lind_abi::{Errno, Result};

pub use freeze::History;

use super::frozen::{Frozen, Layers};
use super::vmmap::{OnFork, Region, Use, Vmmap};
use super::{GuestMemory, MapGuard, Memory, PAGE};
use crate::host::pagemap;
use crate::lock::Locked;

/// [`PAGE`] as a length.
const PAGE_LEN: usize = 4096;
const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
/// The size of a huge page of the host's, and the unit of freezing and thawing.
const BLOCK: u64 = 2 << 20;

/// The host's page map of this process, for finding the pages that exist. Opened before the process
/// confines itself.
pub struct PageMap {
    file: Option<OwnedFd>,
    layers: Layers,
    /// The largest file that the host lets this process write.
    file_limit: u64,
}

impl PageMap {
    /// Opens it. Without /proc, or on hosts before Linux 6.7, copies take longer.
    pub fn open() -> PageMap {
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
        let file = rustix::fs::open("/proc/self/pagemap", flags, rustix::fs::Mode::empty());
        let file_limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current.unwrap_or(u64::MAX);
        PageMap { file: file.ok().filter(pagemap::can_scan), file_limit, ..PageMap::none() }
    }

    /// No page map.
    pub fn none() -> PageMap {
        PageMap { file: None, layers: Layers::default(), file_limit: 0 }
    }
}

/// Whether anything but the thread that forks can touch the parent's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alone {
    /// Pages of the parent may be moved.
    Yes,
    /// Pages of the parent have to stay where they are.
    No,
}

/// A fork of a space whose map is locked.
pub struct Forking<'m> {
    memory: &'m Memory,
    map: MapGuard<'m>,
    alone: Alone,
}

impl Memory {
    /// Begins a fork.
    pub fn forking(&self, alone: Alone) -> Forking<'_> {
        Forking { memory: self, map: self.map(), alone }
    }
}

impl Forking<'_> {
    /// A copy of the space for a child.
    ///
    /// # Errors
    /// ENOMEM when the host has no room.
    pub fn copy(mut self, pages: &PageMap) -> Result<Memory> {
        let mut history = self.memory.history.locked();
        if let (Alone::Yes, Some(file)) = (self.alone, &pages.file) {
            self.memory.settle(&mut self.map, &mut history, pages, file);
        }
        self.map.check_copy()?;
        let guest = GuestMemory::reserve()?;
        let mut forked = self.map.forked();
        if pages.file.is_none() {
            // All is copied, whatever it comes from.
            forked.frozen = Frozen::default();
        }
        let huge = Vec::new();
        let mut copy = Copying { child: &guest, map: &forked, parent: self.memory, pages, copied: 0, huge };
        for (range, region) in forked.regions() {
            copy.region(range, region)?;
        }
        history.copied = copy.copied;
        copy.huge.into_iter().for_each(|span| forked.odd(span));
        Ok(Memory::of(guest, forked))
    }
}

/// A copy on its way.
struct Copying<'m> {
    child: &'m GuestMemory,
    /// The mappings that the child gets.
    map: &'m Vmmap,
    parent: &'m Memory,
    pages: &'m PageMap,
    /// The bytes that were copied.
    copied: u64,
    /// The spans that have got huge pages: each is a mapping of its own for the host.
    huge: Vec<Range<u64>>,
}

impl Copying<'_> {
    /// The most spans of huge pages.
    const HUGE: usize = 64;

    fn region(&mut self, range: Range<u64>, region: &Region) -> Result<()> {
        let (start, len) = (range.start, range.end - range.start);
        if region.usage == Use::Guard {
            return Ok(());
        }
        let (child, parent) = (self.child, &self.parent.guest);
        let prot = region.host_prot();
        if region.shared {
            child.share_from(parent, start, len)?;
            return child.protect(start, len, prot);
        }
        child.map_anonymous(start, len, READ_WRITE)?;
        if region.on_fork != OnFork::Wipe {
            let readable = prot & READ_WRITE != 0;
            if !readable {
                parent.protect(start, len, libc::PROT_READ)?;
            }
            let copied = self.contents(range, region);
            if !readable {
                parent.protect(start, len, prot)?;
            }
            copied?;
        }
        if prot == READ_WRITE { Ok(()) } else { child.protect(start, len, prot) }
    }

    fn contents(&mut self, range: Range<u64>, region: &Region) -> Result<()> {
        match &self.pages.file {
            Some(file) if !region.file => {
                for piece in self.map.frozen.parts(range.clone()) {
                    let len = piece.at.end - piece.at.start;
                    self.child.map_file(piece.at.start, len, READ_WRITE, false, piece.layer.file(), piece.offset)?;
                }
                let host = self.parent.guest.range(range.start, range.end - range.start)?;
                pagemap::written(file, host, |at, len| self.run(range.start + at..range.start + at + len))
            }
            // For a file the map shows the pages that were touched, and the child has no mapping of
            // the file to get the rest from.
            _ => (range.start..range.end).step_by(PAGE_LEN).try_for_each(|page| self.page_unless_zero(page)),
        }
    }

    /// Copies a run of existing pages.
    fn run(&mut self, run: Range<u64>) -> Result<()> {
        let blocks = run.start.next_multiple_of(BLOCK)..run.end / BLOCK * BLOCK;
        let huge =
            blocks.start < blocks.end && self.huge.len() < Copying::HUGE && self.map.frozen.bytes(blocks.clone()) == 0;
        if !huge {
            return self.small_pages(run);
        }
        self.huge.push(blocks.clone());
        self.small_pages(run.start..blocks.start)?;
        // All of each block exists, so the child needs no more memory for it. If the host cannot,
        // pages are small.
        let _ = self.child.advise(blocks.start, blocks.end - blocks.start, libc::MADV_HUGEPAGE);
        self.copy(blocks.clone())?;
        self.small_pages(blocks.end..run.end)
    }

    fn small_pages(&mut self, run: Range<u64>) -> Result<()> {
        /// From here on one host call costs less than the faults it saves.
        const POPULATE: u64 = 4 * PAGE;
        /// Pages are populated in parts, so that they are still in the processor's cache when they
        /// are written.
        const AT_ONCE: u64 = 128 * PAGE;
        for start in run.clone().step_by(usize::try_from(AT_ONCE).expect("small")) {
            let part = start..run.end.min(start + AT_ONCE);
            if part.end - part.start >= POPULATE {
                // If the host cannot, the copy faults the pages in.
                let _ = self.child.advise(part.start, part.end - part.start, libc::MADV_POPULATE_WRITE);
            }
            self.copy(part)?;
        }
        Ok(())
    }

    fn copy(&mut self, run: Range<u64>) -> Result<()> {
        let len = run.end - run.start;
        self.copied += len;
        match GuestMemory::copy_between(self.child, run.start, &self.parent.guest, run.start, len) {
            // Another thread of the parent has unmapped it meanwhile.
            Err(Errno::EFAULT) => Ok(()),
            copied => copied,
        }
    }

    fn page_unless_zero(&self, page: u64) -> Result<()> {
        let mut bytes = [0; PAGE_LEN];
        match self.parent.guest.read(page, &mut bytes) {
            Ok(()) if bytes.iter().all(|byte| *byte == 0) => Ok(()),
            Ok(()) => self.child.write(page, &bytes),
            // Past the end of its file.
            Err(Errno::EFAULT) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}

#[cfg(test)]
mod tests;
