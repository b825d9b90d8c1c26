//! Signals from outside: what the terminal or another process sends to the runner is for the cages.
//!
//! All threads block these signals from the beginning; the watcher, a thread that runs no guest, takes them while it waits for the end
//! of the first cage. A short program needs none: its first thread is the process's main thread, the watcher is started when that is
//! about to wait or has run for a while ([`watch`]), and what comes before waits for it. Starting a second thread, waking it and ending it
//! made a tenth of the time of a small program (docs/startup.md). Where the host makes no more threads, the first thread
//! takes them itself, every 2 ms.
//!
//! As long as there is one guest thread and nothing like a signalfd, handing a signal to the kernel needs no descriptor: a watcher that starts
//! then takes a descriptor table of its own, so that the host need not count references to files at each call of a cage that is alone
//! (`lind_kernel::fd::keep_none`). When that changes ([`share`]), another thread hands over what such a watcher takes; one that starts later
//! does it itself. When the first cage stops, so does the process, for the shell that started it to see.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use lind_abi::CageId;
use lind_kernel::Kernel;
use lind_kernel::cage::signal::{self, Origin};
use lind_kernel::cage::{Cage, Status, Thread};

use rustix::fs::FileType;

use crate::First;
use crate::run::guest;
use crate::signal::preempt;

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

/// Holds signals from outside back, for this thread, the main one, and those it starts; makes its alarm. Returns the set of those that are ignored, which
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
    alarm::make();
    errors_are_no_signals();
    ignored
}

/// A broken pipe is an errno to the kernel, which then signals the cage and not this process; and so is a file that may not grow, by a
/// limit of whoever started us. To be called before anything is written; [`hold`] does it.
pub fn errors_are_no_signals() {
    // SAFETY: what is ignored runs no code.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
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

/// While it lives, what people end programs with ends this process, if there is no cage yet to hand it to: what the first thread does
/// before the first program runs may take long.
pub(crate) struct Endable(Option<libc::sigset_t>);

impl Endable {
    /// Of the calling thread. Changes nothing on any other than the process's first, nor once a cage runs.
    pub(crate) fn before_the_first() -> Endable {
        if !rustix::thread::gettid().eq(&rustix::process::getpid()) || FIRST.load(Ordering::SeqCst) != 0 {
            return Endable(None);
        }
        let (mut ending, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: sigemptyset and pthread_sigmask make them sets, which are this thread's own.
        unsafe {
            libc::sigemptyset(ending.as_mut_ptr());
            for signal in ENDING {
                libc::sigaddset(ending.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_UNBLOCK, ending.as_ptr(), before.as_mut_ptr());
            Endable(Some(before.assume_init()))
        }
    }
}

impl Drop for Endable {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // SAFETY: the set is initialised, and this thread's own mask.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
        }
    }
}

/// What people end programs with.
const ENDING: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

const KILL: u8 = 9;

/// How long a cage that such a signal has ended may take to leave before another one ends the first cage too.
const PATIENCE: Duration = Duration::from_secs(1);

/// Which cages had ended and not left when such a signal came, and since when that is known. A handler is never unwound for its client: where it does
/// not return, the cage is kept in the grate.
static STAYING: Mutex<Vec<(CageId, Instant)>> = Mutex::new(Vec::new());

type Job = Box<dyn FnOnce() + Send>;

/// What is to be done for signals that have come, by the thread with the cages' descriptors. None as long as there is no such thread.
static QUEUE: Mutex<Option<VecDeque<Job>>> = Mutex::new(None);
static MORE: Condvar = Condvar::new();
/// Whether the watcher is about to hand a signal to the kernel, or does so.
static ALONE: AtomicBool = AtomicBool::new(false);
/// The host's id of the watcher, and the cage whose end it waits for; 0 before.
static WATCHER: AtomicU32 = AtomicU32::new(0);
static FIRST: AtomicU32 = AtomicU32::new(0);
/// What it watches, once a cage runs.
static WATCHED: OnceLock<Watched> = OnceLock::new();
/// Whether there is a watcher, or is never to be one.
static WATCHING: AtomicBool = AtomicBool::new(false);
/// Whether whoever hands signals over needs the cages' descriptors.
static SHARED: AtomicBool = AtomicBool::new(false);
/// Whether the watcher has none of them.
static APART: AtomicBool = AtomicBool::new(false);

struct Watched {
    kernel: Arc<Kernel>,
    first: Arc<Cage>,
    end: Box<dyn Fn(Status) + Send + Sync>,
    main: std::thread::Thread,
}

/// Runs the first guest thread, and ends this process when the first cage has ended: by `end`, which may be called on another thread. Nothing is
/// dropped on the way: guest threads may still run, and the descriptors behind it are the cages'.
pub fn run(first: First, kernel: Arc<Kernel>, cage: Arc<Cage>, end: impl Fn(Status) + Send + Sync + 'static) -> ! {
    FIRST.store(cage.id.0, Ordering::SeqCst);
    let main = std::thread::current();
    let watched = WATCHED.get_or_init(|| Watched { kernel, first: cage, end: Box::new(end), main });
    // What is sent on a socket may be any size: see ATOMIC in the kernel.
    let sockets = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()].into_iter().any(|file| {
        rustix::fs::fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket)
    });
    lind_kernel::fd::leave_to_cages(&watched.kernel);
    if sockets || !alarm::set() {
        watch();
    }
    guest::on_own_stack(|| {
        let host = first.0.run_first();
        // What the process has goes with it.
        let host = std::mem::ManuallyDrop::new(host);
        if watched.first.ended().is_none()
            && let Some(host) = &*host
        {
            host.retire();
        }
        while WATCHING.swap(true, Ordering::SeqCst) {
            std::thread::park();
        }
        if watched.first.ended().is_none() {
            alarm::stop();
        }
        watched.until_end();
    })
}

