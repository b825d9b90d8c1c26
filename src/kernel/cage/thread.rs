//! A guest thread, as the kernel sees it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};
use std::sync::{Arc, Mutex, Weak};

use lind_abi::{Errno, Result};

use super::{Birth, Cage, Status};
use crate::lock::Locked;
use crate::runtime::{Hop, Start};

/// The way in which a thread leaves its call instead of continuing after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The whole cage ends.
    Exit(Status),
    /// This thread ends.
    ExitThread(i32),
    /// This thread goes on with the program that [`Thread::exec_to`] was given.
    Exec,
}

/// Bits of [`Thread::attention`].
pub struct Attention;

impl Attention {
    /// [`Thread::take_next`] returns something.
    pub const NEXT: u32 = 1;
    /// The cage is ending: leave as soon as control is at the guest's own frames.
    pub const ENDING: u32 = 2;
    /// Signals wait, or the cage is stopped: [`Thread::next_step`] knows.
    pub const SIGNAL: u32 = 4;
    /// A mask is to be restored when handlers have run.
    pub const MASK: u32 = 8;
    /// [`Thread::take_birth`] has a child for the engine to bring to life.
    pub const BIRTH: u32 = 0x10;
    /// Another thread of the cage runs a new program: leave as for `ENDING`.
    pub const LEAVE: u32 = 0x20;
    /// The bits that end a wait.
    pub const INTERRUPTS: u32 = Attention::NEXT | Attention::ENDING | Attention::SIGNAL | Attention::LEAVE;
}

/// A guest thread. A worker of a grate is one too. Its fields are grouped by who writes them and
/// what guards them.
pub struct Thread {
    // Fixed at birth; the objects behind it have locks of their own.
    /// Its id; the first thread's is its cage's.
    pub tid: u32,
    /// Whether it runs on the host thread of the cage it serves, not on one of its own.
    pub worker: bool,
    /// Its cage.
    pub cage: Arc<Cage>,
    /// The routes of its calls by descriptor.
    pub routes: Arc<crate::fd_routes::Routes>,
    /// The hazard word that keeps host descriptors open while this thread uses them.
    pub reader: Arc<crate::fd::Reader>,

    /// Written by threads that act on this one, taken by its host thread when a call returns.
    left: Left,
    /// Written by the thread that chooses how it runs, and by its host thread.
    pub host: OnHost,
    /// Written by its own calls and taken once, when it ends.
    pub at_end: AtEnd,

    // Single words that its host thread alone writes.
    /// Whether this worker is in its grate's code or in a call from there, rather than idle.
    pub serving: AtomicBool,
    /// Whether its engine is ready to fork it: it is at a call of the import `fork`.
    pub forking: AtomicBool,
    /// Whether it is where a call of its may wait: written by those that act for it, too.
    pub(crate) waits: AtomicBool,

    // Written by its own calls, and by those of grates that act for it; read by senders of signals.
    /// Blocked signals: bit n-1 is signal n.
    pub mask: AtomicU64,
    /// Its signals; their queue has a lock of its own.
    pub(crate) signals: super::signal::OfThread,

    /// prctl(PR_SET_NAME); other threads may read or set it.
    pub name: Mutex<[u8; 16]>,
    /// How waiting has gone: its host thread's alone.
    pub(crate) backoff: crate::spin::SpinBackoffs,
}

/// Work of a thread for the time when control is back at its own call. `attention` says that there
/// is something; each of the others has a lock of its own, held for a moment, so that no two of
/// them are.
#[derive(Default)]
struct Left {
    /// Bits of [`Attention`] that the engine has to look at after each call.
    attention: AtomicU32,
    next: Mutex<Option<Next>>,
    /// The program that [`Next::Exec`] is about.
    exec: Mutex<Option<Box<Start>>>,
    /// The child that [`Attention::BIRTH`] is about.
    birth: Mutex<Option<Birth>>,
}

/// A thread on its host thread.
#[derive(Default)]
pub struct OnHost {
    /// The host's thread id while it runs, 0 otherwise. Only its host thread writes it; while
    /// `affinity` is held it does not become 0.
    pub tid: AtomicU32,
    /// The processors it has chosen, if it has.
    pub(super) affinity: Mutex<Option<rustix::thread::CpuSet>>,
    /// Its scheduling policy, for programs that ask: see `sys::process::sched`. A single word,
    /// changed at once.
    pub(crate) policy: AtomicU32,
    /// The usage of the host thread before this thread began.
    pub(super) before: Mutex<super::usage::Before>,
}

