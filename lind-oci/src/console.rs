//! Terminals: a pseudoterminal whose master goes to the socket that the engine has named.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use anyhow::{Context, Result};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::config::ConsoleSize;
use crate::{control, frames};

/// A pseudoterminal.
pub struct Console {
    /// The end of the engine.
    pub master: OwnedFd,
    /// The end of the container.
    pub slave: OwnedFd,
    name: CString,
}

impl Console {
    /// Opens one.
    ///
    /// # Errors
    /// The host's error.
    pub fn open(size: Option<&ConsoleSize>) -> Result<Console> {
        let open = || -> rustix::io::Result<Console> {
            let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
            grantpt(&master)?;
            unlockpt(&master)?;
            let slave = ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
            let name = ptsname(&master, Vec::new())?;
            if let Some(size) = size {
                let (ws_row, ws_col) = (size.height, size.width);
                tcsetwinsize(&slave, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 })?;
            }
            Ok(Console { master, slave, name })
        };
        open().context("cannot open a pseudoterminal")
    }

    /// Sends the master to the engine.
    ///
    /// # Errors
    /// When nobody listens on the socket.
    pub fn send(&self, socket: &Path) -> Result<()> {
        let sent = control::connect(socket)
            .and_then(|socket| Ok(frames::send_with_files(&socket, self.name.to_bytes(), &[self.master.as_fd()])?));
        sent.with_context(|| format!("cannot send the terminal to the console socket {}", socket.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_master_is_sent_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("console");
        let listener = UnixListener::bind(&path).unwrap();
        let console = Console::open(Some(&ConsoleSize { height: 7, width: 9 })).unwrap();
        assert_eq!(rustix::termios::tcgetwinsize(&console.master).unwrap().ws_row, 7);
        console.send(&path).unwrap();
        let mut text = String::new();
        let (mut socket, _) = listener.accept().unwrap();
        drop(console);
        std::io::Read::read_to_string(&mut socket, &mut text).unwrap_or_default();
        assert!(text.starts_with("/dev/pts/"), "{text}");
        assert!(Console::open(None).unwrap().send(&folder.path().join("other")).is_err());
    }
}
