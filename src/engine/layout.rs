//! The memory a worker needs in its grate's address space.

use lind_abi::{Errno, Result};
use lind_kernel::mem::Memory;

/// Stack of a worker.
const STACK: u32 = 256 << 10;
/// Room above it for thread-local storage; libc maps more itself if the program needs it.
const BLOCK: u32 = 16 << 10;
/// A `struct lind_call` between the two, and the alignment of the stack below it.
const CALL: u32 = 128;
const SIZE: u64 = (STACK + BLOCK) as u64;

/// From low to high: a guard, the stack growing down, the call that is served, thread-local storage.
pub struct WorkerStack {
    end: u64,
    /// Where a `struct lind_call` goes, just above the stack: also the initial stack pointer.
    pub call: u32,
    /// Room for thread-local storage.
    pub block: u32,
    /// Bytes there.
    pub block_len: u32,
}

impl WorkerStack {
    /// Maps memory for a worker.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn map(memory: &Memory) -> Result<WorkerStack> {
        let end = memory.map_stack(SIZE)?;
        let block = u32::try_from(end).map_err(|_| Errno::ENOMEM)? - BLOCK;
        Ok(WorkerStack { end, call: block - CALL, block, block_len: BLOCK })
    }

    /// Unmaps it again.
    pub fn unmap(&self, memory: &Memory) {
        memory.unmap_stack(self.end, SIZE);
    }
}
