//! Whether a domain allows what a call is about to do.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};

use lind_abi::{Errno, Result};
use rustix::fs::{AtFlags, FileType, OFlags};

use super::access::{
    MAKE_BLOCK, MAKE_CHAR, MAKE_DIR, MAKE_FIFO, MAKE_REG, MAKE_SOCK, MAKE_SYM, OF_FILES, READ_DIR, READ_FILE, REFER,
    REMOVE_DIR, REMOVE_FILE, WRITE_FILE,
};
use super::{Domain, Node, access};
use crate::Kernel;
use crate::cage::Cage;
use crate::call::Ctx;
use crate::fd::{File, Kind};
use crate::host;
use crate::procfs::Place;
use crate::root::table::Dir;
use crate::root::{Change, Root};

/// How many directories there may be between a file and the root.
const DEEPEST: usize = 4096;

/// The host's identity of a file.
pub(super) fn node_of(file: BorrowedFd<'_>) -> Result<Node> {
    let stat = rustix::fs::fstat(file).map_err(host::errno)?;
    Ok(Node::Host(stat.st_dev, stat.st_ino))
}

/// A directory and those above it, up to the root.
fn way_of(root: &Root, dir: Dir<'_>) -> Result<Vec<Node>> {
    let mut way = vec![node_of(dir.fd)?];
    if root.is_top(dir) {
        return Ok(way);
    }
    let above = (OFlags::PATH | OFlags::DIRECTORY).bits();
    let mut at = root.open(Dir::new(dir.fd, dir.mount), c"..", above, 0)?;
    while way.len() < DEEPEST {
        way.push(node_of(at.as_fd())?);
        if root.is_top(at.dir()) {
            return Ok(way);
        }
        at = root.open(at.dir(), c"..", above, 0)?;
    }
    Err(Errno::EACCES)
}

/// The nodes of an open file: itself, and the directories above it. Empty for one that lies in no
/// directory.
fn way_of_opened(kernel: &Kernel, file: Dir<'_>) -> Result<Vec<Node>> {
    let root = &kernel.root;
    let stat = rustix::fs::fstat(file.fd).map_err(host::errno)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        return way_of(root, file);
    }
    let name = root.certain_name_of(file.fd).map_err(|_| Errno::EACCES)?;
    let end = name.iter().rposition(|&byte| byte == b'/').ok_or(Errno::EACCES)?;
    let folder = CString::new(if end == 0 { &b"/"[..] } else { &name[..end] }).map_err(|_| Errno::EACCES)?;
    let folder = root.open(root.top(), &folder, (OFlags::PATH | OFlags::DIRECTORY).bits(), 0)?;
    let mut way = vec![node_of(file.fd)?];
    way.extend(way_of(root, folder.dir())?);
    Ok(way)
}

/// A place of ours, those above it, and the root.
fn way_of_place(root: &Root, place: &Place) -> Result<Vec<Node>> {
    let path = place.path();
    let ends = (1..path.len()).rev().filter(|&end| path[end] == b'/');
    let above = ends.map(|end| Node::Place(path[..end].to_vec()));
    let mut way: Vec<_> = std::iter::once(Node::Place(path.clone())).chain(above).collect();
    way.push(node_of(root.directory())?);
    Ok(way)
}

fn decided(allowed: bool) -> Result<()> {
    if allowed { Ok(()) } else { Err(Errno::EACCES) }
}

/// Whether a cage may use an open file so: one that it reopens, runs, or gets from a grate. A file
/// that lies in no directory may be used in any way.
///
/// # Errors
/// EACCES, also where the file's directory cannot be found out.
pub(crate) fn permit_opened(kernel: &Kernel, cage: &Cage, file: Dir<'_>, wanted: u64) -> Result<()> {
    let Some(domain) = cage.confined.get() else { return Ok(()) };
    let nameless = kernel.root.host_name(file.fd).is_ok_and(|name| !name.to_bytes().starts_with(b"/"));
    let in_memory = rustix::fs::fcntl_get_seals(file.fd).is_ok();
    if nameless || in_memory {
        return Ok(());
    }
    decided(domain.allows(wanted, &way_of_opened(kernel, file)?))
}

/// The accesses of a file that is open with these flags.
pub(super) fn of_flags(flags: u32, is_directory: bool) -> u64 {
    match flags & 3 {
        _ if flags & OFlags::PATH.bits() != 0 => 0,
        _ if is_directory => READ_DIR,
        0 => READ_FILE,
        1 => WRITE_FILE,
        _ => READ_FILE | WRITE_FILE,
    }
}

/// Whether a cage may look into another: one that is confined sees those within its domain.
pub(crate) fn sees(cage: &Cage, other: &Cage) -> bool {
    cage.confined.get().is_none_or(|domain| domain.is_in(other.confined.get().as_deref()))
}

/// The access that makes a file of this kind.
fn to_make(kind: FileType) -> u64 {
    match kind {
        FileType::Directory => MAKE_DIR,
        FileType::Symlink => MAKE_SYM,
        FileType::Fifo => MAKE_FIFO,
        FileType::Socket => MAKE_SOCK,
        FileType::CharacterDevice => MAKE_CHAR,
        FileType::BlockDevice => MAKE_BLOCK,
        _ => MAKE_REG,
    }
}

fn to_remove(kind: FileType) -> u64 {
    if kind == FileType::Directory { REMOVE_DIR } else { REMOVE_FILE }
}

