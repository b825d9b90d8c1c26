//! Messages: vectors of data, control messages, many at once.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lind_abi::flags::MsgFlags;
use lind_abi::layout::{Iovec, Mmsghdr, Msghdr, Sockaddr, Timespec};
use lind_abi::{CageId, Errno, Fd, In, InOut, Len, Out, Result};

use super::credentials::{self, is_claim};
use super::transfer::{failed, wait_for_input};
use super::{address, loopback};
use crate::call::Ctx;
use crate::fd::{File, FileRef, Kind, Socket};
use crate::host::control::{self, Control};
use crate::host::fs::Vector;
use crate::host::net::{self, Address};
use crate::sys::wait::Deadline;

/// The most iovecs, and the most messages of one call.
const UIO_MAXIOV: u32 = 1024;
/// The largest control buffer: more than the host takes.
const MAX_CONTROL: u32 = 1 << 17;
/// The room that a token takes in a control buffer, and the host's description of the sender.
const OF_SENDER: usize = 24 + 32;
const MSG_CTRUNC: i32 = libc::MSG_CTRUNC;
const SOL_SOCKET: i32 = libc::SOL_SOCKET;
const SCM_CREDENTIALS: i32 = libc::SCM_CREDENTIALS;

/// sendmsg(2)
pub(crate) fn sendmsg(cx: &Ctx<'_>, fd: Fd, msg: In<Msghdr>, flags: MsgFlags) -> Result<usize> {
    let socket = cx.host_fd(fd)?;
    send(cx, fd, socket.as_fd(), msg, flags)
}

/// recvmsg(2)
pub(crate) fn recvmsg(cx: &Ctx<'_>, fd: Fd, msg: InOut<Msghdr>, flags: MsgFlags) -> Result<usize> {
    let socket = cx.host_fd(fd)?;
    receive(cx, fd, socket.as_fd(), msg, flags)
}

/// sendmmsg(2). Says how many were sent if any was; an error then shows at the next call.
pub(crate) fn sendmmsg(cx: &Ctx<'_>, fd: Fd, msgs: InOut<Mmsghdr>, count: u32, flags: MsgFlags) -> Result<usize> {
    let socket = cx.host_fd(fd)?;
    let mut sent = 0;
    for at in places(msgs, count) {
        match send(cx, fd, socket.as_fd(), cx.reading(at).cast(), flags).and_then(|bytes| store_len(cx, at, bytes)) {
            Ok(()) => sent += 1,
            Err(errno) if sent == 0 => return Err(errno),
            Err(_) => break,
        }
    }
    Ok(sent)
}

/// recvmmsg(2). As on Linux the timeout is checked after each message: it does not end the wait for
/// a message.
pub(crate) fn recvmmsg(
    cx: &Ctx<'_>,
    fd: Fd,
    msgs: InOut<Mmsghdr>,
    count: u32,
    flags: MsgFlags,
    timeout: InOut<Timespec>,
) -> Result<usize> {
    let deadline = Deadline::load(cx, cx.reading(timeout))?;
    let socket = cx.host_fd(fd)?;
    let mut received = 0;
    for at in places(msgs, count) {
        let wait = if received > 0 && flags.has(MsgFlags::MSG_WAITFORONE) { MsgFlags::MSG_DONTWAIT } else { 0 };
        let flags = MsgFlags(flags.0 & !MsgFlags::MSG_WAITFORONE | wait);
        match receive(cx, fd, socket.as_fd(), at.cast(), flags).and_then(|bytes| store_len(cx, at, bytes)) {
            Ok(()) => received += 1,
            Err(errno) if received == 0 => return Err(errno),
            Err(_) => break,
        }
        if deadline.has_passed() {
            break;
        }
    }
    if let (true, Some(left)) = (received > 0, deadline.remaining()) {
        cx.store(cx.writing(timeout), &left)?;
    }
    Ok(received)
}

fn places(msgs: InOut<Mmsghdr>, count: u32) -> impl Iterator<Item = InOut<Mmsghdr>> {
    let size = size_of::<Mmsghdr>() as u64;
    (0..u64::from(count.min(UIO_MAXIOV))).map(move |i| InOut::new(msgs.addr.saturating_add(i * size), msgs.cage))
}

fn store_len(cx: &Ctx<'_>, at: InOut<Mmsghdr>, bytes: usize) -> Result<()> {
    let len = u32::try_from(bytes).map_err(|_| Errno::EMSGSIZE)?;
    cx.store(Out::new(at.addr + std::mem::offset_of!(Mmsghdr, len) as u64, at.cage), &len)
}

