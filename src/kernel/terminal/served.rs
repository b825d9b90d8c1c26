//! A pseudoterminal whose other end the runner keeps, for a user outside: a command of a session
//! gets it in place of the user's own terminal, and it ends with the command. Programs that the
//! command has left running then have a terminal that has hung up.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use lind_abi::Result;
use lind_abi::flags::Signals;
use lind_abi::layout::{Termios, Winsize};
use rustix::fs::OFlags;

use super::{NOCTTY, gone, pty, typed};
use crate::Kernel;
use crate::cage::signal;
use crate::fd::File;
use crate::host;

/// Such a pseudoterminal. Its other side hangs up when this is dropped.
pub struct Served {
    kernel: Arc<Kernel>,
    /// The master; None once dropped.
    master: Option<Arc<File>>,
    /// Kept open, so that a command may close its own and open /dev/tty again.
    slave: OwnedFd,
}

impl Served {
    /// A new one of this size, and with these settings instead of the host's.
    ///
    /// # Errors
    /// ENOENT if the host has none; other errors of the host.
    pub fn open(kernel: &Arc<Kernel>, size: Winsize, settings: Option<&Termios>) -> Result<Served> {
        let master = pty::make(kernel, (OFlags::RDWR | OFlags::NONBLOCK).bits(), true)?;
        host::terminal::unlock(master.host())?;
        let slave = host::terminal::peer(master.host(), (OFlags::RDWR | OFlags::CLOEXEC).bits() | NOCTTY)?;
        if let Some(settings) = settings {
            host::terminal::set_settings(slave.as_fd(), settings)?;
        }
        host::terminal::set_window(slave.as_fd(), &size)?;
        Ok(Served { kernel: Arc::clone(kernel), master: Some(master), slave })
    }

    /// The side that is a terminal.
    pub fn slave(&self) -> BorrowedFd<'_> {
        self.slave.as_fd()
    }

    fn master(&self) -> &Arc<File> {
        self.master.as_ref().expect("the master is there until the drop")
    }

    /// Reads the output that was written to the terminal.
    ///
    /// # Errors
    /// EAGAIN when there is nothing.
    pub fn read(&self, into: &mut [u8]) -> Result<usize> {
        rustix::io::read(self.master().host(), into).map_err(host::errno)
    }

    /// Types at it, and returns how many bytes it took. ^C and its like are signals to those in
    /// front.
    ///
    /// # Errors
    /// EAGAIN while the terminal accepts no more.
    pub fn write(&self, bytes: &[u8]) -> Result<usize> {
        let written = rustix::io::write(self.master().host(), bytes).map_err(host::errno)?;
        typed(&self.kernel, self.master(), bytes.get(..written).unwrap_or_default());
        Ok(written)
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
