//! Waiting for children, and for the first cage.

use std::sync::Weak;

use lind_abi::layout::Rusage;
use lind_abi::{CageId, Errno, Result};

use super::exit::Family;
use super::signal::Change;
use super::{Cage, Status};
use crate::Kernel;
use crate::call::Ctx;

impl Cage {
    /// Waits until this cage has ended, and returns how. Called by the runner.
    pub fn wait_end(&self) -> Status {
        loop {
            let seen = self.gone.seen();
            if let Some(status) = self.ended() {
                return status;
            }
            // However the wait ends, the question is asked again.
            let _ = self.gone.wait(seen, None);
        }
    }

    /// How this cage has ended, if it has and nothing is left to be done about it.
    pub fn ended(&self) -> Option<Status> {
        let family = self.family();
        family.ended.filter(|_| family.buried)
    }
}

/// The children that a wait is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    /// All.
    Any,
    /// One.
    Cage(CageId),
    /// The children of a process group.
    Group(u32),
}

/// The children and changes that a wait asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// The children that may be waited for.
    pub which: Which,
    /// Children that have ended: WEXITED.
    pub ended: bool,
    /// Stopped ones: WUNTRACED.
    pub stopped: bool,
    /// Continued ones: WCONTINUED.
    pub continued: bool,
    /// WNOHANG.
    pub no_hang: bool,
    /// __WNOTHREAD: only children of the calling thread.
    pub own: bool,
    /// __WCLONE: only children whose end is reported by another signal than SIGCHLD, of which there
    /// are none.
    pub clones: bool,
    /// WNOWAIT: the child can be waited for again.
    pub keep: bool,
}

/// A child that a wait has found.
pub(crate) struct Found {
    /// Its id.
    pub id: CageId,
    /// Its real user.
    pub uid: u32,
    /// The change of its state.
    pub change: Change,
    /// The resources it has used.
    pub usage: Rusage,
}

/// Waits for a child of `cx.cage`. None with `no_hang` when there is nothing to report yet.
///
/// # Errors
/// ECHILD without such a child, EINTR.
pub(crate) fn wait_child(cx: &Ctx<'_>, wait: &Wait) -> Result<Option<Found>> {
    let cage = cx.cage;
    let mut interrupted = None;
    if wait.no_hang {
        cx.hop.run_lent(None);
    }
    loop {
        let seen = cage.changed.seen();
        let found = {
            let _news = cage.news();
            let mut family = cage.family();
            match family.find(cx, wait) {
                Some(found) => Some(found),
                None if !family.has(cx, wait) => return Err(Errno::ECHILD),
                None if wait.no_hang => return Ok(None),
                None if family.ended.is_some() => return Err(Errno::EINTR),
                None => match interrupted {
                    Some(errno) => return Err(errno),
                    None => None,
                },
            }
        };
        if let Some(mut found) = found {
            match found.change {
                Change::Ended(_) if wait.keep => {}
                Change::Ended(_) => cx.kernel.cages.remove(found.id),
                _ => found.usage = cx.kernel.cages.get(found.id).map(|cage| cage.usage()).unwrap_or_default(),
            }
            return Ok(Some(found));
        }
        // In a handler it is the client's thread that waits, which may have more to do.
        if cx.hop.run_lent(Some(cx.thread).filter(|_| cx.served.is_none())) {
            continue;
        }
        let waited = cx.blocking(|| if cx.has_signals() { Err(Errno::EINTR) } else { cage.changed.wait(seen, None) });
        // Children come before signals: the signal may be that of the child.
        interrupted = waited.err();
    }
}

impl Which {
    fn is(self, kernel: &Kernel, id: CageId) -> bool {
        match self {
            Which::Any => true,
            Which::Cage(which) => which == id,
            Which::Group(group) => kernel.cages.get(id).is_some_and(|cage| cage.group() == group),
        }
    }
}

impl Family {
    /// Whether there are such children, waited for or not.
    fn has(&self, cx: &Ctx<'_>, wait: &Wait) -> bool {
        let mut children = self.children.iter().copied().chain(self.zombies.iter().map(|zombie| zombie.id));
        children.any(|id| self.is_for(cx, wait, id))
    }

    /// Whether the wait is for this child.
    fn is_for(&self, cx: &Ctx<'_>, wait: &Wait, id: CageId) -> bool {
        if wait.clones || !wait.which.is(cx.kernel, id) {
            return false;
        }
        if !wait.own {
            return true;
        }
        let tids =
            || self.threads.iter().filter_map(Weak::upgrade).filter(|thread| !thread.worker).map(|thread| thread.tid);
        let first = tids().next();
        cx.kernel
            .cages
            .get(id)
            .is_some_and(|child| child.is_child_of(cx.thread, first, |tid| tids().any(|other| other == tid)))
    }

    /// The first child that the wait is for, taken out unless it is to be kept.
    fn find(&mut self, cx: &Ctx<'_>, wait: &Wait) -> Option<Found> {
        let kernel = cx.kernel;
        let uid = |id| kernel.cages.get(id).map_or(0, |cage| cage.settings().credentials.uid[0]);
        if wait.ended
            && let Some(at) = self.zombies.iter().position(|zombie| self.is_for(cx, wait, zombie.id))
        {
            let zombie = &self.zombies[at];
            let (id, usage) = (zombie.id, zombie.usage);
            let found = Found { id, uid: uid(id), change: Change::Ended(zombie.status), usage };
            if !wait.keep {
                self.zombies.remove(at);
                super::usage::add(&mut self.children_usage, &usage);
            }
            return Some(found);
        }
        let wanted = |change: Change| match change {
            Change::Stopped(_) => wait.stopped,
            Change::Continued => wait.continued,
            Change::Ended(_) => false,
        };
        let at = self.changes.iter().position(|&(id, change)| wanted(change) && self.is_for(cx, wait, id))?;
        let (id, change) = self.changes[at];
        if !wait.keep {
            self.changes.remove(at);
        }
        Some(Found { id, uid: uid(id), change, usage: Rusage::default() })
    }
}
