//! Signals that wait: of each standard signal one, of each real-time signal as many as were sent.

use std::collections::VecDeque;

use lind_abi::{Errno, Result};

use super::{Info, bit};

/// The first real-time signal.
pub(super) const FIRST_REALTIME: u8 = 32;

/// The signals of faults, which come before all others: SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE,
/// SIGSYS.
const FAULTS: u64 = bit(11) | bit(7) | bit(4) | bit(5) | bit(8) | bit(31);

/// Pending signals of a thread or a cage, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    infos: VecDeque<Info>,
    bits: u64,
}

impl Queue {
    /// The signals that are in it.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// How many wait with their info.
    pub fn len(&self) -> usize {
        self.infos.len()
    }

    /// Adds a signal, unless it is a standard one that waits already.
    ///
    /// # Errors
    /// EAGAIN when `limit` wait and the sender has to know: for real-time signals that were not
    /// sent by kill(2). Others are kept without their info.
    pub fn push(&mut self, info: Info, limit: u64) -> Result<()> {
        let mask = bit(info.signal);
        if info.signal < FIRST_REALTIME && self.bits & mask != 0 {
            return Ok(());
        }
        let standard_from_kernel = info.signal < FIRST_REALTIME && info.code >= 0;
        if (self.infos.len() as u64) < limit || standard_from_kernel {
            self.infos.push_back(info);
        } else if info.signal >= FIRST_REALTIME && info.code != Info::SI_USER {
            return Err(Errno::EAGAIN);
        }
        self.bits |= mask;
        Ok(())
    }

    /// Adds to the overrun of a timer whose signal is in it; false if it is not.
    pub fn count_overrun(&mut self, timer: u32, times: i32) -> bool {
        let of_timer = |info: &&mut Info| info.code == Info::SI_TIMER && info.fields[0] == timer;
        let Some(info) = self.infos.iter_mut().find(of_timer) else { return false };
        info.fields[1] = info.fields[1].saturating_add(times.unsigned_abs()).min(i32::MAX.unsigned_abs());
        true
    }

    /// Drops the signal of a timer, and returns which one it was.
    pub fn forget_timer(&mut self, timer: u32) -> Option<u8> {
        let of_timer = |info: &Info| info.code == Info::SI_TIMER && info.fields[0] == timer;
        let at = self.infos.iter().position(of_timer)?;
        let signal = self.infos.remove(at)?.signal;
        if !self.infos.iter().any(|info| info.signal == signal) {
            self.bits &= !bit(signal);
        }
        Some(signal)
    }

    /// Takes the first signal to be delivered out of those in `wanted`.
    pub fn take(&mut self, wanted: u64) -> Option<Info> {
        let ready = self.bits & wanted;
        let first = if ready & FAULTS != 0 { ready & FAULTS } else { ready };
        let signal = u8::try_from(first.trailing_zeros()).ok().filter(|&zeros| zeros < 64)? + 1;
        let found = self.infos.iter().position(|info| info.signal == signal);
        let info = found.and_then(|at| self.infos.remove(at)).unwrap_or_else(|| Info::lost(signal));
        if !self.infos.iter().any(|info| info.signal == signal) {
            self.bits &= !bit(signal);
        }
        Some(info)
    }

    /// Drops signals.
    pub fn remove(&mut self, signals: u64) {
        if self.bits & signals != 0 {
            self.infos.retain(|info| bit(info.signal) & signals == 0);
            self.bits &= !signals;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(signal: u8, value: u32) -> Info {
        Info { code: Info::SI_QUEUE, fields: [value, 0, 0, 0, 0, 0, 0], ..Info::kernel(signal) }
    }

    #[test]
    fn standard_signals_wait_once_and_real_time_ones_in_order() {
        let mut queue = Queue::default();
        for value in 0..3 {
            queue.push(info(12, value), 100).unwrap();
            queue.push(info(40, value), 100).unwrap();
        }
        queue.push(info(11, 9), 100).unwrap();
        assert_eq!(queue.bits(), bit(11) | bit(12) | bit(40));
        let order: Vec<_> = std::iter::from_fn(|| queue.take(!0)).map(|i| (i.signal, i.fields[0])).collect();
        assert_eq!(order, [(11, 9), (12, 0), (40, 0), (40, 1), (40, 2)]);
        assert_eq!(queue.bits(), 0);
    }

    #[test]
    fn a_full_queue_loses_infos_not_signals() {
        let mut queue = Queue::default();
        queue.push(info(40, 1), 1).unwrap();
        assert_eq!(queue.push(info(40, 2), 1), Err(Errno::EAGAIN));
        queue.push(Info { code: Info::SI_USER, ..info(41, 7) }, 1).unwrap();
        queue.push(info(10, 7), 1).unwrap();
        assert_eq!(queue.take(bit(41)), Some(Info::lost(41)));
        assert_eq!(queue.take(bit(10)), Some(Info::lost(10)));
        assert_eq!(queue.take(!bit(40)), None);
        assert_eq!(queue.take(!0), Some(info(40, 1)));
        assert_eq!(queue.take(!0), None);
    }

    #[test]
    fn the_signal_of_a_timer_is_forgotten_alone() {
        let mut queue = Queue::default();
        for timer in 1..3 {
            queue.push(Info::timer(40, timer, 0, 7), 9).unwrap();
        }
        queue.push(info(40, 1), 9).unwrap();
        assert_eq!((queue.forget_timer(1), queue.forget_timer(1), queue.forget_timer(2)), (Some(40), None, Some(40)));
        assert_eq!((queue.bits(), queue.take(!0), queue.take(!0)), (bit(40), Some(info(40, 1)), None));
        queue.push(Info::timer(14, 3, 0, 3), 9).unwrap();
        assert_eq!((queue.forget_timer(3), queue.bits()), (Some(14), 0));
    }

    #[test]
    fn what_is_removed_is_gone() {
        let mut queue = Queue::default();
        for value in 0..2 {
            queue.push(info(40, value), 9).unwrap();
            queue.push(info(10, value), 9).unwrap();
        }
        queue.remove(bit(40) | bit(3));
        assert_eq!((queue.take(bit(40)), queue.bits()), (None, bit(10)));
    }
}
