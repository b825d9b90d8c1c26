//! Reading and writing.
//!
//! The four most frequent calls make one host call, and return the host's EINTR: [`crate::call`]
//! repeats them if the guest should not see it.

use std::os::fd::{AsFd, BorrowedFd};

use lind_abi::flags::{Signals, Whence};
use lind_abi::{Errno, Fd, In, Len, Off, Out, Result};

use super::watched::{self, Watched};
use crate::Kernel;
use crate::async_io;
use crate::cage::Thread;
use crate::cage::signal::{self, Info, number};
use crate::call::Ctx;
use crate::host;
use crate::spin;

/// read(2)
#[inline(always)]
pub(crate) fn read(cx: &Ctx<'_>, fd: Fd, buf: Out<u8>, len: Len) -> Result<usize> {
    if cx.owner(fd.cage)?.fds.is_watched()
        && let Some(done) = watched::read(cx, fd, buf, len)?
    {
        return Ok(done);
    }
    let waits = cx.owner(fd.cage)?.fds.makes_wait(fd.number);
    let in_use = cx.host_fd(fd)?;
    let buf = cx.output(buf, len)?;
    if waits {
        spin::for_input(cx, in_use.as_fd(), buf.len());
    }
    cx.waiting(|| host::read(in_use.as_fd(), buf))
}

/// write(2)
#[inline(always)]
pub(crate) fn write(cx: &Ctx<'_>, fd: Fd, buf: In<u8>, len: Len) -> Result<usize> {
    let mut len = len;
    if cx.owner(fd.cage)?.fds.is_watched() {
        match watched::write(cx, fd, buf, len)? {
            Watched::Done(written) => return Ok(written),
            Watched::Write(allowed) => len = allowed,
        }
    }
    let in_use = cx.host_fd(fd)?;
    let buf = cx.input(buf, len)?;
    cx.waiting(|| host::write(in_use.as_fd(), buf)).inspect_err(|&errno| write_failed(cx, fd, in_use.as_fd(), errno))
}

/// pread(2)
#[inline(always)]
pub(crate) fn pread64(cx: &Ctx<'_>, fd: Fd, buf: Out<u8>, len: Len, offset: Off) -> Result<usize> {
    let in_use = cx.host_fd(fd)?;
    let buf = cx.output(buf, len)?;
    host::pread(in_use.as_fd(), buf, offset.0)
}

/// pwrite(2)
#[inline(always)]
pub(crate) fn pwrite64(cx: &Ctx<'_>, fd: Fd, buf: In<u8>, len: Len, offset: Off) -> Result<usize> {
    let mut len = len;
    if cx.owner(fd.cage)?.fds.is_watched() {
        len = watched::within_limit(cx, fd, Some(offset.0), len)?;
    }
    let in_use = cx.host_fd(fd)?;
    let buf = cx.input(buf, len)?;
    host::pwrite(in_use.as_fd(), buf, offset.0)
}

/// lseek(2)
#[inline]
pub(crate) fn lseek(cx: &Ctx<'_>, fd: Fd, offset: Off, whence: Whence) -> Result<Off> {
    let at = host::fs::lseek(cx.host_fd(fd)?.as_fd(), offset.0, whence.0)?;
    i64::try_from(at).map(Off).map_err(|_| Errno::EOVERFLOW)
}

/// Handles the consequences of a failed write. If nobody can read, the thread also gets SIGPIPE
/// unless it is ignored: for a pipe or a socket of type SOCK_STREAM. The host's own signal is not
/// for guests. If there was no room, O_ASYNC waits for it.
#[inline(always)]
pub(crate) fn write_failed(cx: &Ctx<'_>, fd: Fd, file: BorrowedFd<'_>, errno: Errno) {
    #[cold]
    fn send(kernel: &Kernel, thread: &Thread, file: BorrowedFd<'_>) {
        use rustix::net::{SocketType, sockopt::socket_type};
        if socket_type(file).is_ok_and(|kind| kind != SocketType::STREAM) {
            return;
        }
        let info = Info::from(&thread.cage, number(Signals::SIGPIPE), Info::SI_USER);
        let _ = signal::send_to_thread(kernel, thread, info);
    }
    if errno == Errno::EPIPE {
        send(cx.kernel, cx.thread, file);
    } else if errno == Errno::EAGAIN {
        found_full(cx, fd);
    }
}

/// See [`async_io::found_full`].
#[inline(always)]
pub(crate) fn found_full(cx: &Ctx<'_>, fd: Fd) {
    if let Ok(owner) = cx.owner(fd.cage) {
        async_io::found_full(&cx.kernel.async_io, &owner.fds, fd.number);
    }
}
