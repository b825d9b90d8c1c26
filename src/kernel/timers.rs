//! The kernel's alarm clock: a thread that sends the signals of timers when they are due.
//!
//! A timer belongs to a cage ([`crate::cage::timer`]); the clock knows it weakly, by the time at which it has to be looked at
//! next. The thread exists once there has been a timer.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::Kernel;
use crate::cage::timer::Timer;
use crate::host::clock;

/// Nanoseconds of a clock. In 128 bits nothing overflows.
pub(crate) type Nanos = i128;

/// What is due when.
#[derive(Default)]
pub(crate) struct Timers {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    /// By time of the monotonic clock; the number keeps entries of the same time apart.
    due: BTreeMap<(Nanos, u64), Weak<Timer>>,
    last: u64,
    running: bool,
}

/// Now, on the monotonic clock.
pub(crate) fn now() -> Nanos {
    let time = clock::gettime(libc::CLOCK_MONOTONIC).expect("the host has a monotonic clock");
    Nanos::from(time.sec) * 1_000_000_000 + Nanos::from(time.nsec)
}

impl Timers {
    /// Has `timer` looked at when the monotonic clock says `at`.
    pub fn look_at(&self, kernel: &Arc<Kernel>, timer: &Arc<Timer>, at: Nanos) {
        let mut state = self.state();
        state.last += 1;
        let key = (at, state.last);
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

    /// Waits until something is due, but not for ever; takes it out.
    fn next(&self) -> Option<Weak<Timer>> {
        const LONGEST: Duration = Duration::from_secs(1);
        let mut state = self.state();
        let now = now();
        let until = match state.due.first_key_value() {
            Some(((at, _), _)) if *at <= now => return state.due.pop_first().map(|(_, timer)| timer),
            Some(((at, _), _)) => u64::try_from(*at - now).map_or(LONGEST, Duration::from_nanos),
            None => LONGEST,
        };
        drop(self.more.wait_timeout(state, until.min(LONGEST)).unwrap_or_else(PoisonError::into_inner));
        None
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(kernel: &Weak<Kernel>) {
    while let Some(kernel) = kernel.upgrade() {
        if let Some(timer) = kernel.timers.next().and_then(|timer| timer.upgrade()) {
            timer.look(&kernel);
        }
    }
}
