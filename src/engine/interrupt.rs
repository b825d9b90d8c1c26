//! Getting a thread's attention: a host signal that ends blocking host calls, and pulls a thread whose cage has ended
//! out of guest code that makes no calls.
//!
//! A signal may come at the wrong moment: just before a host call blocks, or in a trampoline. So it is sent again
//! until the thread has left.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use lind_kernel::cage::Thread;

use crate::fault;

/// The host signal. glibc keeps the first two real-time signals to itself.
fn signal() -> i32 {
    libc::SIGRTMIN() + 2
}

/// Installs the handler, without SA_RESTART so that blocking host calls return EINTR.
pub fn install() {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_interrupt;
    // SAFETY: the action is fully set, and the handler has the signature SA_SIGINFO asks for.
    unsafe {
        let action = action.assume_init_mut();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(signal(), action, std::ptr::null_mut());
        // A broken pipe is an errno to the kernel, which then signals the cage and not this process.
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
    }
}

extern "C" fn on_interrupt(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the host passes a valid ucontext to a SA_SIGINFO handler.
    unsafe { fault::leave_ended_guest(context.cast()) };
}

/// The guest threads that run, and those that are to leave.
#[derive(Default)]
pub struct Interrupts {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    running: HashMap<u32, Weak<Thread>>,
    leaving: Vec<Weak<Thread>>,
    /// Whether the thread that repeats signals exists.
    repeating: bool,
}

impl Interrupts {
    /// A guest thread runs on the host thread `tid` from now on.
    pub fn started(self: &Arc<Self>, thread: &Arc<Thread>, tid: u32) {
        thread.host_tid.store(tid, Ordering::Release);
        self.state().running.insert(thread.tid, Arc::downgrade(thread));
        // Its cage may have been ended while it was not here to be told.
        if thread.must_leave() {
            self.interrupt(thread);
        }
    }

    /// It runs no more.
    pub fn ended(&self, thread: &Thread) {
        thread.host_tid.store(0, Ordering::Release);
        self.state().running.remove(&thread.tid);
    }

    /// Signals `thread`, and again until it has left if its cage is ending.
    pub fn interrupt(self: &Arc<Self>, thread: &Thread) {
        send(thread);
        if !thread.must_leave() {
            return;
        }
        let mut state = self.state();
        let Some(thread) = state.running.get(&thread.tid).cloned() else { return };
        state.leaving.push(thread);
        if !state.repeating {
            let this = Arc::clone(self);
            let repeater = std::thread::Builder::new().name("interrupts".to_owned()).stack_size(64 << 10);
            // Without it the first signal has to do; it nearly always does.
            state.repeating = repeater.spawn(move || this.repeat()).is_ok();
        }
        self.more.notify_one();
    }

    fn repeat(&self) {
        // A guest that spends its time in bulk memory routines is rarely met in its own code: be quick for a while.
        const OFTEN: Duration = Duration::from_millis(1);
        const SELDOM: Duration = Duration::from_millis(50);
        const PATIENCE: u32 = 5000;
        let mut rounds = 0;
        let mut state = self.state();
        loop {
            if state.leaving.is_empty() {
                rounds = 0;
                state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let pause = if rounds < PATIENCE { OFTEN } else { SELDOM };
            rounds += 1;
            state = self.more.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
            state.leaving.retain(|thread| {
                let Some(thread) = thread.upgrade() else { return false };
                send(&thread);
                thread.host_tid.load(Ordering::Acquire) != 0
            });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn send(thread: &Thread) {
    let tid = thread.host_tid.load(Ordering::Acquire);
    if tid == 0 {
        return;
    }
    // SAFETY: a signal that our own handler takes, to a thread of this process. Should the thread have ended and its
    // number been given to another one of ours, that one is interrupted for nothing.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal()) };
}
