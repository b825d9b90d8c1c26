//! Memory that is set aside for small allocations of the runner.
//!
//! Requests of cages are refused while the host is short of memory. But the host may run out of
//! memory between such a check and the next list or string of the runner, and an allocation that
//! fails ends the runner with every cage in it. The reserve is released then, once: it is enough
//! for the refusals that follow.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The size of the reserve: large enough for a mapping of its own, so that any part of the heap can
/// use it once it is released.
const SIZE: usize = 1 << 20;
const LAYOUT: Layout = match Layout::from_size_align(SIZE, 16) {
    Ok(layout) => layout,
    Err(_) => panic!("a size and an alignment"),
};

static SET_ASIDE: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// The system's allocator, with a reserve.
pub struct Reserve;

impl Reserve {
    /// Sets the memory aside. It takes address space and counts against limits, but is never
    /// touched.
    pub fn begin() {
        // SAFETY: the size is not zero.
        let memory = unsafe { System.alloc(LAYOUT) };
        SET_ASIDE.store(memory, Ordering::Release);
    }

    /// Releases the reserve. False if that was done before.
    fn give_up() -> bool {
        let memory = SET_ASIDE.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if memory.is_null() {
            return false;
        }
        // SAFETY: `begin` allocated it with this layout, and whoever swaps it out has it alone.
        unsafe { System.dealloc(memory, LAYOUT) };
        true
    }
}

// SAFETY: all memory is the system's allocator's.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let memory = unsafe { System.alloc(layout) };
        if !memory.is_null() || layout.size() > SIZE / 4 || !Reserve::give_up() {
            return memory;
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let memory = unsafe { System.alloc_zeroed(layout) };
        if !memory.is_null() || layout.size() > SIZE / 4 || !Reserve::give_up() {
            return memory;
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        let moved = unsafe { System.realloc(memory, layout, size) };
        if !moved.is_null() || size > SIZE / 4 || !Reserve::give_up() {
            return moved;
        }
        // SAFETY: as the caller promises; what could not be moved is still there.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_given_up_once() {
        Reserve::begin();
        assert_eq!((Reserve::give_up(), Reserve::give_up()), (true, false));
        // An allocation that is too large still fails.
        assert!(Vec::<u8>::new().try_reserve_exact(isize::MAX as usize).is_err());
    }
}
