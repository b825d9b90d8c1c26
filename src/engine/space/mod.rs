//! A cage's address space as Wasmtime and the program see it: the reservation handed over as a memory
//! ([`memory`]), what a program finds on its stack ([`startup_block`]), and what a grate's worker needs
//! in the grate's memory ([`worker_stack`]).
//!
//! It knows the kernel's memory map, and nothing of threads.

pub(crate) mod memory;
pub(crate) mod startup_block;
pub(crate) mod worker_stack;
