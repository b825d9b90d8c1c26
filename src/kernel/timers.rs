//! The kernel's alarm clock: a thread that sends the signals of timers when they are due.
//!
//! A timer belongs to a cage ([`crate::cage::timer`]); the clock holds it weakly, in at most one
//! entry, by the time at which it has to be looked at next. The thread is started with the first
//! timer. It serves all cages, so none may use much of it: [`Pace`].

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::Duration;

use crate::Kernel;
use crate::cage::timer::Timer;
use crate::host::clock;
use crate::lock::{Locked, unpoisoned};

/// Nanoseconds of a clock. In 128 bits nothing overflows.
pub(crate) type Nanos = i128;

/// The pending timers, by the time at which they are due.
#[derive(Default)]
pub(crate) struct Timers {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    /// By time of the monotonic clock; the address of the timer distinguishes entries of the same
    /// time. An entry keeps the address from being used again.
    due: BTreeMap<(Nanos, usize), Weak<Timer>>,
    running: bool,
}

/// When a timer is looked at next. Read and written under the lock of the clock.
#[derive(Default)]
pub(crate) struct Entry(Mutex<Option<Nanos>>);

impl Entry {
    fn at(&self) -> MutexGuard<'_, Option<Nanos>> {
        self.0.locked()
    }
}

/// Now, on the monotonic clock.
pub(crate) fn now() -> Nanos {
    let time = clock::gettime(libc::CLOCK_MONOTONIC).expect("the host has a monotonic clock");
    Nanos::from(time.sec) * 1_000_000_000 + Nanos::from(time.nsec)
}

impl Timers {
    /// Makes the clock look at `timer` at the time `at` instead of the earlier one.
    pub fn look_at(&self, kernel: &Arc<Kernel>, timer: &Arc<Timer>, at: Nanos) {
        let address = Arc::as_ptr(timer).addr();
        let mut state = self.state();
        if let Some(before) = timer.entry.at().replace(at) {
            state.due.remove(&(before, address));
        }
        let key = (at, address);
        let first = state.due.first_key_value().is_none_or(|(earliest, _)| key < *earliest);
        state.due.insert(key, Arc::downgrade(timer));
        if !state.running {
            let kernel = Arc::downgrade(kernel);
            let clock = std::thread::Builder::new().name("timers".to_owned()).stack_size(128 << 10);
            state.running = clock.spawn(move || serve(&kernel)).is_ok();
        } else if first {
            self.more.notify_one();
        }
    }

    /// Forgets a timer that is stopped or gone.
    pub fn forget(&self, timer: &Timer) {
        let mut state = self.state();
        if let Some(at) = timer.entry.at().take() {
            state.due.remove(&(at, std::ptr::from_ref(timer).addr()));
        }
    }

    /// Waits until something is due, but not for ever; takes it out.
    fn next(&self) -> Option<Arc<Timer>> {
        const LONGEST: Duration = Duration::from_secs(1);
        let mut state = self.state();
        let now = now();
        let until = match state.due.first_key_value() {
            Some(((at, _), _)) if *at <= now => {
                let timer = state.due.pop_first().and_then(|(_, timer)| timer.upgrade());
                if let Some(timer) = &timer {
                    timer.entry.at().take();
                }
                // Should the timer be given up meanwhile, that happens where the lock is not held.
                drop(state);
                return timer;
            }
            Some(((at, _), _)) => u64::try_from(*at - now).map_or(LONGEST, Duration::from_nanos),
            None => LONGEST,
        };
        drop(unpoisoned(self.more.wait_timeout(state, until.min(LONGEST))));
        None
    }

    /// How many timers are waited for.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.state().due.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.locked()
    }
}

fn serve(kernel: &Weak<Kernel>) {
    while let Some(kernel) = kernel.upgrade() {
        if let Some(timer) = kernel.timers.next() {
            timer.look(&kernel);
        }
    }
}

/// A cage's share of the clock's thread. A look takes some microseconds, and more with many
/// threads; each costs about ten times that, and a cage that is further ahead than [`Pace::AHEAD`]
/// has its looks put off. So it gets about a tenth of the thread at most, however many timers it
/// has and however short they are; missed ones are overruns. Looks of all cages are put off to the
/// same times, since to sleep and wake for each would take longer than the looks.
#[derive(Default)]
pub(crate) struct Pace {
    /// The time up to which the cage has used its part.
    paid_until: Mutex<Nanos>,
}

impl Pace {
    /// The cost of a look.
    const LOOK: Nanos = 40_000;
    /// The additional cost for each thread of the cage, among which a taker is chosen, and for each
    /// listener for signals.
    const THREAD: Nanos = 1_000;
    /// The additional cost for each thread whose processor time is asked of the host.
    const ASKED: Nanos = 5_000;
    /// How far a cage may be ahead: a hundred looks at once.
    const AHEAD: Nanos = 5_000_000;
    /// Looks are put off to multiples of this.
    const GRID: Nanos = 2_000_000;
    /// A longer debt is forgiven, so that a cage that sets its timers again and again does not lose
    /// them.
    const FORGIVEN: Nanos = 100_000_000;

    /// Charges a look at `now`. None if it may be made; else the time at which it may be made,
    /// already charged.
    pub fn ask(&self, now: Nanos, threads: usize, asks: bool) -> Option<Nanos> {
        let threads = Nanos::try_from(threads).unwrap_or(Nanos::MAX >> 32);
        let cost = Pace::LOOK + threads * (Pace::THREAD + if asks { Pace::ASKED } else { 0 });
        let mut until = self.paid_until.locked();
        let from = (*until).max(now);
        *until = (from + cost).min(now + Pace::AHEAD + Pace::FORGIVEN);
        let later = (from - Pace::AHEAD + Pace::GRID - 1) / Pace::GRID * Pace::GRID;
        (from > now + Pace::AHEAD).then_some(later)
    }
}

#[cfg(test)]
mod tests {
    use super::{Nanos, Pace};

    #[test]
    fn a_cage_has_a_part_of_the_clock_and_no_more() {
        // A thousand timers that are always due, for a second.
        let pace = Pace::default();
        let (mut looks, mut due) = (0_i128, std::collections::BinaryHeap::new());
        due.extend((0..1000_u32).map(|timer| (std::cmp::Reverse(0_i128), timer, false)));
        while let Some((std::cmp::Reverse(at), timer, paid)) = due.pop() {
            if at > 1_000_000_000 {
                break;
            }
            match if paid { None } else { pace.ask(at, 1, false) } {
                Some(later) => due.push((std::cmp::Reverse(later), timer, true)),
                None => {
                    looks += 1;
                    due.push((std::cmp::Reverse(at + 1), timer, false));
                }
            }
        }
        let most = 1_000_000_000 / Pace::LOOK + Pace::AHEAD / Pace::LOOK;
        assert!(looks > most / 2 && looks <= most, "{looks} of {most}");
    }

    #[test]
    fn a_hundred_timers_of_ten_milliseconds_are_not_put_off() {
        let pace = Pace::default();
        for round in 0..1000 {
            for _ in 0..100 {
                assert_eq!(pace.ask(round * 10_000_000, 4, false), None);
            }
        }
    }

    #[test]
    fn what_was_used_too_much_is_forgiven() {
        let pace = Pace::default();
        for _ in 0..1_000_000 {
            pace.ask(0, 1024, true);
        }
        let free = Pace::FORGIVEN + Pace::AHEAD + Pace::GRID;
        assert!(pace.ask(0, 1, false).is_some_and(|later: Nanos| later <= free));
        assert_eq!(pace.ask(free, 1, false), None);
    }
}
