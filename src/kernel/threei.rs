//! Handler tables, which route the system calls of a cage.
//!
//! A table has one atomic word per number below [`DIRECT`], so that the path of a call is one load.
//! Other numbers live in a map that is copied on write, and one default entry ([`NR_ANY`]) covers
//! numbers that nothing nearer to the cage handles. A table remembers what the cage inherited, so
//! that deregistering restores that and never more.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::lock::Locked;
use arc_swap::ArcSwap;
use lind_abi::{CageId, NR_ANY, nr};

/// Numbers below this have a word of their own: Linux's and the interposition calls, one of which a
/// grate makes for almost every call that it serves.
pub const DIRECT: usize = 1010;

/// The largest entry index: the top bit of the packed half-word is `serialized`.
pub const MAX_ENTRY: u32 = i32::MAX.unsigned_abs();

/// An entry for `spawn` by which the number is routed as the caller's own calls of it, even if
/// there is a default entry.
pub const AS_BEFORE: u32 = u32::MAX;

/// No cage has this id.
const NOBODY: CageId = CageId(u32::MAX);

/// The destination of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handler {
    /// To the kernel.
    Kernel,
    /// To a function of a grate. Stays even when the grate has died: calls then fail with EIO.
    Grate {
        /// The grate.
        cage: CageId,
        /// The index in its function table.
        entry: u32,
        /// One call of the grate at a time.
        serialized: bool,
    },
}

/// A [`Handler`] in one word, as tables hold it: on its way from there it need not be taken apart.
#[derive(Clone, Copy)]
pub struct Packed(u64);

impl Packed {
    /// Whether it goes to the kernel.
    #[inline(always)]
    pub fn is_kernels(self) -> bool {
        self.0 == Handler::KERNEL
    }

    /// The destination of the call.
    #[inline(always)]
    pub fn handler(self) -> Handler {
        Handler::unpack(self.0)
    }
}

const SERIALIZED: u64 = 1 << 31;

impl Handler {
    const KERNEL: u64 = 0;
    /// Not a cage: a cage that makes a call routed to it is ended by SIGKILL, as by seccomp(2).
    pub const FORBIDDEN: CageId = CageId(u32::MAX - 1);

    #[inline]
    fn unpack(word: u64) -> Handler {
        if word == Self::KERNEL {
            return Handler::Kernel;
        }
        let [low, high] = halves(word);
        Handler::Grate { cage: CageId(high), entry: low & MAX_ENTRY, serialized: word & SERIALIZED != 0 }
    }

    fn pack(self) -> u64 {
        match self {
            Handler::Kernel => Self::KERNEL,
            Handler::Grate { cage, entry, serialized } => {
                u64::from(cage.0) << 32 | u64::from(entry & MAX_ENTRY) | if serialized { SERIALIZED } else { 0 }
            }
        }
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation)]
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// Numbers that the default entry does not cover: a cage must be able to end and to return from a
/// signal handler whatever a grate forgets, and registering is not to be caught by accident.
pub fn outside_default(number: u64) -> bool {
    const OUTSIDE: [u32; 3] = [nr::exit, nr::exit_group, nr::rt_sigreturn];
    u32::try_from(number).is_ok_and(|n| OUTSIDE.contains(&n) || (1000..1100).contains(&n))
}

/// All entries of a table as values.
#[derive(Default, Debug)]
struct Entries {
    /// The entries below [`DIRECT`]; None if all are the kernel's, as in the table of a cage
    /// without grates, where a copy would be wasted.
    direct: Option<Box<[u64]>>,
    /// The entries of other numbers, as far as they have one.
    others: Arc<BTreeMap<u64, u64>>,
    default: u64,
}

/// The table of one cage.
pub struct HandlerTable {
    /// In the cage itself: a call finds its entry one pointer sooner.
    direct: [AtomicU64; DIRECT],
    others: ArcSwap<BTreeMap<u64, u64>>,
    default: AtomicU64,
    /// The entries that the cage was born with. This is also the lock of writers.
    inherited: Mutex<Entries>,
}

impl Default for HandlerTable {
    fn default() -> Self {
        HandlerTable {
            direct: [const { AtomicU64::new(Handler::KERNEL) }; DIRECT],
            others: ArcSwap::default(),
            default: AtomicU64::new(Handler::KERNEL),
            inherited: Mutex::default(),
        }
    }
}

