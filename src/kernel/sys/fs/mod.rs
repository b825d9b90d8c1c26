//! Files and names.

mod open;
mod rw;

pub(crate) use open::*;
pub(crate) use rw::*;
