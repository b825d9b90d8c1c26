//! xattr(7): values and lists in guest memory, names the kernel's own copies.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use lind_abi::Result;
use syscalls::{Sysno, raw_syscall};

use super::{place, raw, result};
use crate::mem::HostRange;

/// Which file.
#[derive(Clone, Copy)]
pub enum File<'f> {
    /// An open one.
    Open(BorrowedFd<'f>),
    /// A name in a directory. A link is followed.
    Named(BorrowedFd<'f>, &'f CStr),
}

/// The first argument of a call, and the call to use: the host takes names only relative to the
/// working directory.
fn on(
    file: File<'_>,
    (by_name, by_file): (Sysno, Sysno),
    act: impl FnOnce(Sysno, usize) -> Result<usize>,
) -> Result<usize> {
    match file {
        File::Open(fd) => act(by_file, raw(fd)),
        File::Named(dir, name) => place::below(dir, || act(by_name, name.as_ptr() as usize)),
    }
}

/// setxattr(2)
pub fn set(file: File<'_>, name: &CStr, value: HostRange<'_>, flags: i32) -> Result<()> {
    let (name, flags) = (name.as_ptr() as usize, flags.cast_unsigned() as usize);
    on(file, (Sysno::setxattr, Sysno::fsetxattr), |call, file| {
        // SAFETY: the host reads the names and, in a guest's reservation, the value.
        result(unsafe { raw_syscall!(call, file, name, value.as_ptr() as usize, value.len(), flags) })
    })
    .map(drop)
}

/// getxattr(2)
pub fn get(file: File<'_>, name: &CStr, value: HostRange<'_>) -> Result<usize> {
    let name = name.as_ptr() as usize;
    on(file, (Sysno::getxattr, Sysno::fgetxattr), |call, file| {
        // SAFETY: the host reads the names and writes inside `value`, in a guest's reservation.
        result(unsafe { raw_syscall!(call, file, name, value.as_ptr() as usize, value.len()) })
    })
}

/// listxattr(2)
pub fn list(file: File<'_>, list: HostRange<'_>) -> Result<usize> {
    on(file, (Sysno::listxattr, Sysno::flistxattr), |call, file| {
        // SAFETY: the host reads the name and writes inside `list`, in a guest's reservation.
        result(unsafe { raw_syscall!(call, file, list.as_ptr() as usize, list.len()) })
    })
}

/// removexattr(2)
pub fn remove(file: File<'_>, name: &CStr) -> Result<()> {
    let name = name.as_ptr() as usize;
    on(file, (Sysno::removexattr, Sysno::fremovexattr), |call, file| {
        // SAFETY: the host reads the names.
        result(unsafe { raw_syscall!(call, file, name) })
    })
    .map(drop)
}
