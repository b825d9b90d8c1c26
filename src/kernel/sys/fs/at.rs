//! Path arguments: the start of a look-up, and its result, a file of the host's or a place in the
//! kernel's own trees.

use std::ffi::CStr;

use lind_abi::{DirFd, Errno, Fd, Result};

use crate::call::Ctx;
use crate::fd::Kind;
use crate::path::{Origin, Start, Within};
use crate::procfs::{Reached, may_enter, walk};
use crate::root::Last;
use crate::root::table::Dir;

/// How often a path is walked again because a link has appeared at its end.
const PATIENCE: u32 = 256;

impl Ctx<'_> {
    /// The directory argument of a call that has none: the working directory.
    #[inline]
    pub(crate) fn here(&self) -> DirFd {
        DirFd { number: libc::AT_FDCWD, cage: self.cage.id }
    }

    /// The directory at which `path` starts, as the cage sees it that `dir` belongs to. For an
    /// absolute path `dir` may be anything.
    ///
    /// # Errors
    /// ENOENT for an empty path, EBADF; ENOTDIR for a file that was not opened by a name inside the
    /// root.
    #[inline]
    fn origin(&self, dir: DirFd, path: &CStr) -> Result<Origin> {
        let cage = self.owner(dir.cage)?;
        let start = match path.to_bytes().first() {
            None => return Err(Errno::ENOENT),
            Some(b'/') => Start::Cwd(cage.cwd.load()),
            Some(_) => self.directory(dir)?,
        };
        let root = cage.root.get();
        Ok(Origin { start, walked: root.is_some() || self.cage.confined.is(), root })
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
        let from = self.origin(dir, path)?;
        if from.walked {
            return self.act_walked(dir, path, (last, within), host, ours);
        }
        if !may_enter(&self.kernel.root, &from.start, path) {
            let result = host(from.start.dir(), path);
            if !self.missed(&result, &from.start, path) {
                return result;
            }
        }
        self.act_where_led(from, path, (last, within), host, ours)
    }

    /// As `act`, following the path through our trees from the start.
    fn act_where_led<T>(
        &self,
        from: Origin,
        path: &CStr,
        (last, within): (Last, Within),
        mut host: impl FnMut(Dir<'_>, &CStr) -> Result<T>,
        ours: impl FnOnce(Reached) -> Result<T>,
    ) -> Result<T> {
        match walk(self, from, path, last, within)? {
            Reached::Host(start, rest) => host(start.dir(), &rest),
            reached => ours(reached),
        }
    }

    /// As `act`, for a cage that has changed its root or confined itself: the host does not know of
    /// that, so it gets single names and follows no link. If the last name has become a link since
    /// the walk, the path is walked again.
    #[cold]
    fn act_walked<T>(
        &self,
        dir: DirFd,
        path: &CStr,
        (last, within): (Last, Within),
        mut host: impl FnMut(Dir<'_>, &CStr) -> Result<T>,
        ours: impl FnOnce(Reached) -> Result<T>,
    ) -> Result<T> {
        let mut tries = 0;
        loop {
            match walk(self, self.origin(dir, path)?, path, last, within)? {
                Reached::Host(start, rest) => match host(start.dir().walked(), &rest) {
                    Err(Errno::ELOOP) if last == Last::Follow && tries < PATIENCE => tries += 1,
                    result => return result,
                },
                reached => return ours(reached),
            }
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
        let from = self.origin(dir, path)?;
        let root = &self.kernel.root;
        let may_lead = root.hides_any() && !from.walked && !may_enter(root, &from.start, path);
        if may_lead && root.crosses_link(from.start.dir(), path) {
            return self.act_where_led(from, path, (last, within), host, ours);
        }
        drop(from);
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
        let (from, to) = (self.origin(old_dir, old)?, self.origin(new_dir, new)?);
        let walked = from.walked || to.walked;
        let root = &self.kernel.root;
        if !walked && !may_enter(root, &from.start, old) && !may_enter(root, &to.start, new) {
            let result = host((from.start.dir(), old), (to.start.dir(), new));
            if !self.missed(&result, &from.start, old) && !self.missed(&result, &to.start, new) {
                return result;
            }
        }
        let within = Within::default();
        match (walk(self, from, old, last, within)?, walk(self, to, new, Last::Name, within)?) {
            (Reached::Host(from, old), Reached::Host(to, new)) => {
                let (mut from, mut to) = (from.dir(), to.dir());
                if walked {
                    (from, to) = (from.walked(), to.walked());
                }
                host((from, &old), (to, &new))
            }
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
