//! The parent of a cage whose own parent has ended.
//!
//! The children of a cage that ends, zombies too, go to the nearest of its ancestors that has asked
//! for it (PR_SET_CHILD_SUBREAPER), else to nobody: the runner acts as init, which waits for them
//! at once. Ends of parents and of children come one after the other (`Kernel::kinship`), so a
//! child reports to a parent that has not left its own, or to the one after it. All parents that a
//! cage ever has are its ancestors, so authority over it never depends on who is its parent.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard};

use lind_abi::CageId;
use lind_abi::layout::Rusage;

use super::exit::Zombie;
use super::signal::{self, Change};
use super::{Cage, Status, Thread};
use crate::Kernel;
use crate::lock::Locked;

/// The relations of a cage to its parent.
pub(super) struct Kin {
    /// The id of its parent; 0 when that is nobody any more, and for the first cage.
    parent: AtomicU32,
    /// Whether orphans among its descendants become its children. Neither inherited nor lost by
    /// exec.
    takes_orphans: AtomicBool,
    /// The thread of its parent that has made it, or has got it.
    thread: AtomicU32,
    /// Whether a process outside also waits for it: the one that started it in a session, and
    /// continues it there.
    outside: AtomicBool,
}

impl Kin {
    /// The relations of a new cage that `parent` has made.
    pub fn of(parent: Option<CageId>) -> Kin {
        Kin {
            parent: AtomicU32::new(parent.map_or(0, |id| id.0)),
            takes_orphans: AtomicBool::new(false),
            thread: AtomicU32::new(0),
            outside: AtomicBool::new(false),
        }
    }
}

impl Cage {
    /// Its parent; None when that is nobody any more, and for the first cage.
    pub fn parent(&self) -> Option<CageId> {
        Some(CageId(self.kin.parent.load(Ordering::Acquire))).filter(|id| id.0 != 0)
    }

    /// The parent shown to its cages; the first cage for orphans.
    pub fn shown_parent(&self) -> Option<CageId> {
        self.parent().or(self.ancestors().first().copied())
    }

    /// Whether a process outside waits for it: for the first cage, the one that started the runner.
    pub(crate) fn is_known_outside(&self) -> bool {
        self.maker().is_none() || self.kin.outside.load(Ordering::Acquire)
    }

    /// Notes that a process outside waits for it.
    pub fn known_outside(&self) {
        self.kin.outside.store(true, Ordering::Release);
    }

    /// The cage that waits for this one.
    pub(crate) fn living_parent(&self, kernel: &Kernel) -> Option<Arc<Cage>> {
        kernel.cages.get(self.parent()?).filter(|parent| !parent.is_dead())
    }

    /// Its nearest living ancestor, which gets what a cage leaves to the kernel to keep.
    pub(crate) fn living_ancestor(&self, kernel: &Kernel) -> Option<Arc<Cage>> {
        let alive = |id: &CageId| kernel.cages.get(*id).filter(|cage| !cage.is_dead());
        self.ancestors().iter().rev().find_map(alive)
    }

    /// prctl(PR_GET_CHILD_SUBREAPER)
    pub(crate) fn takes_orphans(&self) -> bool {
        self.kin.takes_orphans.load(Ordering::Acquire)
    }

    /// prctl(PR_SET_CHILD_SUBREAPER)
    pub(crate) fn take_orphans(&self, on: bool) {
        self.kin.takes_orphans.store(on, Ordering::Release);
    }

    /// Notes which thread of its parent has made it.
    pub(super) fn made_by(&self, thread: &Thread) {
        self.kin.thread.store(thread.tid, Ordering::Release);
    }

    /// Whether it is a child of this thread of its parent. Children of a thread that has ended
    /// count as the first thread's.
    pub(super) fn is_child_of(&self, thread: &Thread, first: Option<u32>, is_there: impl Fn(u32) -> bool) -> bool {
        let maker = self.kin.thread.load(Ordering::Acquire);
        maker == thread.tid || (first == Some(thread.tid) && !is_there(maker))
    }

    /// Hands a child that it has just made to its own parent: clone(CLONE_PARENT). An orphan's
    /// child is an orphan.
    pub(super) fn leave_to_parent(&self, kernel: &Kernel, child: &Cage) {
        let _kinship = kinship(kernel);
        let parent = self.parent().and_then(|id| kernel.cages.get(id));
        child.set_parent(parent.as_ref());
        if let Some(parent) = parent {
            parent.family().children.push(child.id);
        }
    }

    fn set_parent(&self, parent: Option<&Arc<Cage>>) {
        self.kin.thread.store(0, Ordering::Release);
        self.kin.parent.store(parent.map_or(0, |parent| parent.id.0), Ordering::Release);
    }
}

fn kinship(kernel: &Kernel) -> MutexGuard<'_, ()> {
    kernel.kinship.locked()
}

/// The cage that the children of `cage` get as their parent.
fn heir(kernel: &Kernel, cage: &Cage) -> Option<Arc<Cage>> {
    let above = |cage: &Cage| kernel.cages.get(cage.parent()?);
    let mut next = above(cage);
    while let Some(cage) = next {
        if cage.takes_orphans() && !cage.is_dead() {
            return Some(cage);
        }
        next = above(&cage);
    }
    None
}