/// The addresses of words in the cage's memory that change when the thread ends.
#[derive(Default)]
pub struct AtEnd {
    /// set_tid_address(2).
    pub clear_tid: AtomicU64,
    /// set_robust_list(2).
    pub robust_list: AtomicU64,
}

impl Thread {
    /// A thread that belongs to `cage` from now on.
    pub(super) fn join(cage: &Arc<Cage>, tid: u32, worker: bool) -> Result<Arc<Thread>> {
        let limit = cage.settings().limits.threads;
        let mut family = cage.family();
        let others = family.threads.iter().filter(|other| other.upgrade().is_some_and(|t| !t.worker)).count();
        let full = if worker { !cage.answers() } else { others >= limit };
        if family.ended.is_some() || family.replacing || full {
            return Err(Errno::EAGAIN);
        }
        let thread = Arc::new(Thread {
            tid,
            worker,
            cage: Arc::clone(cage),
            routes: cage.routes.get(),
            reader: cage.fds.readers().join(),
            left: Left::default(),
            host: OnHost::default(),
            at_end: AtEnd::default(),
            serving: AtomicBool::new(worker),
            forking: AtomicBool::new(false),
            waits: AtomicBool::new(false),
            mask: AtomicU64::new(0),
            signals: super::signal::OfThread::default(),
            name: Mutex::default(),
            backoff: crate::spin::SpinBackoffs::default(),
        });
        family.threads.push(Arc::downgrade(&thread));
        Ok(thread)
    }

    /// The thread that goes on as the only one after execve(2): it has the cage's number. This
    /// thread if it has that number; else a new one in its place.
    pub(super) fn lead(self: &Arc<Thread>) -> Result<Arc<Thread>> {
        self.at_end.clear_tid.store(0, Ordering::Relaxed);
        self.at_end.robust_list.store(0, Ordering::Relaxed);
        if self.tid == self.cage.id.0 {
            return Ok(Arc::clone(self));
        }
        let leader = Arc::new(Thread {
            tid: self.cage.id.0,
            worker: false,
            cage: Arc::clone(&self.cage),
            routes: Arc::clone(&self.routes),
            reader: self.cage.fds.readers().join(),
            left: Left::default(),
            host: OnHost {
                tid: AtomicU32::new(0),
                affinity: Mutex::new(*self.host.affinity.locked()),
                policy: AtomicU32::new(self.host.policy.load(Ordering::Relaxed)),
                before: Mutex::new(*self.host.before.locked()),
            },
            at_end: AtEnd::default(),
            serving: AtomicBool::new(false),
            forking: AtomicBool::new(false),
            waits: AtomicBool::new(false),
            mask: AtomicU64::new(self.mask.load(Ordering::Acquire)),
            signals: super::signal::OfThread::taken_from(self),
            name: Mutex::default(),
            backoff: crate::spin::SpinBackoffs::default(),
        });
        let mut family = self.cage.family();
        family.threads.retain(|other| other.upgrade().is_some_and(|other| !Arc::ptr_eq(&other, self)));
        family.threads.push(Arc::downgrade(&leader));
        if family.ended.is_some() { Err(Errno::EINTR) } else { Ok(leader) }
    }

    /// Whether the engine has to look before it goes on: 0 or bits of [`Attention`].
    #[inline]
    pub fn attention(&self) -> u32 {
        self.left.attention.load(Ordering::Relaxed)
    }

    /// Leaves `next` for the engine to carry out when control is back at this thread's own call.
    pub fn set_next(&self, next: Next) {
        *self.left.next.locked() = Some(next);
        self.notice(Attention::NEXT);
    }

    /// Takes the pending [`Next`], or the end of the cage, if there is one.
    pub fn take_next(&self) -> Option<Next> {
        let next = self.left.next.locked().take();
        self.left.attention.fetch_and(!Attention::NEXT, Ordering::AcqRel);
        let leaving = self.attention() & (Attention::ENDING | Attention::LEAVE);
        if leaving == 0 {
            return next;
        }
        // The end of the cage takes precedence; a program that another thread runs, over this
        // thread's.
        match self.cage.family().ended {
            Some(status) => next.filter(|next| matches!(next, Next::Exit(_))).or(Some(Next::Exit(status))),
            None => Some(Next::ExitThread(0)),
        }
    }

