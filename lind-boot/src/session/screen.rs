//! The terminal of the user who runs `session exec`. A command never gets it: it has a terminal of
//! its own in the session, and keys typed here are sent there.
//!
//! Until the command wants the keys, the local terminal keeps them for others: the rest of a
//! pipeline, or the next command. From then on, while this process is in the foreground, the local
//! terminal does not act on keys: the command's terminal does, so that its settings apply. If
//! several clients share a terminal, one at a time reads the keys.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::process::Signal;
use rustix::termios::{LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, isatty};
use serde_json::{Value, json};

use super::request;

/// The size of one read: as much as the host keeps of what is typed.
const PIECE: usize = 4096;

/// The code of a special character that no key has.
const OFF: u8 = 0;

/// The signals of keys.
const KEYS: [(Signal, SpecialCodeIndex); 3] = [
    (Signal::INT, SpecialCodeIndex::VINTR),
    (Signal::QUIT, SpecialCodeIndex::VQUIT),
    (Signal::TSTP, SpecialCodeIndex::VSUSP),
];

/// A terminal among our standard files.
pub struct Screen {
    /// Which of 0, 1 and 2 are terminals.
    numbers: Vec<u8>,
    /// The terminal for the command's output.
    shown: BorrowedFd<'static>,
    /// The same, opened so that a write does not wait for a reader of the terminal. None where it
    /// cannot be opened once more, as after su(1).
    unblocked: Option<OwnedFd>,
    /// Output that the terminal has no room for yet.
    waiting: Vec<u8>,
    /// The terminal that keys are read from, if any can be read.
    keys: Option<BorrowedFd<'static>>,
    /// The same, opened so that a read does not wait where another program was faster.
    unblocked_keys: Option<OwnedFd>,
    /// Whether the command wants the keys.
    pub wanted: bool,
    /// The settings to restore, while this client reads the keys.
    before: Option<Termios>,
    /// Keys from before that, which have not been passed on.
    early: Vec<u8>,
    /// Which of `KEYS` were typed and have not been heard of since.
    pressed: [bool; 3],
}

impl Screen {
    /// Finds the terminal among the standard files, if there is one, and the files that go to the
    /// command unchanged.
    pub fn find() -> (Option<Screen>, Vec<BorrowedFd<'static>>) {
        let all = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
        let (terminals, files): (Vec<_>, Vec<_>) = (0_u8..).zip(all).partition(|(_, file)| isatty(file));
        let readable = |file: &&(u8, BorrowedFd<'_>)| {
            rustix::fs::fcntl_getfl(file.1).is_ok_and(|flags| flags & OFlags::RWMODE != OFlags::WRONLY)
        };
        let keys = terminals.iter().find(readable).map(|(_, file)| *file);
        // Standard input only shows the echo of keys, so it is the last choice for output.
        let shown = terminals.iter().find(|(number, _)| *number > 0).or(terminals.first()).map(|(_, file)| *file);
        let numbers = terminals.iter().map(|(number, _)| *number).collect();
        (
            shown.map(|shown| Screen {
                numbers,
                shown,
                unblocked: unblocked(shown, OFlags::WRONLY),
                waiting: Vec::new(),
                keys,
                unblocked_keys: keys.and_then(|keys| unblocked(keys, OFlags::RDONLY)),
                wanted: false,
                before: None,
                early: Vec::new(),
                pressed: [false; 3],
            }),
            files.into_iter().map(|(_, file)| file).collect(),
        )
    }

    /// The terminal that the session is asked for.
    pub fn wanted(&self) -> Value {
        let settings = lind_kernel::terminal::settings(self.shown).ok();
        json!({"files": self.numbers, "size": self.size(), "settings": settings.map(|all| request::settings(&all))})
    }

    /// `[rows, columns]`
    pub fn size(&self) -> Value {
        rustix::termios::tcgetwinsize(self.shown).map_or(json!([0, 0]), |size| json!([size.ws_row, size.ws_col]))
    }

    /// Starts reading the keys if the command wants them, unless this process is in the background
    /// or another client reads them.
    pub fn take_keys(&mut self) {
        let Some(keys) = self.keys.filter(|_| self.may_take_keys() && self.is_in_front()) else { return };
        // A terminal that is open for reading only cannot be locked.
        if rustix::fs::fcntl_lock(keys, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::AGAIN) {
            return;
        }
        let Ok(before) = rustix::termios::tcgetattr(keys) else { return };
        if before.local_modes.contains(LocalModes::ICANON) {
            self.take_lines(keys, &before);
        }
        let mut raw = before.clone();
        raw.make_raw();
        if rustix::termios::tcsetattr(keys, OptionalActions::Now, &raw).is_ok() {
            self.before = Some(before);
            self.pressed = [false; 3];
        }
        // The command may wait for a key before it writes on.
        self.show_return();
    }

