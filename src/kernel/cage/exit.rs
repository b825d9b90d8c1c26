//! The end of threads and cages: exit(2), and death by a signal.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use lind_abi::layout::Rusage;
use lind_abi::{CageId, Call, Owners, Word, nr};

use super::life::Life;
use super::signal::{self, Change};
use super::thread::{Attention, Next};
use super::{Cage, Thread};
use crate::Kernel;
use crate::fd::{File, ready_fd};
use crate::lock::Locked;
use crate::runtime::{Hop, Served};
use crate::terminal;

/// How a cage ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// exit(2) with the low eight bits of its argument.
    Exited(u8),
    /// By a signal. Core is never dumped, as on Linux with the limit that cages have (RLIMIT_CORE,
    /// 0).
    Signaled {
        /// The signal.
        signal: u8,
    },
}

impl Status {
    /// The end by an exit(2) argument.
    pub fn exited(status: i32) -> Status {
        Status::Exited(status.to_le_bytes()[0])
    }

    /// The end by a signal.
    pub fn signaled(signal: u8) -> Status {
        Status::Signaled { signal }
    }

    /// The status word of wait4(2).
    pub fn wait_word(self) -> i32 {
        match self {
            Status::Exited(code) => i32::from(code) << 8,
            Status::Signaled { signal } => i32::from(signal),
        }
    }

    /// The exit code that a shell would report: the code, or 128 + the signal.
    pub fn shell_code(self) -> u8 {
        match self {
            Status::Exited(code) => code,
            Status::Signaled { signal } => 128_u8.saturating_add(signal),
        }
    }
}

/// A child that has ended and was not waited for.
pub(crate) struct Zombie {
    pub id: CageId,
    pub status: Status,
    pub usage: Rusage,
}

/// Threads, children and end of a cage, under `Cage::family`.
#[derive(Default)]
pub(crate) struct Family {
    /// The threads that have not ended. Weak: a thread holds its cage.
    pub threads: Vec<Weak<Thread>>,
    /// Children that are alive.
    pub children: Vec<CageId>,
    /// Children to wait for, oldest first.
    pub zombies: VecDeque<Zombie>,
    /// Whether a thread is about to run another program, for which all others end.
    pub replacing: bool,
    /// Children that have stopped or gone on since they were last waited for.
    pub changes: Vec<(CageId, Change)>,
    /// How many programs the cage has run by execve(2).
    pub programs: u32,
    /// Threads that are in `threads` no more, but still write to the cage's memory.
    pub leaving: u32,
    /// The exit code of the last thread that ran guest code. Threads that wait for it may see it
    /// end, and end themselves, before the kernel has counted its end.
    pub left_with: Option<i32>,
    /// Whether functions of its program are handlers.
    pub serves: bool,
    /// How many cages had handlers of its program when it ended.
    pub left_clients: usize,
    /// Set once, when the end begins.
    pub ended: Option<Status>,
    /// Whether its children have another parent, or none.
    pub childless: bool,
    /// Whether the rest of the end has been done.
    pub buried: bool,
    /// The resources of waited-for children.
    pub children_usage: Rusage,
    /// The resources of threads that have ended.
    pub spent: Rusage,
    /// Their processor time in nanoseconds.
    pub spent_nanos: i64,
}

impl Family {
    /// Notes that a child has stopped or gone on.
    pub fn note_change(&mut self, child: CageId, change: Change) {
        self.forget_changes(child);
        self.changes.push((child, change));
    }

    /// Drops the changes of a child that were not waited for.
    pub fn forget_changes(&mut self, child: CageId) {
        self.changes.retain(|(id, _)| *id != child);
    }
}

/// Begins the end of a cage: no new threads, handlers dead, all threads interrupted. The first
/// status stays.
pub(crate) fn begin(kernel: &Kernel, cage: &Cage, status: Status) {
    let (threads, left) = {
        let mut family = cage.family();
        let first = family.ended.is_none();
        family.ended.get_or_insert(status);
        if first && cage.is_command {
            let _ = kernel.command_end.set(status);
        }
        let threads: Vec<_> = family.threads.iter().filter_map(Weak::upgrade).collect();
        (threads, first && family.serves)
    };
    cage.life.reach(Life::Dead);
    if left {
        // A composer above the grate that uses its handlers is not a client.
        let is_client = |other: &Arc<Cage>| {
            other.descends_from(cage.id) && !other.is_dead() && other.handlers.grates().contains(&cage.id)
        };
        let clients: Vec<_> = kernel.cages.all().into_iter().filter(is_client).collect();
        // With the first cage all end, as they do when its program has left some in the background.
        let reports = cage.maker().is_some() || clients.iter().any(|other| other.maker() == Some(cage.id));
        cage.family().left_clients = if reports { clients.len() } else { 0 };
    }
    for thread in &threads {
        thread.notice(Attention::ENDING);
    }
    // After the bits are set: a stopped thread would otherwise look, find nothing and wait again,
    // in a handler that no signal interrupts.
    cage.changed.notify_all();
    for thread in threads {
        kernel.engine().interrupt(&thread);
    }
}

