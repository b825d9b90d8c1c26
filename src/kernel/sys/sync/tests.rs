//! Futexes, seen from a guest.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lind_abi::layout::Timespec;
use lind_abi::nr::futex;
use lind_abi::{Errno, Word};

use crate::root::Walls;
use crate::testing::{NoHop, Plain, World, in_world};

const WAIT: i64 = 0;
const WAKE: i64 = 1;
const REQUEUE: i64 = 3;
const CMP_REQUEUE: i64 = 4;
const WAKE_OP: i64 = 5;
const LOCK_PI: i64 = 6;
const UNLOCK_PI: i64 = 7;
const TRYLOCK_PI: i64 = 8;
const WAIT_BITSET: i64 = 9;
const PRIVATE: i64 = 128;
const REALTIME: i64 = 256;

/// Another thread of the cage that waits on a word, and what that comes to.
fn waiter(w: &World, word: i64) -> std::thread::JoinHandle<i64> {
    let (kernel, thread) = (Arc::clone(&w.kernel), w.thread.cage.new_thread(&w.kernel).unwrap());
    std::thread::spawn(move || {
        let args = [word, WAIT | PRIVATE, 7, 0, 0, 0].map(i64::cast_unsigned);
        crate::call::syscall(&Plain { kernel, thread, hop: NoHop::default() }, futex, &Word::six(args))
    })
}

