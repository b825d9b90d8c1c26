//! Sockets: unix, IPv4 and IPv6.
//!
//! The host does the talking. This module keeps addresses of unix sockets inside the guest's root
//! and the runner's own name space, translates descriptors in control messages, and refuses options
//! that hold addresses or attach programs.

mod address;
mod credentials;
mod group;
mod interface;
pub(crate) mod loopback;
mod message;
mod name;
mod option;
mod socket;
#[cfg(test)]
mod tests;
mod transfer;

pub(crate) use credentials::{check_tokenless, note_received};
pub(crate) use interface::*;
pub(crate) use message::*;
pub(crate) use name::*;
pub(crate) use option::*;
pub(crate) use socket::*;
pub(crate) use transfer::*;