/// Starts the watcher if there is none. To be called by guest threads where no lock is held.
#[inline]
pub fn watch() {
    if !WATCHING.load(Ordering::Relaxed) {
        start_watcher();
    }
}

#[cold]
fn start_watcher() {
    let Some(watched) = WATCHED.get() else { return };
    if WATCHING.swap(true, Ordering::SeqCst) {
        return;
    }
    let watcher = std::thread::Builder::new().name("watcher".to_owned()).stack_size(1 << 20);
    let apart = !SHARED.load(Ordering::SeqCst);
    let (told, is_apart) = sync_channel(1);
    let started = watcher.spawn(move || {
        if apart {
            lind_kernel::fd::keep_none();
            APART.store(true, Ordering::SeqCst);
            let _ = told.send(());
        }
        watched.until_end()
    });
    if started.is_ok() {
        // On the way there it holds what is in the cages' table: what the caller's guest closed meanwhile would stay open.
        if apart {
            let _ = is_apart.recv();
        }
        alarm::stop();
    } else {
        // It is tried again, or the main thread does it when it has nothing else to do. What has come by now is not to wait for that.
        WATCHING.store(false, Ordering::SeqCst);
        watched.main.unpark();
        watched.take_pending();
    }
}

impl Watched {
    /// Waits for the end of the first cage, passes signals on meanwhile, and ends the process.
    fn until_end(&self) -> ! {
        let (kernel, first) = (&self.kernel, &self.first);
        if let Some(status) = first.ended() {
            self.end(status);
        }
        let mut set = set();
        // SAFETY: the set is this thread's own, and initialised.
        unsafe {
            libc::sigaddset(&raw mut set, preempt::signal());
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        }
        WATCHER.store(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(), Ordering::SeqCst);
        loop {
            // Ended before it was known who waits, or told by `thread_ended`: the signal stays pending.
            if let Some(status) = first.ended() {
                self.end(status);
            }
            let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
            // SAFETY: `info` may be written, and is valid with all bits zero.
            let (number, info) = unsafe { (libc::sigwaitinfo(&raw const set, info.as_mut_ptr()), info.assume_init()) };
            match u8::try_from(number) {
                Ok(number) if number > 0 && i32::from(number) != preempt::signal() => {
                    pass_on(kernel, first, number, origin(&info));
                }
                _ => {}
            }
        }
    }

