//! Two guest threads on one host thread: a thread that starts a program and then waits for it lends
//! its host thread to the program.
//!
//! Every grate starts the program behind it in this way. A second host thread would share the first
//! one's descriptors, and the host counts references to descriptors that are shared
//! (docs/engine.md). The program runs on top of the stack of the thread that waits, as grates do on
//! top of their clients', and when its first thread has ended the wait goes on.
//!
//! Meanwhile the lender is not on any host thread. A thread that interrupts it also does the
//! lender's work ([`Lender::interrupt`]): stops count as made, handlers wait until it is back (a
//! thread whose handlers cannot wait must not lend), and if its cage ends, the end is carried out
//! on another host thread.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use lind_kernel::Kernel;
use lind_kernel::cage::{Attention, Next, Status, Thread, signal};
use lind_kernel::runtime::Start;
use lind_kernel::{CageId, Result};

use crate::Shared;
use crate::run::guest::{CHAIN_STACK, HostThread};
use crate::run::program::LinkedProgram;
use crate::run::thread::{self, Begin};
use crate::signal::host_signals;
use lind_kernel::lock::Locked;

/// A program that has not begun yet, since its parent is going to wait for it.
pub struct Lent {
    thread: Arc<Thread>,
    linked: Arc<LinkedProgram>,
    block: u32,
    parent: CageId,
}

/// The threads that have lent their host threads, by their ids.
#[derive(Default)]
pub struct Lenders(Mutex<HashMap<u32, Arc<Lender>>>);

/// A thread that has lent its host thread.
pub struct Lender {
    thread: Arc<Thread>,
    kernel: Arc<Kernel>,
    /// Held while a thread does the lender's pending work.
    settling: Mutex<()>,
    /// Counts the interrupts.
    interrupts: AtomicU32,
    /// Whether it ends on another host thread.
    ended: AtomicBool,
}

impl Lenders {
    /// The lender of `thread`, if it has lent its host thread.
    pub fn find(&self, thread: &Thread) -> Option<Arc<Lender>> {
        if thread.host.tid.load(Ordering::Acquire) != 0 {
            return None;
        }
        self.all().get(&thread.tid).cloned()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u32, Arc<Lender>>> {
        self.0.locked()
    }
}

impl Lender {
    /// Does the pending work of the lender, on the calling thread.
    pub fn interrupt(&self, shared: &Arc<Shared>) {
        self.interrupts.fetch_add(1, Ordering::SeqCst);
        loop {
            let settling = match self.settling.try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
                // The holder of the lock looks again, even if it is further up this very stack.
                Err(TryLockError::WouldBlock) => return,
            };
            let seen = self.interrupts.load(Ordering::SeqCst);
            self.thread.settle_as_lender(&self.kernel);
            if self.thread.must_leave() && !self.ended.load(Ordering::SeqCst) {
                self.end(shared);
            }
            drop(settling);
            if self.interrupts.load(Ordering::SeqCst) == seen {
                return;
            }
        }
    }

    /// Ends the thread on a host thread of its own.
    fn end(&self, shared: &Arc<Shared>) {
        if host_signals::is_apart() {
            // No other guest thread runs, or it would have called this; and from here none can be
            // started that has the cages' descriptors. So all guest code above leaves, and then the
            // thread itself.
            let above = |cage: &Arc<_>| lind_kernel::cage::Cage::descends_from(cage, self.thread.cage.id);
            let cages = self.kernel.cages.all();
            return cages.iter().filter(|cage| above(cage)).for_each(|cage| signal::end(&self.kernel, cage, KILL));
        }
        self.ended.store(true, Ordering::SeqCst);
        let (of_job, kernel, thread) = (Arc::clone(shared), Arc::clone(&self.kernel), Arc::clone(&self.thread));
        let started = shared.pool.run(
            &self.thread.cage,
            Box::new(move |kept| {
                let host = kept.take().unwrap_or_else(|| HostThread::new(&of_job, &kernel));
                thread.begins_here();
                let how = thread.take_next().unwrap_or(Next::Exit(Status::signaled(KILL)));
                host.ended(&thread, how);
                *kept = Some(host);
            }),
        );
        // If it could not be started, the thread ends when it is back.
        self.ended.store(started.is_ok(), Ordering::SeqCst);
    }
}

/// SIGKILL
const KILL: u8 = 9;

impl HostThread {
    /// Keeps a child back until its parent waits.
    ///
    /// # Errors
    /// E2BIG, ENOMEM.
    pub fn keep_back(&self, thread: Arc<Thread>, start: &Start) -> Result<()> {
        // Runs an earlier one first, whose parent did not wait as announced.
        self.run_lent(None);
        let (linked, block) = thread::lay_out(&thread, start)?;
        self.shared.set_program(thread.cage.id, &linked);
        let parent = thread.cage.maker().unwrap_or(thread.cage.id);
        self.lent.set(Some(Box::new(Lent { thread, linked, block, parent })));
        Ok(())
    }

    /// See [`lind_kernel::runtime::Hop::run_lent`].
    pub fn run_lent(&self, waits: Option<&Thread>) -> bool {
        let Some(lent) = self.lent.take() else { return false };
        let lender = waits.filter(|waits| waits.cage.id == lent.parent).and_then(|waits| self.lender(waits));
        match lender {
            Some(lender) => self.run_on_top(&lender, *lent),
            None => self.run_apart(*lent),
        }
        true
    }

    /// Makes the thread whose code runs here a lender, unless it has pending work, or too little of
    /// its stack is left for the program on top.
    fn lender(&self, waits: &Thread) -> Option<Arc<Lender>> {
        if self.hops() != 1 || self.stack_left() < CHAIN_STACK {
            return None;
        }
        let thread = waits.cage.thread(waits.tid)?;
        let lender = Arc::new(Lender {
            thread: Arc::clone(&thread),
            kernel: Arc::clone(&self.kernel),
            settling: Mutex::default(),
            interrupts: AtomicU32::new(0),
            ended: AtomicBool::new(false),
        });
        thread.pauses_here();
        self.shared.interrupts.ended(&thread);
        self.shared.lenders.all().insert(thread.tid, Arc::clone(&lender));
        // An interrupt from before that moment did not find the lender there.
        if thread.attention() & Attention::INTERRUPTS != 0 {
            self.back(&lender);
            return None;
        }
        Some(lender)
    }

    /// The lender gets its host thread back, unless it has ended meanwhile.
    fn back(&self, lender: &Lender) {
        self.shared.lenders.all().remove(&lender.thread.tid);
        drop(lender.settling.lock());
        if lender.ended.load(Ordering::SeqCst) {
            return;
        }
        lender.thread.begins_here();
        lender.thread.is_back();
        self.shared.interrupts.started(&lender.thread, self.tid);
        lender.thread.takes_processors(&self.kernel);
    }

    fn run_on_top(&self, lender: &Lender, lent: Lent) {
        let hops = self.hops.replace(0);
        thread::begin_to_end(self, lent.thread, lent.linked, Begin::Program(lent.block), None);
        self.hops.set(hops);
        self.back(lender);
    }

    fn run_apart(&self, lent: Lent) {
        let Lent { thread, linked, block, .. } = lent;
        let begin = Begin::Program(block);
        if thread::launch(&self.shared, &self.kernel, Arc::clone(&thread), linked, begin).is_err() {
            // It was promised to run: it ends as if the host had killed it.
            thread.begins_here();
            self.ended(&thread, Next::Exit(Status::signaled(KILL)));
        }
    }
}
