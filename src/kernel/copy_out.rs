//! Answers with data: copies that the kernel makes for a handler after it has returned.
//!
//! A handler that fills in a struct or a small buffer would call `copy_data_between_cages` and then
//! return, which is two ways into the kernel. Instead it may describe the copy in the `struct
//! lind_answer` behind the call that it was given and return [`lind_abi::ANSWER`]. The copy is the
//! same: it is made with the handler's authority, and by the handlers of that number that the
//! grate's own calls have. A lock word that protects the data meanwhile is released afterwards.

use std::sync::Arc;

use lind_abi::layout::LindAnswer;
use lind_abi::{Errno, Result, nr};

use crate::Kernel;
use crate::cage::Thread;
use crate::call;
use crate::mem::{GuestMemory, PAGE};
use crate::runtime::{Hop, Served};
use crate::threei::Handler;

/// Makes the copy that `grate`'s handler describes at `at` in its `memory`. Returns the client's
/// result: the one that the answer names, or the reason why the copy was not made.
#[inline]
pub fn give(
    kernel: &Arc<Kernel>,
    (grate, memory): (&Thread, &GuestMemory),
    served: &Served<'_>,
    hop: &dyn Hop,
    at: u64,
) -> i64 {
    try_give(kernel, (grate, memory), served, hop, at).unwrap_or_else(Errno::to_wire)
}

#[inline]
fn try_give(
    kernel: &Arc<Kernel>,
    (grate, memory): (&Thread, &GuestMemory),
    served: &Served<'_>,
    hop: &dyn Hop,
    at: u64,
) -> Result<i64> {
    // Each answer is given once: a handler that returned this number by chance would otherwise send
    // the previous answer to another client.
    let answer = memory.take_answer(at)?;
    if answer.length == 0 {
        return Err(Errno::EINVAL);
    }
    let client = &served.client.cage;
    let given = if answer.cage == u64::from(client.id.0)
        && matches!(grate.cage.handlers.get(nr::copy_data_between_cages), Handler::Kernel)
    {
        let copy = |to, from, length| GuestMemory::copy_between(&client.memory.guest, to, memory, from, length);
        match copy(answer.to, answer.from, answer.length) {
            Ok(()) => Ok(answer.result),
            Err(errno) => what_fits(&answer, errno, copy),
        }
    } else {
        through_handlers(kernel, grate, served, hop, &answer)
    };
    if answer.release != 0 {
        memory.store(answer.release, &0_u32)?;
    }
    given
}

/// Makes the copy as a call of the grate, if another grate handles such calls.
#[cold]
fn through_handlers(
    kernel: &Arc<Kernel>,
    grate: &Thread,
    served: &Served<'_>,
    hop: &dyn Hop,
    answer: &LindAnswer,
) -> Result<i64> {
    let own = u64::from(grate.cage.id.0);
    let copy = |to, from, length| {
        let args = [(to, own), (from, own), (length, own), (0, own), (answer.cage, own), (own, own)];
        let copied = call::make_syscall(kernel, grate, Some(served), hop, nr::copy_data_between_cages, own, args);
        if copied < 0 { Err(Errno::from_wire(copied).unwrap_or(Errno::EFAULT)) } else { Ok(()) }
    };
    match copy(answer.to, answer.from, answer.length) {
        Ok(()) => Ok(answer.result),
        Err(errno) => what_fits(answer, errno, copy),
    }
}

/// Copies the present pages of the client, up to the first missing one, if the answer is to be
/// their length then.
#[cold]
fn what_fits(answer: &LindAnswer, errno: Errno, copy: impl Fn(u64, u64, u64) -> Result<()>) -> Result<i64> {
    let mut done = 0;
    while answer.part != 0 && done < answer.length {
        let (to, from) = (answer.to.wrapping_add(done), answer.from.wrapping_add(done));
        let piece = (PAGE - to % PAGE).min(answer.length - done);
        if copy(to, from, piece).is_err() {
            break;
        }
        done += piece;
    }
    if done == 0 { Err(errno) } else { i64::try_from(done).map_err(|_| errno) }
}
