//! The commands that run in a session.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lind_abi::CageId;
use lind_kernel::Kernel;
use lind_kernel::cage::signal::{self, Origin};
use serde_json::{Value, json};

use super::terminal::Terminal;
use crate::launch::end::Clock;

/// A command, from the order until its end.
pub struct Command {
    /// The client that waits for it. None if the client has gone.
    pub client: Option<u64>,
    /// Its cage, once it has started.
    pub pid: Option<CageId>,
    /// The command line as text.
    pub shown: String,
    /// Its standard error, for reports of denials.
    pub says_at: Option<Arc<OwnedFd>>,
    /// Its terminal, if it has one.
    pub terminal: Option<Terminal>,
    /// Whether its client wants a message when it starts.
    pub events: bool,
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
    last: u32,
}

impl Commands {
    /// No commands yet.
    pub fn new(kernel: &Arc<Kernel>) -> Commands {
        Commands { kernel: Arc::clone(kernel), all: BTreeMap::new(), last: 0 }
    }

    /// Adds a command that is about to start, and returns its number.
    pub fn add(&mut self, client: u64, shown: String, timeout: Option<Duration>, events: bool) -> u32 {
        self.last += 1;
        let command = Command {
            client: Some(client),
            pid: None,
            shown,
            says_at: None,
            terminal: None,
            events,
            clock: Clock::start(),
            timeout,
            timed_out: false,
            early: Vec::new(),
        };
        self.all.insert(self.last, command);
        self.last
    }

    /// Whether there are no commands.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The command with this number.
    pub fn get(&mut self, id: u32) -> Option<&mut Command> {
        self.all.get_mut(&id)
    }

    /// The command that runs in this cage.
    pub fn of_cage(&self, pid: u32) -> Option<u32> {
        self.all.iter().find(|(_, command)| command.pid == Some(CageId(pid))).map(|(&id, _)| id)
    }

    /// The command that a client has started.
    pub fn of_client(&self, client: u64) -> Option<u32> {
        self.all.iter().find(|(_, command)| command.client == Some(client)).map(|(&id, _)| id)
    }

    /// The commands that have a terminal.
    pub fn with_terminals(&mut self) -> impl Iterator<Item = (u32, Option<u64>, &mut Terminal)> {
        let all = self.all.iter_mut();
        all.filter_map(|(&id, command)| Some((id, command.client, command.terminal.as_mut()?)))
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
        if self.all.get(&id).is_some_and(|command| command.client.is_none()) {
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
