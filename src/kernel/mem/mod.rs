//! Guest memory: the mapping, the map of what is in it, and the doors through which the kernel touches it.

mod guest;
mod layout;
mod mapping;
mod remap;
mod user;
mod vmmap;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use guest::{Fault, GuestMemory, HostRange, PAGE, Pod, install_fault_handler};
pub use mapping::{Content, Place};
pub use remap::Move;
pub use user::PathBytes;
pub use vmmap::{OnFork, Region, Use, Vmmap};

use lind_abi::Result;

/// Where guest addresses begin and end. Laid out like Linux: an unmapped first 64 KiB, data, heap, mappings, stack.
pub mod space {
    /// The lowest address that is ever mapped; the linker puts data here.
    pub const FIRST: u64 = 1 << 16;
    /// One past the highest address that is ever mapped.
    pub const END: u64 = 0xffff_0000;
    /// One past the highest address there is: what would be TASK_SIZE.
    pub const LIMIT: u64 = 1 << 32;
    /// The size of the main stack.
    pub const STACK: u64 = 8 << 20;
    /// What stays unmapped below every stack the engine makes.
    pub const STACK_GUARD: u64 = 1 << 20;
}

/// The memory of a cage.
pub struct Memory {
    /// The reservation.
    pub guest: GuestMemory,
    /// What is mapped where. Held while the host maps, so that the two agree.
    map: Mutex<Vmmap>,
}

impl Memory {
    /// An empty address space in which at most `limit` bytes may be mapped.
    ///
    /// # Errors
    /// ENOMEM when the host has no address space left.
    pub fn new(limit: u64) -> Result<Memory> {
        Ok(Memory { guest: GuestMemory::reserve()?, map: Mutex::new(Vmmap::new(limit)) })
    }

    /// The map, locked.
    pub fn map(&self) -> MutexGuard<'_, Vmmap> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of the page that `addr` lies in or ends. None beyond 2^64.
pub(crate) fn page_up(addr: u64) -> Option<u64> {
    addr.checked_next_multiple_of(PAGE)
}