impl HandlerTable {
    /// A table for a cage that can make only these calls: all others fail with EIO, as calls of a
    /// grate that is gone do.
    pub fn only(allowed: &[u32]) -> HandlerTable {
        let nobody = Handler::Grate { cage: NOBODY, entry: 0, serialized: false }.pack();
        let word = |number| if allowed.contains(&number) { Handler::KERNEL } else { nobody };
        // The numbers beyond the direct ones that the default entry does not cover.
        let others =
            (1000..1100).chain(allowed.iter().copied()).map(|number| (u64::from(number), word(number))).collect();
        let entries =
            Entries { direct: Some((0..).take(DIRECT).map(word).collect()), others: Arc::new(others), default: nobody };
        let table = HandlerTable::default();
        table.put(&entries);
        *table.inherited.locked() = entries;
        table
    }

    /// From now on every call except these ends the cage: see [`Handler::FORBIDDEN`]. The allowed
    /// ones keep their routes, and no writer changes that.
    pub fn confine(&self, allowed: &[u32]) {
        let mut inherited = self.inherited.locked();
        let forbidden = Handler::Grate { cage: Handler::FORBIDDEN, entry: 0, serialized: false }.pack();
        let word = |number| if allowed.contains(&number) { self.look_up(u64::from(number)) } else { forbidden };
        let direct: Box<[u64]> = (0..).take(DIRECT).map(word).collect();
        let others = (1000..1100_u64).map(|number| (number, forbidden)).collect();
        let entries = Entries { direct: Some(direct), others: Arc::new(others), default: forbidden };
        self.put(&entries);
        *inherited = entries;
    }

    /// The destination of calls with this number.
    #[inline]
    pub fn get(&self, number: u32) -> Handler {
        self.packed(number).handler()
    }

    /// The destination of calls with this number, in one word.
    #[inline]
    pub fn packed(&self, number: u32) -> Packed {
        // Entries below DIRECT already include the default, so that the common path is one load.
        Packed(match self.direct.get(number as usize) {
            Some(word) => word.load(Ordering::Acquire),
            None => self.look_up(u64::from(number)),
        })
    }

    /// Whether calls of this number are known at once to go to the kernel.
    #[inline]
    pub fn is_kernels(&self, number: u32) -> bool {
        self.direct.get(number as usize).is_some_and(|word| word.load(Ordering::Acquire) == Handler::KERNEL)
    }

    /// The destination of calls with this number, for numbers of any width. [`NR_ANY`] is the
    /// default entry.
    pub fn get_wide(&self, number: u64) -> Handler {
        Handler::unpack(self.look_up(number))
    }

    fn look_up(&self, number: u64) -> u64 {
        if let Some(word) = usize::try_from(number).ok().and_then(|n| self.direct.get(n)) {
            return word.load(Ordering::Acquire);
        }
        let default = self.default.load(Ordering::Acquire);
        if number == u64::from(NR_ANY) {
            return default;
        }
        let own = self.others.load().get(&number).copied();
        own.unwrap_or(if outside_default(number) { Handler::KERNEL } else { default })
    }

    /// A table that starts as a copy of this one, inherited.
    pub fn inherit(&self) -> HandlerTable {
        let entries = self.entries();
        let child = HandlerTable::default();
        child.put(&entries);
        *child.inherited.locked() = entries;
        child
    }

    /// Makes this table equal to `source`, if `allowed` agrees. `allowed` gets true if the new
    /// table sends any call to a grate, and that fact holds until the table has been replaced.
    ///
    /// # Errors
    /// The errors of `allowed`.
    pub fn replace<E>(
        &self,
        source: &HandlerTable,
        allowed: impl FnOnce(bool) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let entries = source.entries();
        let writer = self.inherited.locked();
        allowed(self.sends_to_grate(&writer))?;
        self.put(&entries);
        Ok(())
    }

    /// Stores entries; the caller has the writers' lock, or a table that no other thread knows.
    fn put(&self, entries: &Entries) {
        for (number, word) in self.direct.iter().enumerate() {
            let entry = entries.direct.as_ref().map_or(Handler::KERNEL, |direct| direct[number]);
            if word.load(Ordering::Relaxed) != entry {
                word.store(entry, Ordering::Release);
            }
        }
        self.others.store(Arc::clone(&entries.others));
        self.default.store(entries.default, Ordering::Release);
    }

    /// Whether any call goes to a grate, be it by birth or since.
    pub fn has_grate(&self) -> bool {
        self.sends_to_grate(&self.inherited.locked())
    }

