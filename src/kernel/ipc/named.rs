//! POSIX message queues: found by name, used through descriptors.
//!
//! The host's side of a descriptor is one end of a pair of sockets, for poll(2) and its like: a
//! byte lies in it while the queue has messages, and while the queue is full so much has been sent
//! from it that no more may be. A guest that reads or writes its end otherwise misleads nobody but
//! itself: messages do not pass through it, and no call on either end waits.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use lind_abi::{CageId, Errno, Result};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};

use super::{Permissions, Space};
use crate::call::Ctx;
use crate::event::{Event, Seen};
use crate::fd::{File, Kind};
use crate::host::errno;
use crate::lock::Locked;

/// As Linux has it for those without privileges.
const MOST_QUEUES: usize = 256;
const MOST_MESSAGES: i64 = 10;
const LONGEST_MESSAGE: i64 = 8192;
const LONGEST_NAME: usize = 255;

/// Names in each namespace, and their queues.
#[derive(Debug, Default)]
pub(crate) struct Named {
    queues: BTreeMap<(Space, Vec<u8>), Arc<MessageQueue>>,
    /// Held by every queue, also by those without a name: they take memory until they are closed.
    all: Arc<()>,
}

/// How many messages fit into a queue, and how long they may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub messages: usize,
    pub longest: usize,
}

impl Size {
    /// The size if mq_open(3) is given none.
    pub const DEFAULT: Size = Size { messages: 10, longest: 8192 };

    /// The size from mq_open(3)'s arguments. EINVAL.
    pub fn new(messages: i64, longest: i64) -> Result<Size> {
        if !(1..=MOST_MESSAGES).contains(&messages) || !(1..=LONGEST_MESSAGE).contains(&longest) {
            return Err(Errno::EINVAL);
        }
        let size = |value: i64| usize::try_from(value).map_err(|_| Errno::EINVAL);
        Ok(Size { messages: size(messages)?, longest: size(longest)? })
    }
}

impl Named {
    /// The queue of this name, if the caller may use it so; `make` is the mode and size for a new
    /// one if there is none.
    ///
    /// # Errors
    /// ENOENT, EACCES, ENOSPC; EEXIST where `only_new`.
    pub fn find(
        &mut self,
        cx: &Ctx<'_>,
        name: &[u8],
        make: Option<(u32, Size)>,
        only_new: bool,
        wanted: u32,
    ) -> Result<Arc<MessageQueue>> {
        check_name(name)?;
        let name = (Space::of(cx), name.to_vec());
        if let Some(queue) = self.queues.get(&name) {
            if make.is_some() && only_new {
                return Err(Errno::EEXIST);
            }
            queue.permissions.check(cx, wanted)?;
            return Ok(Arc::clone(queue));
        }
        let (mode, size) = make.ok_or(Errno::ENOENT)?;
        if Arc::strong_count(&self.all) > MOST_QUEUES {
            return Err(Errno::ENOSPC);
        }
        let inside = Inside { messages: BTreeMap::new(), next: 0, receivers: 0, notice: None, open: Vec::new() };
        let permissions = Permissions::new(cx, mode);
        let (inside, counted) = (Mutex::new(inside), Arc::clone(&self.all));
        let queue = Arc::new(MessageQueue { permissions, size, inside, changed: Event::default(), _counted: counted });
        self.queues.insert(name, Arc::clone(&queue));
        Ok(queue)
    }

    /// Takes a name away. Processes that have the queue open keep it.
    ///
    /// # Errors
    /// ENOENT, EPERM.
    pub fn remove(&mut self, cx: &Ctx<'_>, name: &[u8]) -> Result<()> {
        check_name(name)?;
        let name = (Space::of(cx), name.to_vec());
        self.queues.get(&name).ok_or(Errno::ENOENT)?.permissions.check_owner(cx)?;
        self.queues.remove(&name);
        Ok(())
    }

    /// Takes all names of a namespace away.
    pub fn forget(&mut self, space: Space) {
        self.queues.retain(|name, _| name.0 != space);
    }
}

