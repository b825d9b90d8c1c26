//! Output on its way: from commands to what the session keeps, and from there to the clients that
//! follow them.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use lind_kernel::cage::signal::Origin;
use lind_kernel::terminal::Key;
use serde_json::{Value, json};

use super::{Server, clients::Client};
use crate::session::commands::Command;
use crate::session::terminal::Terminal;
use crate::session::wire;

/// The most bytes that are read at once.
const PIECE: usize = 64 << 10;

/// The command that a client follows.
pub struct Follow {
    /// The command.
    pub id: u32,
    /// The number of the next byte of output for it.
    pub at: u64,
    /// Whether it wants the output, and not only the end.
    pub shows: bool,
}

impl Server {
    /// How many bytes of output may be read from a command now.
    pub(super) fn space(&self, id: u32, command: &Command) -> usize {
        let client = command.client.and_then(|client| self.clients.get(&client));
        let Some(output) = &command.output else {
            let shows = client.is_some_and(|client| client.outgoing.is_empty());
            return if shows { PIECE } else { 0 };
        };
        let owner = client.and_then(|client| client.follows.as_ref()).filter(|follow| follow.id == id);
        // Without an owner that waits for it, the oldest bytes make room.
        owner.filter(|_| command.ended.is_none()).map_or(PIECE, |owner| output.space(owner.at)).min(PIECE)
    }

    /// Copies output of a command's terminal to its client, and input to the terminal.
    pub(super) fn relay(&mut self, id: u32) {
        let Some(space) = self.commands.any(id).map(|command| self.space(id, command)) else { return };
        let Some(command) = self.commands.get(id) else { return };
        let Some(terminal) = &mut command.terminal else { return };
        terminal.flush();
        if space > 0 {
            let output = terminal.output_of(space);
            match (command.take_output(&output), command.client) {
                (false, Some(client)) if !output.is_empty() => {
                    self.tell(client, &json!({"output": wire::word(&output)}));
                }
                _ => {}
            }
        }
        self.feed(id);
    }

    /// Asks a client for what is typed.
    pub(super) fn ask_for_keys(&mut self, id: u32) {
        let Some(command) = self.commands.get(id) else { return };
        let client = command.client;
        command.terminal.iter_mut().for_each(Terminal::ask);
        if let Some(client) = client {
            self.tell(client, &json!({"reads": true}));
        }
    }

    /// Tells clients that a key was a signal to the process group that their command began with:
    /// to the host, they stand in its place. A key for a command that has not begun yet is a signal
    /// when it begins.
    pub(super) fn tell_keys(&mut self) {
        for (id, Key { number, front }) in self.commands.keys() {
            let Some(command) = self.commands.get(id) else { continue };
            let (pid, client) = (command.pid, command.client);
            if front != 0 && pid.is_some_and(|pid| pid.0 != front) {
                continue;
            }
            let hears = command.events && command.output.is_none();
            if front == 0 && pid.is_none() {
                self.commands.signal(id, number, Origin::Terminal);
            }
            if let Some(client) = client.filter(|_| hears) {
                self.tell(client, &json!({"key": number}));
            }
        }
    }

    /// Reads from the pipes of a command, and writes input that waits.
    pub(super) fn pump(&mut self, id: u32) {
        let Some(space) = self.commands.any(id).map(|command| self.space(id, command)) else { return };
        let Some(command) = self.commands.any_mut(id) else { return };
        command.pipes.flush();
        command.read_pipes(space);
        self.feed(id);
    }

    /// Answers clients whose input has found room.
    fn feed(&mut self, id: u32) {
        if self.commands.any(id).is_some_and(Command::is_full) {
            return;
        }
        let waiting = |client: &Client| client.feeds == Some(id);
        let fed: Vec<u64> =
            self.clients.iter().filter(|(_, client)| waiting(client)).map(|(&client, _)| client).collect();
        for client in fed {
            if let Some(client) = self.clients.get_mut(&client) {
                client.feeds = None;
            }
            self.tell(client, &json!({"done": true}));
            self.read_on(client);
        }
    }

    /// The clients that follow a command.
    fn followers(&self, id: u32) -> Vec<u64> {
        let follows = |client: &Client| client.follows.as_ref().is_some_and(|follow| follow.id == id);
        self.clients.iter().filter(|(_, client)| follows(client)).map(|(&client, _)| client).collect()
    }

    /// Tells those that follow a command something.
    pub(super) fn tell_followers(&mut self, id: u32, message: &Value) {
        for client in self.followers(id) {
            self.tell(client, message);
        }
    }

    /// Ends the following of a command that will say nothing more, and returns who followed.
    pub(super) fn let_followers_go(&mut self, id: u32) -> Vec<u64> {
        let all = self.followers(id);
        for number in &all {
            if let Some(client) = self.clients.get_mut(number) {
                client.follows = None;
            }
        }
        all
    }

    /// Ends the following of a command that was started detached.
    pub(super) fn leave_detached(&mut self, id: u32) {
        if self.commands.any(id).is_some_and(|command| command.detached) {
            for client in self.let_followers_go(id) {
                self.read_on(client);
            }
        }
    }

    /// Sends the followers of a command what they have not got.
    pub(super) fn follow_on(&mut self, id: u32) {
        for client in self.followers(id) {
            self.show(client);
        }
    }

    /// Sends all followers what they have not got, and forgets the oldest commands that have ended
    /// when there are too many.
    pub(super) fn follow_all(&mut self) {
        let followers: Vec<u64> =
            self.clients.iter().filter(|(_, client)| client.follows.is_some()).map(|(&client, _)| client).collect();
        for client in followers {
            self.show(client);
        }
        if self.commands.are_too_many() {
            let follows = |client: &Client| client.follows.as_ref().map(|follow| follow.id);
            let followed: BTreeSet<u32> = self.clients.values().filter_map(follows).collect();
            self.commands.forget_ended(&followed);
        }
    }

    /// Sends a client the next output as long as its socket has room, and then the end.
    fn show(&mut self, number: u64) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        let Some(follow) = &mut client.follows else { return };
        let Some((command, output)) =
            self.commands.any(follow.id).and_then(|command| Some((command, command.output.as_ref()?)))
        else {
            return;
        };
        while let Some(part) = output.after(follow.at).filter(|_| follow.shows && client.outgoing.is_empty()) {
            let lost = part.at - follow.at;
            let mut message = json!({"output": part.stream.name(), "at": part.at});
            if lost > 0 {
                message["lost"] = lost.into();
            }
            follow.at = part.at + part.bytes.len() as u64;
            if client.outgoing.send_bytes(client.socket.as_fd(), message, part.bytes).is_err() {
                return self.lose(number);
            }
        }
        let Some((ended, end)) = &command.ended else { return };
        if client.outgoing.is_empty() && (!follow.shows || follow.at >= *end || output.after(follow.at).is_none()) {
            client.follows = None;
            let ended = ended.clone();
            self.tell(number, &ended);
            self.read_on(number);
        }
    }
}
