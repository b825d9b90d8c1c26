//! Walks a path through the mounts of a [`Table`].
//!
//! Mostly the host resolves it with one call: beneath the source of a mount that has no others
//! inside. If the path leads out (EXDEV), it is walked name by name: each is opened in the
//! directory before and never followed by the host, so that a concurrent rename can only make a
//! look-up fail or find the state of a moment ago. `..` is never resolved by the host either: the
//! walk goes from the mount's source to the directory as it is now, and takes the one above it on
//! that way. So nothing above a source is ever open, even if a directory is moved out of it
//! meanwhile.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use lind_abi::{Errno, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};

use super::table::{Dir, Found, Identity, MountId, Table};
use super::{Last, PATIENCE, Root, identity};
use crate::host;

/// The same as on Linux.
const MOST_LINKS: u32 = 40;

/// The end of a path: a name in a directory, with the slashes after it, or `.`; empty if a mounted
/// file was found.
pub(super) struct Led {
    pub at: Found,
    pub name: CString,
}

/// The rules for walking a path.
#[derive(Clone, Copy)]
pub(super) struct Way {
    /// The treatment of the last name.
    pub last: Last,
    /// The restrictions on the look-up.
    pub resolve: ResolveFlags,
}

impl Root {
    /// A start and a path that the host alone resolves correctly, as long as it stays beneath. None
    /// if a walk is needed.
    pub(super) fn directly<'p>(
        &'p self,
        table: &'p Table,
        dir: Dir<'p>,
        path: &'p CStr,
    ) -> Option<(Dir<'p>, &'p CStr)> {
        let bytes = path.to_bytes();
        if bytes.first() != Some(&b'/') {
            return (!bytes.is_empty() && !table.is_covered(dir.mount)).then_some((dir, path));
        }
        let (mount, end) = table.jump(bytes)?;
        let slashes = bytes[end..].iter().take_while(|&&byte| byte == b'/').count();
        let rest = CStr::from_bytes_with_nul(&path.to_bytes_with_nul()[end + slashes..]).ok()?;
        Some((table.source_dir(mount), if rest.is_empty() { c"." } else { rest }))
    }

    /// Walks a path up to its last name.
    ///
    /// # Errors
    /// ENOENT, ENOTDIR, EACCES and ELOOP on the way; EXDEV and ELOOP for steps that `way` forbids.
    pub(super) fn lead(&self, table: &Table, dir: Dir<'_>, path: &CStr, way: Way) -> Result<Led> {
        let scope = way.resolve.intersects(ResolveFlags::BENEATH | ResolveFlags::IN_ROOT).then_some(dir);
        let absolute = path.to_bytes().first() == Some(&b'/');
        let start = if absolute { self.top_of(table, scope, way)? } else { copy(dir)? };
        Walk { root: self, table, scope, way, at: start, links: 0 }.finish(path.to_bytes().to_vec())
    }

    /// The start of an absolute path.
    fn top_of(&self, table: &Table, scope: Option<Dir<'_>>, way: Way) -> Result<Found> {
        match scope {
            Some(_) if way.resolve.contains(ResolveFlags::BENEATH) => Err(Errno::EXDEV),
            Some(dir) => copy(dir),
            None => table.top(),
        }
    }

    /// The directory above one, through mounts; of the root itself that is the root.
    fn above(&self, table: &Table, at: &Found) -> Result<Found> {
        let mut dir = at.dir();
        while table.is_source(dir.mount, identity(dir.fd)?) {
            match table.point(dir.mount) {
                Some(point) => dir = point,
                None => return table.top(),
            }
        }
        self.above_within(table, dir)
    }

    /// Whether a directory is another or below it.
    fn is_within(&self, table: &Table, found: &Found, scope: Dir<'_>) -> Result<bool> {
        let wanted = identity(scope.fd)?;
        let mut at = copy(found.dir())?;
        loop {
            let id = identity(at.as_fd())?;
            if at.mount == scope.mount && id == wanted {
                return Ok(true);
            }
            if at.mount == MountId::ROOT && table.is_source(MountId::ROOT, id) {
                return Ok(false);
            }
            at = self.above(table, &at)?;
        }
    }

    /// The directory above one that is not the mount's own.
    fn above_within(&self, table: &Table, dir: Dir<'_>) -> Result<Found> {
        let source = table.source_dir(dir.mount);
        let id = identity(dir.fd)?;
        for _ in 0..PATIENCE {
            let path = match self.path_in_mount(table, dir) {
                Err(Errno::ENAMETOOLONG | Errno::ERANGE) => return climb(table, dir),
                path => path?,
            };
            let end = path.iter().rposition(|&byte| byte == b'/').ok_or(Errno::ENOENT)?;
            let (above, name) = (path[..end].strip_prefix(b"/").unwrap_or(&path[..end]), &path[end + 1..]);
            let above = if above.is_empty() { &b"."[..] } else { above };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let Ok(found) = rustix::fs::openat2(source.fd, above, flags, Mode::empty(), resolve) else { continue };
            let still = rustix::fs::statat(&found, name, AtFlags::SYMLINK_NOFOLLOW);
            if still.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == id) {
                return Ok(Found { file: found, mount: dir.mount });
            }
        }
        Err(Errno::ENOENT)
    }
}

