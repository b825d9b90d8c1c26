//! An open file: a host descriptor and further state of the kernel's.
//!
//! It is an open file description in Linux's sense: shared by every descriptor that dup, spawn or a
//! control message made of it, in however many cages, and closed with the last of them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use lind_abi::{CageId, Errno, Result};

use super::locks::{FileId, Locks, Owner};
use super::{Interests, Sends, Socket, Watches};
use crate::async_io::Notice;
use crate::cage::signal::Signalfd;
use crate::host;
use crate::ipc::End;
use crate::landlock::Ruleset;
use crate::lock::Locked;
use crate::procfs::Place;
use crate::root::table::{Dir, MountId};
use crate::terminal::Pty;

/// The kinds of file that the kernel treats in different ways.
#[derive(Debug)]
pub enum Kind {
    /// Anything else that the host serves alone: terminals, files that were handed in.
    Host,
    /// A directory from outside the root that an option of a grate names. Files in it whose names
    /// are numbers may be opened, made and removed, and no other path starts here.
    Numbered,
    /// A pipe.
    Pipe,
    /// Opened by its name inside the root, in this mount. If it is a directory, which the host
    /// knows, paths may start here.
    Named(MountId),
    /// A place in /proc or /dev that the kernel serves itself.
    Pseudo(Place),
    /// An inotify instance.
    Inotify(Watches),
    /// A terminal: one that was handed in, or the slave of a pseudoterminal.
    Terminal,
    /// The master of a pseudoterminal.
    Master(Pty),
    /// A socket.
    Socket(Socket),
    /// A signalfd(2).
    Signalfd(Signalfd),
    /// A pidfd: a process to wait for, or to signal.
    Process(CageId),
    /// A message queue.
    Queue(End),
    /// A ruleset of landlock(7).
    Ruleset(Ruleset),
    /// An epoll instance, with the guest descriptor of each registration.
    Epoll(Interests),
}

/// An open file description.
pub struct File {
    /// State that few files have. This field comes first, so that it is dropped while `host` is
    /// still open: last events of the file are looked up by it.
    more: OnceLock<Box<More>>,
    host: OwnedFd,
    /// How the kernel treats it.
    pub kind: Kind,
    /// The table and the file where the description has had locks of its own.
    locked: OnceLock<(Arc<Locks>, FileId)>,
    /// The cached result of [`File::id`].
    id: OnceLock<FileId>,
    /// Whether it outlives this at the host: see [`File::lend`].
    lent: AtomicBool,
}

/// State that few files have, kept apart so that the others need no room for it.
#[derive(Default)]
struct More {
    /// The receiver of signals about the file.
    notice: OnceLock<Arc<Notice>>,
    /// Descriptors that were sent by it in messages.
    sends: OnceLock<Sends>,
    /// A descriptor for epoll(7) to wait for in place of the file's; see [`File::wait_by`].
    ready: OnceLock<OwnedFd>,
    /// Further host descriptors of it; see [`File::descriptor`].
    copies: [OnceLock<OwnedFd>; File::COPIES],
    /// The epoll instances that a socket was added to while it could become the loopback's.
    watchers: Mutex<Vec<Weak<File>>>,
}

impl File {
    /// How many copies [`File::descriptor`] gives.
    pub const COPIES: usize = 15;

    /// A file that came from outside, or was received: a terminal or anything else that the host
    /// serves alone.
    pub fn handed_in(host: OwnedFd) -> File {
        let kind = if rustix::termios::isatty(&host) { Kind::Terminal } else { Kind::Host };
        File::new(host, kind)
    }

    /// Whether reading and writing it is more than the host's business.
    pub(super) fn is_watched(&self) -> bool {
        match &self.kind {
            Kind::Pseudo(place) => place.is_setting(),
            kind => {
                matches!(kind, Kind::Terminal | Kind::Master(_) | Kind::Signalfd(_) | Kind::Process(_) | Kind::Queue(_))
            }
        }
    }

    /// Whether reading it may wait for another process.
    pub(super) fn makes_wait(&self) -> bool {
        matches!(self.kind, Kind::Pipe | Kind::Socket(_))
    }

    /// A file that the host serves.
    pub fn new(host: OwnedFd, kind: Kind) -> File {
        File {
            more: OnceLock::new(),
            host,
            kind,
            locked: OnceLock::new(),
            id: OnceLock::new(),
            lent: AtomicBool::new(false),
        }
    }

    /// A further open file of the one that `like` is, which the host may call something else.
    pub(crate) fn alike(host: OwnedFd, like: &File) -> Result<File> {
        let file = File::new(host, Kind::Terminal);
        let _ = file.id.set(like.id()?);
        Ok(file)
    }

    /// A descriptor of the same open file that may stay when this has gone, for record locks. Other
    /// state of the open file still ends with this one.
    ///
    /// # Errors
    /// EMFILE.
    pub fn lend(&self) -> Result<OwnedFd> {
        self.lent.store(true, Ordering::Relaxed);
        rustix::io::fcntl_dupfd_cloexec(&self.host, 3).map_err(host::errno)
    }

