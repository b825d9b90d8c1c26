//! Device nodes of the host that guests may open: null, zero, full, random, urandom, tty, and
//! pseudoterminals.
//!
//! A root made without privileges cannot contain device nodes, and programs cannot do without
//! these. Their modes and owners cannot be changed from here.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::{Errno, Result};
use rustix::fs::{FileType, Mode, OFlags, Stat};

use crate::host::{self, fs::FileId};

/// Their names in /dev.
pub(crate) const NAMES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// The position of the host's /dev/tty among them.
pub(crate) const TTY: usize = 5;

/// The host's nodes.
pub struct Devices {
    /// The nodes, opened by O_PATH.
    nodes: [Option<OwnedFd>; NAMES.len()],
    /// /dev/ptmx, and the folder in which the host has the other sides.
    multiplexer: Option<(OwnedFd, OwnedFd)>,
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
        let multiplexer = || {
            // Often a link to pts/ptmx.
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let node = rustix::fs::open(c"/dev/ptmx", flags, Mode::empty()).ok()?;
            let slaves = rustix::fs::open(c"/dev/pts", flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
            Some((node, slaves))
        };
        Devices { multiplexer: multiplexer(), nodes }
    }

    /// Makes sure that the folder of pseudoterminals leads nowhere else.
    ///
    /// # Errors
    /// As for a detached mount.
    pub(super) fn detach(&mut self) -> Result<()> {
        if let Some((_, slaves)) = &mut self.multiplexer {
            *slaves = host::mounts::detached(slaves.as_fd(), false)?;
        }
        Ok(())
    }

    /// The folder of pseudoterminals.
    pub(super) fn slaves(&self) -> Option<BorrowedFd<'_>> {
        self.multiplexer.as_ref().map(|(_, slaves)| slaves.as_fd())
    }

    /// The nodes there are, and the folder of pseudoterminals.
    pub fn iter(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let terminals = self.multiplexer.iter().flat_map(|(node, slaves)| [node, slaves]);
        self.nodes.iter().flatten().chain(terminals).map(AsFd::as_fd)
    }

    /// /dev/ptmx, opened by O_PATH.
    pub(crate) fn multiplexer(&self) -> Option<BorrowedFd<'_>> {
        self.multiplexer.as_ref().map(|(node, _)| node.as_fd())
    }

    /// Makes a pseudoterminal.
    ///
    /// # Errors
    /// ENOENT if the host has none; the errors of open(2).
    pub(crate) fn open_multiplexer(&self, root: &super::Root, flags: u32) -> Result<OwnedFd> {
        let (node, _) = self.multiplexer.as_ref().ok_or(Errno::ENOENT)?;
        let flags = flags & (OFlags::RWMODE | OFlags::NONBLOCK).bits();
        root.open_again(node.as_fd(), flags)
    }

    /// The file of the other side of the host's pseudoterminal with this number.
    pub(crate) fn slave_stat(&self, index: u32) -> Option<Stat> {
        let (_, slaves) = self.multiplexer.as_ref()?;
        let name = rustix::path::DecInt::new(index);
        rustix::fs::statat(slaves, name.as_c_str(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// The device and inode of a slave.
    pub(crate) fn slave_id(&self, index: u32) -> Option<FileId> {
        self.slave_stat(index).map(|stat| FileId::from(&stat))
    }

    /// Acts on that file: `act` gets a folder and a name in it.
    ///
    /// # Errors
    /// ENOENT if the host has none; the errors of `act`.
    pub(crate) fn with_slave<T>(
        &self,
        index: u32,
        act: impl FnOnce(BorrowedFd<'_>, &std::ffi::CStr) -> Result<T>,
    ) -> Result<T> {
        let (_, slaves) = self.multiplexer.as_ref().ok_or(Errno::ENOENT)?;
        act(slaves.as_fd(), rustix::path::DecInt::new(index).as_c_str())
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
