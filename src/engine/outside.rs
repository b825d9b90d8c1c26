//! Signals from outside: what the terminal or another process sends to the runner is for the cages.
//!
//! All threads block these signals from the beginning; the main thread takes them while it waits for the end of the first cage.
//! It has a descriptor table of its own, so that the host need not count references to files at each call of a cage that is alone
//! (`lind_kernel::fd::leave_to_cages`). It hands signals to the kernel itself as long as that needs no descriptor: as long as there is one
//! guest thread and nothing like a signalfd. From then on another thread does ([`share`]). When the first cage stops, so does the process,
//! for the shell that started it to see.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lind_abi::CageId;
use lind_kernel::Kernel;
use lind_kernel::cage::{Cage, Status, Thread, signal};

use crate::interrupt;

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

/// What people end programs with.
const ENDING: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

const KILL: u8 = 9;

/// How long a cage that such a signal has ended may take to leave before another one ends the first cage too.
const PATIENCE: Duration = Duration::from_secs(1);

/// Since when these cages have ended and not left. A handler is never unwound for its client: where it does not return, the cage is kept in the grate.
static STAYING: Mutex<Option<(Instant, Vec<CageId>)>> = Mutex::new(None);

type Job = Box<dyn FnOnce() + Send>;

/// What is to be done for signals that have come, by the thread with the cages' descriptors. None as long as there is no such thread.
static QUEUE: Mutex<Option<VecDeque<Job>>> = Mutex::new(None);
static MORE: Condvar = Condvar::new();
/// Whether the main thread is about to hand a signal to the kernel, or does so.
static ALONE: AtomicBool = AtomicBool::new(false);
/// The host's id of the main thread, and the cage whose end it waits for; 0 before.
static MAIN: AtomicU32 = AtomicU32::new(0);
static FIRST: AtomicU32 = AtomicU32::new(0);

/// Waits for the end of the first cage, and passes signals on to its process group meanwhile.
pub fn until_end(kernel: &Arc<Kernel>, first: &Arc<Cage>) -> Status {
    let mut set = set();
    // SAFETY: the set is this thread's own, and initialised.
    unsafe {
        libc::sigaddset(&raw mut set, interrupt::signal());
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
    MAIN.store(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(), Ordering::SeqCst);
    FIRST.store(first.id.0, Ordering::SeqCst);
    loop {
        // Ended before it was known who waits, or told by `thread_ended`: the signal stays pending.
        if let Some(status) = first.ended() {
            return status;
        }
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: `info` may be written, and is valid with all bits zero.
        let (number, info) = unsafe { (libc::sigwaitinfo(&raw const set, info.as_mut_ptr()), info.assume_init()) };
        match u8::try_from(number) {
            Ok(number) if number > 0 && i32::from(number) != interrupt::signal() => {
                pass_on(kernel, first, number, info.si_code == libc::SI_USER);
            }
            _ => {}
        }
    }
}

/// A guest thread has ended: tells the main thread if it waits for that.
pub fn thread_ended(thread: &Thread) {
    if thread.cage.id.0 == FIRST.load(Ordering::SeqCst) && thread.cage.is_dead() {
        // SAFETY: a signal that the main thread of this process takes.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), MAIN.load(Ordering::SeqCst), interrupt::signal()) };
    }
}

/// Whether a cage that had ended when a signal came is still there, long after.
fn kept_by_a_grate(kernel: &Kernel) -> bool {
    let staying = STAYING.lock().unwrap_or_else(PoisonError::into_inner);
    staying.as_ref().is_some_and(|(since, cages)| {
        since.elapsed() >= PATIENCE && signal::ended_but_there(kernel).iter().any(|cage| cages.contains(cage))
    })
}

/// Hands a signal to the kernel. One that ends programs ends the first cage if a grate keeps what one before has ended.
fn hand_over(kernel: &Arc<Kernel>, first: &Arc<Cage>, number: u8, by_process: bool) {
    if !ENDING.contains(&i32::from(number)) {
        signal::from_outside(kernel, first, number, by_process);
    } else if kept_by_a_grate(kernel) {
        let text =
            format!("lind-boot: signal {number} again, and a grate keeps what one before has ended: everything ends\n");
        let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
        signal::end(kernel, first, KILL);
    } else {
        signal::from_outside(kernel, first, number, by_process);
        remember(signal::ended_but_there(kernel));
    }
}

/// Whoever was there the last time has waited since.
fn remember(there: Vec<CageId>) {
    let mut staying = STAYING.lock().unwrap_or_else(PoisonError::into_inner);
    let before = staying.take().map(|(since, mut cages)| {
        cages.retain(|cage| there.contains(cage));
        (since, cages)
    });
    *staying = Some(before.filter(|(_, cages)| !cages.is_empty()).unwrap_or_else(|| (Instant::now(), there)));
}

fn pass_on(kernel: &Arc<Kernel>, first: &Arc<Cage>, number: u8, by_process: bool) {
    ALONE.store(true, Ordering::SeqCst);
    if let Some(queue) = &mut *queue() {
        ALONE.store(false, Ordering::SeqCst);
        let (kernel, first) = (Arc::clone(kernel), Arc::clone(first));
        queue.push_back(Box::new(move || hand_over(&kernel, &first, number, by_process)));
        MORE.notify_one();
        return;
    }
    hand_over(kernel, first, number, by_process);
    ALONE.store(false, Ordering::SeqCst);
}

/// To be called by a guest thread when there is to be another one: signals are handed to the kernel by a thread with the caller's
/// descriptors from now on.
pub fn share() {
    let mut queue = queue();
    if queue.is_some() {
        return;
    }
    let taker = std::thread::Builder::new().name("outside".to_owned()).stack_size(128 << 10);
    // Without it the main thread goes on as before: all that suffers is a signalfd, which does not show such a signal.
    if taker.spawn(take).is_ok() {
        *queue = Some(VecDeque::new());
    }
}

/// As [`share`], and waits until the main thread does nothing of the kind any more. No lock of the kernel's may be held.
pub fn share_now() {
    share();
    while ALONE.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
}

fn take() {
    let mut guard = queue();
    loop {
        match guard.as_mut().and_then(VecDeque::pop_front) {
            Some(job) => {
                drop(guard);
                job();
                guard = queue();
            }
            None => guard = MORE.wait(guard).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

fn queue() -> MutexGuard<'static, Option<VecDeque<Job>>> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops this process, as its first cage has stopped. The outside sees SIGSTOP, whatever stopped the cage.
pub fn stop_process() {
    // SAFETY: a signal to the calling thread's own process.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::syscall(libc::SYS_gettid), libc::SIGSTOP) };
}
