//! Sending signals: to a cage, a thread, a process group, a parent.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::flags::{Resource, Signals as Number};
use lind_abi::{CageId, Result};

use super::queue::FIRST_REALTIME;
use super::{Action, Change, Info, STOPPING, Signals, bit, flag, number};
use crate::Kernel;
use crate::cage::exit::{self, Status};
use crate::cage::{Attention, Cage, Thread};
use crate::lock::Locked;

/// Sends a signal to a cage: to whichever of its threads does not block it.
///
/// # Errors
/// EAGAIN when its queue is full and the sender has to know that for this kind of signal.
pub(crate) fn send(kernel: &Kernel, cage: &Cage, info: Info) -> Result<()> {
    if kernel.holds_back(cage, &info) {
        return Ok(());
    }
    deliver(kernel, cage, None, info)
}

/// Sends a signal to one thread.
///
/// # Errors
/// As for `send`.
pub(crate) fn send_to_thread(kernel: &Kernel, thread: &Thread, info: Info) -> Result<()> {
    if kernel.holds_back(&thread.cage, &info) {
        return Ok(());
    }
    deliver(kernel, &thread.cage, Some(thread), info)
}

/// Sends a thread the signal of a fault of its own.
///
/// # Errors
/// As for `send`.
pub(super) fn send_fault(kernel: &Kernel, thread: &Thread, info: Info) -> Result<()> {
    deliver(kernel, &thread.cage, Some(thread), info)
}

/// Sends a signal to every cage of a process group; false if there is none that is alive.
pub(crate) fn send_to_group(kernel: &Kernel, group: u32, info: Info) -> bool {
    let mut members = kernel.cages.all();
    members.retain(|cage| !cage.is_dead() && cage.group() == group);
    let any = !members.is_empty();
    send_to_all(kernel, members, info);
    any
}

/// Sends a signal to several cages at once: it is queued for all of them before any of them acts on
/// it. A shell must get the signal of ^C before it learns that the command has ended by it.
pub(crate) fn send_to_all(kernel: &Kernel, mut cages: Vec<Arc<Cage>>, info: Info) {
    cages.retain(|cage| !kernel.holds_back(cage, &info));
    // The order in which locks of several are taken; and nobody's is taken twice.
    cages.sort_by_key(|cage| cage.id);
    cages.dedup_by_key(|cage| cage.id);
    // No thread takes a signal, or continues after one, without this lock.
    let mut locked: Vec<_> = cages.iter().map(|cage| (cage, cage.signals())).collect();
    let put: Vec<_> = locked.iter_mut().map(|(cage, signals)| put(cage, signals, None, info, Ends::ByThread)).collect();
    drop(locked);
    for (cage, put) in cages.iter().zip(put) {
        // A full queue loses the signal for that one, as it does on Linux.
        let _ = act_on(kernel, cage, info.signal, put);
    }
}

/// The origins of signals from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A process sent it to the runner: kill(2) and its like, or a timer that the runner's starter
    /// had set.
    Process,
    /// The terminal that was handed in: its keys, its size, its end.
    Terminal,
}

/// The cages that a signal from outside is for, including those that are ending: a signal of the
/// terminal goes to the foreground group, a signal of a process to the first cage alone, or with
/// its group if it is SIGCONT. Where another session has taken the terminal, its foreground group
/// counts. Grates act as the programs that they run. The end of a terminal is
/// also sent to its session's leader.
pub fn outside_targets(kernel: &Kernel, first: &Arc<Cage>, signal: u8, origin: Origin) -> Vec<Arc<Cage>> {
    if origin == Origin::Process {
        let mut targets = with_programs(kernel, first);
        if u32::from(signal) == Number::SIGCONT {
            // A shell continues a whole job: to the shell the job is the process group that this
            // process is in.
            let groups: Vec<_> = targets.iter().map(|cage| cage.group()).collect();
            let known: Vec<_> = targets.iter().map(|cage| cage.id).collect();
            let beside = |cage: &Arc<Cage>| groups.contains(&cage.group()) && !known.contains(&cage.id);
            targets.extend(kernel.cages.all().into_iter().filter(beside));
        }
        return targets;
    }
    let front = kernel.front_group(first.session()).or_else(|| kernel.console_group());
    let front = front.unwrap_or_else(|| first.group());
    let mut targets = kernel.cages.all();
    targets.retain(|cage| cage.group() == front);
    let ends = matches!(u32::from(signal), Number::SIGHUP | Number::SIGCONT);
    if ends && first.group() != front {
        targets.extend(with_programs(kernel, first));
    }
    targets
}

