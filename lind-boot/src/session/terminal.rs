//! The terminal of a command: a pseudoterminal whose other end is with the command's client, over the session's socket. The
//! client's own terminal never comes here, so nothing that a command leaves behind can read or change it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use lind_abi::layout::Winsize;
use lind_kernel::Kernel;
use lind_kernel::terminal::Served;

use super::request;
use super::wire::FILES;

/// How much that was typed may wait for the command to read it.
const AHEAD: usize = 64 << 10;

/// How much of what was written before a command's end is still shown: more than the host keeps in a terminal.
const REST: usize = 256 << 10;

/// One of them.
pub struct Terminal {
    served: Served,
    /// What was typed and not taken yet.
    typed: VecDeque<u8>,
}

impl Terminal {
    /// A new one.
    ///
    /// # Errors
    /// Where the host has no pseudoterminals.
    pub fn open(kernel: &Arc<Kernel>, wanted: &request::Terminal) -> Result<Terminal> {
        let served = Served::open(kernel, wanted.size, wanted.settings.as_ref()).map_err(|errno| {
            anyhow!("cannot create a pseudoterminal for the command: {errno}; give it pipes or files instead")
        })?;
        Ok(Terminal { served, typed: VecDeque::new() })
    }

    /// Types at it.
    pub fn add_input(&mut self, bytes: &[u8]) {
        self.typed.extend(bytes);
        self.flush();
    }

    /// Types what there is room for.
    pub fn flush(&mut self) {
        while !self.typed.is_empty() {
            match self.served.write(self.typed.as_slices().0) {
                Ok(count) if count > 0 => drop(self.typed.drain(..count)),
                _ => return,
            }
        }
    }

    /// Whether something was typed that is still to be taken.
    pub fn waits(&self) -> bool {
        !self.typed.is_empty()
    }

    /// Whether so much was typed that no more is wanted.
    pub fn is_full(&self) -> bool {
        self.typed.len() >= AHEAD
    }

    /// Gives it another size.
    pub fn resize(&self, size: Winsize) {
        // A size that the host does not take is no reason to end anything.
        let _ = self.served.resize(size);
    }

    /// Some of what was written to it; nothing if there is none.
    pub fn output(&self) -> Vec<u8> {
        let mut piece = vec![0; 16 << 10];
        let count = self.served.read(&mut piece).unwrap_or(0);
        piece.truncate(count);
        piece
    }

    /// What was written to it until now.
    pub fn rest(&self) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < REST {
            let piece = self.output();
            if piece.is_empty() {
                break;
            }
            all.extend(piece);
        }
        all
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.served.as_fd()
    }
}

/// A command's descriptors 0, 1 and 2: the terminal's, and of what the client has sent the next for each of the others.
///
/// # Errors
/// For a terminal that was sent: what the command leaves running would keep it.
pub fn files(
    line: &request::Line,
    terminal: Option<&Terminal>,
    sent: Vec<OwnedFd>,
) -> Result<[Option<OwnedFd>; FILES]> {
    let wanted = line.terminal.as_ref().map_or([false; FILES], |wanted| wanted.files);
    let (mut files, mut sent) = ([const { None }; FILES], sent.into_iter());
    for (number, (file, is_terminal)) in files.iter_mut().zip(wanted).enumerate() {
        *file = match terminal.filter(|_| is_terminal) {
            Some(terminal) => Some(
                terminal.served.slave().try_clone_to_owned().context("cannot duplicate the terminal's descriptor")?,
            ),
            None => sent.next(),
        };
        let own = is_terminal || !file.as_ref().is_some_and(rustix::termios::isatty);
        ensure!(
            own,
            "descriptor {number} is a terminal, which a command cannot share: ask for one of its own with `terminal`"
        );
    }
    Ok(files)
}