    /// Begins to serve a call on a worker; false if it has to leave, and must not enter guest code
    /// any more.
    #[inline]
    pub fn begin_serving(&self) -> bool {
        self.serving.store(true, Ordering::Relaxed);
        // A thread that tells this one to leave makes this processor catch up before it looks at
        // `serving`.
        compiler_fence(Ordering::SeqCst);
        !self.must_leave()
    }

    /// It is idle again; false if it is to leave instead.
    #[inline]
    pub fn end_serving(&self) -> bool {
        self.serving.store(false, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
        !self.must_leave()
    }

    /// Whether the thread is to leave guest code wherever it is: its cage ends, or runs another
    /// program.
    #[inline]
    pub fn must_leave(&self) -> bool {
        self.attention() & (Attention::ENDING | Attention::LEAVE) != 0
    }

    /// Leaves a program to go on with, for [`Next::Exec`].
    pub(crate) fn exec_to(&self, start: Box<Start>) {
        *self.left.exec.locked() = Some(start);
        self.set_next(Next::Exec);
    }

    /// The program to go on with.
    pub(super) fn take_exec(&self) -> Option<Box<Start>> {
        self.left.exec.locked().take()
    }

    /// Leaves a child for the engine to bring to life.
    ///
    /// # Errors
    /// The child itself, if there is one already: a grate forwarded the same call twice.
    pub(crate) fn set_birth(&self, birth: Birth) -> core::result::Result<(), Birth> {
        let mut slot = self.left.birth.locked();
        if slot.is_some() {
            return Err(birth);
        }
        *slot = Some(birth);
        self.notice(Attention::BIRTH);
        Ok(())
    }

    /// The child that this thread's call has made, if it made one.
    pub fn take_birth(&self) -> Option<Birth> {
        let birth = self.left.birth.locked().take();
        self.left.attention.fetch_and(!Attention::BIRTH, Ordering::AcqRel);
        birth
    }

    /// Sets bits of attention.
    pub(crate) fn notice(&self, bits: u32) {
        self.left.attention.fetch_or(bits, Ordering::AcqRel);
    }

    /// The engine could not run it: it was never there.
    pub(crate) fn never_ran(self: &Arc<Thread>) {
        let mut family = self.cage.family();
        family.threads.retain(|other| other.upgrade().is_some_and(|other| !Arc::ptr_eq(&other, self)));
        drop(family);
        self.cage.changed.notify_all();
    }

    /// Clears bits of attention.
    pub(crate) fn unnotice(&self, bits: u32) {
        self.left.attention.fetch_and(!bits, Ordering::AcqRel);
    }

    /// The step to take before guest code of this thread continues, when its attention word is not
    /// 0.
    pub fn next_step(&self, kernel: &crate::Kernel) -> super::signal::Step {
        super::signal::next_step(kernel, self)
    }

    /// As `next_step`, but handlers may not run yet: they wait, and the next step decides whether
    /// to leave.
    pub fn settle(&self, kernel: &crate::Kernel) {
        super::signal::settle(kernel, self);
    }

    /// Called by the engine when this thread has run its last guest code and ends with `code`:
    /// unless it is the last of its cage, it releases its words in the cage's memory (`robust`).
    pub fn leaves(&self, code: i32) {
        let other = |t: Arc<Thread>| !t.worker && t.tid != self.tid;
        let last = {
            let mut family = self.cage.family();
            family.left_with = Some(code);
            !family.threads.iter().filter_map(Weak::upgrade).any(other)
        };
        if !last {
            self.leave_words(false);
        }
    }

    /// Called by the engine when this thread runs no more guest code. The last thread, or
    /// `Next::Exit`, ends the cage: descriptors close, the parent learns of it, grates get their
    /// notices (through `hop`).
    pub fn ended(self: &Arc<Thread>, kernel: &Arc<crate::Kernel>, how: Next, hop: &dyn Hop) {
        super::exit::thread_ended(kernel, self, how, hop);
    }
}
