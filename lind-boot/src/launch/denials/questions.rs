//! Calls that wait until somebody says whether they are denied.
//!
//! An answer holds for one call, for the process that made it and all that it starts, or for all.
//! A program is a process and all that it starts: no name that it could choose counts.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lind_abi::CageId;
use lind_kernel::Kernel;
use lind_kernel::denial::{Answer, Denial, Question};
use lind_kernel::lock::Locked;
use rustix::event::{EventfdFlags, eventfd};
use serde_json::{Value, json};

use super::text::{is_limit, object, shortened};

/// The most calls that wait at a time: others are denied at once.
const MOST: usize = 32;

/// The longest subject in a question, in bytes; its middle is left out beyond that.
const LONGEST: usize = 600;

/// The most answers that are remembered, and the most events that are kept.
const REMEMBERED: usize = 1000;
const EVENTS: usize = 512;

/// The calls that wait.
pub struct Questions {
    longest: Duration,
    /// How a user calls what asks.
    name: String,
    state: Mutex<State>,
    /// Written to when something has happened that somebody waits for.
    news: OwnedFd,
    awaited: AtomicBool,
}

#[derive(Default)]
struct State {
    open: Vec<Open>,
    remembered: VecDeque<Remembered>,
    /// The number of the last question.
    last: u64,
    events: VecDeque<Value>,
    /// How many events there were.
    happened: u64,
}

struct Open {
    number: u64,
    question: Arc<Question>,
    key: Key,
    client: CageId,
    object: Value,
    end: Instant,
}

/// The subject of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Key {
    grate: String,
    number: u64,
    about: String,
}

struct Remembered {
    key: Key,
    /// The process, with all that it starts; None for all.
    of: Option<CageId>,
    allows: bool,
}

/// How far an answer holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// The call is allowed.
    Once,
    /// And later ones of this process and all that it starts.
    Program,
    /// And of all.
    Session,
    /// It is denied, and later ones of this process and all that it starts.
    No,
}

impl How {
    /// The answer of this name.
    ///
    /// # Errors
    /// The names that there are.
    pub fn named(name: &str) -> Result<How> {
        let known = [("once", How::Once), ("program", How::Program), ("session", How::Session), ("no", How::No)];
        let found = known.iter().find(|(known, _)| *known == name);
        found.map(|(_, how)| *how).context("answer: expected once, program, session or no")
    }
}

/// The decision about a call.
pub enum Asked {
    /// An answer from before holds.
    Known(Arc<Question>),
    /// It waits; this line says so.
    New(Arc<Question>, String),
    /// It is denied at once.
    No,
}

impl Key {
    fn of(denial: &Denial) -> Key {
        let about = if denial.subject.is_empty() { &denial.what } else { &denial.subject };
        // The texts of the net grate begin with the verb and the protocol.
        let use_: Vec<_> = denial.what.split(' ').take(2).filter(|_| denial.grate.starts_with("net_")).collect();
        Key { grate: denial.grate.clone(), number: denial.number, about: format!("{} {about}", use_.join(" ")) }
    }
}

impl Questions {
    /// No questions yet. `name` is the session's or the run's.
    ///
    /// # Errors
    /// The host's error.
    pub fn new(name: &str, longest: Duration) -> std::io::Result<Questions> {
        let news = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (state, awaited, name) = (Mutex::default(), AtomicBool::new(false), name.to_owned());
        Ok(Questions { longest, name, state, news, awaited })
    }

    /// Asks about a call.
    pub fn ask(&self, kernel: &Kernel, denial: &Denial) -> Asked {
        if is_limit(denial) || denial.error.is_none() {
            return Asked::No;
        }
        let key = Key::of(denial);
        let client = kernel.cages.get(denial.client);
        let is_of = |of: CageId| client.as_ref().is_some_and(|client| client.id == of || client.descends_from(of));
        let mut state = self.state.locked();
        let mut holds = state.remembered.iter().rev().filter(|one| one.key == key && one.of.is_none_or(is_of));
        if let Some(answer) = holds.next() {
            if !answer.allows {
                return Asked::No;
            }
            let question = Question::new(Duration::ZERO);
            question.answer(true);
            return Asked::Known(Arc::new(question));
        }
        if state.open.len() >= MOST {
            return Asked::No;
        }
        state.last += 1;
        let (number, question) = (state.last, Arc::new(Question::new(self.longest)));
        let mut object: Value = serde_json::from_str(&object(denial)).unwrap_or_default();
        object["number"] = number.into();
        object["about"] = shortened(&denial.subject, LONGEST).into();
        let line = format!(
            "waiting for an answer: question {number}, for {} s: lind-boot session answer {} {number} once|program|session|no",
            self.longest.as_secs_f64().ceil(),
            self.name
        );
        let end = Instant::now() + self.longest;
        let open = Open { number, question: Arc::clone(&question), key, client: denial.client, object, end };
        let event = json!({"question": open.described()});
        state.open.push(open);
        self.happen(&mut state, event);
        Asked::New(question, line)
    }

