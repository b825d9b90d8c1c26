//! The messages on a session's socket: JSON texts, each after its length as four bytes in
//! little-endian order. From version 2 on, bytes may follow a text, whose number its key `bytes`
//! gives. Files are sent with the first byte of a message. `docs/session.md` lists the messages.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::Deserialize;
use serde_json::Value;

/// The version of the protocol that runs commands on the caller's files.
pub const VERSION: u64 = 1;

/// The version with bytes behind messages, and many requests on a connection.
pub const SECOND: u64 = 2;

/// The longest message, and the most bytes behind one.
pub const MOST: usize = 4 << 20;

/// The most files in a message.
pub const FILES: usize = 3;

/// Sends a message whole.
///
/// # Errors
/// The host's error. A socket that does not block may have no room.
pub fn send(socket: BorrowedFd<'_>, message: &Value, files: &[BorrowedFd<'_>]) -> Result<()> {
    let text = message.to_string();
    let length = u32::try_from(text.len()).ok().filter(|&length| length as usize <= MOST);
    let length = length.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "the command line is longer than 4 MiB"))?;
    let bytes = [&length.to_le_bytes(), text.as_bytes()].concat();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(Error::new(ErrorKind::InvalidInput, "too many files"));
    }
    let mut sent = 0;
    while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
        sent += sendmsg(socket, &[IoSlice::new(rest)], &mut control, SendFlags::NOSIGNAL)?;
        control.clear();
    }
    Ok(())
}

/// Sends a message whole, with bytes behind it.
///
/// # Errors
/// The host's error.
pub fn send_bytes(socket: BorrowedFd<'_>, mut message: Value, body: &[u8]) -> Result<()> {
    message["bytes"] = body.len().into();
    send(socket, &message, &[])?;
    let mut rest = body;
    while !rest.is_empty() {
        let count = rustix::net::send(socket, rest, SendFlags::NOSIGNAL)?;
        rest = rest.get(count..).unwrap_or_default();
    }
    Ok(())
}

/// Bytes that wait to be sent on a socket that does not block.
#[derive(Default)]
pub struct Outgoing(VecDeque<u8>);

impl Outgoing {
    /// Adds a message, and sends as much as the socket has room for.
    ///
    /// # Errors
    /// The host's error, or one that the reader has not read for a long time.
    pub fn send(&mut self, socket: BorrowedFd<'_>, message: &Value) -> Result<()> {
        self.push(socket, message, &[], MOST)
    }

    /// Adds a message with bytes behind it, and sends as much as the socket has room for.
    ///
    /// # Errors
    /// As for [`Outgoing::send`].
    pub fn send_bytes(&mut self, socket: BorrowedFd<'_>, mut message: Value, body: &[u8]) -> Result<()> {
        message["bytes"] = body.len().into();
        self.push(socket, &message, body, 2 * MOST)
    }

    fn push(&mut self, socket: BorrowedFd<'_>, message: &Value, body: &[u8], room: usize) -> Result<()> {
        let text = message.to_string();
        if self.0.len() + text.len() + body.len() > room {
            return Err(ErrorKind::WouldBlock.into());
        }
        let length = u32::try_from(text.len()).map_err(|_| ErrorKind::InvalidInput)?;
        self.0.extend(length.to_le_bytes());
        self.0.extend(text.as_bytes());
        self.0.extend(body);
        self.flush(socket)
    }

    /// Adds bytes, which `flush` sends.
    pub fn add(&mut self, bytes: impl IntoIterator<Item = u8>) {
        self.0.extend(bytes);
    }

