//! The messages between the server and the first program of a session (`grates/session/session.c`),
//! over a socket that only these two have. The first program is trusted to tell the truth.

use std::io::{ErrorKind, Read, Result};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use super::wire::Outgoing;
use crate::plan::container::Identity;

/// A command to start.
pub struct Order<'a> {
    /// The command's number until it has a process id.
    pub id: u32,
    /// Descriptors in the table of the first program; -1 for none.
    pub files: [i32; 3],
    /// The working directory.
    pub directory: &'a [u8],
    /// The arguments.
    pub argv: &'a [Vec<u8>],
    /// The environment.
    pub envp: &'a [Vec<u8>],
    /// The user and the limits of a process of a container.
    pub identity: Option<&'a Identity>,
}

/// News about commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// The first program runs in this cage.
    Ready { pid: u32 },
    /// The command of an order runs in this cage.
    Started { id: u32, pid: u32 },
    /// The command could not be started: no such directory.
    NoDirectory { id: u32, errno: i32 },
    /// The command could not be started: no such program, or no room.
    NoProgram { id: u32, errno: i32 },
    /// The command has ended, with this status word of wait4(2).
    Ended { pid: u32, word: i32 },
    /// The command has stopped.
    Stopped { pid: u32, signal: i32 },
    /// The command continues.
    Continued { pid: u32 },
    /// The program of a container's process runs, or `NoProgram` was told before.
    Loaded { id: u32 },
}

/// The server's end.
pub struct Orders {
    socket: UnixStream,
    /// Bytes that the socket had no room for: the first program may be busy, and does not wait for
    /// its news to be read.
    waiting: Outgoing,
}

impl Orders {
    /// The server's end of this socket.
    ///
    /// # Errors
    /// The host's error.
    pub fn new(socket: UnixStream) -> Result<Orders> {
        socket.set_nonblocking(true)?;
        Ok(Orders { socket, waiting: Outgoing::default() })
    }

    /// Sends an order.
    pub fn give(&mut self, order: &Order<'_>) {
        let texts = [order.directory].into_iter().chain(order.argv.iter().chain(order.envp).map(Vec::as_slice));
        let words = order.identity.map(Identity::words).unwrap_or_default();
        let number = words.len();
        let words = words.into_iter().flat_map(u32::to_le_bytes);
        let body: Vec<u8> = words.chain(texts.flat_map(|text| text.iter().copied().chain([0]))).collect();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes();
        let head = [
            count(body.len()),
            order.id.to_le_bytes(),
            count(order.argv.len()),
            count(order.envp.len()),
            count(number),
        ];
        self.waiting.add(head.concat());
        self.waiting.add(order.files.iter().flat_map(|file| file.to_le_bytes()));
        self.waiting.add(body);
        self.flush();
    }

    /// Sends as much as the socket has room for.
    pub fn flush(&mut self) {
        // If the reader has gone, `news` reports the end.
        let _ = self.waiting.flush(self.socket.as_fd());
    }

    /// Whether bytes wait for room.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Ends the orders, on which the first program ends.
    pub fn end(&self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
    }

    /// The next news, if there is any.
    ///
    /// # Errors
    /// When the first program has ended.
    pub fn news(&mut self) -> Result<Option<News>> {
        let mut bytes = [0; 16];
        match self.socket.read(&mut bytes) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(None),
            Err(error) => return Err(error),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            // Each is written whole.
            Ok(_) => {}
        }
        let word =
            |at: usize| bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes);
        let (id, pid, value) = (word(4), word(8), word(12).cast_signed());
        Ok(Some(match word(0) {
            0 => News::Ready { pid },
            1 => News::Started { id, pid },
            2 => News::NoDirectory { id, errno: value },
            3 => News::NoProgram { id, errno: value },
            4 => News::Ended { pid, word: value },
            5 => News::Stopped { pid, signal: value },
            7 => News::Loaded { id },
            _ => News::Continued { pid },
        }))
    }
}

impl AsFd for Orders {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