    /// A question is over, whatever its answer is.
    pub fn over(&self, question: &Arc<Question>) {
        let mut state = self.state.locked();
        let Some(at) = state.open.iter().position(|open| Arc::ptr_eq(&open.question, question)) else { return };
        let open = state.open.remove(at);
        let answer = match question.state() {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::None | Answer::Late => "late",
        };
        self.happen(&mut state, json!({"settled": {"number": open.number, "answer": answer}}));
    }

    /// Answers a question. False if it does not wait, or does not wait any more.
    pub fn answer(&self, number: u64, how: How) -> bool {
        let mut state = self.state.locked();
        let open = state.open.iter().find(|open| open.number == number);
        let Some(open) = open.filter(|open| open.question.answer(how != How::No)) else { return false };
        let of = (how != How::Session).then_some(open.client);
        let remembered = Remembered { key: open.key.clone(), of, allows: how != How::No };
        if how != How::Once {
            state.remembered.push_back(remembered);
        }
        if state.remembered.len() > REMEMBERED {
            state.remembered.pop_front();
        }
        true
    }

    /// The calls that wait, as a message, and how many events there were so far.
    pub fn open(&self) -> (Value, u64) {
        self.state.locked().listed()
    }

    /// The messages about what happened behind the first `after` events, and how many events there
    /// were so far. Events that are not kept any more are made up for by a list.
    pub fn since(&self, after: u64) -> (Vec<Value>, u64) {
        let state = self.state.locked();
        let wanted = usize::try_from(state.happened.saturating_sub(after)).unwrap_or(usize::MAX);
        match state.events.len().checked_sub(wanted) {
            Some(skipped) => (state.events.iter().skip(skipped).cloned().collect(), state.happened),
            None => (vec![state.listed().0], state.happened),
        }
    }

    /// Lets the file be readable when the next event comes.
    pub fn await_next(&self) {
        let _ = rustix::io::read(&self.news, &mut [0; 8]);
        self.awaited.store(true, Ordering::SeqCst);
    }

    fn happen(&self, state: &mut State, event: Value) {
        state.happened += 1;
        state.events.push_back(event);
        if state.events.len() > EVENTS {
            state.events.pop_front();
        }
        if self.awaited.swap(false, Ordering::SeqCst) {
            let _ = rustix::io::write(&self.news, &1_u64.to_ne_bytes());
        }
    }
}

impl AsFd for Questions {
    /// Readable when something has happened since [`Questions::await_next`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }
}

impl State {
    fn listed(&self) -> (Value, u64) {
        (json!({"questions": self.open.iter().map(Open::described).collect::<Value>()}), self.happened)
    }
}

impl Open {
    fn described(&self) -> Value {
        let mut object = self.object.clone();
        object["seconds"] = self.end.saturating_duration_since(Instant::now()).as_secs_f64().into();
        object
    }
}

#[cfg(test)]
mod tests {
    use lind_abi::Errno;

    use super::super::tests::denial;
    use super::*;

    #[test]
    fn answers_hold_for_the_same_thing() {
        let net = |what: &str, subject: &str| Key::of(&denial("net_grate", Some(Errno::EACCES), ["r", what, subject]));
        let one = net("connect tcp 192.0.2.1:443", "example.org:443");
        assert_eq!(one, net("connect tcp 192.0.2.9:443", "example.org:443"));
        for other in [
            net("connect udp 192.0.2.1:443", "example.org:443"),
            net("connect tcp 127.0.0.1:443", "example.org:443/private"),
            net("connect tcp 192.0.2.1:443", "other.example:443"),
        ] {
            assert_ne!(one, other);
        }
        let file = |what: &str| Key::of(&denial("write_filter_grate", Some(Errno::EROFS), ["r", what, what]));
        assert_ne!(file("/a b c"), file("/a b d"));
    }

    #[test]
    fn a_list_makes_up_for_events_that_are_gone() {
        let questions = Questions::new("one", Duration::from_secs(60)).unwrap();
        let happen = |count: usize| {
            let mut state = questions.state.locked();
            (0..count).for_each(|number| questions.happen(&mut state, json!({"settled": number})));
        };
        happen(3);
        let (_, three) = questions.open();
        happen(2);
        assert_eq!(questions.since(three), (vec![json!({"settled": 0}), json!({"settled": 1})], 5));
        happen(EVENTS - 1);
        let all = EVENTS as u64 + 4;
        assert_eq!(questions.since(three), (vec![json!({"questions": []})], all));
        assert_eq!(questions.since(three + 1).0.len(), EVENTS);
        assert_eq!(questions.since(all), (vec![], all));
    }

    #[test]
    fn answers_have_names() {
        assert_eq!(How::named("once").unwrap(), How::Once);
        assert!(How::named("yes").is_err());
    }
}
