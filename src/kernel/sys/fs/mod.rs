//! Files and names.

mod at;
mod attributes;
mod clone;
mod directory;
mod dup;
mod inotify;
mod ioctl;
mod lock;
mod name;
mod numbered;
mod open;
mod owner;
mod pipe;
mod rw;
mod size;
mod stat;
#[cfg(test)]
mod tests;
mod transfer;
mod vector;
mod watched;
mod xattr;

pub(crate) use attributes::*;
pub(crate) use directory::*;
pub(crate) use dup::*;
pub(crate) use inotify::*;
pub(crate) use ioctl::*;
pub(crate) use lock::*;
pub(crate) use name::*;
pub(crate) use open::*;
pub(crate) use pipe::*;
pub(crate) use rw::*;
pub(crate) use size::*;
pub(crate) use stat::*;
pub(crate) use transfer::*;
pub(crate) use vector::*;
pub(crate) use xattr::*;
