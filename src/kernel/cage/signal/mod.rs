//! Signals: their effects, queues and delivery.
//!
//! A signal is sent to a cage or to one thread and waits in a queue until a thread that does not
//! block it takes it ([`next_step`]): when a system call returns, or when the engine has
//! interrupted its computation. A signal that ends or stops a cage need not be taken by a thread;
//! `send` acts at once where it can. docs/signals.md describes the whole way.
//!
//! Queues and dispositions are under one lock, [`Cage::signals`]. Beside it each queue's set is
//! kept in an atomic word, and masks are atomic words of which only the thread itself writes its
//! own, so that sigprocmask(2) takes no lock: the sender adds to the set before it reads the mask,
//! the thread writes its mask before it reads the sets.

mod deliver;
mod info;
mod listen;
mod orphan;
mod permission;
mod queue;
mod restart;
mod send;
mod stop;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use lind_abi::flags::{Resource, Signals as Number};
use lind_abi::layout::{Sigaction, Stack, Zero};

pub use deliver::{Delivery, Step};
pub(crate) use deliver::{SS_AUTODISARM, next_step, settle, take_waited};
pub use info::{Change, Info};
pub use listen::Signalfd;
pub(crate) use listen::{Listeners, listen, listen_for, renew};
pub(crate) use orphan::{group_is_orphaned, groups_left_by, tell_children};
pub(crate) use permission::{Permission, grates_over, ids_allow, stands_over};
pub(crate) use queue::Queue;
pub use restart::restarts;
pub use send::{
    Origin, end, end_all_of, end_programs, ended_but_there, from_outside, has_not_answered, has_program,
    outside_targets, to_programs,
};
pub(crate) use send::{child_changed, send, send_to_all, send_to_group, send_to_thread, wants_no_zombies};

use super::{Attention, Cage, Thread, searches};
use crate::Kernel;
use crate::course::Course;
use crate::lock::Locked;

/// The highest signal.
pub(crate) const LAST: u8 = 64;
/// The handler values that are not functions.
pub(crate) const SIG_DFL: u32 = 0;
/// See `SIG_DFL`.
pub(crate) const SIG_IGN: u32 = 1;

/// sa_flags.
pub(crate) mod flag {
    pub const SA_NOCLDSTOP: u32 = 1;
    pub const SA_NOCLDWAIT: u32 = 2;
    pub const SA_SIGINFO: u32 = 4;
    pub const SA_ONSTACK: u32 = 0x0800_0000;
    pub const SA_RESTART: u32 = 0x1000_0000;
    /// An addition to Linux's flags for libc's cancellation: ends a call even if another handler
    /// would let it continue.
    pub const SA_LIND_INTERRUPT: u32 = 0x2000_0000;
    pub const SA_NODEFER: u32 = 0x4000_0000;
    pub const SA_RESETHAND: u32 = 0x8000_0000;
}

/// The bit of a signal (1 to 64) in a set.
pub(crate) const fn bit(signal: u8) -> u64 {
    1 << (signal - 1)
}

/// A signal out of the table of numbers.
#[allow(clippy::cast_possible_truncation, reason = "signals are at most 64")]
pub(crate) const fn number(signal: u32) -> u8 {
    signal as u8
}

/// The signals that cannot be blocked, ignored or handled.
pub(crate) const UNBLOCKABLE: u64 = bit(number(Number::SIGKILL)) | bit(number(Number::SIGSTOP));

/// The signal of invalid memory accesses, and its si_code for each kind.
const SEGV: u8 = number(Number::SIGSEGV);
const SEGV_MAPERR: i32 = 1;
const SEGV_ACCERR: i32 = 2;

/// The signals that stop by default.
const STOPPING: u64 = bit(number(Number::SIGSTOP))
    | bit(number(Number::SIGTSTP))
    | bit(number(Number::SIGTTIN))
    | bit(number(Number::SIGTTOU));

/// The effect of a signal on a cage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Ignore,
    End,
    Stop,
    Handle,
}

fn action(disposition: &Sigaction, signal: u8) -> Action {
    let default = || match u32::from(signal) {
        Number::SIGCHLD | Number::SIGURG | Number::SIGWINCH | Number::SIGCONT => Action::Ignore,
        _ if STOPPING & bit(signal) != 0 => Action::Stop,
        _ => Action::End,
    };
    match disposition.handler {
        SIG_DFL => default(),
        SIG_IGN => Action::Ignore,
        _ => Action::Handle,
    }
}

/// The effect of a signal on a cage that has no disposition of its own for it.
pub(crate) fn action_by_default(signal: u8) -> Action {
    action(&Sigaction::ZERO, signal)
}

