//! Messages to a runner: JSON behind its length, with open files
//! (`lind-boot/src/session/wire.rs` is the other end).

use std::io::{Error, ErrorKind, IoSlice, Read, Result, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::Value;

/// The longest message.
const MOST: usize = 4 << 20;

/// The most files in a message.
const FILES: usize = 3;

/// Sends a message whole.
///
/// # Errors
/// The host's error.
pub fn send(socket: &UnixStream, message: &Value, files: &[BorrowedFd<'_>]) -> Result<()> {
    let text = message.to_string();
    let length = u32::try_from(text.len()).ok().filter(|&length| length as usize <= MOST);
    let length = length.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "config.json is longer than 4 MiB"))?;
    let bytes = [&length.to_le_bytes(), text.as_bytes()].concat();
    send_with_files(socket, &bytes, files)
}

/// Sends bytes, with files at the first of them.
///
/// # Errors
/// The host's error.
pub fn send_with_files(socket: &UnixStream, bytes: &[u8], files: &[BorrowedFd<'_>]) -> Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(Error::new(ErrorKind::InvalidInput, "too many files"));
    }
    let sent = sendmsg(socket.as_fd(), &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    let mut socket = socket;
    socket.write_all(bytes.get(sent..).unwrap_or_default())
}

/// Receives a message.
///
/// # Errors
/// The end of the connection, or something else than a message.
pub fn receive(mut socket: &UnixStream) -> Result<Value> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MOST {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length];
    socket.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_arrive_whole() {
        let (here, there) = UnixStream::pair().unwrap();
        let message = json!({"a": "x".repeat(9000)});
        send(&here, &message, &[there.as_fd()]).unwrap();
        send(&here, &json!([1]), &[]).unwrap();
        assert_eq!((receive(&there).unwrap(), receive(&there).unwrap()), (message, json!([1])));
        drop(here);
        assert!(receive(&there).is_err());
    }
}
