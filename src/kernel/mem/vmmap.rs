//! The map of an address space: the mapped pages, their protection and their sources.
//!
//! A plain data structure: it makes no host call. [`Memory`](super::Memory) changes it together
//! with the host, under one lock. Addresses are guest addresses and multiples of the page size.
//! Regions never overlap, and neighbours that could be one region are one, except for those of an
//! attached segment; `host` counts the host's mappings for them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use lind_abi::{Errno, Result};

use super::budget::Share;
use super::frozen::{Frozen, Piece};
use super::mapping::host_prot;
use super::{PAGE, space, spare};
use host::Apart;

/// The most regions of one cage. All cages together have another limit (`budget`).
pub const MAX_REGIONS: usize = 16384;

/// The purpose of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// The program's data.
    Data,
    /// The heap of brk(2).
    Heap,
    /// The main stack.
    Stack,
    /// A stack that the engine made for a grate's worker.
    Worker,
    /// The part below a stack: it stays unmapped on the host, and searches skip it.
    Guard,
    /// A mapping of the guest.
    Mapping,
}

/// The effect of fork on a region: madvise(2) MADV_DONTFORK and MADV_WIPEONFORK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnFork {
    /// The child gets a copy, or shares it if it is shared.
    Keep,
    /// The child has nothing there.
    Omit,
    /// The child has zeroes there.
    Wipe,
}

/// The times at which locked pages come into memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// When they are locked.
    AtOnce,
    /// When they are used: MLOCK_ONFAULT, MCL_ONFAULT.
    WhenUsed,
}

/// How the pages of a range are mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// PROT_READ, PROT_WRITE, PROT_EXEC as the guest asked for them.
    pub prot: u32,
    /// MAP_SHARED.
    pub shared: bool,
    /// Mapped from a file.
    pub file: bool,
    /// Its purpose.
    pub usage: Use,
    /// The effect of fork on it.
    pub on_fork: OnFork,
    /// The shared memory segment that was attached here: shmat(2). Once apart, its parts stay
    /// apart, and each counts: `shm_nattch`.
    pub segment: Option<Attached>,
    /// Whether it stays in the host's memory: mlock(2).
    pub locked: bool,
    /// Whether nobody has access, whatever its protection is: madvise(2) `MADV_GUARD_INSTALL`.
    pub guarded: bool,
    /// Tells mappings of files and shared memory apart: equal for pages that lie next to each other
    /// in one of them. 0 for private zeroed memory.
    source: u64,
}

/// A segment attached by shmat(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attached {
    /// The segment.
    pub id: i32,
    /// The address of its first byte, whether or not that is still attached.
    pub at: u64,
}

impl Region {
    /// Private zeroed memory.
    pub fn private(prot: u32, usage: Use) -> Region {
        let on_fork = OnFork::Keep;
        let (segment, locked, guarded) = (None, false, false);
        Region { prot, shared: false, file: false, usage, on_fork, segment, locked, guarded, source: 0 }
    }

    /// The protection that the host gives it.
    pub(super) fn host_prot(&self) -> i32 {
        if self.guarded { libc::PROT_NONE } else { host_prot(self.prot) }
    }

    /// Tells what was mapped at different times apart.
    pub fn source(&self) -> u64 {
        self.source
    }

    /// The same after it has moved.
    pub fn shifted(self, from: u64, to: u64) -> Region {
        let shift = |attached: Attached| Attached { at: attached.at.wrapping_sub(from).wrapping_add(to), ..attached };
        Region { segment: self.segment.map(shift), ..self }
    }

    /// Whether it is private zeroed memory.
    pub fn is_plain(&self) -> bool {
        self.source == 0
    }
}

