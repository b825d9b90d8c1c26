//! Calls that go by their descriptor: what a grate would do with them, so plain that the kernel does it.
//!
//! Of the descriptors of its clients a grate most often serves some and leaves the others alone, and the handler of a call begins by
//! looking which it is. With `route_fds` a grate shows where it keeps that: 32-bit words in its own memory, one for each descriptor
//! number of a client. A call of the client on itself is then looked up there by its first argument, and by what the word says enters the
//! handler or goes where a table sends it that the grate could have used in the handler. The word stays the grate's: it changes it as ever,
//! and there is nothing to keep in step. What cannot be looked up enters the handler.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use lind_abi::layout::LindFdRoutes;
use lind_abi::{CageId, Errno, Result};

use crate::cage::Cage;
use crate::mem::Memory;
use crate::threei::{Handler, Packed};

/// How many grates may say so of one cage.
const MOST: usize = 4;

/// A word with this bit has the handler asked, unless the mask has the bit too: then it is one like the others.
const ASK: u32 = 1 << 31;

/// How many of them a call passes before a handler is entered: two may send a call to each other for ever.
const MOST_STEPS: usize = 8;

/// What grates have said of the descriptors of one cage. Not inherited: a child's descriptors are in other words.
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

/// Where a call goes.
pub enum Way {
    /// Into the handler.
    Handler,
    /// Where the table of this cage says. It is an ancestor of the client, so that none keeps itself alive.
    Table(Arc<Cage>),
}

impl Routes {
    /// Adds what `grate` says, for good.
    ///
    /// # Errors
    /// EINVAL for words that cannot be there, EEXIST if the grate has spoken before, ENOSPC if too many others have.
    pub fn add(&self, grate: &Arc<Cage>, wire: &LindFdRoutes, unset: Way, set: Way) -> Result<()> {
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

    /// Where a call goes that the cage makes on itself and its table sends to `to`.
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
    /// The cage by whose table the call goes; None if its handler is to be entered.
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
            // What a dead grate handled fails, and what it did not handle neither goes on.
            Way::Table(table) if self.grate.answers() => Some(table),
            Way::Table(_) | Way::Handler => None,
        }
    }
}
