//! System V interprocess communication, and message queues of POSIX.

mod message;
mod named;
mod semaphore;
mod shared;

pub(crate) use message::*;
pub(crate) use named::*;
pub(crate) use semaphore::*;
pub(crate) use shared::*;

use lind_abi::{Errno, InOut, Out, Result};

use crate::call::Ctx;
use crate::event::{Event, Seen};
use crate::sys::wait::Deadline;

const IPC_RMID: u32 = 0;
const IPC_SET: u32 = 1;
const IPC_STAT: u32 = 2;
const IPC_INFO: u32 = 3;

/// The command of a control call: libc marks the new layout of its structs with a bit.
fn command(cmd: i32) -> u32 {
    const IPC_64: u32 = 0x100;
    cmd.cast_unsigned() & !IPC_64
}

/// Answers a control call about all objects of a kind: limits and numbers, which are words one
/// after the other. The result is the highest place in the list of objects.
fn tell_all<T>(cx: &Ctx<'_>, to: InOut<T>, objects: usize, words: &[usize]) -> Result<i32> {
    let word = |word: &usize| u32::try_from(*word).unwrap_or(u32::MAX).to_le_bytes();
    let bytes: Vec<u8> = words.iter().flat_map(word).collect();
    cx.copy_out(Out::new(to.addr, to.cage), &bytes)?;
    i32::try_from(objects.saturating_sub(1)).map_err(|_| Errno::EINVAL)
}

/// Waits for an object to change.
///
/// # Errors
/// EINTR: such waits are never taken up again after a handler; EAGAIN at the deadline.
fn wait(cx: &Ctx<'_>, event: &Event, seen: Seen, deadline: &Deadline) -> Result<()> {
    if deadline.has_passed() {
        return Err(Errno::EAGAIN);
    }
    if cx.has_signals() && !cx.again(&Err::<(), _>(Errno::EINTR)) {
        return Err(Errno::EINTR);
    }
    // However the wait ends, the question is asked again.
    let _ = cx.waiting(|| event.wait(seen, deadline.time().as_ref()));
    Ok(())
}
