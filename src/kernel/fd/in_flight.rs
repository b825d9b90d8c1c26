//! Descriptors in flight: sent in messages of unix sockets, and not received yet.
//!
//! The host counts them for its user, to whom all cages and other runners belong, and beyond a
//! limit none of those may send any. So each cage has a limit of its own, like users on Linux:
//! RLIMIT_NOFILE. The kernel does not see when messages are received or lost. But the host reports
//! how much memory the unreceived messages of a socket take, and each takes at least as much as an
//! empty one, so it bounds how many of the latest messages are left.
//!
//! A socket that is closed meanwhile could not be asked any more, so it is kept, shut down for its
//! peer, until its messages are gone. This is not possible for a socket that came or went in a
//! message itself, since others may have it too: its messages then count until its cage ends, and
//! for another cage after that.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use lind_abi::{CageId, Errno, Result};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, send, socketpair};

use super::{File, Kind};
use crate::host::{errno, net};
use crate::lock::Locked;

/// The number of descriptors that a cage may send although all together have reached their limit.
const FEW: u32 = 8;
/// The most pieces that are read and discarded when a closed socket is emptied.
const MOST_PIECES: usize = 4096;

/// The count for all cages.
#[derive(Debug)]
pub struct InFlight {
    state: Mutex<State>,
    /// The limit for all cages together: a part of the host's limit for its user.
    limit: u32,
}

#[derive(Default, Debug)]
struct State {
    /// The senders, by numbers of their own.
    senders: HashMap<u64, Sender>,
    last: u64,
    counts: HashMap<CageId, u32>,
    total: u32,
    /// The number of sockets that are kept.
    kept: usize,
}

/// A socket by which descriptors were sent.
#[derive(Debug)]
struct Sender {
    socket: Socket,
    /// The oldest first.
    sent: VecDeque<Sent>,
}

#[derive(Debug)]
enum Socket {
    Open(Weak<File>),
    /// Closed, but kept, so that it can be asked.
    Kept(OwnedFd),
    /// Closed, and not available any more.
    Gone,
}

/// The descriptors of one message.
#[derive(Debug)]
struct Sent {
    payer: CageId,
    count: u32,
    /// Whether the host has the message. Before that, it cannot be seen there.
    arrived: bool,
}

/// The place of a file's sends in the ledger.
#[derive(Debug)]
pub struct Sends {
    ledger: Arc<InFlight>,
    number: u64,
}

impl Default for InFlight {
    fn default() -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap_or(1 << 20);
        InFlight { state: Mutex::default(), limit: u32::try_from(limit / 2).unwrap_or(u32::MAX) }
    }
}

impl InFlight {
    /// Counts descriptors that `cage` is about to send by `file`, if it is within `limit`.
    /// [`InFlight::sent`] has to follow.
    ///
    /// # Errors
    /// ETOOMANYREFS.
    pub fn admit(self: &Arc<InFlight>, cage: CageId, file: &Arc<File>, count: u32, limit: u64) -> Result<()> {
        let mut held = Vec::new();
        let mut state = self.lock();
        if state.is_full(cage, limit, self.limit) {
            state.look(&mut held);
            if state.is_full(cage, limit, self.limit) {
                return Err(Errno::ETOOMANYREFS);
            }
        }
        let new = state.last + 1;
        let number = file.sends_in(|| Sends { ledger: Arc::clone(self), number: new }).number;
        state.last = state.last.max(number);
        let sender = state
            .senders
            .entry(number)
            .or_insert_with(|| Sender { socket: Socket::Open(Arc::downgrade(file)), sent: VecDeque::new() });
        sender.sent.push_back(Sent { payer: cage, count, arrived: false });
        state.add(cage, count);
        Ok(())
    }

    /// Notes the outcome of a send: whether the host has the message.
    pub fn sent(&self, cage: CageId, file: &File, count: u32, arrived: bool) {
        let Some(sends) = file.sends() else { return };
        let mut state = self.lock();
        let Some(sender) = state.senders.get_mut(&sends.number) else { return };
        let waiting = |sent: &Sent| !sent.arrived && sent.payer == cage && sent.count == count;
        let Some(at) = sender.sent.iter().position(waiting) else { return };
        if arrived {
            sender.sent[at].arrived = true;
        } else {
            sender.sent.remove(at);
            state.take(cage, count);
        }
    }

    /// Closes the sockets that were kept and have nothing in flight any more.
    pub fn look_at_kept(&self) {
        let mut held = Vec::new();
        let mut state = self.lock();
        if state.kept > 0 {
            state.look(&mut held);
        }
    }

    /// How many a cage has in flight.
    pub fn of(&self, cage: CageId) -> u32 {
        let mut held = Vec::new();
        let mut state = self.lock();
        if state.counts.contains_key(&cage) {
            state.look(&mut held);
        }
        state.counts.get(&cage).copied().unwrap_or(0)
    }

