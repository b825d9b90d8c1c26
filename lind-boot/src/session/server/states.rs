//! The states of overlays, which clients borrow. Only another process reads and changes a state,
//! and only a process outside the walls can write to the directory below it. So the grate closes
//! the state, and whoever calls for files of the overlay waits until it comes back.

use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt;

use anyhow::{Result, anyhow, bail, ensure};
use lind_abi::Errno;
use lind_kernel::text::shown;
use serde_json::{Value, json};

use super::Server;
use super::second::is;
use crate::sandbox::Lent;
use crate::session::wire;

/// The longest answer of a grate.
const LONGEST: usize = 64 << 10;

/// A state, and the client that borrows it.
pub struct Loan {
    /// The overlay.
    pub lent: Lent,
    /// The clients that wait for it, and whether they are going to change something.
    queue: VecDeque<(u64, bool)>,
    turn: Turn,
    come: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The grate has the state.
    Free,
    /// A client has asked for it.
    Asked(u64),
    /// A client borrows the state.
    Lent(u64),
    /// A client has given it back.
    Back(u64),
    /// The grate has ended.
    Gone,
}

impl Loan {
    /// The state of an overlay, which nobody has asked for.
    pub fn new(mut lent: Lent) -> Loan {
        lent.begins();
        Loan { lent, queue: VecDeque::new(), turn: Turn::Free, come: Vec::new() }
    }
}

impl Server {
    /// Lets a client have the state of an overlay when it is its turn.
    ///
    /// # Errors
    /// When there is no such overlay.
    pub(super) fn borrow_state(&mut self, number: u64, value: &Value) -> Result<()> {
        ensure!(self.ending.is_none(), "the session is ending");
        let at = self.overlay(value)?;
        ensure!(self.states[at].turn != Turn::Gone, "the overlay has ended");
        let borrowed = |loan: &Loan| loan.turn == Turn::Lent(number);
        ensure!(!self.states.iter().any(borrowed), "this connection has a state already: give it back first");
        self.states[at].queue.push_back((number, is(value, "change")));
        if let Some(client) = self.clients.get_mut(&number) {
            client.waits = true;
        }
        self.next_turn(at);
        Ok(())
    }

    /// Takes back the state that a client has.
    ///
    /// # Errors
    /// When it has none.
    pub(super) fn return_state(&mut self, number: u64) -> Result<()> {
        let at = self.states.iter().position(|loan| loan.turn == Turn::Lent(number));
        let Some(at) = at else { bail!("this connection has no state") };
        if let Some(client) = self.clients.get_mut(&number) {
            client.waits = true;
        }
        self.end_turn(at, number);
        Ok(())
    }

    /// The overlay that a request names by its directory, or the only one.
    fn overlay(&self, value: &Value) -> Result<usize> {
        let all = self.states.iter().map(|loan| shown(loan.lent.host.as_os_str().as_bytes()));
        let all = all.collect::<Vec<_>>().join(", ");
        if value["volume"].is_null() {
            ensure!(!self.states.is_empty(), "this session has no overlay: start it with -v DIR:overlay");
            ensure!(self.states.len() == 1, "volume: this session has several overlays; name one of {all}");
            return Ok(0);
        }
        let name = wire::bytes(&value["volume"]).ok_or_else(|| anyhow!("volume: expected a path"))?;
        let is_meant =
            |loan: &Loan| [&loan.lent.host, &loan.lent.guest].iter().any(|path| path.as_os_str().as_bytes() == name);
        let found = self.states.iter().position(is_meant);
        found.ok_or_else(|| anyhow!("volume: {}: this session has no overlay there; it has {all}", shown(name)))
    }

    fn next_turn(&mut self, at: usize) {
        let Some(loan) = self.states.get_mut(at).filter(|loan| loan.turn == Turn::Free) else { return };
        let Some((client, change)) = loan.queue.pop_front() else { return };
        loan.turn = Turn::Asked(client);
        if loan.lent.send(if change { "change\n" } else { "look\n" }).is_err() {
            self.lose_state(at);
        }
    }

    fn end_turn(&mut self, at: usize, client: u64) {
        let Some(loan) = self.states.get_mut(at) else { return };
        loan.turn = Turn::Back(client);
        if loan.lent.send("back\n").is_err() {
            self.lose_state(at);
        }
    }

