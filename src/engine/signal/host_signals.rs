//! Passes signals from outside on to the cages: those that the terminal or another process sends to
//! the runner.
//!
//! All threads block these signals from the beginning; the *watcher*, a thread that runs no guest,
//! takes them from before the first program runs, and ends the process when the first cage has
//! ended.
//!
//! As long as there is one guest thread and no signalfd or the like, passing a signal to the kernel
//! needs no descriptor: the watcher has a descriptor table of its own, so that the host need not
//! count references to files at each call of a cage that is alone (`lind_kernel::fd::keep_none`).
//! When that changes ([`share`]), a second watcher, which shares the cages' descriptors, takes its
//! place. When the first cage stops, so does the process, for the shell that started it to see.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use lind_abi::CageId;
use lind_kernel::Kernel;
use lind_kernel::cage::signal::{self, Origin};
use lind_kernel::cage::{Cage, Status, Thread};
use lind_kernel::stdio;

use crate::First;
use crate::run::guest;
use crate::signal::preempt;
use crate::signal::process_signals::{ENDING, end_by, set, set_of};
use lind_kernel::lock::Locked;

/// While this value lives, the signals with which people end programs end this process, if no cage
/// can receive them yet: the first thread's work before the first program runs may take long.
pub(crate) struct Endable(Option<libc::sigset_t>);

