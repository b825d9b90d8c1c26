//! Message queues.

use std::collections::VecDeque;
use std::sync::Arc;

use lind_abi::layout::MsqidDs;
use lind_abi::{CageId, Errno, Result};

use super::{Permissions, now};
use crate::event::Event;

/// MSGMAX
pub(crate) const LONGEST: usize = 8192;
/// MSGMNB: the capacity of a queue.
pub(crate) const ROOM: usize = 16384;

const MSG_NOERROR: u32 = 0o10000;
const MSG_EXCEPT: u32 = 0o20000;

/// A message.
#[derive(Debug)]
pub(crate) struct Message {
    pub kind: i32,
    /// The cage that is charged for it.
    pub payer: CageId,
    pub text: Vec<u8>,
}

impl Message {
    /// Its approximate memory.
    pub fn cost(&self) -> u64 {
        const ITSELF: u64 = 64;
        ITSELF + self.text.len() as u64
    }
}

/// A queue.
#[derive(Debug)]
pub(crate) struct Queue {
    messages: VecDeque<Message>,
    bytes: usize,
    room: usize,
    sent: (i64, u32),
    received: (i64, u32),
    /// Happens when a message comes or goes, or the queue goes.
    pub changed: Arc<Event>,
}

impl Queue {
    /// An empty queue.
    pub fn new() -> Queue {
        let messages = VecDeque::new();
        Queue { messages, bytes: 0, room: ROOM, sent: (0, 0), received: (0, 0), changed: Arc::default() }
    }

    /// How many messages and bytes are in it.
    pub fn holds(&self) -> (usize, usize) {
        (self.messages.len(), self.bytes)
    }

    /// Whether there is room for a message.
    pub fn has_room(&self, message: &Message) -> bool {
        self.bytes + message.text.len() <= self.room && self.messages.len() < self.room
    }

    /// Puts a message in, for which there is room.
    pub fn send(&mut self, message: Message, by: u32) {
        self.bytes += message.text.len();
        self.messages.push_back(message);
        self.sent = (now(), by);
        self.changed.notify_all();
    }

    /// Its messages, which go with it.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter()
    }

    /// Has `heir` pay for the messages that `cage` pays for. Returns how much that is.
    pub fn leave_to(&mut self, cage: CageId, heir: CageId) -> u64 {
        let left = self.messages.iter_mut().filter(|message| message.payer == cage);
        left.map(|message| {
            message.payer = heir;
            message.cost()
        })
        .sum()
    }

    /// Takes the message that msgrcv(2) means out; None without one.
    ///
    /// # Errors
    /// E2BIG for one that is longer, without MSG_NOERROR.
    pub fn receive(&mut self, kind: i32, room: usize, flags: u32, by: u32) -> Result<Option<Message>> {
        let wanted = |message: &Message| match kind {
            0 => true,
            kind if flags & MSG_EXCEPT != 0 && kind > 0 => message.kind != kind,
            kind if kind > 0 => message.kind == kind,
            kind => i64::from(message.kind) <= -i64::from(kind),
        };
        let candidates = self.messages.iter().enumerate().filter(|(_, message)| wanted(message));
        // For a negative type the lowest type comes first, and of equal ones the oldest.
        let found =
            if kind < 0 { candidates.min_by_key(|(at, message)| (message.kind, *at)) } else { { candidates }.next() };
        let Some((at, message)) = found else { return Ok(None) };
        if message.text.len() > room && flags & MSG_NOERROR == 0 {
            return Err(Errno::E2BIG);
        }
        let Some(message) = self.messages.remove(at) else { return Ok(None) };
        self.bytes -= message.text.len();
        self.received = (now(), by);
        self.changed.notify_all();
        Ok(Some(message))
    }

    /// IPC_SET: how much it holds.
    ///
    /// # Errors
    /// EPERM for more than every queue may.
    pub fn set_room(&mut self, bytes: u32) -> Result<()> {
        let bytes = usize::try_from(bytes).map_err(|_| Errno::EPERM)?;
        if bytes > ROOM {
            return Err(Errno::EPERM);
        }
        self.room = bytes;
        self.changed.notify_all();
        Ok(())
    }

    /// IPC_STAT.
    pub fn to_guest(&self, permissions: &Permissions) -> MsqidDs {
        let word = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        MsqidDs {
            perm: permissions.to_guest(),
            stime: self.sent.0,
            rtime: self.received.0,
            ctime: permissions.changed,
            cbytes: word(self.bytes),
            qnum: word(self.messages.len()),
            qbytes: word(self.room),
            lspid: self.sent.1.cast_signed(),
            lrpid: self.received.1.cast_signed(),
            ..MsqidDs::default()
        }
    }
}
