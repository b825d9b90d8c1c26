//! The start of a path look-up: the directory where it begins, and the limits it must keep. The
//! calls about files and the kernel's own trees both use it.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use arc_swap::Guard;
use lind_abi::{Errno, Result};
use rustix::fs::ResolveFlags;

use crate::call::Ctx;
use crate::fd::{FileRef, Kind};
use crate::host;
use crate::procfs::Place;
use crate::root::table::{Dir, Found, MountId};
use crate::root::{Directory, Root};

/// A directory that stays open for a call.
pub(crate) enum Start {
    /// A working directory.
    Cwd(Guard<Arc<Directory>>),
    /// Another cage's working directory.
    Directory(Arc<Directory>),
    /// A descriptor's. With an empty path it may be any file.
    File(FileRef),
    /// A directory that was found on the way.
    Opened(Found),
}

impl AsFd for Start {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Start::Cwd(directory) => directory.as_fd(),
            Start::Directory(directory) => directory.as_fd(),
            Start::File(file) => file.host(),
            Start::Opened(found) => found.as_fd(),
        }
    }
}

impl Start {
    /// The root itself.
    ///
    /// # Errors
    /// EMFILE.
    pub(crate) fn of(root: &Root) -> Result<Start> {
        let file = rustix::io::fcntl_dupfd_cloexec(root.directory(), 3).map_err(host::errno)?;
        Ok(Start::Opened(Found { file, mount: MountId::ROOT }))
    }

    /// The directory as the start of a look-up.
    #[inline]
    pub(crate) fn dir(&self) -> Dir<'_> {
        let mount = match self {
            Start::Cwd(directory) => directory.mount(),
            Start::Directory(directory) => directory.mount(),
            Start::File(file) => file.mount(),
            Start::Opened(found) => found.mount,
        };
        Dir::new(self.as_fd(), mount)
    }

    /// Its place, if it is in one of our trees.
    #[inline]
    pub(crate) fn place(&self) -> Option<&Place> {
        match self {
            Start::Cwd(directory) => directory.place(),
            Start::Directory(directory) => directory.place(),
            Start::File(file) => match &file.kind {
                Kind::Pseudo(place) => Some(place),
                _ => None,
            },
            Start::Opened(_) => None,
        }
    }
}

/// The place where a look-up of a cage begins.
pub(crate) struct Origin {
    /// The start of relative paths.
    pub start: Start,
    /// The start of absolute ones, if the cage has changed its root.
    pub root: Option<Arc<Directory>>,
    /// Whether the host gets single names and follows no link.
    pub walked: bool,
}

/// A path of the kernel's root as the caller sees it: from its own root directory. None if it does
/// not lead there.
///
/// # Errors
/// The errors of finding the path of that directory.
pub(crate) fn below_own_root(cx: &Ctx<'_>, path: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some(root) = cx.cage.root.get() else { return Ok(Some(path.to_vec())) };
    let root = root.path(&cx.kernel.root)?.into_bytes();
    let rest = path.strip_prefix(root.strip_suffix(b"/").unwrap_or(&root));
    Ok(match rest {
        Some(b"") => Some(b"/".to_vec()),
        Some(rest) if rest.starts_with(b"/") => Some(rest.to_vec()),
        _ => None,
    })
}

/// Restrictions on a look-up: the RESOLVE_* flags of openat2(2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within {
    flags: ResolveFlags,
    /// A directory is not to be left, by the flags as they were given.
    scoped: bool,
}

impl Default for Within {
    fn default() -> Self {
        Within { flags: ResolveFlags::empty(), scoped: false }
    }
}

impl Within {
    /// The restrictions given to openat2(2).
    ///
    /// # Errors
    /// EINVAL; EAGAIN for RESOLVE_CACHED, since the contents of the host's cache are not known.
    pub(crate) fn new(resolve: u64) -> Result<Within> {
        let known = ResolveFlags::NO_XDEV
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::BENEATH
            | ResolveFlags::IN_ROOT
            | ResolveFlags::CACHED;
        let flags = ResolveFlags::from_bits_retain(resolve);
        if flags.bits() & !known.bits() != 0 || flags.contains(ResolveFlags::BENEATH | ResolveFlags::IN_ROOT) {
            return Err(Errno::EINVAL);
        }
        let scoped = flags.intersects(ResolveFlags::BENEATH | ResolveFlags::IN_ROOT);
        if flags.contains(ResolveFlags::CACHED) { Err(Errno::EAGAIN) } else { Ok(Within { flags, scoped }) }
    }

    /// The flags.
    pub(crate) fn resolve(self) -> ResolveFlags {
        self.flags
    }

    /// Whether a directory is not to be left.
    pub(crate) fn is_scoped(self) -> bool {
        self.scoped
    }

    /// Removes RESOLVE_IN_ROOT, which has no effect for the root itself; returns whether it was
    /// set.
    pub(crate) fn take_in_root(&mut self) -> bool {
        let was = self.starts_anew();
        self.flags.remove(ResolveFlags::IN_ROOT);
        was
    }

    /// Whether absolute paths begin where relative ones do.
    pub(crate) fn starts_anew(self) -> bool {
        self.flags.contains(ResolveFlags::IN_ROOT)
    }

    /// Before a symbolic link with this text is followed.
    ///
    /// # Errors
    /// ELOOP, EXDEV.
    pub(crate) fn check_link(self, text: &[u8]) -> Result<()> {
        match text.first() {
            _ if self.flags.contains(ResolveFlags::NO_SYMLINKS) => Err(Errno::ELOOP),
            Some(b'/') if self.flags.contains(ResolveFlags::BENEATH) => Err(Errno::EXDEV),
            _ => Ok(()),
        }
    }

    /// Before a link that leads to a file itself is followed.
    ///
    /// # Errors
    /// ELOOP, EXDEV.
    pub(crate) fn check_magic_link(self) -> Result<()> {
        if self.flags.intersects(ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS) {
            return Err(Errno::ELOOP);
        }
        if self.scoped || self.flags.contains(ResolveFlags::NO_XDEV) { Err(Errno::EXDEV) } else { Ok(()) }
    }

    /// Before a tree is entered or left.
    ///
    /// # Errors
    /// EXDEV.
    pub(crate) fn check_border(self) -> Result<()> {
        if self.flags.contains(ResolveFlags::NO_XDEV) { Err(Errno::EXDEV) } else { Ok(()) }
    }

    /// Before `..` of the root is looked at, or of the directory that is not to be left.
    ///
    /// # Errors
    /// EXDEV.
    pub(crate) fn check_above_root(self) -> Result<()> {
        if self.flags.contains(ResolveFlags::BENEATH) { Err(Errno::EXDEV) } else { Ok(()) }
    }
}
