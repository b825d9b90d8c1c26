//! The memory that a worker needs in its grate's address space.

use lind_abi::layout::{LindAnswer, LindCall};
use lind_abi::{Errno, Result};
use lind_kernel::mem::Memory;

/// Stack of a worker.
const STACK: u32 = 256 << 10;
/// The space above it for thread-local storage; libc maps more itself if the program needs it.
const BLOCK: u32 = 16 << 10;
/// A `struct lind_call` and a `struct lind_answer` between the two: together a multiple of the
/// stack's alignment.
const CALL: u32 = 120;
const ANSWER: u32 = 56;
const _: () = assert!(size_of::<LindCall>() == CALL as usize && size_of::<LindAnswer>() == ANSWER as usize);
const _: () = assert!((CALL + ANSWER).is_multiple_of(16));
const SIZE: u64 = (STACK + BLOCK) as u64;

/// The memory of a worker. From low to high: a guard, the stack growing down, the call that is
/// served, thread-local storage.
pub struct WorkerStack {
    end: u64,
    /// The address of a `struct lind_call`, just above the stack: also the initial stack pointer.
    pub call: u32,
    /// The address of its `struct lind_answer`.
    pub answer: u32,
    /// The address of the space for thread-local storage.
    pub block: u32,
    /// The size of that space.
    pub block_len: u32,
}

impl WorkerStack {
    /// Maps memory for a worker.
    ///
    /// # Errors
    /// ENOMEM if the grate's address space is full.
    pub fn map(memory: &Memory) -> Result<WorkerStack> {
        let end = memory.map_stack(SIZE)?;
        let block = u32::try_from(end).map_err(|_| Errno::ENOMEM)? - BLOCK;
        let answer = block - ANSWER;
        Ok(WorkerStack { end, call: answer - CALL, answer, block, block_len: BLOCK })
    }

    /// Unmaps the memory.
    pub fn unmap(&self, memory: &Memory) {
        memory.unmap_stack(self.end, SIZE);
    }
}