    /// Takes the lines that were typed until now. The local terminal has made an end of input of
    /// each ^D, which would be a zero byte once it does not act on keys: here it is that key again.
    fn take_lines(&mut self, keys: BorrowedFd<'_>, settings: &Termios) {
        let code = |index| settings.special_codes[index];
        let ends = [SpecialCodeIndex::VEOL, SpecialCodeIndex::VEOL2].map(code);
        let ends_line = |&last: &u8| last == b'\n' || last != OFF && ends.contains(&last);
        // From now on it stays that key.
        let mut plain = settings.clone();
        plain.special_codes[SpecialCodeIndex::VEOF] = OFF;
        if rustix::termios::tcsetattr(keys, OptionalActions::Now, &plain).is_err() {
            return;
        }
        let mut piece = [0; PIECE];
        while self.early.len() < PIECE && has_line(keys) {
            let file = self.unblocked_keys.as_ref().map_or(keys, AsFd::as_fd);
            let Ok(count) = rustix::io::read(file, &mut piece) else { return };
            let line = &piece[..count];
            self.early.extend_from_slice(line);
            if !line.last().is_some_and(ends_line) {
                self.early.push(code(SpecialCodeIndex::VEOF));
            }
        }
    }

    /// Whether this process is in the foreground. True too if the terminal is not a controlling
    /// one.
    fn is_in_front(&self) -> bool {
        let own = rustix::process::getpgrp();
        self.keys.is_some_and(|keys| match rustix::termios::tcgetpgrp(keys) {
            Ok(front) => front == own,
            Err(errno) => errno == rustix::io::Errno::NOTTY,
        })
    }

    /// Leaves the keys to others, and restores the terminal.
    pub fn leave_keys(&mut self) {
        let Some((keys, before)) = self.keys.zip(self.before.take()) else { return };
        if self.is_in_front() {
            let _ = rustix::termios::tcsetattr(keys, OptionalActions::Now, &before);
        }
        let _ = rustix::fs::fcntl_lock(keys, FlockOperation::NonBlockingUnlock);
    }