/// The kind of what has a name; None for a name that is free.
fn kind_at(dir: Dir<'_>, name: &CStr) -> Option<FileType> {
    let stat = rustix::fs::statat(dir.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

impl Ctx<'_> {
    /// Before a name is made or removed in a directory. A name that is there is not made, and one
    /// that is not there is not removed: the host says so.
    ///
    /// # Errors
    /// EACCES.
    pub(crate) fn permit_name(&self, dir: Dir<'_>, name: &CStr, change: Change, kind: FileType) -> Result<()> {
        let Some(domain) = self.cage.confined.get() else { return Ok(()) };
        let (wanted, happens) = match change {
            Change::Make => (to_make(kind), kind_at(dir, name).is_none()),
            _ => (to_remove(kind), kind_at(dir, name).is_some()),
        };
        decided(!happens || domain.allows(wanted, &way_of(&self.kernel.root, dir)?))
    }

    /// Before a name is moved, or two change places.
    ///
    /// # Errors
    /// EACCES; EXDEV where the file may not get another directory above it.
    pub(crate) fn permit_move(
        &self,
        (from, old): (Dir<'_>, &CStr),
        (to, new): (Dir<'_>, &CStr),
        exchange: bool,
    ) -> Result<()> {
        let Some(domain) = self.cage.confined.get() else { return Ok(()) };
        let Some(moved) = kind_at(from, old) else { return Ok(()) };
        let replaced = kind_at(to, new);
        let (from, to) = (way_of(&self.kernel.root, from)?, way_of(&self.kernel.root, to)?);
        let taken = replaced.map_or(0, to_remove);
        let back = if exchange { replaced.map_or(0, to_make) } else { 0 };
        decided(domain.allows(to_remove(moved) | back, &from) && domain.allows(to_make(moved) | taken, &to))?;
        relink(&domain, moved, &from, &to)?;
        replaced.filter(|_| exchange).map_or(Ok(()), |replaced| relink(&domain, replaced, &to, &from))
    }

    /// Before a file of one directory gets a name in another.
    ///
    /// # Errors
    /// EACCES; EXDEV where it may not get another directory above it.
    pub(crate) fn permit_link(&self, file: Dir<'_>, (to, new): (Dir<'_>, &CStr)) -> Result<()> {
        let Some(domain) = self.cage.confined.get() else { return Ok(()) };
        if kind_at(to, new).is_some() {
            return Ok(());
        }
        let stat = rustix::fs::fstat(file.fd).map_err(host::errno)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let to = way_of(&self.kernel.root, to)?;
        decided(domain.allows(to_make(kind), &to))?;
        match way_of_opened(self.kernel, file) {
            Ok(from) => relink(&domain, kind, &from[1..], &to),
            // It has no name so far, as one of O_TMPFILE.
            Err(_) if stat.st_nlink == 0 => Ok(()),
            Err(_) => Err(Errno::EXDEV),
        }
    }

    /// Before a place in one of our trees is used so.
    ///
    /// # Errors
    /// EACCES.
    pub(crate) fn permit_place(&self, place: &Place, wanted: u64) -> Result<()> {
        let Some(domain) = self.cage.confined.get() else { return Ok(()) };
        decided(domain.allows(wanted, &way_of_place(&self.kernel.root, place)?))
    }

    /// Checks that a place may be opened with these flags.
    ///
    /// # Errors
    /// EACCES.
    pub(crate) fn permit_place_open(&self, place: &Place, flags: u32) -> Result<()> {
        self.permit_place(place, of_flags(flags, place.is_directory()))
    }

    /// Before an open file is opened again, or comes from a grate.
    ///
    /// # Errors
    /// EACCES.
    pub(crate) fn permit_file(&self, cage: &Cage, file: &File, flags: u32) -> Result<()> {
        if !cage.confined.is() || !matches!(file.kind, Kind::Named(_)) {
            return Ok(());
        }
        let is_directory = rustix::fs::fstat(file.host())
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
        match of_flags(flags, is_directory) {
            0 => Ok(()),
            wanted => permit_opened(self.kernel, cage, file.dir(), wanted),
        }
    }

    /// As [`permit_file`](Ctx::permit_file), by the flags that the file is open with.
    ///
    /// # Errors
    /// EACCES.
    pub(crate) fn permit_given(&self, cage: &Cage, file: &File) -> Result<()> {
        if !cage.confined.is() {
            return Ok(());
        }
        let flags = rustix::fs::fcntl_getfl(file.host()).map_err(host::errno)?;
        self.permit_file(cage, file, flags.bits())
    }
}

/// Whether a file may get other directories above it: where both allow it, and where it gains no
/// right by that.
fn relink(domain: &Domain, kind: FileType, from: &[Node], to: &[Node]) -> Result<()> {
    if from.first() == to.first() {
        return Ok(());
    }
    let about = if kind == FileType::Directory { access::ALL } else { OF_FILES };
    let may = domain.allows(REFER, from) && domain.allows(REFER, to) && domain.gains_nothing(about, from, to);
    if may { Ok(()) } else { Err(Errno::EXDEV) }
}

/// The node that a rule names by an open file: a directory or file inside the root.
///
/// # Errors
/// EBADFD for a file that is in no directory; EINVAL for a file with rights of directories.
pub(crate) fn named_by(file: &File, allowed: u64) -> Result<Node> {
    let (node, is_directory) = match &file.kind {
        Kind::Named(_) => {
            let stat = rustix::fs::fstat(file.host()).map_err(host::errno)?;
            let node = Node::Host(stat.st_dev, stat.st_ino);
            (node, FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
        }
        Kind::Pseudo(place) => (Node::Place(place.path()), place.is_directory()),
        _ => return Err(Errno::EBADFD),
    };
    if !is_directory && allowed & !OF_FILES != 0 {
        return Err(Errno::EINVAL);
    }
    Ok(node)
}
