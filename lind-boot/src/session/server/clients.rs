//! The connections of clients.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use lind_abi::Errno;
use rustix::event::PollFlags;
use serde_json::{Value, json};

use super::Server;
use super::denials::Watch;
use super::follow::Follow;
use super::jobs::Helper;
use crate::session::wire::{Incoming, Message, Outgoing};

/// A connection.
pub struct Client {
    pub socket: UnixStream,
    pub incoming: Incoming,
    pub outgoing: Outgoing,
    /// The command that it follows, in the second version.
    pub follows: Option<Follow>,
    /// The command that has no room yet for input of this client, which waits for the answer.
    pub feeds: Option<u32>,
    /// Whether it waits for the state of an overlay.
    pub waits: bool,
    /// The denials that it follows.
    pub watches: Option<Watch>,
    /// The program that carries out its request for files.
    pub job: Option<u32>,
    /// If it follows calls that wait: the number of events that were sent to it.
    pub asked: Option<u64>,
}

impl Client {
    fn new(socket: UnixStream) -> Client {
        let (incoming, outgoing) = (Incoming::default(), Outgoing::default());
        Client {
            socket,
            incoming,
            outgoing,
            follows: None,
            feeds: None,
            waits: false,
            watches: None,
            job: None,
            asked: None,
        }
    }

    /// Whether it speaks the second version.
    pub fn is_second(&self) -> bool {
        self.incoming.is_second()
    }
}

impl Server {
    pub(super) fn accept(&mut self) {
        let Ok((socket, _)) = self.listener.accept() else { return };
        let Ok(peer) = rustix::net::sockopt::socket_peercred(&socket) else { return };
        // Only the user can enter the directory. Commands of this session are the user to the host,
        // too, but their calls are made by this process.
        let own = peer.pid == rustix::process::getpid();
        if own || peer.uid != rustix::process::geteuid() || socket.set_nonblocking(true).is_err() {
            return;
        }
        self.last += 1;
        self.clients.insert(self.last, Client::new(socket));
    }

    /// Sends a client waiting bytes, and reads its messages.
    pub(super) fn attend(&mut self, number: u64, ready: PollFlags) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        if ready.contains(PollFlags::OUT) && client.outgoing.flush(client.socket.as_fd()).is_err() {
            return self.lose(number);
        }
        if ready != PollFlags::OUT {
            self.listen(number);
        }
    }

    /// Reads the messages of a client.
    fn listen(&mut self, number: u64) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        let there = match client.incoming.receive(client.socket.as_fd()) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            there => there.unwrap_or(false),
        };
        self.read_on(number);
        if !there {
            self.lose(number);
        }
    }

    /// Handles the messages that have come, unless one has to wait for what the last one is about.
    pub(super) fn read_on(&mut self, number: u64) {
        loop {
            let Some(client) = self.clients.get_mut(&number).filter(|client| client.feeds.is_none() && !client.waits)
            else {
                return;
            };
            let helper = client.job.and_then(|job| self.helpers.get(&job));
            if helper.is_some_and(Helper::is_busy) {
                return;
            }
            match client.incoming.next() {
                Ok(Some(message)) => self.take(number, message),
                Ok(None) => return,
                Err(_) => return self.lose(number),
            }
        }
    }

    fn take(&mut self, number: u64, message: Message) {
        if self.clients.get(&number).is_some_and(Client::is_second) {
            self.handle_second(number, message);
        } else {
            self.handle(number, &message.value, message.files);
        }
    }

    pub(super) fn lose(&mut self, number: u64) {
        self.clients.remove(&number);
        self.commands.client_gone(number);
        self.leave_job(number);
        self.leave_states(number);
    }

    pub(super) fn tell(&mut self, number: u64, message: &Value) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        if client.outgoing.send(client.socket.as_fd(), message).is_err() {
            self.lose(number);
        }
    }

    pub(super) fn refuse(&mut self, number: u64, why: &anyhow::Error, status: u8) {
        self.tell(number, &json!({"error": format!("{why:#}"), "status": status}));
    }

    /// Refuses with an errno, which programs act on.
    pub(super) fn refuse_with(&mut self, number: u64, why: &str, status: u8, errno: Errno) {
        self.tell(number, &json!({"error": why, "status": status, "errno": errno.name()}));
    }
}
