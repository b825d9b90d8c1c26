//! Signals about files: SIGIO for a file with O_ASYNC that can be read or written, SIGURG for
//! urgent data of a socket.
//!
//! The host would send such signals to the runner, so it is never asked for them. A watched file is
//! registered, edge-triggered, in an epoll instance of its own; these are registered in one of the
//! kernel's, for which a thread waits ([`AsyncIo`]). That thread is started with the first watched
//! file; files that nobody watches cost nothing.
//!
//! The state kept here belongs to the open file, as on Linux: dup(2) and fork(2) share it. A
//! process that sets the owner or the signal does so with the rights it has then: see
//! [`Permission`].

mod lease;
mod notify;
mod owner;
mod thread;

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use lind_abi::{Errno, Result};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fs::{FileType, OFlags};

use crate::cage::Cage;
use crate::cage::signal::Permission;
use crate::call::Ctx;
use crate::fd::{FdTable, FileRef, Kind};
use crate::host::errno;
use crate::lock::{Locked, unpoisoned};
pub(crate) use owner::Owner;
use owner::{Event, Letter};
pub(crate) use thread::AsyncIo;
use thread::LastWords;

/// The direction that a registration watches.
const IN: u64 = 0;
const OUT: u64 = 1;

/// The receiver of signals about a file, and the signal to send.
#[derive(Debug, Default)]
pub(crate) struct Notice(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    owner: Option<(Owner, Permission)>,
    /// F_SETSIG: 0 is SIGIO without particulars. The permission is that of the process that set it.
    signal: (u8, Option<Permission>),
    /// O_ASYNC: the descriptor number to report in signals; None if it is off.
    on: Option<i32>,
    watch: Option<Watch>,
    lease: Option<lease::Held>,
}

/// The watch on a file: the epoll instance that reports its events.
#[derive(Debug)]
struct Watch {
    id: u64,
    epoll: OwnedFd,
    shape: Shape,
    /// Whether more than urgent data is waited for.
    all: bool,
    /// Whether there was urgent data at the last look.
    urgent: bool,
    /// The cage that is charged for it.
    cage: Weak<Cage>,
    /// The place for events that are found when the file closes.
    last: Arc<LastWords>,
}

/// The ways in which Linux signals the events of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// The ends of pipes that it has. A full pipe can be written again.
    Pipe { reads: bool, writes: bool },
    /// A socket can be written after an attempt has found that it could not.
    Socket,
    /// The rules of sockets.
    Terminal,
    /// inotify(7)
    Events,
}

impl Notice {
    /// F_GETOWN.
    pub fn owner(&self) -> Option<Owner> {
        self.state().owner.as_ref().map(|(owner, _)| *owner)
    }

    /// F_SETOWN.
    ///
    /// # Errors
    /// EMFILE, EAGAIN when nobody can wait for it.
    pub fn set_owner(&self, cx: &Ctx<'_>, file: &FileRef, owner: Option<Owner>) -> Result<()> {
        let mut state = self.state();
        state.owner = owner.map(|owner| (owner, Permission::of(cx.kernel, cx.cage)));
        self.watch(cx, file, &mut state)
    }

    /// F_GETSIG.
    pub fn signal(&self) -> u8 {
        self.state().signal.0
    }

    /// F_SETSIG.
    pub fn set_signal(&self, cx: &Ctx<'_>, signal: u8) {
        self.state().signal = (signal, Some(Permission::of(cx.kernel, cx.cage)));
    }

    /// Whether O_ASYNC is on.
    pub fn is_on(&self) -> bool {
        self.state().on.is_some()
    }

    /// Turns O_ASYNC on or off. A terminal without an owner gets one: the group in front, or the
    /// caller.
    ///
    /// # Errors
    /// As for `set_owner`.
    pub fn set_on(&self, cx: &Ctx<'_>, file: &FileRef, number: Option<i32>) -> Result<()> {
        let mut state = self.state();
        if state.owner.is_none() && number.is_some() && matches!(file.kind, Kind::Terminal | Kind::Master(_)) {
            let front = match file.kind {
                Kind::Terminal => crate::terminal::front(cx, &file.share()),
                _ => 0,
            };
            let owner = if front == 0 { Owner::Process(cx.cage.id.0) } else { Owner::Group(front) };
            state.owner = Some((owner, Permission::of(cx.kernel, cx.cage)));
        }
        state.on = number;
        self.watch(cx, file, &mut state).inspect_err(|_| state.on = None)
    }

