//! Spinning: looks for a while before sleeping.
//!
//! To put a thread to sleep and to wake it again takes a host longer than most answers take to
//! come: in a virtual machine 20 to 30 us each way, while the answering thread is often running at
//! this moment. So a call that is going to wait first looks a few times whether the awaited event
//! has come. Guests cannot rely on anything that this changes: the call is made a little later. A
//! thread that looked in vain does so less and less often: at worst once in [`MOST`] + 1 waits.

use std::hint::spin_loop;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::call::Ctx;
use crate::host::wait::{self, Poll};
use lind_abi::Result;
use lind_abi::layout::Timespec;

/// How long a thread looks: longer than an answer takes from a thread that has to be woken first,
/// or two that wait for each other would never stop sleeping.
const LONGEST: Duration = Duration::from_micros(50);

/// The time for which looking pays: a longer wait might as well have slept.
const SOON: Duration = Duration::from_micros(15);

/// So often in a row things may come late before that counts as not coming.
const LATE: u32 = 8;

/// A reader that asks for more bytes than this reads a stream, and gets more at once if the stream
/// is given time to gather.
const STREAM: usize = 16 << 10;

/// So many waits pass without a look at most.
const MOST: u32 = 1023;

/// So many pass after one that had nothing to wait for.
const READY: u32 = 7;

/// How looking has paid for one thread and one kind of wait. Only that thread uses it.
#[derive(Debug, Default)]
pub struct SpinBackoff {
    /// How many waits are to pass without a look.
    pass: AtomicU32,
    /// How many passed after the last look in vain.
    last: AtomicU32,
    /// How often in a row something came late.
    late: AtomicU32,
}

/// The outcome of a look.
enum Found {
    /// It was there at once.
    Ready,
    /// It came soon.
    Came,
    /// It came, but not soon.
    Late,
    /// Nothing came.
    Nothing,
}

impl SpinBackoff {
    /// Whether to look in this wait.
    #[inline]
    fn is_turn(&self) -> bool {
        let pass = self.pass.load(Relaxed);
        self.pass.store(pass.saturating_sub(1), Relaxed);
        pass == 0
    }

    fn note(&self, found: &Found) {
        let late = if matches!(found, Found::Late) { self.late.load(Relaxed) + 1 } else { 0 };
        let pass = match found {
            Found::Ready => return self.pass.store(READY, Relaxed),
            Found::Late if late <= LATE => return self.late.store(late, Relaxed),
            Found::Came => 0,
            Found::Late | Found::Nothing => (self.last.load(Relaxed) * 2 + 1).min(MOST),
        };
        self.late.store(0, Relaxed);
        self.last.store(pass, Relaxed);
        self.pass.store(pass, Relaxed);
    }
}

/// Looks for as long as a thread is to look, or until it has something else to do.
fn look<T>(cx: &Ctx<'_>, between: u32, mut come: impl FnMut() -> Option<T>) -> (Found, Option<T>) {
    if let Some(it) = come() {
        return (Found::Ready, Some(it));
    }
    let start = Instant::now();
    loop {
        (0..between).for_each(|_| spin_loop());
        let it = come();
        let passed = start.elapsed();
        if it.is_some() {
            return (if passed < SOON { Found::Came } else { Found::Late }, it);
        }
        if passed > LONGEST || cx.has_signals() {
            return (Found::Nothing, None);
        }
    }
}

/// Before a wait for a word: returns when `changed`, or when it is time to sleep.
pub(crate) fn for_word(cx: &Ctx<'_>, mut changed: impl FnMut() -> bool) {
    let backoff = &cx.caller.backoff.word;
    if backoff.is_turn() {
        let (found, _) = look(cx, 16, || changed().then_some(()));
        // A look at a word costs nothing, so there is no reason to spare it.
        backoff.note(&if matches!(found, Found::Ready) { Found::Came } else { found });
    }
}

/// Called before a call that waits for input, of which it takes at most `bytes`: returns when there
/// is some, or when it is time to sleep.
pub(crate) fn for_input(cx: &Ctx<'_>, fd: BorrowedFd<'_>, bytes: usize) {
    let backoff = &cx.caller.backoff.file;
    if bytes > STREAM || !backoff.is_turn() {
        return;
    }
    let mut asked = [Poll::new(Some(fd), libc::POLLIN)];
    let mut ready = || wait::poll(&mut asked, Some(Timespec::default())) != Ok(0);
    if ready() {
        return backoff.note(&Found::Ready);
    }
    // The call is not going to wait.
    if rustix::fs::fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK)) {
        return backoff.note(&Found::Nothing);
    }
    let (found, _) = look(cx, 1, || ready().then_some(()));
    backoff.note(&if matches!(found, Found::Ready) { Found::Came } else { found });
}

/// Called before a call that waits for descriptors: returns the result of `poll`, which must not
/// wait. None when it is time to sleep.
pub(crate) fn for_events(cx: &Ctx<'_>, mut poll: impl FnMut() -> Result<usize>) -> Option<Result<usize>> {
    let backoff = &cx.caller.backoff.file;
    if !backoff.is_turn() {
        return None;
    }
    let (found, ready) = look(cx, 1, || Some(poll()).filter(|ready| *ready != Ok(0)));
    backoff.note(&found);
    ready
}

/// A thread's backoffs, by the kind of wait.
#[derive(Debug, Default)]
pub struct SpinBackoffs {
    word: SpinBackoff,
    file: SpinBackoff,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In how many of `waits` a thread looks that always finds the same.
    fn looks(waits: u32, found: &Found) -> u32 {
        let backoff = SpinBackoff::default();
        let mut looks = 0;
        for _ in 0..waits {
            if backoff.is_turn() {
                looks += 1;
                backoff.note(found);
            }
        }
        looks
    }

    #[test]
    fn a_thread_looks_as_often_as_that_pays() {
        assert_eq!(looks(1000, &Found::Came), 1000);
        assert_eq!(looks(1000, &Found::Ready), 125);
        // 1, 3, 7 ... 1023, 1023, ... pass.
        assert_eq!(looks(10 * 1024, &Found::Nothing), 10 + 9);
        // Each time eight more are looked for.
        assert_eq!(looks(10 * 1024, &Found::Late), (10 + 8) * 9);
    }

    #[test]
    fn one_success_makes_up_for_failures() {
        let backoff = SpinBackoff::default();
        (0..10).for_each(|_| backoff.note(&Found::Nothing));
        assert_eq!((0..1024).filter(|_| backoff.is_turn()).count(), 1);
        backoff.note(&Found::Came);
        assert!((0..10).all(|_| backoff.is_turn()));
    }
}
