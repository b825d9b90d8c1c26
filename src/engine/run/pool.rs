//! Host threads for guest threads. A host thread whose guest thread has ended is kept for a while
//! for the next one: starting a host thread costs more than a small program runs. Its workers are
//! kept with it: making one for every process that a grate serves cost a shell behind strace a
//! quarter more processor time.

#![allow(unsafe_code)]

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use lind_kernel::cage::Cage;
use lind_kernel::mem::budget::Share;
use lind_kernel::{Errno, Result};

use crate::run::guest::{HOST_STACK, HostThread};
use crate::run::signal_stack::SignalStack;
use crate::signal::host_signals;
use lind_kernel::lock::Locked;

/// The most idle threads that are kept.
const KEPT: usize = 8;

/// How long an idle thread spins for a job before it sleeps. A program that starts threads or
/// processes one after another starts the next one about this soon, and waking a sleeping thread is
/// the larger part of the cost; meanwhile the thread yields the processor to others.
const LOOKS: Duration = Duration::from_micros(20);

/// A job. It takes over the state of the thread's earlier job, and leaves it for the next.
type Job = Box<dyn FnOnce(&mut Option<Rc<HostThread>>) + Send>;

/// The time when a job runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Started {
    /// It runs from now on.
    Now,
    /// It runs when the calling thread comes to it.
    Later,
}

/// The threads that wait for something to run.
#[derive(Default)]
pub struct Pool {
    idle: Mutex<Vec<Arc<Place>>>,
    /// Whether the first one is to be the process's main thread.
    main_first: AtomicBool,
    /// The job of that thread.
    first: Mutex<Option<Job>>,
    /// Whether the first one has been started.
    started: AtomicBool,
    /// The number of threads that have ended.
    ended: AtomicUsize,
}

/// A place where an idle thread waits.
struct Place {
    job: Mutex<Option<Job>>,
    waits: Thread,
}

impl Pool {
    /// Runs `job`, a thread of `cage`, on a host thread of its own, with a stack of [`HOST_STACK`].
    ///
    /// # Errors
    /// EAGAIN if the host has no thread for it; `job` is dropped.
    pub fn run(self: &Arc<Self>, cage: &Cage, job: Job) -> Result<Started> {
        let place = self.idle().pop();
        if let Some(place) = place {
            place.fill(job);
            return Ok(Started::Now);
        }
        if self.started.swap(true, Ordering::Relaxed) {
            host_signals::share();
        } else if self.main_first.load(Ordering::Relaxed) {
            *self.first.locked() = Some(job);
            return Ok(Started::Later);
        }
        // The resources that the thread needs are allocated before anybody learns that there will
        // be one.
        let share = Share::of_thread(cage.thread_count(), HOST_STACK)?;
        let stack = SignalStack::new()?;
        let pool = Arc::clone(self);
        let thread = thread::Builder::new().name("guest".to_owned()).stack_size(HOST_STACK);
        let serve = move || {
            let _share = share;
            let _stack = stack.install();
            pool.serve(job);
        };
        thread.spawn(serve).map(|_| Started::Now).map_err(|_| Errno::EAGAIN)
    }

    /// Keeps the first job for [`Pool::run_first`].
    pub fn begin_with_main(&self) {
        self.main_first.store(true, Ordering::Relaxed);
    }

    /// Runs the first job on the calling thread, which has a stack of [`HOST_STACK`]. Returns the
    /// state that it leaves.
    pub fn run_first(&self) -> Option<Rc<HostThread>> {
        let job = self.first.locked().take();
        let mut host = None;
        if let Some(job) = job {
            job(&mut host);
        }
        host
    }

    /// A grate has ended: idle threads drop its workers, and so its memory.
    pub fn sweep(&self) {
        let idle = std::mem::take(&mut *self.idle());
        for place in idle {
            place.fill(Box::new(|_| {}));
        }
    }

    fn serve(&self, first: Job) {
        let place = Arc::new(Place { job: Mutex::default(), waits: thread::current() });
        let (mut job, mut host) = (first, None);
        loop {
            job(&mut host);
            if !self.rest(&place, &mut host) {
                if let Some(host) = host {
                    host.retire();
                }
                return self.one_ends();
            }
            job = place.take();
        }
    }

    /// Lists the calling thread as idle, unless there are enough. The part of the runtime that it
    /// keeps is workers of living grates.
    fn rest(&self, place: &Arc<Place>, host: &mut Option<Rc<HostThread>>) -> bool {
        loop {
            if host.as_ref().is_some_and(|host| !host.sweep()) {
                *host = None;
            }
            let mut idle = self.idle();
            if idle.len() >= KEPT {
                return false;
            }
            // A grate that ends later than this finds the thread in the list.
            if host.as_ref().is_none_or(|host| !host.has_to_sweep()) {
                idle.push(Arc::clone(place));
                return true;
            }
        }
    }

    /// Many cages leave many free pieces of memory, which the allocator would keep.
    fn one_ends(&self) {
        const MANY: usize = 128;
        if self.ended.fetch_add(1, Ordering::Relaxed) % MANY == MANY - 1 {
            // SAFETY: it only touches freed memory, under the allocator's own locks.
            unsafe { libc::malloc_trim(0) };
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Arc<Place>>> {
        self.idle.locked()
    }
}

impl Place {
    fn lock(&self) -> MutexGuard<'_, Option<Job>> {
        self.job.locked()
    }

    fn fill(&self, job: Job) {
        *self.lock() = Some(job);
        self.waits.unpark();
    }

    /// Waits for a job, as the thread of this place.
    fn take(&self) -> Job {
        let since = Instant::now();
        loop {
            if let Some(job) = self.lock().take() {
                return job;
            }
            if since.elapsed() < LOOKS {
                thread::yield_now();
            } else {
                thread::park();
            }
        }
    }
}
