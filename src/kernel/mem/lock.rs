//! Locked memory: mlock(2).
//!
//! The host does the locking, and counts the locked memory of all cages against one limit, the
//! runner's; each cage also has that as its own. A forked child has no locked memory.

use std::ops::Range;

use lind_abi::{Errno, Result};

use super::vmmap::{Fill, Region, Use};
use super::{Memory, Vmmap};

impl Memory {
    /// Locks the mapped part of a range, up to the first page that is not mapped. No more than
    /// `limit` bytes may be locked then.
    ///
    /// # Errors
    /// ENOMEM for such a page, at the limit, and if the host has no more.
    pub fn lock_pages(&self, range: Range<u64>, limit: u64, fill: Fill) -> Result<()> {
        let (parts, all) = {
            let mut map = self.map();
            let (parts, all) = up_to_hole(&map, range.clone());
            let fresh = |(part, region): &(Range<u64>, Region)| if region.locked { 0 } else { part.end - part.start };
            let missing = range.end - range.start - parts.iter().map(|(part, _)| part.end - part.start).sum::<u64>();
            if map.locked() + parts.iter().map(fresh).sum::<u64>() + missing > limit {
                return Err(Errno::ENOMEM);
            }
            for (part, _) in &parts {
                self.lock_part(&mut map, part.clone())?;
            }
            (parts, all)
        };
        if fill == Fill::AtOnce {
            parts.iter().try_for_each(|(part, region)| self.fill_locked(part, *region))?;
        }
        if all { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// Unlocks what is mapped in a range, up to the first page that is not.
    ///
    /// # Errors
    /// ENOMEM for such a page.
    pub fn unlock_pages(&self, range: Range<u64>) -> Result<()> {
        let mut map = self.map();
        let (parts, all) = up_to_hole(&map, range);
        for (part, _) in parts.into_iter().filter(|(_, region)| region.locked) {
            map.check_split(part.clone())?;
            self.guest.unlock(part.start, part.end - part.start)?;
            map.update(part, |region| region.locked = false);
        }
        if all { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// Locks all there is. Pages that cannot be brought into memory are left out.
    ///
    /// # Errors
    /// ENOMEM if more than `limit` bytes are mapped, and where the host has no more.
    pub fn lock_all(&self, limit: u64, fill: Fill) -> Result<()> {
        let parts: Vec<_> = {
            let mut map = self.map();
            if map.mapped() > limit {
                return Err(Errno::ENOMEM);
            }
            let there = map.regions().filter(|(_, region)| region.usage != Use::Guard);
            let parts: Vec<_> = there.map(|(range, region)| (range, *region)).collect();
            for (part, _) in &parts {
                self.lock_part(&mut map, part.clone())?;
            }
            parts
        };
        if fill == Fill::AtOnce {
            for (part, region) in &parts {
                let _ = self.fill_locked(part, *region);
            }
        }
        Ok(())
    }

    /// Unlocks all there is, and has new mappings unlocked.
    ///
    /// # Errors
    /// The errors of the host.
    pub fn unlock_all(&self) -> Result<()> {
        let mut map = self.map();
        map.lock_new = None;
        let locked: Vec<_> = map.regions().filter(|(_, region)| region.locked).map(|(range, _)| range).collect();
        for range in locked {
            self.guest.unlock(range.start, range.end - range.start)?;
            map.update(range, |region| region.locked = false);
        }
        Ok(())
    }

    /// Makes the host lock pages that have been replaced in ranges that the map says are locked.
    pub(super) fn lock_moved(&self, map: &Vmmap, range: Range<u64>) {
        for (part, _) in map.parts(range).filter(|(_, region)| region.locked) {
            // It counted as much before; if the host has no more by now, the pages still exist.
            let _ = self.guest.lock(part.start, part.end - part.start);
        }
    }

    fn lock_part(&self, map: &mut Vmmap, part: Range<u64>) -> Result<()> {
        map.check_split(part.clone())?;
        // Any error of the host means that too little of its limit is left.
        self.guest.lock(part.start, part.end - part.start).map_err(|_| Errno::ENOMEM)?;
        map.update(part, |region| region.locked = true);
        Ok(())
    }

    /// Brings locked pages into memory. Not while the map is locked: it can take long.
    fn fill_locked(&self, part: &Range<u64>, region: Region) -> Result<()> {
        let advice = match region.prot {
            0 => return Err(Errno::ENOMEM),
            prot if prot & 2 != 0 && !region.shared => libc::MADV_POPULATE_WRITE,
            _ => libc::MADV_POPULATE_READ,
        };
        match self.guest.advise(part.start, part.end - part.start, advice) {
            // A host that does not know this brings them in when they are used.
            Ok(()) | Err(Errno::EINVAL) => Ok(()),
            Err(_) => Err(Errno::ENOMEM),
        }
    }
}

/// The mapped parts of a range before its first hole, and whether there is none.
fn up_to_hole(map: &Vmmap, range: Range<u64>) -> (Vec<(Range<u64>, Region)>, bool) {
    let (mut parts, all) = map.mapped_parts(range.clone());
    let mut end = range.start;
    let together = parts.iter().take_while(|(part, _)| std::mem::replace(&mut end, part.end) == part.start).count();
    parts.truncate(together);
    (parts, all)
}