impl Endable {
    /// For the calling thread. It changes nothing on a thread other than the process's first, nor
    /// once a cage runs.
    pub(crate) fn before_the_first() -> Endable {
        if !rustix::thread::gettid().eq(&rustix::process::getpid()) || FIRST.load(Ordering::SeqCst) != 0 {
            return Endable(None);
        }
        let (ending, mut before) = (set_of(&ENDING), MaybeUninit::uninit());
        // SAFETY: both are this thread's own, and pthread_sigmask makes a set of the second.
        unsafe {
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const ending, before.as_mut_ptr());
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

const INT: u8 = 2;
const KILL: u8 = 9;
const TERM: u8 = 15;
const CONT: u8 = 18;

/// The number that a shell adds to that of a signal that has ended a command.
const SIGNALED: u8 = 128;

/// How long a program may take to exit after SIGTERM.
pub const GRACE: Duration = Duration::from_secs(5);

/// How long a cage that such a signal has ended may take to exit before another such signal ends
/// the first cage too.
const PATIENCE: Duration = Duration::from_secs(1);

/// The cages that had ended and not exited when such a signal came, each with the time when that
/// was first seen. A handler is never unwound for its client: where it does not return, the cage is
/// kept in the grate.
static STAYING: Mutex<Vec<(CageId, Instant)>> = Mutex::new(Vec::new());

/// The host's id of the watcher, and the cage whose end it waits for; 0 before.
static WATCHER: AtomicU32 = AtomicU32::new(0);
static FIRST: AtomicU32 = AtomicU32::new(0);
/// The watched kernel and cage, once a cage is about to run.
static WATCHED: OnceLock<Watched> = OnceLock::new();
/// Whether signals have to be passed on by a watcher that shares the cages' descriptors.
static TO_SHARE: AtomicBool = AtomicBool::new(false);
/// Whether such a watcher runs.
static SHARED: AtomicBool = AtomicBool::new(false);
/// Held by a watcher that is apart while it passes a signal on.
static APART: Mutex<()> = Mutex::new(());
/// The signals that a watcher took after it had been replaced.
static LEFT: Mutex<VecDeque<(u8, Origin)>> = Mutex::new(VecDeque::new());

thread_local! {
    /// Whether this thread is a watcher that does not share the cages' descriptors.
    static IS_APART: Cell<bool> = const { Cell::new(false) };
}

struct Watched {
    kernel: Arc<Kernel>,
    first: Arc<Cage>,
    ending: Box<dyn Ending>,
    is_ending: AtomicBool,
    /// The time by which the cages must have exited.
    due: Mutex<Option<Instant>>,
    /// Whether the user has typed ^C.
    interrupted: AtomicBool,
}

/// The caller's part of the end of the process.
pub trait Ending: Send + Sync {
    /// The first cage has ended.
    fn ended(&self, status: Status);

    /// Whether a program that handles, blocks or ignores SIGTERM goes on, as on Linux. Otherwise it
    /// has [`GRACE`].
    fn handlers_decide(&self) -> bool;

    /// SIGTERM came [`GRACE`] ago: ends everything.
    fn overdue(&self, kernel: &Kernel) -> !;
}

/// A watcher that is being started.
#[must_use]
pub struct Starting(Receiver<()>);

/// Starts the watcher. To be called behind the walls and before there is a cage: it gets ready
/// while the first cage is made.
///
/// # Errors
/// EAGAIN if the host has no thread for it.
pub fn watch() -> std::io::Result<Starting> {
    start_watcher(true)
}

/// `apart`: a watcher that does not share the cages' descriptors.
fn start_watcher(apart: bool) -> std::io::Result<Starting> {
    let (begun, ready) = sync_channel(1);
    std::thread::Builder::new().name("watcher".to_owned()).stack_size(256 << 10).spawn(move || {
        if apart {
            lind_kernel::fd::keep_none();
            IS_APART.set(true);
        }
        WATCHER.store(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(), Ordering::SeqCst);
        let _ = begun.send(());
        WATCHED.wait().watch();
    })?;
    Ok(Starting(ready))
}

impl Starting {
    fn wait(self) {
        let _ = self.0.recv();
    }
}

/// Runs the first guest thread, and ends this process when the first cage has ended: by `ending`,
/// which may be called on another thread. Nothing is dropped on the way: guest threads may still
/// run, and the descriptors belong to the cages.
pub fn run(watcher: Starting, first: First, kernel: Arc<Kernel>, cage: Arc<Cage>, ending: impl Ending + 'static) -> ! {
    FIRST.store(cage.id.0, Ordering::SeqCst);
    let (ending, is_ending) = (Box::new(ending), AtomicBool::new(false));
    let watched = WATCHED.get_or_init(|| Watched {
        kernel,
        first: cage,
        ending,
        is_ending,
        due: Mutex::new(None),
        interrupted: AtomicBool::new(false),
    });
    lind_kernel::fd::leave_to_cages(&watched.kernel);
    // By then it has closed its copies of the cages' descriptors: otherwise descriptors that the
    // guest closes would stay open.
    watcher.wait();
    guest::on_own_stack(|| {
        let host = first.0.run_first();
        // The process's exit releases all that the host thread holds.
        let host = std::mem::ManuallyDrop::new(host);
        if watched.first.ended().is_none()
            && let Some(host) = &*host
        {
            host.retire();
        }
        loop {
            if let Some(status) = watched.first.ended() {
                watched.end(status);
            }
            // Other threads of its cage still run; the watcher is told when the last one ends.
            std::thread::park();
        }
    })
}

impl Watched {
    /// Waits for the end of the first cage, passes signals on meanwhile, and ends the process.
    /// Returns when another watcher takes its place.
    fn watch(&self) {
        let mut set = set();
        // SAFETY: the set is this thread's own, and initialised.
        unsafe {
            libc::sigaddset(&raw mut set, preempt::signal());
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        }
        loop {
            // The cage ended before the watcher was known, or `thread_ended` reported it: the
            // signal stays pending.
            if let Some(status) = self.first.ended() {
                self.end(status);
            }
            if is_replaced() {
                // The other watcher may wait for ever, without knowing that there is a time limit
                // now.
                wake(WATCHER.load(Ordering::SeqCst));
                return;
            }
            while let Some((number, origin)) = next_left() {
                self.hand_over(number, origin);
            }
            let left = self.due.locked().map(|due| due.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                self.end_if_late();
                continue;
            }
            let (number, info) = next_of(&set, left);
            match u8::try_from(number) {
                Ok(number) if number > 0 && i32::from(number) != preempt::signal() => self.pass_on(number, &info),
                _ => {}
            }
        }
    }

    /// Passes a signal to the kernel, and notes the time limit that it sets.
    fn hand_over(&self, number: u8, origin: Origin) {
        let mut due = self.due.locked();
        // A process that was stopped meanwhile gets its full time.
        if number == TERM && due.is_none() || number == CONT && due.is_some() {
            *due = Some(Instant::now() + GRACE);
        }
        drop(due);
        if number == INT && origin == Origin::Terminal {
            self.interrupted.store(true, Ordering::SeqCst);
        }
        if number == TERM && !self.ending.handlers_decide() {
            self.kernel.ends_in_time();
        }
        hand_over(&self.kernel, &self.first, number, origin);
    }

    /// Ends everything if the time limit has passed.
    fn end_if_late(&self) {
        // Only one of two watchers gets it.
        if self.due.locked().take().is_none() {
            return;
        }
        let asked = signal::outside_targets(&self.kernel, &self.first, TERM, Origin::Process);
        if self.ending.handlers_decide() && !asked.iter().any(|cage| signal::has_not_answered(&self.kernel, cage, TERM))
        {
            return;
        }
        stdio::say_line(&format!("SIGTERM came {} s ago: everything ends", GRACE.as_secs()));
        self.ending.overdue(&self.kernel)
    }

    /// Passes a signal to the kernel, or to the watcher that has taken this one's place.
    fn pass_on(&self, number: u8, info: &libc::siginfo_t) {
        let apart = IS_APART.get().then(|| APART.locked());
        if is_replaced() {
            // Not as a signal of the host: a thread cannot send one that looks as if it came from
            // another process.
            LEFT.locked().push_back((number, origin(info)));
            wake(WATCHER.load(Ordering::SeqCst));
            return;
        }
        self.hand_over(number, origin(info));
        drop(apart);
    }

    /// Ends the process; a second caller waits for that.
    fn end(&self, status: Status) -> ! {
        while self.is_ending.swap(true, Ordering::SeqCst) {
            std::thread::park();
        }
        self.ending.ended(status);
        if self.interrupted.load(Ordering::SeqCst) && status.shell_code() == INT + SIGNALED {
            end_by(INT);
        }
        // Nothing is left to be written, and what there is to free goes with the process.
        // SAFETY: no other thread has anything to do after this.
        unsafe { libc::_exit(i32::from(status.shell_code())) }
    }
}

/// The next of these signals, if it comes within this time.
fn next_of(set: &libc::sigset_t, within: Option<Duration>) -> (i32, libc::siginfo_t) {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let within = within.map(|within| libc::timespec {
        tv_sec: within.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: within.subsec_nanos().into(),
    });
    let time = within.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `info` may be written, and is valid with all bits zero; `time` is null or a time.
    unsafe { (libc::sigtimedwait(set, info.as_mut_ptr(), time), info.assume_init()) }
}

/// The next signal that the previous watcher has taken and not handed over; none for a watcher that
/// is apart.
fn next_left() -> Option<(u8, Origin)> {
    if IS_APART.get() { None } else { LEFT.locked().pop_front() }
}

/// Whether this is the watcher, and its descriptors are not the cages'.
pub fn is_apart() -> bool {
    IS_APART.get()
}

/// Whether this is a watcher that another one replaces.
fn is_replaced() -> bool {
    IS_APART.get() && SHARED.load(Ordering::SeqCst)
}

/// Called when a guest thread has ended: wakes the watcher if it waits for that.
pub fn thread_ended(thread: &Thread) {
    if thread.cage.id.0 == FIRST.load(Ordering::SeqCst) && thread.cage.is_dead() {
        wake(WATCHER.load(Ordering::SeqCst));
    }
}

/// Wakes the watcher so that it looks again.
fn wake(watcher: u32) {
    if watcher != 0 {
        // SAFETY: a signal that the watcher, a thread of this process, takes.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), watcher, preempt::signal()) };
    }
}

/// Whether one of these cages had ended when an earlier signal came, and still has not exited long
/// after. Other cages do not matter for a request to end now.
fn kept_by_a_grate(kernel: &Kernel, asked: &[Arc<Cage>]) -> bool {
    let staying = STAYING.locked();
    let kept = |id: CageId| staying.iter().any(|(cage, since)| *cage == id && since.elapsed() >= PATIENCE);
    let is_asked = |id: CageId| asked.iter().any(|cage| cage.id == id);
    signal::ended_but_there(kernel).iter().any(|cage| is_asked(cage.id) && kept(cage.id))
}

/// Whether the host's terminal sent a signal. The host kernel also sends the signal of a timer that
/// lind-boot's starter had set, but not one of those that a terminal sends.
fn origin(info: &libc::siginfo_t) -> Origin {
    origin_of(info.si_signo, info.si_code)
}

pub(super) fn origin_of(number: i32, code: i32) -> Origin {
    let of_terminals =
        [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGCONT, libc::SIGWINCH].contains(&number);
    if of_terminals && code == libc::SI_KERNEL { Origin::Terminal } else { Origin::Process }
}

/// Passes a signal to the kernel. A signal that ends programs ends the first cage if all cages are
/// grates, or if a grate still keeps a cage that an earlier one has ended.
fn hand_over(kernel: &Arc<Kernel>, first: &Arc<Cage>, number: u8, origin: Origin) {
    let represented = kernel.represented().and_then(|id| kernel.cages.get(id));
    let first = represented.as_ref().unwrap_or(first);
    if !ENDING.contains(&i32::from(number)) {
        signal::from_outside(kernel, first, number, origin);
    } else if !signal::has_program(kernel) {
        // The first program may be compiled for minutes.
        signal::end(kernel, first, number);
    } else if kept_by_a_grate(kernel, &signal::outside_targets(kernel, first, number, origin)) {
        stdio::say_line(&format!(
            "signal {number} again, and a grate keeps what one before has ended: everything ends"
        ));
        signal::end(kernel, first, KILL);
    } else {
        signal::from_outside(kernel, first, number, origin);
        remember(&signal::ended_but_there(kernel));
    }
}

/// A cage that was there the last time has waited since.
fn remember(there: &[Arc<Cage>]) {
    let mut staying = STAYING.locked();
    staying.retain(|(id, _)| there.iter().any(|cage| cage.id == *id));
    for cage in there {
        if !staying.iter().any(|(id, _)| *id == cage.id) {
            staying.push((cage.id, Instant::now()));
        }
    }
}

/// To be called by a guest thread before a second guest thread starts or a descriptor that shows
/// signals is made, where no lock is held: from now on a thread that shares the caller's
/// descriptors passes signals to the kernel.
pub fn share() {
    let before = WATCHER.load(Ordering::SeqCst);
    if !TO_SHARE.swap(true, Ordering::SeqCst)
        && let Ok(watcher) = start_watcher(false)
    {
        watcher.wait();
        SHARED.store(true, Ordering::SeqCst);
        wake(before);
    }
    // Without a thread for another watcher only a signalfd is affected, which does not show such a
    // signal. Once this lock is free, the previous watcher has finished passing its signal on.
    drop(APART.locked());
}
