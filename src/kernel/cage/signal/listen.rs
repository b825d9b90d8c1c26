//! signalfd(2): descriptors that can be read while signals of a set wait.
//!
//! Reading takes signals for the reading thread, as sigtimedwait(2) does. That a descriptor can be read, poll(2) sees by its
//! beacon, which is set anew at every change of what waits. The beacon is one for all cages that have the descriptor, by fork:
//! it shows when a signal waits for any of them, where Linux asks about the one that polls.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lind_abi::{CageId, Result};

use super::Signals;
use crate::Kernel;
use crate::cage::Cage;
use crate::fd::{File, Kind, ready_fd};

/// What a descriptor listens for.
#[derive(Debug)]
pub struct Signalfd {
    mask: AtomicU64,
    told: Mutex<Told>,
}

/// Whose signals a descriptor tells of. A change of one cage asks nothing of the others, of which there may be thousands.
#[derive(Debug, Default)]
struct Told {
    cages: Vec<Weak<Cage>>,
    /// When there are so many cages, those that are gone are taken out.
    look_at: usize,
    /// Those for which a signal waits.
    waiting: HashSet<CageId>,
    /// What the descriptor shows.
    shown: bool,
}

/// The descriptors of a cage.
#[derive(Default)]
pub(crate) struct Listeners {
    /// All signals that were ever listened for: where there are none, nothing has to be looked at.
    any: AtomicU64,
    files: Mutex<Vec<Weak<File>>>,
}

impl Signalfd {
    /// The set.
    pub(crate) fn mask(&self) -> u64 {
        self.mask.load(Ordering::SeqCst)
    }

    fn show(&self, file: &File, cage: CageId, waits: u64) {
        // Noted and shown in one step, so that what an earlier look saw never stands in the end.
        let mut told = lock(&self.told);
        told.note(cage, waits & self.mask() != 0);
        let now = !told.waiting.is_empty();
        // Also where it is shown already: that one more has come is an edge.
        if std::mem::replace(&mut told.shown, now) || now {
            ready_fd::show(file.host(), now);
        }
    }
}

impl Told {
    fn note(&mut self, cage: CageId, waits: bool) {
        if waits {
            self.waiting.insert(cage);
        } else {
            self.waiting.remove(&cage);
        }
    }

    fn add(&mut self, cage: &Arc<Cage>) {
        if self.cages.len() >= self.look_at {
            self.cages.retain(|cage| cage.strong_count() > 0);
            self.look_at = 2 * self.cages.len() + 16;
        }
        self.cages.push(Arc::downgrade(cage));
    }
}

impl Listeners {
    /// How many descriptors a change is told to, at most.
    pub fn count(&self) -> usize {
        if self.any.load(Ordering::SeqCst) == 0 { 0 } else { lock(&self.files).len() }
    }

    fn add(&self, mask: u64, file: Weak<File>) {
        lock(&self.files).push(file);
        self.any.fetch_or(mask, Ordering::SeqCst);
    }
}

/// A descriptor's file that tells of signals of `cage`.
///
/// # Errors
/// EMFILE.
pub(crate) fn listen(kernel: &Kernel, cage: &Arc<Cage>, mask: u64, nonblock: bool) -> Result<Arc<File>> {
    let mut told = Told::default();
    told.add(cage);
    let listener = Signalfd { mask: AtomicU64::new(mask), told: Mutex::new(told) };
    let file = Arc::new(File::new(ready_fd::new(kernel, nonblock)?, Kind::Signalfd(listener)));
    cage.listeners.add(mask, Arc::downgrade(&file));
    cage.show_waiting(&cage.signals());
    Ok(file)
}

/// Gives a descriptor another set.
pub(crate) fn listen_for(cage: &Cage, listener: &Signalfd, mask: u64) {
    listener.mask.store(mask, Ordering::SeqCst);
    let others: Vec<_> = lock(&listener.told).cages.iter().filter_map(Weak::upgrade).collect();
    for other in others {
        other.listeners.any.fetch_or(mask, Ordering::SeqCst);
        let _locked = other.signals();
        let waits = other.waits() & mask != 0;
        lock(&listener.told).note(other.id, waits);
    }
    cage.show_waiting(&cage.signals());
}

/// A child has its parent's descriptors.
pub(crate) fn listen_too(parent: &Cage, child: &Arc<Cage>) {
    let files = lock(&parent.listeners.files).clone();
    for file in files {
        let Some(shared) = file.upgrade() else { continue };
        if let Kind::Signalfd(listener) = &shared.kind {
            lock(&listener.told).add(child);
            child.listeners.add(listener.mask(), file);
        }
    }
}

impl Cage {
    /// Signals of this set have come to wait for the cage, or do so no more.
    pub(super) fn waiting_changed(&self, locked: &Signals, changed: u64) {
        if self.listeners.any.load(Ordering::SeqCst) & changed != 0 {
            self.show_waiting(locked);
        }
    }

    /// Has its descriptors show whether signals wait. What waits changes under the lock only.
    #[cold]
    fn show_waiting(&self, _locked: &Signals) {
        let files: Vec<_> = {
            let mut files = lock(&self.listeners.files);
            files.retain(|file| file.strong_count() > 0);
            files.iter().filter_map(Weak::upgrade).collect()
        };
        let waits = self.waits();
        for file in files {
            if let Kind::Signalfd(listener) = &file.kind {
                listener.show(&file, self.id, waits);
            }
        }
    }

    /// The signals that wait for it or for one of its threads; none where the last one has left.
    fn waits(&self) -> u64 {
        let threads = self.threads();
        if threads.is_empty() {
            return 0;
        }
        let of_threads = |set, thread: &Arc<crate::cage::Thread>| set | thread.signals.pending.load(Ordering::SeqCst);
        threads.iter().fold(self.pending.load(Ordering::SeqCst), of_threads)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
