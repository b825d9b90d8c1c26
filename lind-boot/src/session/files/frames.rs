//! The messages between the server and the program that serves requests for files, as
//! `grates/session/files.h` has them. That program may be anybody's by now, since commands of the
//! session could have found a way into it: what it sends is checked like a guest's.

use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use super::request::Ask;
use crate::session::wire::Outgoing;

/// The longest answer: two paths, or a piece of a file.
const MOST: usize = 128 << 10;

/// The most bytes that wait for the program.
const AHEAD: usize = 1 << 20;

/// The end of the pieces of a file, and the length that stands for giving up.
const LAST: u32 = 0;
const GIVEN_UP: u32 = u32::MAX;

/// The head of an answer.
const HEAD: usize = 16;

/// The kinds of answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bytes of a file or a tar.
    Data,
    /// A file.
    Entry,
    /// A change that is watched for.
    Event,
    /// A file that was left out.
    Skipped,
    /// The work has begun.
    Begun,
    /// The end, with a number or the negative of an errno.
    Done,
}

/// An answer.
pub struct Report {
    /// Its kind.
    pub kind: Kind,
    /// Its number.
    pub value: i64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The server's end.
pub struct Channel {
    socket: UnixStream,
    waiting: Outgoing,
    come: Vec<u8>,
}

impl Channel {
    /// The server's end of this socket.
    ///
    /// # Errors
    /// The host's error.
    pub fn new(socket: UnixStream) -> Result<Channel> {
        socket.set_nonblocking(true)?;
        Ok(Channel { socket, waiting: Outgoing::default(), come: Vec::new() })
    }

    /// Sends a request.
    pub fn ask(&mut self, ask: &Ask) {
        let body = [&ask.path[..], &[0], &ask.other[..], &[0]].concat();
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        for word in [ask.op as u32, length, ask.flags, ask.mode] {
            self.waiting.add(word.to_le_bytes());
        }
        self.waiting.add(ask.from.to_le_bytes());
        self.waiting.add(ask.count.to_le_bytes());
        self.waiting.add(ask.depth.to_le_bytes());
        self.waiting.add([0; 4]);
        self.waiting.add(body);
        self.flush();
    }

    /// Sends a piece of a file.
    pub fn piece(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(usize::try_from(GIVEN_UP >> 1).unwrap_or(MOST)) {
            self.waiting.add(u32::try_from(part.len()).unwrap_or(LAST).to_le_bytes());
            self.waiting.add(part.iter().copied());
        }
        self.flush();
    }

    /// Ends the pieces. Unless they are `whole`, the bytes that were written so far are dropped.
    pub fn end_pieces(&mut self, whole: bool) {
        self.waiting.add(if whole { LAST } else { GIVEN_UP }.to_le_bytes());
        self.flush();
    }

    /// Sends as much as the socket has room for.
    pub fn flush(&mut self) {
        // If the program has ended, `read` reports it.
        let _ = self.waiting.flush(self.socket.as_fd());
    }

    /// Whether bytes wait for room.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether no more pieces should be taken.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= AHEAD
    }

    /// Reads what has come.
    ///
    /// # Errors
    /// When the program has ended.
    pub fn read(&mut self) -> Result<()> {
        let mut piece = vec![0; MOST];
        match self.socket.read(&mut piece) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(error) => Err(error),
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.come.extend(piece.get(..count).unwrap_or_default());
                Ok(())
            }
        }
    }

    /// The next answer that has come.
    ///
    /// # Errors
    /// When the bytes are not an answer.
    pub fn next(&mut self) -> Result<Option<Report>> {
        let Some(head) = self.come.first_chunk::<HEAD>() else { return Ok(None) };
        let kind = match word(head, 0) {
            0 => Kind::Data,
            1 => Kind::Entry,
            2 => Kind::Event,
            3 => Kind::Skipped,
            4 => Kind::Begun,
            5 => Kind::Done,
            _ => return Err(Error::new(ErrorKind::InvalidData, "an answer of no known kind")),
        };
        let length = word(head, 4) as usize;
        if length > MOST {
            return Err(Error::new(ErrorKind::InvalidData, "an answer is too long"));
        }
        let value = i64::from_le_bytes(*head.last_chunk().unwrap_or(&[0; 8]));
        let Some(bytes) = self.come.get(HEAD..HEAD + length) else { return Ok(None) };
        let bytes = bytes.to_vec();
        self.come.drain(..HEAD + length);
        Ok(Some(Report { kind, value, bytes }))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The word of four bytes at a place; 0 beyond the end.
pub fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word))
}

/// The word of eight bytes at a place; 0 beyond the end.
pub fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn answers_are_checked() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut channel = Channel::new(ours).unwrap();
        let head =
            |kind: u32, length: u32| [&kind.to_le_bytes()[..], &length.to_le_bytes(), &(-2_i64).to_le_bytes()].concat();
        theirs.write_all(&head(5, 3)).unwrap();
        theirs.write_all(b"ab").unwrap();
        channel.read().unwrap();
        assert!(channel.next().unwrap().is_none());
        theirs.write_all(b"c").unwrap();
        channel.read().unwrap();
        let report = channel.next().unwrap().unwrap();
        assert_eq!((report.kind, report.value, &report.bytes[..]), (Kind::Done, -2, &b"abc"[..]));
        for wrong in [head(9, 0), head(1, 1 << 30)] {
            theirs.write_all(&wrong).unwrap();
            channel.read().unwrap();
            assert!(channel.next().is_err());
            channel.come.clear();
        }
        drop(theirs);
        assert!(channel.read().is_err());
    }
}