/// Repeats a call until it has found a waiting thread.
fn until_one(w: &World, args: &[i64]) {
    let start = Instant::now();
    while w.ok(futex, args) == 0 {
        assert!(start.elapsed() < Duration::from_secs(10), "nobody waits");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A thread that waited on `word` and was moved by `requeue` to another. If Linux moves a thread
/// that is just about to sleep, it takes it for one that was woken for nothing, and lets it wait
/// again at the old word: then another thread is tried.
fn moved(w: &World, word: i64, requeue: &[i64]) -> std::thread::JoinHandle<i64> {
    loop {
        let waiting = waiter(w, word);
        until_one(w, requeue);
        std::thread::sleep(Duration::from_millis(1));
        if w.ok(futex, &[word, WAKE | PRIVATE, 1]) == 0 {
            return waiting;
        }
        waiting.join().unwrap();
    }
}

#[test]
fn a_waiter_is_woken() {
    in_world(Walls::Chroot, |w| {
        let words = w.value(&[7_u32, 9]);
        let waiting = waiter(w, words);
        until_one(w, &[words, WAKE | PRIVATE, 1]);
        assert_eq!(waiting.join().unwrap(), 0);
        // The waiter is moved by way of another word.
        let waiting = moved(w, words, &[words, REQUEUE | PRIVATE, 0, 1, words + 4]);
        assert_eq!(w.ok(futex, &[words + 4, WAKE | PRIVATE, 1]), 1);
        assert_eq!(waiting.join().unwrap(), 0);
        let waiting = moved(w, words, &[words, CMP_REQUEUE | PRIVATE, 0, 1, words + 4, 7]);
        // FUTEX_OP(SET, 5, CMP_EQ, 9): the second word was 9, so its waiters wake too.
        assert_eq!(w.ok(futex, &[words, WAKE_OP | PRIVATE, 1, 1, words + 4, 5 << 12 | 9]), 1);
        assert_eq!(waiting.join().unwrap(), 0);
        assert_eq!(w.load::<u32>(words + 4), 5);
        assert_eq!(w.err(futex, &[words, CMP_REQUEUE | PRIVATE, 0, 1, words + 4, 8]), Errno::EAGAIN);
    });
}

#[test]
fn waits_end_by_time() {
    in_world(Walls::Chroot, |w| {
        let word = w.value(&7_u32);
        let time = w.value(&Timespec { sec: 0, nsec: 5_000_000 | -1 << 32 });
        let start = Instant::now();
        assert_eq!(w.err(futex, &[word, WAIT | PRIVATE, 7, time]), Errno::ETIMEDOUT);
        assert!(start.elapsed() >= Duration::from_millis(5));
        assert_eq!(w.err(futex, &[word, WAIT, 8, time]), Errno::EAGAIN);
        for op in [WAIT_BITSET, WAIT_BITSET | REALTIME] {
            assert_eq!(w.err(futex, &[word, op, 7, time, 0, 1]), Errno::ETIMEDOUT);
        }
        for (sec, nsec) in [(-1, 0), (0, 1_000_000_000)] {
            let time = w.value(&Timespec { sec, nsec });
            assert_eq!(w.err(futex, &[word, WAIT, 7, time]), Errno::EINVAL);
        }
    });
}

/// The word is the guest's: whatever holder it names, no thread waits for one that does not exist.
#[test]
fn a_lock_that_inherits_is_held_by_a_thread() {
    in_world(Walls::Chroot, |w| {
        let word = w.value(&0_u32);
        let own = w.thread.tid;
        assert_eq!(w.ok(futex, &[word, LOCK_PI | PRIVATE]), 0);
        assert_eq!(w.load::<u32>(word), own);
        assert_eq!(w.err(futex, &[word, LOCK_PI | PRIVATE]), Errno::EDEADLK);
        assert_eq!(w.ok(futex, &[word, UNLOCK_PI | PRIVATE]), 0);
        assert_eq!(w.load::<u32>(word), 0);
        assert_eq!(w.err(futex, &[word, UNLOCK_PI | PRIVATE]), Errno::EPERM);
        // Held by a thread that there is: another one of the cage.
        let other = w.thread.cage.new_thread(&w.kernel).unwrap();
        let (word, soon) = (w.value(&other.tid), w.value(&Timespec { sec: 0, nsec: 1 }));
        assert_eq!(w.err(futex, &[word, TRYLOCK_PI]), Errno::EAGAIN);
        assert_eq!(w.err(futex, &[word, LOCK_PI, 0, soon]), Errno::ETIMEDOUT);
        assert_eq!(w.load::<u32>(word), other.tid | 1 << 31);
        // Held by no thread, and by one that has died.
        let word = w.value(&0x3fff_0000_u32);
        assert_eq!(w.err(futex, &[word, LOCK_PI]), Errno::ESRCH);
        let word = w.value(&(1_u32 << 30));
        assert_eq!(w.ok(futex, &[word, TRYLOCK_PI]), 0);
        assert_eq!(w.load::<u32>(word), own | 1 << 30);
        for op in [LOCK_PI, UNLOCK_PI, TRYLOCK_PI] {
            assert_eq!(w.err(futex, &[word + 2, op]), Errno::EINVAL, "{op}");
            assert_eq!(w.err(futex, &[1 << 32, op]), Errno::EFAULT, "{op}");
        }
    });
}

#[test]
fn words_are_claims() {
    in_world(Walls::Chroot, |w| {
        let word = w.value(&7_u32);
        for op in [WAIT, WAKE, WAIT_BITSET, REQUEUE] {
            assert_eq!(w.err(futex, &[word + 2, op, 7, 0, word, 1]), Errno::EINVAL, "{op}");
            assert_eq!(w.err(futex, &[1 << 32, op, 7, 0, word, 1]), Errno::EFAULT, "{op}");
            assert_eq!(w.err(futex, &[-4, op, 7, 0, word, 1]), Errno::EFAULT, "{op}");
        }
        assert_eq!(w.err(futex, &[16, WAIT, 7]), Errno::EFAULT);
        assert_eq!(w.err(futex, &[word, REQUEUE, 0, 1, 1 << 40, 0]), Errno::EFAULT);
        assert_eq!(w.err(futex, &[word, WAIT | REALTIME, 7]), Errno::ENOSYS);
        assert_eq!(w.err(futex, &[word, 100, 0]), Errno::ENOSYS);
        assert_eq!(w.err(futex, &[word, WAIT_BITSET, 7, 0, 0, 0]), Errno::EINVAL);
    });
}
