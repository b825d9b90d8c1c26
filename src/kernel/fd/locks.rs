//! Record locks: fcntl(2) F_SETLK and its relatives, and open file description locks.
//!
//! The host would see one process and let every cage through, so the kernel keeps them itself. A lock belongs to a
//! cage, and goes when the cage closes any descriptor of the file; or to an open file description, and goes with
//! it. Locks are between cages: other processes of the host do not see them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lind_abi::{CageId, Errno, Result};
use rustix::thread::futex;

use crate::host;

/// The end of a range without one: one past the largest offset.
pub const END: u64 = 1 << 63;

/// The most locks on one file.
const MAX_LOCKS: usize = 8192;

/// Which file: device and inode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileId {
    dev: u64,
    ino: u64,
}

impl FileId {
    /// The id of an open file.
    ///
    /// # Errors
    /// What fstat(2) says.
    pub fn of(file: BorrowedFd<'_>) -> Result<FileId> {
        let stat = rustix::fs::fstat(file).map_err(host::errno)?;
        Ok(FileId { dev: stat.st_dev, ino: stat.st_ino })
    }
}

/// Whose a lock is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Owner {
    /// A cage.
    Cage(CageId),
    /// An open file description.
    Description(usize),
}

/// How much a lock keeps out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// F_RDLCK
    Shared,
    /// F_WRLCK
    Exclusive,
}

/// A lock on some bytes of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lock {
    /// Whose.
    pub owner: Owner,
    /// How.
    pub mode: Mode,
    /// From and to. Never empty.
    pub range: Range<u64>,
}

impl Lock {
    fn touches(&self, range: &Range<u64>) -> bool {
        self.range.start < range.end && range.start < self.range.end
    }

    fn excludes(&self, other: &Lock) -> bool {
        self.owner != other.owner
            && (self.mode == Mode::Exclusive || other.mode == Mode::Exclusive)
            && self.touches(&other.range)
    }
}

/// The record locks of all cages.
#[derive(Default)]
pub struct Locks {
    state: Mutex<State>,
    /// Changes whenever a lock is given up; waiters sleep on it.
    released: AtomicU32,
}

#[derive(Default)]
struct State {
    /// Each file's locks, by start.
    files: HashMap<FileId, Vec<Lock>>,
    /// Who waits for whom, to find circles.
    waiting: BTreeMap<Owner, Owner>,
}

impl Locks {
    /// The lock that keeps `wanted` from being had, the one with the lowest start if there are several.
    pub fn obstacle(&self, file: FileId, wanted: &Lock) -> Option<Lock> {
        self.state().obstacle(file, wanted).cloned()
    }

    /// Takes a lock, replacing what its owner had in the range.
    ///
    /// # Errors
    /// EAGAIN when another owner's lock is in the way, ENOLCK when there are too many.
    pub fn take(&self, file: FileId, wanted: Lock) -> Result<()> {
        let mut state = self.state();
        if state.obstacle(file, &wanted).is_some() {
            return Err(Errno::EAGAIN);
        }
        let locks = state.files.entry(file).or_default();
        if locks.len() + 2 > MAX_LOCKS {
            return Err(Errno::ENOLCK);
        }
        cut(locks, wanted.owner, &wanted.range);
        insert(locks, wanted);
        drop(state);
        // An exclusive lock may have become a shared one.
        self.wake();
        Ok(())
    }

    /// Takes a lock, sleeping in `sleep` while another owner's is in the way. `sleep` gets a word and a value, and returns
    /// when the word has another one, or sooner.
    ///
    /// # Errors
    /// EDEADLK when that owner waits for this one, ENOLCK, and what `sleep` says.
    pub fn take_patiently(&self, file: FileId, wanted: &Lock, sleep: impl Fn(&AtomicU32, u32) -> Result<()>) -> Result<()> {
        loop {
            let before = self.released.load(Ordering::Acquire);
            match self.take(file, wanted.clone()) {
                Err(Errno::EAGAIN) => {}
                result => return result,
            }
            if !self.begin_waiting(file, wanted)? {
                continue;
            }
            let slept = sleep(&self.released, before);
            self.state().waiting.remove(&wanted.owner);
            slept?;
        }
    }

    /// Gives up what `owner` has in a range. ENOLCK when that would make too many locks.
    ///
    /// # Errors
    /// ENOLCK.
    pub fn give_up(&self, file: FileId, owner: Owner, range: &Range<u64>) -> Result<()> {
        let mut state = self.state();
        let Some(locks) = state.files.get_mut(&file) else { return Ok(()) };
        if locks.len() + 1 > MAX_LOCKS && *range != (0..END) {
            return Err(Errno::ENOLCK);
        }
        cut(locks, owner, range);
        if locks.is_empty() {
            state.files.remove(&file);
        }
        drop(state);
        self.wake();
        Ok(())
    }

    /// Gives up all that `owner` has on a file.
    pub fn give_up_file(&self, file: FileId, owner: Owner) {
        let _ = self.give_up(file, owner, &(0..END));
    }

    /// Gives up all that `owner` has.
    pub fn give_up_all(&self, owner: Owner) {
        let mut state = self.state();
        state.files.retain(|_, locks| {
            locks.retain(|lock| lock.owner != owner);
            !locks.is_empty()
        });
        state.waiting.remove(&owner);
        drop(state);
        self.wake();
    }

    /// Notes who is waited for. False if there is nobody any more.
    fn begin_waiting(&self, file: FileId, wanted: &Lock) -> Result<bool> {
        let mut state = self.state();
        let Some(holder) = state.obstacle(file, wanted).map(|lock| lock.owner) else { return Ok(false) };
        let mut next = holder;
        // As many steps as there are waiters; descriptions never wait for anyone as Linux has it.
        for _ in 0..state.waiting.len() {
            let Some(&waited_for) = state.waiting.get(&next) else { break };
            if waited_for == wanted.owner {
                return Err(Errno::EDEADLK);
            }
            next = waited_for;
        }
        if matches!(wanted.owner, Owner::Cage(_)) {
            state.waiting.insert(wanted.owner, holder);
        }
        Ok(true)
    }

    fn wake(&self) {
        self.released.fetch_add(1, Ordering::AcqRel);
        let _ = futex::wake(&self.released, futex::Flags::PRIVATE, u32::MAX >> 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn obstacle(&self, file: FileId, wanted: &Lock) -> Option<&Lock> {
        self.files.get(&file)?.iter().find(|lock| lock.excludes(wanted))
    }
}

/// Takes a range out of an owner's locks.
fn cut(locks: &mut Vec<Lock>, owner: Owner, range: &Range<u64>) {
    let mut kept = Vec::new();
    locks.retain(|lock| {
        if lock.owner != owner || !lock.touches(range) {
            return true;
        }
        for part in [lock.range.start..range.start, range.end..lock.range.end] {
            if part.start < part.end {
                kept.push(Lock { range: part, ..lock.clone() });
            }
        }
        false
    });
    for lock in kept {
        insert(locks, lock);
    }
}

/// Adds a lock where its owner has none, and joins it with the owner's locks beside it that are alike.
fn insert(locks: &mut Vec<Lock>, mut lock: Lock) {
    locks.retain(|other| {
        let joins = other.owner == lock.owner
            && other.mode == lock.mode
            && (other.range.end == lock.range.start || other.range.start == lock.range.end);
        if joins {
            lock.range.start = lock.range.start.min(other.range.start);
            lock.range.end = lock.range.end.max(other.range.end);
        }
        !joins
    });
    let at = locks.partition_point(|other| other.range.start < lock.range.start);
    locks.insert(at, lock);
}

#[cfg(test)]
mod tests;
