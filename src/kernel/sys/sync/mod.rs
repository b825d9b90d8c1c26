//! Futexes.

mod futex;
mod robust;
#[cfg(test)]
mod tests;

pub(crate) use futex::*;
pub(crate) use robust::*;
