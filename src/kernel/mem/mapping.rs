//! Changes of mappings: in the map and at the host together, under the map's lock.
//!
//! Lengths and addresses are multiples of the page size and lie in [`space`]; the system calls see
//! to that. When a host call fails, the ranges that it may have touched are unmapped again or put
//! back, and the map records that.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use lind_abi::{Errno, Result};

use super::frozen::Piece;
use super::vmmap::{OnFork, Region, Use, Vmmap};
use super::{Memory, page_up, space};
use crate::host;

/// The places for a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Anywhere, preferably here unless 0.
    Hint(u64),
    /// Here, replacing what is there.
    Fixed(u64),
    /// Here, EEXIST if anything is there.
    FixedNoReplace(u64),
}

/// The contents of a new mapping.
#[derive(Clone, Copy)]
pub enum Content<'f> {
    /// Zeroes.
    Zero,
    /// A host file, from an offset.
    File(BorrowedFd<'f>, u64),
}

impl Memory {
    /// Maps `len` bytes and returns where.
    ///
    /// # Errors
    /// ENOMEM, EEXIST, and the host's errors for the file.
    pub fn map_pages(&self, place: Place, len: u64, prot: u32, shared: bool, content: Content<'_>) -> Result<u64> {
        if let Content::File(file, offset) = content {
            // A failure of the real call below may leave the range unmapped on older hosts; this
            // one costs nothing.
            self.guest.try_map_file(len, host_prot(prot), shared, file, offset)?;
        }
        let mut map = self.map();
        let region = match content {
            Content::Zero if !shared => Region::private(prot, Use::Mapping),
            _ => map.backed(prot, shared, matches!(content, Content::File(..))),
        };
        let start = match place {
            Place::Hint(hint) => map.claim(len, hint, region)?,
            Place::FixedNoReplace(start) if !map.is_free(start..start + len) => return Err(Errno::EEXIST),
            Place::Fixed(start) | Place::FixedNoReplace(start) => {
                map.check_room(start..start + len)?;
                start
            }
        };
        let range = start..start + len;
        let prot = host_prot(prot);
        let mapped = match content {
            Content::Zero if shared => self.guest.map_anonymous_shared(start, len, prot),
            Content::Zero => self.guest.map_anonymous(start, len, prot),
            Content::File(file, offset) => self.guest.map_file(start, len, prot, shared, file, offset),
        };
        match mapped {
            Ok(()) => map.map(range, region),
            Err(errno) => {
                self.unmap_locked(&mut map, range);
                return Err(errno);
            }
        }
        Ok(start)
    }

    /// Unmaps a range, whatever is in it.
    ///
    /// # Errors
    /// ENOMEM when that would make too many regions.
    pub fn unmap_pages(&self, range: Range<u64>) -> Result<()> {
        let mut map = self.map();
        map.check_split(range.clone())?;
        self.guest.unmap(range.start, range.end - range.start)?;
        map.unmap(range);
        Ok(())
    }

