//! The terminal of whoever runs `session exec`. A command never gets it: it has one of its own, in the session, and what is typed
//! here is typed there.
//!
//! While we are in front here, nothing of what is typed is acted upon here: the terminal of the command does that, so that its
//! settings hold. Of several of us on one terminal, as in a pipeline, one at a time takes what is typed.

use std::os::fd::{AsFd, BorrowedFd};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, OFlags};
use rustix::termios::{OptionalActions, Termios, isatty};
use serde_json::{Value, json};

use super::request;

/// What is read at once.
const PIECE: usize = 4096;

/// A terminal among our standard files.
pub struct Screen {
    /// Which of 0, 1 and 2 are terminals.
    numbers: Vec<u8>,
    /// Where the command's output goes.
    shown: BorrowedFd<'static>,
    /// What is typed, if any of them can be read.
    keys: Option<BorrowedFd<'static>>,
    /// The settings from before, while what is typed is the command's.
    before: Option<Termios>,
}

impl Screen {
    /// The terminal, if there is one, and which of our files go to the command as they are.
    pub fn find() -> (Option<Screen>, Vec<BorrowedFd<'static>>) {
        let all = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
        let (terminals, files): (Vec<_>, Vec<_>) = (0_u8..).zip(all).partition(|(_, file)| isatty(file));
        let readable = |file: &&(u8, BorrowedFd<'_>)| {
            rustix::fs::fcntl_getfl(file.1).is_ok_and(|flags| flags & OFlags::RWMODE != OFlags::WRONLY)
        };
        let keys = terminals.iter().find(readable).map(|(_, file)| *file);
        // What is written to standard input is what is typed, shown.
        let shown = terminals.iter().find(|(number, _)| *number > 0).or(terminals.first()).map(|(_, file)| *file);
        let numbers = terminals.iter().map(|(number, _)| *number).collect();
        (
            shown.map(|shown| Screen { numbers, shown, keys, before: None }),
            files.into_iter().map(|(_, file)| file).collect(),
        )
    }

    /// What the session is asked for.
    pub fn wanted(&self) -> Value {
        let settings = lind_kernel::terminal::settings(self.shown).ok();
        json!({"files": self.numbers, "size": self.size(), "settings": settings.map(|all| request::settings(&all))})
    }

    /// `[rows, columns]`
    pub fn size(&self) -> Value {
        rustix::termios::tcgetwinsize(self.shown).map_or(json!([0, 0]), |size| json!([size.ws_row, size.ws_col]))
    }

    /// Takes what is typed from now on, unless we are in the background or another of us does.
    pub fn take_keys(&mut self) {
        let Some(keys) = self.keys.filter(|_| self.before.is_none() && self.is_in_front()) else { return };
        // One that cannot be locked is open for reading only.
        if rustix::fs::fcntl_lock(keys, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::AGAIN) {
            return;
        }
        let Ok(before) = rustix::termios::tcgetattr(keys) else { return };
        let mut raw = before.clone();
        raw.make_raw();
        if rustix::termios::tcsetattr(keys, OptionalActions::Now, &raw).is_ok() {
            self.before = Some(before);
        }
    }

    /// Whether a shell has us in front; true too where there is no such thing.
    fn is_in_front(&self) -> bool {
        let own = rustix::process::getpgrp();
        self.keys.is_some_and(|keys| match rustix::termios::tcgetpgrp(keys) {
            Ok(front) => front == own,
            Err(errno) => errno == rustix::io::Errno::NOTTY,
        })
    }

    /// Leaves what is typed to others, and the terminal as it was.
    pub fn leave_keys(&mut self) {
        let Some((keys, before)) = self.keys.zip(self.before.take()) else { return };
        if self.is_in_front() {
            let _ = rustix::termios::tcsetattr(keys, OptionalActions::Now, &before);
        }
        let _ = rustix::fs::fcntl_lock(keys, FlockOperation::NonBlockingUnlock);
    }

    /// Where what is typed can be read, while it is ours.
    pub fn keys(&self) -> Option<BorrowedFd<'static>> {
        self.keys.filter(|_| self.before.is_some())
    }

    /// Whether it is worth trying to take them again.
    pub fn may_take_keys(&self) -> bool {
        self.keys.is_some() && self.before.is_none()
    }

    /// Some of what was typed; nothing at the end of the terminal.
    pub fn typed(&self) -> Vec<u8> {
        let mut piece = vec![0; PIECE];
        let count = self.keys().and_then(|keys| rustix::io::read(keys, &mut piece).ok()).unwrap_or(0);
        piece.truncate(count);
        piece
    }

    /// What is typed can be read no more.
    pub fn forget_keys(&mut self) {
        self.leave_keys();
        self.keys = None;
    }

    /// Shows what the command has written.
    ///
    /// # Errors
    /// When the terminal has gone.
    pub fn show(&self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            match rustix::io::write(self.shown.as_fd(), bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    let mut room = [rustix::event::PollFd::new(&self.shown, rustix::event::PollFlags::OUT)];
                    let _ = rustix::event::poll(&mut room, None);
                }
                Err(errno) => return Err(errno).context("cannot write to the terminal"),
            }
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave_keys();
    }
}
