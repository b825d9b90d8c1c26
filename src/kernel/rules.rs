//! Rules that the user changes while grates apply them.
//!
//! The embedder names the grates of its line whose rules it may change, before any of them runs.
//! Each takes its name once, and then waits here for rules. Only the embedder gives rules: no call
//! does, so nothing that a guest can do reaches a grate's rules.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use lind_abi::{CageId, Errno, Result};

use crate::call::Ctx;
use crate::event::Event;
use crate::lock::{Locked, unpoisoned};

/// The largest set of rules, in bytes.
pub const MOST: usize = 1 << 20;

/// The longest answer of a grate, in bytes.
const ANSWER: usize = 4 << 10;

/// The rules of the grates that follow them.
#[derive(Default)]
pub struct Rules {
    state: Mutex<State>,
    /// Rules were given.
    given: Event,
    /// A grate has answered.
    answered: Condvar,
}

#[derive(Default)]
struct State {
    followers: Vec<Follower>,
    /// Permissions for one use each, by number.
    once: Vec<u64>,
    last_once: u64,
}

/// A grate whose rules can be changed.
struct Follower {
    name: String,
    /// None until the grate has taken the name.
    cage: Option<CageId>,
    /// The rules that it has not fetched.
    next: Option<Vec<u8>>,
    /// How often rules were given, and how often it has answered.
    given: u64,
    answered: u64,
    /// The last answer: empty, or the mistake.
    answer: String,
}

impl Rules {
    /// Lets grates take these names.
    pub fn expect(&self, names: &[String]) {
        let follower = |name: &String| Follower {
            name: name.clone(),
            cage: None,
            next: None,
            given: 0,
            answered: 0,
            answer: String::new(),
        };
        self.state.locked().followers = names.iter().map(follower).collect();
    }

    /// Lets nobody take a name any more.
    pub fn close(&self) {
        self.state.locked().followers.retain(|follower| follower.cage.is_some());
    }

    /// Gives a grate rules, and waits until it applies them.
    ///
    /// # Errors
    /// The reason why the grate's rules are what they were before.
    pub fn give(&self, name: &str, rules: Vec<u8>, longest: Duration) -> std::result::Result<(), String> {
        let mut state = self.state.locked();
        let find = |state: &mut State| state.followers.iter().position(|follower| follower.name == name);
        let at = find(&mut state).filter(|&at| state.followers[at].cage.is_some());
        let at = at.ok_or_else(|| format!("the {name} grate does not run in this session"))?;
        if rules.len() > MOST {
            return Err(format!("the rules of the {name} grate are longer than {MOST} bytes"));
        }
        let follower = &mut state.followers[at];
        follower.given += 1;
        let number = follower.given;
        follower.next = Some(rules);
        self.given.notify_all();
        let end = Instant::now() + longest;
        loop {
            let follower = &mut state.followers[at];
            if follower.answered >= number {
                let answer = std::mem::take(&mut follower.answer);
                return if answer.is_empty() { Ok(()) } else { Err(answer) };
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                follower.next = None;
                return Err(format!("the {name} grate has not answered within {} s", longest.as_secs()));
            }
            state = unpoisoned(self.answered.wait_timeout(state, left)).0;
        }
    }

    /// A new permission for one use.
    pub fn permit_once(&self) -> u64 {
        let mut state = self.state.locked();
        state.last_once += 1;
        let number = state.last_once;
        state.once.push(number);
        number
    }

    /// Whether a permission has been used, or taken back.
    pub fn is_used(&self, number: u64) -> bool {
        !self.state.locked().once.contains(&number)
    }

    /// Takes back a permission for one use.
    pub fn forget(&self, number: u64) {
        self.state.locked().once.retain(|&other| other != number);
    }

    /// Gives `cage` the name of a grate whose rules can be changed.
    pub(crate) fn take_name(&self, cage: CageId, name: &[u8]) -> Result<()> {
        let mut state = self.state.locked();
        let free = |follower: &&mut Follower| follower.cage.is_none() && follower.name.as_bytes() == name;
        state.followers.iter_mut().find(free).ok_or(Errno::EPERM)?.cage = Some(cage);
        Ok(())
    }

    /// Uses a permission up.
    pub(crate) fn use_once(&self, cage: CageId, number: u64) -> Result<()> {
        let mut state = self.state.locked();
        state.of(cage)?;
        let at = state.once.iter().position(|&other| other == number).ok_or(Errno::ENOENT)?;
        state.once.swap_remove(at);
        Ok(())
    }

    /// Takes the answer of a grate to the rules it has got, and waits for the next. The first call
    /// has no answer to give.
    pub(crate) fn next(&self, cx: &Ctx<'_>, cage: CageId, answer: &[u8]) -> Result<Vec<u8>> {
        {
            let mut state = self.state.locked();
            let follower = state.of(cage)?;
            if follower.next.is_none() && follower.answered < follower.given {
                follower.answered = follower.given;
                follower.answer = String::from_utf8_lossy(&answer[..answer.len().min(ANSWER)]).into_owned();
                self.answered.notify_all();
            }
        }
        loop {
            let seen = self.given.seen();
            if let Some(rules) = self.state.locked().of(cage)?.next.take() {
                return Ok(rules);
            }
            cx.blocking(|| self.given.wait(seen, None))?;
        }
    }
}

impl State {
    fn of(&mut self, cage: CageId) -> Result<&mut Follower> {
        self.followers.iter_mut().find(|follower| follower.cage == Some(cage)).ok_or(Errno::EPERM)
    }
}

#[cfg(test)]
mod tests {
    use lind_abi::{Errno, nr};

    use crate::root::Walls;
    use crate::testing::in_world;

    #[test]
    fn only_expected_grates_follow_rules() {
        in_world(Walls::Openat2, |w| {
            let name = w.data(b"net");
            // Not a grate of the line, whatever is expected.
            w.kernel.rules.expect(&["net".to_owned()]);
            assert_eq!(w.err(nr::follow_rules, &[name, 3]), Errno::EPERM);
            assert_eq!(w.err(nr::next_rules, &[name, 0, name, 3]), Errno::EPERM);
            assert_eq!(w.err(nr::use_once, &[1]), Errno::EPERM);
            let id = w.thread.cage.id;
            assert_eq!(w.kernel.rules.take_name(id, b"other"), Err(Errno::EPERM));
            assert_eq!(w.kernel.rules.take_name(id, b"net"), Ok(()));
            assert_eq!(w.kernel.rules.take_name(id, b"net"), Err(Errno::EPERM));
            let once = w.kernel.rules.permit_once();
            assert_eq!(w.kernel.rules.use_once(id, once), Ok(()));
            assert_eq!(w.kernel.rules.use_once(id, once), Err(Errno::ENOENT));
            assert!(w.kernel.rules.is_used(once));
            w.kernel.rules.expect(&["net".to_owned()]);
            w.kernel.rules.close();
            assert_eq!(w.kernel.rules.take_name(id, b"net"), Err(Errno::EPERM));
        });
    }
}
