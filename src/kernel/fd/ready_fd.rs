//! Descriptors that show state of the kernel to poll(2) and epoll(7): a signal that waits, a cage
//! that has ended.
//!
//! Such a descriptor is a timer of the host: if it has run out, it can be read; if it is stopped,
//! it cannot. Unlike those of a pipe or an eventfd, neither change can block, whatever a guest does
//! with its descriptor.

use std::os::fd::{BorrowedFd, OwnedFd};

use lind_abi::Result;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::Kernel;
use crate::host::errno;

/// A descriptor that cannot be read yet.
///
/// # Errors
/// EMFILE, ENOMEM.
pub(crate) fn new(kernel: &Kernel, nonblock: bool) -> Result<OwnedFd> {
    kernel.engine().needs_descriptors();
    let mut flags = TimerfdFlags::CLOEXEC;
    flags.set(TimerfdFlags::NONBLOCK, nonblock);
    timerfd_create(TimerfdClockId::Monotonic, flags).map_err(errno)
}

/// Makes it readable, or not. Readable once more, it wakes those who wait for edges.
pub(crate) fn show(descriptor: BorrowedFd<'_>, readable: bool) {
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    // A nanosecond after the machine started: that was.
    let value = Timespec { tv_nsec: i64::from(readable), ..never };
    let spec = Itimerspec { it_interval: never, it_value: value };
    // It is a timer of ours, and the time is valid.
    let _ = timerfd_settime(descriptor, TimerfdTimerFlags::ABSTIME, &spec);
}
