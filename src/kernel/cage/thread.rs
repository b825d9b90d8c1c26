//! A guest thread, as the kernel sees it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lind_abi::{Errno, Result};

use super::{Cage, Status};
use crate::engine::Hop;

/// What a thread does when control is back at its own call, instead of going on after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The whole cage ends.
    Exit(Status),
    /// This thread ends.
    ExitThread(i32),
}

/// Bits of [`Thread::attention`].
pub struct Attention;

impl Attention {
    /// [`Thread::take_next`] has something.
    pub const NEXT: u32 = 1;
    /// The cage is ending: leave as soon as control is at the guest's own frames.
    pub const ENDING: u32 = 2;
}

/// A guest thread. A worker of a grate is one too.
pub struct Thread {
    /// Its id; the first thread's is its cage's.
    pub tid: u32,
    /// Whether it runs on the host thread of the cage it serves, not on one of its own.
    pub worker: bool,
    /// Its cage.
    pub cage: Arc<Cage>,
    /// prctl(PR_SET_NAME).
    pub name: Mutex<[u8; 16]>,
    /// Blocked signals: bit n-1 is signal n.
    pub mask: AtomicU64,
    /// Signals that wait for this thread.
    pub(crate) pending: AtomicU64,
    /// What the engine has to look at after each call: bits of [`Attention`].
    attention: AtomicU32,
    next: Mutex<Option<Next>>,
    /// set_tid_address(2).
    pub clear_tid: AtomicU64,
    /// set_robust_list(2).
    pub robust_list: AtomicU64,
    /// What keeps host descriptors open while this thread uses them.
    pub reader: Arc<crate::fd::Reader>,
    /// The host's thread id while it runs, 0 otherwise.
    pub host_tid: AtomicU32,
}

impl Thread {
    /// A thread that belongs to `cage` from now on.
    pub(super) fn join(cage: &Arc<Cage>, tid: u32, worker: bool) -> Result<Arc<Thread>> {
        let mut family = cage.family();
        if family.ended.is_some() {
            return Err(Errno::EAGAIN);
        }
        let thread = Arc::new(Thread {
            tid,
            worker,
            cage: Arc::clone(cage),
            name: Mutex::new([0; 16]),
            mask: AtomicU64::new(0),
            pending: AtomicU64::new(0),
            attention: AtomicU32::new(0),
            next: Mutex::new(None),
            clear_tid: AtomicU64::new(0),
            robust_list: AtomicU64::new(0),
            reader: cage.fds.readers().join(),
            host_tid: AtomicU32::new(0),
        });
        family.threads.push(Arc::downgrade(&thread));
        Ok(thread)
    }

    /// Whether the engine has to look before it goes on: 0 or bits of [`Attention`].
    #[inline]
    pub fn attention(&self) -> u32 {
        self.attention.load(Ordering::Relaxed)
    }

    /// Leaves `next` for the engine to carry out when control is back at this thread's own call.
    pub fn set_next(&self, next: Next) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
        self.notice(Attention::NEXT);
    }

    /// What was left, if anything: a pending [`Next`], or the end of the cage.
    pub fn take_next(&self) -> Option<Next> {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.attention.fetch_and(!Attention::NEXT, Ordering::AcqRel);
        next.or_else(|| {
            let ending = self.attention() & Attention::ENDING != 0;
            ending.then(|| Next::Exit(self.cage.family().ended.unwrap_or(Status::Exited(0))))
        })
    }

    /// Sets bits of attention.
    pub(crate) fn notice(&self, bits: u32) {
        self.attention.fetch_or(bits, Ordering::AcqRel);
    }

    /// The engine's word that this thread runs no more guest code. The last thread, or `Next::Exit`, ends the cage:
    /// descriptors close, the parent learns of it, grates get their notices (through `hop`).
    pub fn ended(self: &Arc<Thread>, kernel: &Arc<crate::Kernel>, how: Next, hop: &dyn Hop) {
        super::exit::thread_ended(kernel, self, how, hop);
    }
}
