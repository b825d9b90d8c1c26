//! A pseudoterminal whose other end the runner keeps, for a user outside: a command of a session
//! gets it in place of the user's own terminal, and it ends with the command. Programs that the
//! command has left running then have a terminal that has hung up.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lind_abi::Result;
use lind_abi::flags::Signals;
use lind_abi::layout::{Termios, Winsize};
use rustix::event::EventfdFlags;
use rustix::fs::OFlags;

use super::{Key, NOCTTY, Terminal, gone, pty, session_and_group, typed};
use crate::Kernel;
use crate::cage::signal;
use crate::call::Ctx;
use crate::fd::{File, FileRef, Kind};
use crate::host;

/// Whether its programs want what is typed: one has read from it, has waited for input, has changed
/// its settings, or is a shell with job control. Until then the user's own terminal can keep the
/// keys, for others.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Can be read as soon as they do.
    event: OwnedFd,
    noted: AtomicBool,
}

impl Wanted {
    fn new() -> Result<Arc<Wanted>> {
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(host::errno)?;
        Ok(Arc::new(Wanted { event, noted: AtomicBool::new(false) }))
    }

    fn note(&self) {
        if !self.noted.swap(true, Ordering::Relaxed) {
            // The first write to a counter finds room.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }
}

impl Terminal {
    /// Whether this group of a session is in the background.
    pub(super) fn is_behind(&self, session: u32, group: u32) -> bool {
        self.session == session && self.front != group && self.front != 0
    }

    /// Notes that its programs want what is typed.
    pub(super) fn keys_are_wanted(&self) {
        self.served.iter().for_each(|wanted| wanted.note());
    }
}

/// Called before a caller waits until a descriptor can be read.
#[cold]
pub(crate) fn polled(cx: &Ctx<'_>, file: &FileRef) {
    if !matches!(file.kind, Kind::Terminal) {
        return;
    }
    let (session, group) = session_and_group(cx);
    let mut state = cx.kernel.terminals.lock();
    if let Ok(terminal) = state.terminal(cx, &file.share())
        && !terminal.is_behind(session, group)
    {
        terminal.keys_are_wanted();
    }
}

/// Such a pseudoterminal. Its other side hangs up when this is dropped.
pub struct Served {
    kernel: Arc<Kernel>,
    /// The master; None once dropped.
    master: Option<Arc<File>>,
    /// Kept open, so that a command may close its own and open /dev/tty again.
    slave: OwnedFd,
    wanted: Arc<Wanted>,
}

impl Served {
    /// A new one of this size, and with these settings instead of the host's.
    ///
    /// # Errors
    /// ENOENT if the host has none; other errors of the host.
    pub fn open(kernel: &Arc<Kernel>, size: Winsize, settings: Option<&Termios>) -> Result<Served> {
        let wanted = Wanted::new()?;
        let master = pty::make(kernel, (OFlags::RDWR | OFlags::NONBLOCK).bits(), Some(Arc::clone(&wanted)))?;
        host::terminal::unlock(master.host())?;
        let slave = host::terminal::peer(master.host(), (OFlags::RDWR | OFlags::CLOEXEC).bits() | NOCTTY)?;
        if let Some(settings) = settings {
            host::terminal::set_settings(slave.as_fd(), settings)?;
        }
        host::terminal::set_window(slave.as_fd(), &size)?;
        Ok(Served { kernel: Arc::clone(kernel), master: Some(master), slave, wanted })
    }

    /// The side that is a terminal.
    pub fn slave(&self) -> BorrowedFd<'_> {
        self.slave.as_fd()
    }

    fn master(&self) -> &Arc<File> {
        self.master.as_ref().expect("the master is there until the drop")
    }

    /// A file that can be read as soon as a program wants what is typed.
    pub fn wanted(&self) -> BorrowedFd<'_> {
        self.wanted.event.as_fd()
    }

    /// Reads the output that was written to the terminal.
    ///
    /// # Errors
    /// EAGAIN when there is nothing.
    pub fn read(&self, into: &mut [u8]) -> Result<usize> {
        rustix::io::read(self.master().host(), into).map_err(host::errno)
    }

    /// Types at it, and returns how many bytes it took, and which keys were signals to those in
    /// front: ^C and its like.
    ///
    /// # Errors
    /// EAGAIN while the terminal accepts no more.
    pub fn write(&self, bytes: &[u8]) -> Result<(usize, Vec<Key>)> {
        let written = rustix::io::write(self.master().host(), bytes).map_err(host::errno)?;
        let keys = typed(&self.kernel, self.master(), bytes.get(..written).unwrap_or_default());
        Ok((written, keys))
    }

    /// Gives it another size, and the foreground group SIGWINCH.
    ///
    /// # Errors
    /// The errors of the host.
    pub fn resize(&self, size: Winsize) -> Result<()> {
        let before = host::terminal::window(self.slave())?;
        host::terminal::set_window(self.slave(), &size)?;
        let front = self.kernel.terminals.lock().front_behind(&self.kernel, self.master());
        if (before.row, before.col) != (size.row, size.col) && front != 0 {
            let info = signal::Info::kernel(signal::number(Signals::SIGWINCH));
            signal::send_to_group(&self.kernel, front, info);
        }
        Ok(())
    }
}

impl AsFd for Served {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master().host()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.master = None;
        gone(&self.kernel);
    }
}
