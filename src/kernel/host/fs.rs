//! Host calls on files whose results land in guest memory, or that rustix does not offer in the
//! form we need.
//!
//! Paths are the kernel's own copies; buffers, iovec targets and offsets are ranges of guests'
//! reservations.

use std::cell::Cell;
use std::ffi::CStr;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;

use lind_abi::layout::Flock;
use lind_abi::{Errno, Result};
use syscalls::{Sysno, raw_syscall};

use super::{raw, result};
use crate::mem::HostRange;

/// Which file: device and inode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileId {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
}

impl FileId {
    /// The id of an open file.
    ///
    /// # Errors
    /// The errors of fstat(2).
    pub fn of(file: BorrowedFd<'_>) -> Result<FileId> {
        rustix::fs::fstat(file).map(|stat| FileId::from(&stat)).map_err(super::errno)
    }
}

impl From<&rustix::fs::Stat> for FileId {
    fn from(stat: &rustix::fs::Stat) -> FileId {
        FileId { dev: stat.st_dev, ino: stat.st_ino }
    }
}

/// newfstatat(2) into guest memory.
pub fn stat(dir: BorrowedFd<'_>, path: &CStr, buf: HostRange<'_>, flags: u32) -> Result<()> {
    let (path, buf) = (path.as_ptr() as usize, buf.as_ptr() as usize);
    // SAFETY: the host reads `path` and writes a struct stat, for which the caller's range was
    // checked, in a reservation.
    result(unsafe { raw_syscall!(Sysno::newfstatat, raw(dir), path, buf, flags as usize) }).map(drop)
}

/// fstat(2) into guest memory.
pub fn fstat(fd: BorrowedFd<'_>, buf: HostRange<'_>) -> Result<()> {
    // SAFETY: as for `stat`.
    result(unsafe { raw_syscall!(Sysno::fstat, raw(fd), buf.as_ptr() as usize) }).map(drop)
}

/// statx(2) into guest memory.
pub fn statx(dir: BorrowedFd<'_>, path: &CStr, flags: u32, mask: u32, buf: HostRange<'_>) -> Result<()> {
    let (path, buf) = (path.as_ptr() as usize, buf.as_ptr() as usize);
    // SAFETY: as for `stat`, with a struct statx.
    result(unsafe { raw_syscall!(Sysno::statx, raw(dir), path, flags as usize, mask as usize, buf) }).map(drop)
}

/// fstatfs(2) into guest memory.
pub fn statfs(fd: BorrowedFd<'_>, buf: HostRange<'_>) -> Result<()> {
    // SAFETY: as for `stat`, with a struct statfs.
    result(unsafe { raw_syscall!(Sysno::fstatfs, raw(fd), buf.as_ptr() as usize) }).map(drop)
}

/// faccessat2(2)
pub fn access(dir: BorrowedFd<'_>, path: &CStr, mode: u32, flags: u32) -> Result<()> {
    let path = path.as_ptr() as usize;
    // SAFETY: the host only reads `path`.
    result(unsafe { raw_syscall!(Sysno::faccessat2, raw(dir), path, mode as usize, flags as usize) }).map(drop)
}

/// fchownat(2). Ids of -1 stay as they are. The host returns EINVAL for ids that the runner's user
/// namespace does not have; an ordinary user, who has no others, gets EPERM for them.
pub fn chown(dir: BorrowedFd<'_>, path: &CStr, uid: u32, gid: u32, flags: u32) -> Result<()> {
    let path = path.as_ptr() as usize;
    // SAFETY: the host only reads `path`.
    result(unsafe { raw_syscall!(Sysno::fchownat, raw(dir), path, uid as usize, gid as usize, flags as usize) })
        .map(drop)
        .map_err(|errno| if errno == Errno::EINVAL { Errno::EPERM } else { errno })
}

/// readlinkat(2) into guest memory.
pub fn readlink(dir: BorrowedFd<'_>, path: &CStr, buf: HostRange<'_>) -> Result<usize> {
    let path = path.as_ptr() as usize;
    // SAFETY: the host reads `path` and writes inside `buf`, a range of a guest's reservation.
    result(unsafe { raw_syscall!(Sysno::readlinkat, raw(dir), path, buf.as_ptr() as usize, buf.len()) })
}

/// getdents64(2) into guest memory.
pub fn getdents(fd: BorrowedFd<'_>, buf: HostRange<'_>) -> Result<usize> {
    // SAFETY: the host writes only inside `buf`, a range of a guest's reservation.
    result(unsafe { raw_syscall!(Sysno::getdents64, raw(fd), buf.as_ptr() as usize, buf.len()) })
}

/// lseek(2)
#[inline]
pub fn lseek(fd: BorrowedFd<'_>, offset: i64, whence: u32) -> Result<usize> {
    // SAFETY: takes no address.
    result(unsafe { raw_syscall!(Sysno::lseek, raw(fd), offset.cast_unsigned(), whence as usize) })
}

