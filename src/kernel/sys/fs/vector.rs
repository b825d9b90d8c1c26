//! Reading and writing several buffers at once.

use std::os::fd::AsFd;

use lind_abi::flags::{RwfFlags, SpliceFlags};
use lind_abi::layout::Iovec;
use lind_abi::{CageId, Errno, Fd, In, Len, Off, Result};
use rustix::fs::{FileType, OFlags};

use super::rw::write_failed;
use super::watched;
use crate::call::Ctx;
use crate::host::{self, fs::Vector};
use crate::spin;

/// UIO_MAXIOV
const MOST: u64 = 1024;
/// The offset that means the file's own position.
const OWN: i64 = -1;
/// The largest size a guest's ssize_t holds.
const LONGEST: u32 = i32::MAX.unsigned_abs();

/// readv(2)
pub(crate) fn readv(cx: &Ctx<'_>, fd: Fd, iov: In<Iovec>, count: Len) -> Result<usize> {
    let mut parts = Parts::if_watched(cx, fd, iov, count)?;
    if let Some(parts) = &mut parts
        && let Some(done) = watched::readv(cx, fd, parts)?
    {
        return Ok(done);
    }
    let in_use = cx.host_fd(fd)?;
    let vector = once(cx, parts, iov, count)?;
    if cx.owner(fd.cage)?.fds.makes_wait(fd.number) {
        spin::for_input(cx, in_use.as_fd(), vector.bytes());
    }
    cx.blocking(|| host::fs::readv(in_use.as_fd(), &vector))
}

/// writev(2)
pub(crate) fn writev(cx: &Ctx<'_>, fd: Fd, iov: In<Iovec>, count: Len) -> Result<usize> {
    let mut parts = Parts::if_watched(cx, fd, iov, count)?;
    if let Some(parts) = &mut parts
        && let Some(done) = watched::writev(cx, fd, parts)?
    {
        return Ok(done);
    }
    let in_use = cx.host_fd(fd)?;
    let vector = once(cx, parts, iov, count)?;
    cx.blocking(|| host::fs::writev(in_use.as_fd(), &vector))
        .inspect_err(|&errno| write_failed(cx, fd, in_use.as_fd(), errno))
}

/// vmsplice(2). The host copies, where Linux may also hand pages over: a guest's pages may be gone
/// when they are read.
pub(crate) fn vmsplice(cx: &Ctx<'_>, fd: Fd, iov: In<Iovec>, count: Len, flags: SpliceFlags) -> Result<usize> {
    const NOWAIT: u32 = RwfFlags::RWF_NOWAIT;
    if flags.beyond(super::transfer::SPLICE_FLAGS) {
        return Err(Errno::EINVAL);
    }
    let in_use = cx.host_fd(fd)?;
    let stat = rustix::fs::fstat(&in_use).map_err(host::errno)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Fifo {
        return Err(Errno::EBADF);
    }
    let vector = vector(cx, iov, count)?;
    let now = if flags.has(SpliceFlags::SPLICE_F_NONBLOCK) { NOWAIT } else { 0 };
    let access = rustix::fs::fcntl_getfl(&in_use).map_err(host::errno)? & OFlags::ACCMODE;
    if access == OFlags::RDONLY {
        return cx.blocking(|| host::fs::preadv(in_use.as_fd(), &vector, -1, now));
    }
    cx.blocking(|| host::fs::pwritev(in_use.as_fd(), &vector, -1, now))
        .inspect_err(|&errno| write_failed(cx, fd, in_use.as_fd(), errno))
}

/// preadv(2)
pub(crate) fn preadv(cx: &Ctx<'_>, fd: Fd, iov: In<Iovec>, count: Len, offset: Off) -> Result<usize> {
    preadv2(cx, fd, iov, count, positive(offset)?, 0, RwfFlags(0))
}

/// pwritev(2)
pub(crate) fn pwritev(cx: &Ctx<'_>, fd: Fd, iov: In<Iovec>, count: Len, offset: Off) -> Result<usize> {
    pwritev2(cx, fd, iov, count, positive(offset)?, 0, RwfFlags(0))
}

/// preadv2(2). An offset of -1 is the file's own.
pub(crate) fn preadv2(
    cx: &Ctx<'_>,
    fd: Fd,
    iov: In<Iovec>,
    count: Len,
    offset: Off,
    _high: u64,
    flags: RwfFlags,
) -> Result<usize> {
    let mut parts = Parts::if_watched(cx, fd, iov, count)?;
    if let Some(parts) = &mut parts {
        if offset.0 != OWN {
            watched::check_positioned(cx, fd)?;
        } else if let Some(done) = watched::readv(cx, fd, parts)? {
            return Ok(done);
        }
    }
    let in_use = cx.host_fd(fd)?;
    let vector = once(cx, parts, iov, count)?;
    cx.blocking(|| host::fs::preadv(in_use.as_fd(), &vector, offset.0, flags.0))
}