fn send(cx: &Ctx<'_>, fd: Fd, socket: BorrowedFd<'_>, msg: In<Msghdr>, flags: MsgFlags) -> Result<usize> {
    send_quietly(cx, fd, socket, msg, flags).inspect_err(|errno| failed(cx, fd, socket, flags, *errno))
}

fn send_quietly(cx: &Ctx<'_>, fd: Fd, socket: BorrowedFd<'_>, msg: In<Msghdr>, flags: MsgFlags) -> Result<usize> {
    let cage = msg.cage;
    let msg: Msghdr = cx.load(msg)?;
    let to = match msg.name {
        0 => Address::NONE,
        name => address::load(cx, In::<Sockaddr>::new(name.into(), cage), name_length(&msg)?)?,
    };
    let data = vector(cx, cage, &msg)?;
    let control = control_of(cx, cage, &msg)?;
    if (msg.name != 0 || !control.is_empty())
        && let Some(sent) = loopback::send(cx, fd, &data, &to, flags)
    {
        return sent;
    }
    let claims = control.iter().any(is_claim);
    if claims || cx.kernel.senders.asked() {
        return send_by(cx, fd, &data, control, &to, flags);
    }
    if msg.name == 0 && control.is_empty() {
        return cx.blocking(|| net::sendmsg(socket, &Address::NONE, &data, &[], flags.0));
    }
    send_by(cx, fd, &data, control, &to, flags)
}

/// Sends a message that may have descriptors and claims, with a token if a receiver has asked for
/// senders.
fn send_by(
    cx: &Ctx<'_>,
    fd: Fd,
    data: &Vector<'_>,
    control: Vec<Control<i32>>,
    to: &Address,
    flags: MsgFlags,
) -> Result<usize> {
    let files = files(cx, fd, &control)?;
    let socket = cx.file(fd)?;
    let by = credentials::on_behalf_of(cx, fd)?;
    let token = credentials::token(cx, &socket, by, control.iter().any(is_claim))?;
    let mut files = files.iter().map(|file| file.host());
    let control = control
        .into_iter()
        .map(|message| match message {
            Control::Rights(numbers) => Ok(Control::Rights(files.by_ref().take(numbers.len()).collect())),
            Control::Other { level, kind, data } if level == SOL_SOCKET && kind == SCM_CREDENTIALS => {
                Ok(Control::Other { level, kind, data: credentials::claim(by, &data)? })
            }
            Control::Other { level, kind, data } => Ok(Control::Other { level, kind, data }),
        })
        .collect::<Result<Vec<_>>>()?;
    match token {
        Some(token) => send_pieces(cx, fd, &socket, data, control, (to, flags), token.as_fd()),
        None => send_once(cx, fd, &socket, data, &control, (to, flags)),
    }
}

/// Sends by one call of the host.
fn send_once(
    cx: &Ctx<'_>,
    fd: Fd,
    socket: &FileRef,
    data: &Vector<'_>,
    control: &[Control<BorrowedFd<'_>>],
    (to, flags): (&Address, MsgFlags),
) -> Result<usize> {
    let files = control.iter().map(|message| if let Control::Rights(files) = message { files.len() } else { 0 }).sum();
    let counted = count_in_flight(cx, fd, files)?;
    let sent =
        address::reach_to_send(cx, socket.host(), to, |to| net::sendmsg(socket.host(), to, data, control, flags.0));
    if let Some((file, count)) = counted {
        cx.kernel.in_flight.sent(fd.cage, &file, count, sent.is_ok());
    }
    sent
}

/// Sends data with a token. A stream is cut into parts: the host splits the data and keeps
/// descriptors only with its first part, and each part has to carry the token.
fn send_pieces<'f>(
    cx: &Ctx<'_>,
    fd: Fd,
    socket: &FileRef,
    data: &Vector<'_>,
    mut control: Vec<Control<BorrowedFd<'f>>>,
    (to, flags): (&Address, MsgFlags),
    token: BorrowedFd<'f>,
) -> Result<usize> {
    /// Less than the host makes one part of, however small a guest makes its buffer.
    const PIECE: usize = 2048;
    let total = data.bytes();
    control.push(Control::Rights(vec![token]));
    if total <= PIECE || !credentials::is_stream(socket) {
        return send_once(cx, fd, socket, data, &control, (to, flags));
    }
    let mut sent = 0;
    while sent < total {
        let last = total - sent <= PIECE;
        let flags = if last { flags } else { MsgFlags(flags.0 & !MsgFlags::MSG_OOB) };
        match send_once(cx, fd, socket, &data.part(sent, PIECE), &control, (to, flags)) {
            Ok(bytes) => sent += bytes,
            Err(errno) if sent == 0 => return Err(errno),
            Err(_) => break,
        }
        // Descriptors go once; claims and the token with all.
        control.retain(|message| !matches!(message, Control::Rights(_)));
        control.push(Control::Rights(vec![token]));
    }
    Ok(sent)
}