/// posix_fadvise(2)
pub fn fadvise(fd: BorrowedFd<'_>, offset: i64, len: i64, advice: u32) -> Result<()> {
    let (offset, len) = (offset.cast_unsigned(), len.cast_unsigned());
    // SAFETY: takes no address.
    result(unsafe { raw_syscall!(Sysno::fadvise64, raw(fd), offset, len, advice as usize) }).map(drop)
}

/// sendfile(2). The offset, if any, is read and written in guest memory.
pub fn sendfile(
    out: BorrowedFd<'_>,
    input: BorrowedFd<'_>,
    offset: Option<HostRange<'_>>,
    count: u64,
) -> Result<usize> {
    let offset = offset.map_or(0, |offset| offset.as_ptr() as usize);
    // SAFETY: the host reads and writes eight bytes at `offset`, for which the caller's range was
    // checked.
    result(unsafe { raw_syscall!(Sysno::sendfile, raw(out), raw(input), offset, count) })
}

/// The position in a file where a transfer begins, and where the host stores the new one.
#[derive(Clone, Copy)]
pub enum At<'a> {
    /// The file's own position.
    Own,
    /// At an offset in guest memory, of which eight bytes were checked.
    Guest(HostRange<'a>),
    /// This position.
    Here(&'a Cell<i64>),
}

impl At<'_> {
    fn address(self) -> usize {
        match self {
            At::Own => 0,
            At::Guest(offset) => offset.as_ptr() as usize,
            At::Here(offset) => offset.as_ptr() as usize,
        }
    }
}

/// splice(2)
pub fn splice(
    (input, from): (BorrowedFd<'_>, At<'_>),
    (out, to): (BorrowedFd<'_>, At<'_>),
    len: u64,
    flags: u32,
) -> Result<usize> {
    between(Sysno::splice, (input, from), (out, to), len, flags)
}

/// A call that moves `len` bytes from one descriptor to another, each at its own position or at an
/// offset.
fn between(
    call: Sysno,
    (input, from): (BorrowedFd<'_>, At<'_>),
    (out, to): (BorrowedFd<'_>, At<'_>),
    len: u64,
    flags: u32,
) -> Result<usize> {
    let (from, to) = (from.address(), to.address());
    // SAFETY: the host reads and writes eight bytes at each: checked by the caller, or an offset
    // that `At` borrows.
    result(unsafe { raw_syscall!(call, raw(input), from, raw(out), to, len, flags as usize) })
}

/// tee(2)
pub fn tee(input: BorrowedFd<'_>, out: BorrowedFd<'_>, len: u64, flags: u32) -> Result<usize> {
    // SAFETY: takes no address.
    result(unsafe { raw_syscall!(Sysno::tee, raw(input), raw(out), len, flags as usize) })
}

/// sync_file_range(2)
pub fn sync_range(fd: BorrowedFd<'_>, offset: i64, len: i64, flags: u32) -> Result<()> {
    let (offset, len) = (offset.cast_unsigned(), len.cast_unsigned());
    // SAFETY: takes no address.
    result(unsafe { raw_syscall!(Sysno::sync_file_range, raw(fd), offset, len, flags as usize) }).map(drop)
}

/// copy_file_range(2)
pub fn copy_range(
    (input, from): (BorrowedFd<'_>, At<'_>),
    (out, to): (BorrowedFd<'_>, At<'_>),
    len: u64,
    flags: u32,
) -> Result<usize> {
    between(Sysno::copy_file_range, (input, from), (out, to), len, flags)
}

/// ioctl(2) whose argument the host reads or writes in guest memory, as much as the caller checked
/// for this request.
pub fn ioctl(fd: BorrowedFd<'_>, request: u32, arg: HostRange<'_>) -> Result<i32> {
    debug_assert!(super::requests::ioctls().any(|known| known == request), "the filter has to know {request:#x}");
    // SAFETY: the argument of this request fits into `arg` and contains no addresses.
    let value = result(unsafe { raw_syscall!(Sysno::ioctl, raw(fd), request as usize, arg.as_ptr() as usize) })?;
    Ok(i32::try_from(value).unwrap_or(0))
}

/// ioctl(2) whose argument is a number.
pub fn ioctl_number(fd: BorrowedFd<'_>, request: u32, arg: u32) -> Result<i32> {
    debug_assert!(super::requests::ioctls().any(|known| known == request), "the filter has to know {request:#x}");
    // SAFETY: the request is one whose argument the host does not take for an address.
    let value = result(unsafe { raw_syscall!(Sysno::ioctl, raw(fd), request as usize, arg as usize) })?;
    Ok(i32::try_from(value).unwrap_or(0))
}