/// Whether a program exists, or existed, that a signal from outside can be for. Grates of the
/// command line leave them to theirs.
pub fn has_program(kernel: &Kernel) -> bool {
    kernel.line().runs()
}

/// A cage and, of a grate, those that it has started, which may be grates too.
fn with_programs(kernel: &Kernel, first: &Arc<Cage>) -> Vec<Arc<Cage>> {
    let mut found = vec![Arc::clone(first)];
    let mut looked = 0;
    while let Some(cage) = found.get(looked).map(Arc::clone) {
        looked += 1;
        let children = {
            let family = cage.family();
            if family.serves || kernel.engine().serves(&cage) { family.children.clone() } else { Vec::new() }
        };
        // A fork of a grate is a process of its own, which is not known outside.
        let programs = children.iter().filter_map(|&id| kernel.cages.get(id)).filter(|child| !child.is_fresh_fork());
        found.extend(programs);
    }
    found
}

/// Cages with those that made them first: a shell must not learn of the end of a command, and go on
/// to the next one, before it ends too.
fn makers_first(mut cages: Vec<Arc<Cage>>) -> Vec<Arc<Cage>> {
    cages.sort_by_key(|cage| cage.ancestors().len());
    cages
}

/// Ends a cage and all that come from it, by SIGKILL. This includes those that they make meanwhile.
pub fn end_all_of(kernel: &Kernel, first: CageId) {
    let of_first = |cage: &Arc<Cage>| !cage.is_dead() && (cage.id == first || cage.descends_from(first));
    loop {
        let mut there = kernel.cages.all();
        there.retain(of_first);
        if there.is_empty() {
            return;
        }
        for cage in makers_first(there) {
            end(kernel, &cage, number(Number::SIGKILL));
        }
    }
}

/// Sends all programs a signal from outside, but no grate of the runner's line.
pub fn to_programs(kernel: &Kernel, signal: u8) {
    let mut all = kernel.cages.all();
    all.retain(|cage| !cage.is_dead() && !crate::cage::searches(kernel, cage));
    send_to_all(kernel, all, Info::lost(signal));
}

/// Ends all programs by SIGKILL, but no grate of the runner's line: these end when they have no
/// clients left, and may have something to save. Has to be repeated, for programs that are started
/// meanwhile.
pub fn end_programs(kernel: &Kernel) {
    for cage in makers_first(kernel.cages.all()) {
        if !cage.is_dead() && !crate::cage::searches(kernel, &cage) {
            end(kernel, &cage, number(Number::SIGKILL));
        }
    }
}

/// Delivers a signal that has come from outside. A cage may learn no more about the process that
/// sent it.
pub fn from_outside(kernel: &Kernel, first: &Arc<Cage>, signal: u8, origin: Origin) {
    let info = if origin == Origin::Process { Info::lost(signal) } else { Info::kernel(signal) };
    let targets = outside_targets(kernel, first, signal, origin);
    if kernel.ends_replay(signal) {
        return targets.iter().for_each(|cage| end(kernel, cage, signal));
    }
    // The host drops a SIGCONT when a stop follows at once: this process runs, and the first cage
    // has not got it.
    let stopped = bit(signal) & STOPPING != 0 && first.is_stopped();
    // A thread that is about to stop the process because its own cage stopped either does so
    // before, or finds that SIGCONT has come.
    let mut outside = (u32::from(signal) == Number::SIGCONT).then(|| kernel.stopped_outside.locked());
    send_to_all(kernel, targets, info);
    if let Some(stopped) = &mut outside {
        **stopped = false;
    }
    drop(outside);
    if stopped && first.maker().is_none() && first.is_stopped() {
        kernel.engine().stop_process();
    }
}

