//! fork(2) and vfork(2), as far as the kernel goes: a cage that is a copy of its parent.
//!
//! The child exists, with its descriptors and settings, when the call that makes it returns, so
//! that a grate that forwards the call can note its number before it runs. It comes to life when
//! control is back at the client's call: the engine takes the [`Birth`] and carries it out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::{CageId, Errno, Result};

use super::birth::Born;
use super::exit::{Family, Status};
use super::{Cage, Next, Thread, signal};
use crate::Kernel;
use crate::lock::Locked;
use crate::mem::{Alone, CageMemory, Memory};
use crate::runtime::Hop;

/// The ways in which a child gets its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// With a copy of its parent's memory, where its parent is.
    Fork,
    /// On its parent's memory, where its parent is: vfork(2). The parent waits.
    Borrow,
    /// On its parent's memory, at the function in the boot block at this address. The parent waits.
    Vfork {
        /// The stack argument of clone(2).
        boot: u32,
    },
}

/// A child that does not run yet.
pub struct Birth {
    /// Its only thread.
    pub child: Arc<Thread>,
    /// The way in which it gets its memory.
    pub how: How,
}

impl Birth {
    /// Ends the child, as killed, before it has run.
    pub fn abandon(self, kernel: &Arc<Kernel>, hop: &dyn Hop) {
        self.child.ended(kernel, Next::Exit(Status::signaled(9)), hop);
    }

    /// The child was never there: the call that made it fails.
    pub fn undo(self, kernel: &Arc<Kernel>, hop: &dyn Hop) {
        let child = self.child.cage.id;
        let parent = self.child.cage.parent().and_then(|id| kernel.cages.get(id));
        self.abandon(kernel, hop);
        if let Some(parent) = parent {
            parent.family().zombies.retain(|zombie| zombie.id != child);
        }
        kernel.cages.remove(child);
    }

    /// Gives a forked child its copy of the parent's memory.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn copy_memory(&self, kernel: &Kernel, parent: &Cage) -> Result<()> {
        let forking = {
            let family = parent.family();
            // A thread that joins the cage takes the locks in this order.
            parent.memory.forking(alone(parent, &family))
        };
        let memory = forking.copy(&kernel.pages)?;
        self.child.cage.memory.replace(memory);
        Ok(())
    }
}

/// Whether only the thread that forks touches the memory of its cage. A grate's is touched by its
/// clients' threads, and borrowed memory by its owner's.
fn alone(parent: &Cage, family: &Family) -> Alone {
    let others = family.serves
        || family.leaving > 0
        || family.threads.iter().filter(|thread| thread.strong_count() > 0).count() > 1;
    if others || parent.memory.is_borrowed() { Alone::No } else { Alone::Yes }
}

/// Makes a copy of `parent` and of its thread `thread`: a child of it, or a sibling.
///
/// # Errors
/// EAGAIN at the limit of cages or when the cage is ending; EINVAL for a sibling of the first cage;
/// ENOMEM.
pub(crate) fn make_child(
    kernel: &Arc<Kernel>,
    thread: &Thread,
    parent: &Arc<Cage>,
    (how, is_sibling): (How, bool),
) -> Result<Birth> {
    if is_sibling && parent.maker().is_none() {
        return Err(Errno::EINVAL);
    }
    let settings = parent.settings().forked();
    let fds = parent.fds.fork();
    let listeners = signal::renew(kernel, parent, &fds)?;
    let born = Born {
        handlers: parent.handlers.inherit(),
        fds,
        cwd: parent.cwd.load_full(),
        root: parent.root.get(),
        domain: parent.confined.get(),
        umask: parent.umask.load(Ordering::Relaxed),
        settings,
        signals: parent.signals().forked(),
        ancestors: parent.line(),
        launching: parent.launching.load(Ordering::Acquire),
        is_command: false,
        forked_under: parent.family().programs,
        // A forked child gets its copy when it comes to life.
        memory: CageMemory::borrow(&parent.memory),
    };
    let child = born.create(kernel)?;
    child.cage.fresh_fork.store(true, Ordering::Release);
    child.cage.made_by(thread);
    child.signals.forked(&thread.signals);
    child.cage.listens_by(listeners);
    child.mask.store(thread.mask.load(Ordering::Acquire), Ordering::Release);
    child.runs_as(thread);
    *child.name.locked() = *thread.name.locked();
    let mut family = parent.family();
    if family.ended.is_some() {
        drop(family);
        kernel.cages.remove(child.cage.id);
        return Err(Errno::EAGAIN);
    }
    if is_sibling {
        drop(family);
        parent.leave_to_parent(kernel, &child.cage);
    } else {
        family.children.push(child.cage.id);
    }
    Ok(Birth { child, how })
}

impl Cage {
    /// Whether more than one of its threads live.
    pub fn has_other_threads(&self) -> bool {
        self.family().threads.iter().filter(|thread| thread.strong_count() > 0).count() > 1
    }

    /// Gives it names of the machine of its own, which begin as those that it had.
    pub(crate) fn names_apart(&self, kernel: &Kernel) {
        let mut settings = self.settings();
        settings.names = settings.names.apart(kernel.new_namespace());
    }

    /// Waits until a child that borrows this cage's memory has given it back; false if this cage
    /// ends first. During vfork(2) no signal is delivered.
    pub fn wait_for_memory(&self, child: &Cage) -> bool {
        let ends = |family: &Family| family.ended.is_some() || family.replacing;
        loop {
            let seen = self.changed.seen();
            if !child.memory.is_borrowed() || child.memory_returned() {
                return true;
            }
            if ends(&self.family()) {
                return false;
            }
            // However the wait ends, the question is asked again.
            let _ = self.changed.wait(seen, None);
        }
    }

    fn memory_returned(&self) -> bool {
        self.returned.load(Ordering::Acquire)
    }
}

/// Tells the parent of a cage that borrowed its memory that it does no more.
pub(super) fn return_memory(kernel: &Kernel, cage: &Cage) {
    cage.returned.store(true, Ordering::Release);
    if let Some(parent) = cage.maker().and_then(|id| kernel.cages.get(id)) {
        // Taking the lock once makes sure that the parent either sees the change or is already
        // waiting.
        drop(parent.family());
        parent.changed.notify_all();
    }
}

/// Gives a cage that runs a program memory of its own: new if it had borrowed it, else the present
/// one, which the program's layout empties.
///
/// # Errors
/// ENOMEM.
pub(super) fn own_memory(kernel: &Kernel, cage: &Cage) -> Result<()> {
    if cage.memory.is_borrowed() {
        let limit = cage.settings().limits.memory.0;
        cage.memory.replace(Memory::new(limit)?);
        return_memory(kernel, cage);
    }
    Ok(())
}

/// The cage by its id, for a call that makes a child of it.
pub(crate) fn parent_of(kernel: &Kernel, id: CageId) -> Result<Arc<Cage>> {
    kernel.cages.get(id).ok_or(Errno::ESRCH)
}
