//! The messages between the process that runs guests and the one that compiles, on sockets that
//! keep message boundaries.
//!
//! A request brings the file that it is about and one end of a new pair of sockets, on which the
//! answers come. A caller that has exited has closed its end. Both sides look at what they get: the
//! one that compiles may be asked by a runner that a guest has taken over.

use std::fmt;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_kernel::Errno;
use rustix::io::Errno as HostErrno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// The most modules that are asked for at once; further ones wait here. The compiler process has to
/// keep two descriptors for each.
pub const ASKED_AT_ONCE: usize = 16;

/// An error of the compiler process.
#[derive(Debug)]
pub struct CompileError {
    /// The error for the caller.
    pub errno: Errno,
    reason: String,
}

impl fmt::Display for CompileError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.reason)
    }
}

impl std::error::Error for CompileError {}

impl CompileError {
    /// An error, with a reason for people.
    pub fn new(errno: Errno, reason: impl Into<String>) -> CompileError {
        CompileError { errno, reason: reason.into() }
    }

    /// The errno of an error: ENOEXEC if it has none.
    pub fn errno_of(error: &anyhow::Error) -> Errno {
        let own = error.downcast_ref::<CompileError>().map(|own| own.errno);
        own.or_else(|| error.downcast_ref().copied()).unwrap_or(Errno::ENOEXEC)
    }
}

/// The requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// The keys that verify code, and the directories where it is kept.
    Keys,
    /// The compiled code of a module.
    Compile,
    /// A note, so that the next start of a file need not read it.
    Remember,
    /// The walls that are up.
    Walls,
}

const REQUESTS: [(u8, Request); 4] =
    [(b'k', Request::Keys), (b'c', Request::Compile), (b'r', Request::Remember), (b'w', Request::Walls)];

/// The answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// So many functions of so many have begun. More answers follow.
    Progress(u32, u32),
    /// The request is done, with its result.
    Done(Vec<u8>),
    /// The request failed.
    Failed(Errno, String),
}

/// The longest message.
const LONGEST: usize = 16 << 10;

/// The longest reason that is sent.
const REASON: usize = 4 << 10;

impl Answer {
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Answer::Progress(begun, functions) => [&b"p"[..], &begun.to_le_bytes(), &functions.to_le_bytes()].concat(),
            Answer::Done(bytes) => [b"d", &bytes[..bytes.len().min(LONGEST - 1)]].concat(),
            Answer::Failed(errno, reason) => {
                let reason = reason.as_bytes();
                [&b"f"[..], &errno.raw().to_le_bytes(), &reason[..reason.len().min(REASON)]].concat()
            }
        }
    }

    fn of(bytes: &[u8]) -> Option<Answer> {
        let (kind, rest) = bytes.split_first()?;
        match kind {
            b'p' => {
                let number = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
                Some(Answer::Progress(number(0)?, number(4)?))
            }
            b'd' => Some(Answer::Done(rest.to_vec())),
            b'f' => {
                let (errno, reason) = rest.split_first_chunk()?;
                Some(Answer::Failed(
                    Errno::from_raw(i32::from_le_bytes(*errno)),
                    String::from_utf8_lossy(reason).into_owned(),
                ))
            }
            _ => None,
        }
    }
}

/// A pair of connected sockets.
///
/// # Errors
/// EMFILE, ENFILE, ENOMEM.
pub fn pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Sends a request, if the socket has space for one.
///
/// # Errors
/// EAGAIN if it has none, EPIPE when the other end is closed.
pub fn ask(
    to: BorrowedFd<'_>,
    request: Request,
    answers: BorrowedFd<'_>,
    file: Option<BorrowedFd<'_>>,
) -> rustix::io::Result<()> {
    let kind = REQUESTS.iter().find(|(_, known)| *known == request).map_or(0, |row| row.0);
    let files: Vec<_> = std::iter::once(answers).chain(file).collect();
    send(to, &[kind], &files)
}

/// Waits for the next request.
///
/// # Errors
/// The host's error; EINTR.
pub fn asked(from: BorrowedFd<'_>) -> rustix::io::Result<Heard<(Request, OwnedFd, Option<OwnedFd>)>> {
    let Some((bytes, files)) = receive(from, RecvFlags::empty())? else { return Ok(Heard::Closed) };
    let request = REQUESTS.iter().find(|(kind, _)| bytes == [*kind]).map(|row| row.1);
    let mut files = files.into_iter();
    match (request, files.next(), files.next()) {
        (Some(request), Some(answers), file) => Ok(Heard::Message((request, answers, file))),
        _ => Ok(Heard::Nonsense),
    }
}

