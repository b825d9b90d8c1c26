//! Device nodes of the host that guests may open: null, zero, full, random, urandom, tty, and
//! pseudoterminals.
//!
//! A root made without privileges cannot contain device nodes, and programs cannot do without
//! these. Their modes and owners cannot be changed from here.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::{Errno, Result};
use rustix::fs::{FileType, Mode, OFlags};

/// Their names in /dev.
pub(crate) const NAMES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// The position of the host's /dev/tty among them.
pub(crate) const TTY: usize = 5;

/// The host's nodes.
pub struct Devices {
    /// The nodes, opened by O_PATH.
    nodes: [Option<OwnedFd>; NAMES.len()],
    /// /dev/ptmx, opened by O_PATH.
    multiplexer: Option<OwnedFd>,
    /// The folder of the other sides, until the walls are up. The terminals of the user's other
    /// programs are in it, so no guest runs while it is open.
    slaves: Option<OwnedFd>,
}

impl Devices {
    /// Opens the host's nodes; guests lack the nodes that the host lacks.
    pub fn find() -> Devices {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(c"/dev", flags | OFlags::DIRECTORY, Mode::empty()).ok();
        let open = |name| {
            let node = rustix::fs::openat(folder.as_ref()?, name, flags, Mode::empty()).ok()?;
            let stat = rustix::fs::fstat(&node).ok()?;
            (FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice).then_some(node)
        };
        let nodes = NAMES.map(open);
        // Often a link to pts/ptmx.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let multiplexer = rustix::fs::open(c"/dev/ptmx", flags, Mode::empty()).ok();
        let slaves = rustix::fs::open(c"/dev/pts", flags | OFlags::DIRECTORY, Mode::empty()).ok();
        Devices { multiplexer, slaves, nodes }
    }

    /// The nodes there are and, until the walls are up, the folder of pseudoterminals.
    pub fn iter(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.nodes.iter().flatten().chain(&self.multiplexer).chain(&self.slaves).map(AsFd::as_fd)
    }

    /// Closes the folder of pseudoterminals.
    pub(super) fn close_slaves(&mut self) {
        self.slaves = None;
    }

    /// /dev/ptmx, opened by O_PATH.
    pub(crate) fn multiplexer(&self) -> Option<BorrowedFd<'_>> {
        self.multiplexer.as_ref().map(AsFd::as_fd)
    }

    /// Makes a pseudoterminal.
    ///
    /// # Errors
    /// ENOENT if the host has none; the errors of open(2).
    pub(crate) fn open_multiplexer(&self, root: &super::Root, flags: u32) -> Result<OwnedFd> {
        let node = self.multiplexer.as_ref().ok_or(Errno::ENOENT)?;
        let flags = flags & (OFlags::RWMODE | OFlags::NONBLOCK).bits();
        root.open_again(node.as_fd(), flags)
    }

    /// A node, opened by O_PATH.
    pub(crate) fn node(&self, index: usize) -> Option<BorrowedFd<'_>> {
        self.nodes.get(index)?.as_ref().map(AsFd::as_fd)
    }

    /// The name of the node that an open file is one of.
    pub(crate) fn which(&self, file: BorrowedFd<'_>) -> Option<&'static str> {
        self.index_of(file).map(|index| NAMES[index])
    }

    /// Its index in the list of nodes.
    pub(crate) fn index_of(&self, file: BorrowedFd<'_>) -> Option<usize> {
        let device = |file: BorrowedFd<'_>| {
            let stat = rustix::fs::fstat(file).ok()?;
            (FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice).then_some(stat.st_rdev)
        };
        let wanted = device(file)?;
        (0..NAMES.len()).find(|&index| self.node(index).and_then(device) == Some(wanted))
    }

    /// open(2) of a node.
    ///
    /// # Errors
    /// ENOENT if the host lacks it; the errors of open(2).
    pub(crate) fn open(&self, root: &super::Root, index: usize, flags: u32) -> Result<OwnedFd> {
        // A device is not shortened.
        root.open_again(self.node(index).ok_or(Errno::ENOENT)?, flags & !OFlags::TRUNC.bits())
    }
}
