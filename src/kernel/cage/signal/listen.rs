//! signalfd(2): descriptors that can be read while signals of a set wait.
//!
//! Reading takes signals for the reading thread, as sigtimedwait(2) does. poll(2) sees that a
//! descriptor can be read by a timer of the host's, which is set again whenever the waiting signals
//! change. One timer looks the same to everybody, but Linux answers each process about its own
//! signals; so a child has its own open file for each of its parent's, and only the set is shared.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use lind_abi::Result;

use super::Signals;
use crate::Kernel;
use crate::cage::Cage;
use crate::fd::{FdTable, File, Kind, ready_fd};
use crate::lock::Locked;

/// A descriptor of signalfd(2).
#[derive(Debug)]
pub struct Signalfd {
    set: Arc<Set>,
    /// True while the host's timer shows that signals wait.
    shown: Mutex<bool>,
}

/// The set that one signalfd(2) made.
#[derive(Debug)]
struct Set {
    mask: AtomicU64,
    /// The cages that have a file of it.
    cages: Mutex<Members>,
}

/// The cages that share a set. A change of one cage asks nothing of the others, of which there may
/// be thousands.
#[derive(Debug, Default)]
struct Members {
    cages: Vec<Weak<Cage>>,
    /// When there are so many cages, those that are gone are taken out.
    look_at: usize,
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
        self.set.mask.load(Ordering::SeqCst)
    }

    fn show(&self, file: &File, waits: u64) {
        // Noted and shown in one step, so that the last look decides what is shown.
        let mut shown = self.shown.locked();
        let now = waits & self.mask() != 0;
        // Also where it is shown already: that one more has come is an edge.
        if std::mem::replace(&mut *shown, now) || now {
            ready_fd::show(file.host(), now);
        }
    }
}

impl Members {
    fn add(&mut self, cage: &Arc<Cage>) {
        if self.cages.len() >= self.look_at {
            self.cages.retain(|cage| cage.strong_count() > 0);
            self.look_at = 2 * self.cages.len() + 16;
        }
        self.cages.push(Arc::downgrade(cage));
    }
}

impl Listeners {
    /// The number of descriptors that a change affects, at most.
    pub fn count(&self) -> usize {
        if self.any.load(Ordering::SeqCst) == 0 { 0 } else { self.files.locked().len() }
    }
}

/// Makes a descriptor's file that shows signals of `cage`.
///
/// # Errors
/// EMFILE.
pub(crate) fn listen(kernel: &Kernel, cage: &Arc<Cage>, mask: u64, nonblock: bool) -> Result<Arc<File>> {
    let set = Arc::new(Set { mask: AtomicU64::new(mask), cages: Mutex::default() });
    let file = file_of(kernel, set, nonblock)?;
    cage.listens_by([Arc::clone(&file)]);
    cage.show_waiting(&cage.signals());
    Ok(file)
}

fn file_of(kernel: &Kernel, set: Arc<Set>, nonblock: bool) -> Result<Arc<File>> {
    let listener = Signalfd { set, shown: Mutex::new(false) };
    Ok(Arc::new(File::new(ready_fd::new(kernel, nonblock)?, Kind::Signalfd(listener))))
}

/// Gives a descriptor another set.
pub(crate) fn listen_for(listener: &Signalfd, mask: u64) {
    listener.set.mask.store(mask, Ordering::SeqCst);
    let cages: Vec<_> = listener.set.cages.locked().cages.iter().filter_map(Weak::upgrade).collect();
    for cage in cages {
        cage.listeners.any.fetch_or(mask, Ordering::SeqCst);
        cage.show_waiting(&cage.signals());
    }
}

/// Replaces its parent's files by files of its own, in the table of a child of `parent` that is
/// being made. Returns those by which the child is to listen.
///
/// # Errors
/// EMFILE.
pub(crate) fn renew(kernel: &Kernel, parent: &Cage, fds: &FdTable) -> Result<Vec<Arc<File>>> {
    if parent.listeners.files.locked().is_empty() {
        return Ok(Vec::new());
    }
    let mut renewed: HashMap<usize, Arc<File>> = HashMap::new();
    fds.exchange(|file| {
        let Kind::Signalfd(listener) = &file.kind else { return Ok(None) };
        let address = Arc::as_ptr(file).addr();
        if let Some(new) = renewed.get(&address) {
            return Ok(Some(Arc::clone(new)));
        }
        let nonblock =
            rustix::fs::fcntl_getfl(file.host().as_fd()).is_ok_and(|f| f.contains(rustix::fs::OFlags::NONBLOCK));
        let new = file_of(kernel, Arc::clone(&listener.set), nonblock)?;
        renewed.insert(address, Arc::clone(&new));
        Ok(Some(new))
    })?;
    Ok(renewed.into_values().collect())
}

impl Cage {
    /// Registers files that show its signals.
    pub(crate) fn listens_by(self: &Arc<Cage>, files: impl IntoIterator<Item = Arc<File>>) {
        for file in files {
            if let Kind::Signalfd(listener) = &file.kind {
                listener.set.cages.locked().add(self);
                self.listeners.files.locked().push(Arc::downgrade(&file));
                self.listeners.any.fetch_or(listener.mask(), Ordering::SeqCst);
            }
        }
    }

    /// Signals of this set have come to wait for the cage, or do so no more.
    pub(super) fn waiting_changed(&self, locked: &Signals, changed: u64) {
        if self.listeners.any.load(Ordering::SeqCst) & changed != 0 {
            self.show_waiting(locked);
        }
    }

    /// Makes its descriptors show whether signals wait. The waiting signals change only under the
    /// lock.
    #[cold]
    fn show_waiting(&self, _locked: &Signals) {
        let files: Vec<_> = {
            let mut files = self.listeners.files.locked();
            files.retain(|file| file.strong_count() > 0);
            files.iter().filter_map(Weak::upgrade).collect()
        };
        let waits = self.waits();
        for file in files {
            if let Kind::Signalfd(listener) = &file.kind {
                listener.show(&file, waits);
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