/// The result of waiting for a message.
pub enum Heard<T> {
    /// A message.
    Message(T),
    /// Bytes that are not a message.
    Nonsense,
    /// No message, and none will come.
    Closed,
}

/// Answers. It does not wait for space: there is enough, unless the caller does not read.
///
/// # Errors
/// EPIPE, EAGAIN.
pub fn answer(to: BorrowedFd<'_>, answer: &Answer, file: Option<BorrowedFd<'_>>) -> rustix::io::Result<()> {
    let files: Vec<_> = file.into_iter().collect();
    send(to, &answer.to_bytes(), &files)
}

/// The next answer, if there is one.
///
/// # Errors
/// EAGAIN if there is none yet; EMFILE if the file that came with it got no descriptor.
pub fn answered(from: BorrowedFd<'_>) -> rustix::io::Result<Heard<(Answer, Option<OwnedFd>)>> {
    let Some((bytes, files)) = receive(from, RecvFlags::DONTWAIT)? else { return Ok(Heard::Closed) };
    let answer = Answer::of(&bytes).map(|answer| (answer, files.into_iter().next()));
    Ok(answer.map_or(Heard::Nonsense, Heard::Message))
}

fn send(to: BorrowedFd<'_>, bytes: &[u8], files: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        with.push(SendAncillaryMessage::ScmRights(files));
    }
    sendmsg(to, &[IoSlice::new(bytes)], &mut with, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).map(drop)
}

/// A message, with at most two files.
fn receive(from: BorrowedFd<'_>, flags: RecvFlags) -> rustix::io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let got = recvmsg(from.as_fd(), &mut [IoSliceMut::new(&mut bytes)], &mut with, flags)?;
    let mut files = Vec::new();
    for message in with.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            files.extend(rights);
        }
    }
    if got.flags.contains(ReturnFlags::CTRUNC) {
        return Err(HostErrno::MFILE);
    }
    bytes.truncate(got.bytes);
    Ok((got.bytes > 0).then_some((bytes, files)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let (ours, theirs) = pair().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        let (end, _) = pair().unwrap();
        ask(ours.as_fd(), Request::Compile, end.as_fd(), Some(file.as_fd())).unwrap();
        assert!(matches!(asked(theirs.as_fd()), Ok(Heard::Message((Request::Compile, _, Some(_))))));
        let long = "x".repeat(2 * LONGEST);
        let answers = [
            Answer::Progress(7, u32::MAX),
            Answer::Done(vec![1, 2, 3]),
            Answer::Done(Vec::new()),
            Answer::Failed(Errno::ENOEXEC, "why".to_owned()),
        ];
        for sent in answers {
            answer(theirs.as_fd(), &sent, None).unwrap();
            let Ok(Heard::Message((got, None))) = answered(ours.as_fd()) else { panic!("{sent:?}") };
            assert_eq!(got, sent);
        }
        answer(theirs.as_fd(), &Answer::Failed(Errno::ENOMEM, long), Some(file.as_fd())).unwrap();
        let Ok(Heard::Message((Answer::Failed(Errno::ENOMEM, text), Some(_)))) = answered(ours.as_fd()) else {
            panic!("a long reason")
        };
        assert_eq!(text.len(), REASON);
        assert!(answered(ours.as_fd()).is_err(), "nothing came, so there is nothing");
        drop(theirs);
        assert!(matches!(answered(ours.as_fd()), Ok(Heard::Closed)));
    }

    #[test]
    fn nonsense_is_no_message() {
        let (ours, theirs) = pair().unwrap();
        for bytes in [&b"?"[..], b"c", b"ck", b"kkkk"] {
            send(ours.as_fd(), bytes, &[]).unwrap();
            assert!(matches!(asked(theirs.as_fd()), Ok(Heard::Nonsense)), "{bytes:?}");
            send(ours.as_fd(), bytes, &[]).unwrap();
            assert!(matches!(answered(theirs.as_fd()), Ok(Heard::Nonsense)), "{bytes:?}");
        }
        assert_eq!([&b""[..], b"p123", b"f", b"f1", b"x"].map(Answer::of), [const { None }; 5]);
    }
}
