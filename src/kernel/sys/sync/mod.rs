//! Futexes and barriers.

mod futex;
mod inherit;
mod membarrier;
mod robust;
#[cfg(test)]
mod tests;

pub(crate) use futex::*;
pub(crate) use membarrier::*;
pub(crate) use robust::*;
