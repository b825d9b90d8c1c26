//! The commands that run in a session.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use lind_abi::CageId;
use lind_kernel::Kernel;
use lind_kernel::cage::signal::{self, Origin};
use lind_kernel::terminal::Key;
use serde_json::{Value, json};

use super::output::{Output, Stream};
use super::pipes::Pipes;
use super::request;
use super::terminal::Terminal;
use crate::launch::end::Clock;

/// ^D, which ends the input of a terminal in its usual mode.
const END_OF_INPUT: u8 = 4;

/// A command, from the order until its end.
pub struct Command {
    /// The client that waits for it. None if the client has gone.
    pub client: Option<u64>,
    /// Its cage, once it has started.
    pub pid: Option<CageId>,
    /// The command line as text.
    pub shown: String,
    /// The directory in which it starts.
    pub directory: PathBuf,
    /// Its terminal, if it has one.
    pub terminal: Option<Terminal>,
    /// Whether its client wants a message when it starts.
    pub events: bool,
    /// The session's ends of its pipes.
    pub pipes: Pipes,
    /// Its output, if the session keeps it.
    pub output: Option<Output>,
    /// Whether it goes on without a client.
    pub detached: bool,
    /// When it was ordered.
    pub began: SystemTime,
    /// The message about its end, and how much output there was by then.
    pub ended: Option<(Value, u64)>,
    clock: Clock,
    timeout: Option<Duration>,
    timed_out: bool,
    /// Signals that came before it had a cage.
    early: Vec<(u8, Origin)>,
}

/// The commands by number.
pub struct Commands {
    kernel: Arc<Kernel>,
    all: BTreeMap<u32, Command>,
    /// Those that have ended, and whose output is kept.
    ended: BTreeMap<u32, Command>,
    last: u32,
}

/// How many commands that have ended are kept, and how many bytes of their output.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 16 << 20;

/// The most output that is read from pipes at a command's end: what pipes hold.
const REST: usize = 256 << 10;

impl Commands {
    /// No commands yet.
    pub fn new(kernel: &Arc<Kernel>) -> Commands {
        Commands { kernel: Arc::clone(kernel), all: BTreeMap::new(), ended: BTreeMap::new(), last: 0 }
    }

    /// Adds a command that is about to start, and returns its number.
    pub fn add(&mut self, client: u64, shown: String, timeout: Option<Duration>, events: bool) -> u32 {
        let id = self.next_number();
        let command = Command {
            client: Some(client),
            pid: None,
            shown,
            directory: PathBuf::new(),
            terminal: None,
            events,
            pipes: Pipes::default(),
            output: None,
            detached: false,
            began: SystemTime::now(),
            ended: None,
            clock: Clock::start(),
            timeout,
            timed_out: false,
            early: Vec::new(),
        };
        self.all.insert(id, command);
        id
    }

    /// A number that no command has had.
    pub fn next_number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// Whether there are no commands.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many commands run.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The command with this number.
    pub fn get(&mut self, id: u32) -> Option<&mut Command> {
        self.all.get_mut(&id)
    }

    /// The command with this number, also if it has ended.
    pub fn any(&self, id: u32) -> Option<&Command> {
        self.all.get(&id).or_else(|| self.ended.get(&id))
    }

    /// The same, to change it.
    pub fn any_mut(&mut self, id: u32) -> Option<&mut Command> {
        self.all.get_mut(&id).or_else(|| self.ended.get_mut(&id))
    }