    /// Changes the protection of a range, up to the first page that is not mapped.
    ///
    /// # Errors
    /// ENOMEM for such a page, EACCES if the host refuses; pages before it are changed, as on
    /// Linux.
    pub fn protect_pages(&self, range: Range<u64>, prot: u32) -> Result<()> {
        let mut map = self.map();
        map.check_split(range.clone())?;
        let parts: Vec<_> = map.parts(range.clone()).map(|(part, region)| (part, *region)).collect();
        let mut end = range.start;
        for (part, region) in parts {
            if part.start != end || region.usage == Use::Guard {
                return Err(Errno::ENOMEM);
            }
            end = part.end;
            let len = part.end - part.start;
            let mut given = region;
            given.prot = prot;
            if let Err(errno) = self.guest.protect(part.start, len, given.host_prot()) {
                let _ = self.guest.protect(part.start, len, region.host_prot());
                return Err(errno);
            }
            map.update(part, |region| region.prot = prot);
        }
        if end == range.end { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// Moves the program break to `to` if possible, and returns the new break. `data_limit` is
    /// RLIMIT_DATA.
    pub fn set_break(&self, to: u64, data_limit: u64) -> u64 {
        let mut map = self.map();
        let Range { start, end: old } = map.brk.clone();
        let grown = page_up(to).filter(|&end| end <= space::END);
        let Some(new_end) = grown.filter(|_| to >= start && to - start <= data_limit) else { return old };
        let old_end = page_up(old).unwrap_or(old);
        let changed = if new_end > old_end {
            self.grow_heap(&mut map, old_end..new_end)
        } else if new_end < old_end {
            map.check_split(new_end..old_end).and_then(|()| {
                self.guest.unmap(new_end, old_end - new_end)?;
                map.unmap(new_end..old_end);
                Ok(())
            })
        } else {
            Ok(())
        };
        if changed.is_ok() {
            map.brk.end = to;
        }
        map.brk.end
    }

    fn grow_heap(&self, map: &mut Vmmap, range: Range<u64>) -> Result<()> {
        if !map.is_free(range.clone()) {
            return Err(Errno::ENOMEM);
        }
        self.map_private(map, range, Region::private(3, Use::Heap))
    }

    /// Maps zeroed private pages where nothing is.
    pub(super) fn map_private(&self, map: &mut Vmmap, range: Range<u64>, region: Region) -> Result<()> {
        map.check_room(range.clone())?;
        let mapped = self.guest.map_anonymous(range.start, range.end - range.start, region.host_prot());
        match mapped {
            Ok(()) => map.map(range, region),
            Err(_) => self.unmap_locked(map, range),
        }
        mapped
    }

    /// Called after a failed host call: makes sure that the range is reserved, empty, and known to
    /// be so. If even that fails the host has changed nothing.
    pub(super) fn unmap_locked(&self, map: &mut Vmmap, range: Range<u64>) {
        if self.guest.unmap(range.start, range.end - range.start).is_ok() {
            map.unmap(range);
        }
    }

    /// madvise(2) MADV_DONTNEED and MADV_FREE. Private memory that comes from a layer is mapped
    /// again: the host would give back the contents of the layer. MADV_DONTNEED does mean that for
    /// the program's data, which come back.
    ///
    /// # Errors
    /// EINVAL for locked pages; ENOMEM if a part of the range is not mapped, after the rest is
    /// done; else the host's errors.
    pub fn discard(&self, range: Range<u64>, advice: i32) -> Result<()> {
        let returns = |piece: &Piece| advice == libc::MADV_DONTNEED && piece.layer.is_program();
        let mut map = self.map();
        let (parts, all) = map.mapped_parts(range);
        for (part, region) in parts {
            if region.locked {
                return Err(Errno::EINVAL);
            }
            let frozen: Vec<_> = map.frozen.parts(part.clone()).filter(|piece| !returns(piece)).collect();
            let mut left = Vec::new();
            for piece in frozen.into_iter().map(|piece| piece.at) {
                if map.may_split() {
                    self.guest.map_anonymous(piece.start, piece.end - piece.start, region.host_prot())?;
                    map.frozen.carve(piece.clone());
                    [piece.start, piece.end].into_iter().for_each(|at| map.seam(at));
                } else {
                    left.push(piece);
                }
            }
            self.guest.advise(part.start, part.end - part.start, advice)?;
            for piece in left {
                self.rewrite(&mut map, &piece, region, || self.guest.fill(piece.start, 0, piece.end - piece.start))?;
            }
            if advice == libc::MADV_DONTNEED && region.usage == Use::Data {
                self.restore(&mut map, &part, region)?;
            }
        }
        if all { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// Maps the program's data again where other pages have replaced them: those of a fork, or
    /// zeroes.
    fn restore(&self, map: &mut Vmmap, part: &Range<u64>, region: Region) -> Result<()> {
        let initial = Arc::clone(&map.initial);
        let touches = |piece: &&Piece| piece.at.start < part.end && piece.at.end > part.start;
        for piece in initial.iter().filter(touches).map(|piece| piece.clip(part)) {
            let mut from = piece.at.start;
            let there: Vec<_> = map.frozen.parts(piece.at.clone()).filter(|piece| piece.layer.is_program()).collect();
            let ends = there.into_iter().map(|piece| piece.at).chain(std::iter::once(piece.at.end..piece.at.end));
            for Range { start, end } in ends {
                if from < start {
                    self.put_back(map, &piece.clip(&(from..start)), region)?;
                }
                from = end;
            }
        }
        Ok(())
    }

    fn put_back(&self, map: &mut Vmmap, piece: &Piece, region: Region) -> Result<()> {
        let Range { start, end } = piece.at;
        let file = piece.layer.file();
        if map.may_split() {
            self.guest.map_file(start, end - start, region.host_prot(), false, file, piece.offset)?;
            map.frozen.carve(piece.at.clone());
            map.frozen.insert(piece.clone());
            return Ok(());
        }
        self.rewrite(map, &piece.at, region, || {
            let mut page = [0; 4096];
            for at in (start..end).step_by(page.len()) {
                rustix::io::pread(file, &mut page, piece.offset + (at - start)).map_err(host::errno)?;
                self.guest.write(at, &page)?;
            }
            Ok(())
        })
    }

    /// Writes to pages whatever their protection is, where there may be no more mappings.
    fn rewrite(
        &self,
        map: &mut Vmmap,
        range: &Range<u64>,
        region: Region,
        write: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let (start, len) = (range.start, range.end - range.start);
        [range.start, range.end].into_iter().for_each(|at| map.seam(at));
        self.guest.protect(start, len, libc::PROT_READ | libc::PROT_WRITE)?;
        let written = write();
        self.guest.protect(start, len, region.host_prot())?;
        written
    }

    /// madvise(2) `MADV_GUARD_INSTALL` and `MADV_GUARD_REMOVE`: guarded pages cannot be accessed,
    /// whatever their protection is, and their contents are gone.
    ///
    /// # Errors
    /// EINVAL for guarding locked pages; ENOMEM if a part of the range is not mapped, after the
    /// rest is done.
    pub fn guard_pages(&self, range: Range<u64>, guarded: bool) -> Result<()> {
        let all = {
            let mut map = self.map();
            map.check_split(range.clone())?;
            let (parts, all) = map.mapped_parts(range.clone());
            if guarded && parts.iter().any(|(_, region)| region.locked) {
                return Err(Errno::EINVAL);
            }
            for (part, mut region) in parts {
                region.guarded = guarded;
                self.guest.protect(part.start, part.end - part.start, region.host_prot())?;
                map.update(part, |region| region.guarded = guarded);
            }
            all
        };
        if guarded {
            return self.discard(range, libc::MADV_DONTNEED);
        }
        if all { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// Sets what fork makes of a range. ENOMEM where something in it is not mapped.
    ///
    /// # Errors
    /// ENOMEM; EINVAL for wiping what is not private zeroed memory.
    pub fn set_on_fork(&self, range: Range<u64>, on_fork: OnFork) -> Result<()> {
        let mut map = self.map();
        map.check_split(range.clone())?;
        let (parts, all) = map.mapped_parts(range);
        if on_fork == OnFork::Wipe && !parts.iter().all(|(_, region)| region.is_plain()) {
            return Err(Errno::EINVAL);
        }
        for (part, _) in parts {
            map.update(part, |region| region.on_fork = on_fork);
        }
        if all { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// Calls `act` with each mapped part of a range.
    ///
    /// # Errors
    /// ENOMEM if a part of the range is not mapped, after the rest is done; otherwise the first
    /// error of `act`.
    pub fn for_mapped(&self, range: Range<u64>, mut act: impl FnMut(Range<u64>) -> Result<()>) -> Result<()> {
        let (parts, all) = self.map().mapped_parts(range);
        parts.into_iter().try_for_each(|(part, _)| act(part))?;
        if all { Ok(()) } else { Err(Errno::ENOMEM) }
    }
}

/// The protection the host gets; guest code is never executed from guest memory.
pub(super) fn host_prot(prot: u32) -> i32 {
    i32::try_from(prot & 7).expect("three bits")
}

#[cfg(test)]
mod tests;
