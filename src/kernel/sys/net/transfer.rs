//! Sending and receiving bytes.

use std::os::fd::{AsFd, BorrowedFd};

use lind_abi::flags::MsgFlags;
use lind_abi::layout::Sockaddr;
use lind_abi::{Errno, Fd, In, InOut, Len, Out, Result};

use super::credentials::note_received;
use super::message::send_with_token;
use super::{address, loopback};
use crate::call::Ctx;
use crate::host::fs::Vector;
use crate::host::net::{self, Address};
use crate::spin;

/// sendto(2)
pub(crate) fn sendto(
    cx: &Ctx<'_>,
    fd: Fd,
    buf: In<u8>,
    len: Len,
    flags: MsgFlags,
    addr: In<Sockaddr>,
    addr_len: Len,
) -> Result<usize> {
    let to = if addr.is_null() { Address::NONE } else { address::load(cx, addr, address::length(addr_len)?)? };
    if !addr.is_null() || cx.kernel.senders.asked() {
        let mut data = Vector::with_room(1);
        data.push(cx.input(buf, len)?);
        if let Some(sent) = loopback::send(cx, fd, &data, &to, flags) {
            return sent;
        }
        if let Some(sent) = send_with_token(cx, fd, &data, &to, flags)? {
            return Ok(sent);
        }
    }
    let socket = cx.host_fd(fd)?;
    let buf = cx.input(buf, len)?;
    let sent = match to.len() {
        0 => cx.blocking(|| net::send(socket.as_fd(), buf, flags.0)),
        _ => address::reach_to_send(cx, socket.as_fd(), &to, |to| net::sendto(socket.as_fd(), buf, flags.0, to)),
    };
    sent.inspect_err(|errno| failed(cx, fd, socket.as_fd(), flags, *errno))
}

/// Handles the consequences of a failed send: SIGPIPE, if the sender wants it, and what O_ASYNC
/// waits for.
pub(super) fn failed(cx: &Ctx<'_>, fd: Fd, socket: BorrowedFd<'_>, flags: MsgFlags, errno: Errno) {
    if errno != Errno::EPIPE || !flags.has(MsgFlags::MSG_NOSIGNAL) {
        crate::sys::fs::write_failed(cx, fd, socket, errno);
    }
}

/// Looks for something to receive for a while, if a call with these flags would wait for it.
pub(super) fn wait_for_input(cx: &Ctx<'_>, socket: BorrowedFd<'_>, bytes: usize, flags: MsgFlags) {
    if flags.0 & (MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_OOB) == 0 {
        spin::for_input(cx, socket, bytes);
    }
}

/// recvfrom(2)
pub(crate) fn recvfrom(
    cx: &Ctx<'_>,
    fd: Fd,
    buf: Out<u8>,
    len: Len,
    flags: MsgFlags,
    addr: Out<Sockaddr>,
    addr_len: InOut<u32>,
) -> Result<usize> {
    if cx.kernel.senders.asked() {
        note_received(&*cx.file(fd)?, None);
    }
    let socket = cx.host_fd(fd)?;
    let buf = cx.output(buf, len)?;
    wait_for_input(cx, socket.as_fd(), buf.len(), flags);
    if addr.is_null() {
        return cx.blocking(|| net::recv(socket.as_fd(), buf, flags.0));
    }
    let (bytes, from) = cx.blocking(|| net::recvfrom(socket.as_fd(), buf, flags.0))?;
    drop(socket);
    let from = loopback::sender(cx, fd, &from).unwrap_or(from);
    address::store(cx, &from, addr, addr_len)?;
    Ok(bytes)
}
