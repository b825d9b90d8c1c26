//! The stage of a cage's life: alive, retired as a grate, dead.

use std::sync::atomic::{AtomicU8, Ordering};

/// The stages of a cage's life, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Life {
    /// It runs, and handlers of its program answer calls.
    Alive,
    /// Its functions were handlers until it ran another program: it can never be a grate again.
    /// Reached under [`Cage::family`](super::Cage).
    Retired,
    /// It has ended, or is about to: no more of its threads begin.
    Dead,
}

/// A [`Life`] that every call of a grate looks at.
pub(super) struct Stage(AtomicU8);

impl Default for Stage {
    fn default() -> Stage {
        Stage(AtomicU8::new(Life::Alive as u8))
    }
}

impl Stage {
    /// Goes on to `life`, unless it is further already.
    pub fn reach(&self, life: Life) {
        self.0.fetch_max(life as u8, Ordering::AcqRel);
    }

    /// Whether `life` has been reached.
    #[inline]
    pub fn has_reached(&self, life: Life) -> bool {
        self.0.load(Ordering::Acquire) >= life as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_never_goes_back() {
        let stage = Stage::default();
        assert!(stage.has_reached(Life::Alive) && !stage.has_reached(Life::Retired));
        stage.reach(Life::Dead);
        stage.reach(Life::Retired);
        assert!(stage.has_reached(Life::Retired) && stage.has_reached(Life::Dead));
    }
}
