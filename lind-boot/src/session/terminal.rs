//! The terminal of a command: a pseudoterminal whose other end is connected to the command's client
//! over the session's socket. The client's own terminal never enters the session, so no process
//! that a command leaves behind can read or change it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use lind_abi::layout::Winsize;
use lind_kernel::Kernel;
use lind_kernel::terminal::{Key, Served};

use super::request;
use super::wire::FILES;

/// The most bytes of input that may wait for the command.
const AHEAD: usize = 64 << 10;

/// The most bytes of output that are still sent after a command's end: more than the host keeps in
/// a terminal.
const REST: usize = 256 << 10;

/// A terminal.
pub struct Terminal {
    served: Served,
    /// Input that the command has not read.
    typed: VecDeque<u8>,
    /// The keys that have meant signals, since `keys` was asked.
    keys: Vec<Key>,
    /// Whether the client knows that what is typed is wanted.
    asked: bool,
}

impl Terminal {
    /// Opens a terminal.
    ///
    /// # Errors
    /// When the host has no pseudoterminals.
    pub fn open(kernel: &Arc<Kernel>, wanted: &request::Terminal) -> Result<Terminal> {
        let served = Served::open(kernel, wanted.size, wanted.settings.as_ref()).map_err(|errno| {
            anyhow!("cannot create a pseudoterminal for the command: {errno}; give it pipes or files instead")
        })?;
        Ok(Terminal { served, typed: VecDeque::new(), keys: Vec::new(), asked: false })
    }

    /// Adds input.
    pub fn add_input(&mut self, bytes: &[u8]) {
        self.typed.extend(bytes);
        self.flush();
    }

    /// Writes as much input as the terminal has room for.
    pub fn flush(&mut self) {
        while !self.typed.is_empty() {
            match self.served.write(self.typed.as_slices().0) {
                Ok((count, keys)) if count > 0 => {
                    self.typed.drain(..count);
                    self.keys.extend(keys);
                }
                _ => return,
            }
        }
    }

    /// The keys that have meant signals since the last time.
    pub fn keys(&mut self) -> Vec<Key> {
        std::mem::take(&mut self.keys)
    }

    /// Whether input waits for room.
    pub fn waits(&self) -> bool {
        !self.typed.is_empty()
    }

    /// Whether no more input should be read from the client.
    pub fn is_full(&self) -> bool {
        self.typed.len() >= AHEAD
    }

    /// A file that can be read as soon as a program wants what is typed, unless the client has been
    /// asked for that.
    pub fn wanted(&self) -> Option<BorrowedFd<'_>> {
        (!self.asked).then(|| self.served.wanted())
    }

    /// Notes that the client is asked for what is typed.
    pub fn ask(&mut self) {
        self.asked = true;
    }

    /// Changes its size.
    pub fn resize(&self, size: Winsize) {
        // A size that the host does not accept is ignored.
        let _ = self.served.resize(size);
    }

    /// The next output; empty if there is none.
    pub fn output(&self) -> Vec<u8> {
        self.output_of(16 << 10)
    }

    /// The next output, of at most so many bytes.
    pub fn output_of(&self, most: usize) -> Vec<u8> {
        let mut piece = vec![0; most.min(16 << 10)];
        let count = self.served.read(&mut piece).unwrap_or(0);
        piece.truncate(count);
        piece
    }

    /// All output until now.
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

/// The descriptors 0, 1 and 2 of a command: the terminal for some, pipes for some, and for each of
/// the others the next file that the client has sent.
///
/// # Errors
/// When the client has sent a terminal: programs that the command leaves running would keep it.
pub fn files(
    line: &request::Line,
    terminal: Option<&Terminal>,
    pipes: [Option<OwnedFd>; FILES],
    sent: Vec<OwnedFd>,
) -> Result<[Option<OwnedFd>; FILES]> {
    let wanted = line.terminal.as_ref().map_or([false; FILES], |wanted| wanted.files);
    let (mut files, mut sent) = (pipes, sent.into_iter());
    for (number, (file, is_terminal)) in files.iter_mut().zip(wanted).enumerate() {
        match terminal.filter(|_| is_terminal) {
            Some(terminal) => {
                *file = Some(
                    terminal
                        .served
                        .slave()
                        .try_clone_to_owned()
                        .context("cannot duplicate the terminal's descriptor")?,
                );
            }
            None if file.is_none() => *file = sent.next(),
            None => {}
        }
        let own = is_terminal || !file.as_ref().is_some_and(rustix::termios::isatty);
        ensure!(
            own,
            "descriptor {number} is a terminal, which a command cannot share: ask for one of its own with `terminal`"
        );
    }
    Ok(files)
}
