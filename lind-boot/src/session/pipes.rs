//! The pipes of a command whose client sends no files: the session keeps the other ends.
//! Programs that the command has left in the background may go on writing to them after its end.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{Context, Result};
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};

use super::output::Stream;
use super::wire::FILES;

/// The most bytes of input that may wait for the command.
const AHEAD: usize = 64 << 10;

/// The session's ends.
#[derive(Default)]
pub struct Pipes {
    input: Option<OwnedFd>,
    /// Input that the pipe had no room for.
    waiting: VecDeque<u8>,
    /// Whether the input ends behind that.
    closes: bool,
    /// The pipes that the command writes to.
    outs: Vec<(Stream, OwnedFd)>,
}

impl Pipes {
    /// Makes pipes for the descriptors that are marked. Returns the command's ends, too. Input ends
    /// at once unless the client is going to send some.
    ///
    /// # Errors
    /// The host's error.
    pub fn open(wanted: [bool; FILES], has_input: bool) -> Result<(Pipes, [Option<OwnedFd>; FILES])> {
        let (mut pipes, mut theirs) = (Pipes::default(), [const { None }; FILES]);
        let kinds = [None, Some(Stream::Out), Some(Stream::Error)];
        for ((kind, end), _) in kinds.into_iter().zip(&mut theirs).zip(wanted).filter(|(_, wanted)| *wanted) {
            let (reads, writes) = pipe_with(PipeFlags::CLOEXEC).context("cannot make a pipe for the command")?;
            let (ours, other) = if kind.is_none() { (writes, reads) } else { (reads, writes) };
            rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK).context("cannot make a pipe for the command")?;
            *end = Some(other);
            match kind {
                None => pipes.input = Some(ours).filter(|_| has_input),
                Some(stream) => pipes.outs.push((stream, ours)),
            }
        }
        Ok((pipes, theirs))
    }

    /// Adds input, and ends it if `last`.
    pub fn add_input(&mut self, bytes: &[u8], last: bool) {
        if self.input.is_some() && !self.closes {
            self.waiting.extend(bytes);
            self.closes = last;
            self.flush();
        }
    }

    /// Whether input can still be sent.
    pub fn takes_input(&self) -> bool {
        self.input.is_some() && !self.closes
    }

    /// Writes as much input as the pipe has room for.
    pub fn flush(&mut self) {
        while let Some(input) = self.input.as_ref().filter(|_| !self.waiting.is_empty()) {
            match rustix::io::write(input, self.waiting.as_slices().0) {
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                // Nobody reads it any more.
                Err(_) => {
                    self.waiting.clear();
                    self.closes = true;
                }
            }
        }
        if self.closes {
            self.input = None;
        }
    }

    /// The pipe that input waits for.
    pub fn waits(&self) -> Option<BorrowedFd<'_>> {
        self.input.as_ref().filter(|_| !self.waiting.is_empty()).map(AsFd::as_fd)
    }

    /// Whether no more input should be taken from clients.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= AHEAD
    }

    /// The pipes that the command writes to.
    pub fn outs(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.outs.iter().map(|(_, out)| out.as_fd())
    }

    /// Reads output of at most `space` bytes from each pipe. A pipe at its end is closed. Returns
    /// the bytes, and whether more may be there already.
    pub fn read(&mut self, space: usize) -> (Vec<(Stream, Vec<u8>)>, bool) {
        let (mut all, mut left, mut more) = (Vec::new(), space, false);
        self.outs.retain(|(stream, out)| {
            let mut piece = vec![0; left.min(16 << 10)];
            if piece.is_empty() {
                more = true;
                return true;
            }
            match rustix::io::read(out, &mut piece) {
                Ok(0) => false,
                Ok(count) => {
                    piece.truncate(count);
                    left -= count;
                    all.push((*stream, piece));
                    more = true;
                    true
                }
                Err(rustix::io::Errno::AGAIN) => true,
                Err(rustix::io::Errno::INTR) => {
                    more = true;
                    true
                }
                Err(_) => false,
            }
        });
        (all, more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn input_waits_for_room_and_ends() {
        let (mut pipes, theirs) = Pipes::open([true, false, true], true).unwrap();
        let [input, None, Some(error)] = theirs else { panic!("other ends") };
        let much = vec![5; 300_000];
        pipes.add_input(&much, true);
        assert!(pipes.is_full() && pipes.waits().is_some() && !pipes.takes_input());
        let reads = std::thread::spawn(move || {
            let mut all = Vec::new();
            std::fs::File::from(input.unwrap()).read_to_end(&mut all).unwrap();
            all.len()
        });
        while pipes.waits().is_some() {
            pipes.flush();
        }
        assert_eq!(reads.join().unwrap(), much.len());
        std::fs::File::from(error).write_all(b"ab").unwrap();
        assert_eq!(pipes.read(1), (vec![(Stream::Error, b"a".to_vec())], true));
        assert_eq!(pipes.read(9), (vec![(Stream::Error, b"b".to_vec())], true));
        assert_eq!((pipes.read(9), pipes.outs().count()), ((Vec::new(), false), 0));
    }

    #[test]
    fn input_that_nobody_reads_is_forgotten() {
        let (mut pipes, theirs) = Pipes::open([true, false, false], true).unwrap();
        drop(theirs);
        lind_engine::signal::process_signals::errors_are_no_signals();
        pipes.add_input(b"x", false);
        assert!(pipes.waits().is_none() && !pipes.takes_input());
    }
}
