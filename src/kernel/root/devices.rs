//! The device nodes every root has: /dev/null, zero, full, random, urandom and tty.
//!
//! A root made without privileges cannot contain device nodes, and programs cannot do without these. They are known
//! by their absolute names, whether or not the root has a /dev, and lead to the host's own. Their modes and
//! owners cannot be changed from here. /dev/stdin, stdout, stderr, /dev/fd/N and /proc/self/fd/N name descriptors of
//! the caller.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::{Errno, Result};
use rustix::fs::{FileType, Mode, OFlags};

use crate::host;

const NAMES: [&CStr; 6] = [c"null", c"zero", c"full", c"random", c"urandom", c"tty"];

/// The host's nodes.
pub struct Devices {
    /// The host's /dev, to open nodes in after the walls are up.
    folder: Option<OwnedFd>,
    /// The nodes, opened by O_PATH.
    nodes: [Option<OwnedFd>; NAMES.len()],
}

/// A node that a path names.
#[derive(Clone, Copy)]
pub(super) struct Device<'a> {
    folder: BorrowedFd<'a>,
    name: &'static CStr,
    /// The node itself, opened by O_PATH.
    pub node: BorrowedFd<'a>,
}

impl Devices {
    /// Opens the host's nodes; what the host lacks, guests lack.
    pub fn open() -> Devices {
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

    /// The node that a path names.
    #[inline]
    pub(super) fn named(&self, path: &CStr) -> Option<Device<'_>> {
        let name = in_dev(path)?;
        let index = NAMES.iter().position(|node| node.to_bytes() == name)?;
        let (folder, node) = (self.folder.as_ref()?, self.nodes[index].as_ref()?);
        Some(Device { folder: folder.as_fd(), name: NAMES[index], node: node.as_fd() })
    }
}

/// The descriptor that a path names: /dev/stdin, stdout, stderr, /dev/fd/N, /proc/self/fd/N.
pub fn descriptor(path: &CStr) -> Option<i32> {
    let number = match in_dev(path) {
        Some(b"stdin") => b"0",
        Some(b"stdout") => b"1",
        Some(b"stderr") => b"2",
        Some(name) => name.strip_prefix(b"fd/")?,
        None => path.to_bytes().strip_prefix(b"/proc/self/fd/")?,
    };
    std::str::from_utf8(number).ok()?.parse().ok().filter(|fd| *fd >= 0)
}

/// What follows /dev/.
#[inline]
fn in_dev(path: &CStr) -> Option<&[u8]> {
    let path = after_slashes(path.to_bytes())?;
    after_slashes(path.strip_prefix(b"dev")?)
}

#[inline]
fn after_slashes(path: &[u8]) -> Option<&[u8]> {
    let mut rest = path.strip_prefix(b"/")?;
    while let Some(shorter) = rest.strip_prefix(b"/") {
        rest = shorter;
    }
    Some(rest)
}

impl Device<'_> {
    /// open(2) of the node.
    pub(super) fn open(self, flags: u32) -> Result<OwnedFd> {
        let flags = OFlags::from_bits_retain(flags);
        if flags.contains(OFlags::CREATE | OFlags::EXCL) {
            return Err(Errno::EEXIST);
        }
        if flags.contains(OFlags::DIRECTORY) {
            return Err(Errno::ENOTDIR);
        }
        // A device is not shortened, and no file may come to be where a device has gone.
        let flags =
            flags.difference(OFlags::CREATE | OFlags::TRUNC) | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        rustix::fs::openat(self.folder, self.name, flags, Mode::empty()).map_err(host::errno)
    }
}