/// A signal that a thread of a replayed run is to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Planned {
    pub info: Info,
    /// The number of handlers of the thread that have returned by then.
    pub returns: u64,
    /// The mask in force then.
    pub mask: u64,
}

/// The most signals that wait so: all that RLIMIT_SIGPENDING lets wait, and each signal once more.
const MOST_PLANNED: usize = 8192 + 64;

/// The signal state of a cage, under `Cage::signals`.
pub(crate) struct Signals {
    /// Dispositions of signals 1 to 64, at index signal - 1.
    actions: Box<[Sigaction; 64]>,
    /// Signals that wait for any thread.
    shared: Queue,
    /// Whether a stop signal was taken and SIGCONT has not come since: its taker decides without
    /// holding the lock.
    stop_taken: bool,
    /// The signal that has stopped the cage, until SIGCONT.
    stop: Option<u8>,
    /// Whether the parent has been notified of the stop: all threads have stopped.
    stop_complete: bool,
}

impl Default for Signals {
    fn default() -> Self {
        Signals {
            actions: Box::new([Sigaction::ZERO; 64]),
            shared: Queue::default(),
            stop_taken: false,
            stop: None,
            stop_complete: false,
        }
    }
}

impl Signals {
    /// The dispositions of the first cage: the signals in `set` are ignored.
    pub fn ignoring(set: u64) -> Signals {
        let mut signals = Signals::default();
        for signal in (1..=LAST).filter(|&signal| set & bit(signal) & !UNBLOCKABLE != 0) {
            signals.actions[usize::from(signal) - 1].handler = SIG_IGN;
        }
        signals
    }

    /// The state of a forked child: the same dispositions, and no waiting signals.
    pub fn forked(&self) -> Signals {
        Signals { actions: self.actions.clone(), ..Signals::default() }
    }

    /// The state of a program started by exec: ignored signals stay ignored, handled ones get their
    /// default.
    pub fn executed(&self) -> Signals {
        let mut signals = self.forked();
        signals.reset_handlers();
        signals
    }

    /// execve(2): ignored signals stay ignored, handled ones get their default. Waiting signals
    /// keep waiting.
    pub fn reset_handlers(&mut self) {
        for action in self.actions.iter_mut() {
            *action = match action.handler {
                SIG_IGN => Sigaction { handler: SIG_IGN, ..Sigaction::ZERO },
                _ => Sigaction::ZERO,
            };
        }
    }

    /// The signals that are ignored on request, and those that have handlers.
    pub fn ignored_and_handled(&self) -> (u64, u64) {
        let with = |wanted: fn(u32) -> bool| {
            let chosen = (1..=LAST).zip(self.actions.iter()).filter(|(_, action)| wanted(action.handler));
            chosen.fold(0, |set, (signal, _)| set | bit(signal))
        };
        (with(|handler| handler == SIG_IGN), with(|handler| handler > SIG_IGN))
    }

    fn disposition(&self, signal: u8) -> &Sigaction {
        &self.actions[usize::from(signal) - 1]
    }

    fn action(&self, signal: u8) -> Action {
        action(self.disposition(signal), signal)
    }
}

/// The signal state of a thread, beside its mask.
#[derive(Default)]
pub(crate) struct OfThread {
    /// Signals that wait for this thread. Taken under its cage's lock only.
    queue: Mutex<Queue>,
    /// The set of `queue`, and of the signals for any thread in `Cage::pending`.
    pending: AtomicU64,
    /// Whether it is stopped together with its cage.
    stopped: AtomicBool,
    /// The mask to restore when the handlers have run for which a call like sigsuspend(2) was
    /// waiting.
    saved_mask: Mutex<Option<u64>>,
    /// Whether a call of this thread returned EINTR because of a signal.
    interrupted: AtomicBool,
    /// sigaltstack(2); no stack if its size is 0.
    alt_stack: Mutex<Stack>,
    /// Whether a handler runs on it.
    on_alt_stack: AtomicBool,
    /// How many of its handlers have returned.
    returns: AtomicU64,
    /// In a replayed run, the signals that it is to take, the next one first.
    planned: Mutex<VecDeque<Planned>>,
}

impl OfThread {
    /// The state for the thread that replaces `other` after execve(2): waiting signals keep
    /// waiting.
    pub fn taken_from(other: &Thread) -> OfThread {
        let queue = std::mem::take(&mut *other.signals.queue());
        OfThread { pending: AtomicU64::new(queue.bits()), queue: Mutex::new(queue), ..OfThread::default() }
    }

