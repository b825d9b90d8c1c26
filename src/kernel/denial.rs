//! Denials that grates report, and their way to the process that started the runner. Where that
//! wishes, a call waits for an answer before it is denied.
//!
//! The kernel knows which grate reports and about which client; the texts are the grate's, and may
//! have been taken from its client.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use lind_abi::layout::Timespec;
use lind_abi::{CageId, Errno, Result};
use rustix::time::ClockId;

use crate::Kernel;
use crate::cage::Cage;
use crate::call::Ctx;
use crate::event::Event;
use crate::lock::Locked;

/// The longest text: a path, and a description of the rule.
const MOST: usize = 16 << 10;

/// The most denials that cages can read of.
const EXPLAINED: usize = 16;

/// Something that was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denial {
    /// The program of the grate that reports it.
    pub grate: String,
    /// The cage whose call was refused.
    pub client: CageId,
    /// Its program.
    pub program: String,
    /// The number of the call; 0 if it was none.
    pub number: u64,
    /// The error it has failed with; none where programs were ended for it.
    pub error: Option<Errno>,
    /// The rule that was applied.
    pub rule: String,
    /// The subject of the call, such as a path or an address.
    pub what: String,
    /// The permission that would have to be granted.
    pub subject: String,
}

/// A call that waits for an answer.
pub struct Question {
    state: AtomicU8,
    changed: Event,
    end: Timespec,
}

/// The state of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Answer {
    /// Nobody has answered, and the call waits.
    None = 0,
    /// The call is allowed.
    Yes = 1,
    /// It is denied.
    No = 2,
    /// It does not wait any more: it was interrupted, or its time is over.
    Late = 3,
}

impl Question {
    /// A question that waits for so long.
    pub fn new(longest: Duration) -> Question {
        let now = rustix::time::clock_gettime(ClockId::Monotonic);
        let nsec = now.tv_nsec + i64::from(longest.subsec_nanos());
        let sec = now.tv_sec.saturating_add(i64::try_from(longest.as_secs()).unwrap_or(i64::MAX));
        let end = Timespec { sec: sec.saturating_add(nsec / 1_000_000_000), nsec: nsec % 1_000_000_000 };
        Question { state: AtomicU8::new(Answer::None as u8), changed: Event::default(), end }
    }

    /// Answers it; false if that comes too late.
    pub fn answer(&self, allows: bool) -> bool {
        let is_first = self.settle(if allows { Answer::Yes } else { Answer::No });
        self.changed.notify_all();
        is_first
    }

    /// Its answer so far.
    pub fn state(&self) -> Answer {
        match self.state.load(Ordering::SeqCst) {
            0 => Answer::None,
            1 => Answer::Yes,
            2 => Answer::No,
            _ => Answer::Late,
        }
    }

