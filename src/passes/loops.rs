//! The loop pass: makes a loop that waits for memory to change read it again each time around.
//!
//! Wasm has no volatile. The engine's optimiser forwards an earlier load or store of the same
//! address into a loop when nothing in the loop can change memory, so that `flag = 0; while
//! (!flag);` becomes a jump to itself, although another thread or a signal handler may set the
//! flag. An atomic access is a barrier to that. The pass puts one, an `i32.atomic.load` whose value
//! is dropped, at the head of every loop that
//!
//! - has a way from its head around to its head without a barrier on it, in fact none *with* one:
//!   the optimiser merges what it knows where ways meet, so a store, call or atomic on one way is
//!   enough for all. A barrier that lies only on a way out of the loop (`while (!flag) if (late)
//!   abort();`) is not enough;
//! - loads from an address that is the same each time around. Other loads cannot be forwarded into
//!   the loop.
//!
//! The load is from [`ADDRESS`], where the linker puts the first byte of data
//! (`--global-base=65536`). The engine keeps that page mapped even for a program without data; a
//! program that unmaps it faults.
//!
//! The pass must run on the whole program, and the engine must not inline functions afterwards
//! (Wasmtime does not unless told to): a call counts as a barrier, and inlining would remove it.

use anyhow::Result;

use crate::code::{self, Edit};
use crate::module::{Module, id};
use crate::ops::Body;
use crate::types::Types;

/// An address that can be read whenever guest code runs.
const ADDRESS: i32 = 65536;

/// Runs the pass.
pub fn watch_memory(module: &mut Module) -> Result<()> {
    let Some(section) = module.body(id::CODE) else {
        return Ok(());
    };
    let types = Types::read(module)?;
    let mut edits = Vec::new();
    for (_, body) in code::functions(section)? {
        if let Some(body) = Body::decode(section, &body, &types)? {
            let heads = body.loops_to_watch();
            edits.extend(heads.into_iter().map(|at| Edit { at, remove: 0, insert: barrier() }));
        }
    }
    code::edit(module, &edits, &[])
}

fn barrier() -> Vec<u8> {
    let mut bytes = Vec::new();
    wasm_encoder::InstructionSink::new(&mut bytes)
        .i32_const(ADDRESS)
        .i32_atomic_load(wasm_encoder::MemArg { offset: 0, align: 2, memory_index: 0 })
        .drop();
    bytes
}
