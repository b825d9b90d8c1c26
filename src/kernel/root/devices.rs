//! The host's device nodes that guests may open: null, zero, full, random, urandom and tty.
//!
//! A root made without privileges cannot contain device nodes, and programs cannot do without these. Their modes and
//! owners cannot be changed from here.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::{Errno, Result};
use rustix::fs::{FileType, Mode, OFlags};

use crate::host;

/// Their names in /dev.
pub(crate) const NAMES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// The host's nodes.
pub struct Devices {
    /// The host's /dev, to open nodes in after the walls are up.
    folder: Option<OwnedFd>,
    /// The nodes, opened by O_PATH.
    nodes: [Option<OwnedFd>; NAMES.len()],
}

impl Devices {
    /// The host's nodes; what the host lacks, guests lack.
    pub fn find() -> Devices {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(c"/dev", flags | OFlags::DIRECTORY, Mode::empty()).ok();
        let open = |name| {
            let node = rustix::fs::openat(folder.as_ref()?, name, flags, Mode::empty()).ok()?;
            let stat = rustix::fs::fstat(&node).ok()?;
            (FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice).then_some(node)
        };
        let nodes = NAMES.map(open);
        Devices { folder, nodes }
    }

    /// The nodes there are.
    pub fn iter(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.nodes.iter().flatten().map(AsFd::as_fd)
    }

    /// A node, opened by O_PATH.
    pub(crate) fn node(&self, index: usize) -> Option<BorrowedFd<'_>> {
        self.nodes.get(index)?.as_ref().map(AsFd::as_fd)
    }

    /// The name of the node that an open file is one of.
    pub(crate) fn which(&self, file: BorrowedFd<'_>) -> Option<&'static str> {
        let device = |file: BorrowedFd<'_>| {
            let stat = rustix::fs::fstat(file).ok()?;
            (FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice).then_some(stat.st_rdev)
        };
        let wanted = device(file)?;
        (0..NAMES.len()).find(|&index| self.node(index).and_then(device) == Some(wanted)).map(|index| NAMES[index])
    }

    /// open(2) of a node.
    ///
    /// # Errors
    /// ENOENT where the host lacks it; what open(2) says.
    pub(crate) fn open(&self, index: usize, flags: u32) -> Result<OwnedFd> {
        let folder = self.folder.as_ref().filter(|_| self.node(index).is_some()).ok_or(Errno::ENOENT)?;
        // A device is not shortened, and no file may come to be where a device has gone.
        let flags = OFlags::from_bits_retain(flags & super::PASSED).difference(OFlags::CREATE | OFlags::TRUNC);
        let flags = if flags.contains(OFlags::PATH) { flags } else { flags | OFlags::NOCTTY };
        rustix::fs::openat(folder, NAMES[index], flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
            .map_err(host::errno)
    }
}
