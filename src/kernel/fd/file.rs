//! An open file: a host descriptor and what the kernel has to know besides.
//!
//! It is an open file description in Linux's sense: shared by every descriptor that dup, spawn or a control message
//! made of it, in however many cages, and closed with the last of them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};


/// What kinds of file the kernel treats in a way of their own.
#[derive(Debug)]
pub enum Kind {
    /// Anything the host serves alone: regular files, pipes, terminals, sockets.
    Host,
    /// A directory inside the root: paths may start here.
    Directory,
    /// An epoll instance: which guest descriptor stands behind each registration.
    Epoll(std::sync::Mutex<std::collections::BTreeMap<i32, u64>>),
}

/// An open file description.
#[derive(Debug)]
pub struct File {
    host: OwnedFd,
    /// How the kernel treats it.
    pub kind: Kind,
}

impl File {
    /// A file that the host serves.
    pub fn new(host: OwnedFd, kind: Kind) -> File {
        File { host, kind }
    }

    /// The host descriptor.
    #[inline]
    pub fn host(&self) -> BorrowedFd<'_> {
        self.host.as_fd()
    }
}

