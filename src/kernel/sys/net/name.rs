//! Names of sockets, and connecting by them.

use lind_abi::layout::Sockaddr;
use lind_abi::{Errno, Fd, In, InOut, Len, Out, Result};

use super::{address, credentials, loopback};
use crate::call::Ctx;
use crate::fd::loopback as seen;
use crate::host::net;

/// bind(2)
pub(crate) fn bind(cx: &Ctx<'_>, fd: Fd, addr: In<Sockaddr>, len: Len) -> Result<()> {
    let socket = cx.file(fd)?;
    let name = address::load(cx, addr, address::length(len)?)?;
    if let Some(result) = loopback::bind(cx, &socket, &name) {
        return result;
    }
    address::make(cx, &socket, &name, |name| net::bind(socket.host(), name))
}

/// connect(2)
pub(crate) fn connect(cx: &Ctx<'_>, fd: Fd, addr: In<Sockaddr>, len: Len) -> Result<()> {
    let socket = cx.file(fd)?;
    let to = address::load(cx, addr, address::length(len)?)?;
    if let Some(result) = loopback::connect(cx, &socket, &to) {
        return result.inspect_err(|&errno| note_full(cx, fd, errno));
    }
    let mut again = false;
    let by = credentials::on_behalf_of(cx, fd)?;
    credentials::connects(cx, &socket, by);
    address::reach(cx, &to, |to| match net::connect(socket.host(), to) {
        // An interrupted attempt continues in the host, and may succeed before it is repeated.
        Err(Errno::EISCONN) if again => Ok(()),
        result => {
            again = result == Err(Errno::EINTR);
            result
        }
    })
    .inspect(|()| credentials::connected(cx, &socket, by))
    .inspect_err(|&errno| note_full(cx, fd, errno))
}

fn note_full(cx: &Ctx<'_>, fd: Fd, errno: Errno) {
    if matches!(errno, Errno::EINPROGRESS | Errno::EAGAIN) {
        crate::sys::fs::found_full(cx, fd);
    }
}

/// getsockname(2)
pub(crate) fn getsockname(cx: &Ctx<'_>, fd: Fd, addr: Out<Sockaddr>, len: InOut<u32>) -> Result<()> {
    let file = cx.file(fd)?;
    let name = seen::name(cx.kernel, &file).unwrap_or_else(|| net::name(file.host()))?;
    address::store(cx, &name, addr, len)
}

/// getpeername(2)
pub(crate) fn getpeername(cx: &Ctx<'_>, fd: Fd, addr: Out<Sockaddr>, len: InOut<u32>) -> Result<()> {
    let file = cx.file(fd)?;
    let name = seen::peer(cx.kernel, &file).unwrap_or_else(|| net::peer(file.host()))?;
    address::store(cx, &name, addr, len)
}
