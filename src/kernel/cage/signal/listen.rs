//! signalfd(2): descriptors that can be read while signals of a set wait.
//!
//! Reading takes signals for the reading thread, as sigtimedwait(2) does. That a descriptor can be read, poll(2) sees by its
//! beacon, which is set anew at every change of what waits. The beacon is one for all cages that have the descriptor, by fork:
//! it shows when a signal waits for any of them, where Linux asks about the one that polls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lind_abi::Result;

use crate::Kernel;
use crate::cage::Cage;
use crate::fd::{File, Kind, beacon};

/// What a descriptor listens for.
#[derive(Debug)]
pub struct Signalfd {
    mask: AtomicU64,
    /// Whose signals it tells of.
    cages: Mutex<Vec<Weak<Cage>>>,
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

    fn show(&self, file: &File) {
        // Looked and shown in one step, so that what an earlier look saw never stands in the end.
        let cages = lock(&self.cages);
        let mask = self.mask();
        let waits = cages.iter().filter_map(Weak::upgrade).any(|cage| cage.waits() & mask != 0);
        beacon::show(file.host(), waits);
    }
}

impl Listeners {
    /// Signals of this set have come to wait for the cage, or do so no more.
    pub fn changed(&self, signals: u64) {
        if self.any.load(Ordering::SeqCst) & signals != 0 {
            self.show();
        }
    }

    #[cold]
    fn show(&self) {
        let files: Vec<_> = {
            let mut files = lock(&self.files);
            files.retain(|file| file.strong_count() > 0);
            files.iter().filter_map(Weak::upgrade).collect()
        };
        for file in files {
            if let Kind::Signalfd(listener) = &file.kind {
                listener.show(&file);
            }
        }
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
    let listener = Signalfd { mask: AtomicU64::new(mask), cages: Mutex::new(vec![Arc::downgrade(cage)]) };
    let file = Arc::new(File::new(beacon::new(kernel, nonblock)?, Kind::Signalfd(listener)));
    cage.listeners.add(mask, Arc::downgrade(&file));
    cage.listeners.show();
    Ok(file)
}

/// Gives a descriptor another set.
pub(crate) fn listen_for(cage: &Cage, listener: &Signalfd, mask: u64) {
    listener.mask.store(mask, Ordering::SeqCst);
    for other in lock(&listener.cages).iter().filter_map(Weak::upgrade) {
        other.listeners.any.fetch_or(mask, Ordering::SeqCst);
    }
    cage.listeners.show();
}

/// A child has its parent's descriptors.
pub(crate) fn listen_too(parent: &Cage, child: &Arc<Cage>) {
    let files = lock(&parent.listeners.files).clone();
    for file in files {
        let Some(shared) = file.upgrade() else { continue };
        if let Kind::Signalfd(listener) = &shared.kind {
            let mut cages = lock(&listener.cages);
            cages.retain(|cage| cage.strong_count() > 0);
            cages.push(Arc::downgrade(child));
            drop(cages);
            child.listeners.add(listener.mask(), file);
        }
    }
}

impl Cage {
    /// The signals that wait for it or for one of its threads.
    fn waits(&self) -> u64 {
        let of_threads = |set, thread: &Arc<crate::cage::Thread>| set | thread.signals.pending.load(Ordering::SeqCst);
        self.threads().iter().fold(self.pending.load(Ordering::SeqCst), of_threads)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
