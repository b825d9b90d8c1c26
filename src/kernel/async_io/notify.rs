//! Signals about directories: fcntl(F_NOTIFY).
//!
//! The host would send such signals to the runner, and counts inotify instances by user. So all
//! directories are watched by one inotify instance of the kernel's, which the thread that waits for
//! files reads.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};

use lind_abi::flags::InotifyFlags;
use lind_abi::{Errno, Result};
use rustix::fs::FileType;

use super::Notice;
use super::owner::{Event, Letter, Owner};
use super::thread::AsyncIo;
use crate::Kernel;
use crate::cage::signal::Permission;
use crate::call::Ctx;
use crate::fd::{FileRef, Kind};
use crate::host::{errno, inotify};

/// DN_MULTISHOT: not only once.
const MULTISHOT: u32 = 0x8000_0000;
/// The events of inotify(7) for each of F_NOTIFY: accessed, modified, created, deleted, renamed,
/// changed in its attributes.
const EVENTS: [(u32, u32); 6] = [
    (0x1, IN_ACCESS),
    (0x2, IN_MODIFY),
    (0x4, IN_CREATE | IN_MOVED_TO),
    (0x8, IN_DELETE | IN_MOVED_FROM),
    (RENAMED, IN_MOVED_FROM | IN_MOVED_TO),
    (0x20, IN_ATTRIB),
];
/// DN_RENAME: within the directory.
const RENAMED: u32 = 0x10;
const IN_ACCESS: u32 = 0x1;
const IN_MODIFY: u32 = 0x2;
const IN_ATTRIB: u32 = 0x4;
const IN_MOVED_FROM: u32 = 0x40;
const IN_MOVED_TO: u32 = 0x80;
const IN_CREATE: u32 = 0x100;
const IN_DELETE: u32 = 0x200;
/// The host says that it watches a directory no more.
const IN_IGNORED: u32 = 0x8000;
/// The part of an event before its name: the watch, the mask, a cookie, the length of the name.
const HEADER: usize = 16;

/// The directories that are watched, in the host's instance.
#[derive(Debug)]
pub(super) struct Directories {
    inotify: OwnedFd,
    wanted: Vec<Wanted>,
    /// The watch and the cookie of the name that was moved away last.
    moved: (i32, u32),
}

/// A watched directory, for one open file.
#[derive(Debug)]
struct Wanted {
    /// The host's number of the watch, which is the directory's.
    watch: i32,
    notice: Weak<Notice>,
    /// The events of F_NOTIFY.
    events: u32,
    /// The descriptor by which the directory is known to the owner.
    number: i32,
}

/// The events of inotify(7) that events of F_NOTIFY are about.
fn mask_of(events: u32) -> u32 {
    EVENTS.iter().filter(|(event, _)| events & event != 0).fold(0, |mask, (_, of_host)| mask | of_host)
}

impl Directories {
    pub(super) fn new() -> Result<Directories> {
        let host = inotify::init(InotifyFlags::IN_NONBLOCK | InotifyFlags::IN_CLOEXEC)?;
        Ok(Directories { inotify: host, wanted: Vec::new(), moved: (0, 0) })
    }

    /// The host's instance.
    pub(super) fn host(&self) -> &OwnedFd {
        &self.inotify
    }

    /// Adds events for an open file, or ends its notifications if there are none.
    fn put(&mut self, cx: &Ctx<'_>, (file, notice): (&FileRef, &Arc<Notice>), events: u32, number: i32) -> Result<()> {
        let known = self.wanted.iter().position(|one| one.notice.as_ptr() == Arc::as_ptr(notice));
        if events & !MULTISHOT == 0 {
            if let Some(at) = known {
                let watch = self.wanted.swap_remove(at).watch;
                self.narrow(watch);
            }
            return Ok(());
        }
        let events = events | known.map_or(0, |at| self.wanted[at].events);
        // IN_MASK_ADD: other open files of the directory stay watched.
        let mask = mask_of(events) | 0x2000_0000;
        let watch =
            cx.kernel.root.again(file.host(), |links, name| inotify::add(self.inotify.as_fd(), links, name, mask))?;
        let wanted = Wanted { watch, notice: Arc::downgrade(notice), events, number };
        match known {
            Some(at) => self.wanted[at] = wanted,
            None => self.wanted.push(wanted),
        }
        self.forget_closed();
        Ok(())
    }