    /// The host descriptor.
    #[inline]
    pub fn host(&self) -> BorrowedFd<'_> {
        self.host.as_fd()
    }

    /// The mount it was found by.
    #[inline]
    pub fn mount(&self) -> MountId {
        if let Kind::Named(mount) = self.kind { mount } else { MountId::NONE }
    }

    /// The file as the start of a look-up.
    pub(crate) fn dir(&self) -> Dir<'_> {
        Dir::new(self.host(), self.mount())
    }

    /// The host descriptor (0), or one of its copies (1 to `COPIES`), made when first asked for and
    /// closed with it: for epoll(7), to which they are different.
    ///
    /// # Errors
    /// ENOSPC beyond `COPIES`, EMFILE.
    pub fn descriptor(&self, copy: usize) -> Result<BorrowedFd<'_>> {
        let first = self.more.get().and_then(|more| more.ready.get()).unwrap_or(&self.host);
        let Some(index) = copy.checked_sub(1) else { return Ok(first.as_fd()) };
        let copy = self.more.get_or_init(Box::default).copies.get(index).ok_or(Errno::ENOSPC)?;
        if copy.get().is_none() {
            let _ = copy.set(rustix::io::fcntl_dupfd_cloexec(first, 3).map_err(host::errno)?);
        }
        copy.get().map(AsFd::as_fd).ok_or(Errno::EMFILE)
    }

    /// Has epoll(7) wait for another descriptor than the file's own, which the host refuses to wait
    /// for.
    pub(crate) fn wait_by(&self, new: impl FnOnce() -> Result<OwnedFd>) -> Result<()> {
        let ready = &self.more.get_or_init(Box::default).ready;
        if ready.get().is_none() {
            let _ = ready.set(new()?);
        }
        Ok(())
    }

    /// Notes that an epoll instance waits for it, if it is a socket that may get another of the
    /// host's in its place.
    pub(crate) fn note_watcher(&self, epoll: &Arc<File>) {
        let Kind::Socket(socket) = &self.kind else { return };
        if socket.loopback.get().is_some() || socket.pair.is_some() {
            return;
        }
        let mut watchers = self.more.get_or_init(Box::default).watchers.locked();
        watchers.retain(|other| other.strong_count() > 0);
        if !watchers.iter().any(|other| other.as_ptr() == Arc::as_ptr(epoll)) {
            watchers.push(Arc::downgrade(epoll));
        }
    }

    /// Puts another socket in the place of the host's, for all its descriptors. The host forgets
    /// the epoll instances that wait for the old one, so it is added to them again.
    ///
    /// # Errors
    /// EBUSY, EMFILE, as dup3(2) has them.
    pub(crate) fn replace(&self, new: OwnedFd) -> Result<()> {
        let more = self.more.get();
        for copy in more.iter().flat_map(|more| &more.copies).filter_map(OnceLock::get) {
            host::net::replace(copy.as_fd(), rustix::io::fcntl_dupfd_cloexec(&new, 3).map_err(host::errno)?)?;
        }
        host::net::replace(self.host(), new)?;
        let watchers: Vec<_> =
            more.iter().flat_map(|more| more.watchers.locked().clone()).filter_map(|epoll| epoll.upgrade()).collect();
        for epoll in watchers {
            if let Kind::Epoll(interests) = &epoll.kind {
                interests.register_again(epoll.host(), self);
            }
        }
        Ok(())
    }

    /// The receiver of signals about the file; None if nobody has asked.
    pub(crate) fn notice(&self) -> Option<&Arc<Notice>> {
        self.more.get()?.notice.get()
    }

    /// As `notice`, made if there is none.
    pub(crate) fn make_notice(&self) -> &Arc<Notice> {
        self.more.get_or_init(Box::default).notice.get_or_init(Arc::default)
    }

    /// The record of descriptors that were sent by it; None if there were none.
    pub(super) fn sends(&self) -> Option<&Sends> {
        self.more.get()?.sends.get()
    }

    /// As `sends`, made if there is none.
    pub(super) fn sends_in(&self, new: impl FnOnce() -> Sends) -> &Sends {
        self.more.get_or_init(Box::default).sends.get_or_init(new)
    }

    /// Which file it is.
    ///
    /// # Errors
    /// The errors of fstat(2).
    pub fn id(&self) -> Result<FileId> {
        match self.id.get() {
            Some(id) => Ok(*id),
            None => FileId::of(self.host()).map(|id| *self.id.get_or_init(|| id)),
        }
    }

    /// The owner of the description's own locks in `locks`, which end with it.
    ///
    /// # Errors
    /// The errors of fstat(2).
    pub fn owner_in(&self, locks: &Arc<Locks>) -> Result<Owner> {
        if self.locked.get().is_none() {
            let _ = self.locked.set((Arc::clone(locks), self.id()?));
        }
        Ok(self.owner())
    }

    /// A file lives in an `Arc` and never moves, so its address is its own as long as it lives.
    fn owner(&self) -> Owner {
        Owner::Description(std::ptr::from_ref(self).addr())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if let Some(sends) = self.sends() {
            sends.closes(self);
        }
        if let Some((locks, file)) = self.locked.get() {
            locks.give_up_file(*file, self.owner());
        }
        if *self.lent.get_mut() {
            let _ = rustix::fs::flock(&self.host, rustix::fs::FlockOperation::Unlock);
        }
    }
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("File").field("host", &self.host).field("kind", &self.kind).finish_non_exhaustive()
    }
}
