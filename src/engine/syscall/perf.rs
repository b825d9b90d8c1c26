//! Counts and times the calls that cross from guests to the kernel, for `lind-boot --perf`.
//!
//! A time includes everything below: for a call that a grate answers, the grate's time and that of
//! the calls it makes. Each measurement takes two clock readings and two locks, so short calls look
//! longer than they are; without `--perf` this code is not on the path at all.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use lind_abi::CageId;
use lind_kernel::threei::Handler;

use crate::run::guest::Guest;
use lind_kernel::lock::Locked;

/// Counters, shared by all threads.
#[derive(Debug, Default)]
pub struct Perf {
    rows: Mutex<BTreeMap<Key, Times>>,
    programs: Mutex<BTreeMap<CageId, String>>,
}

/// The key of a row: the calls that it counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    /// The cage that made the calls.
    pub cage: CageId,
    /// The grate that its table sent them to; None for the kernel.
    pub grate: Option<CageId>,
    /// The number.
    pub nr: u32,
}

/// The number and the times of the calls of a row.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The number of calls.
    pub count: u64,
    /// The sum of their times.
    pub total: Duration,
    /// The shortest time.
    pub least: Duration,
    /// The longest time.
    pub most: Duration,
}

impl Perf {
    /// The rows so far.
    pub fn rows(&self) -> Vec<(Key, Times)> {
        self.rows.locked().iter().map(|(&key, &times)| (key, times)).collect()
    }

    /// The path of the program that a cage ran last: before its own, that may have been its
    /// starter's.
    pub fn program(&self, cage: CageId) -> Option<String> {
        self.programs.locked().get(&cage).cloned()
    }

    /// Begins to time a call that `guest` makes.
    pub(crate) fn begin(&self, guest: &Guest, nr: u32) -> Timing {
        let cage = &guest.thread.cage;
        let grate = match cage.handlers.get(nr) {
            Handler::Kernel => None,
            Handler::Grate { cage, .. } => Some(cage),
        };
        let mut programs = self.programs.locked();
        let known = programs.entry(cage.id).or_default();
        let settings = cage.settings();
        if known.as_bytes() != settings.program.to_bytes() {
            *known = settings.program.to_string_lossy().into_owned();
        }
        drop(settings);
        drop(programs);
        Timing { key: Key { cage: cage.id, grate, nr }, start: Instant::now() }
    }

    /// Ends the timing of a call.
    pub(crate) fn end(&self, timing: &Timing) {
        let took = timing.start.elapsed();
        let mut rows = self.rows.locked();
        let times =
            rows.entry(timing.key).or_insert(Times { count: 0, total: Duration::ZERO, least: took, most: took });
        times.count += 1;
        times.total += took;
        times.least = times.least.min(took);
        times.most = times.most.max(took);
    }
}

/// A call under way.
pub(crate) struct Timing {
    key: Key,
    start: Instant,
}
