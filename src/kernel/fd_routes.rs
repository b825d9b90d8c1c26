//! Routes by descriptor: decisions of a grate that are simple enough for the kernel to make.
//!
//! A grate most often serves some descriptors of its clients and leaves the others alone; the
//! handler of a call first looks which kind it has. With `route_fds` a grate shows where it keeps
//! this state: 32-bit words in its own memory, one for each descriptor number of a client. For a
//! call of the client on itself, the kernel reads the word at the call's first argument. By its
//! value the call enters the handler, or goes to a handler table that the grate could have used in
//! the handler. The words belong to the grate: it changes them as before, and nothing has to be
//! kept in step. A call whose word cannot be read enters the handler.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use lind_abi::layout::LindFdRoutes;
use lind_abi::{CageId, Errno, Result};

use crate::cage::Cage;
use crate::lock::Locked;
use crate::mem::Memory;
use crate::threei::{Handler, Packed};

/// How many grates may say so of one cage.
const MOST: usize = 4;

/// A word with this bit makes the call enter the handler, unless the mask has the bit too: then it
/// is a bit like the others.
const ASK: u32 = 1 << 31;

/// The most routes that a call follows before a handler is entered: two could send it to each other
/// for ever.
const MOST_STEPS: usize = 8;

/// The routes of a cage, until it has ended. Each of its threads holds them too, and uses its own
/// reference. Routes hold cages, which hold their own routes: unless they were dropped at the end,
/// a line of generations would all stay, each held by the next.
pub struct OfCage(Mutex<Option<Arc<Routes>>>);

impl Default for OfCage {
    fn default() -> Self {
        OfCage(Mutex::new(Some(Arc::default())))
    }
}

impl OfCage {
    /// The routes for a thread of the cage.
    pub(crate) fn get(&self) -> Arc<Routes> {
        self.lock().clone().unwrap_or_default()
    }

    /// As [`Routes::add`].
    ///
    /// # Errors
    /// Its, and ESRCH if the cage has ended.
    pub(crate) fn add(&self, grate: &Arc<Cage>, wire: &LindFdRoutes, unset: Way, set: Way) -> Result<()> {
        self.lock().as_ref().ok_or(Errno::ESRCH)?.add(grate, wire, unset, set)
    }

    /// The cage has ended: it makes no more calls.
    pub(crate) fn forget(&self) {
        let routes = self.lock().take();
        // Dropping the routes may drop cages, which take locks of their own.
        drop(routes);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Routes>>> {
        self.0.locked()
    }
}

/// The routes that grates have declared for the descriptors of one cage. A child does not inherit
/// them: its descriptors have other words.
#[derive(Default)]
pub struct Routes {
    /// Bit n % 64 of word n / 64: any of them is about system call n.
    any: [AtomicU64; 8],
    of: [OnceLock<Box<Route>>; MOST],
}

struct Route {
    grate: Arc<Cage>,
    memory: Arc<Memory>,
    words: u64,
    count: u32,
    mask: u32,
    unset: Way,
    set: Way,
    numbers: [u64; 8],
}

/// The ways a route can send a call.
pub enum Way {
    /// Into the handler.
    Handler,
    /// To the table of this cage. It is an ancestor of the client, so that no cage keeps itself
    /// alive.
    Table(Arc<Cage>),
}

impl Routes {
    /// Adds the routes of `grate`, for good.
    ///
    /// # Errors
    /// EINVAL for words outside its memory, EEXIST if the grate has added routes before, ENOSPC if
    /// too many others have.
    fn add(&self, grate: &Arc<Cage>, wire: &LindFdRoutes, unset: Way, set: Way) -> Result<()> {
        let end = u64::from(wire.count).checked_mul(4).and_then(|size| size.checked_add(wire.words));
        if !wire.words.is_multiple_of(4) || end.is_none_or(|end| end > crate::mem::GuestMemory::SPACE) {
            return Err(Errno::EINVAL);
        }
        let mut route = Box::new(Route {
            grate: Arc::clone(grate),
            memory: Arc::clone(&grate.memory),
            words: wire.words,
            count: wire.count,
            mask: wire.mask,
            unset,
            set,
            numbers: wire.numbers,
        });
        for place in &self.of {
            match place.get() {
                Some(other) if other.grate.id == grate.id => return Err(Errno::EEXIST),
                Some(_) => {}
                None => match place.set(route) {
                    Ok(()) => {
                        for (any, numbers) in self.any.iter().zip(wire.numbers) {
                            any.fetch_or(numbers, Ordering::Release);
                        }
                        return Ok(());
                    }
                    Err(back) => route = back,
                },
            }
        }
        Err(Errno::ENOSPC)
    }

    /// The destination of a call that the cage makes on itself and its table sends to `to`.
    #[inline(always)]
    pub fn follow(&self, number: u32, first: u64, to: Packed) -> Packed {
        let any = self.any.get(number as usize / 64).map_or(0, |any| any.load(Ordering::Acquire));
        if any >> (number % 64) & 1 == 0 { to } else { self.follow_all(number, first, to) }
    }

