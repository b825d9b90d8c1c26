//! A budget of host mappings for the runner. The host counts them for the whole process
//! (vm.max_map_count), and at its limit even a small allocation of the runner's fails, so cages may
//! only use a part of it.
//!
//! This is one count for the process, as the host's is, for all kernels in it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use lind_abi::{Errno, Result};

use super::spare;

/// The host's default limit.
const USUAL: usize = 65530;

/// A cage or thread that has no more than this may use the last quarter, which others must leave.
const SMALL: usize = 256;

/// The host mappings of a guest thread: its stack and the one for signals with their guards, its
/// instance and exceptions.
const THREAD: usize = 12;

/// The host mappings of a further instance on a host thread.
const INSTANCE: usize = 4;

static USED: AtomicUsize = AtomicUsize::new(0);

/// The most host mappings of all cages and threads together: a sixth of the host's limit is left to
/// the runner itself.
fn most() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
        let allowed = text.trim().parse().unwrap_or(USUAL);
        allowed - allowed / 6
    })
}

/// Reads what the host allows, which behind the walls cannot be read.
pub fn learn() {
    most();
}

/// Whether there may soon be no room for something that is not asked for first.
pub fn is_short() -> bool {
    spare::is_limited() || USED.load(Ordering::Relaxed) > most() / 2
}

/// Whether a holder of `own` may have `more`.
fn has_room(own: usize, more: usize) -> bool {
    let all = most();
    let ends = if own.saturating_add(more) <= SMALL { all } else { all - all / 4 };
    USED.load(Ordering::Relaxed).saturating_add(more) <= ends
}

/// A part of the budget. It is given back on drop.
#[derive(Default, Debug)]
pub struct Share(usize);

impl Share {
    /// Whether the share may grow to `total`.
    pub fn has_room(&self, total: usize) -> bool {
        has_room(self.0, total.saturating_sub(self.0))
    }

    /// Sets the size of the share.
    pub fn set(&mut self, now: usize) {
        if now > self.0 {
            USED.fetch_add(now - self.0, Ordering::Relaxed);
        } else {
            USED.fetch_sub(self.0 - now, Ordering::Relaxed);
        }
        self.0 = now;
    }

    /// Takes the share of one more thread with such a stack, for a cage that has `threads` already.
    ///
    /// # Errors
    /// EAGAIN when there is not enough left.
    pub fn of_thread(threads: usize, stack: usize) -> Result<Share> {
        let mut share = Share::default();
        if !has_room(threads.saturating_mul(THREAD), THREAD) || spare::check(stack).is_err() {
            return Err(Errno::EAGAIN);
        }
        share.set(THREAD);
        Ok(share)
    }

    /// Takes the share of one more instance on a thread that has one: little, so that a grate can
    /// be entered as long as any is left.
    ///
    /// # Errors
    /// EAGAIN when there is not enough left.
    pub fn of_instance() -> Result<Share> {
        let mut share = Share::default();
        if !share.has_room(INSTANCE) || spare::check(0).is_err() {
            return Err(Errno::EAGAIN);
        }
        share.set(INSTANCE);
        Ok(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        // Other tests take and give meanwhile, but not that much.
        let slack = 4096;
        let before = USED.load(Ordering::Relaxed);
        let mut share = Share::default();
        share.set(10_000);
        share.set(20_000);
        assert!(USED.load(Ordering::Relaxed) + slack > before + 20_000);
        assert!(!share.has_room(20_000 + most()));
        drop(share);
        assert!(USED.load(Ordering::Relaxed) < before + slack);
    }

    #[test]
    fn the_last_quarter_is_for_the_small() {
        let mut large = Share::default();
        let mut end = 0;
        while large.has_room(end + 100) {
            end += 100;
            large.set(end);
        }
        assert!(end > SMALL && Share::default().has_room(100));
    }
}