    /// All commands, those that have ended first.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Command)> {
        self.ended.iter().chain(&self.all).map(|(&id, command)| (id, command))
    }

    /// The command that runs in this cage.
    pub fn of_cage(&self, pid: u32) -> Option<u32> {
        self.all.iter().find(|(_, command)| command.pid == Some(CageId(pid))).map(|(&id, _)| id)
    }

    /// The command that a client has started.
    pub fn of_client(&self, client: u64) -> Option<u32> {
        self.all.iter().find(|(_, command)| command.client == Some(client)).map(|(&id, _)| id)
    }

    /// The terminal of the command that a client has started.
    pub fn terminal_of(&mut self, client: u64) -> Option<&mut Terminal> {
        let id = self.of_client(client)?;
        self.all.get_mut(&id)?.terminal.as_mut()
    }

    /// Notes the cage of a command, and sends it the signals that came before.
    pub fn started(&mut self, id: u32, pid: u32) {
        let Some(command) = self.all.get_mut(&id) else { return };
        command.pid = Some(CageId(pid));
        if let Some(cage) = self.kernel.cages.get(CageId(pid)) {
            cage.known_outside();
        }
        for (number, origin) in std::mem::take(&mut command.early) {
            self.signal(id, number, origin);
        }
        if self.all.get(&id).is_some_and(|command| command.client.is_none() && !command.detached) {
            self.kill(id);
        }
    }

    /// Sends a command a signal.
    pub fn signal(&mut self, id: u32, number: u8, origin: Origin) {
        let Some(command) = self.all.get_mut(&id) else { return };
        match command.pid {
            None => command.early.push((number, origin)),
            Some(pid) => {
                if let Some(cage) = self.kernel.cages.get(pid) {
                    signal::from_outside(&self.kernel, &cage, number, origin);
                }
            }
        }
    }

    /// The keys typed at the terminals of commands that have meant signals, since the last time.
    pub fn keys(&mut self) -> Vec<(u32, Key)> {
        let typed = |(&id, command): (&u32, &mut Command)| {
            let keys = command.terminal.as_mut().map(Terminal::keys).unwrap_or_default();
            keys.into_iter().map(move |key| (id, key))
        };
        self.all.iter_mut().flat_map(typed).collect()
    }

    /// Sends all commands a signal.
    pub fn signal_all(&mut self, number: u8) {
        for id in self.all.keys().copied().collect::<Vec<_>>() {
            self.signal(id, number, Origin::Process);
        }
    }

    /// Kills a command and all that it has started.
    pub fn kill(&self, id: u32) {
        if let Some(pid) = self.all.get(&id).and_then(|command| command.pid) {
            signal::end_all_of(&self.kernel, pid);
        }
    }

    /// Kills all commands.
    pub fn kill_all(&self) {
        self.all.keys().for_each(|&id| self.kill(id));
    }

    /// Kills the command of a client that has gone.
    pub fn client_gone(&mut self, client: u64) {
        if let Some(id) = self.of_client(client) {
            self.kill(id);
            if let Some(command) = self.all.get_mut(&id) {
                (command.client, command.terminal) = (None, None);
            }
        }
    }

    /// Removes a command that has ended.
    pub fn remove(&mut self, id: u32) -> Option<Command> {
        self.all.remove(&id)
    }

    /// Removes a command that could not be started. If it had a cage, the news of its end follows.
    pub fn forget(&mut self, id: u32, never_lived: bool) {
        if never_lived {
            self.all.remove(&id);
        }
    }

    /// Keeps a command that has ended, with the rest of its output. `more` is what else its end
    /// says, and the note.
    pub fn end(&mut self, id: u32, word: i32, mut more: Value) {
        let Some(mut command) = self.all.remove(&id) else { return };
        if let Some(terminal) = command.terminal.take() {
            command.take_rest(Stream::Terminal, &terminal.rest());
        }
        for _ in 0..REST / (16 << 10) {
            let (parts, more) = command.pipes.read(REST);
            parts.iter().for_each(|(stream, bytes)| command.take_rest(*stream, bytes));
            if !more {
                break;
            }
        }
        command.pipes.add_input(&[], true);
        let mut message = command.ended(word);
        let output = command.output.as_ref().map_or(0, Output::end);
        message["ended"]["id"] = id.into();
        message["ended"]["output"] = output.into();
        message["ended"]["dropped"] = command.output.as_ref().map_or(0, Output::dropped).into();
        for key in ["denied", "denials"] {
            message["ended"][key] = more[key].take();
        }
        message["note"] = more["note"].take();
        command.ended = Some((message, output));
        self.ended.insert(id, command);
    }

    /// Whether more commands that have ended are kept than should be.
    pub fn are_too_many(&self) -> bool {
        let kept = |command: &Command| command.output.as_ref().map_or(0, Output::kept);
        self.ended.len() > KEPT || self.ended.values().map(kept).sum::<usize>() > KEPT_BYTES
    }

    /// Forgets the oldest of them, but none that a client follows.
    pub fn forget_ended(&mut self, followed: &BTreeSet<u32>) {
        while self.are_too_many() {
            let Some(&oldest) = self.ended.keys().find(|id| !followed.contains(id)) else { return };
            self.ended.remove(&oldest);
        }
    }

    /// When the next timeout ends.
    pub fn next_end(&self) -> Option<Instant> {
        self.all.values().filter(|command| !command.timed_out).filter_map(Command::end).min()
    }

    /// Kills the commands whose timeout has ended.
    pub fn end_late_ones(&mut self) {
        let late = |command: &Command| !command.timed_out && command.is_late();
        let late: Vec<u32> = self.all.iter().filter(|(_, command)| late(command)).map(|(&id, _)| id).collect();
        for id in late {
            self.kill(id);
            if let Some(command) = self.all.get_mut(&id).filter(|command| command.pid.is_some()) {
                command.timed_out = true;
            }
        }
    }

    /// The commands as JSON, for `list`.
    pub fn described(&self) -> Value {
        let described = self.all.iter().map(|(id, command)| {
            let pid = command.pid.map(|pid| pid.0);
            json!({"id": id, "pid": pid, "line": command.shown, "seconds": command.clock.elapsed().as_secs_f64()})
        });
        described.collect()
    }
}

