//! The thread that waits for all files with signals.
//!
//! It serves all cages, so none may use much of it: a look at a file costs as much as one at a
//! timer ([`Pace`](crate::timers::Pace)), and a file of a cage that is ahead is looked at later.
//! All events of a file in the meantime are reported once.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use lind_abi::{Errno, Result};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

use super::Notice;
use super::lease::OFTEN;
use super::notify::Directories;
use super::owner::{Event, Letter};
use crate::Kernel;
use crate::host::errno;
use crate::lock::Locked;
use crate::timers::{Nanos, now};

/// The files that are watched.
#[derive(Default)]
pub(crate) struct AsyncIo {
    used: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The host's instance, once there was something to wait for, and what closed files leave.
    epoll: Option<(Arc<OwnedFd>, Arc<LastWords>)>,
    files: HashMap<u64, Weak<Notice>>,
    last: u64,
    /// The files that have leases, and the number of each lease.
    leases: Vec<(u64, Weak<Notice>)>,
    /// The directories that are watched, once there was one.
    directories: Option<Directories>,
    /// At how many entries those of closed files are dropped next.
    full: usize,
}

/// Events of files that have been closed and are still to be reported.
#[derive(Debug)]
pub(super) struct LastWords {
    words: Mutex<Vec<(Letter, Vec<Event>)>>,
    /// An eventfd(2) that is readable if there is something.
    bell: OwnedFd,
}

impl LastWords {
    /// The most events of closed files that are kept.
    const MOST: usize = 1024;

    fn new() -> Result<LastWords> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(errno)?;
        Ok(LastWords { words: Mutex::default(), bell })
    }

    /// Leaves events for the thread to report.
    pub fn leave(&self, words: (Letter, Vec<Event>)) {
        let mut all = self.words.locked();
        if all.len() < LastWords::MOST {
            all.push(words);
        }
        drop(all);
        self.wake();
    }

    /// Has the thread look.
    pub(super) fn wake(&self) {
        // If the count is at its maximum, the thread has been woken already.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    fn tell(&self, kernel: &Kernel) {
        let _ = rustix::io::read(&self.bell, &mut [0_u8; 8]);
        let words = std::mem::take(&mut *self.words.locked());
        for (letter, events) in words {
            events.into_iter().for_each(|event| letter.send(kernel, event));
        }
    }
}

/// The number of `LastWords` among the files' numbers.
const LAST_WORDS: u64 = 0;

/// The number of `Directories` among them.
const DIRECTORIES: u64 = u64::MAX;

/// How long directories rest after a look: what happens there costs the thread no more than that.
const REST: Nanos = 1_000_000;

/// The host reports a file once, until it has been looked at.
const ONCE: EventFlags = EventFlags::IN.union(EventFlags::ONESHOT);

impl AsyncIo {
    /// Whether there ever was something to wait for.
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Watches a file's instance until it is closed. Returns the number by which it is looked at.
    ///
    /// # Errors
    /// EMFILE, ENOMEM; EAGAIN without a thread for it.
    pub(super) fn watch(
        &self,
        kernel: &Arc<Kernel>,
        notice: &Arc<Notice>,
        file: &OwnedFd,
    ) -> Result<(u64, Arc<LastWords>)> {
        let mut state = self.state();
        let (all, last) = self.thread(kernel, &mut state)?;
        if state.files.len() >= state.full {
            state.files.retain(|_, file| file.strong_count() > 0);
            state.full = (2 * state.files.len()).max(64);
        }
        state.last += 1;
        let id = state.last;
        state.files.insert(id, Arc::downgrade(notice));
        epoll::add(&*all, file, EventData::new_u64(id), ONCE).map_err(errno)?;
        Ok((id, last))
    }

    /// Has a file's lease looked at from now on. Returns the number by which it is.
    ///
    /// # Errors
    /// As for `watch`.
    pub(super) fn watch_lease(&self, kernel: &Arc<Kernel>, notice: &Arc<Notice>) -> Result<(u64, Arc<LastWords>)> {
        let mut state = self.state();
        let (_, last) = self.thread(kernel, &mut state)?;
        state.last += 1;
        let id = state.last;
        // Of two of one file the later one counts.
        state.leases.retain(|(_, known)| known.as_ptr() != Arc::as_ptr(notice));
        state.leases.push((id, Arc::downgrade(notice)));
        Ok((id, last))
    }

    /// Whether a cage has a lease, as far as is known.
    pub fn has_leases(&self) -> bool {
        self.is_used() && !self.state().leases.is_empty()
    }

    /// The leases that are looked at.
    pub(super) fn leases(&self) -> Vec<(u64, Weak<Notice>)> {
        self.state().leases.clone()
    }

    /// Looks at these no more.
    pub(super) fn forget_leases(&self, gone: &[u64]) {
        if !gone.is_empty() {
            self.state().leases.retain(|(id, _)| !gone.contains(id));
        }
    }