/// The memory map of a cage: its regions, their limits and the heap.
pub struct Vmmap {
    /// The regions by start; the value has the end.
    regions: BTreeMap<u64, (u64, Region)>,
    /// The range in which mappings may lie.
    space: Range<u64>,
    mapped: u64,
    locked: u64,
    /// The locking of new mappings: mlockall(2) MCL_FUTURE.
    pub lock_new: Option<Fill>,
    /// Bytes that the kernel keeps for the cage elsewhere, which count as mapped memory does.
    charged: u64,
    limit: u64,
    last_source: u64,
    /// Which pages of private zeroed memory come from a layer.
    pub(super) frozen: Frozen,
    /// The program's data as they were when it started, whatever is there by now.
    pub(super) initial: Arc<[Piece]>,
    /// Whether no access is given for the time being, whatever the regions say.
    pub(super) withheld: bool,
    /// Host mappings within regions.
    apart: Apart,
    /// Its share of the host's mappings.
    share: Share,
    /// From the start of the heap to the program break.
    pub brk: Range<u64>,
    /// The address of the program's arguments, as strings one after the other.
    pub arguments: Range<u64>,
    /// The address of its environment.
    pub environment: Range<u64>,
    /// The address of the auxiliary vector.
    pub auxiliary: Range<u64>,
}

impl Vmmap {
    /// An empty map that may hold `limit` bytes.
    pub fn new(limit: u64) -> Vmmap {
        Vmmap::within(space::FIRST..space::END, limit)
    }

    fn within(space: Range<u64>, limit: u64) -> Vmmap {
        Vmmap {
            regions: BTreeMap::new(),
            brk: space.start..space.start,
            arguments: 0..0,
            environment: 0..0,
            auxiliary: 0..0,
            space,
            mapped: 0,
            locked: 0,
            lock_new: None,
            charged: 0,
            limit,
            last_source: 0,
            frozen: Frozen::default(),
            initial: Arc::default(),
            withheld: false,
            apart: Apart::default(),
            share: Share::default(),
        }
    }

    /// A copy without the regions that fork leaves out.
    pub fn forked(&self) -> Vmmap {
        let mut child = Vmmap::within(self.space.clone(), self.limit);
        child.brk = self.brk.clone();
        child.arguments = self.arguments.clone();
        child.environment = self.environment.clone();
        child.auxiliary = self.auxiliary.clone();
        child.last_source = self.last_source;
        child.initial = Arc::clone(&self.initial);
        for (range, region) in self.regions().filter(|(_, region)| region.on_fork != OnFork::Omit) {
            child.map(range.clone(), Region { locked: false, ..*region });
            if region.on_fork == OnFork::Keep {
                self.frozen.parts(range).for_each(|piece| child.frozen.insert(piece));
            }
        }
        child
    }

    /// The bytes that may be mapped: RLIMIT_AS.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Changes the limit. Existing mappings stay, even beyond it.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// The bytes that are mapped.
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// The bytes that are locked.
    pub fn locked(&self) -> u64 {
        self.locked
    }