/// The cages that have ended while one of their threads has not left yet. This takes a moment, or
/// as long as the grate takes whose handler it is in.
pub fn ended_but_there(kernel: &Kernel) -> Vec<Arc<Cage>> {
    kernel.cages.all().into_iter().filter(|cage| cage.is_dead() && !cage.threads().is_empty()).collect()
}

/// Whether it has not acted yet on a signal that was for all of it: it has ended by it and still
/// exists, or a thread should take it. Grates leave signals to their programs.
pub fn has_not_answered(kernel: &Kernel, cage: &Cage, signal: u8) -> bool {
    let threads = cage.threads();
    if kernel.engine().serves(cage) {
        return false;
    }
    if cage.is_dead() {
        return !threads.is_empty();
    }
    cage.pending.load(Ordering::SeqCst) & bit(signal) != 0 && threads.iter().any(|thread| !thread.blocks(signal))
}

fn deliver(kernel: &Kernel, cage: &Cage, to: Option<&Thread>, info: Info) -> Result<()> {
    let put = put(cage, &mut cage.signals(), to, info, Ends::AtOnce);
    act_on(kernel, cage, info.signal, put)
}

/// The way in which a signal that ends the cage takes effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// No effect: the sender ends the cage next.
    AtOnce,
    /// It waits for the thread that takes it, which ends the cage if it is faster.
    ByThread,
}

/// A signal that was put where it waits.
struct Put {
    /// The stop that it has ended, if any.
    continued: Option<super::stop::Ended>,
    woken: Result<Woken>,
}

fn put(cage: &Cage, signals: &mut Signals, to: Option<&Thread>, info: Info, ends: Ends) -> Put {
    let mut continued = None;
    if cage.is_dead() {
        return Put { continued, woken: Ok(Woken::Nobody) };
    }
    if info.signal == number(Number::SIGCONT) {
        cage.forget(signals, STOPPING);
        continued = signals.go_on();
    } else if bit(info.signal) & STOPPING != 0 {
        cage.forget(signals, bit(number(Number::SIGCONT)));
    }
    Put { continued, woken: queue(cage, signals, to, info, ends) }
}

fn act_on(kernel: &Kernel, cage: &Cage, signal: u8, put: Put) -> Result<()> {
    if let Some(stop) = put.continued {
        super::stop::went_on(kernel, cage, stop);
    }
    match put.woken? {
        Woken::Nobody => {}
        Woken::All => end(kernel, cage, signal),
        Woken::One(thread) => wake(kernel, &thread),
    }
    Ok(())
}

/// The threads that have to act on a signal that was sent.
enum Woken {
    Nobody,
    One(Arc<Thread>),
    /// The cage ends.
    All,
}

fn queue(cage: &Cage, signals: &mut Signals, to: Option<&Thread>, info: Info, ends: Ends) -> Result<Woken> {
    let signal = info.signal;
    let threads = cage.threads();
    let of_guest = |thread: &&Arc<Thread>| !thread.worker;
    let taker = match to {
        Some(to) => threads.iter().find(|thread| std::ptr::eq(Arc::as_ptr(thread), to)),
        None => threads.iter().filter(of_guest).find(|thread| !thread.blocks(signal)),
    };
    // Linux decides by the first thread whether a signal to the cage is blocked, and so must not be
    // dropped yet.
    let first = to.or_else(|| threads.iter().find(of_guest).map(|thread| &**thread));
    let ready = taker.is_some_and(|taker| !taker.blocks(signal));
    match signals.action(signal) {
        Action::Ignore if !first.is_some_and(|first| first.blocks(signal)) => return Ok(Woken::Nobody),
        Action::End if ready || signal == number(Number::SIGKILL) => {
            if let Some(taker) = taker.filter(|_| ends == Ends::ByThread) {
                let _ = signals.shared.push(info, u64::MAX);
                cage.pending.store(signals.shared.bits(), Ordering::SeqCst);
                taker.notice(Attention::SIGNAL);
            }
            return Ok(Woken::All);
        }
        _ => {}
    }
    let limit = cage.settings().limits.of(Resource(Resource::RLIMIT_SIGPENDING)).map_or(0, |limit| limit.0);
    // The limit is one for all queues of the cage. There are few of each standard signal.
    let elsewhere = if info.signal < FIRST_REALTIME { 0 } else { queued_elsewhere(signals, &threads, to) };
    let limit = limit.saturating_sub(elsewhere);
    match to {
        Some(to) => {
            let mut queue = to.signals.queue();
            queue.push(info, limit)?;
            to.signals.pending.store(queue.bits(), Ordering::SeqCst);
        }
        None => {
            signals.shared.push(info, limit)?;
            cage.pending.store(signals.shared.bits(), Ordering::SeqCst);
        }
    }
    cage.waiting_changed(signals, bit(signal));
    // Checked again: a thread that has changed its mask meanwhile has either seen the signal or is
    // seen here.
    let taker = match to {
        Some(_) => taker,
        None => threads.iter().filter(of_guest).find(|thread| !thread.blocks(signal)),
    };
    signals.notify_waiting(cage);
    match taker.filter(|taker| !taker.blocks(signal)) {
        Some(taker) => {
            taker.notice(Attention::SIGNAL);
            Ok(Woken::One(Arc::clone(taker)))
        }
        None => Ok(Woken::Nobody),
    }
}