/// Sends bytes with a token; None where none has to go with them.
///
/// # Errors
/// The errors of send(2).
pub(crate) fn send_with_token(
    cx: &Ctx<'_>,
    fd: Fd,
    data: &Vector<'_>,
    to: &Address,
    flags: MsgFlags,
) -> Result<Option<usize>> {
    let socket = cx.file(fd)?;
    let Some(token) = credentials::token(cx, &socket, credentials::on_behalf_of(cx, fd)?, false)? else {
        return Ok(None);
    };
    send_pieces(cx, fd, &socket, data, Vec::new(), (to, flags), token.as_fd())
        .inspect_err(|&errno| failed(cx, fd, socket.host(), flags, errno))
        .map(Some)
}

/// Counts descriptors that are going to be in flight: by which file, and how many.
fn count_in_flight(cx: &Ctx<'_>, fd: Fd, count: usize) -> Result<Option<(Arc<File>, u32)>> {
    if count == 0 {
        return Ok(None);
    }
    let file = cx.file(fd)?.share();
    let count = u32::try_from(count).map_err(|_| Errno::EINVAL)?;
    let limit = cx.owner(fd.cage)?.settings().limits.files.0;
    cx.kernel.in_flight.admit(fd.cage, &file, count, limit)?;
    Ok(Some((file, count)))
}

fn receive(cx: &Ctx<'_>, fd: Fd, socket: BorrowedFd<'_>, at: InOut<Msghdr>, flags: MsgFlags) -> Result<usize> {
    let cage = at.cage;
    let msg: Msghdr = cx.load(cx.reading(at))?;
    if msg.name != 0 {
        name_length(&msg)?;
    }
    let data = vector(cx, cage, &msg)?;
    let room = if msg.control == 0 { 0 } else { msg.controllen.min(MAX_CONTROL) as usize };
    wait_for_input(cx, socket, data.bytes(), flags);
    let asked = cx.kernel.senders.asked();
    let file = if asked { Some(cx.file(fd)?) } else { None };
    let more = if asked { OF_SENDER } else { 0 };
    let mut received = cx.blocking(|| net::recvmsg(socket, &data, msg.name != 0, room + more, flags.0))?;
    let mut token = None;
    if let Some(file) = &file {
        token = credentials::take_token(cx, &mut received.control);
        if let Some(token) = token {
            credentials::note_received(file, Some(token));
        }
    }

    if let Some(from) = &received.from {
        let len = InOut::new(field(at, std::mem::offset_of!(Msghdr, namelen)), cage);
        let sender = loopback::sender(cx, fd, from);
        address::store(cx, sender.as_ref().unwrap_or(from), Out::new(msg.name.into(), cage), len)?;
    }
    if received.control.iter().any(|message| matches!(message, Control::Rights(_))) {
        cx.kernel.in_flight.look_at_kept();
    }
    let cloexec = flags.has(MsgFlags::MSG_CMSG_CLOEXEC);
    let mut said = received.flags & !libc::MSG_CMSG_CLOEXEC | (flags.0 & MsgFlags::MSG_CMSG_CLOEXEC).cast_signed();
    let mut accepted = Vec::new();
    let translated = |message| match message {
        Control::Other { level, kind, data } if level == SOL_SOCKET && kind == SCM_CREDENTIALS => {
            Control::Other { level, kind, data: credentials::of_sender(cx, file.as_deref(), token, &data) }
        }
        message => message,
    };
    let control = received.control.into_iter().map(translated).collect();
    let control = if asked { fitting(control, room, &mut said) } else { control };
    let control = control
        .into_iter()
        .filter_map(|message| accept(cx, message, cloexec, &mut accepted, &mut said))
        .collect::<Vec<_>>();
    let mut control = control::encode(&control, |number| *number);
    control.truncate(room);
    let stored = cx.copy_out(Out::new(msg.control.into(), cage), &control).and_then(|()| {
        let controllen = u32::try_from(control.len()).map_err(|_| Errno::EINVAL)?;
        cx.store(Out::new(field(at, std::mem::offset_of!(Msghdr, controllen)), cage), &controllen)?;
        cx.store(Out::new(field(at, std::mem::offset_of!(Msghdr, flags)), cage), &said)
    });
    if stored.is_err() {
        accepted.into_iter().for_each(|number| drop(cx.cage.fds.remove(number, cx.reader(cx.cage.id))));
    }
    stored.map(|()| received.bytes)
}

fn field(at: InOut<Msghdr>, offset: usize) -> u64 {
    at.addr + offset as u64
}