/// The directory above one whose path is too long for the host: by the host's `..`, if the mount's
/// source is above that.
fn climb(table: &Table, dir: Dir<'_>) -> Result<Found> {
    let up = |dir: &dyn AsFd| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(dir.as_fd(), c"..", flags, Mode::empty()).map_err(host::errno)
    };
    let above = up(&dir)?;
    let mut id = identity(above.as_fd())?;
    let mut next: Option<OwnedFd> = None;
    while !table.is_source(dir.mount, id) {
        let higher = up(next.as_ref().unwrap_or(&above))?;
        let found = identity(higher.as_fd())?;
        if found == id {
            return Err(Errno::ENOENT);
        }
        (id, next) = (found, Some(higher));
    }
    Ok(Found { file: above, mount: dir.mount })
}

fn copy(dir: Dir<'_>) -> Result<Found> {
    let file = rustix::io::fcntl_dupfd_cloexec(dir.fd, 3).map_err(host::errno)?;
    Ok(Found { file, mount: dir.mount })
}

/// A walk under way.
struct Walk<'a> {
    root: &'a Root,
    table: &'a Table,
    /// The directory that may not be left.
    scope: Option<Dir<'a>>,
    way: Way,
    at: Found,
    links: u32,
}

impl Walk<'_> {
    fn finish(mut self, mut rest: Vec<u8>) -> Result<Led> {
        loop {
            let slashes = rest.iter().take_while(|&&byte| byte == b'/').count();
            let here = rest.split_off(slashes);
            let end = here.iter().position(|&byte| byte == b'/').unwrap_or(here.len());
            let (name, after) = here.split_at(end);
            let is_last = after.iter().all(|&byte| byte == b'/');
            if name.is_empty() {
                return self.itself(slashes > 0);
            }
            if is_last && self.way.last == Last::Name {
                return self.led(&here);
            }
            rest = match name {
                b"." => {
                    self.check_directory()?;
                    // A path that ends here names a directory.
                    if after.is_empty() { b"/".to_vec() } else { after.to_vec() }
                }
                b".." => {
                    self.check_directory()?;
                    self.up()?;
                    if after.is_empty() { b"/".to_vec() } else { after.to_vec() }
                }
                _ => match self.step(name, after, is_last)? {
                    Some(rest) => rest,
                    None => return self.led(&here),
                },
            };
        }
    }

    fn led(self, name: &[u8]) -> Result<Led> {
        Ok(Led { at: self.at, name: CString::new(name).map_err(|_| Errno::EINVAL)? })
    }

    /// Ends the walk at the present place.
    fn itself(self, must_be_directory: bool) -> Result<Led> {
        match self.is_directory()? {
            true => self.led(b"."),
            false if must_be_directory => Err(Errno::ENOTDIR),
            false => self.led(b""),
        }
    }

    fn id(&self) -> Result<Identity> {
        identity(self.at.as_fd())
    }

    /// Only a mount's source can be something else.
    fn is_directory(&self) -> Result<bool> {
        Ok(self.table.is_directory(self.at.mount) || !self.table.is_source(self.at.mount, self.id()?))
    }

    fn check_directory(&self) -> Result<()> {
        if self.is_directory()? { Ok(()) } else { Err(Errno::ENOTDIR) }
    }

    fn up(&mut self) -> Result<()> {
        let at_scope = match self.scope {
            Some(scope) => scope.mount == self.at.mount && identity(scope.fd)? == self.id()?,
            None => false,
        };
        if at_scope {
            let beneath = self.way.resolve.contains(ResolveFlags::BENEATH);
            return if beneath { Err(Errno::EXDEV) } else { Ok(()) };
        }
        let above = self.root.above(self.table, &self.at)?;
        if let Some(scope) = self.scope
            && !self.root.is_within(self.table, &above, scope)?
        {
            // Somebody has moved the directory out of the one that is not to be left.
            return Err(Errno::EAGAIN);
        }
        self.cross_to(above)
    }

    fn cross_to(&mut self, found: Found) -> Result<()> {
        if found.mount != self.at.mount && self.way.resolve.contains(ResolveFlags::NO_XDEV) {
            return Err(Errno::EXDEV);
        }
        self.at = found;
        Ok(())
    }

    /// Takes one step, by one name. None if it is the last and the host is to act on it, else the
    /// path that is still to be walked.
    fn step(&mut self, name: &[u8], after: &[u8], is_last: bool) -> Result<Option<Vec<u8>>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let file = match rustix::fs::openat2(&self.at.file, name, flags, Mode::empty(), resolve) {
            // A missing name may be about to be made; for other failures the host repeats its
            // error.
            Err(_) if is_last => return Ok(None),
            found => found.map_err(host::errno)?,
        };
        let stat = rustix::fs::fstat(&file).map_err(host::errno)?;
        if let Some(mount) = self.table.crossing(self.at.mount, (stat.st_dev, stat.st_ino)) {
            self.cross_to(self.table.source(mount)?)?;
            return Ok(Some(after.to_vec()));
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink if !after.is_empty() || self.way.last == Last::Follow => {
                let text = rustix::fs::readlinkat(&file, c"", Vec::new()).map_err(host::errno)?;
                self.follow(text.as_bytes())?;
                Ok(Some([text.as_bytes(), after].concat()))
            }
            _ if is_last => Ok(None),
            FileType::Directory => {
                self.at = Found { file, mount: self.at.mount };
                Ok(Some(after.to_vec()))
            }
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn follow(&mut self, text: &[u8]) -> Result<()> {
        self.links += 1;
        if self.links > MOST_LINKS || self.way.resolve.contains(ResolveFlags::NO_SYMLINKS) {
            return Err(Errno::ELOOP);
        }
        match text.first() {
            None => Err(Errno::ENOENT),
            Some(b'/') => {
                let top = self.root.top_of(self.table, self.scope, self.way)?;
                self.cross_to(top)
            }
            Some(_) => Ok(()),
        }
    }
}