/// How many signals wait in the other queues than the one of `to`, or the one for any thread.
fn queued_elsewhere(signals: &Signals, threads: &[Arc<Thread>], to: Option<&Thread>) -> u64 {
    let others = threads.iter().filter(|thread| to.is_none_or(|to| !std::ptr::eq(Arc::as_ptr(thread), to)));
    let shared = if to.is_some() { signals.shared.len() } else { 0 };
    (others.map(|thread| thread.signals.queue().len()).sum::<usize>() + shared) as u64
}

impl Signals {
    /// Tells those who wait for signals without taking them: sigtimedwait(2).
    fn notify_waiting(&self, cage: &Cage) {
        cage.changed.notify_all();
    }
}

/// Makes a thread look at its attention word, whatever it is doing.
fn wake(kernel: &Kernel, thread: &Thread) {
    thread.cage.changed.notify_all();
    kernel.engine().interrupt(thread);
}

/// Finds takers for the signals that wait for any thread.
#[cold]
pub(super) fn offer_shared(kernel: &Kernel, cage: &Cage) {
    let woken: Vec<_> = {
        let signals = cage.signals();
        let takes =
            |thread: &Arc<Thread>| !thread.worker && signals.shared.bits() & !thread.mask.load(Ordering::SeqCst) != 0;
        cage.threads().into_iter().filter(takes).inspect(|thread| thread.notice(Attention::SIGNAL)).collect()
    };
    for thread in woken {
        wake(kernel, &thread);
    }
}

/// Ends a cage by a signal.
pub fn end(kernel: &Kernel, cage: &Cage, signal: u8) {
    exit::begin(kernel, cage, Status::signaled(signal));
}

/// Whether children of `parent` that end are gone at once.
pub(crate) fn wants_no_zombies(parent: &Cage) -> bool {
    let signals = parent.signals();
    let disposition = signals.disposition(number(Number::SIGCHLD));
    disposition.handler == super::SIG_IGN || disposition.flags & flag::SA_NOCLDWAIT != 0
}

/// Tells a parent what has become of a child, by SIGCHLD and by waking those who wait.
pub(crate) fn child_changed(kernel: &Kernel, parent: &Cage, child: &Cage, change: Change) {
    let wanted = {
        let signals = parent.signals();
        let disposition = signals.disposition(number(Number::SIGCHLD));
        let stops = disposition.flags & flag::SA_NOCLDSTOP == 0;
        disposition.handler != super::SIG_IGN && (stops || matches!(change, Change::Ended(_)))
    };
    if wanted {
        let used = child.usage();
        let ticks =
            |time: lind_abi::layout::Timeval| u32::try_from(time.sec * 100 + time.usec / 10_000).unwrap_or(u32::MAX);
        let info = Info::child(child, change, ticks(used.utime), ticks(used.stime));
        // There is always room for a standard signal of the kernel's.
        let _ = send(kernel, parent, info);
    }
    parent.changed.notify_all();
}

/// The cage with this id, if it is alive.
pub(super) fn alive(kernel: &Kernel, id: CageId) -> Option<Arc<Cage>> {
    kernel.cages.get(id).filter(|cage| !cage.is_dead())
}
