//! Where a path argument starts, and what it leads to: a file of the host's, or a place in the kernel's own trees.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use arc_swap::Guard;
use lind_abi::{DirFd, Errno, Fd, Result};
use rustix::fs::ResolveFlags;

use crate::call::Ctx;
use crate::fd::{FileRef, Kind};
use crate::host;
use crate::procfs::{Place, Reached, may_enter, walk};
use crate::root::{Directory, Last};

/// A directory that stays open for a call.
pub(crate) enum Start {
    /// A working directory.
    Cwd(Guard<Arc<Directory>>),
    /// Another cage's working directory.
    Directory(Arc<Directory>),
    /// A descriptor's. With an empty path it may be any file.
    File(FileRef),
    /// One that was found on the way.
    Opened(OwnedFd),
}

impl AsFd for Start {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Start::Cwd(directory) => directory.as_fd(),
            Start::Directory(directory) => directory.as_fd(),
            Start::File(file) => file.host(),
            Start::Opened(fd) => fd.as_fd(),
        }
    }
}

impl Start {
    /// The root.
    ///
    /// # Errors
    /// EMFILE.
    pub(crate) fn root(cx: &Ctx<'_>) -> Result<Start> {
        rustix::io::fcntl_dupfd_cloexec(cx.kernel.root.directory(), 3).map(Start::Opened).map_err(host::errno)
    }

    /// Where it is, if it is in one of our trees.
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

/// What a look-up must not do: the RESOLVE_* flags of openat2(2).
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
    /// As openat2(2) is given them.
    ///
    /// # Errors
    /// EINVAL; EAGAIN where only what is in the host's cache is to be looked at, which is not known.
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

    /// Takes RESOLVE_IN_ROOT out, which says nothing of the root itself; whether it was there.
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

impl Ctx<'_> {
    /// The directory argument of a call that has none: the working directory.
    #[inline]
    pub(crate) fn here(&self) -> DirFd {
        DirFd { number: libc::AT_FDCWD, cage: self.cage.id }
    }

    /// The directory that `path` starts at. An absolute path starts nowhere, so that `dir` may be anything.
    ///
    /// # Errors
    /// ENOENT for an empty path, EBADF; ENOTDIR for what was not opened by a name inside the root.
    #[inline]
    fn start(&self, dir: DirFd, path: &CStr) -> Result<Start> {
        let cage = self.owner(dir.cage)?;
        match path.to_bytes().first() {
            None => return Err(Errno::ENOENT),
            Some(b'/') => return Ok(Start::Cwd(cage.cwd.load())),
            Some(_) => {}
        }
        self.directory(dir)
    }