    /// The file to read keys from, while this client reads them.
    pub fn keys(&self) -> Option<BorrowedFd<'static>> {
        self.keys.filter(|_| self.before.is_some())
    }

    /// Whether this client may still try to read the keys.
    pub fn may_take_keys(&self) -> bool {
        self.wanted && self.keys.is_some() && self.before.is_none()
    }

    /// Whether keys were taken that `typed` has not returned.
    pub fn has_typed(&self) -> bool {
        !self.early.is_empty()
    }

    /// The next keys; empty at the end of the terminal. None if another program has read them.
    pub fn typed(&mut self) -> Option<Vec<u8>> {
        if self.has_typed() {
            return Some(std::mem::take(&mut self.early));
        }
        let mut piece = vec![0; PIECE];
        let keys = self.keys()?;
        let count = match rustix::io::read(self.unblocked_keys.as_ref().map_or(keys, AsFd::as_fd), &mut piece) {
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return None,
            count => count.unwrap_or(0),
        };
        piece.truncate(count);
        if let Some(before) = self.before.as_ref().filter(|before| before.local_modes.contains(LocalModes::ISIG)) {
            for (pressed, (_, index)) in self.pressed.iter_mut().zip(KEYS) {
                *pressed |= piece.contains(&before.special_codes[index]);
            }
        }
        Some(piece)
    }

    /// Sends the signal that a key has meant to the other processes of this one's group, as the
    /// terminal itself would have done: the key was taken from it. The settings of the command's
    /// terminal do not make another key mean a signal here.
    pub fn signal_group(&mut self, number: u8) {
        let key = KEYS.iter().position(|(signal, _)| signal.as_raw() == i32::from(number));
        let Some(key) = key.filter(|&key| std::mem::take(&mut self.pressed[key])) else { return };
        if self.keys().map(rustix::termios::tcgetpgrp) == Some(Ok(rustix::process::getpgrp())) {
            let _ = rustix::process::kill_current_process_group(KEYS[key].0);
        }
    }

    /// Stops reading keys for good.
    pub fn forget_keys(&mut self) {
        self.leave_keys();
        self.keys = None;
    }

    /// Prints output of the command, as far as the terminal has room for it.
    ///
    /// # Errors
    /// When the terminal has gone.
    pub fn show(&mut self, bytes: &[u8]) -> Result<()> {
        self.waiting.extend_from_slice(bytes);
        self.flush()
    }

    /// Shows more of what waits.
    ///
    /// # Errors
    /// When the terminal has gone.
    pub fn flush(&mut self) -> Result<()> {
        loop {
            let ends_lines = self.ends_lines();
            let shown = shown(&self.waiting, ends_lines);
            if shown.is_empty() {
                return Ok(());
            }
            let bytes: Vec<u8> = shown.iter().map(|&(_, byte)| byte).collect();
            match rustix::io::write(self.place(), &bytes) {
                Ok(count) => drop(self.waiting.drain(..count.checked_sub(1).map_or(0, |last| shown[last].0 + 1))),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(errno) => return Err(errno).context("cannot write to the terminal"),
            }
        }
    }

    /// Shows a \r that the output ends in for now. Until the next byte is known it could be a part
    /// of an end of line.
    pub fn show_return(&mut self) {
        if self.waiting == b"\r" && rustix::io::write(self.place(), b"\r").is_ok() {
            self.waiting.clear();
        }
    }

    /// Whether the local terminal makes \r\n of each \n.
    fn ends_lines(&self) -> bool {
        let modes = OutputModes::OPOST | OutputModes::ONLCR;
        rustix::termios::tcgetattr(self.shown).is_ok_and(|settings| settings.output_modes.contains(modes))
    }

    /// Where output is written to.
    pub fn place(&self) -> BorrowedFd<'_> {
        self.unblocked.as_ref().map_or(self.shown, AsFd::as_fd)
    }

    /// Whether output waits for room.
    pub fn is_full(&self) -> bool {
        !self.waiting.is_empty() && self.waiting != b"\r"
    }

    /// Whether a line can be written without waiting.
    pub fn has_room(&self) -> bool {
        let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut place = [rustix::event::PollFd::new(&self.shown, rustix::event::PollFlags::OUT)];
        rustix::event::poll(&mut place, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }

    /// Forgets the output that waits for room.
    pub fn discard(&mut self) {
        self.waiting.clear();
    }
}

/// Whether a terminal that acts on keys has a line to read. After a hangup reads do not wait, and
/// have nothing.
fn has_line(keys: BorrowedFd<'_>) -> bool {
    let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut place = [rustix::event::PollFd::new(&keys, rustix::event::PollFlags::IN)];
    let is_ready = rustix::event::poll(&mut place, Some(&at_once)).is_ok_and(|ready| ready > 0);
    is_ready && place[0].revents() == rustix::event::PollFlags::IN
}

/// The bytes that are written to the terminal, and their places in the output. A terminal that adds
/// \r itself gets \n for each \r\n; it gets a \r at the end once the next byte is known.
fn shown(output: &[u8], ends_lines: bool) -> Vec<(usize, u8)> {
    let is_of_end = |at: usize| output[at] == b'\r' && output.get(at + 1).is_none_or(|&next| next == b'\n');
    output.iter().copied().enumerate().filter(|&(at, _)| !ends_lines || !is_of_end(at)).collect()
}

/// The terminal opened once more. Its own description is shared with other programs, which expect
/// their reads and writes to wait.
fn unblocked(terminal: BorrowedFd<'_>, access: OFlags) -> Option<OwnedFd> {
    let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(format!("/proc/self/fd/{}", terminal.as_raw_fd()), flags, Mode::empty()).ok()
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave_keys();
        // A \r that nothing follows, if it has not been shown.
        let _ = rustix::io::write(self.place(), &self.waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    fn text(output: &str, ends_lines: bool) -> String {
        shown(output.as_bytes(), ends_lines).into_iter().map(|(_, byte)| char::from(byte)).collect()
    }

    #[test]
    fn ends_of_lines_are_those_of_the_terminal() {
        for (output, shown) in
            [("a\r\nb\r\n", "a\nb\n"), ("a\rb\n", "a\rb\n"), ("a\r", "a"), ("\r\r\n", "\r\n"), ("", "")]
        {
            assert_eq!(text(output, true), shown);
            assert_eq!(text(output, false), output);
        }
        assert_eq!(shown(b"a\r\nb", true)[1], (2, b'\n'));
    }
}
