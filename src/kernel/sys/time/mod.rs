//! Clocks, sleeping, timers that are descriptors.

mod clock;
mod sleep;
mod timerfd;

pub(crate) use clock::*;
pub(crate) use sleep::*;
pub(crate) use timerfd::*;

#[cfg(test)]
mod tests;