    /// Watches the file for the events that its owner wants.
    fn watch(&self, cx: &Ctx<'_>, file: &FileRef, state: &mut State) -> Result<()> {
        let all = state.on.is_some();
        let shape = Shape::of(file)?.filter(|&shape| all || (shape == Shape::Socket && state.owner.is_some()));
        let Some(shape) = shape else {
            state.watch = None;
            return Ok(());
        };
        if state.watch.as_ref().is_some_and(|watch| watch.all == all) {
            return Ok(());
        }
        state.watch = None;
        let notice = file.notice().ok_or(Errno::EINVAL)?;
        let cage = cx.kernel.cages.get(cx.cage.id).map_or_else(Weak::new, |cage| Arc::downgrade(&cage));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(errno)?;
        shape.register(&epoll, file, all)?;
        let (id, last) = cx.kernel.async_io.watch(cx.kernel, notice, &epoll)?;
        state.watch = Some(Watch { id, epoll, shape, all, urgent: false, cage, last });
        Ok(())
    }

    /// Notes that the file, a socket or a terminal, cannot be written now, or is not connected yet.
    fn is_full(&self, file: &FileRef) -> Result<()> {
        let state = self.state();
        match &state.watch {
            Some(watch) if watch.all && matches!(watch.shape, Shape::Socket | Shape::Terminal) => {
                wait_for_room(&watch.epoll, file)
            }
            _ => Ok(()),
        }
    }

    /// Returns the events of the file since the last look and their receiver, if `id` is this
    /// file's watch.
    fn look(&self, id: u64) -> Option<(Letter, Vec<Event>)> {
        let mut state = self.state();
        state.watch.as_ref().filter(|watch| watch.id == id)?;
        state.look()
    }

    /// Acts on the watch, if it still is this one.
    fn with_watch<T>(&self, id: u64, act: impl FnOnce(&Watch) -> T) -> Option<T> {
        self.state().watch.as_ref().filter(|watch| watch.id == id).map(act)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.locked()
    }
}

impl State {
    fn look(&mut self) -> Option<(Letter, Vec<Event>)> {
        let events = self.watch.as_mut()?.events();
        let (owner, right) = self.owner.clone()?;
        Some((Letter { owner, right, signal: self.signal.clone(), fd: self.on.unwrap_or(-1) }, events))
    }
}

impl Drop for Notice {
    /// The file closes. Earlier events are still reported, but not from here, since the caller may
    /// hold locks.
    fn drop(&mut self) {
        let state = unpoisoned(self.0.get_mut());
        if let Some(found) = state.look().filter(|(_, events)| !events.is_empty())
            && let Some(watch) = &state.watch
        {
            watch.last.leave(found);
        }
    }
}

