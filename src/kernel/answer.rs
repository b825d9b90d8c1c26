//! Answers with data: what a handler has copied for it when it has returned.
//!
//! A handler that fills in a struct or a small buffer would call `copy_data_between_cages` and then return, which is two ways
//! into the kernel. Instead it may describe the copy in the `struct lind_answer` behind the call that it was given and return
//! [`lind_abi::ANSWER`]. It is the same copy: with the authority that the handler had, and past whoever handles that number for
//! the grate.

use std::mem::offset_of;
use std::sync::Arc;

use lind_abi::layout::LindAnswer;
use lind_abi::{Errno, Result, nr};

use crate::Kernel;
use crate::cage::Thread;
use crate::call;
use crate::engine::{Hop, Served};
use crate::mem::GuestMemory;
use crate::threei::Handler;

/// Makes the copy that `grate`'s handler describes at `at` in its memory. Returns what the client gets: the result that it
/// names, or why the copy was not made.
#[inline]
pub fn give(kernel: &Arc<Kernel>, grate: &Thread, served: &Served<'_>, hop: &dyn Hop, at: u64) -> i64 {
    try_give(kernel, grate, served, hop, at).unwrap_or_else(Errno::to_wire)
}

#[inline]
fn try_give(kernel: &Arc<Kernel>, grate: &Thread, served: &Served<'_>, hop: &dyn Hop, at: u64) -> Result<i64> {
    let memory = &grate.cage.memory.guest;
    let mut words = [0; size_of::<LindAnswer>() / 8];
    memory.load_words(at, &mut words)?;
    let [result, to, cage, from, length] = words;
    let answer = LindAnswer { result: result.cast_signed(), to, cage, from, length };
    // Each answer is given once: a handler that returned this number by chance would give the one before to somebody else.
    memory.store(at + offset_of!(LindAnswer, length) as u64, &0_u64)?;
    if answer.length == 0 {
        return Err(Errno::EINVAL);
    }
    let client = &served.client.cage;
    if answer.cage == u64::from(client.id.0)
        && matches!(grate.cage.handlers.get(nr::copy_data_between_cages), Handler::Kernel)
    {
        GuestMemory::copy_between(&client.memory.guest, answer.to, memory, answer.from, answer.length)?;
        return Ok(answer.result);
    }
    let own = u64::from(grate.cage.id.0);
    let args = [(answer.to, own), (answer.from, own), (answer.length, own), (0, own), (answer.cage, own), (own, own)];
    let copied = call::make_syscall(kernel, grate, Some(served), hop, nr::copy_data_between_cages, own, args);
    Ok(if copied < 0 { copied } else { answer.result })
}