fn check_name(name: &[u8]) -> Result<()> {
    match name {
        [] => Err(Errno::ENOENT),
        b"." | b".." => Err(Errno::EACCES),
        name if name.contains(&b'/') => Err(Errno::EACCES),
        name if name.len() > LONGEST_NAME => Err(Errno::ENAMETOOLONG),
        _ => Ok(()),
    }
}

/// A queue.
#[derive(Debug)]
pub(crate) struct MessageQueue {
    permissions: Permissions,
    pub size: Size,
    inside: Mutex<Inside>,
    changed: Event,
    _counted: Arc<()>,
}

#[derive(Debug)]
struct Inside {
    /// The most urgent first, then the oldest.
    messages: BTreeMap<(Reverse<u32>, u64), Vec<u8>>,
    next: u64,
    /// How many wait for a message.
    receivers: u32,
    notice: Option<Notice>,
    open: Vec<Weak<File>>,
}

/// The registration for a message that comes to an empty queue (mq_notify(3)).
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    pub cage: CageId,
    pub way: Way,
    /// The descriptor by which it was asked for; if it is closed, nothing is sent.
    pub by: Weak<File>,
}

/// The ways to notify.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// No notification: mere registration.
    None,
    /// By a signal with a value.
    Signal(u8, u32),
    /// By the letter kept at the descriptor.
    Letter,
}

/// A message to put into a socket. The descriptor for which it was asked owns the socket, and
/// closing that closes the socket.
#[derive(Debug)]
pub(crate) struct Letter {
    pub socket: Arc<File>,
    pub text: [u8; Letter::LEN],
}

impl Letter {
    /// As long as Linux's NOTIFY_COOKIE_LEN.
    pub const LEN: usize = 32;

