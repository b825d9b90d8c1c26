//! Files that the runner's command line brings from outside the guest's root: the grates that it
//! names without a slash, and the files that their options name.
//!
//! Both decide what programs may do, so no program may change them: the runner opens them before
//! any program runs, and they are reached without a path. Only cages of the line reach them:
//! grates, each started by the one before ([`super::birth::searches`]).

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use lind_abi::{Errno, Result};

/// A grate of the command line.
pub struct Installed {
    /// The name as typed.
    pub name: CString,
    /// Its name in /proc and in messages.
    pub path: CString,
    /// The file.
    pub file: OwnedFd,
    /// The module it was compiled from, which runs instead where compiled code may not be trusted.
    pub source: Option<OwnedFd>,
}

/// The grates and files of a command line.
#[derive(Default)]
pub struct Line {
    grates: Vec<Installed>,
    files: Mutex<Vec<Option<OwnedFd>>>,
    runs: AtomicBool,
}

impl Line {
    /// These grates, and these files by their numbers.
    pub fn new(grates: Vec<Installed>, files: Vec<Option<OwnedFd>>) -> Line {
        Line { grates, files: Mutex::new(files), runs: AtomicBool::new(false) }
    }

    /// The grate with this name on the command line.
    pub(super) fn grate(&self, name: &[u8]) -> Option<&Installed> {
        self.grates.iter().find(|grate| grate.name.to_bytes() == name || grate.stem() == name)
    }

    /// A program of the line is about to begin. The first program that is not a grate ends the
    /// line: all grates have read their options.
    pub(super) fn begins(&self, is_grate: bool) {
        if !is_grate {
            self.files.lock().expect("no one panics while taking a file").clear();
        }
    }

    /// A cage exists for a program that is not a grate.
    pub(super) fn has_program(&self) {
        self.runs.store(true, Ordering::SeqCst);
    }

    /// Whether a program runs already, or has run: until then grates start one another, and
    /// compile.
    pub(super) fn runs(&self) -> bool {
        self.runs.load(Ordering::SeqCst)
    }

    /// Gives a file away: there is one taker for each.
    ///
    /// # Errors
    /// EBADF where there is none, or none any more.
    pub(crate) fn take_file(&self, number: u64) -> Result<OwnedFd> {
        let mut files = self.files.lock().expect("no one panics while taking a file");
        let file = usize::try_from(number).ok().and_then(|at| files.get_mut(at));
        file.and_then(Option::take).ok_or(Errno::EBADF)
    }
}

impl Installed {
    /// Its file.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its path's last name without suffix.
    fn stem(&self) -> &[u8] {
        let name = self.path.to_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        name.split(|&byte| byte == b'.').next().unwrap_or_default()
    }
}

/// Whether a name without a slash has the form of a grate's: it ends in `_grate` or `-grate`,
/// before any suffix. Such names are looked up among the grates of the line, and nowhere else.
pub fn is_grate_name(name: &[u8]) -> bool {
    !name.contains(&b'/') && other_spelling(name).is_some()
}

/// `NAME_grate` of `%NAME_grate`, which names a grate of the line and never a file, whatever files
/// a grate shows: earlier grates pass it on. The
/// mark is that of `%}`.
pub(super) fn marked(name: &CStr) -> Option<&[u8]> {
    name.to_bytes().strip_prefix(b"%").filter(|name| is_grate_name(name))
}

/// `imfs_grate` for `imfs-grate` and the other way round; None for a name without such an end,
/// suffixes aside.
pub fn other_spelling(name: &[u8]) -> Option<Vec<u8>> {
    let base = name.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let stem = name[base..].iter().position(|byte| *byte == b'.').map_or(name.len(), |at| base + at);
    let at = name[base..stem].strip_suffix(b"grate")?.len().checked_sub(1)? + base;
    let other = match name[at] {
        b'-' => b'_',
        b'_' => b'-',
        _ => return None,
    };
    let mut name = name.to_vec();
    name[at] = other;
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_grates() {
        for name in ["imfs_grate", "imfs-grate", "a_grate.cwasm", "a_grate.wasm"] {
            assert!(is_grate_name(name.as_bytes()), "{name}");
        }
        for name in ["grate", "migrate", "./imfs_grate", "/grates/imfs_grate", "app", "", "%}"] {
            assert!(!is_grate_name(name.as_bytes()), "{name}");
        }
        assert_eq!(marked(c"%imfs_grate"), Some(&b"imfs_grate"[..]));
        assert!([c"%}", c"imfs_grate", c"%app", c"%a/b_grate"].iter().all(|name| marked(name).is_none()));
    }

    #[test]
    fn each_file_is_given_away_once() {
        let file = rustix::fs::memfd_create(c"x", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let line = Line::new(Vec::new(), vec![None, Some(file)]);
        assert_eq!(line.take_file(0).unwrap_err(), Errno::EBADF);
        assert!(line.take_file(1).is_ok());
        assert_eq!(line.take_file(1).unwrap_err(), Errno::EBADF);
        let file = rustix::fs::memfd_create(c"x", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let line = Line::new(Vec::new(), vec![Some(file)]);
        line.begins(true);
        line.begins(false);
        assert_eq!(line.take_file(0).unwrap_err(), Errno::EBADF);
        assert_eq!(line.take_file(u64::MAX).unwrap_err(), Errno::EBADF);
    }

    #[test]
    fn the_word_grate_may_be_set_off_either_way() {
        let other = |name: &str| other_spelling(name.as_bytes()).map(|name| String::from_utf8(name).unwrap());
        for (one, two) in [
            ("imfs-grate", "imfs_grate"),
            ("imfs-grate.cwasm", "imfs_grate.cwasm"),
            ("/grates/fs-view-grate.cwasm", "/grates/fs-view_grate.cwasm"),
            ("a-grate/b-grate", "a-grate/b_grate"),
        ] {
            assert_eq!(other(one).as_deref(), Some(two));
            assert_eq!(other(two).as_deref(), Some(one));
        }
        for name in ["", "grate", "/grate", "grate-", "migrate", "a-grate/b", "x.-grate", "-grater", "imfs-grate/"] {
            assert_eq!(other(name), None, "{name}");
        }
    }
}
