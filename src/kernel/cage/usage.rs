//! Resource usage of a cage: the processor time and faults of its threads.
//!
//! A worker of a grate runs on the host thread of the client it serves, so what it uses is its
//! client's. For other running threads the host reports only the sum of user and system time, which
//! counts as user time until they end.

use std::sync::Weak;

use lind_abi::layout::{Rusage, Timespec, Timeval};

use super::exit::Family;
use super::{Cage, Thread};
use crate::host::clock;
use crate::lock::Locked;

const NANOS: i64 = 1_000_000_000;
/// The index of ru_maxrss, in KiB, among the counts.
const MAXRSS: usize = 0;

impl Cage {
    /// getrusage(RUSAGE_SELF). ru_maxrss is the memory that counts against RLIMIT_AS: mapped
    /// memory, and memory that the kernel keeps for the cage.
    pub(crate) fn usage(&self) -> Rusage {
        let mapped = {
            let map = self.memory.map();
            map.mapped() + map.charged()
        };
        let mut total = self.family().usage();
        total.counts[MAXRSS] = i64::try_from(mapped >> 10).unwrap_or(i64::MAX);
        total
    }

    /// getrusage(RUSAGE_CHILDREN).
    pub(crate) fn children_usage(&self) -> Rusage {
        self.family().children_usage
    }

    /// The processor time of all its threads.
    pub(crate) fn cpu_time(&self) -> Timespec {
        let nanos = self.family().cpu_nanos();
        Timespec { sec: nanos / NANOS, nsec: nanos % NANOS }
    }
}

/// The usage of the host thread when a guest thread began on it. A thread that has not begun, as a
/// child whose birth is given up, has used nothing.
#[derive(Clone, Copy, Default)]
pub(crate) struct Before {
    began: bool,
    usage: Rusage,
    nanos: i64,
}

impl Thread {
    /// The engine's word, from the host thread itself, that the thread runs there from now on.
    pub fn begins_here(&self) {
        // If that fails, the first call on a file fails too.
        let _ = self.cage.as_itself();
        *self.before() = Before { began: true, usage: clock::thread_usage(), nanos: nanos_here() };
    }

    /// The engine's word that it did not begin after all.
    pub fn begins_nowhere(&self) {
        *self.before() = Before::default();
    }

    /// Called by the engine, on the host thread, when the thread will not run there until
    /// [`Thread::begins_here`] is called again: its usage so far is added to its cage's.
    /// [`Thread::leaves_host`] has to follow.
    pub fn pauses_here(&self) {
        self.cage.family().thread_ends(self);
    }

    fn before(&self) -> std::sync::MutexGuard<'_, Before> {
        self.host.before.locked()
    }

    /// The usage of the calling host thread since this guest thread began on it.
    fn usage_here(&self) -> Rusage {
        let mut used = clock::thread_usage();
        let before = *self.before();
        subtract(&mut used, &before.usage);
        settle(&mut used, nanos_here() - before.nanos);
        used
    }
}

impl Family {
    /// Adds the usage of `thread`, which runs this code and ends. May be called again for usage
    /// after that.
    pub(super) fn thread_ends(&mut self, thread: &Thread) {
        if !thread.worker && thread.before().began {
            add(&mut self.spent, &thread.usage_here());
            self.spent_nanos += nanos_here() - thread.before().nanos;
            thread.begins_here();
        }
    }

    /// Finer than what getrusage(2) has, which some hosts count in ticks.
    fn cpu_nanos(&self) -> i64 {
        let threads = self.threads.iter().filter_map(Weak::upgrade).filter(|thread| !thread.worker);
        self.spent_nanos + threads.map(|thread| nanos(cpu_time(&thread))).sum::<i64>()
    }

    fn usage(&self) -> Rusage {
        let mut total = self.spent;
        // They are alive on the host while they are listed and the list is locked.
        for thread in self.threads.iter().filter_map(Weak::upgrade).filter(|thread| !thread.worker) {
            add(&mut total, &running(&thread));
        }
        total
    }
}

fn nanos(time: Timespec) -> i64 {
    time.sec * NANOS + time.nsec
}

/// The processor time of the calling host thread.
fn nanos_here() -> i64 {
    nanos(clock::gettime(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default())
}

/// Makes the sum of user and system time equal to the clock's. The host updates a thread's
/// getrusage(2) at its ticks and when it switches threads; a child that lives from one tick to the
/// next would have used nothing.
fn settle(used: &mut Rusage, nanos: i64) {
    let all = nanos.max(0) / 1000;
    let system = (used.stime.sec * 1_000_000 + used.stime.usec).min(all);
    let time = |micros: i64| Timeval { sec: micros / 1_000_000, usec: micros % 1_000_000 };
    used.stime = time(system);
    used.utime = time(all - system);
}

/// getrusage(RUSAGE_THREAD) for a thread that has not ended.
pub(crate) fn running(thread: &Thread) -> Rusage {
    let tid = thread.host.tid.load(std::sync::atomic::Ordering::Acquire);
    if tid == rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned() {
        return thread.usage_here();
    }
    let spent = cpu_time(thread);
    Rusage { utime: Timeval { sec: spent.sec, usec: spent.nsec / 1000 }, ..Rusage::default() }
}

/// Whether a thread is on a processor, in its own code or in the host's. It is if its clock goes
/// on. A thread that waits for a processor is given a moment to get one, and counts as sleeping
/// after that.
pub(crate) fn is_running(thread: &Thread) -> bool {
    const LOOKS: u32 = 8;
    let tid = thread.host.tid.load(std::sync::atomic::Ordering::Acquire);
    if tid == 0 {
        return false;
    }
    let now = || clock::gettime(clock::cpu_clock_of(tid)).map(nanos).unwrap_or_default();
    let before = now();
    (0..LOOKS).any(|look| {
        if look > 0 {
            std::thread::yield_now();
        }
        now() != before
    })
}

/// The processor time of one thread; nothing for one that does not run.
pub(crate) fn cpu_time(thread: &Thread) -> Timespec {
    match thread.host.tid.load(std::sync::atomic::Ordering::Acquire) {
        0 => Timespec::default(),
        tid => {
            let all = nanos(clock::gettime(clock::cpu_clock_of(tid)).unwrap_or_default());
            let own = (all - thread.before().nanos).max(0);
            Timespec { sec: own / NANOS, nsec: own % NANOS }
        }
    }
}

/// Subtracts the earlier usage.
fn subtract(total: &mut Rusage, before: &Rusage) {
    let time = |a: &mut Timeval, b: &Timeval| {
        let micros = ((a.sec - b.sec) * 1_000_000 + a.usec - b.usec).max(0);
        *a = Timeval { sec: micros / 1_000_000, usec: micros % 1_000_000 };
    };
    time(&mut total.utime, &before.utime);
    time(&mut total.stime, &before.stime);
    for (index, (a, b)) in total.counts.iter_mut().zip(before.counts).enumerate() {
        *a -= if index == MAXRSS { 0 } else { b };
    }
}

/// Adds times and counts; of ru_maxrss the larger stays.
pub(super) fn add(total: &mut Rusage, more: &Rusage) {
    let time = |a: &mut Timeval, b: &Timeval| {
        let usec = a.usec + b.usec;
        a.sec += b.sec + usec / 1_000_000;
        a.usec = usec % 1_000_000;
    };
    time(&mut total.utime, &more.utime);
    time(&mut total.stime, &more.stime);
    for (index, (a, b)) in total.counts.iter_mut().zip(more.counts).enumerate() {
        *a = if index == MAXRSS { (*a).max(b) } else { *a + b };
    }
}
