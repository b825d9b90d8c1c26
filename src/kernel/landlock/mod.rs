//! Landlock: rules by which a process confines its own use of files, landlock(7).
//!
//! A rule names a directory or file, by identity as Linux's does, and allows kinds of access to it
//! and to all below it. A ruleset is a file with rules; a cage that restricts itself adds it to its
//! domain, which its children and the programs that it runs keep. Each ruleset of a domain has to
//! allow an access, at the file or at a directory above it up to the root.
//!
//! Paths of a confined cage are walked name by name, so that calls find the directory that they
//! change, and an open acts on the very file that was looked at.

mod check;
mod domain;
mod open;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lind_abi::{Errno, Result};

use crate::lock::Locked;
pub(crate) use check::{named_by, permit_opened, sees};
pub(crate) use domain::{Confined, Domain};
pub(crate) use open::open;

/// The version of the interface that programs are told.
pub(crate) const VERSION: i32 = 2;

/// Kinds of access: LANDLOCK_ACCESS_FS_*.
pub(crate) mod access {
    #![allow(missing_docs)]
    pub const EXECUTE: u64 = 1 << 0;
    pub const WRITE_FILE: u64 = 1 << 1;
    pub const READ_FILE: u64 = 1 << 2;
    pub const READ_DIR: u64 = 1 << 3;
    pub const REMOVE_DIR: u64 = 1 << 4;
    pub const REMOVE_FILE: u64 = 1 << 5;
    pub const MAKE_CHAR: u64 = 1 << 6;
    pub const MAKE_DIR: u64 = 1 << 7;
    pub const MAKE_REG: u64 = 1 << 8;
    pub const MAKE_SOCK: u64 = 1 << 9;
    pub const MAKE_FIFO: u64 = 1 << 10;
    pub const MAKE_BLOCK: u64 = 1 << 11;
    pub const MAKE_SYM: u64 = 1 << 12;
    pub const REFER: u64 = 1 << 13;
    /// All that this version knows.
    pub const ALL: u64 = (1 << 14) - 1;
    /// Those that a rule about a file can allow.
    pub const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE;
}

/// A directory or file, as a rule names it and as a walk to the root meets it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Node {
    /// One of the host's: its device, and its number there.
    Host(u64, u64),
    /// A place in /proc, /dev or /sys: its path.
    Place(Vec<u8>),
}

/// A rule.
#[derive(Clone, Debug)]
struct Rule {
    node: Node,
    allowed: u64,
    /// Keeps the file, whose number would be another's otherwise.
    _file: Option<Arc<Held>>,
}

/// The host descriptors that rules of all cages hold.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// The most of them.
const MOST_HELD: usize = 4096;

/// A host descriptor that a rule holds.
#[derive(Debug)]
struct Held(#[expect(dead_code, reason = "it is open as long as this is there")] OwnedFd);

impl Held {
    fn new(file: impl AsFd) -> Result<Held> {
        if HELD.fetch_add(1, Ordering::Relaxed) >= MOST_HELD {
            HELD.fetch_sub(1, Ordering::Relaxed);
            return Err(Errno::ENOMEM);
        }
        rustix::io::fcntl_dupfd_cloexec(file, 3).map(Held).map_err(|error| {
            HELD.fetch_sub(1, Ordering::Relaxed);
            crate::host::errno(error)
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A ruleset that can still get rules.
#[derive(Debug)]
pub struct Ruleset {
    handled: u64,
    rules: Mutex<Vec<Rule>>,
}

impl Ruleset {
    /// Without rules: no access of these kinds is allowed.
    pub(crate) fn new(handled: u64) -> Ruleset {
        Ruleset { handled, rules: Mutex::default() }
    }

    /// The kinds of access that it is about.
    pub(crate) fn handled(&self) -> u64 {
        self.handled
    }

    /// Allows accesses to a node; `file` is held as long as the rule is there.
    ///
    /// # Errors
    /// ENOMEM for too many rules, EMFILE.
    pub(crate) fn add(&self, node: Node, allowed: u64, file: Option<&dyn AsFd>) -> Result<()> {
        let mut rules = self.rules.locked();
        if let Some(known) = rules.iter_mut().find(|rule| rule.node == node) {
            known.allowed |= allowed;
            return Ok(());
        }
        let held = match file {
            Some(file) => Some(Arc::new(Held::new(file.as_fd())?)),
            None => None,
        };
        if held.is_none() && rules.len() >= MOST_HELD {
            return Err(Errno::ENOMEM);
        }
        rules.push(Rule { node, allowed, _file: held });
        Ok(())
    }
}
