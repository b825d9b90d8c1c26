//! Processes: identity, end, waiting, limits.

mod exit;
mod identity;

pub(crate) use exit::*;
pub(crate) use identity::*;
