//! Walks paths into the kernel's own trees, through them, and out again.
//!
//! The host resolves a path alone unless one of ours may be on its way ([`may_enter`]; a path that
//! is missing on the host and has symbolic links in it may be, too). Then the path is walked
//! component by component: links are read and followed here, each host directory is opened by its
//! name in the one before, and `proc` or `dev` in the root is where one of our trees begins. The
//! result is a place in a tree, or a host directory and the rest of the path.

use std::ffi::{CStr, CString};

use std::sync::Arc;

use lind_abi::{Errno, Result};
use rustix::fs::{FileType, OFlags};

use super::{Place, What, top};
use crate::call::Ctx;
use crate::fd::{FileRef, Kind};
use crate::host;
use crate::path::{Origin, Start, Within};
use crate::root::table::Found;
use crate::root::{Directory, Last, Root, is_same};

/// The same as on Linux.
const MOST_LINKS: u32 = 40;

/// The place that a path led to.
pub(crate) enum Reached {
    /// A place in one of our trees.
    Place(Place),
    /// A name that one of our directories does not have.
    Missing(Place, Vec<u8>),
    /// An open file, by /proc/PID/fd/N.
    File(FileRef),
    /// The host has to continue from here, with this path.
    Host(Start, CString),
}

/// The place that a walk has reached.
enum At {
    Ours(Place),
    Host(Start),
}

/// The target of a symbolic link of ours.
enum Target {
    Text(Vec<u8>),
    Directory(Arc<Directory>),
    File(FileRef),
}

/// Whether a path that starts at `start` may lead through one of our trees, even without links of
/// the host's: it begins there, or names a tree after going to the root or up.
#[inline]
pub(crate) fn may_enter(root: &Root, start: &Start, path: &CStr) -> bool {
    let path = path.to_bytes();
    let first = path.iter().position(|&byte| byte != b'/').unwrap_or(path.len());
    if names_tree(&path[first..]) {
        return true;
    }
    if first == 0 && start.place().is_some() {
        return true;
    }
    goes_up(path) && (path.split(|&byte| byte == b'/').any(names_tree) || root.mounted_in_dev().next().is_some())
}

#[inline]
fn names_tree(path: &[u8]) -> bool {
    let after = match path {
        [b'd', b'e', b'v', after @ ..] | [b'p', b'r', b'o', b'c', after @ ..] | [b's', b'y', b's', after @ ..] => after,
        _ => return false,
    };
    after.first().is_none_or(|&byte| byte == b'/')
}

#[inline]
fn goes_up(path: &[u8]) -> bool {
    path.windows(2).any(|pair| pair == b"..")
}

