//! Signals: dispositions, masks, sending, waiting.

mod listen;
mod send;
mod state;
mod wait;

pub(crate) use listen::*;
pub(crate) use send::*;
pub(crate) use state::*;
pub(crate) use wait::*;

use lind_abi::{Errno, Len, Result, Signal};

use crate::cage::signal::LAST;
use crate::call::Ctx;

/// The size of a signal set, which callers pass for checking.
const SET_SIZE: u64 = 8;

fn check_size(size: Len) -> Result<()> {
    if size.0 == SET_SIZE { Ok(()) } else { Err(Errno::EINVAL) }
}

/// The number of a signal; EINVAL unless it is from 1 to 64.
fn number(signal: Signal) -> Result<u8> {
    u8::try_from(signal.0).ok().filter(|signal| (1..=LAST).contains(signal)).ok_or(Errno::EINVAL)
}

/// The thread whose mask a call refers to. ESRCH when it acts on a cage that has none on this
/// stack.
fn own_thread<'a>(cx: &Ctx<'a>) -> Result<&'a crate::cage::Thread> {
    if cx.thread.cage.id == cx.cage.id { Ok(cx.thread) } else { Err(Errno::ESRCH) }
}

#[cfg(test)]
mod tests;
