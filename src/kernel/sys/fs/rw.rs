//! Reading and writing.

use lind_abi::{Errno, Fd, In, Len, Off, Out, Result};

use crate::call::Ctx;
use crate::host;

/// read(2)
#[inline]
pub(crate) fn read(cx: &Ctx<'_>, fd: Fd, buf: Out<u8>, len: Len) -> Result<usize> {
    let file = cx.file(fd)?;
    let buf = cx.output(buf, len)?;
    cx.blocking(|| host::read(file.host(), buf))
}

/// write(2)
#[inline]
pub(crate) fn write(cx: &Ctx<'_>, fd: Fd, buf: In<u8>, len: Len) -> Result<usize> {
    let file = cx.file(fd)?;
    let buf = cx.input(buf, len)?;
    cx.blocking(|| host::write(file.host(), buf))
}

/// pread(2)
#[inline]
pub(crate) fn pread64(cx: &Ctx<'_>, fd: Fd, buf: Out<u8>, len: Len, offset: Off) -> Result<usize> {
    let file = cx.file(fd)?;
    let buf = cx.output(buf, len)?;
    cx.blocking(|| host::pread(file.host(), buf, offset.0))
}

/// pwrite(2)
#[inline]
pub(crate) fn pwrite64(cx: &Ctx<'_>, fd: Fd, buf: In<u8>, len: Len, offset: Off) -> Result<usize> {
    let file = cx.file(fd)?;
    let buf = cx.input(buf, len)?;
    cx.blocking(|| host::pwrite(file.host(), buf, offset.0))
}

/// close(2). The host's file closes with its last user.
#[inline]
pub(crate) fn close(cx: &Ctx<'_>, fd: Fd) -> Result<()> {
    if fd.number < 0 {
        return Err(Errno::EBADF);
    }
    cx.owner(fd.cage)?.fds.remove(fd.number).map(drop)
}
