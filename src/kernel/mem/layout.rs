//! The layout of a program in its memory: its data, its heap, its stacks.

use std::sync::Arc;

use lind_abi::{Errno, Result};

use super::vmmap::{Region, Use};
use super::{InitialData, Memory, page_up, space};

const READ_WRITE: u32 = 3;

impl Memory {
    /// Makes the address space that of a fresh program: nothing mapped but its data, from
    /// [`space::FIRST`] up to the page that `heap_base` (the module's `__heap_base`) ends in, and
    /// the main stack. The heap begins after the data. Earlier mappings are removed, as by
    /// execve(2). The data are `initial`, and zero elsewhere.
    ///
    /// Returns the top of the main stack, for `__stack_pointer`: [`space::END`], a multiple of 16.
    ///
    /// # Errors
    /// ENOMEM when the data reaches the stack, when the limit on memory is too low, or when the
    /// host has no room. ENOEXEC when `initial` is not within the data.
    pub fn load_layout(&self, heap_base: u64, initial: &InitialData) -> Result<u64> {
        let mut map = self.map();
        if !map.is_empty() {
            self.guest.unmap_all()?;
            map.clear();
        }
        let stack = space::END - space::STACK..space::END;
        let guard = stack.start - space::STACK_GUARD..stack.start;
        let data_end = page_up(heap_base).filter(|&end| end <= guard.start).ok_or(Errno::ENOMEM)?.max(space::FIRST);
        let data = space::FIRST..data_end;

        map.check_room(stack.clone())?;
        self.guest.map_anonymous(stack.start, space::STACK, libc::PROT_READ | libc::PROT_WRITE)?;
        map.map(stack, Region::private(READ_WRITE, Use::Stack));
        map.map(guard, Region::private(0, Use::Guard));
        if !data.is_empty() {
            map.check_room(data.clone())?;
            self.guest.map_anonymous(data.start, data.end - data.start, libc::PROT_READ | libc::PROT_WRITE)?;
            map.map(data.clone(), Region::private(READ_WRITE, Use::Data));
        }
        let pieces = initial.within(data)?;
        for piece in pieces.iter() {
            let len = piece.at.end - piece.at.start;
            let (prot, file) = (libc::PROT_READ | libc::PROT_WRITE, piece.layer.file());
            self.guest.map_file(piece.at.start, len, prot, false, file, piece.offset)?;
            map.frozen.insert(piece.clone());
        }
        map.initial = Arc::clone(pieces);
        map.brk = data_end..data_end;
        Ok(space::END)
    }

    /// Maps a stack of at least `size` bytes for a grate's worker, with [`space::STACK_GUARD`]
    /// unmapped below it. Returns its top, which is page aligned; [`Memory::unmap_stack`] takes the
    /// same size.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn map_stack(&self, size: u64) -> Result<u64> {
        let size = page_up(size).filter(|&size| size > 0 && size < space::END).ok_or(Errno::ENOMEM)?;
        let mut map = self.map();
        let start = map.claim(size + space::STACK_GUARD, 0, Region::private(0, Use::Guard))?;
        let stack = start + space::STACK_GUARD..start + space::STACK_GUARD + size;
        if let Err(errno) = self.guest.map_anonymous(stack.start, size, libc::PROT_READ | libc::PROT_WRITE) {
            map.unmap(start..stack.end);
            return Err(errno);
        }
        map.map(stack.clone(), Region::private(READ_WRITE, Use::Worker));
        Ok(stack.end)
    }

    /// Unmaps a worker's stack and its guard. Mappings that the guest has put in their place since
    /// then remain.
    pub fn unmap_stack(&self, top: u64, size: u64) {
        let Some(size) = page_up(size).filter(|&size| size + space::STACK_GUARD <= top) else { return };
        let mut map = self.map();
        let extent = top - size - space::STACK_GUARD..top;
        let ours = |region: &Region| matches!(region.usage, Use::Worker | Use::Guard);
        let parts: Vec<_> = map.parts(extent).filter(|(_, region)| ours(region)).map(|(part, _)| part).collect();
        for part in parts {
            if self.guest.unmap(part.start, part.end - part.start).is_ok() {
                map.unmap(part);
            }
        }
    }
}