    /// A directory argument, whatever the path may be.
    ///
    /// # Errors
    /// EBADF; ENOTDIR for what was not opened by a name inside the root.
    #[inline]
    pub(crate) fn directory(&self, dir: DirFd) -> Result<Start> {
        let cage = self.owner(dir.cage)?;
        if dir.number == libc::AT_FDCWD {
            return Ok(Start::Cwd(cage.cwd.load()));
        }
        let file = cage.fds.get(dir.number)?;
        match &file.kind {
            Kind::Named | Kind::Pseudo(_) => Ok(Start::File(file)),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// What an empty path with AT_EMPTY_PATH means: the file itself.
    ///
    /// # Errors
    /// EBADF.
    pub(crate) fn itself(&self, dir: DirFd) -> Result<Start> {
        if dir.number == libc::AT_FDCWD {
            return Ok(Start::Cwd(self.owner(dir.cage)?.cwd.load()));
        }
        self.file(Fd { number: dir.number, cage: dir.cage }).map(Start::File)
    }

    /// Acts on what a path leads to: `host` gets a directory of the host's and a path that starts there, `ours` what is in
    /// one of our trees. `host` may be called a second time after ENOENT or ELOOP: a link has led into a tree and out of it.
    ///
    /// # Errors
    /// What the way there, `host` or `ours` says.
    #[inline]
    pub(crate) fn act<T>(
        &self,
        dir: DirFd,
        path: &CStr,
        last: Last,
        host: impl FnMut(BorrowedFd<'_>, &CStr) -> Result<T>,
        ours: impl FnOnce(Reached) -> Result<T>,
    ) -> Result<T> {
        self.act_within(dir, path, last, Within::default(), host, ours)
    }

    /// As `act`; `host` minds `within` itself.
    ///
    /// # Errors
    /// As for `act`.
    #[inline]
    pub(crate) fn act_within<T>(
        &self,
        dir: DirFd,
        path: &CStr,
        last: Last,
        within: Within,
        mut host: impl FnMut(BorrowedFd<'_>, &CStr) -> Result<T>,
        ours: impl FnOnce(Reached) -> Result<T>,
    ) -> Result<T> {
        let start = self.start(dir, path)?;
        if !may_enter(&start, path) {
            let result = host(start.as_fd(), path);
            if !self.missed(&result, &start, path) {
                return result;
            }
        }
        self.act_where_led(start, path, (last, within), host, ours)
    }

    /// As `act`, following the path through our trees from the start.
    fn act_where_led<T>(
        &self,
        start: Start,
        path: &CStr,
        (last, within): (Last, Within),
        mut host: impl FnMut(BorrowedFd<'_>, &CStr) -> Result<T>,
        ours: impl FnOnce(Reached) -> Result<T>,
    ) -> Result<T> {
        match walk(self, start, path, last, within)? {
            Reached::Host(start, rest) => host(start.as_fd(), &rest),
            reached => ours(reached),
        }
    }

    /// As `act_within`, for what makes a file where a path leads: what is dangling for the host may lead into one of our trees, so
    /// links are followed first where the host could find something else there.
    ///
    /// # Errors
    /// As for `act`.
    pub(crate) fn make_within<T>(
        &self,
        dir: DirFd,
        path: &CStr,
        last: Last,
        within: Within,
        host: impl FnMut(BorrowedFd<'_>, &CStr) -> Result<T>,
        ours: impl FnOnce(Reached) -> Result<T>,
    ) -> Result<T> {
        let start = self.start(dir, path)?;
        let root = &self.kernel.root;
        if root.hides_any() && !may_enter(&start, path) && root.crosses_link(start.as_fd(), path) {
            return self.act_where_led(start, path, (last, within), host, ours);
        }
        drop(start);
        self.act_within(dir, path, last, within, host, ours)
    }

    /// As `act`, for calls with two paths.
    ///
    /// # Errors
    /// As for `act`.
    pub(crate) fn act_on_two<T>(
        &self,
        (old_dir, old, last): (DirFd, &CStr, Last),
        (new_dir, new): (DirFd, &CStr),
        mut host: impl FnMut((BorrowedFd<'_>, &CStr), (BorrowedFd<'_>, &CStr)) -> Result<T>,
        ours: impl FnOnce(Reached, Reached) -> Result<T>,
    ) -> Result<T> {
        let (from, to) = (self.start(old_dir, old)?, self.start(new_dir, new)?);
        if !may_enter(&from, old) && !may_enter(&to, new) {
            let result = host((from.as_fd(), old), (to.as_fd(), new));
            if !self.missed(&result, &from, old) && !self.missed(&result, &to, new) {
                return result;
            }
        }
        let within = Within::default();
        match (walk(self, from, old, last, within)?, walk(self, to, new, Last::NoFollow, within)?) {
            (Reached::Host(from, old), Reached::Host(to, new)) => host((from.as_fd(), &old), (to.as_fd(), &new)),
            (old, new) => ours(old, new),
        }
    }

    /// Whether the host found nothing where a symbolic link may lead into one of our trees.
    #[inline]
    fn missed<T>(&self, result: &Result<T>, start: &Start, path: &CStr) -> bool {
        matches!(result, Err(Errno::ENOENT | Errno::ELOOP)) && self.kernel.root.crosses_link(start.as_fd(), path)
    }
}

/// What calls that change names answer in our trees, where nothing changes: EEXIST for a name that is to be made.
pub(super) fn unchangeable<T>(reached: Reached) -> Result<T> {
    match reached {
        Reached::Missing(..) => Err(Errno::EACCES),
        _ => Err(Errno::EEXIST),
    }
}
