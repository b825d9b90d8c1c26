//! Sockets: unix, IPv4 and IPv6.
//!
//! The host does the talking. What is done here: addresses of unix sockets are kept inside the guest's root and the
//! runner's own name space, descriptors in control messages are translated, and options that hold addresses or attach
//! programs are refused.

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
