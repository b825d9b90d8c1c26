//! Guest memory: the reservation, the map of its contents, and the functions by which the kernel
//! accesses it.

pub mod budget;
mod fork;
mod frozen;
mod guest;
#[cfg(test)]
mod host_count;
mod initial;
mod layout;
mod lock;
mod mapping;
#[cfg(test)]
mod random;
mod remap;
mod vmmap;

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

pub use fork::{Alone, PageMap};
pub use guest::spare;
pub use guest::{Fault, GuestMemory, HostRange, PAGE, Pod, install_fault_handler};
pub use initial::InitialData;
pub use mapping::{Content, Place};
pub use remap::Move;
pub use vmmap::{Attached, Fill, MAX_REGIONS, OnFork, Region, Use, Vmmap};

use crate::lock::Locked;
use lind_abi::Result;

/// The bounds of guest addresses. Laid out like Linux: an unmapped first 64 KiB, data, heap,
/// mappings, stack. As on a host with vm.mmap_min_addr of 0, programs may map the unmapped part:
/// WASI programs have data there.
pub mod space {
    /// The lowest address that is mapped unless a program asks for a lower one; the linker puts
    /// data here.
    pub const FIRST: u64 = 1 << 16;
    /// One past the highest address that is ever mapped.
    pub const END: u64 = 0xffff_0000;
    /// One past the highest address: Linux's TASK_SIZE.
    pub const LIMIT: u64 = 1 << 32;
    /// The size of the main stack.
    pub const STACK: u64 = 8 << 20;
    /// The size of the unmapped guard below every stack that the engine makes.
    pub const STACK_GUARD: u64 = 1 << 20;
}

/// The memory of a cage.
pub struct Memory {
    /// The reservation.
    pub guest: GuestMemory,
    /// The map of the regions. Held while the host maps, so that the two agree.
    map: Mutex<Vmmap>,
    /// Observations from earlier forks. Taken while `map` is held.
    history: Mutex<fork::History>,
    /// The number of users that need it accessible: cages that have it by vfork(2), threads that
    /// leave their last words.
    needed: AtomicUsize,
}

impl Memory {
    /// An empty address space in which at most `limit` bytes may be mapped.
    ///
    /// # Errors
    /// ENOMEM when the host has no address space left.
    pub fn new(limit: u64) -> Result<Memory> {
        Ok(Memory::of(GuestMemory::reserve()?, Vmmap::new(limit)))
    }

    fn of(guest: GuestMemory, mut map: Vmmap) -> Memory {
        map.settle_share();
        Memory { guest, map: Mutex::new(map), history: Mutex::default(), needed: AtomicUsize::new(0) }
    }

    /// Restores the access that [`CageMemory::withhold`] has removed, as long as the result lives.
    pub fn give_back(&self) -> Needed<'_> {
        self.needed.fetch_add(1, Ordering::AcqRel);
        let mut map = self.map();
        if std::mem::take(&mut map.withheld) {
            for (range, region) in map.regions().filter(|(_, region)| region.usage != Use::Guard) {
                // The host had room for these mappings before.
                let _ = self.guest.protect(range.start, range.end - range.start, region.host_prot());
            }
        }
        Needed(self)
    }

    /// The map, locked.
    pub fn map(&self) -> MapGuard<'_> {
        MapGuard(self.map.locked())
    }

    /// Whether nothing is mapped at `addr`; false if the answer would need waiting for another
    /// thread.
    pub fn is_hole(&self, addr: u64) -> bool {
        self.map.try_lock().is_ok_and(|map| map.mapped_at(addr).is_none())
    }
}

/// A locked map. When it goes, the budget of mappings learns what the map has come to.
pub struct MapGuard<'m>(MutexGuard<'m, Vmmap>);

impl Deref for MapGuard<'_> {
    type Target = Vmmap;

    fn deref(&self) -> &Vmmap {
        &self.0
    }
}

impl DerefMut for MapGuard<'_> {
    fn deref_mut(&mut self) -> &mut Vmmap {
        &mut self.0
    }
}

impl Drop for MapGuard<'_> {
    fn drop(&mut self) {
        self.0.settle_share();
    }
}

/// While it lives, a memory is not withheld.
pub struct Needed<'m>(&'m Memory);

impl Drop for Needed<'_> {
    fn drop(&mut self) {
        self.0.needed.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Which memory a cage has: its own, or after vfork(2) its parent's until it runs a program of its
/// own.
///
/// A borrower may keep references to what it found here: neither memory is freed before the cage.
pub struct CageMemory {
    first: Arc<Memory>,
    own: OnceLock<Arc<Memory>>,
    borrowed: bool,
}

impl CageMemory {
    /// A cage's own memory.
    pub fn own(memory: Memory) -> CageMemory {
        CageMemory { first: Arc::new(memory), own: OnceLock::new(), borrowed: false }
    }

    /// Another cage's memory.
    pub fn borrow(memory: &Arc<Memory>) -> CageMemory {
        memory.needed.fetch_add(1, Ordering::AcqRel);
        CageMemory { first: Arc::clone(memory), own: OnceLock::new(), borrowed: true }
    }

    /// Whether it is another cage's.
    pub fn is_borrowed(&self) -> bool {
        self.borrowed && self.own.get().is_none()
    }

    /// Puts memory of its own in the place of borrowed memory.
    pub fn replace(&self, memory: Memory) {
        debug_assert!(self.borrowed, "own memory is emptied, not replaced");
        if self.own.set(Arc::new(memory)).is_ok() {
            self.first.needed.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Called for a cage that ends: removes all access to its memory, so that a thread in the
    /// middle of a long copy leaves it by a fault. Does nothing while the memory is needed.
    /// [`Memory::give_back`] undoes it.
    pub fn withhold(&self) {
        if self.is_borrowed() {
            return;
        }
        let mut map = self.map();
        if !map.withheld && self.needed.load(Ordering::Acquire) == 0 {
            map.withheld = self.guest.protect(0, GuestMemory::SPACE, libc::PROT_NONE).is_ok();
        }
    }
}

impl Drop for CageMemory {
    fn drop(&mut self) {
        if self.is_borrowed() {
            self.first.needed.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Deref for CageMemory {
    type Target = Arc<Memory>;

    #[inline(always)]
    fn deref(&self) -> &Arc<Memory> {
        self.own.get().unwrap_or(&self.first)
    }
}

/// The end of the page that `addr` lies in or ends. None beyond 2^64.
pub(crate) fn page_up(addr: u64) -> Option<u64> {
    addr.checked_next_multiple_of(PAGE)
}