    /// Handles the end of a cage: its descriptors in flight count as `heir`'s.
    pub fn ended(&self, cage: CageId, heir: Option<CageId>) {
        let mut held = Vec::new();
        let mut state = self.lock();
        if !state.counts.contains_key(&cage) {
            return;
        }
        state.look(&mut held);
        let Some(count) = state.counts.remove(&cage) else { return };
        // Nobody has this id.
        let payer = heir.unwrap_or(CageId(0));
        *state.counts.entry(payer).or_default() += count;
        let all = state.senders.values_mut().flat_map(|sender| &mut sender.sent);
        all.filter(|sent| sent.payer == cage).for_each(|sent| sent.payer = payer);
        if heir.is_none() {
            // Nobody is left to pay, and nobody to ask.
            state.senders.retain(|_, sender| {
                let is_nobodys = |sent: &Sent| sent.payer == payer;
                !(matches!(sender.socket, Socket::Gone) && sender.sent.iter().all(is_nobodys))
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.locked()
    }
}

impl State {
    fn is_full(&self, cage: CageId, limit: u64, of_all: u32) -> bool {
        let own = self.counts.get(&cage).copied().unwrap_or(0);
        u64::from(own) > limit || self.total >= of_all && own >= FEW
    }

    fn add(&mut self, cage: CageId, count: u32) {
        *self.counts.entry(cage).or_default() += count;
        self.total += count;
    }

    fn take(&mut self, cage: CageId, count: u32) {
        self.total = self.total.saturating_sub(count);
        if let Some(own) = self.counts.get_mut(&cage) {
            *own = own.saturating_sub(count);
            if *own == 0 {
                self.counts.remove(&cage);
            }
        }
    }

    /// Asks the host which messages are still there. The files are kept in `held` until the lock is
    /// released: dropping the last reference closes a file.
    fn look(&mut self, held: &mut Vec<Arc<File>>) {
        let mut gone = Vec::new();
        let kept = &mut self.kept;
        self.senders.retain(|_, sender| {
            let most = match &sender.socket {
                // Files that are being closed are about to say so themselves.
                Socket::Open(file) => file.upgrade().map(|file| {
                    let most = messages_of(file.host());
                    held.push(file);
                    most
                }),
                Socket::Kept(socket) => Some(messages_of(socket.as_fd())),
                Socket::Gone => None,
            };
            let Some(most) = most else { return true };
            let mut there = sender.sent.iter().filter(|sent| sent.arrived).count();
            while there > most {
                let Some(at) = sender.sent.iter().position(|sent| sent.arrived) else { break };
                gone.extend(sender.sent.remove(at).map(|sent| (sent.payer, sent.count)));
                there -= 1;
            }
            let done = sender.sent.is_empty() && matches!(sender.socket, Socket::Kept(_));
            *kept -= usize::from(done);
            !done
        });
        for (cage, count) in gone {
            self.take(cage, count);
        }
    }
}

impl Sends {
    /// The file is about to be closed.
    pub fn closes(&self, file: &File) {
        let mut state = self.ledger.lock();
        let Some(sender) = state.senders.get_mut(&self.number) else { return };
        let own = matches!(&file.kind, Kind::Socket(socket) if !socket.travelled.load(Ordering::Acquire));
        if sender.sent.is_empty() || messages_of(file.host()) == 0 {
            let sent = std::mem::take(&mut sender.sent);
            state.senders.remove(&self.number);
            sent.into_iter().for_each(|sent| state.take(sent.payer, sent.count));
            return;
        }
        let copy = if own { rustix::io::fcntl_dupfd_cloexec(file.host(), 3).ok() } else { None };
        let Some(copy) = copy else {
            sender.socket = Socket::Gone;
            return;
        };
        hang_up(copy.as_fd());
        sender.socket = Socket::Kept(copy);
        state.kept += 1;
    }
}

/// How many messages that a socket has sent can be there still.
fn messages_of(socket: BorrowedFd<'_>) -> usize {
    /// The memory that an empty message takes on this host.
    static LEAST: OnceLock<u32> = OnceLock::new();
    let least = *LEAST.get_or_init(|| taken_by_empty().map_or(1, |bytes| bytes.max(1)));
    net::sent_memory(socket).map_or(usize::MAX, |bytes| bytes.div_ceil(least) as usize)
}

fn taken_by_empty() -> Result<u32> {
    let flags = SocketFlags::CLOEXEC;
    let (from, _to) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None).map_err(errno)?;
    send(&from, &[], SendFlags::DONTWAIT).map_err(errno)?;
    net::sent_memory(from.as_fd())
}

/// Does what closing the socket would mean to others: no more is sent or received, and received
/// messages are lost.
fn hang_up(socket: BorrowedFd<'_>) {
    let _ = rustix::net::shutdown(socket, Shutdown::Both);
    for _ in 0..MOST_PIECES {
        match rustix::net::recv(socket, &mut [0; 4096][..], RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
            Ok((_, count)) if count > 0 => {}
            _ => break,
        }
    }
}