/// Walks a path.
///
/// # Errors
/// ENOENT, ENOTDIR, ELOOP, EACCES on the way. Errors on the host's part of the way are left to the
/// host.
pub(crate) fn walk(cx: &Ctx<'_>, from: Origin, path: &CStr, last: Last, within: Within) -> Result<Reached> {
    let Origin { start, root, walked } = from;
    let mut rest = path.to_bytes().to_vec();
    let scope = start.place().filter(|_| within.is_scoped() && rest.first() != Some(&b'/')).cloned();
    let mut at = if rest.first() == Some(&b'/') { top_of(cx, root.as_ref())? } else { begin(start) };
    let mut links = 0;
    loop {
        let slashes = rest.iter().take_while(|&&byte| byte == b'/').count();
        let here = rest.split_off(slashes);
        let end = here.iter().position(|&byte| byte == b'/').unwrap_or(here.len());
        let (name, after) = here.split_at(end);
        if name.is_empty() {
            return match at {
                At::Ours(place) if slashes > 0 && !place.is_directory() => Err(Errno::ENOTDIR),
                At::Ours(place) => Ok(Reached::Place(place)),
                At::Host(start) if last == Last::Name => Ok(Reached::Host(start, c"/".to_owned())),
                At::Host(start) => Ok(Reached::Host(start, c".".to_owned())),
            };
        }
        let is_last = after.iter().all(|&byte| byte == b'/');
        at = match at {
            // Such a name is neither made nor removed: the host says why.
            At::Host(start) if is_last && last == Last::Name && matches!(name, b"." | b"..") => {
                return CString::new(here).map(|rest| Reached::Host(start, rest)).map_err(|_| Errno::EINVAL);
            }
            at => at,
        };
        if name == b".." && (is_scope(&at, scope.as_ref()) || root.as_ref().is_some_and(|root| is_at(&at, root))) {
            within.check_above_root()?;
            rest = after.to_vec();
            continue;
        }
        if matches!(&at, At::Ours(place) if place.is_dev()) && cx.kernel.root.mounted_in_dev().any(|own| own == name) {
            within.check_border()?;
            at = At::Host(Start::Opened(host_dev(cx)?));
            rest = here;
            continue;
        }
        let follow = !is_last || last == Last::Follow || (last != Last::Name && !after.is_empty());
        let link = match at {
            At::Ours(place) => match step(cx, place, name, follow, within)? {
                Step::To(next) => {
                    at = next;
                    None
                }
                Step::Missing(place) if is_last => return Ok(Reached::Missing(place, name.to_vec())),
                Step::Missing(_) => return Err(Errno::ENOENT),
                Step::Link(_, Target::File(file)) if is_last && after.is_empty() && !is_ours(&file) => {
                    return Ok(Reached::File(file));
                }
                Step::Link(_, Target::File(file)) => {
                    at = through(file)?;
                    Some(None)
                }
                Step::Link(_, Target::Directory(directory)) => {
                    at = begin(Start::Directory(directory));
                    Some(None)
                }
                Step::Link(place, Target::Text(text)) => {
                    at = At::Ours(place);
                    Some(Some(text))
                }
            },
            At::Host(start) => match host_step(cx, start, name, (is_last, follow, walked), within)? {
                HostStep::To(next) => {
                    at = next;
                    None
                }
                HostStep::Stop(start) => {
                    return CString::new(here).map(|rest| Reached::Host(start, rest)).map_err(|_| Errno::EINVAL);
                }
                HostStep::Link(start, text) => {
                    at = At::Host(start);
                    Some(Some(text))
                }
            },
        };
        rest = match link {
            None => after.to_vec(),
            Some(text) => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::ELOOP);
                }
                let text = text.unwrap_or_default();
                if text.first() == Some(&b'/') {
                    at = match &scope {
                        Some(place) => At::Ours(place.clone()),
                        None => top_of(cx, root.as_ref())?,
                    };
                }
                [&text, after].concat()
            }
        };
    }
}

fn begin(start: Start) -> At {
    match start.place() {
        Some(place) => At::Ours(place.clone()),
        None => At::Host(start),
    }
}

/// The root of a cage.
fn top_of(cx: &Ctx<'_>, own: Option<&Arc<Directory>>) -> Result<At> {
    match own {
        Some(directory) => Ok(begin(Start::Directory(Arc::clone(directory)))),
        None => Start::of(&cx.kernel.root).map(At::Host),
    }
}

/// Whether the walk has arrived at this directory.
fn is_at(at: &At, directory: &Directory) -> bool {
    match (at, directory.place()) {
        (At::Ours(place), Some(root)) => place.path() == root.path(),
        (At::Host(start), None) => is_same(start.dir(), directory.dir()),
        _ => false,
    }
}

/// Whether this is the directory of ours that must not be left. The walk began there, and no link
/// has led elsewhere.
fn is_scope(at: &At, scope: Option<&Place>) -> bool {
    matches!((at, scope), (At::Ours(place), Some(scope)) if place.is_directory() && place.0.len() == scope.0.len())
}

fn is_ours(file: &FileRef) -> bool {
    matches!(file.kind, Kind::Pseudo(_))
}

/// A path goes on at an open file.
fn through(file: FileRef) -> Result<At> {
    match &file.kind {
        Kind::Pseudo(place) => Ok(At::Ours(place.clone())),
        // Only what was opened inside the root may be walked.
        Kind::Named(_) => Ok(At::Host(Start::File(file))),
        _ => Err(Errno::ENOTDIR),
    }
}

enum Step {
    To(At),
    Missing(Place),
    Link(Place, Target),
}