    /// Initialises a forked child: the alternate stack is in its memory too.
    pub fn forked(&self, parent: &OfThread) {
        *self.alt_stack.locked() = *parent.alt_stack.locked();
        self.on_alt_stack.store(parent.on_alt_stack.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.locked()
    }
}

impl Cage {
    /// How many signals wait with their info, and how many may.
    pub(crate) fn queued_signals(&self) -> (usize, u64) {
        let most = self.settings().limits.of(Resource(Resource::RLIMIT_SIGPENDING)).map_or(0, |limit| limit.0);
        let threads = self.threads();
        let signals = self.signals();
        let own: usize = threads.iter().map(|thread| thread.signals.queue().len()).sum();
        (signals.shared.len() + own, most)
    }

    /// The signal state, locked.
    pub(crate) fn signals(&self) -> MutexGuard<'_, Signals> {
        self.signals.locked()
    }

    /// Replaces the disposition of a signal, and returns the old one. If the signal is now ignored,
    /// pending ones are dropped.
    pub(crate) fn set_action(&self, signal: u8, new: Option<Sigaction>) -> Sigaction {
        let mut signals = self.signals();
        let slot = &mut signals.actions[usize::from(signal) - 1];
        let old = *slot;
        if let Some(new) = new {
            *slot = new;
            if action(&new, signal) == Action::Ignore {
                self.forget(&mut signals, bit(signal));
            }
        }
        old
    }

    /// Counts a timer that has run out `times` times while its signal waits; false if none waits.
    pub(crate) fn count_overrun(&self, timer: u32, times: i32) -> bool {
        let mut signals = self.signals();
        signals.shared.count_overrun(timer, times)
            || self.threads().iter().any(|thread| thread.signals.queue().count_overrun(timer, times))
    }

    /// Drops the waiting signal of a timer that was set again or deleted.
    pub(crate) fn forget_timer_signal(&self, timer: u32) {
        let mut signals = self.signals();
        let mut gone = signals.shared.forget_timer(timer).map_or(0, bit);
        self.pending.store(signals.shared.bits(), Ordering::SeqCst);
        for thread in self.threads() {
            let mut queue = thread.signals.queue();
            if let Some(signal) = queue.forget_timer(timer) {
                gone |= bit(signal);
                thread.signals.pending.store(queue.bits(), Ordering::SeqCst);
            }
        }
        if gone != 0 {
            self.waiting_changed(&signals, gone);
        }
    }

    /// Takes signals out of all queues.
    fn forget(&self, signals: &mut Signals, gone: u64) {
        signals.shared.remove(gone);
        self.pending.store(signals.shared.bits(), Ordering::SeqCst);
        for thread in self.threads() {
            let mut queue = thread.signals.queue();
            queue.remove(gone);
            thread.signals.pending.store(queue.bits(), Ordering::SeqCst);
        }
        self.waiting_changed(signals, gone);
    }
}

/// Handles the end of a thread of `cage`: signals meant for it are offered to others, and a stop
/// may be complete without it.
pub(crate) fn thread_left(kernel: &Kernel, cage: &Cage) {
    if cage.pending.load(Ordering::SeqCst) != 0 {
        send::offer_shared(kernel, cage);
    }
    // Signals that waited for this thread alone are gone.
    cage.waiting_changed(&cage.signals(), !0);
    stop::check_complete(kernel, cage);
}

impl Thread {
    /// Whether this thread blocks a signal.
    pub(crate) fn blocks(&self, signal: u8) -> bool {
        self.mask.load(Ordering::SeqCst) & bit(signal) & !UNBLOCKABLE != 0
    }

    /// The signals that wait for it alone.
    pub(crate) fn own_pending(&self) -> u64 {
        self.signals.pending.load(Ordering::Relaxed)
    }

    /// The signals that wait for it or for any thread of its cage.
    pub(crate) fn pending(&self) -> u64 {
        self.signals.pending.load(Ordering::SeqCst) | self.cage.pending.load(Ordering::SeqCst)
    }

    /// Whether a fault would run a handler: it has one, and does not block the signal.
    pub fn handles(&self, signal: u8) -> bool {
        !self.blocks(signal) && self.cage.signals().action(signal) == Action::Handle
    }

