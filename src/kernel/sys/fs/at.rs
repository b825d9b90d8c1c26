//! Path arguments: the start of a look-up, and its result, a file of the host's or a place in the
//! kernel's own trees.

use std::ffi::CStr;

use lind_abi::{DirFd, Errno, Fd, Result};

use crate::call::Ctx;
use crate::fd::Kind;
use crate::path::{Start, Within};
use crate::procfs::{Reached, may_enter, walk};
use crate::root::Last;
use crate::root::table::Dir;

impl Ctx<'_> {
    /// The directory argument of a call that has none: the working directory.
    #[inline]
    pub(crate) fn here(&self) -> DirFd {
        DirFd { number: libc::AT_FDCWD, cage: self.cage.id }
    }

    /// The directory at which `path` starts. For an absolute path `dir` may be anything.
    ///
    /// # Errors
    /// ENOENT for an empty path, EBADF; ENOTDIR for a file that was not opened by a name inside the
    /// root.
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
    /// EBADF; ENOTDIR for a file that was not opened by a name inside the root.
    #[inline]
    pub(crate) fn directory(&self, dir: DirFd) -> Result<Start> {
        let cage = self.owner(dir.cage)?;
        if dir.number == libc::AT_FDCWD {
            return Ok(Start::Cwd(cage.cwd.load()));
        }
        let file = cage.fds.get(dir.number)?;
        match &file.kind {
            Kind::Named(_) | Kind::Pseudo(_) => Ok(Start::File(file)),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// The file itself, for an empty path with AT_EMPTY_PATH.
    ///
    /// # Errors
    /// EBADF.
    pub(crate) fn itself(&self, dir: DirFd) -> Result<Start> {
        if dir.number == libc::AT_FDCWD {
            return Ok(Start::Cwd(self.owner(dir.cage)?.cwd.load()));
        }
        self.file(Fd { number: dir.number, cage: dir.cage }).map(Start::File)
    }

    /// Acts on the file that a path leads to: `host` gets a directory of the host's and a path that
    /// starts there, `ours` what is in one of our trees. `host` may be called a second time after
    /// ENOENT or ELOOP: a link has led into a tree and out of it.
    ///
    /// # Errors
    /// The errors of the walk, of `host` or of `ours`.
    #[inline]
    pub(crate) fn act<T>(
        &self,
        dir: DirFd,
        path: &CStr,
        last: Last,
        host: impl FnMut(Dir<'_>, &CStr) -> Result<T>,
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
        mut host: impl FnMut(Dir<'_>, &CStr) -> Result<T>,
        ours: impl FnOnce(Reached) -> Result<T>,
    ) -> Result<T> {
        let start = self.start(dir, path)?;
        if !may_enter(&start, path) {
            let result = host(start.dir(), path);
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
        mut host: impl FnMut(Dir<'_>, &CStr) -> Result<T>,
        ours: impl FnOnce(Reached) -> Result<T>,
    ) -> Result<T> {
        match walk(self, start, path, last, within)? {
            Reached::Host(start, rest) => host(start.dir(), &rest),
            reached => ours(reached),
        }
    }

    /// As `act_within`, for calls that make a file at a path: a link that dangles for the host may
    /// lead into one of our trees, so links are followed first where the host could find something
    /// else there.
    ///
    /// # Errors
    /// As for `act`.
    pub(crate) fn make_within<T>(
        &self,
        dir: DirFd,
        path: &CStr,
        last: Last,
        within: Within,
        host: impl FnMut(Dir<'_>, &CStr) -> Result<T>,
        ours: impl FnOnce(Reached) -> Result<T>,
    ) -> Result<T> {
        let start = self.start(dir, path)?;
        let root = &self.kernel.root;
        if root.hides_any() && !may_enter(&start, path) && root.crosses_link(start.dir(), path) {
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
        mut host: impl FnMut((Dir<'_>, &CStr), (Dir<'_>, &CStr)) -> Result<T>,
        ours: impl FnOnce(Reached, Reached) -> Result<T>,
    ) -> Result<T> {
        let (from, to) = (self.start(old_dir, old)?, self.start(new_dir, new)?);
        if !may_enter(&from, old) && !may_enter(&to, new) {
            let result = host((from.dir(), old), (to.dir(), new));
            if !self.missed(&result, &from, old) && !self.missed(&result, &to, new) {
                return result;
            }
        }
        let within = Within::default();
        match (walk(self, from, old, last, within)?, walk(self, to, new, Last::NoFollow, within)?) {
            (Reached::Host(from, old), Reached::Host(to, new)) => host((from.dir(), &old), (to.dir(), &new)),
            (old, new) => ours(old, new),
        }
    }

    /// Whether the host found nothing where a symbolic link may lead into one of our trees.
    #[inline]
    fn missed<T>(&self, result: &Result<T>, start: &Start, path: &CStr) -> bool {
        matches!(result, Err(Errno::ENOENT | Errno::ELOOP)) && self.kernel.root.crosses_link(start.dir(), path)
    }
}

/// The error of calls that change names in our trees, where nothing changes: EEXIST for a name that
/// is to be made.
pub(super) fn unchangeable<T>(reached: Reached) -> Result<T> {
    match reached {
        Reached::Missing(..) => Err(Errno::EACCES),
        _ => Err(Errno::EEXIST),
    }
}
