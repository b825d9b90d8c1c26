//! The signals of this process itself: the ones that it blocks and ignores from the beginning, how
//! they end or stop it, and the set that [`super::host_signals`] passes on to the cages.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;

/// The signals that are passed on.
const PASSED: [i32; 11] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGCONT,
    libc::SIGTSTP,
    libc::SIGWINCH,
    libc::SIGURG,
];

/// The ignored signals of its starter that the first cage inherits: these, SIGPIPE and the
/// terminal's other two.
const INHERITED: [i32; 3] = [libc::SIGPIPE, libc::SIGTTIN, libc::SIGTTOU];

/// Blocks signals from outside for this thread, the main one, and those it starts. Returns the set
/// of the ignored ones, which the first cage inherits. To be called once, before there is an
/// engine.
pub fn hold() -> u64 {
    let mut ignored = 0;
    for signal in PASSED.into_iter().chain(INHERITED) {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: `action` may be written, and is valid with all bits zero.
        let action = unsafe {
            libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
            action.assume_init()
        };
        if action.sa_sigaction == libc::SIG_IGN {
            ignored |= 1 << (signal - 1);
        }
    }
    // SAFETY: the set is this thread's own.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set(), std::ptr::null_mut()) };
    errors_are_no_signals();
    ignored
}

/// Makes a broken pipe an errno: the kernel then signals the cage, and not this process. The same
/// for a file that may not grow, by a limit of lind-boot's starter. To be called before anything is
/// written; [`hold`] does it.
pub fn errors_are_no_signals() {
    // SAFETY: an ignored signal runs no code.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

pub(super) fn set() -> libc::sigset_t {
    set_of(&PASSED)
}

pub(super) fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset makes it a set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// The signals with which people end programs.
pub(super) const ENDING: [i32; 4] = crate::code::ending::SIGNALS;

/// Ends the process as a signal has ended the command, behind grates or not. A shell looks at that:
/// after ^C it goes on with the next command, or the next turn of a loop, if the one before has
/// handled the signal and exited. Returns if the process ignores the signal.
pub fn end_by(signal: u8) {
    let signal = i32::from(signal);
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the set is initialised before it is used, and the signal is for this very thread,
    // whose mask is changed. We ignore two that a starter does not.
    unsafe {
        if [libc::SIGPIPE, libc::SIGXFSZ].contains(&signal) {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::syscall(libc::SYS_gettid), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Stops this process, because its first cage has stopped. Its parent sees SIGSTOP, whatever signal
/// stopped the cage.
pub fn stop_process() {
    // SAFETY: a signal to the calling thread's own process.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::syscall(libc::SYS_gettid), libc::SIGSTOP) };
}
