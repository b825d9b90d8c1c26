//! Waiting for descriptors: poll, select, epoll, eventfd.

mod deadline;
mod epoll;
mod eventfd;
mod mask;
mod poll;
mod select;
#[cfg(test)]
mod tests;

pub(crate) use deadline::Deadline;
pub(crate) use epoll::*;
pub(crate) use eventfd::*;
pub(crate) use mask::mask;
pub(crate) use poll::*;
pub(crate) use select::*;