/// fcntl(2) F_CREATED_QUERY: 1 if opening the file has made it. EINVAL on hosts before Linux 6.12.
pub fn created(fd: BorrowedFd<'_>) -> Result<i32> {
    const F_CREATED_QUERY: usize = 1028;
    // SAFETY: takes no address.
    result(unsafe { raw_syscall!(Sysno::fcntl, raw(fd), F_CREATED_QUERY, 0usize) }).map(|made| i32::from(made != 0))
}

/// fcntl(2) F_OFD_SETLK, or F_OFD_GETLK, which changes `lock`.
pub fn record_lock(fd: BorrowedFd<'_>, command: i32, lock: &mut Flock) -> Result<()> {
    let command = command.cast_unsigned() as usize;
    // SAFETY: the host reads and writes a struct flock, which is what `lock` is.
    result(unsafe { raw_syscall!(Sysno::fcntl, raw(fd), command, &raw mut *lock as usize) }).map(drop)
}

/// Short vectors lie on the stack.
const SHORT: usize = 8;

/// Ranges of guest memory that a call scatters to or gathers from.
pub struct Vector<'m> {
    short: [libc::iovec; SHORT],
    long: Vec<libc::iovec>,
    len: usize,
    memory: PhantomData<HostRange<'m>>,
}

impl<'m> Vector<'m> {
    /// No ranges yet, with room for `count`.
    #[inline]
    pub fn with_room(count: usize) -> Vector<'m> {
        let none = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let long = if count > SHORT { Vec::with_capacity(count) } else { Vec::new() };
        Vector { short: [none; SHORT], long, len: 0, memory: PhantomData }
    }

    /// How many bytes the ranges have together.
    pub fn bytes(&self) -> usize {
        let ranges = if self.long.capacity() > 0 { &self.long[..] } else { &self.short[..self.len] };
        ranges.iter().map(|range| range.iov_len).fold(0, usize::saturating_add)
    }

    /// The data behind the first `skipped` bytes, at most `most` bytes of it.
    pub fn part(&self, skipped: usize, most: usize) -> Vector<'m> {
        let ranges = if self.long.capacity() > 0 { &self.long[..] } else { &self.short[..self.len] };
        let mut part = Vector::with_room(ranges.len());
        let (mut skipped, mut left) = (skipped, most);
        for range in ranges {
            let before = skipped.min(range.iov_len);
            skipped -= before;
            let len = left.min(range.iov_len - before);
            left -= len;
            // No range is wider than the one that it is a part of.
            part.push_raw(libc::iovec { iov_base: range.iov_base.wrapping_byte_add(before), iov_len: len });
        }
        part
    }

    /// Adds a range. No more than there was room for.
    #[inline]
    pub fn push(&mut self, range: HostRange<'m>) {
        self.push_raw(libc::iovec { iov_base: range.as_ptr(), iov_len: range.len() });
    }

    #[inline]
    fn push_raw(&mut self, range: libc::iovec) {
        if self.long.capacity() > 0 {
            self.long.push(range);
        } else {
            self.short[self.len] = range;
        }
        self.len += 1;
    }

    /// How many ranges it has.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The address of the ranges for the host.
    pub(super) fn pointer(&self) -> usize {
        if self.long.capacity() > 0 { self.long.as_ptr() as usize } else { self.short.as_ptr() as usize }
    }
}

/// readv(2) into guest memory.
pub fn readv(fd: BorrowedFd<'_>, vector: &Vector<'_>) -> Result<usize> {
    // SAFETY: the host reads the vector and writes inside the ranges it names, all in a guest's
    // reservation.
    result(unsafe { raw_syscall!(Sysno::readv, raw(fd), vector.pointer(), vector.len) })
}

/// writev(2) from guest memory.
pub fn writev(fd: BorrowedFd<'_>, vector: &Vector<'_>) -> Result<usize> {
    // SAFETY: the host only reads: the vector, and the ranges it names.
    result(unsafe { raw_syscall!(Sysno::writev, raw(fd), vector.pointer(), vector.len) })
}

/// preadv2(2) into guest memory; an offset of -1 is the file's own.
pub fn preadv(fd: BorrowedFd<'_>, vector: &Vector<'_>, offset: i64, flags: u32) -> Result<usize> {
    let (offset, flags) = (offset.cast_unsigned(), flags as usize);
    // SAFETY: as for `readv`. The host takes the offset from the fourth argument alone.
    result(unsafe { raw_syscall!(Sysno::preadv2, raw(fd), vector.pointer(), vector.len, offset, 0usize, flags) })
}

/// pwritev2(2) from guest memory; an offset of -1 is the file's own.
pub fn pwritev(fd: BorrowedFd<'_>, vector: &Vector<'_>, offset: i64, flags: u32) -> Result<usize> {
    let (offset, flags) = (offset.cast_unsigned(), flags as usize);
    // SAFETY: as for `writev`, and the offset as for `preadv`.
    result(unsafe { raw_syscall!(Sysno::pwritev2, raw(fd), vector.pointer(), vector.len, offset, 0usize, flags) })
}