impl Command {
    /// Keeps the output from now on.
    pub fn keep(&mut self, kept: Option<&request::Kept>) {
        let Some(kept) = kept else { return };
        self.output = Some(Output::new(kept.keep, kept.most));
        self.detached = kept.detached;
        if kept.detached {
            self.client = None;
        }
    }

    /// Takes output of its terminal. False if the output is not kept.
    pub fn take_output(&mut self, bytes: &[u8]) -> bool {
        if let Some(output) = &mut self.output {
            output.add(Stream::Terminal, bytes);
        }
        self.output.is_some()
    }

    fn take_rest(&mut self, stream: Stream, bytes: &[u8]) {
        if let Some(output) = &mut self.output {
            output.grow(bytes.len());
            output.add(stream, bytes);
        }
    }

    /// Reads output from its pipes.
    pub fn read_pipes(&mut self, space: usize) {
        let Some(output) = &mut self.output else { return };
        let (parts, _) = self.pipes.read(space);
        parts.iter().for_each(|(stream, bytes)| output.add(*stream, bytes));
    }

    /// Whether it takes input from the session.
    pub fn takes_input(&self) -> bool {
        self.terminal.is_some() || self.pipes.takes_input()
    }

    /// Adds input. At its end a pipe is closed; a terminal gets the character that means the end.
    pub fn add_input(&mut self, bytes: &[u8], last: bool) {
        match &mut self.terminal {
            Some(terminal) => {
                terminal.add_input(bytes);
                if last {
                    terminal.add_input(&[END_OF_INPUT]);
                }
            }
            None => self.pipes.add_input(bytes, last),
        }
    }

    /// Whether no more input should be taken from clients.
    pub fn is_full(&self) -> bool {
        self.pipes.is_full() || self.terminal.as_ref().is_some_and(Terminal::is_full)
    }

    /// The seconds since it was ordered, or how long it took.
    pub fn seconds(&self) -> f64 {
        let wall = self.ended.as_ref().and_then(|(ended, _)| ended["ended"]["wall"].as_f64());
        wall.unwrap_or_else(|| self.clock.elapsed().as_secs_f64())
    }

    /// When its timeout ends, unless something is compiled meanwhile.
    fn end(&self) -> Option<Instant> {
        Instant::now().checked_add(self.clock.left(self.timeout?).unwrap_or_default())
    }

    fn is_late(&self) -> bool {
        self.timeout.is_some_and(|timeout| self.clock.left(timeout).is_none())
    }

    /// The message to its client for a status word of wait4(2).
    pub fn ended(&self, word: i32) -> Value {
        let [signal, status, ..] = word.to_le_bytes();
        let seconds = self.timeout.filter(|_| self.timed_out).map(|timeout| timeout.as_secs_f64());
        let wall = self.clock.elapsed().as_secs_f64();
        match signal & 0x7f {
            0 => json!({"ended": {"status": status, "signal": null, "timed_out": seconds, "wall": wall}}),
            signal => json!({"ended": {"status": null, "signal": signal, "timed_out": seconds, "wall": wall}}),
        }
    }
}