    fn settle(&self, answer: Answer) -> bool {
        self.state.compare_exchange(0, answer as u8, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Waits for the answer.
    fn wait(&self, cx: &Ctx<'_>) -> Result<Answer> {
        loop {
            let seen = self.changed.seen();
            if self.state() != Answer::None {
                return Ok(self.state());
            }
            match cx.blocking(|| self.changed.wait(seen, Some(&self.end))) {
                Ok(()) => {}
                // The answer was quicker.
                Err(_) if !self.settle(Answer::Late) => {}
                Err(Errno::ETIMEDOUT) => return Ok(Answer::Late),
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// The part of the embedder that calls wait for.
pub trait Ask: Send + Sync {
    /// Says whether a call waits before it is denied: a question that nobody has answered, or one
    /// with its answer. None: it does not wait.
    fn ask(&self, kernel: &Kernel, denial: &Denial) -> Option<Arc<Question>>;
    /// The call does not wait any more.
    fn over(&self, question: &Arc<Question>);
}

/// A callback that gets each denial.
pub type Listener = Box<dyn Fn(&Kernel, &Denial) + Send + Sync>;

impl Kernel {
    /// Makes `listener` get the denials of grates. Once.
    pub fn listen_to_denials(&self, listener: Listener) {
        let _ = self.denials.set(listener);
    }

    /// Makes calls wait for which `asks` has a question. Once.
    pub fn ask_before_denials(&self, asks: Arc<dyn Ask>) {
        let _ = self.asks.set(asks);
    }

    /// Reports a denial, where the call `may_wait` after it was allowed: true if it is.
    ///
    /// # Errors
    /// EOPNOTSUPP where nobody listens; EINTR if the call's thread has something else to do.
    pub(crate) fn denied(&self, cx: &Ctx<'_>, denial: &Denial, may_wait: bool) -> Result<bool> {
        let listener = self.denials.get().ok_or(Errno::EOPNOTSUPP)?;
        let asks = self.asks.get().filter(|_| may_wait);
        if let Some((asks, question)) = asks.and_then(|asks| Some((asks, asks.ask(self, denial)?))) {
            let answer = question.wait(cx);
            asks.over(&question);
            if answer? == Answer::Yes {
                return Ok(true);
            }
        }
        listener(self, denial);
        Ok(false)
    }

    /// Lets cages read of a denial, in /proc/lind/denials. `text` is escaped.
    pub fn explain_denial(&self, text: String) {
        let mut explained = self.explained.locked();
        explained.retain(|other| *other != text);
        explained.push_back(text);
        if explained.len() > EXPLAINED {
            explained.pop_front();
        }
    }

    /// The texts of the last denials.
    pub(crate) fn denials_explained(&self) -> Vec<u8> {
        self.explained.locked().iter().flat_map(|text| text.bytes()).collect()
    }

    /// The denial that the grate `grate` reports.
    ///
    /// # Errors
    /// EINVAL for texts that are none.
    pub(crate) fn denial(&self, grate: &Cage, client: &Cage, number: u64, error: u64, text: &[u8]) -> Result<Denial> {
        let mut texts = text.split(|&byte| byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
        let mut next = || texts.next().ok_or(Errno::EINVAL);
        let error = i32::try_from(error).map_err(|_| Errno::EINVAL)?;
        Ok(Denial {
            grate: program(self, grate),
            client: client.id,
            program: program(self, client),
            number,
            error: (error > 0).then(|| Errno::from_raw(error)),
            rule: next()?,
            what: next()?,
            subject: next()?,
        })
    }

    /// Checks that there is a listener, and that a text is not too long.
    pub(crate) fn takes_denial(&self, length: usize) -> Result<()> {
        match (self.denials.get(), length <= MOST) {
            (None, _) => Err(Errno::EOPNOTSUPP),
            (_, false) => Err(Errno::E2BIG),
            _ => Ok(()),
        }
    }
}

/// The name of a cage's program, as one would type it.
fn program(kernel: &Kernel, cage: &Cage) -> String {
    let (path, text) = {
        let settings = cage.settings();
        (settings.program.clone().into_bytes(), settings.text.clone())
    };
    // A grate that decides about paths runs the program it has found by a descriptor, and its
    // number would say nothing.
    let by_descriptor = text.filter(|_| path.starts_with(b"/dev/fd/"));
    let found = by_descriptor.and_then(|text| {
        let file = text.file().ok()?;
        kernel.root.certain_name_of(file.as_fd()).ok().or_else(|| in_memory(kernel, file.as_fd()))
    });
    let path = found.unwrap_or(path);
    let path = String::from_utf8_lossy(&path);
    let name = path.rsplit('/').next().unwrap_or_default();
    name.strip_suffix(".cwasm").or_else(|| name.strip_suffix(".wasm")).unwrap_or(name).to_owned()
}

/// The name of a file in memory: a grate's copy of a program has that program's name.
fn in_memory(kernel: &Kernel, file: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let name = kernel.root.host_name(file).ok()?.into_bytes();
    Some(name.strip_prefix(b"/memfd:")?.strip_suffix(b" (deleted)")?.to_vec())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use lind_abi::{Errno, nr};

    use crate::root::Walls;
    use crate::testing::in_world;

    #[test]
    fn a_grate_speaks_of_those_behind_it_alone() {
        in_world(Walls::Openat2, |w| {
            let (child, heard) = (w.sibling(), Arc::new(Mutex::new(Vec::new())));
            let id = i64::from(child.thread.cage.id.0);
            let text = w.data(b"rule\0what\0subject\0");
            assert_eq!(w.err(nr::denied, &[id, 2, 13, text, 18]), Errno::EOPNOTSUPP);
            let list = Arc::clone(&heard);
            w.kernel.listen_to_denials(Box::new(move |_, denial| list.lock().unwrap().push(denial.clone())));
            w.ok(nr::denied, &[id, 2, 13, text, 18]);
            assert_eq!(w.err(nr::denied, &[id, 2, 13, text, 4]), Errno::EINVAL);
            assert_eq!(w.err(nr::denied, &[id, 2, 13, text, 1 << 40]), Errno::E2BIG);
            assert_eq!(w.err(nr::denied, &[id, 2, 13, 8, 18]), Errno::EFAULT);
            assert_eq!(w.err(nr::denied, &[id, 2, -1, text, 18]), Errno::EINVAL);
            assert_eq!(w.err(nr::denied, &[9999, 2, 13, text, 18]), Errno::ESRCH);
            assert_eq!(child.err(nr::denied, &[i64::from(w.thread.cage.id.0), 2, 13, text, 18]), Errno::EPERM);
            let heard = heard.lock().unwrap();
            assert_eq!(heard.len(), 1);
            assert_eq!((&*heard[0].rule, &*heard[0].subject, heard[0].error), ("rule", "subject", Some(Errno::EACCES)));
        });
    }
}
