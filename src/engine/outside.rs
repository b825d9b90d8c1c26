//! Signals from outside: what the terminal or another process sends to the runner is for the cages.
//!
//! All threads block these signals from the beginning; one thread takes them and hands them to the kernel. When the
//! first cage stops, so does the process, for the shell that started it to see.

use std::mem::MaybeUninit;
use std::sync::Arc;

use lind_kernel::Kernel;
use lind_kernel::cage::{Cage, signal};

/// What is passed on.
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

/// What the first cage inherits of its starter's ignored signals: these, SIGPIPE and the terminal's other two.
const INHERITED: [i32; 3] = [libc::SIGPIPE, libc::SIGTTIN, libc::SIGTTOU];

/// Holds signals from outside back, for this thread and those it starts. Returns the set of those that are ignored, which
/// the first cage inherits. To be called before there is an engine, and once.
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
    ignored
}

fn set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset makes it a set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in PASSED {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// Passes signals on to the process group of the first cage from now on.
pub fn pass_on(kernel: &Arc<Kernel>, first: &Arc<Cage>) {
    let (kernel, first) = (Arc::clone(kernel), Arc::clone(first));
    let listener = std::thread::Builder::new().name("outside".to_owned()).stack_size(128 << 10);
    if listener.spawn(move || listen(&kernel, &first)).is_err() {
        // Then they do what they do to any process.
        // SAFETY: as in `hold`.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &set(), std::ptr::null_mut()) };
    }
}

fn listen(kernel: &Kernel, first: &Cage) {
    let set = set();
    loop {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: `info` may be written, and is valid with all bits zero.
        let (number, info) = unsafe { (libc::sigwaitinfo(&raw const set, info.as_mut_ptr()), info.assume_init()) };
        if let Ok(number) = u8::try_from(number)
            && number > 0
        {
            signal::from_outside(kernel, first, number, info.si_code == libc::SI_USER);
        }
    }
}

/// Stops this process, as its first cage has stopped. The outside sees SIGSTOP, whatever stopped the cage.
pub fn stop_process() {
    // SAFETY: a signal to the calling thread's own process.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::syscall(libc::SYS_gettid), libc::SIGSTOP) };
}