pub(super) fn thread_ended(kernel: &Arc<Kernel>, thread: &Arc<Thread>, how: Next, hop: &dyn Hop) {
    let cage = &thread.cage;
    // A thread that had lent its host thread may have been ended from another.
    if !cage.threads().iter().any(|other| Arc::ptr_eq(other, thread)) {
        return;
    }
    if let Some(birth) = thread.take_birth() {
        birth.abandon(kernel, hop);
    }
    // Workers run on other cages' threads: they do not keep a cage alive, nor do they say how it
    // ended when its own last thread is about to.
    let (last, left_with) = {
        let mut family = cage.family();
        family.thread_ends(thread);
        family.leaving += 1;
        family.threads.retain(|other| other.upgrade().is_some_and(|t| !Arc::ptr_eq(&t, thread)));
        let last = !thread.worker && !family.threads.iter().any(|other| other.upgrade().is_some_and(|t| !t.worker));
        (last, family.left_with)
    };
    thread.leave_words(last);
    cage.family().leaving -= 1;
    signal::thread_left(kernel, cage);
    let status = match how {
        Next::Exit(status) => Some(status),
        Next::ExitThread(code) => last.then(|| Status::exited(left_with.unwrap_or(code))),
        // The code that runs the thread does the exec before the thread ends.
        Next::Exec => Some(Status::signaled(9)),
    };
    if let Some(status) = status {
        begin(kernel, cage, status);
    }
    cage.changed.notify_all();
    if last {
        bury(kernel, thread, hop);
    }
}

/// Cleans up after a cage that has ended. Runs once.
fn bury(kernel: &Arc<Kernel>, thread: &Thread, hop: &dyn Hop) {
    let cage = &thread.cage;
    // Before it is buried: the process ends when the first cage is.
    let left = std::mem::take(&mut cage.family().left_clients);
    if left > 0 {
        let path = cage.settings().program.clone();
        kernel.engine().left_clients(cage, &path, left);
    }
    let status = {
        let mut family = cage.family();
        let Some(status) = family.ended else { return };
        if std::mem::replace(&mut family.buried, true) {
            return;
        }
        status
    };
    let children = super::reparent::leave_children(kernel, cage);
    signal::groups_left_by(kernel, cage, &children);
    signal::tell_children(kernel, cage, &children);
    let pipes = super::drain::pipes(cage);
    cage.fds.close_all();
    let text = cage.settings().text.take();
    drop(text);
    cage.routes.forget();
    terminal::gone(kernel);
    terminal::leader_ended(kernel, cage);
    let heir = cage.living_ancestor(kernel);
    kernel.ipc.ended(kernel, cage, heir.as_deref());
    kernel.in_flight.ended(cage.id, heir.map(|heir| heir.id));
    super::fork::return_memory(kernel, cage);
    cage.family().thread_ends(thread);
    super::drain::drain(kernel, &pipes);
    notify_grates(kernel, thread, status, hop);
    let mut usage = cage.usage();
    super::usage::add(&mut usage, &cage.children_usage());
    super::reparent::report(kernel, cage, status, &usage);
    cage.gone.notify_all();
}

/// The descriptors that become readable at the end of a cage: pidfd_open(2).
#[derive(Default)]
pub(crate) struct Watchers {
    ended: bool,
    files: Vec<Weak<File>>,
}

impl Cage {
    /// Has `file` be readable when this cage has ended.
    pub(crate) fn watched_by(&self, file: &Arc<File>) {
        let mut watchers = self.watchers.locked();
        watchers.files.retain(|other| other.strong_count() > 0);
        if watchers.ended {
            ready_fd::show(file.host(), true);
        } else {
            watchers.files.push(Arc::downgrade(file));
        }
    }

    pub(super) fn tell_watchers(&self) {
        let files = {
            let mut watchers = self.watchers.locked();
            watchers.ended = true;
            std::mem::take(&mut watchers.files)
        };
        for file in files.iter().filter_map(Weak::upgrade) {
            ready_fd::show(file.host(), true);
        }
    }
}

/// Tells every living ancestor that asked, nearest first. The ended thread is the client of these
/// calls.
fn notify_grates(kernel: &Kernel, thread: &Thread, status: Status, hop: &dyn Hop) {
    let cage = &thread.cage;
    for &ancestor in cage.ancestors().iter().rev() {
        let Some(grate) = kernel.cages.get(ancestor).filter(|c| !c.is_dead()) else { continue };
        let entry = grate.exit_notice.load(Ordering::Acquire).checked_sub(1).map(u32::try_from);
        let Some(Ok(entry)) = entry else { continue };
        let word = u64::from(status.wait_word().cast_unsigned());
        let values = &Word::six([u64::from(cage.id.0), word, 0, 0, 0, 0]);
        let owners = Owners::All(cage.id);
        let call = Call { nr: nr::exit_notice, caller: cage.id, target: cage.id, values, owners };
        hop.enter(grate.id, entry, false, 0, &Served { call: &call, client: thread });
    }
}

#[cfg(test)]
mod tests {
    use lind_abi::nr;

    use super::super::Next;
    use crate::testing::{NoHop, both_walls};

    /// A thread that has seen another one end ends after it, whatever order the host runs them in.
    #[test]
    fn the_last_to_run_says_how_a_cage_ended() {
        both_walls(|w| {
            let child = w.sibling();
            let other = child.thread.cage.new_own_thread(&w.kernel, &child.thread).unwrap();
            other.leaves(0);
            child.thread.leaves(42);
            child.thread.ended(&w.kernel, Next::ExitThread(42), &NoHop::default());
            other.ended(&w.kernel, Next::ExitThread(0), &NoHop::default());
            let status = w.buffer(4);
            w.ok(nr::wait4, &[-1, status, 1, 0]);
            assert_eq!(w.load::<u32>(status), 42 << 8);
        });
    }
}
