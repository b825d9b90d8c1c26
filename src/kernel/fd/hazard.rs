//! Host descriptors in use: keeps a descriptor open while a thread uses it.
//!
//! read(2) and its kind must find the host descriptor behind a guest's number, and keep it open
//! until the host call is done, even when another thread closes the number meanwhile. Counting
//! references costs two atomic read-modify-writes a call (in a profile of a loaded machine, about
//! an eighth of a pread's time). Instead each thread announces the descriptor it uses in a word of
//! its own, and a thread that takes a file out of a table looks at all these words before the file
//! may close: hazard pointers, with descriptors for pointers.
//!
//! The announcement must be visible before the reader looks at the slot again. The first thread to
//! use a table owns it and announces by a plain store; every other thread by an exchange, having
//! marked the table as shared. A remover that owns the table needs no barrier (it sees all
//! exchanges); one that does not makes the owner's processor catch up with membarrier(2).

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering, compiler_fence};
use std::sync::{Arc, Mutex, Weak};

use super::File;
use crate::host;
use crate::lock::Locked;

const NONE: i32 = -1;

/// A thread's word: which host descriptor it is using now.
#[derive(Debug)]
pub struct Reader {
    id: u32,
    using: AtomicI32,
    all: Arc<Readers>,
}

/// The words of all threads of a kernel, and files that wait for one to be cleared.
#[derive(Debug)]
pub struct Readers {
    words: Mutex<Vec<Weak<Reader>>>,
    last: AtomicU32,
    retired: Mutex<Vec<Arc<File>>>,
    /// Whether `retired` has something.
    waiting: AtomicBool,
    /// Whether the host has the barrier. Without it nobody owns a table.
    barrier: bool,
}

impl Default for Readers {
    fn default() -> Self {
        Readers {
            words: Mutex::default(),
            last: AtomicU32::new(0),
            retired: Mutex::default(),
            waiting: AtomicBool::new(false),
            barrier: host::barrier_register(),
        }
    }
}

/// The threads that use a table.
#[derive(Debug, Default)]
pub struct Users {
    /// The id of the thread that used it first; 0 for none yet.
    owner: AtomicU32,
    /// Whether any other thread has.
    shared: AtomicBool,
}

/// A host descriptor that stays open while this lives.
#[derive(Debug)]
pub struct InUse<'a> {
    reader: &'a Reader,
    host: i32,
}

impl InUse<'_> {
    /// The descriptor's number at the host.
    #[inline(always)]
    pub fn number(&self) -> i32 {
        self.host
    }
}

impl std::os::fd::AsFd for InUse<'_> {
    #[inline(always)]
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        host::in_use(self)
    }
}

impl Drop for InUse<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.reader.uses_no_more();
    }
}

impl Readers {
    /// A word for one more thread.
    pub fn join(self: &Arc<Readers>) -> Arc<Reader> {
        let id = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        let reader = Arc::new(Reader { id, using: AtomicI32::new(NONE), all: Arc::clone(self) });
        let mut words = self.words.locked();
        words.retain(|word| word.strong_count() > 0);
        words.push(Arc::downgrade(&reader));
        reader
    }

    /// Called with files that were just taken out of slots, before the caller drops its shares of
    /// them: keeps each open while a thread uses it. `closer` is the calling thread, or None if
    /// unknown.
    pub(super) fn release(&self, users: &Users, closer: Option<&Reader>, files: &[Arc<File>]) {
        let owner = users.owner.load(Ordering::SeqCst);
        let owns = closer.is_some_and(|reader| reader.id == owner);
        if owner == 0 || (owns && !users.shared.load(Ordering::SeqCst)) {
            return;
        }
        if !owns && self.barrier {
            host::barrier();
        }
        let used: Vec<_> = files.iter().filter(|file| self.uses(file)).cloned().collect();
        if !used.is_empty() {
            self.retired.locked().extend(used);
            self.waiting.store(true, Ordering::SeqCst);
            // After this, a reader that cleared its word before it could see the flag is seen to
            // have cleared it.
            host::barrier();
            self.close_retired();
        }
    }

    fn uses(&self, file: &File) -> bool {
        use std::os::fd::AsRawFd;
        let host = file.host().as_raw_fd();
        self.words.locked().iter().filter_map(Weak::upgrade).any(|word| word.using.load(Ordering::SeqCst) == host)
    }

    #[cold]
    fn close_retired(&self) {
        let closing: Vec<_> = {
            let mut retired = self.retired.locked();
            let (keep, closing) = std::mem::take(&mut *retired).into_iter().partition(|file| self.uses(file));
            *retired = keep;
            self.waiting.store(!retired.is_empty(), Ordering::SeqCst);
            closing
        };
        drop(closing);
    }
}

impl Reader {
    /// The end of an [`InUse`].
    #[inline(always)]
    fn uses_no_more(&self) {
        self.using.store(NONE, Ordering::Release);
        if self.all.waiting.load(Ordering::Relaxed) {
            std::hint::cold_path();
            self.all.close_retired();
        }
    }

    /// Announces the host descriptor that `slot` holds. None if it holds none.
    #[inline(always)]
    pub(super) fn announce<'a>(&'a self, users: &Users, slot: &AtomicI32) -> Option<InUse<'a>> {
        loop {
            let host = slot.load(Ordering::Acquire);
            if host < 0 {
                return None;
            }
            if users.owner.load(Ordering::Relaxed) == self.id {
                self.using.store(host, Ordering::Relaxed);
                // The processor's own reordering is what the remover's barrier makes up for.
                compiler_fence(Ordering::SeqCst);
            } else {
                self.announce_shared(users, host);
            }
            if slot.load(Ordering::Acquire) == host {
                return Some(InUse { reader: self, host });
            }
            self.using.store(NONE, Ordering::Release);
        }
    }

    #[cold]
    fn announce_shared(&self, users: &Users, host: i32) {
        let first =
            self.all.barrier && users.owner.compare_exchange(0, self.id, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if !first {
            let _ = users.owner.compare_exchange(0, u32::MAX, Ordering::SeqCst, Ordering::SeqCst);
            users.shared.store(true, Ordering::SeqCst);
        }
        self.using.swap(host, Ordering::SeqCst);
    }
}