    /// Ends watches that nobody wants any more.
    fn forget_closed(&mut self) {
        let closed = |one: &Wanted| one.notice.strong_count() == 0;
        let gone: Vec<i32> = self.wanted.iter().filter(|one| closed(one)).map(|one| one.watch).collect();
        self.wanted.retain(|one| !closed(one));
        gone.into_iter().for_each(|watch| self.narrow(watch));
    }

    /// Ends a watch if nobody wants it.
    fn narrow(&self, watch: i32) {
        if self.wanted.iter().all(|one| one.watch != watch) {
            let _ = inotify::remove(self.inotify.as_fd(), watch);
        }
    }

    /// Takes a part of what the host tells: the open files to signal about, and the number of each.
    pub(super) fn take(&mut self) -> Vec<(Arc<Notice>, i32)> {
        let mut notices = Vec::new();
        let mut bytes = [0; 4096];
        let length = rustix::io::read(&self.inotify, &mut bytes).unwrap_or(0);
        let mut rest = &bytes[..length];
        while let Some((header, after)) = rest.split_first_chunk::<HEADER>() {
            let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
            self.happened((word(0).cast_signed(), word(4), word(8)), &mut notices);
            rest = after.get(word(12) as usize..).unwrap_or_default();
        }
        notices
    }

    /// An event of the host's: its watch, mask and cookie.
    fn happened(&mut self, (watch, mask, cookie): (i32, u32, u32), notices: &mut Vec<(Arc<Notice>, i32)>) {
        let ignored = mask & IN_IGNORED != 0;
        let renamed = mask & IN_MOVED_TO != 0 && self.moved == (watch, cookie);
        if mask & IN_MOVED_FROM != 0 {
            self.moved = (watch, cookie);
        }
        let events = EVENTS.iter().filter(|(event, of_host)| mask & of_host != 0 && (*event != RENAMED || renamed));
        let events = events.fold(0, |all, (event, _)| all | event);
        let mut ended = false;
        self.wanted.retain(|one| {
            let is_about = one.watch == watch && one.events & events != 0;
            if is_about && let Some(notice) = one.notice.upgrade() {
                notices.push((notice, one.number));
            }
            let ends = one.watch == watch && (ignored || (is_about && one.events & MULTISHOT == 0));
            ended |= ends;
            !ends
        });
        if ended && !ignored {
            self.narrow(watch);
        }
    }
}

impl Notice {
    /// F_NOTIFY: the events of a directory about which the owner gets a signal.
    ///
    /// # Errors
    /// ENOTDIR; EINVAL for a directory that no cage has opened by its name; the errors of watching;
    /// EAGAIN without a thread that waits.
    pub fn set_events(self: &Arc<Notice>, cx: &Ctx<'_>, file: &FileRef, number: i32, events: u32) -> Result<()> {
        if events & !MULTISHOT != 0 {
            let stat = rustix::fs::fstat(file.host()).map_err(errno)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                return Err(Errno::ENOTDIR);
            }
            if !matches!(file.kind, Kind::Named(_)) || mask_of(events) == 0 {
                return Err(Errno::EINVAL);
            }
        }
        if events & !MULTISHOT == 0 && !cx.kernel.async_io.is_used() {
            return Ok(());
        }
        let mut state = self.state();
        cx.kernel.async_io.with_directories(cx.kernel, |all| all.put(cx, (file, self), events, number))?;
        if state.owner.is_none() {
            state.owner = Some((Owner::Process(cx.cage.id.0), Permission::of(cx.kernel, cx.cage)));
        }
        Ok(())
    }

    fn letter(&self, number: i32) -> Option<Letter> {
        let state = self.state();
        let (owner, right) = state.owner.clone()?;
        Some(Letter { owner, right, signal: state.signal.clone(), fd: number })
    }
}

impl AsyncIo {
    /// Tells what has happened in directories.
    pub(super) fn look_at_directories(&self, kernel: &Kernel) {
        // A file's lock comes before the state's.
        for (notice, number) in self.news_of_directories() {
            let letter = notice.letter(number);
            drop(notice);
            if let Some(letter) = letter {
                letter.send(kernel, Event::Message);
            }
        }
    }
}
