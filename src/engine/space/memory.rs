//! Hands a cage's address space to Wasmtime.
//!
//! Wasmtime asks its memory creator for the memory of every instance and, through the same call,
//! for the heaps that hold exceptions, without telling for which instance. So the thread that
//! instantiates sets it: [`adopting`] names the space while it runs, and every memory of 65536
//! pages that is asked for meanwhile is that one.

#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use lind_kernel::mem::Memory;
use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use crate::code::engines::PAGES;

thread_local! {
    static ADOPTING: RefCell<Option<Arc<Memory>>> = const { RefCell::new(None) };
}

/// Runs `instantiate` with `memory` as the memory of the instance that it makes on this thread.
pub fn adopting<R>(memory: &Arc<Memory>, instantiate: impl FnOnce() -> R) -> R {
    struct Restore(Option<Arc<Memory>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ADOPTING.set(self.0.take());
        }
    }
    let _restore = Restore(ADOPTING.replace(Some(Arc::clone(memory))));
    instantiate()
}

/// The memory creator of both engines.
pub struct AdoptedMemory;

// SAFETY: a cage's space is 4 GiB at a fixed address with guards as large as the configuration
// says, and lives as long as the Arc in `CageMemory`. It is not zero when a second instance adopts
// it, and the kernel remaps parts of it: both are sound for Wasmtime, which keeps no references
// into linear memory, only its base and size.
unsafe impl MemoryCreator for AdoptedMemory {
    fn new_memory(
        &self,
        ty: MemoryType,
        minimum: usize,
        maximum: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        if ty.minimum() == PAGES {
            let memory = ADOPTING.with_borrow(Clone::clone).ok_or("no cage is being instantiated on this thread")?;
            return Ok(Box::new(CageMemory(memory)));
        }
        let len = reserved.or(maximum).unwrap_or(minimum);
        ExceptionHeap::reserve(minimum, len, guard).map(|heap| Box::new(heap) as Box<dyn LinearMemory>)
    }
}

struct CageMemory(Arc<Memory>);

// SAFETY: as for the creator: size and base never change.
unsafe impl LinearMemory for CageMemory {
    fn byte_size(&self) -> usize {
        1 << 32
    }

    fn byte_capacity(&self) -> usize {
        1 << 32
    }

    fn grow_to(&mut self, _: usize) -> wasmtime::Result<()> {
        Err(wasmtime::Error::msg("a cage's memory does not grow"))
    }

    fn as_ptr(&self) -> *mut u8 {
        self.0.guest.base()
    }
}

thread_local! {
    /// The reservation of an exception heap that ended unused, for the next one: most threads throw
    /// nothing.
    static SPARE: Cell<Option<Reservation>> = const { Cell::new(None) };
}

/// Address space of its own, which is inaccessible until its owner opens parts of it.
struct Reservation {
    start: *mut u8,
    len: usize,
}

impl Reservation {
    fn new(len: usize) -> Result<Reservation, String> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh anonymous mapping touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(format!("no room for {len} bytes: {}", std::io::Error::last_os_error()));
        }
        Ok(Reservation { start: start.cast(), len })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this start and length, and its only owner is
        // gone.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}

/// A small reservation opened from the front, for a Store's exceptions.
struct ExceptionHeap {
    /// None only while it is dropped.
    space: Option<Reservation>,
    start: *mut u8,
    size: usize,
    capacity: usize,
}

// SAFETY: the mapping is owned by this value, and Wasmtime alone reads and writes it.
unsafe impl Send for ExceptionHeap {}
// SAFETY: as for Send; `grow_to` takes `&mut self`.
unsafe impl Sync for ExceptionHeap {}

impl ExceptionHeap {
    fn reserve(minimum: usize, capacity: usize, guard: usize) -> Result<ExceptionHeap, String> {
        if minimum > capacity {
            return Err(format!("a memory of {minimum} bytes does not fit {capacity}"));
        }
        let len = capacity.checked_add(guard).ok_or("the size overflows")?;
        let space = match SPARE.take().filter(|spare| spare.len == len) {
            Some(spare) => spare,
            None => Reservation::new(len)?,
        };
        let mut heap = ExceptionHeap { start: space.start, space: Some(space), size: 0, capacity };
        heap.grow_to(minimum).map_err(|error| error.to_string())?;
        Ok(heap)
    }
}

// SAFETY: `start` is stable, the first `size` bytes are accessible, and `capacity` bytes and the
// guard are reserved.
unsafe impl LinearMemory for ExceptionHeap {
    fn byte_size(&self) -> usize {
        self.size
    }

    fn byte_capacity(&self) -> usize {
        self.capacity
    }

    fn grow_to(&mut self, size: usize) -> wasmtime::Result<()> {
        if size > self.capacity {
            return Err(wasmtime::Error::msg("the exception heap is full"));
        }
        if size > self.size {
            // SAFETY: the range is inside this value's own mapping; mprotect rounds the end up to a
            // page, which is reserved.
            let result = unsafe { libc::mprotect(self.start.cast(), size, libc::PROT_READ | libc::PROT_WRITE) };
            if result != 0 {
                return Err(std::io::Error::last_os_error().into());
            }
            self.size = size;
        }
        Ok(())
    }

    fn as_ptr(&self) -> *mut u8 {
        self.start
    }
}

impl Drop for ExceptionHeap {
    fn drop(&mut self) {
        if self.size == 0 {
            // A thread that cannot keep it any more is about to end.
            let _ = SPARE.try_with(|spare| spare.set(self.space.take()));
        }
    }
}