/// Takes one step, in a directory of ours.
fn step(cx: &Ctx<'_>, place: Place, name: &[u8], follow: bool, within: Within) -> Result<Step> {
    if !place.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    match name {
        b"." => return Ok(Step::To(At::Ours(place))),
        b".." => {
            return Ok(Step::To(match place.above() {
                Some(above) => At::Ours(above),
                None => {
                    within.check_border()?;
                    At::Host(Start::of(&cx.kernel.root)?)
                }
            }));
        }
        _ => {}
    }
    match place.child(cx, name) {
        Ok(child) if follow && child.is_link() => {
            let target = child.target(cx)?;
            match &target {
                Target::Text(text) if !child.leads_to_itself() => within.check_link(text)?,
                _ => within.check_magic_link()?,
            }
            Ok(Step::Link(place, target))
        }
        Ok(child) => Ok(Step::To(At::Ours(child))),
        Err(Errno::ENOENT) => Ok(Step::Missing(place)),
        Err(errno) => Err(errno),
    }
}

/// The directory of the host's root in which mounts in /dev are.
fn host_dev(cx: &Ctx<'_>) -> Result<Found> {
    let root = &cx.kernel.root;
    root.open(root.top(), c"dev", (OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW).bits(), 0)
}

enum HostStep {
    To(At),
    /// The host resolves the rest.
    Stop(Start),
    Link(Start, Vec<u8>),
}

/// One component, in a directory of the host's. `alone`: the host resolves no more than the last
/// one.
fn host_step(
    cx: &Ctx<'_>,
    start: Start,
    name: &[u8],
    (is_last, follow, alone): (bool, bool, bool),
    within: Within,
) -> Result<HostStep> {
    let root = &cx.kernel.root;
    let is_root = root.is_top(start.dir());
    match name {
        b"." => return Ok(HostStep::To(At::Host(start))),
        b".." if is_root => {
            within.check_above_root()?;
            return Ok(HostStep::To(At::Host(start)));
        }
        b".." => {
            let above = root.open(start.dir(), c"..", (OFlags::PATH | OFlags::DIRECTORY).bits(), 0)?;
            // From a mount in /dev.
            let has_dev = root.mounted_in_dev().next().is_some();
            if has_dev && host_dev(cx).is_ok_and(|dev| is_same(dev.dir(), above.dir())) {
                return Ok(HostStep::To(At::Ours(Place::top(&super::dev::TOP))));
            }
            return Ok(HostStep::To(At::Host(Start::Opened(above))));
        }
        _ => {}
    }
    if let Some(place) = top(name).filter(|_| is_root) {
        within.check_border()?;
        return Ok(HostStep::To(At::Ours(place)));
    }
    let component = CString::new(name).map_err(|_| Errno::EINVAL)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW;
    let found = match root.open(start.dir(), &component, flags.bits(), 0) {
        Err(errno) if alone && !is_last => return Err(errno),
        Err(_) => return Ok(HostStep::Stop(start)),
        Ok(found) => found,
    };
    if found.mount != start.dir().mount {
        within.check_border()?;
    }
    let stat = rustix::fs::fstat(&found).map_err(host::errno)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink if follow => {
            let text = rustix::fs::readlinkat(&found, c"", Vec::new()).map_err(host::errno)?;
            within.check_link(text.to_bytes())?;
            Ok(HostStep::Link(start, text.into_bytes()))
        }
        FileType::Directory if !is_last => Ok(HostStep::To(At::Host(Start::Opened(found)))),
        _ if alone && !is_last => Err(Errno::ENOTDIR),
        _ => Ok(HostStep::Stop(start)),
    }
}

impl Place {
    /// Whether Linux leads this link to a file itself, whatever the text says.
    fn leads_to_itself(&self) -> bool {
        matches!(self.node().entry.what, What::Root) || self.node().entry.name == "exe"
    }

    fn target(&self, cx: &Ctx<'_>) -> Result<Target> {
        match self.node().entry.what {
            What::Cwd => Ok(Target::Directory(self.subject(cx)?.living()?.cwd.load_full())),
            What::Root => self.root(cx).map(Target::Directory),
            What::Descriptor => self.descriptor(cx).map(Target::File),
            _ => self.link(cx).map(Target::Text),
        }
    }
}