/// `cage` has ended: its children get another parent, or none. Returns those that are alive.
pub(super) fn leave_children(kernel: &Kernel, cage: &Cage) -> Vec<CageId> {
    let kinship = kinship(kernel);
    let (children, zombies, changes) = {
        let mut family = cage.family();
        family.childless = true;
        let family = &mut *family;
        (std::mem::take(&mut family.children), std::mem::take(&mut family.zombies), std::mem::take(&mut family.changes))
    };
    let heir = heir(kernel, cage);
    for child in children.iter().filter_map(|&id| kernel.cages.get(id)) {
        child.set_parent(heir.as_ref());
    }
    let Some(heir) = heir else {
        for zombie in zombies {
            kernel.cages.remove(zombie.id);
        }
        return children;
    };
    let reaped = signal::wants_no_zombies(&heir);
    let _news = heir.news();
    let mut left: Vec<(Arc<Cage>, Status)> = Vec::new();
    {
        let mut family = heir.family();
        family.children.extend(&children);
        family.changes.extend(changes);
        for zombie in zombies {
            left.extend(kernel.cages.get(zombie.id).map(|cage| (cage, zombie.status)));
            if reaped {
                kernel.cages.remove(zombie.id);
            } else {
                family.zombies.push_back(zombie);
            }
        }
    }
    for (zombie, _) in &left {
        zombie.set_parent(Some(&heir));
    }
    drop(kinship);
    for (zombie, status) in left {
        signal::child_changed(kernel, &heir, &zombie, Change::Ended(status));
    }
    children
}

/// Makes a cage that has ended a zombie of its parent, and notifies the parent and those who watch
/// the cage. SIGCHLD is sent before a wait can return the child.
pub(super) fn report(kernel: &Kernel, cage: &Cage, status: Status, usage: &Rusage) {
    let kinship = kinship(kernel);
    let Some(parent) = cage.parent().and_then(|id| kernel.cages.get(id)) else {
        if cage.maker().is_some() {
            kernel.cages.remove(cage.id);
        }
        return cage.tell_watchers();
    };
    let _news = parent.news();
    let reaped = signal::wants_no_zombies(&parent);
    let mut family = parent.family();
    family.children.retain(|&id| id != cage.id);
    family.forget_changes(cage.id);
    // The usage of a child that the kernel reaps is not added to the parent's, since nobody has
    // waited for it: getrusage(2). A parent that has left its zombies already would keep this one
    // for ever.
    if reaped || family.childless {
        kernel.cages.remove(cage.id);
    } else {
        family.zombies.push_back(Zombie { id: cage.id, status, usage: *usage });
    }
    drop((family, kinship));
    cage.tell_watchers();
    signal::child_changed(kernel, &parent, cage, Change::Ended(status));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use lind_abi::{Errno, nr};

    use crate::testing::{World, both_walls};

    const PR_SET_CHILD_SUBREAPER: i64 = 36;

    fn id(of: &World) -> i64 {
        of.thread.cage.id.0.into()
    }

    /// A forked child may use the functions that the cage that forked it could use, not those of
    /// its new parent.
    #[test]
    fn an_adopted_child_has_no_functions_of_its_new_parent() {
        both_walls(|w| {
            w.ok(nr::prctl, &[PR_SET_CHILD_SUBREAPER, 1]);
            let parent = w.sibling();
            let (child, other) = (parent.sibling(), parent.sibling());
            for child in [&child, &other] {
                child.thread.cage.fresh_fork.store(true, Ordering::Release);
            }
            assert_eq!(child.ok(nr::register_handler, &[id(&child), 500, id(&parent), 1, 0]), 0);
            assert_eq!(child.ok(nr::getppid, &[]), id(&parent));
            parent.exit();
            for child in [&child, &other] {
                assert_eq!(child.ok(nr::getppid, &[]), id(w));
                assert_eq!(child.err(nr::register_handler, &[id(child), 501, id(w), 1, 0]), Errno::EPERM);
            }
            for ended in [&child, &other] {
                ended.exit();
                assert_eq!(w.ok(nr::wait4, &[id(ended), 0, 1, 0]), id(ended));
            }
        });
    }

    #[test]
    fn nobody_is_left_behind() {
        both_walls(|w| {
            let ids = || w.kernel.cages.all().len();
            let before = ids();
            for asks in [0, 1, 1] {
                w.ok(nr::prctl, &[PR_SET_CHILD_SUBREAPER, asks]);
                let parent = w.sibling();
                let (zombie, living) = (parent.sibling(), parent.sibling());
                let last = living.sibling();
                zombie.exit();
                parent.exit();
                assert_eq!(w.ok(nr::wait4, &[id(&parent), 0, 1, 0]), id(&parent));
                if asks == 1 {
                    assert_eq!(w.ok(nr::wait4, &[id(&zombie), 0, 1, 0]), id(&zombie));
                    assert_eq!(w.ok(nr::wait4, &[id(&living), 0, 1, 0]), 0);
                } else {
                    assert_eq!(w.err(nr::wait4, &[-1, 0, 1, 0]), Errno::ECHILD);
                }
                last.exit();
                living.exit();
                while w.call(nr::wait4, &[-1, 0, 1, 0]).is_ok_and(|id| id > 0) {}
                assert_eq!(w.err(nr::wait4, &[-1, 0, 1, 0]), Errno::ECHILD);
                drop((parent, zombie, living, last));
                assert_eq!(ids(), before);
            }
        });
    }
}
