//! Record locks: fcntl(2) F_SETLK and its relatives, and open file description locks.
//!
//! The host would see one process and let every cage through, so the kernel keeps them itself. A
//! lock belongs to a cage, and goes when the cage closes any descriptor of the file; or to an open
//! file description, and goes with it. The host gets the union of all these locks, held by one
//! description, so that other processes stay out and keep us out: the first locker's, or one that
//! is opened for this. Without such a description, the locks are between cages only.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use lind_abi::layout::Flock;
use lind_abi::{CageId, Errno, Result};
use rustix::fs::OFlags;
use rustix::thread::futex;

use crate::host;
pub use crate::host::fs::FileId;
use crate::lock::Locked;

/// The end of a range without one: one past the largest offset.
pub const END: u64 = 1 << 63;

/// How often to look whether another process has given its lock up: it wakes nobody here.
const GLANCE: Duration = Duration::from_millis(10);

/// The most locks on one file.
const MAX_LOCKS: usize = 8192;

/// The owner of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Owner {
    /// A cage.
    Cage(CageId),
    /// An open file description.
    Description(usize),
}

/// The modes of locks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mode {
    /// F_RDLCK
    Shared,
    /// F_WRLCK
    Exclusive,
}

/// Gives a descriptor that holds the host's locks of a file. None if that cannot be.
pub type Opener<'a> = &'a dyn Fn() -> Option<OwnedFd>;

/// A lock on some bytes of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lock {
    /// The owner.
    pub owner: Owner,
    /// The mode.
    pub mode: Mode,
    /// The bytes that it covers; never empty.
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
    files: HashMap<FileId, Held>,
    /// The owners that wait, each with the one it waits for, to detect deadlocks.
    waiting: BTreeMap<Owner, Owner>,
}

/// The locks of a file.
#[derive(Default)]
struct Held {
    /// The locks, by start.
    locks: Vec<Lock>,
    /// Holds the same at the host. Kept until a cage closes the file.
    host: Option<OwnedFd>,
}

impl Locks {
    /// The lock that keeps `wanted` from being had, the one with the lowest start if there are
    /// several. A lock of another process has no owner here.
    pub fn obstacle(&self, file: FileId, wanted: &Lock, open: Opener<'_>) -> Option<(Option<Owner>, Mode, Range<u64>)> {
        let state = self.state();
        if let Some(lock) = state.obstacle(file, wanted) {
            return Some((Some(lock.owner), lock.mode, lock.range.clone()));
        }
        let opened;
        let host = match state.files.get(&file).and_then(|held| held.host.as_ref()) {
            Some(host) => host,
            None => {
                opened = open()?;
                &opened
            }
        };
        foreign_obstacle(host.as_fd(), wanted).map(|(mode, range)| (None, mode, range))
    }

    /// Whether a descriptor of the kernel's own holds locks of this file at the host.
    pub fn at_host(&self, file: FileId) -> bool {
        self.state().files.get(&file).is_some_and(|held| held.host.is_some())
    }

    /// Takes a lock, replacing what its owner had in the range.
    ///
    /// # Errors
    /// EAGAIN when another owner's lock is in the way, ENOLCK when there are too many.
    pub fn take(&self, file: FileId, wanted: Lock, open: Opener<'_>) -> Result<()> {
        let mut state = self.state();
        if state.obstacle(file, &wanted).is_some() {
            return Err(Errno::EAGAIN);
        }
        let held = state.files.entry(file).or_default();
        if held.locks.len() + 2 > MAX_LOCKS {
            return Err(Errno::ENOLCK);
        }
        match &held.host {
            None => held.host = open(),
            Some(host) if wanted.mode == Mode::Exclusive && !may_write(host.as_fd()) => held.move_to(open()),
            Some(_) => {}
        }
        let (before, range) = (held.host.is_some().then(|| held.locks.clone()), wanted.range.clone());
        cut(&mut held.locks, wanted.owner, &range);
        insert(&mut held.locks, wanted);
        if let Err(errno) = held.tell_host(&range) {
            held.locks = before.unwrap_or_default();
            // Parts of it that the host has granted are given back.
            let _ = held.tell_host(&range);
            return Err(errno);
        }
        drop(state);
        // An exclusive lock may have become a shared one.
        self.wake();
        Ok(())
    }