/// msg_namelen: an int, of which Linux looks at no more than an address can have.
fn name_length(msg: &Msghdr) -> Result<u32> {
    i32::try_from(msg.namelen).map_err(|_| Errno::EINVAL)?;
    Ok(msg.namelen.min(128))
}

fn vector<'c>(cx: &'c Ctx<'_>, cage: CageId, msg: &Msghdr) -> Result<Vector<'c>> {
    if msg.iovlen > UIO_MAXIOV {
        return Err(Errno::EMSGSIZE);
    }
    crate::sys::fs::vector(cx, In::<Iovec>::new(msg.iov.into(), cage), Len(msg.iovlen.into()))
}

fn control_of(cx: &Ctx<'_>, cage: CageId, msg: &Msghdr) -> Result<Vec<Control<i32>>> {
    if msg.control == 0 || msg.controllen == 0 {
        return Ok(Vec::new());
    }
    if msg.controllen > MAX_CONTROL {
        return Err(Errno::ENOBUFS);
    }
    let mut bytes = vec![0; msg.controllen as usize];
    cx.copy_in(In::new(msg.control.into(), cage), &mut bytes)?;
    control::decode(&bytes)
}

/// The files behind the descriptors of all SCM_RIGHTS messages, in order. The numbers belong to the
/// cage whose socket it is.
fn files(cx: &Ctx<'_>, fd: Fd, control: &[Control<i32>]) -> Result<Vec<FileRef>> {
    /// SCM_MAX_FD.
    const MAX: usize = 253;
    let numbers = control
        .iter()
        .filter_map(|message| if let Control::Rights(numbers) = message { Some(numbers) } else { None })
        .flatten();
    let mut files = Vec::new();
    for &number in numbers {
        if files.len() == MAX {
            return Err(Errno::EINVAL);
        }
        let file = cx.file(Fd { number, cage: fd.cage })?;
        // The host's descriptor behind these is another file, which not everybody may have, or one
        // that was given to the grate alone.
        if matches!(&file.kind, Kind::Pseudo(place) if place.is_directory()) || matches!(file.kind, Kind::Numbered) {
            return Err(Errno::EPERM);
        }
        if let Kind::Socket(socket) = &file.kind {
            socket.travelled.store(true, Ordering::Release);
        }
        files.push(file);
    }
    Ok(files)
}

/// Converts a received control message for the guest. Descriptors become guest numbers as long as
/// there are free ones; the rest are closed.
fn accept(
    cx: &Ctx<'_>,
    message: Control<OwnedFd>,
    cloexec: bool,
    accepted: &mut Vec<i32>,
    said: &mut i32,
) -> Option<Control<i32>> {
    match message {
        Control::Rights(files) => {
            let count = files.len();
            let numbers: Vec<i32> =
                files.into_iter().map_while(|file| cx.cage.fds.add(received_file(cx, file), cloexec).ok()).collect();
            if numbers.len() < count {
                *said |= MSG_CTRUNC;
            }
            accepted.extend(&numbers);
            (!numbers.is_empty()).then_some(Control::Rights(numbers))
        }
        Control::Other { level, kind, data } => Some(Control::Other { level, kind, data }),
    }
}

/// The control messages that fit into the room; as on the host, the first that is too long is cut,
/// and those after it are dropped.
fn fitting(control: Vec<Control<OwnedFd>>, room: usize, said: &mut i32) -> Vec<Control<OwnedFd>> {
    let mut left = room;
    let mut fitting = Vec::new();
    for mut message in control {
        let most = left.saturating_sub(control::HEAD);
        let cut = match &mut message {
            Control::Rights(files) => {
                let before = files.len();
                files.truncate(most / size_of::<i32>());
                files.len() < before
            }
            Control::Other { data, .. } => {
                let before = data.len();
                data.truncate(most);
                data.len() < before
            }
        };
        let empty = left < control::HEAD || matches!(&message, Control::Rights(files) if files.is_empty());
        left = left.saturating_sub(message.space());
        if !empty {
            fitting.push(message);
        }
        if cut || empty {
            *said |= MSG_CTRUNC;
        }
    }
    fitting
}

/// A file that was received in a message. A directory may come from outside the root, so no path
/// starts at it.
fn received_file(cx: &Ctx<'_>, host: OwnedFd) -> File {
    use rustix::fs::{FileType, fstat};
    let socket = fstat(&host).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket);
    if socket {
        let socket = Socket { travelled: AtomicBool::new(true), ..Socket::default() };
        loopback::received(cx, host.as_fd(), &socket);
        File::new(host, Kind::Socket(socket))
    } else {
        File::handed_in(host)
    }
}