impl Shape {
    /// None for a file about which Linux sends no signals.
    fn of(file: &FileRef) -> Result<Option<Shape>> {
        match file.kind {
            Kind::Terminal | Kind::Master(_) => return Ok(Some(Shape::Terminal)),
            Kind::Inotify(_) => return Ok(Some(Shape::Events)),
            _ => {}
        }
        let stat = rustix::fs::fstat(file.host()).map_err(errno)?;
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Fifo => {
                let access = rustix::fs::fcntl_getfl(file.host()).map_err(errno)? & OFlags::RWMODE;
                Some(Shape::Pipe { reads: access != OFlags::WRONLY, writes: access != OFlags::RDONLY })
            }
            FileType::Socket => Some(Shape::Socket),
            // Of the host's own files without a type, only inotify has bytes to read.
            FileType::Unknown if matches!(file.kind, Kind::Host) => {
                rustix::io::ioctl_fionread(file.host()).is_ok().then_some(Shape::Events)
            }
            _ => None,
        })
    }

    /// Registers a file in an epoll instance, which reports events from now on.
    fn register(self, epoll: &OwnedFd, file: &FileRef, all: bool) -> Result<()> {
        let edge = EventFlags::ET;
        let input = edge | EventFlags::IN | EventFlags::RDHUP | EventFlags::PRI;
        let add =
            |copy, flags, way| epoll::add(epoll, file.descriptor(copy)?, EventData::new_u64(way), flags).map_err(errno);
        match self {
            Shape::Pipe { reads, writes } => {
                if reads {
                    add(0, input, IN)?;
                }
                if writes {
                    add(1, edge | EventFlags::OUT, OUT)?;
                }
            }
            Shape::Socket => add(0, if all { input } else { edge | EventFlags::PRI }, IN)?,
            Shape::Terminal | Shape::Events => add(0, input, IN)?,
        }
        take(epoll);
        if all && matches!(self, Shape::Socket | Shape::Terminal) {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let mut asked = [PollFd::from_borrowed_fd(file.host(), PollFlags::OUT)];
            if poll(&mut asked, Some(&now)).map_err(errno)? == 0 {
                wait_for_room(epoll, file)?;
            }
        }
        Ok(())
    }
}

/// Makes an epoll instance report once when a file can be written.
fn wait_for_room(epoll: &OwnedFd, file: &FileRef) -> Result<()> {
    let flags = EventFlags::OUT | EventFlags::ET | EventFlags::ONESHOT;
    let (copy, way) = (file.descriptor(1)?, EventData::new_u64(OUT));
    match epoll::modify(epoll, copy, way, flags) {
        Err(rustix::io::Errno::NOENT) => epoll::add(epoll, copy, way, flags).map_err(errno),
        result => result.map_err(errno),
    }
}

/// Takes the events that an epoll instance has to report, with the direction of each.
fn take(epoll: &OwnedFd) -> Vec<(u64, EventFlags)> {
    let mut events = Vec::with_capacity(2);
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    let _ = epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), Some(&now));
    events.into_iter().map(|event: epoll::Event| (event.data.u64(), event.flags)).collect()
}

impl Watch {
    fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        for (way, flags) in take(&self.epoll) {
            let gone = flags.contains(EventFlags::HUP);
            match (self.shape, way) {
                (Shape::Socket, IN) => {
                    let urgent = flags.contains(EventFlags::PRI);
                    if urgent && !std::mem::replace(&mut self.urgent, urgent) {
                        events.push(Event::Urgent);
                        events.extend(self.all.then_some(Event::Priority));
                    }
                    self.urgent = urgent;
                    if self.all {
                        events.extend(Watch::of_socket(flags));
                    }
                }
                // The foreground group gets SIGHUP for it.
                (Shape::Terminal, _) | (Shape::Socket, OUT) if gone => {}
                (_, IN) => events.push(Event::In),
                _ => events.push(Event::Out),
            }
        }
        events
    }

    fn of_socket(flags: EventFlags) -> Option<Event> {
        if flags.contains(EventFlags::ERR) {
            Some(Event::Error)
        } else if flags.contains(EventFlags::HUP) {
            Some(Event::Gone)
        } else {
            flags.intersects(EventFlags::IN | EventFlags::RDHUP).then_some(Event::In)
        }
    }
}

/// Whether Linux sends signals about a file of this kind.
///
/// # Errors
/// The errors of fstat(2).
pub(crate) fn tells(file: &FileRef) -> Result<bool> {
    Shape::of(file).map(|shape| shape.is_some())
}

/// Called when the host has returned EAGAIN to a write, or EINPROGRESS to a connect: with O_ASYNC,
/// the owner gets a signal when that changes.
#[cold]
pub(crate) fn found_full(notices: &AsyncIo, table: &FdTable, number: i32) {
    if notices.is_used()
        && let Ok(file) = table.get(number)
        && let Some(notice) = file.notice()
    {
        // If descriptors are used up, no signal is sent, as on Linux without memory.
        let _ = notice.is_full(&file);
    }
}
