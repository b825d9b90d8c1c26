//! A cage's address space as Wasmtime and the program see it: the reservation handed over as a
//! memory ([`memory`]), the block on a program's stack at its start ([`startup_block`]), and the
//! memory of a grate's worker in the grate's space ([`worker_stack`]).
//!
//! It depends on the kernel's memory map, but not on threads.

pub(crate) mod memory;
pub(crate) mod startup_block;
pub(crate) mod worker_stack;
