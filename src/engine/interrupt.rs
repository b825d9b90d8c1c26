//! Getting a thread's attention: a host signal that ends blocking host calls, and pulls a thread whose cage has ended
//! out of guest code that makes no calls.

use std::mem::MaybeUninit;

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
    }
}

/// Sends the signal to the host thread that runs `thread`, if any.
pub fn interrupt(thread: &Thread) {
    let tid = thread.host_tid.load(std::sync::atomic::Ordering::Acquire);
    if tid == 0 {
        return;
    }
    // SAFETY: a signal that our own handler takes, to a thread of this process. Should the thread have ended and its
    // number been given to another one of ours, that one is interrupted for nothing.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal()) };
}

extern "C" fn on_interrupt(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the host passes a valid ucontext to a SA_SIGINFO handler.
    unsafe { fault::leave_ended_guest(context.cast()) };
}
