//! Host calls that wait for descriptors.

use std::os::fd::{AsRawFd, BorrowedFd};

use lind_abi::layout::{EpollEvent, Timespec};
use lind_abi::{Errno, Result};
use syscalls::{Sysno, raw_syscall};

use super::{raw, result};
use crate::mem::HostRange;

/// An entry of the array that poll(2) takes. Negative numbers are passed over.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Poll(libc::pollfd);

impl Poll {
    /// Asks about `fd` (nothing, if None).
    pub fn new(fd: Option<BorrowedFd<'_>>, events: i16) -> Poll {
        Poll(libc::pollfd { fd: fd.map_or(-1, |fd| fd.as_raw_fd()), events, revents: 0 })
    }

    /// The events that occurred.
    pub fn revents(&self) -> i16 {
        self.0.revents
    }
}

/// ppoll(2); waits for ever without `timeout`. The descriptors must be open: a closed one merely
/// gets POLLNVAL.
pub fn poll(fds: &mut [Poll], timeout: Option<Timespec>) -> Result<usize> {
    let timeout = Timeout::new(timeout);
    // SAFETY: the host reads and writes `fds`, and reads and writes `timeout`, which is our own
    // copy.
    result(unsafe {
        raw_syscall!(Sysno::ppoll, fds.as_mut_ptr() as usize, fds.len(), timeout.pointer(), 0usize, 8usize)
    })
}

/// pselect6(2) over host descriptors below `end`. Each set has a bit for each of them.
pub fn select(end: usize, sets: [Option<&mut [u64]>; 3], timeout: Option<Timespec>) -> Result<usize> {
    let timeout = Timeout::new(timeout);
    let [read, write, except] = sets.map(|set| {
        set.map_or(Ok(0), |set| if set.len() * 64 >= end { Ok(set.as_mut_ptr() as usize) } else { Err(Errno::EINVAL) })
    });
    // SAFETY: the host reads and writes bits below `end` of the sets, which have that many, and our
    // own copy of the timeout.
    result(unsafe { raw_syscall!(Sysno::pselect6, end, read?, write?, except?, timeout.pointer(), 0usize) })
}

/// epoll_ctl(2). `op` is the guest's.
pub fn epoll_ctl(epoll: BorrowedFd<'_>, op: u32, fd: BorrowedFd<'_>, event: &EpollEvent) -> Result<()> {
    // SAFETY: the host only reads `event`.
    result(unsafe { raw_syscall!(Sysno::epoll_ctl, raw(epoll), op as usize, raw(fd), &raw const *event as usize) })
        .map(drop)
}

/// epoll_pwait2(2) into guest memory, which has room for as many events as fit `events`. EINVAL if
/// that is none.
pub fn epoll_wait(epoll: BorrowedFd<'_>, events: HostRange<'_>, timeout: Option<Timespec>) -> Result<usize> {
    let (at, max) = (events.as_ptr() as usize, events.len() / size_of::<EpollEvent>());
    let timeout = Timeout::new(timeout);
    // SAFETY: the host writes at most `max` events, all inside `events`, a range of a guest's
    // reservation, and reads our own copy of the timeout.
    result(unsafe { raw_syscall!(Sysno::epoll_pwait2, raw(epoll), at, max, timeout.pointer(), 0usize, 8usize) })
}

/// A timeout where the host can read and write it.
struct Timeout(Option<std::cell::UnsafeCell<Timespec>>);

impl Timeout {
    fn new(timeout: Option<Timespec>) -> Timeout {
        Timeout(timeout.map(std::cell::UnsafeCell::new))
    }

    fn pointer(&self) -> usize {
        self.0.as_ref().map_or(0, |cell| cell.get() as usize)
    }
}
