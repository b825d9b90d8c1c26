//! Terminals: the host calls that the kernel makes for itself.

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

use lind_abi::layout::{Termios, Winsize, Zero};
use lind_abi::{Errno, Result};
use syscalls::{Sysno, raw_syscall};

use super::{raw, result};

const TCGETS: usize = 0x5401;
const TCSETS: usize = 0x5402;
const TIOCGWINSZ: usize = 0x5413;
const TIOCSWINSZ: usize = 0x5414;
const TIOCSPTLCK: usize = 0x4004_5431;
const TIOCGDEV: usize = 0x8004_5432;
const TIOCGPTPEER: usize = 0x5441;
const TOSTOP: u32 = 0o400;

fn query<T: Zero>(fd: BorrowedFd<'_>, request: usize) -> Result<T> {
    let mut value = T::ZERO;
    // SAFETY: each request below writes one value of its type.
    result(unsafe { raw_syscall!(Sysno::ioctl, raw(fd), request, &raw mut value as usize) })?;
    Ok(value)
}

fn set<T: Zero>(fd: BorrowedFd<'_>, request: usize, value: &T) -> Result<()> {
    // SAFETY: each request below reads one value of its type.
    result(unsafe { raw_syscall!(Sysno::ioctl, raw(fd), request, std::ptr::from_ref(value) as usize) }).map(drop)
}

/// tcgetattr(3). For a master, the other side's.
pub fn settings(fd: BorrowedFd<'_>) -> Result<Termios> {
    query(fd, TCGETS)
}

/// tcsetattr(3), at once.
pub fn set_settings(fd: BorrowedFd<'_>, settings: &Termios) -> Result<()> {
    set(fd, TCSETS, settings)
}

/// Whether those who write from the background are stopped.
pub fn stops_writers(fd: BorrowedFd<'_>) -> bool {
    settings(fd).is_ok_and(|settings| settings.lflag & TOSTOP != 0)
}

/// TIOCGWINSZ
pub fn window(fd: BorrowedFd<'_>) -> Result<Winsize> {
    query(fd, TIOCGWINSZ)
}

/// TIOCSWINSZ
pub fn set_window(fd: BorrowedFd<'_>, size: &Winsize) -> Result<()> {
    set(fd, TIOCSWINSZ, size)
}

/// Lets the other side of a pseudoterminal be opened.
pub fn unlock(master: BorrowedFd<'_>) -> Result<()> {
    set(master, TIOCSPTLCK, &0_u32)
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
