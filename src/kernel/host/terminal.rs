//! Terminals: the host calls that the kernel makes for itself.

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use lind_abi::layout::{Termios, Winsize, Zero};
use lind_abi::{Errno, Result};
use syscalls::{Sysno, raw_syscall};

use super::{raw, result};

const TCGETS: usize = 0x5401;
const TIOCGWINSZ: usize = 0x5413;
const TIOCGPTN: usize = 0x8004_5430;
const TIOCGDEV: usize = 0x8004_5432;
const TIOCGPTPEER: usize = 0x5441;
const TOSTOP: u32 = 0o400;

fn query<T: Zero>(fd: BorrowedFd<'_>, request: usize) -> Result<T> {
    let mut value = T::ZERO;
    // SAFETY: each request below writes one value of its type.
    result(unsafe { raw_syscall!(Sysno::ioctl, raw(fd), request, &raw mut value as usize) })?;
    Ok(value)
}

/// tcgetattr(3). Of a master, the other side's.
pub fn settings(fd: BorrowedFd<'_>) -> Result<Termios> {
    query(fd, TCGETS)
}

/// Whether those who write from the background are stopped.
pub fn stops_writers(fd: BorrowedFd<'_>) -> bool {
    settings(fd).is_ok_and(|settings| settings.lflag & TOSTOP != 0)
}

/// TIOCGWINSZ
pub fn window(fd: BorrowedFd<'_>) -> Result<Winsize> {
    query(fd, TIOCGWINSZ)
}

/// The host's number of a pseudoterminal.
pub fn number(master: impl AsFd) -> Result<u32> {
    query(master.as_fd(), TIOCGPTN)
}

/// Which device a terminal is, by whatever name it was opened.
pub fn device(terminal: BorrowedFd<'_>) -> Result<u64> {
    query::<u32>(terminal, TIOCGDEV).map(u64::from)
}

/// Opens the other side of a pseudoterminal, whatever is mounted where.
pub fn peer(master: BorrowedFd<'_>, flags: u32) -> Result<OwnedFd> {
    // SAFETY: takes no address.
    let fd = result(unsafe { raw_syscall!(Sysno::ioctl, raw(master), TIOCGPTPEER, flags as usize) })?;
    let fd = i32::try_from(fd).map_err(|_| Errno::EMFILE)?;
    // SAFETY: the host has just made this descriptor for the caller, and its number is taken once.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