    fn post(&self) {
        // Room there is in one that the guest does not use for other things.
        let _ = send(self.socket.host(), &self.text, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

/// A notification that is due.
pub(crate) enum Notification {
    Signal(CageId, u8, u32),
    Letter(Letter),
}

impl Notification {
    /// Tells by letter; by signal is for others to do.
    pub fn signal(self) -> Option<(CageId, u8, u32)> {
        match self {
            Notification::Signal(cage, signal, value) => Some((cage, signal, value)),
            Notification::Letter(letter) => {
                letter.post();
                None
            }
        }
    }
}

impl Notice {
    fn notification(&self) -> Option<Notification> {
        let by = self.by.upgrade()?;
        match (self.way, &by.kind) {
            (Way::Signal(signal, value), _) => Some(Notification::Signal(self.cage, signal, value)),
            (Way::Letter, Kind::Queue(end)) => end.letter().take().map(Notification::Letter),
            _ => None,
        }
    }
}

/// The outcome of sending a message.
pub(crate) enum Sent {
    /// The message is in; a notification may be due.
    Done(Option<Notification>),
    /// The queue is full until something changes.
    Full(Vec<u8>, Seen),
}

impl MessageQueue {
    /// Puts a message in.
    pub fn send(&self, message: Vec<u8>, priority: u32) -> Sent {
        let mut inside = self.inside();
        if inside.messages.len() >= self.size.messages {
            return Sent::Full(message, self.changed.seen());
        }
        let was_empty = inside.messages.is_empty();
        let number = inside.next;
        inside.next += 1;
        inside.messages.insert((Reverse(priority), number), message);
        if was_empty {
            inside.show(End::tell);
        }
        if inside.messages.len() == self.size.messages {
            inside.show(End::fill);
        }
        let notice = if was_empty && inside.receivers == 0 { inside.notice.take() } else { None };
        let notification = notice.and_then(|notice| notice.notification());
        self.changed.notify_all();
        Sent::Done(notification)
    }

    /// Takes out the first message and its priority; the event to wait for if there is none.
    pub fn receive(&self) -> core::result::Result<(Vec<u8>, u32), Seen> {
        let mut inside = self.inside();
        let was_full = inside.messages.len() == self.size.messages;
        let Some(((Reverse(priority), _), message)) = inside.messages.pop_first() else {
            return Err(self.changed.seen());
        };
        if was_full {
            inside.show(End::drain);
        }
        if inside.messages.is_empty() {
            inside.show(End::quiet);
        }
        self.changed.notify_all();
        Ok((message, priority))
    }

    /// Waits by `wait` for it to change. A receiver that waits for messages is served before a
    /// process that asked to be notified of them.
    pub fn wait<T>(&self, receiver: bool, wait: impl FnOnce(&Event) -> T) -> T {
        let count = u32::from(receiver);
        self.inside().receivers += count;
        let result = wait(&self.changed);
        self.inside().receivers -= count;
        result
    }

    /// How many messages are in it.
    pub fn len(&self) -> usize {
        self.inside().messages.len()
    }

    /// Registers a notification; `letter` is for the way of that name.
    ///
    /// # Errors
    /// EBUSY if another one is registered already.
    pub fn register(&self, notice: Notice, letter: Option<Letter>) -> Result<()> {
        let mut inside = self.inside();
        if inside.notice.as_ref().is_some_and(|other| other.by.strong_count() > 0) {
            return Err(Errno::EBUSY);
        }
        if let Some(file) = notice.by.upgrade()
            && let Kind::Queue(end) = &file.kind
        {
            *end.letter() = letter;
        }
        inside.notice = Some(notice);
        Ok(())
    }

    /// Drops a cage's registration.
    pub fn unregister(&self, cage: CageId) {
        let mut inside = self.inside();
        if let Some(notice) = inside.notice.take_if(|notice| notice.cage == cage) {
            // A letter that is not sent goes.
            drop(notice.notification());
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.locked()
    }
}

impl Inside {
    fn show(&mut self, change: impl Fn(&End, BorrowedFd<'_>)) {
        self.open.retain(|file| {
            let Some(file) = file.upgrade() else { return false };
            if let Kind::Queue(end) = &file.kind {
                change(end, file.host());
            }
            true
        });
    }
}

/// An open queue.
#[derive(Debug)]
pub struct End {
    pub(crate) queue: Arc<MessageQueue>,
    access: u32,
    /// The other socket of the pair.
    other: OwnedFd,
    letter: Mutex<Option<Letter>>,
}

/// More than half of the smallest buffer that is possible: after sending that, a socket may not
/// send more.
const FILLING: usize = 2048;

impl End {
    /// Opens a queue.
    ///
    /// # Errors
    /// EMFILE.
    pub(crate) fn open(queue: Arc<MessageQueue>, access: u32, nonblock: bool) -> Result<Arc<File>> {
        let flags = SocketFlags::CLOEXEC;
        let (host, other) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(errno)?;
        set_socket_send_buffer_size(&host, 1).map_err(errno)?;
        if nonblock {
            rustix::fs::fcntl_setfl(&host, rustix::fs::OFlags::NONBLOCK).map_err(errno)?;
        }
        let file = Arc::new(File::new(
            host,
            Kind::Queue(End { queue: Arc::clone(&queue), access, other, letter: Mutex::default() }),
        ));
        let Kind::Queue(end) = &file.kind else { return Err(Errno::EBADF) };
        let mut inside = queue.inside();
        if !inside.messages.is_empty() {
            end.tell(file.host());
        }
        if inside.messages.len() == queue.size.messages {
            end.fill(file.host());
        }
        inside.open.retain(|file| file.strong_count() > 0);
        inside.open.push(Arc::downgrade(&file));
        drop(inside);
        Ok(file)
    }

    /// Whether it was opened for one of these: [`READ`](super::READ), [`WRITE`](super::WRITE).
    pub(crate) fn is_for(&self, access: u32) -> bool {
        self.access & access != 0
    }

    fn letter(&self) -> MutexGuard<'_, Option<Letter>> {
        self.letter.locked()
    }

    // None of these calls waits, and unexpected contents are the guest's own doing.

    fn tell(&self, _: BorrowedFd<'_>) {
        let _ = send(&self.other, b"m", SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    fn quiet(&self, host: BorrowedFd<'_>) {
        let _ = recv(host, &mut [0; 64][..], RecvFlags::DONTWAIT);
    }

    fn fill(&self, host: BorrowedFd<'_>) {
        let _ = send(host, &[0; FILLING], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    fn drain(&self, _: BorrowedFd<'_>) {
        let _ = recv(self.other.as_fd(), &mut [0; 2 * FILLING][..], RecvFlags::DONTWAIT);
    }
}
