//! The device nodes every root has: /dev/null, zero, full, random, urandom and tty.
//!
//! A root made without privileges cannot contain device nodes, and programs cannot do without these. They are known
//! by their absolute names, whether or not the root has a /dev, and lead to the host's own. Their modes and
//! owners cannot be changed from here. /dev/stdin, stdout, stderr and /dev/fd/N name descriptors of the caller.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::{Errno, Result};
use rustix::fs::{FileType, Mode, OFlags};

use super::Root;
use crate::host;

const NODES: [(&[u8], &CStr); 6] = [
    (b"null", c"/dev/null"),
    (b"zero", c"/dev/zero"),
    (b"full", c"/dev/full"),
    (b"random", c"/dev/random"),
    (b"urandom", c"/dev/urandom"),
    (b"tty", c"/dev/tty"),
];

/// The nodes, opened by O_PATH.
pub struct Devices([Option<OwnedFd>; NODES.len()]);

impl Devices {
    /// Opens the host's nodes; what the host lacks, guests lack.
    pub fn open() -> Devices {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Devices(NODES.map(|(_, path)| {
            let node = rustix::fs::open(path, flags, Mode::empty()).ok()?;
            let stat = rustix::fs::fstat(&node).ok()?;
            (FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice).then_some(node)
        }))
    }

    /// The nodes there are.
    pub fn iter(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().flatten().map(AsFd::as_fd)
    }

    /// The node that a path names.
    #[inline]
    pub(super) fn named(&self, path: &CStr) -> Option<BorrowedFd<'_>> {
        let name = in_dev(path)?;
        let index = NODES.iter().position(|(node, _)| *node == name)?;
        self.0[index].as_ref().map(AsFd::as_fd)
    }
}

/// The descriptor that a path under /dev names.
pub fn descriptor(path: &CStr) -> Option<i32> {
    match in_dev(path)? {
        b"stdin" => Some(0),
        b"stdout" => Some(1),
        b"stderr" => Some(2),
        name => std::str::from_utf8(name.strip_prefix(b"fd/")?).ok()?.parse().ok().filter(|fd| *fd >= 0),
    }
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

/// Opens a node anew, as open(2) of its name would.
pub(super) fn open(root: &Root, node: BorrowedFd<'_>, flags: u32) -> Result<OwnedFd> {
    let flags = OFlags::from_bits_retain(flags);
    if flags.contains(OFlags::CREATE | OFlags::EXCL) {
        return Err(Errno::EEXIST);
    }
    if flags.contains(OFlags::DIRECTORY) {
        return Err(Errno::ENOTDIR);
    }
    // The link in /proc is followed; the node at its end is none.
    let flags = flags.difference(OFlags::NOFOLLOW | OFlags::CREATE | OFlags::TRUNC) | OFlags::CLOEXEC | OFlags::NOCTTY;
    root.again(node, |links, name| rustix::fs::openat(links, name, flags, Mode::empty()).map_err(host::errno))
}