    /// Whether any call goes to a grate; the caller has the writers' lock.
    fn sends_to_grate(&self, _: &MutexGuard<'_, Entries>) -> bool {
        let others = self.others.load();
        self.words().chain(others.values().copied()).any(|word| word != Handler::KERNEL)
    }

    /// The grates that any call goes to.
    pub fn grates(&self) -> Vec<CageId> {
        let _writer = self.inherited.locked();
        let others = self.others.load();
        let mut grates: Vec<_> = self
            .words()
            .chain(others.values().copied())
            .filter_map(|word| match Handler::unpack(word) {
                Handler::Grate { cage, .. } => Some(cage),
                Handler::Kernel => None,
            })
            .collect();
        grates.sort_unstable();
        grates.dedup();
        grates
    }

    /// The direct entries and the default one.
    fn words(&self) -> impl Iterator<Item = u64> {
        self.direct.iter().chain([&self.default]).map(|word| word.load(Ordering::Acquire))
    }

    /// Changes an entry, if `allowed` agrees to replace the present handler. Finding the old entry
    /// and storing the new one are one step against other writers.
    ///
    /// # Errors
    /// The errors of `allowed`.
    pub fn set<E>(
        &self,
        number: u64,
        handler: Change,
        allowed: impl FnOnce(Handler) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let inherited = self.inherited.locked();
        allowed(self.get_wide(number))?;
        let word = match handler {
            Change::To(handler) => handler.pack(),
            Change::Inherited => inherited.word(number),
        };
        if let Some(entry) = usize::try_from(number).ok().and_then(|n| self.direct.get(n)) {
            entry.store(word, Ordering::Release);
        } else {
            let mut others = BTreeMap::clone(&self.others.load());
            others.insert(number, word);
            self.others.store(Arc::new(others));
        }
        Ok(())
    }

    /// Sets the default entry, if `allowed` agrees to replace the present one. It takes over every
    /// number, except those outside the default, whose present handler `covers` (given the number
    /// and that handler) accepts: those to which the new handler can forward.
    ///
    /// # Errors
    /// The errors of `allowed`.
    pub fn set_default<E>(
        &self,
        change: Change,
        allowed: impl FnOnce(Handler) -> std::result::Result<(), E>,
        covers: impl Fn(u64, Handler) -> bool,
    ) -> std::result::Result<(), E> {
        let inherited = self.inherited.locked();
        let old = self.default.load(Ordering::Acquire);
        allowed(Handler::unpack(old))?;
        let new = match change {
            Change::To(handler) => handler.pack(),
            Change::Inherited => inherited.default,
        };
        let replace = |number: u64, word: u64| match change {
            _ if outside_default(number) => word,
            Change::To(_) if covers(number, Handler::unpack(word)) => new,
            Change::Inherited if word == old => inherited.word(number),
            _ => word,
        };
        for (number, entry) in self.direct.iter().enumerate() {
            entry.store(replace(number as u64, entry.load(Ordering::Acquire)), Ordering::Release);
        }
        let others = self.others.load().iter().map(|(&n, &word)| (n, replace(n, word))).collect();
        self.others.store(Arc::new(others));
        self.default.store(new, Ordering::Release);
        Ok(())
    }

    fn entries(&self) -> Entries {
        let _writer = self.inherited.locked();
        let direct = || self.direct.iter().map(|word| word.load(Ordering::Acquire));
        Entries {
            direct: direct().any(|word| word != Handler::KERNEL).then(|| direct().collect()),
            others: self.others.load_full(),
            default: self.default.load(Ordering::Acquire),
        }
    }
}

/// The new entry for [`HandlerTable::set`].
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// This handler.
    To(Handler),
    /// The entry that the cage was born with.
    Inherited,
}

impl Entries {
    fn word(&self, number: u64) -> u64 {
        if number == u64::from(NR_ANY) {
            return self.default;
        }
        if let Some(at) = usize::try_from(number).ok().filter(|&at| at < DIRECT) {
            // It holds the default already.
            return self.direct.as_ref().map_or(Handler::KERNEL, |direct| direct[at]);
        }
        // An absent entry means the default of that time.
        let absent = if outside_default(number) { Handler::KERNEL } else { self.default };
        self.others.get(&number).copied().unwrap_or(absent)
    }
}

#[cfg(test)]
mod tests;
