//! Clocks, sleeping, timers.

mod clock;
mod itimer;
mod sleep;
mod timerfd;

pub(crate) use clock::*;
pub(crate) use itimer::*;
pub(crate) use sleep::*;
pub(crate) use timerfd::*;

#[cfg(test)]
mod tests;
