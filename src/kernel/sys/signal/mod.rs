//! Signals: dispositions, masks, sending.

mod send;
mod state;

pub(crate) use send::*;
pub(crate) use state::*;

use lind_abi::{Errno, Result, Signal};

use crate::cage::signal::LAST;

/// EINVAL for what is no signal from 1 to 64.
fn number(signal: Signal) -> Result<u8> {
    u8::try_from(signal.0).ok().filter(|signal| (1..=LAST).contains(signal)).ok_or(Errno::EINVAL)
}

#[cfg(test)]
mod tests;
