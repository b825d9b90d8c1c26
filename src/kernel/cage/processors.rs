//! The processors on which a thread may run: sched_setaffinity(2).
//!
//! The host applies it to the host thread. Host threads are used again for other guest threads, and
//! begin with the set of the thread that made them; so as soon as any guest thread has chosen, each
//! sets its own at its start.

use std::sync::atomic::{AtomicBool, Ordering};

use lind_abi::{Errno, Result};
use rustix::thread::CpuSet;

use super::Thread;
use crate::host::errno;
use crate::lock::Locked;

/// The processors of a kernel's cages.
pub(crate) struct Processors {
    /// The processors that the runner was given. No guest gets others.
    all: CpuSet,
    /// Whether any guest thread has chosen among them.
    chosen: AtomicBool,
}

impl Processors {
    pub fn new() -> Processors {
        let all = rustix::thread::sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        Processors { all, chosen: AtomicBool::new(false) }
    }

    /// The numbers of all processors.
    pub fn list(&self) -> Vec<usize> {
        numbers(&self.all)
    }
}

/// The numbers in a set, ascending.
pub(crate) fn numbers(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

impl Thread {
    /// SCHED_RESET_ON_FORK, beside the policy: a child has it not.
    pub(crate) const RESET_ON_FORK: u32 = 0x4000_0000;
    /// The priority of a policy in real time, beside the policy; 0 for others.
    pub(crate) const PRIORITY: u32 = 0x7f00;

    /// The policy, from the word that a thread keeps.
    pub(crate) fn policy_of(word: u32) -> u32 {
        word & !(Thread::RESET_ON_FORK | Thread::PRIORITY)
    }

    /// The priority in real time in what a thread keeps.
    pub(crate) fn priority_of(word: u32) -> u32 {
        (word & Thread::PRIORITY) >> Thread::PRIORITY.trailing_zeros()
    }

    /// The processors where the thread may run.
    pub(crate) fn processors(&self, kernel: &crate::Kernel) -> CpuSet {
        self.host.affinity.locked().unwrap_or(kernel.processors.all)
    }

    /// Lets it run on those of `wanted` that exist.
    ///
    /// # Errors
    /// EINVAL if there are none of them; EPERM for a grate's worker, which runs where its client
    /// does.
    pub(crate) fn set_processors(&self, kernel: &crate::Kernel, wanted: &CpuSet) -> Result<()> {
        let all = &kernel.processors.all;
        let mut set = CpuSet::new();
        numbers(wanted).into_iter().filter(|&cpu| all.is_set(cpu)).for_each(|cpu| set.set(cpu));
        if set.count() == 0 {
            return Err(Errno::EINVAL);
        }
        if self.worker {
            return Err(Errno::EPERM);
        }
        kernel.processors.chosen.store(true, Ordering::Release);
        // While this is held, no other guest thread takes its host thread.
        let mut affinity = self.host.affinity.locked();
        // A thread that does not run yet takes it when it begins.
        if let Some(host) =
            i32::try_from(self.host.tid.load(Ordering::Acquire)).ok().and_then(rustix::thread::Pid::from_raw)
        {
            rustix::thread::sched_setaffinity(Some(host), &set).map_err(errno)?;
        }
        *affinity = Some(set);
        Ok(())
    }

    /// Has the choices of another thread, as the child of one has.
    pub(crate) fn runs_as(&self, other: &Thread) {
        let policy = other.host.policy.load(Ordering::Relaxed);
        let resets = policy & Thread::RESET_ON_FORK != 0 && policy & Thread::PRIORITY != 0;
        self.host.policy.store(if resets { 0 } else { policy & !Thread::RESET_ON_FORK }, Ordering::Relaxed);
        let choice = *other.host.affinity.locked();
        *self.host.affinity.locked() = choice;
    }

    /// The engine's word that the thread runs on its host thread no more.
    pub fn leaves_host(&self) {
        let _choice = self.host.affinity.locked();
        self.waits.store(true, Ordering::Relaxed);
        self.host.tid.store(0, Ordering::Release);
    }

    /// The engine's word that the thread runs on the host thread `tid` from now on.
    pub fn takes_host(&self, tid: u32) {
        self.waits.store(false, Ordering::Relaxed);
        self.host.tid.store(tid, Ordering::Release);
    }

    /// The engine's word, from the host thread itself, that the thread runs there from now on.
    pub fn takes_processors(&self, kernel: &crate::Kernel) {
        if kernel.processors.chosen.load(Ordering::Acquire) {
            let affinity = self.host.affinity.locked();
            // If it cannot be set, the host thread keeps the set that it was created with.
            let _ = rustix::thread::sched_setaffinity(None, affinity.as_ref().unwrap_or(&kernel.processors.all));
        }
    }
}
