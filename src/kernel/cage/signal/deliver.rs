//! Taking signals: the next step of a thread, before it runs guest code of its own again.

use std::sync::atomic::Ordering;

use lind_abi::layout::{Sigaction, Stack, Zero};

use super::{Action, Info, Planned, Signals, UNBLOCKABLE, bit, flag, stop};
use crate::Kernel;
use crate::cage::searches;
use crate::cage::{Attention, Next, Thread};
use crate::course::Course;
use crate::lock::Locked;

/// The next step of a thread.
pub enum Step {
    /// Go on with guest code.
    Go,
    /// Leave guest code.
    Leave(Next),
    /// Run a handler, then call [`Delivery::done`] and ask again.
    Handle(Delivery),
}

/// A handler to be run. The thread's mask is already the handler's.
pub struct Delivery {
    /// The function: an index in the program's table.
    pub handler: u32,
    /// The signal.
    pub info: Info,
    /// SA_RESTART.
    pub restart: bool,
    /// The interrupted call is not made again, whatever the handlers of other signals say.
    pub interrupt: bool,
    /// SA_SIGINFO.
    pub siginfo: bool,
    /// The alternate stack, if the handler is to start at its top.
    pub stack: Option<Stack>,
    /// The alternate stack as sigaltstack(2) describes it, for the handler's ucontext.
    pub alt_stack: Stack,
    /// The mask to be set when the handler has returned, unless it has changed it in its ucontext.
    pub mask: u64,
    /// The mask that was in force when the signal was taken: for calls like sigsuspend(2), theirs.
    pub before: u64,
    /// How many handlers of the thread had returned then.
    pub returns: u64,
}

impl Delivery {
    /// The handler has returned with `mask` in its ucontext.
    pub fn done(&self, kernel: &Kernel, thread: &Thread, mask: u64) {
        thread.signals.returns.fetch_add(1, Ordering::Relaxed);
        if thread.plans() {
            thread.notice(Attention::SIGNAL);
        }
        thread.set_mask(kernel, mask);
    }
}

const LEAVING: u32 = Attention::INTERRUPTS & !Attention::SIGNAL;

/// The next step of `thread`. The call blocks while its cage is stopped.
pub fn next_step(kernel: &Kernel, thread: &Thread) -> Step {
    loop {
        let attention = thread.attention();
        if attention & LEAVING != 0
            && let Some(next) = thread.take_next()
        {
            return Step::Leave(next);
        }
        if attention & (Attention::SIGNAL | Attention::MASK) == 0 {
            return Step::Go;
        }
        match take(kernel, thread, Taking { handlers: true, stands: true }) {
            Taken::Nothing => {
                if let Some(mask) = take_saved(thread) {
                    thread.set_mask(kernel, mask);
                }
            }
            Taken::Handler(info, disposition) => return Step::Handle(begin(thread, info, &disposition)),
            Taken::HandlerWaits | Taken::Done => {}
        }
    }
}

/// Acts on signals for a call that was interrupted, except that handlers do not run. Returns
/// whether the call may continue as if nothing had happened.
pub(crate) fn settle(kernel: &Kernel, thread: &Thread) -> bool {
    while thread.attention() & Attention::SIGNAL != 0 {
        match take(kernel, thread, Taking { handlers: false, stands: true }) {
            Taken::Handler(..) | Taken::HandlerWaits => return false,
            Taken::Nothing | Taken::Done => {}
        }
        if thread.attention() & LEAVING != 0 {
            return false;
        }
    }
    thread.attention() & Attention::INTERRUPTS == 0
}

/// Acts on signals for a thread that has lent its host thread: handlers wait until it is back. If
/// its cage is stopped, the thread counts as stopped.
pub(super) fn settle_lender(kernel: &Kernel, thread: &Thread) {
    while thread.attention() & Attention::SIGNAL != 0 && thread.attention() & LEAVING == 0 {
        match take(kernel, thread, Taking { handlers: false, stands: false }) {
            Taken::Handler(..) | Taken::HandlerWaits => return,
            Taken::Nothing | Taken::Done => {}
        }
    }
}

/// The situation in which a thread takes signals.
#[derive(Clone, Copy)]
struct Taking {
    /// Signals that have handlers are taken, too.
    handlers: bool,
    /// The thread blocks while its cage is stopped.
    stands: bool,
}

enum Taken {
    /// There was nothing to take; the attention bit is gone.
    Nothing,
    /// A signal with a handler.
    Handler(Info, Sigaction),
    /// Signals with handlers wait, and it was not asked for them.
    HandlerWaits,
    /// A signal was taken, and has had its effect.
    Done,
}