    /// Hands over the signals that have come, by a guest thread.
    fn take_pending(&self) {
        let set = set();
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        loop {
            let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
            // SAFETY: `info` may be written, and is valid with all bits zero; the others are initialised.
            let (number, info) = unsafe {
                (libc::sigtimedwait(&raw const set, info.as_mut_ptr(), &raw const at_once), info.assume_init())
            };
            match u8::try_from(number) {
                Ok(number) if number > 0 => hand_over(&self.kernel, &self.first, number, origin(&info)),
                // EINTR: there may be more.
                _ if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }

    fn end(&self, status: Status) -> ! {
        (self.end)(status);
        // Nothing is left to be written, and what there is to free goes with the process.
        // SAFETY: no other thread has anything to do after this.
        unsafe { libc::_exit(i32::from(status.shell_code())) }
    }
}

/// Whether this is the watcher, and its descriptors are not the cages'.
pub fn is_apart() -> bool {
    APART.load(Ordering::SeqCst)
        && rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned() == WATCHER.load(Ordering::SeqCst)
}

/// A guest thread has ended: tells the watcher if it waits for that.
pub fn thread_ended(thread: &Thread) {
    let watcher = WATCHER.load(Ordering::SeqCst);
    if watcher != 0 && thread.cage.id.0 == FIRST.load(Ordering::SeqCst) && thread.cage.is_dead() {
        // SAFETY: a signal that the watcher, a thread of this process, takes.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), watcher, preempt::signal()) };
    }
}

/// Whether one of these cages that had ended when a signal came is still there, long after. Others are nothing to who is asked to end now.
fn kept_by_a_grate(kernel: &Kernel, asked: &[Arc<Cage>]) -> bool {
    let staying = STAYING.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = |id: CageId| staying.iter().any(|(cage, since)| *cage == id && since.elapsed() >= PATIENCE);
    let is_asked = |id: CageId| asked.iter().any(|cage| cage.id == id);
    signal::ended_but_there(kernel).iter().any(|cage| is_asked(cage.id) && kept(cage.id))
}

/// Whether the host's terminal sent a signal. What runs out of a timer that lind-boot's starter had set is the host kernel's too, but nothing that a
/// terminal sends.
fn origin(info: &libc::siginfo_t) -> Origin {
    let of_terminals = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGCONT, libc::SIGWINCH]
        .contains(&info.si_signo);
    if of_terminals && info.si_code == libc::SI_KERNEL { Origin::Terminal } else { Origin::Process }
}

/// Hands a signal to the kernel. One that ends programs ends the first cage if a grate keeps what one before has ended.
fn hand_over(kernel: &Arc<Kernel>, first: &Arc<Cage>, number: u8, origin: Origin) {
    if !ENDING.contains(&i32::from(number)) {
        signal::from_outside(kernel, first, number, origin);
    } else if kept_by_a_grate(kernel, &signal::outside_targets(kernel, first, number, origin)) {
        let text =
            format!("lind-boot: signal {number} again, and a grate keeps what one before has ended: everything ends\n");
        lind_kernel::stdio::say(&text);
        signal::end(kernel, first, KILL);
    } else {
        signal::from_outside(kernel, first, number, origin);
        remember(&signal::ended_but_there(kernel));
    }
}

/// Whoever was there the last time has waited since.
fn remember(there: &[Arc<Cage>]) {
    let mut staying = STAYING.lock().unwrap_or_else(PoisonError::into_inner);
    staying.retain(|(id, _)| there.iter().any(|cage| cage.id == *id));
    for cage in there {
        if !staying.iter().any(|(id, _)| *id == cage.id) {
            staying.push((cage.id, Instant::now()));
        }
    }
}

fn pass_on(kernel: &Arc<Kernel>, first: &Arc<Cage>, number: u8, origin: Origin) {
    ALONE.store(true, Ordering::SeqCst);
    if let Some(queue) = &mut *queue() {
        ALONE.store(false, Ordering::SeqCst);
        let (kernel, first) = (Arc::clone(kernel), Arc::clone(first));
        queue.push_back(Box::new(move || hand_over(&kernel, &first, number, origin)));
        MORE.notify_one();
        return;
    }
    hand_over(kernel, first, number, origin);
    ALONE.store(false, Ordering::SeqCst);
}

/// To be called by a guest thread when there is to be another one, where no lock is held: signals are handed to the kernel by a thread with
/// the caller's descriptors from now on.
pub fn share() {
    SHARED.store(true, Ordering::SeqCst);
    watch();
    if !APART.load(Ordering::SeqCst) {
        return;
    }
    let mut queue = queue();
    if queue.is_some() {
        return;
    }
    let taker = std::thread::Builder::new().name("outside".to_owned()).stack_size(128 << 10);
    // Without it the watcher goes on as before: all that suffers is a signalfd, which does not show such a signal.
    if taker.spawn(take).is_ok() {
        *queue = Some(VecDeque::new());
    }
}

/// As [`share`], and waits until a watcher that is apart does nothing of the kind any more.
pub fn share_now() {
    share();
    while APART.load(Ordering::SeqCst) && ALONE.load(Ordering::SeqCst) {
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

/// What tells the main thread, when it has run a guest for a while, that it is time for a watcher: a timer of the host that sends it the signal
/// of interruptions until there is one.
mod alarm {
    use std::mem::MaybeUninit;
    use std::sync::atomic::{AtomicPtr, Ordering};

    use crate::signal::preempt;

    /// What a short program takes, in nanoseconds. So long a signal from outside may have to wait.
    const WHILE: i64 = 2_000_000;

    /// What the library calls it; 0 may be one.
    static TIMER: AtomicPtr<libc::c_void> = AtomicPtr::new(NONE);
    const NONE: *mut libc::c_void = usize::MAX as *mut libc::c_void;

    /// Makes it, for the calling thread. Behind the walls there are no new ones.
    pub fn make() {
        let mut event = MaybeUninit::<libc::sigevent>::zeroed();
        let mut timer = NONE;
        // SAFETY: an event with all bits zero is valid, and `timer` may be written.
        let made = unsafe {
            let event = event.assume_init_mut();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = preempt::signal();
            event.sigev_notify_thread_id = libc::gettid();
            libc::timer_create(libc::CLOCK_MONOTONIC, event, &raw mut timer)
        };
        if made == 0 {
            TIMER.store(timer, Ordering::Relaxed);
        }
    }

    /// Sets it. False if there is none.
    pub fn set() -> bool {
        settime(WHILE)
    }

    /// Stops it.
    pub fn stop() {
        settime(0);
    }

    fn settime(nanos: i64) -> bool {
        let timer = TIMER.load(Ordering::Relaxed);
        let time = libc::timespec { tv_sec: 0, tv_nsec: nanos };
        let setting = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: `timer` is one that was made, and is never deleted.
        timer != NONE && unsafe { libc::timer_settime(timer, 0, &raw const setting, std::ptr::null_mut()) } == 0
    }
}