    /// Takes a lock, sleeping in `sleep` while another owner's is in the way. `sleep` gets a word
    /// and a value, and returns when the word has another one, at the latest after the time it
    /// gets.
    ///
    /// # Errors
    /// EDEADLK when that owner waits for this one, ENOLCK, and the errors of `sleep`.
    pub fn take_patiently(
        &self,
        file: FileId,
        wanted: &Lock,
        open: Opener<'_>,
        sleep: impl Fn(&AtomicU32, u32, Option<Duration>) -> Result<()>,
    ) -> Result<()> {
        loop {
            let before = self.released.load(Ordering::Acquire);
            match self.take(file, wanted.clone(), open) {
                Err(Errno::EAGAIN) => {}
                result => return result,
            }
            let known = self.begin_waiting(file, wanted)?;
            let slept = sleep(&self.released, before, (!known).then_some(GLANCE));
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
        let Some(held) = state.files.get_mut(&file) else { return Ok(()) };
        if held.locks.len() + 1 > MAX_LOCKS && *range != (0..END) {
            return Err(Errno::ENOLCK);
        }
        cut(&mut held.locks, owner, range);
        // Less is never refused.
        let _ = held.tell_host(range);
        drop(state);
        self.wake();
        Ok(())
    }

    /// Gives up all that `owner` has on a file, because it closes it.
    pub fn give_up_file(&self, file: FileId, owner: Owner) {
        let _ = self.give_up(file, owner, &(0..END));
        let mut state = self.state();
        if state.files.get(&file).is_some_and(|held| held.locks.is_empty()) {
            state.files.remove(&file);
        }
    }

    /// Gives up all that `owner` has.
    pub fn give_up_all(&self, owner: Owner) {
        let mut state = self.state();
        state.files.retain(|_, held| {
            cut(&mut held.locks, owner, &(0..END));
            let _ = held.tell_host(&(0..END));
            !held.locks.is_empty()
        });
        state.waiting.remove(&owner);
        drop(state);
        self.wake();
    }

    /// Notes which owner is waited for. False if that is not a cage: another process, or nobody any
    /// more.
    fn begin_waiting(&self, file: FileId, wanted: &Lock) -> Result<bool> {
        let mut state = self.state();
        let Some(holder) = state.obstacle(file, wanted).map(|lock| lock.owner) else { return Ok(false) };
        let mut next = holder;
        // At most as many steps as there are waiters; descriptions never wait for anyone, as on
        // Linux.
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
        self.state.locked()
    }
}

impl State {
    fn obstacle(&self, file: FileId, wanted: &Lock) -> Option<&Lock> {
        self.files.get(&file)?.locks.iter().find(|lock| lock.excludes(wanted))
    }
}

impl Held {
    /// Makes the host hold in a range what these locks hold there.
    ///
    /// # Errors
    /// EAGAIN when another process is in the way; part of the range may then have been done.
    fn tell_host(&self, range: &Range<u64>) -> Result<()> {
        let Some(host) = &self.host else { return Ok(()) };
        for (part, mode) in self.strongest(range) {
            let locked = host::fs::record_lock(host.as_fd(), libc::F_OFD_SETLK, &mut flock(mode, &part));
            // With other errors, other processes cannot lock the file either, or only we may write
            // it.
            if let Err(Errno::EAGAIN | Errno::EACCES) = locked {
                return Err(Errno::EAGAIN);
            }
        }
        Ok(())
    }

    /// Moves the host's locks to another open file, if the present one is open only for reading:
    /// shared locks, which both can hold meanwhile.
    fn move_to(&mut self, other: Option<OwnedFd>) {
        let Some(other) = other.filter(|other| may_write(other.as_fd())) else { return };
        let old = self.host.replace(other);
        if self.tell_host(&(0..END)).is_err() {
            self.host = old;
        } else if let Some(old) = old {
            let _ = host::fs::record_lock(old.as_fd(), libc::F_OFD_SETLK, &mut flock(None, &(0..END)));
        }
    }

    /// The parts of a range by the strongest lock on them.
    fn strongest(&self, range: &Range<u64>) -> Vec<(Range<u64>, Option<Mode>)> {
        let touching = || self.locks.iter().filter(|lock| lock.touches(range));
        let mut edges = vec![range.start, range.end];
        edges
            .extend(touching().flat_map(|lock| [lock.range.start, lock.range.end]).filter(|edge| range.contains(edge)));
        edges.sort_unstable();
        edges.dedup();
        let mut parts: Vec<(Range<u64>, Option<Mode>)> = Vec::new();
        for edge in edges.windows(2) {
            let part = edge[0]..edge[1];
            let mode = touching().filter(|lock| lock.touches(&part)).map(|lock| lock.mode).max();
            match parts.last_mut() {
                Some((last, same)) if *same == mode => last.end = part.end,
                _ => parts.push((part, mode)),
            }
        }
        parts
    }
}

/// Whether an exclusive lock can be held by it.
fn may_write(host: BorrowedFd<'_>) -> bool {
    rustix::fs::fcntl_getfl(host).is_ok_and(|flags| flags & OFlags::RWMODE != OFlags::RDONLY)
}

/// The lock of another process that is in the way.
fn foreign_obstacle(host: BorrowedFd<'_>, wanted: &Lock) -> Option<(Mode, Range<u64>)> {
    let mut found = flock(Some(wanted.mode), &wanted.range);
    host::fs::record_lock(host, libc::F_OFD_GETLK, &mut found).ok()?;
    let mode = match i32::from(found.kind) {
        libc::F_RDLCK => Mode::Shared,
        libc::F_WRLCK => Mode::Exclusive,
        _ => return None,
    };
    let start = u64::try_from(found.start).ok()?;
    let end = if found.len == 0 { END } else { start + u64::try_from(found.len).ok()? };
    Some((mode, start..end))
}

fn flock(mode: Option<Mode>, range: &Range<u64>) -> Flock {
    let kind = match mode {
        None => libc::F_UNLCK,
        Some(Mode::Shared) => libc::F_RDLCK,
        Some(Mode::Exclusive) => libc::F_WRLCK,
    };
    let number = |value: u64| i64::try_from(value).expect("offsets lie below 2^63");
    let len = if range.end == END { 0 } else { number(range.end - range.start) };
    let kind = i16::try_from(kind).expect("kinds of locks are small");
    Flock { kind, start: number(range.start), len, ..Flock::default() }
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

/// Adds a lock where its owner has none, and joins it with the owner's locks beside it that are
/// alike.
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