    /// Sends as much as the socket has room for.
    ///
    /// # Errors
    /// The host's error.
    pub fn flush(&mut self, socket: BorrowedFd<'_>) -> Result<()> {
        while !self.is_empty() {
            match rustix::net::send(socket, self.0.as_slices().0, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => drop(self.0.drain(..count)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// The number of bytes that wait.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether all was sent.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A message, with what came with it.
pub struct Message {
    /// The text.
    pub value: Value,
    /// The bytes behind it.
    pub body: Vec<u8>,
    /// The files that have arrived by its end.
    pub files: Vec<OwnedFd>,
}

/// Bytes and files that were received from a socket.
#[derive(Default)]
pub struct Incoming {
    bytes: Vec<u8>,
    files: Vec<OwnedFd>,
    /// The text of a message whose bytes have not all arrived, and their number.
    head: Option<(Value, usize)>,
    /// Whether the messages are of the second version.
    second: bool,
}

impl Incoming {
    /// The receiver of messages of the second version.
    pub fn second() -> Incoming {
        Incoming { second: true, ..Incoming::default() }
    }

    /// Whether the other end has sent a message of the second version.
    pub fn is_second(&self) -> bool {
        self.second
    }

    /// Reads what has arrived; on a blocking socket, waits for it. False at the end.
    ///
    /// # Errors
    /// The host's error.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> Result<bool> {
        let mut piece = [0; 64 << 10];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(socket, &mut [IoSliceMut::new(&mut piece)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                self.files.extend(files);
            }
        }
        self.bytes.extend(piece.get(..got.bytes).unwrap_or_default());
        Ok(got.bytes > 0)
    }

    /// The next complete message.
    ///
    /// # Errors
    /// When the bytes are not a message.
    pub fn next(&mut self) -> Result<Option<Message>> {
        let too_much = || Error::new(ErrorKind::InvalidData, "a message is too long, or has too many files");
        if self.head.is_none() {
            let Some(length) = self.bytes.first_chunk::<4>() else { return Ok(None) };
            let length = u32::from_le_bytes(*length) as usize;
            if length > MOST || self.files.len() > FILES {
                return Err(too_much());
            }
            let Some(text) = self.bytes.get(4..4 + length) else { return Ok(None) };
            let value: Value = serde_json::from_slice(text)?;
            self.bytes.drain(..4 + length);
            self.second |= value["lind"].as_u64() == Some(SECOND);
            let behind = value["bytes"].as_u64().filter(|_| self.second).unwrap_or(0);
            let behind = usize::try_from(behind).ok().filter(|&behind| behind <= MOST).ok_or_else(too_much)?;
            self.head = Some((value, behind));
        }
        let there = |(_, behind): &mut (Value, usize)| *behind <= self.bytes.len();
        let Some((value, behind)) = self.head.take_if(there) else { return Ok(None) };
        let body = self.bytes.drain(..behind).collect();
        Ok(Some(Message { value, body, files: std::mem::take(&mut self.files) }))
    }
}

/// A word of a command line as JSON: a text, or a list of bytes if it is not UTF-8.
pub fn word(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes).map_or_else(|_| bytes.into(), Into::into)
}

/// The bytes of such a word.
#[derive(Deserialize)]
#[serde(from = "Written")]
pub struct Word(pub Vec<u8>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected text, or a list of bytes")]
enum Written {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Written> for Word {
    fn from(written: Written) -> Word {
        match written {
            Written::Text(text) => Word(text.into_bytes()),
            Written::Bytes(bytes) => Word(bytes),
        }
    }
}

/// The word of such a JSON value.
pub fn bytes(word: &Value) -> Option<Vec<u8>> {
    Word::deserialize(word).ok().map(|Word(bytes)| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn messages_arrive_with_their_files() {
        let (here, there) = UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        let (first, second) = (json!({"a": "x".repeat(9000)}), json!([1]));
        send(here.as_fd(), &first, &[file.as_fd(), file.as_fd()]).unwrap();
        send(here.as_fd(), &second, &[]).unwrap();
        drop(here);
        let (mut incoming, mut got) = (Incoming::default(), Vec::new());
        while incoming.receive(there.as_fd()).unwrap() {
            while let Some(message) = incoming.next().unwrap() {
                got.push((message.value, message.files.len()));
            }
        }
        assert_eq!(got, [(first, 2), (second, 0)]);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for bytes in [&[255, 255, 255, 255][..], &[1, 0, 0, 0, b'{']] {
            let mut incoming = Incoming { bytes: bytes.to_vec(), ..Incoming::default() };
            assert!(incoming.next().is_err(), "{bytes:?}");
        }
        let mut incoming = Incoming { bytes: vec![9, 0, 0, 0, b'{'], ..Incoming::default() };
        assert!(incoming.next().unwrap().is_none());
    }

    #[test]
    fn bytes_are_behind_messages_of_the_second_version_alone() {
        let (here, there) = UnixStream::pair().unwrap();
        send(here.as_fd(), &json!({"lind": 1, "bytes": 7}), &[]).unwrap();
        send_bytes(here.as_fd(), json!({"lind": 2}), b"{\0\xff").unwrap();
        send_bytes(here.as_fd(), json!({}), b"").unwrap();
        drop(here);
        let (mut incoming, mut got) = (Incoming::default(), Vec::new());
        while incoming.receive(there.as_fd()).unwrap() {
            while let Some(message) = incoming.next().unwrap() {
                got.push(message.body);
            }
        }
        assert_eq!(got, [&b""[..], b"{\0\xff", b""]);
        send_bytes(there.as_fd(), json!({"lind": 2}), b"").unwrap_err();
        let mut incoming = Incoming::second();
        incoming.bytes = [&19_u32.to_le_bytes()[..], b"{\"bytes\":100000000}"].concat();
        assert!(incoming.next().is_err());
    }

    #[test]
    fn words_need_not_be_text() {
        for text in [&b"a b"[..], b"", b"\xff\x00x"] {
            assert_eq!(bytes(&word(text)).as_deref(), Some(text));
        }
        assert!(bytes(&json!([256])).is_none() && bytes(&json!(1)).is_none());
    }
}