    /// Reads the answer of a grate.
    pub(super) fn hear_overlay(&mut self, at: usize) {
        let Some(loan) = self.states.get_mut(at) else { return };
        if loan.lent.receive(&mut loan.come).is_err() || loan.come.len() > LONGEST {
            return self.lose_state(at);
        }
        let Some(end) = loan.come.iter().position(|&byte| byte == b'\n') else { return };
        let line: Vec<u8> = loan.come.drain(..=end).collect();
        let line = line.strip_suffix(b"\n").unwrap_or(&line).to_vec();
        match loan.turn {
            Turn::Asked(client) if line == b"ok" => self.lend(at, client),
            Turn::Asked(client) => {
                loan.turn = Turn::Free;
                let why = format!("the state cannot be used now: {}", shown(line));
                self.go_on(client, |server| server.refuse_with(client, &why, crate::failure::FAILED, Errno::EBUSY));
                self.next_turn(at);
            }
            Turn::Back(client) => {
                loan.turn = Turn::Free;
                self.go_on(client, |server| server.tell(client, &json!({"done": true})));
                self.next_turn(at);
            }
            Turn::Free | Turn::Lent(_) | Turn::Gone => self.lose_state(at),
        }
    }

    fn lend(&mut self, at: usize, client: u64) {
        let Some(loan) = self.states.get_mut(at) else { return };
        loan.turn = Turn::Lent(client);
        if !self.clients.contains_key(&client) || self.ending.is_some() {
            return self.end_turn(at, client);
        }
        let mut message = described(&loan.lent);
        message["held"] = true.into();
        self.go_on(client, |server| server.tell(client, &message));
    }

    /// Answers a client that waits, and reads its next messages.
    fn go_on(&mut self, client: u64, answer: impl FnOnce(&mut Server)) {
        let Some(waiting) = self.clients.get_mut(&client) else { return };
        waiting.waits = false;
        answer(self);
        self.read_on(client);
    }

    /// A client has gone.
    pub(super) fn leave_states(&mut self, client: u64) {
        for at in 0..self.states.len() {
            self.states[at].queue.retain(|&(other, _)| other != client);
            if self.states[at].turn == Turn::Lent(client) {
                self.end_turn(at, client);
            }
        }
    }

    /// Takes back all states, which grates need to end.
    pub(super) fn take_states_back(&mut self) {
        for at in 0..self.states.len() {
            let waiting: Vec<_> = self.states[at].queue.drain(..).collect();
            for (client, _) in waiting {
                self.go_on(client, |server| {
                    server.refuse(client, &anyhow!("the session is ending"), crate::failure::FAILED)
                });
            }
            if let Turn::Lent(client) = self.states[at].turn {
                self.end_turn(at, client);
            }
        }
    }

    /// The grate has ended, or answers something that nobody has asked.
    fn lose_state(&mut self, at: usize) {
        let Some(loan) = self.states.get_mut(at) else { return };
        let of_turn = match loan.turn {
            Turn::Asked(client) | Turn::Back(client) => Some(client),
            Turn::Free | Turn::Lent(_) | Turn::Gone => None,
        };
        loan.turn = Turn::Gone;
        let waiting: Vec<_> = of_turn.into_iter().chain(loan.queue.drain(..).map(|(client, _)| client)).collect();
        for client in waiting {
            self.go_on(client, |server| {
                server.refuse(client, &anyhow!("the overlay has ended"), crate::failure::FAILED)
            });
        }
    }

    /// The overlays, for `hello`.
    pub(super) fn overlays(&self) -> Value {
        self.states.iter().map(|loan| described(&loan.lent)).collect()
    }

    /// Whether a grate's answer is waited for, or can tell of its end.
    pub(super) fn listens_to(loan: &Loan) -> bool {
        loan.turn != Turn::Gone
    }
}

fn described(lent: &Lent) -> Value {
    let word = |path: &std::path::Path| wire::word(path.as_os_str().as_bytes());
    json!({"volume": word(&lent.host), "guest": word(&lent.guest), "state": wire::word(lent.state.as_bytes())})
}