    /// How many regions there are.
    pub fn len(&self) -> usize {
        self.regions.len()
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// All regions, ascending.
    pub fn regions(&self) -> impl DoubleEndedIterator<Item = (Range<u64>, &Region)> {
        self.regions.iter().map(|(&start, (end, region))| (start..*end, region))
    }

    /// The parts of regions that lie in `range`, ascending.
    pub fn parts(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, &Region)> {
        let first = self.at(range.start).map_or(range.start, |(found, _)| found.start);
        // A reversed range would panic; it has no parts.
        let last = range.end.max(first);
        let clip = move |(start, end): (u64, u64)| start.max(range.start)..end.min(range.end);
        self.regions.range(first..last).map(move |(&start, (end, region))| (clip((start, *end)), region))
    }

    /// The region that holds `addr`, with its extent.
    pub fn at(&self, addr: u64) -> Option<(Range<u64>, &Region)> {
        let (&start, (end, region)) = self.regions.range(..=addr).next_back()?;
        (addr < *end).then_some((start..*end, region))
    }

    /// The mapping that holds `addr`, with its extent.
    pub fn mapped_at(&self, addr: u64) -> Option<(Range<u64>, Region)> {
        self.at(addr).filter(|(_, region)| region.usage != Use::Guard).map(|(range, region)| (range, *region))
    }

    /// Whether nothing is in `range`.
    pub fn is_free(&self, range: Range<u64>) -> bool {
        self.parts(range).next().is_none()
    }

    /// The mapped parts of `range`, ascending, and whether they are all of it.
    pub fn mapped_parts(&self, range: Range<u64>) -> (Vec<(Range<u64>, Region)>, bool) {
        let mapped = |&(_, region): &(Range<u64>, &Region)| region.usage != Use::Guard;
        let parts: Vec<_> = self.parts(range.clone()).filter(mapped).map(|(part, region)| (part, *region)).collect();
        let bytes: u64 = parts.iter().map(|(part, _)| part.end - part.start).sum();
        (parts, bytes == range.end - range.start)
    }

    /// A new mapping of a file or of shared memory.
    pub fn backed(&mut self, prot: u32, shared: bool, file: bool) -> Region {
        self.last_source += 1;
        Region { shared, file, source: self.last_source, ..Region::private(prot, Use::Mapping) }
    }

    /// The bytes that the kernel keeps for the cage elsewhere.
    pub fn charged(&self) -> u64 {
        self.charged
    }

    /// Counts bytes that the kernel is to keep for the cage, until [`Vmmap::release`].
    ///
    /// # Errors
    /// ENOMEM at the limit.
    pub fn charge(&mut self, bytes: u64) -> Result<()> {
        let total = self.mapped.saturating_add(self.charged).saturating_add(bytes);
        if total > self.limit {
            return Err(Errno::ENOMEM);
        }
        spare::check(usize::try_from(bytes).map_err(|_| Errno::ENOMEM)?)?;
        self.charged += bytes;
        Ok(())
    }

    /// Counts bytes that are there already, whatever the limit is: the cage inherits them.
    pub fn inherit(&mut self, bytes: u64) {
        self.charged = self.charged.saturating_add(bytes);
    }

    /// Releases charged bytes that are gone, or another cage's now.
    pub fn release(&mut self, bytes: u64) {
        self.charged = self.charged.saturating_sub(bytes);
    }

    /// The region after a move: pages of a file that then lie next to each other by chance must not
    /// look like one mapping.
    pub fn moved(&mut self, region: Region) -> Region {
        let usage = Use::Mapping;
        if region.is_plain() {
            return Region { usage, ..region };
        }
        self.last_source += 1;
        Region { usage, source: self.last_source, ..region }
    }

    /// Checks that mapping `range` again stays within the limits.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn check_room(&self, range: Range<u64>) -> Result<()> {
        let replaced: u64 = self.parts(range.clone()).map(|(part, region)| counted(&part, region)).sum();
        let total = (self.mapped - replaced).saturating_add(self.charged).saturating_add(range.end - range.start);
        // The new region, and one more where it splits an old one.
        if total > self.limit || !self.may_have(2) { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    /// Whether taking `range` out, or changing it, makes too many regions.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn check_split(&self, range: Range<u64>) -> Result<()> {
        let inside = |addr: u64| self.at(addr).is_some_and(|(found, _)| found.start < addr);
        let splits = usize::from(inside(range.start)) + usize::from(inside(range.end));
        if splits > 0 && !self.may_have(splits) { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    /// Takes `len` free bytes for `region`: at `hint` if they are free there, else as high as
    /// possible.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn claim(&mut self, len: u64, hint: u64, region: Region) -> Result<u64> {
        let fits = |start: u64| start >= self.space.start && start <= self.space.end.saturating_sub(len);
        let start = if hint != 0 && fits(hint) && self.is_free(hint..hint + len) {
            hint
        } else {
            self.highest_gap(len).ok_or(Errno::ENOMEM)?
        };
        self.check_room(start..start + len)?;
        self.insert(start..start + len, region);
        Ok(start)
    }

    fn highest_gap(&self, len: u64) -> Option<u64> {
        let mut end = self.space.end;
        for (range, _) in self.regions().rev() {
            if end - range.end >= len {
                return Some(end - len);
            }
            end = range.start;
        }
        (end.checked_sub(self.space.start)? >= len).then(|| end - len)
    }

    /// Maps `range`, replacing what was there.
    pub fn map(&mut self, range: Range<u64>, region: Region) {
        self.forget_pages(&range);
        self.carve(range.clone());
        self.insert(range, region);
    }

    /// Unmaps `range`.
    pub fn unmap(&mut self, range: Range<u64>) {
        self.forget_pages(&range);
        self.carve(range);
    }

    fn forget_pages(&mut self, range: &Range<u64>) {
        self.frozen.carve(range.clone());
        self.apart.carve(range);
    }

    /// Changes the regions of `range`.
    pub fn update(&mut self, range: Range<u64>, change: impl Fn(&mut Region)) {
        let parts: Vec<_> = self.parts(range).map(|(part, region)| (part, *region)).collect();
        for (part, before) in parts {
            let mut region = before;
            change(&mut region);
            if region == before {
                continue;
            }
            self.carve(part.clone());
            self.join(part.clone(), region);
            if (region.prot, region.locked, region.guarded) != (before.prot, before.locked, before.guarded) {
                // Both sides may have been touched before.
                self.seam(part.start);
                self.seam(part.end);
            }
        }
    }

    /// Forgets everything but the limit, and what is kept elsewhere.
    pub fn clear(&mut self) {
        *self = Vmmap { charged: self.charged, ..Vmmap::within(self.space.clone(), self.limit) };
    }

    /// Takes the pages of `range` out of the map and returns what they were; regions that reach
    /// beyond are cut.
    fn carve(&mut self, range: Range<u64>) -> Vec<(Range<u64>, Region)> {
        let parts: Vec<_> = self.parts(range).map(|(part, region)| (part, *region)).collect();
        for (part, region) in &parts {
            let (whole, _) = self.at(part.start).expect("a part lies in a region");
            self.regions.remove(&whole.start);
            if whole.start < part.start {
                self.regions.insert(whole.start, (part.start, *region));
            }
            if part.end < whole.end {
                self.regions.insert(part.end, (whole.end, *region));
            }
            self.mapped -= counted(part, region);
            self.locked -= if region.locked { part.end - part.start } else { 0 };
        }
        parts
    }

    /// Adds new pages where nothing is.
    fn insert(&mut self, range: Range<u64>, region: Region) {
        let end = range.end;
        // The host joins them with one neighbour; two neighbours that have been touched do not
        // become one mapping.
        if self.join(range, region) == 2 {
            self.seam(end);
        }
    }

    /// Adds a region where nothing is, and joins it with neighbours that are alike. Returns how
    /// many those were.
    fn join(&mut self, range: Range<u64>, region: Region) -> usize {
        debug_assert!(range.start < range.end && range.start.is_multiple_of(PAGE) && range.end.is_multiple_of(PAGE));
        debug_assert!(self.is_free(range.clone()));
        self.mapped += counted(&range, &region);
        self.locked += if region.locked { range.end - range.start } else { 0 };
        let Range { mut start, mut end } = range;
        let mut joined = 0;
        if region.segment.is_some() {
            self.regions.insert(start, (end, region));
            return joined;
        }
        if let Some((&before, &(before_end, other))) = self.regions.range(..start).next_back()
            && before_end == start
            && other == region
        {
            self.regions.remove(&before);
            start = before;
            joined += 1;
        }
        if let Some(&(after_end, other)) = self.regions.get(&end)
            && other == region
        {
            self.regions.remove(&end);
            end = after_end;
            joined += 1;
        }
        self.regions.insert(start, (end, region));
        joined
    }
}

/// The bytes that count against the limit.
fn counted(range: &Range<u64>, region: &Region) -> u64 {
    if region.usage == Use::Guard { 0 } else { range.end - range.start }
}

mod host;
#[cfg(test)]
mod tests;
