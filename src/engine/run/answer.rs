//! The answer of a new thread to the caller that starts it: whether it got all that it needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use lind_kernel::{Errno, Result};

/// How long the caller spins for the answer before it sleeps: it mostly comes about this soon.
const LOOKS: Duration = Duration::from_micros(50);

/// The longest wait. Only a program whose start function does not return takes longer: the thread
/// does run in this case.
const LONGEST: Duration = Duration::from_secs(1);

const NOT_YET: u8 = 0;
const YES: u8 = 1;
const NO: u8 = 2;

struct Said {
    what: AtomicU8,
    asks: Thread,
}

impl Said {
    /// Gives the answer; false if one was given before.
    fn say(&self, what: u8) -> bool {
        let first = self.what.compare_exchange(NOT_YET, what, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if first {
            self.asks.unpark();
        }
        first
    }
}

/// The new thread's end of the answer; dropped, it answers no.
pub struct Answer(Arc<Said>);

/// The caller's end of the answer; dropped, it counts as yes.
pub struct Asked(Arc<Said>);

/// An answer for the calling thread.
pub fn pair() -> (Answer, Asked) {
    let said = Arc::new(Said { what: AtomicU8::new(NOT_YET), asks: thread::current() });
    (Answer(Arc::clone(&said)), Asked(said))
}

impl Answer {
    /// Answers that the thread runs.
    pub fn yes(self) {
        self.0.say(YES);
    }

    /// Answers that the thread does not run. False if the caller has not waited, and so takes it to
    /// run.
    pub fn no(self) -> bool {
        self.0.say(NO)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.0.say(NO);
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.say(YES);
    }
}

impl Asked {
    /// Waits for the answer.
    ///
    /// # Errors
    /// EAGAIN if the answer is no.
    pub fn wait(&self) -> Result<()> {
        let since = Instant::now();
        loop {
            match self.0.what.load(Ordering::Acquire) {
                YES => return Ok(()),
                NO => return Err(Errno::EAGAIN),
                _ => {}
            }
            let waited = since.elapsed();
            if waited < LOOKS {
                thread::yield_now();
            } else if waited < LONGEST {
                thread::park_timeout(LONGEST - waited);
            } else {
                self.0.say(YES);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_first_holds() {
        let (answer, asked) = pair();
        answer.yes();
        assert_eq!(asked.wait(), Ok(()));
        let (answer, asked) = pair();
        drop(answer);
        assert_eq!(asked.wait(), Err(Errno::EAGAIN));
        let (answer, asked) = pair();
        assert!(answer.no());
        assert_eq!(asked.wait(), Err(Errno::EAGAIN));
        // Nobody waits, or not for so long.
        let (answer, asked) = pair();
        drop(asked);
        assert!(!answer.no());
        let (answer, asked) = pair();
        assert_eq!(asked.wait(), Ok(()));
        assert!(!answer.no());
    }
}