/// pwritev2(2). See `preadv2`.
pub(crate) fn pwritev2(
    cx: &Ctx<'_>,
    fd: Fd,
    iov: In<Iovec>,
    count: Len,
    offset: Off,
    _high: u64,
    flags: RwfFlags,
) -> Result<usize> {
    let mut parts = Parts::if_watched(cx, fd, iov, count)?;
    if let Some(parts) = &mut parts {
        if offset.0 != OWN {
            watched::pwritev(cx, fd, parts, offset)?;
        } else if let Some(done) = watched::writev(cx, fd, parts)? {
            return Ok(done);
        }
    }
    let in_use = cx.host_fd(fd)?;
    let vector = once(cx, parts, iov, count)?;
    cx.blocking(|| host::fs::pwritev(in_use.as_fd(), &vector, offset.0, flags.0))
        .inspect_err(|&errno| write_failed(cx, fd, in_use.as_fd(), errno))
}

/// -1 has no special meaning here.
fn positive(offset: Off) -> Result<Off> {
    if offset.0 < 0 { Err(Errno::EINVAL) } else { Ok(offset) }
}

/// A guest's array of buffers, read once: the values that are checked are those that are used.
pub(super) struct Parts {
    pub cage: CageId,
    pub parts: Vec<Iovec>,
}

impl Parts {
    /// The parts of a call on a descriptor whose table is watched; None for any other, which goes
    /// to the host unread.
    ///
    /// # Errors
    /// EBADF, EINVAL, EFAULT.
    #[inline]
    fn if_watched(cx: &Ctx<'_>, fd: Fd, iov: In<Iovec>, count: Len) -> Result<Option<Parts>> {
        if cx.owner(fd.cage)?.fds.is_watched() { Parts::load(cx, fd, iov, count).map(Some) } else { Ok(None) }
    }

    #[cold]
    fn load(cx: &Ctx<'_>, fd: Fd, iov: In<Iovec>, count: Len) -> Result<Parts> {
        cx.file(fd)?;
        if count.0 > MOST {
            return Err(Errno::EINVAL);
        }
        let parts = cx.load_array(iov, usize::try_from(count.0).map_err(|_| Errno::EINVAL)?)?;
        if parts.iter().any(|part| part.len > LONGEST) {
            return Err(Errno::EINVAL);
        }
        Ok(Parts { cage: iov.cage, parts })
    }

    /// How many bytes they have together.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.len)).sum()
    }

    /// The guest memory of the parts.
    pub fn ranges<'m>(&self, cx: &'m Ctx<'_>) -> Result<Vector<'m>> {
        let memory = cx.memory(self.cage)?;
        let mut vector = Vector::with_room(self.parts.len());
        for part in &self.parts {
            vector.push(memory.range(u64::from(part.base), u64::from(part.len))?);
        }
        Ok(vector)
    }

    /// Leaves no more than so many bytes of them.
    pub fn cut(&mut self, bytes: u64) {
        let mut left = bytes;
        for part in &mut self.parts {
            part.len = part.len.min(u32::try_from(left).unwrap_or(u32::MAX));
            left -= u64::from(part.len);
        }
    }
}

/// The buffers: those that were looked at, or of an array that nobody has read.
fn once<'m>(cx: &'m Ctx<'_>, parts: Option<Parts>, iov: In<Iovec>, count: Len) -> Result<Vector<'m>> {
    parts.map_or_else(|| vector(cx, iov, count), |parts| parts.ranges(cx))
}

/// Reads a guest's array of buffers, once. Each buffer is checked; missing pages show when the host
/// gets there.
pub(crate) fn vector<'m>(cx: &'m Ctx<'_>, iov: In<Iovec>, count: Len) -> Result<Vector<'m>> {
    if count.0 > MOST {
        return Err(Errno::EINVAL);
    }
    let memory = cx.memory(iov.cage)?;
    let count = usize::try_from(count.0).map_err(|_| Errno::EINVAL)?;
    let mut vector = Vector::with_room(count);
    for index in 0..count as u64 {
        let at = iov.addr.checked_add(index * size_of::<Iovec>() as u64).ok_or(Errno::EFAULT)?;
        let one: Iovec = memory.load(at)?;
        if one.len > LONGEST {
            return Err(Errno::EINVAL);
        }
        vector.push(memory.range(u64::from(one.base), u64::from(one.len))?);
    }
    Ok(vector)
}
