//! Runs that are recorded, and runs that repeat a record: what the kernel does otherwise in them.
//!
//! A grate records what calls give and answers from the record ([docs/replay.md]). The kernel's
//! part is all that programs see without a call, or at a moment that no call determines:
//!
//! - **Signals.** In both kinds of run a handler starts only when a call returns, never within a
//!   computation. In a recorded run the start of each handler is a call of its own, `signalled`,
//!   which the recording grate sees. In a replayed run programs get no signals but those that the
//!   replaying grate plans by `steer`.
//! - **Ids.** In a replayed run the grate says which id a child gets. Ids that nobody has chosen
//!   begin far from those of any record.
//! - **Random bytes at the start of a program** (AT_RANDOM) come from a seed.
//!
//! [docs/replay.md]: ../../docs/replay.md

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock};

use lind_abi::{CageId, Errno, Result};

use crate::Kernel;
use crate::cage::signal::{Action, Info, action_by_default};
use crate::cage::{Cage, searches};
use crate::lock::Locked;

/// The way in which a run goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Course {
    /// By itself.
    #[default]
    Free,
    /// As a grate writes it down.
    Recorded,
    /// As a grate has it from a record.
    Replayed,
}

/// A seed of random bytes.
pub type Seed = [u8; 32];

/// The first id of a replayed run that the record does not name.
const BESIDE_RECORD: u32 = 1 << 28;

/// The course of this kernel's run.
#[derive(Default)]
pub(crate) struct OfKernel {
    set: OnceLock<(Course, Seed)>,
    /// The ids that the next children get, by their parents.
    next_ids: Mutex<HashMap<CageId, CageId>>,
}

impl Kernel {
    /// Sets the course of the run, before the first cage is made. Later calls have no effect.
    pub fn set_course(&self, course: Course, seed: Seed) {
        if self.course.set.set((course, seed)).is_ok() && course == Course::Replayed {
            self.last_id.store(BESIDE_RECORD, Ordering::Relaxed);
        }
    }

    /// The course of the run.
    #[inline]
    pub fn course(&self) -> Course {
        self.course.set.get().map_or(Course::Free, |&(course, _)| course)
    }

    /// The bytes for AT_RANDOM of a program that cage `id` starts with these arguments; None if
    /// they are the host's.
    pub(crate) fn seeded(&self, id: CageId, argv: &[CString]) -> Option<[u8; 16]> {
        let (_, seed) = self.course.set.get()?;
        let mut hash = blake3::Hasher::new_keyed(seed);
        hash.update(&id.0.to_le_bytes());
        for word in argv {
            hash.update(word.as_bytes_with_nul());
        }
        hash.finalize().as_bytes().first_chunk().copied()
    }

    /// Says which id the next child of `parent` gets.
    ///
    /// # Errors
    /// EINVAL for a number that no record has; EEXIST for that of a cage that exists.
    pub(crate) fn choose_id(&self, parent: CageId, id: u64) -> Result<()> {
        let id = u32::try_from(id).ok().filter(|id| (1..BESIDE_RECORD).contains(id)).ok_or(Errno::EINVAL)?;
        if self.cages.get(CageId(id)).is_some() {
            return Err(Errno::EEXIST);
        }
        self.course.next_ids.locked().insert(parent, CageId(id));
        Ok(())
    }

    /// The id of a new child of `parent`.
    ///
    /// # Errors
    /// EAGAIN when ids are used up.
    pub(crate) fn id_of_child(&self, parent: Option<CageId>) -> Result<CageId> {
        let chosen = match (self.course(), parent) {
            (Course::Replayed, Some(parent)) => self.course.next_ids.locked().remove(&parent),
            _ => None,
        };
        chosen.map_or_else(|| self.new_id().map(CageId), Ok)
    }

    /// Whether a signal for `cage` does not reach it, since the record has its signals.
    pub(crate) fn holds_back(&self, cage: &Cage, info: &Info) -> bool {
        self.course() == Course::Replayed && info.signal != Info::KILL && !searches(self, cage)
    }

    /// Whether a signal from outside, which would end a program that does not handle it, ends the
    /// programs of a replayed run: the record has no handler's run for it.
    pub(crate) fn ends_replay(&self, signal: u8) -> bool {
        self.course() == Course::Replayed && action_by_default(signal) == Action::End
    }
}

