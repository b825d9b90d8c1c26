//! Gets a thread's attention: a host signal that ends blocking host calls, and makes a computing
//! thread run its signal handlers, stop, or leave.
//!
//! A signal may come at the wrong moment: just before a host call blocks, or in a trampoline. So it
//! is sent again until the thread has done its pending work.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::Duration;

use lind_kernel::cage::{Attention, Thread};

use crate::grate::filter;
use crate::signal::context::Computing;
use crate::signal::fault_delivery;
use crate::signal::handlers;
use lind_kernel::lock::{Locked, unpoisoned};

/// The host signal: one that Linux defines and never sends, and not a real-time signal. Real-time
/// signals would all be queued until the thread runs again, and then start their handlers at once,
/// more than a stack can hold.
pub fn signal() -> i32 {
    libc::SIGSTKFLT
}

/// Allows the calling thread to be interrupted while it handles an interruption, or forbids it.
pub fn again(may: bool) {
    let how = if may { libc::SIG_UNBLOCK } else { libc::SIG_BLOCK };
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the set is initialised by sigemptyset; only this thread's mask changes.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal());
        libc::pthread_sigmask(how, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Installs the handler, without SA_RESTART so that blocking host calls return EINTR.
pub fn install() {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_interrupt;
    // SAFETY: the action is fully set, and the handler has the signature SA_SIGINFO asks for.
    unsafe {
        let action = action.assume_init_mut();
        action.sa_sigaction = handler as usize;
        // On the thread's own stack, since guest code runs within. Guest code allows the next
        // interruption; nothing before it does.
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(signal(), action, std::ptr::null_mut());
    }
}

extern "C" fn on_interrupt(number: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the host passes a valid ucontext and siginfo to a SA_SIGINFO handler, and errno is
    // the thread's own.
    unsafe {
        // The pending work is done where the handler is entered or the call returns.
        if filter::leave(context.cast(), number) {
            return;
        }
        let errno = *libc::__errno_location();
        let mut faulted = false;
        let computing = match fault_delivery::take(context.cast()) {
            Some((computing, fault)) => {
                faulted = true;
                computing.guest.thread.fault(&computing.guest.kernel, fault);
                Some(computing)
            }
            None => Computing::find(context.cast()),
        };
        if let Some(computing) = computing
            && computing.guest.thread.attention() != 0
        {
            handlers::while_computing(computing, faulted);
        }
        *libc::__errno_location() = errno;
    }
}

thread_local! {
    /// The host's id of this thread, if guest code runs on it.
    static TID: Cell<u32> = const { Cell::new(0) };
}

/// Interrupts the calling thread: now, or as soon as it does not block the signal.
pub fn this_thread() {
    // SAFETY: a signal that our own handler takes.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::syscall(libc::SYS_gettid), signal()) };
}

/// Notes the host's id of the calling thread.
pub fn this_thread_is(tid: u32) {
    TID.set(tid);
}

/// The running guest threads, and those that are to be interrupted until they notice.
#[derive(Default)]
pub struct Interrupts {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    running: HashMap<u32, Weak<Thread>>,
    /// The threads that still have the work to do for which they were interrupted.
    busy: Vec<Weak<Thread>>,
    /// Whether the thread that repeats signals exists.
    repeating: bool,
    /// Whether that thread has to be woken to look at `busy`.
    asleep: bool,
    /// Whether `busy` has a new thread.
    fresh: bool,
}

impl Interrupts {
    /// A guest thread runs on the host thread `tid` from now on.
    pub fn started(self: &Arc<Self>, thread: &Arc<Thread>, tid: u32) {
        thread.takes_host(tid);
        self.state().running.insert(thread.tid, Arc::downgrade(thread));
        // It may have been interrupted while it was not here.
        if thread.attention() & Attention::INTERRUPTS != 0 {
            self.keep_at(thread);
        }
    }

    /// A guest thread does not run any more.
    pub fn ended(&self, thread: &Thread) {
        thread.leaves_host();
        self.state().running.remove(&thread.tid);
    }

    /// Signals `thread`, and again until it has noticed. The calling thread needs nothing, since it
    /// is about to return to its guest.
    pub fn interrupt(self: &Arc<Self>, thread: &Thread) {
        if thread.host.tid.load(Ordering::Acquire) == TID.get() && TID.get() != 0 {
            return;
        }
        send(thread);
        self.keep_at(thread);
    }

    /// Signals a thread repeatedly until it has noticed.
    fn keep_at(self: &Arc<Self>, thread: &Thread) {
        let mut state = self.state();
        let Some(thread) = state.running.get(&thread.tid).cloned() else { return };
        state.busy.push(thread);
        state.fresh = true;
        if !state.repeating {
            let this = Arc::clone(self);
            let repeater = std::thread::Builder::new().name("preempt".to_owned()).stack_size(64 << 10);
            // Without that thread the first signal has to suffice; it nearly always does.
            state.repeating = repeater.spawn(move || this.repeat()).is_ok();
        }
        if std::mem::take(&mut state.asleep) {
            self.more.notify_one();
        }
    }

    fn repeat(&self) {
        // A guest that spends its time in library routines, for exceptions say, is rarely
        // interrupted in its own code: the first pauses are short, and shorter still if a cage
        // ends.
        const AT_ONCE: Duration = Duration::from_micros(50);
        const HASTE: u32 = 400;
        /// The number of such pauses after which a cage that ends loses its memory: a routine that
        /// copies much of it then faults.
        const WITHHOLD: u32 = 8;
        const OFTEN: Duration = Duration::from_millis(1);
        const SELDOM: Duration = Duration::from_millis(50);
        const PATIENCE: u32 = 5000;
        /// The number of pauses after the last interruption during which the next one need not wake
        /// this thread.
        const LINGER: u32 = 20;
        let (mut rounds, mut idle) = (0, 0);
        let mut state = self.state();
        loop {
            if std::mem::take(&mut state.fresh) {
                rounds = 0;
            }
            if state.busy.is_empty() {
                (rounds, idle) = (0, idle + 1);
            } else {
                (rounds, idle) = (rounds + 1, 0);
            }
            if idle > LINGER {
                state.asleep = true;
                state = unpoisoned(self.more.wait(state));
                idle = 0;
                continue;
            }
            let ending = || state.busy.iter().any(|thread| thread.upgrade().is_some_and(|t| t.must_leave()));
            let pause = match rounds {
                1..HASTE if ending() => AT_ONCE,
                0..PATIENCE => OFTEN,
                _ => SELDOM,
            };
            state.asleep = pause == SELDOM;
            state = unpoisoned(self.more.wait_timeout(state, pause)).0;
            let withhold = rounds > 0 && rounds.is_multiple_of(WITHHOLD);
            state.busy.retain(|thread| {
                let Some(thread) = thread.upgrade() else { return false };
                let waits = Attention::INTERRUPTS & !Attention::NEXT;
                let busy = thread.host.tid.load(Ordering::Acquire) != 0 && thread.attention() & waits != 0;
                if busy {
                    if withhold && thread.attention() & Attention::ENDING != 0 {
                        thread.cage.memory.withhold();
                    }
                    send(&thread);
                }
                busy
            });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.locked()
    }
}

fn send(thread: &Thread) {
    let tid = thread.host.tid.load(Ordering::Acquire);
    if tid == 0 {
        return;
    }
    // SAFETY: a signal that our own handler takes, to a thread of this process. Should the thread
    // have ended and its number been given to another one of ours, that one is interrupted for
    // nothing.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal()) };
}