/// Takes one signal.
fn take(kernel: &Kernel, thread: &Thread, Taking { handlers, stands }: Taking) -> Taken {
    let cage = &*thread.cage;
    if kernel.course() == Course::Replayed && !searches(kernel, cage) {
        return take_planned(thread, handlers);
    }
    let mut signals = cage.signals();
    if signals.stop.is_some() && !thread.worker {
        drop(signals);
        if stands {
            stop::stand(kernel, thread);
        } else {
            stop::count_as_standing(kernel, thread);
        }
        return Taken::Done;
    }
    let unblocked = !thread.mask.load(Ordering::SeqCst) | UNBLOCKABLE;
    let handled = if handlers { 0 } else { signals.ignored_and_handled().1 };
    let Some(info) = dequeue(thread, &mut signals, unblocked & !handled) else {
        if waiting(thread) & unblocked != 0 {
            return Taken::HandlerWaits;
        }
        thread.unnotice(Attention::SIGNAL);
        return Taken::Nothing;
    };
    match signals.action(info.signal) {
        Action::Ignore => Taken::Done,
        Action::End => {
            drop(signals);
            super::end(kernel, cage, info.signal);
            Taken::Done
        }
        Action::Stop => {
            signals.stop_taken = true;
            drop(signals);
            // The terminal's stops are nothing to a group that nobody can continue.
            let always = u32::from(info.signal) == lind_abi::flags::Signals::SIGSTOP;
            let group = cage.group();
            if always || !super::group_is_orphaned(kernel, group, None) {
                stop::begin(kernel, cage, info.signal);
            }
            Taken::Done
        }
        Action::Handle => {
            let slot = &mut signals.actions[usize::from(info.signal) - 1];
            let disposition = *slot;
            if disposition.flags & flag::SA_RESETHAND != 0 {
                slot.handler = super::SIG_DFL;
            }
            Taken::Handler(info, disposition)
        }
    }
}

/// Takes the planned signal whose moment has come, in a replayed run.
#[cold]
fn take_planned(thread: &Thread, handlers: bool) -> Taken {
    let mut signals = thread.cage.signals();
    let returns = thread.signals.returns.load(Ordering::Relaxed);
    let Some(Planned { info, mask, .. }) = thread.take_plan(|plan| plan.returns == returns, handlers) else {
        thread.unnotice(Attention::SIGNAL);
        return Taken::Nothing;
    };
    if !handlers {
        return Taken::HandlerWaits;
    }
    let slot = &mut signals.actions[usize::from(info.signal) - 1];
    let disposition = *slot;
    if disposition.handler <= super::SIG_IGN {
        // A record that lies: nothing handles the signal.
        return Taken::Done;
    }
    if disposition.flags & flag::SA_RESETHAND != 0 {
        slot.handler = super::SIG_DFL;
    }
    // The call that the handler interrupts may have had a mask of its own, and was not made.
    let now = thread.mask.swap(mask & !UNBLOCKABLE, Ordering::SeqCst);
    if now != mask & !UNBLOCKABLE {
        thread.signals.saved_mask.locked().get_or_insert(now);
    }
    Taken::Handler(info, disposition)
}

/// The signals that a thread may take: a worker acts for others, so signals sent to the cage are
/// for the cage's own threads.
fn waiting(thread: &Thread) -> u64 {
    if thread.worker { thread.signals.pending.load(Ordering::SeqCst) } else { thread.pending() }
}

/// The first of the signals in `wanted` that wait for this thread or for any.
fn dequeue(thread: &Thread, signals: &mut Signals, wanted: u64) -> Option<Info> {
    let info = take_first(thread, signals, wanted)?;
    thread.cage.timer_signal_taken(&info);
    thread.cage.waiting_changed(signals, bit(info.signal));
    Some(info)
}

fn take_first(thread: &Thread, signals: &mut Signals, wanted: u64) -> Option<Info> {
    let cage = &*thread.cage;
    let mut queue = thread.signals.queue();
    if let Some(info) = queue.take(wanted) {
        thread.signals.pending.store(queue.bits(), Ordering::SeqCst);
        return Some(info);
    }
    if thread.worker {
        return None;
    }
    let info = signals.shared.take(wanted);
    cage.pending.store(signals.shared.bits(), Ordering::SeqCst);
    info
}

/// sigtimedwait(2): one of the signals in `wanted`, if one waits.
pub(crate) fn take_waited(thread: &Thread, wanted: u64) -> Option<Info> {
    let mut signals = thread.cage.signals();
    dequeue(thread, &mut signals, wanted)
}

fn take_saved(thread: &Thread) -> Option<u64> {
    thread.unnotice(Attention::MASK);
    thread.signals.saved_mask.locked().take()
}

/// Sets the thread's mask to the handler's, and describes how to run it.
fn begin(thread: &Thread, info: Info, disposition: &Sigaction) -> Delivery {
    let now = thread.mask.load(Ordering::SeqCst);
    let mask = take_saved(thread).unwrap_or(now);
    let wanted = u64::from(disposition.mask[0]) | u64::from(disposition.mask[1]) << 32;
    let itself = if disposition.flags & flag::SA_NODEFER != 0 { 0 } else { bit(info.signal) };
    thread.mask.store((now | wanted | itself) & !UNBLOCKABLE, Ordering::SeqCst);
    let mut alt = thread.alt_stack();
    let wanted = disposition.flags & flag::SA_ONSTACK != 0 && alt.size != 0 && !thread.on_alt_stack();
    let before = *alt;
    if wanted && alt.flags & SS_AUTODISARM != 0 {
        *alt = Stack::ZERO;
    }
    Delivery {
        handler: disposition.handler,
        info,
        restart: disposition.flags & flag::SA_RESTART != 0,
        interrupt: disposition.flags & flag::SA_LIND_INTERRUPT != 0,
        siginfo: disposition.flags & flag::SA_SIGINFO != 0,
        stack: wanted.then_some(before),
        alt_stack: before,
        mask,
        before: now,
        returns: thread.signals.returns.load(Ordering::Relaxed),
    }
}

/// sigaltstack(2): the stack is forgotten while a handler runs on it.
pub(crate) const SS_AUTODISARM: i32 = 1 << 31;
