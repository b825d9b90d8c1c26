//! IPC namespaces: CLONE_NEWIPC.

use super::{Ipc, State, attachments, release};
use crate::Kernel;
use crate::cage::Cage;
use crate::call::Ctx;

/// A namespace: the objects that its cages find by key, id or name.
///
/// It is a number that a cage has, and children get. The objects go when no living cage has it any
/// more; those of the first one stay as long as the runner does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Space(u64);

impl Space {
    /// The namespace that the first cage is in.
    pub const FIRST: Space = Space(0);

    /// The caller's.
    pub fn of(cx: &Ctx<'_>) -> Space {
        cx.cage.settings().ipc
    }

    /// Its number, by which programs tell namespaces apart.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl Ipc {
    /// Puts a cage into a namespace of its own, without objects. It keeps the segments that it has
    /// attached. The adjustments of SEM_UNDO are made first.
    pub fn set_apart(&self, kernel: &Kernel, cage: &Cage) {
        self.undo(cage);
        let new = Space(kernel.new_namespace());
        let mut state = self.lock();
        let old = std::mem::replace(&mut cage.settings().ipc, new);
        state.left(kernel, old);
    }
}

impl State {
    /// A cage that was in this namespace is not any more. With the last one the objects go.
    pub(super) fn left(&mut self, kernel: &Kernel, space: Space) {
        let has_it = |cage: &Cage| !cage.is_dead() && cage.settings().ipc == space;
        if space == Space::FIRST || kernel.cages.all().iter().any(|cage| has_it(cage)) {
            return;
        }
        for set in self.sets.take(space) {
            set.charges().for_each(|(payer, bytes)| release(kernel, payer, bytes));
            set.changed.notify_all();
        }
        for queue in self.queues.take(space) {
            self.messages -= queue.holds().0;
            queue.messages().for_each(|message| release(kernel, message.payer, message.cost()));
            queue.changed.notify_all();
        }
        self.named.forget(space);
        // A cage that has left may have some of them attached.
        self.segments.ids(space).into_iter().for_each(|id| self.segments.let_go(id));
        self.segments.forget(|id, segment| segment.removed && attachments(kernel, id) == 0);
    }
}

#[cfg(test)]
mod tests {
    use lind_abi::{Errno, nr};

    use super::super::MOST;
    use crate::cage::capability;
    use crate::root::Walls;
    use crate::testing::{World, in_world};

    const NEWIPC: i64 = 0x800_0000;
    const CREATE: i64 = 0o1600;

    fn set_apart(w: &World) {
        w.thread.cage.settings().credentials.capabilities.effective = capability::OF_ROOT;
        w.ok(nr::unshare, &[NEWIPC]);
    }

    /// How many segments, sets, queues and messages there are in all namespaces.
    fn counts(w: &World) -> [usize; 4] {
        let state = w.kernel.ipc.lock();
        let (segments, sets, queues) = (state.segments.values(), state.sets.values(), state.queues.values());
        [segments.count(), sets.count(), queues.count(), state.messages]
    }

    #[test]
    fn objects_go_with_the_last_cage_of_a_namespace() {
        in_world(Walls::Openat2, |w| {
            w.ok(nr::shmget, &[1, 100, CREATE]);
            let first = w.sibling();
            set_apart(&first);
            let segment = first.ok(nr::shmget, &[1, 100, CREATE]);
            first.ok(nr::semget, &[1, 5, CREATE]);
            let queue = first.ok(nr::msgget, &[1, CREATE]);
            first.ok(nr::msgsnd, &[queue, first.data(b"\x01\0\0\0text"), 4, 0]);
            let name = first.str("queue");
            first.ok(nr::mq_open, &[name, 0o102, 0o600, 0]);
            let second = first.sibling();
            assert_eq!(second.ok(nr::shmget, &[1, 100, 0]), segment);
            let charged = || w.thread.cage.memory.map().charged();
            let before = charged();
            first.exit();
            assert_eq!((counts(w), second.ok(nr::msgget, &[1, 0])), ([2, 1, 1, 1], queue));
            assert!(charged() > before);
            // Leaving is like ending.
            set_apart(&second);
            assert_eq!((counts(w), charged()), ([1, 0, 0, 0], before));
            assert_eq!(second.err(nr::mq_open, &[second.str("queue"), 2, 0, 0]), Errno::ENOENT);
            // The first namespace's stay.
            w.ok(nr::shmget, &[1, 100, 0]);
        });
    }

    #[test]
    fn a_segment_stays_while_a_cage_that_left_has_it() {
        in_world(Walls::Openat2, |w| {
            let child = w.sibling();
            set_apart(&child);
            let segment = child.ok(nr::shmget, &[1, 100, CREATE]);
            let at = child.ok(nr::shmat, &[segment, 0, 0]);
            set_apart(&child);
            assert_eq!(counts(w)[0], 1);
            assert_eq!(child.err(nr::shmat, &[segment, 0, 0]), Errno::EINVAL);
            assert_eq!(child.err(nr::shmget, &[1, 100, 0]), Errno::ENOENT);
            child.ok(nr::shmdt, &[at]);
            assert_eq!(counts(w)[0], 0);
        });
    }

    #[test]
    fn limits_hold_for_all_namespaces_together() {
        in_world(Walls::Openat2, |w| {
            let make =
                |w: &World| (0..).take_while(|_| w.call(nr::msgget, &[0, CREATE]).is_ok()).take(MOST + 1).count();
            (0..MOST - 10).for_each(|_| _ = w.ok(nr::msgget, &[0, CREATE]));
            let child = w.sibling();
            set_apart(&child);
            assert_eq!((make(&child), make(w)), (10, 0));
            assert_eq!(w.err(nr::msgget, &[0, CREATE]), Errno::ENOSPC);
            child.exit();
            assert_eq!(make(w), 10);
        });
    }
}