    fn follow_all(&self, number: u32, first: u64, mut to: Packed) -> Packed {
        for _ in 0..MOST_STEPS {
            let Handler::Grate { cage: grate, .. } = to.handler() else { break };
            let Some(table) = self.route_of(grate).and_then(|route| route.table(number, first)) else { break };
            to = table.handlers.packed(number);
        }
        to
    }

    fn route_of(&self, grate: CageId) -> Option<&Route> {
        self.of.iter().map_while(OnceLock::get).find(|route| route.grate.id == grate).map(|route| &**route)
    }
}

impl Route {
    /// The cage whose table routes the call; None if the handler is to be entered.
    #[inline]
    fn table(&self, number: u32, first: u64) -> Option<&Cage> {
        let numbers = self.numbers.get(number as usize / 64)?;
        // Descriptors are 32 bits of an argument, whatever the others are.
        let fd = first & u64::from(u32::MAX);
        if numbers >> (number % 64) & 1 == 0 || fd >= u64::from(self.count) {
            return None;
        }
        let word = self.memory.guest.atomic_load(self.words + 4 * fd).ok()?;
        if word & ASK & !self.mask != 0 {
            return None;
        }
        let way = if word & self.mask == 0 { &self.unset } else { &self.set };
        match way {
            // If the grate is dead, its calls fail, whether or not it would have handled them.
            Way::Table(table) if self.grate.answers() => Some(table),
            Way::Table(_) | Way::Handler => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use lind_abi::nr;

    use super::*;
    use crate::call::make_syscall;
    use crate::runtime::Served;
    use crate::testing::{NoHop, World, both_walls};

    fn routes(w: &World) -> LindFdRoutes {
        let mut numbers = [0; 8];
        numbers[0] = 1;
        let own = u64::from(w.thread.cage.id.0);
        LindFdRoutes { words: 0x10_0000, count: 16, mask: 1, unset: own, set: 0, numbers }
    }

    fn id(w: &World) -> i64 {
        i64::from(w.thread.cage.id.0)
    }

    #[test]
    fn generations_that_have_ended_do_not_stay() {
        both_walls(|w| {
            let mut last = w.sibling();
            let mut gone = Vec::new();
            for _ in 0..5 {
                let next = last.sibling();
                assert_eq!(last.ok(nr::route_fds, &[id(&next), last.value(&routes(&last))]), 0);
                gone.push(Arc::downgrade(&last.thread.cage));
                last.exit();
                let ended = std::mem::replace(&mut last, next);
                assert_eq!(w.err(nr::route_fds, &[id(&ended), w.value(&routes(w))]), Errno::ESRCH);
                // The first has a parent to wait for it, the others are nobody's.
                let _ = w.call(nr::wait4, &[-1, 0, 1, 0]);
            }
            let left = gone.iter().filter(|cage| cage.strong_count() > 0).count();
            assert!(
                left <= 1,
                "{left} of those that have ended are still there: only the last one shows anybody anything"
            );
        });
    }

    /// A grate that serves these calls for another cage and sends them on unchanged, as any other
    /// call.
    #[test]
    fn what_is_sent_on_is_not_about_who_sends_it() {
        both_walls(|w| {
            let grate = w.sibling();
            let client = grate.sibling();
            let (own, theirs) = (u64::from(w.thread.cage.id.0), u64::from(grate.thread.cage.id.0));
            let wire = grate.value(&routes(&grate)).cast_unsigned();
            let send = |number, target, first: u64, second: u64, served: Option<&Served<'_>>, whose| {
                let args = [(first, whose), (second, whose), (0, whose), (0, whose), (0, whose), (0, whose)];
                let hop = NoHop::default();
                make_syscall(&w.kernel, &w.thread, served, &hop, number, target, args)
            };
            let of_client = id(&client).cast_unsigned();
            let mine = w.value(&routes(w)).cast_unsigned();
            assert_eq!(send(nr::route_fds, theirs, of_client, wire, None, theirs), Errno::EPERM.to_wire());
            assert_eq!(send(nr::route_fds, own, of_client, wire, None, theirs), Errno::EPERM.to_wire());
            assert_eq!(send(nr::route_fds, own, of_client, mine, None, own), 0);

            let call = lind_abi::Call {
                nr: nr::give_fd,
                caller: grate.thread.cage.id,
                target: grate.thread.cage.id,
                values: &lind_abi::Word::six([0; 6]),
                owners: lind_abi::Owners::All(grate.thread.cage.id),
            };
            let served = Served { call: &call, client: &grate.thread };
            let before = grate.ok(nr::dup, &[0]);
            assert_eq!(send(nr::give_fd, theirs, 0, 0, Some(&served), theirs), Errno::EPERM.to_wire());
            assert_eq!(send(nr::give_fd, own, 0, 0, Some(&served), theirs), Errno::EPERM.to_wire());
            assert_eq!(grate.ok(nr::dup, &[0]), before + 1, "nothing was given");
            assert_eq!(send(nr::give_fd, own, 0, 0, Some(&served), own), before + 2);
        });
    }
}
