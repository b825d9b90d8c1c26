//! Growing, shrinking and moving mappings: the work of mremap(2).
//!
//! If the host grew a mapping in place or moved it, it would leave holes in the reservation, which
//! another mapping of the process could take. So mappings grow piece by piece, and the old place of
//! a moved one stays mapped until it is given back.

use std::ops::Range;

use lind_abi::{Errno, Result};

use super::frozen::Piece;
use super::vmmap::{Region, Vmmap};
use super::{GuestMemory, Memory, space};

/// The places where a mapping may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// It must stay where it is.
    No,
    /// Anywhere if it does not fit where it is.
    IfNeeded,
    /// Here, replacing what is there. Must not overlap the old place.
    To(u64),
}

impl Memory {
    /// Makes the mapping at `old` `new_len` bytes long and returns where it then is. An empty `old`
    /// makes a second mapping of the shared memory there.
    ///
    /// # Errors
    /// EFAULT when `old` is not one mapping; EINVAL for a second mapping of private memory; ENOMEM
    /// when there is not enough room, it may not move, or it is a private mapping of a file that
    /// would grow.
    pub fn remap(&self, old: Range<u64>, new_len: u64, how: Move) -> Result<u64> {
        let mut map = self.map();
        let start = self.remap_locked(&mut map, old, new_len, how)?;
        self.lock_moved(&map, start..start + new_len);
        Ok(start)
    }

    /// Moves the mapping at `old` even if it could stay. Its place stays mapped, with zeroes, or
    /// the contents of the file or the shared memory.
    ///
    /// # Errors
    /// As of [`Memory::remap`].
    pub fn relocate(&self, old: Range<u64>, how: Move) -> Result<u64> {
        let mut map = self.map();
        let len = old.end - old.start;
        let (extent, region) = map.mapped_at(old.start).ok_or(Errno::EFAULT)?;
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        if old.end > extent.end {
            return Err(Errno::EFAULT);
        }
        let start = self.move_region(&mut map, old.clone(), len, how, region)?;
        if region.is_plain() {
            self.unmap_locked(&mut map, old.clone());
            // The contents have moved: a part that cannot be mapped now stays a hole.
            let mut again = region;
            again.locked = false;
            let _ = self.map_private(&mut map, old, again);
        } else {
            map.update(old, |region| region.locked = false);
        }
        self.lock_moved(&map, start..start + len);
        Ok(start)
    }

    fn remap_locked(&self, map: &mut Vmmap, old: Range<u64>, new_len: u64, how: Move) -> Result<u64> {
        let (extent, region) = map.mapped_at(old.start).ok_or(Errno::EFAULT)?;
        let old_len = old.end - old.start;
        if old_len == 0 && !region.shared {
            return Err(Errno::EINVAL);
        }
        let moves = matches!(how, Move::To(_));
        if !moves && old_len >= new_len {
            let tail = old.start + new_len..old.end;
            self.unmap_tail(map, tail)?;
            return Ok(old.start);
        }
        if old.end > extent.end {
            return Err(Errno::EFAULT);
        }
        let grown = old.end..old.start + new_len.max(old_len);
        let room = old_len > 0 && old.end == extent.end && grown.end <= space::END && map.is_free(grown.clone());
        if !moves && room && region.is_plain() {
            let grows = self.map_private(map, grown, region);
            if grows.is_ok() || how == Move::No {
                return grows.map(|()| old.start);
            }
        }
        if how == Move::No || (new_len > old_len && !region.is_plain() && !region.shared) {
            return Err(Errno::ENOMEM);
        }
        let start = self.move_region(map, old.clone(), new_len, how, region)?;
        if old_len > 0 {
            self.unmap_locked(map, old);
        }
        Ok(start)
    }

    fn unmap_tail(&self, map: &mut Vmmap, tail: Range<u64>) -> Result<()> {
        if tail.is_empty() {
            return Ok(());
        }
        map.check_split(tail.clone())?;
        self.guest.unmap(tail.start, tail.end - tail.start)?;
        map.unmap(tail);
        Ok(())
    }

    /// Moves a mapping. Its old place stays mapped, at the host with its initial contents.
    fn move_region(&self, map: &mut Vmmap, old: Range<u64>, new_len: u64, how: Move, region: Region) -> Result<u64> {
        let old_len = old.end - old.start;
        let kept = old_len.min(new_len);
        map.check_split(old.clone())?;
        let kept_pages = old.start..old.start + kept;
        let ends = map.ends_within(&kept_pages);
        if !map.may_have(ends.len()) {
            return Err(Errno::ENOMEM);
        }
        let region = map.moved(region);
        let start = match how {
            Move::To(start) => {
                map.check_room(start..start + new_len)?;
                start
            }
            _ => map.claim(new_len, 0, region)?,
        };
        let done = if region.shared && new_len > old_len {
            self.guest.duplicate_shared(old.start, start, new_len).map(|()| false)
        } else {
            // The new part is mapped first: if that fails, nothing has moved yet.
            let grown = match new_len - kept {
                0 => Ok(()),
                more => self.guest.map_anonymous(start + kept, more, region.host_prot()),
            };
            grown.and_then(|()| self.move_contents(map, kept_pages.clone(), start, region))
        };
        let new = start..start + new_len;
        let pieces_moved = match done {
            Ok(moved) => moved,
            Err(errno) => {
                self.unmap_locked(map, new);
                return Err(errno);
            }
        };
        let frozen: Vec<_> = if pieces_moved { map.frozen.parts(kept_pages).collect() } else { Vec::new() };
        map.map(new, region.shifted(old.start, start));
        if kept > 0 {
            map.odd(start..start + kept);
        }
        ends.into_iter().for_each(|end| map.seam(end - old.start + start));
        for piece in frozen {
            let at = piece.at.start - old.start + start..piece.at.end - old.start + start;
            map.frozen.insert(Piece { at, ..piece });
        }
        Ok(start)
    }

    /// Moves the contents of `old` to a free range, and returns whether frozen pages are frozen
    /// there, too.
    ///
    /// One region may be several mappings of the host's, if some pages come from a layer or may be
    /// huge. It is copied then. Hosts before 6.17 move one mapping or nothing; later ones go on
    /// with the next, up to the first of a layer.
    fn move_contents(&self, map: &Vmmap, old: Range<u64>, start: u64, region: Region) -> Result<bool> {
        let len = old.end - old.start;
        let frozen = map.frozen.bytes(old.clone());
        if frozen == 0 || frozen == len {
            match self.guest.move_pages(old.start, start, len) {
                Err(Errno::EFAULT) if region.is_plain() => {}
                moved => return moved.map(|()| frozen > 0),
            }
        }
        let prot = region.host_prot();
        self.guest.map_anonymous(start, len, libc::PROT_READ | libc::PROT_WRITE)?;
        if prot == libc::PROT_NONE {
            self.guest.protect(old.start, len, libc::PROT_READ)?;
        }
        let copied = GuestMemory::copy_between(&self.guest, start, &self.guest, old.start, len);
        self.guest.protect(old.start, len, prot)?;
        copied?;
        self.guest.protect(start, len, prot)?;
        Ok(false)
    }
}