#[cfg(test)]
mod tests {
    use lind_abi::layout::{Sigaction, Zero};
    use lind_abi::nr;

    use super::*;
    use crate::cage::signal::{Delivery, Planned, Step};
    use crate::root::Walls;
    use crate::testing::{World, in_world};

    fn planned(signal: u8, returns: u64) -> Planned {
        Planned { info: Info::lost(signal), returns, mask: 1 << 4 }
    }

    /// The handler that begins now, if any.
    fn begins(w: &World) -> Option<Delivery> {
        match w.thread.next_step(&w.kernel) {
            Step::Handle(delivery) => Some(delivery),
            Step::Go => None,
            Step::Leave(next) => panic!("{next:?}"),
        }
    }

    #[test]
    fn signals_come_by_plan_alone() {
        in_world(Walls::Openat2, |w| {
            let handler = Sigaction { handler: 5, ..Sigaction::ZERO };
            for signal in [10, 12, 17] {
                w.thread.cage.set_action(signal, Some(handler));
            }
            w.kernel.set_course(Course::Replayed, [0; 32]);
            w.ok(nr::kill, &[i64::from(w.thread.cage.id.0), 17]);
            assert!(begins(w).is_none(), "SIGCHLD is held back");
            w.thread.plan(planned(10, 0)).unwrap();
            w.thread.plan(planned(12, 1)).unwrap();
            let first = begins(w).unwrap();
            assert_eq!((first.info.signal, first.returns, first.before, first.mask), (10, 0, 1 << 4, 0));
            assert!(begins(w).is_none(), "the second one waits for the first to return");
            first.done(&w.kernel, &w.thread, first.mask);
            let second = begins(w).unwrap();
            assert_eq!((second.info.signal, second.returns), (12, 1));
            second.done(&w.kernel, &w.thread, second.mask);
            assert!(begins(w).is_none());
            // A record that lies: nothing handles it, or it is none.
            w.thread.plan(planned(15, 2)).unwrap();
            assert!(begins(w).is_none());
            assert_eq!(w.thread.plan(planned(0, 2)), Err(Errno::EINVAL));
            while w.thread.plan(planned(10, 9)).is_ok() {}
        });
    }

    #[test]
    fn only_grates_of_the_line_steer() {
        in_world(Walls::Openat2, |w| {
            assert_eq!(w.err(nr::steer, &[0, 0, 0, 0]), Errno::EPERM);
            w.kernel.set_course(Course::Replayed, [0; 32]);
            for what in 0..5 {
                assert_eq!(w.err(nr::steer, &[what, 0, 9, 0]), Errno::EPERM);
            }
            assert_eq!(w.ok(nr::signalled, &[10, 0, 0, 0, 0, 0]), 0);
        });
    }

    #[test]
    fn children_get_the_chosen_ids_once() {
        in_world(Walls::Openat2, |w| {
            let parent = w.thread.cage.id;
            w.kernel.set_course(Course::Replayed, [7; 32]);
            assert_eq!(w.kernel.choose_id(parent, 0), Err(Errno::EINVAL));
            assert_eq!(w.kernel.choose_id(parent, u64::from(BESIDE_RECORD)), Err(Errno::EINVAL));
            assert_eq!(w.kernel.choose_id(parent, u64::from(parent.0)), Err(Errno::EEXIST));
            w.kernel.choose_id(parent, 77).unwrap();
            assert_eq!(w.kernel.id_of_child(Some(parent)), Ok(CageId(77)));
            assert!(w.kernel.id_of_child(Some(parent)).unwrap().0 > BESIDE_RECORD);
        });
    }

    #[test]
    fn random_bytes_follow_from_the_seed() {
        let bytes = |seed, id| {
            let (send, receive) = std::sync::mpsc::channel();
            in_world(Walls::Openat2, move |w| {
                let argv = [c"app".to_owned()];
                assert_eq!(w.kernel.seeded(CageId(id), &argv), None);
                w.kernel.set_course(Course::Recorded, [seed; 32]);
                send.send(w.kernel.seeded(CageId(id), &argv)).unwrap();
            });
            receive.recv().unwrap().unwrap()
        };
        assert_eq!(bytes(1, 5), bytes(1, 5));
        assert_ne!(bytes(1, 5), bytes(2, 5));
        assert_ne!(bytes(1, 5), bytes(1, 6));
    }
}