    /// Sends the thread, which is the calling one, the signal of a fault of its own.
    pub fn fault(&self, kernel: &Kernel, info: Info) {
        if kernel.course() == Course::Replayed && !searches(kernel, &self.cage) {
            // A recording ends with the handler of a fault: no record has what comes behind it.
            return end(kernel, &self.cage, info.signal);
        }
        // To the host all of a cage's memory is mapped, but without access where the cage has no
        // mapping.
        let code = match info.code {
            SEGV_ACCERR if self.cage.memory.is_hole(u64::from(info.address())) => SEGV_MAPERR,
            code => code,
        };
        let info = if info.signal == SEGV { Info { code, ..info } } else { info };
        // There is always room for a standard signal of the kernel's.
        let _ = send::send_fault(kernel, self, info);
    }

    /// Plans a signal for this thread of a replayed run.
    ///
    /// # Errors
    /// EINVAL for a number without a signal; EAGAIN if too many are planned.
    pub(crate) fn plan(&self, plan: Planned) -> lind_abi::Result<()> {
        if !(1..=LAST).contains(&plan.info.signal) {
            return Err(lind_abi::Errno::EINVAL);
        }
        let mut planned = self.signals.planned.locked();
        if planned.len() >= MOST_PLANNED {
            return Err(lind_abi::Errno::EAGAIN);
        }
        planned.push_back(plan);
        drop(planned);
        self.notice(Attention::SIGNAL);
        Ok(())
    }

    /// Whether signals are planned for it.
    fn plans(&self) -> bool {
        !self.signals.planned.locked().is_empty()
    }

    /// The next planned signal if its moment has come. It is planned no more if `takes`.
    fn take_plan(&self, comes: impl Fn(&Planned) -> bool, takes: bool) -> Option<Planned> {
        let mut planned = self.signals.planned.locked();
        let next = planned.front().copied().filter(comes)?;
        if takes {
            planned.pop_front();
        }
        Some(next)
    }

    /// Lets the call that a grate makes for this thread end as one that a signal interrupted.
    pub(crate) fn interrupt_call(&self) {
        self.note_interrupted();
        self.notice(Attention::SIGNAL);
    }

    /// Whether its present call was interrupted by a signal.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.signals.interrupted.load(Ordering::Relaxed)
    }

    /// Sets its mask, for the thread itself; returns the one before. Waiting signals that are no
    /// longer blocked are taken when control returns to the guest; those that this thread now
    /// blocks are offered to others.
    pub(crate) fn set_mask(&self, kernel: &Kernel, mask: u64) -> u64 {
        let before = self.mask.swap(mask & !UNBLOCKABLE, Ordering::SeqCst);
        if self.pending() != 0 {
            self.mask_changed(kernel, before);
        }
        before
    }

    #[cold]
    fn mask_changed(&self, kernel: &Kernel, before: u64) {
        let mask = self.mask.load(Ordering::SeqCst);
        if self.pending() & !mask != 0 {
            self.notice(Attention::SIGNAL);
        }
        if self.cage.pending.load(Ordering::SeqCst) & mask & !before != 0 {
            send::offer_shared(kernel, &self.cage);
        }
    }

    /// Leaves `mask` to be set when the handlers of the signals that wait have run.
    pub(crate) fn restore_mask_later(&self, mask: u64) {
        *self.signals.saved_mask.locked() = Some(mask);
        self.notice(Attention::MASK);
    }

    /// The alternate stack, locked.
    pub(crate) fn alt_stack(&self) -> MutexGuard<'_, Stack> {
        self.signals.alt_stack.locked()
    }

    /// Whether a handler of this thread runs on the alternate stack.
    pub fn on_alt_stack(&self) -> bool {
        self.signals.on_alt_stack.load(Ordering::Relaxed)
    }

    /// Says whether a handler runs on the alternate stack from now on. Returns what was so before.
    pub fn set_on_alt_stack(&self, on: bool) -> bool {
        self.signals.on_alt_stack.swap(on, Ordering::Relaxed)
    }

    /// The handler that ran on the alternate stack `stack` has returned: SS_AUTODISARM ends.
    pub fn rearm_alt_stack(&self, stack: &Stack) {
        if stack.flags & SS_AUTODISARM != 0 {
            *self.alt_stack() = *stack;
        }
    }

    /// Notes that a call returned EINTR because of a signal.
    pub(crate) fn note_interrupted(&self) {
        self.signals.interrupted.store(true, Ordering::Relaxed);
    }

    /// Whether a call was interrupted by a signal since this was last asked.
    pub fn take_interrupted(&self) -> bool {
        self.signals.interrupted.swap(false, Ordering::Relaxed)
    }

    /// execve(2) removes the alternate stack.
    pub(crate) fn forget_alt_stack(&self) {
        *self.alt_stack() = Stack::ZERO;
        self.set_on_alt_stack(false);
    }
}