    /// Acts on the directories that are watched.
    ///
    /// # Errors
    /// The errors of `act`; EMFILE; EAGAIN without a thread that looks at them.
    pub(super) fn with_directories(
        &self,
        kernel: &Arc<Kernel>,
        act: impl FnOnce(&mut Directories) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.state();
        let (epoll, _) = self.thread(kernel, &mut state)?;
        if let Some(directories) = &mut state.directories {
            return act(directories);
        }
        let mut directories = Directories::new()?;
        epoll::add(&*epoll, directories.host(), EventData::new_u64(DIRECTORIES), ONCE).map_err(errno)?;
        let result = act(&mut directories);
        state.directories = Some(directories);
        result
    }

    /// The files to signal about after changes in directories, and the number of each.
    pub(super) fn news_of_directories(&self) -> Vec<(Arc<Notice>, i32)> {
        self.state().directories.as_mut().map_or_else(Vec::new, Directories::take)
    }

    /// The epoll instance of the thread, which is started if it was not, and its bell.
    fn thread(&self, kernel: &Arc<Kernel>, state: &mut State) -> Result<(Arc<OwnedFd>, Arc<LastWords>)> {
        if let Some(both) = &state.epoll {
            return Ok(both.clone());
        }
        let last = Arc::new(LastWords::new()?);
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).map_err(errno)?);
        epoll::add(&*epoll, &last.bell, EventData::new_u64(LAST_WORDS), EventFlags::IN).map_err(errno)?;
        let (kernel, both) = (Arc::downgrade(kernel), (epoll, last));
        let its = both.clone();
        let thread = std::thread::Builder::new().name("async-io".to_owned()).stack_size(128 << 10);
        thread.spawn(move || serve(&kernel, &its.0, &its.1)).map_err(|_| Errno::EAGAIN)?;
        self.used.store(true, Ordering::Relaxed);
        Ok(state.epoll.insert(both).clone())
    }

    fn notice(&self, id: u64) -> Option<Arc<Notice>> {
        let mut state = self.state();
        let notice = state.files.get(&id)?.upgrade();
        if notice.is_none() {
            state.files.remove(&id);
        }
        notice
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.locked()
    }
}

fn serve(kernel: &Weak<Kernel>, epoll: &OwnedFd, last: &LastWords) {
    const AT_ONCE: usize = 64;
    let mut later = BTreeSet::new();
    let mut leased = false;
    let mut ready: Vec<epoll::Event> = Vec::with_capacity(AT_ONCE);
    loop {
        ready.clear();
        // It may be interrupted, or meant for nobody.
        let _ = epoll::wait(epoll, rustix::buffer::spare_capacity(&mut ready), Some(&until(&later, leased)));
        let Some(kernel) = kernel.upgrade() else { return };
        for id in ready.iter().map(|event| event.data.u64()) {
            if id == LAST_WORDS {
                last.tell(&kernel);
                continue;
            }
            if id == DIRECTORIES {
                kernel.async_io.look_at_directories(&kernel);
                later.insert((now() + REST, id));
                continue;
            }
            match look(&kernel, id) {
                Some(time) => drop(later.insert((time, id))),
                None => wait_again(&kernel, epoll, id),
            }
        }
        while let Some(&(time, id)) = later.first()
            && time <= now()
        {
            later.pop_first();
            wait_again(&kernel, epoll, id);
        }
        leased = kernel.async_io.look_at_leases(&kernel);
    }
}

/// How long to wait: until the first file is to be waited for again, but not for ever.
fn until(later: &BTreeSet<(Nanos, u64)>, leased: bool) -> Timespec {
    let longest: Nanos = if leased { OFTEN } else { 1_000_000_000 };
    let wait = later.first().map_or(longest, |(time, _)| (*time - now()).clamp(0, longest));
    let nanos = i64::try_from(wait).unwrap_or(0);
    Timespec { tv_sec: nanos / 1_000_000_000, tv_nsec: nanos % 1_000_000_000 }
}

/// Tells what has become of a file. Returns when it is to be waited for again, if not now.
fn look(kernel: &Kernel, id: u64) -> Option<Nanos> {
    // Not kept: while the signals are sent, the file may be closed.
    let notice = kernel.async_io.notice(id)?;
    let cage = notice.with_watch(id, |watch| watch.cage.upgrade()).flatten();
    let found = notice.look(id);
    drop(notice);
    if let Some((letter, events)) = found {
        for event in events {
            letter.send(kernel, event);
        }
    }
    // To find a group or a thread, all cages are gone through.
    cage?.files_pace.ask(now(), kernel.cages.len(), false)
}

fn wait_again(kernel: &Kernel, epoll: &OwnedFd, id: u64) {
    if id == DIRECTORIES {
        let state = kernel.async_io.state();
        if let Some(directories) = &state.directories {
            let _ = epoll::modify(epoll, directories.host(), EventData::new_u64(id), ONCE);
        }
        return;
    }
    if let Some(notice) = kernel.async_io.notice(id) {
        notice.with_watch(id, |watch| epoll::modify(epoll, &watch.epoll, EventData::new_u64(id), ONCE));
    }
}
