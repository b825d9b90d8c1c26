//! Processes by descriptor: a descriptor always refers to the process for which it was opened, and
//! poll(2) sees that the process has ended.

use std::sync::Arc;

use lind_abi::{CageId, Errno, Fd, NewFd, Pid, Result};

use crate::call::Ctx;
use crate::fd::{File, Kind, ready_fd};

/// O_NONBLOCK: waitid(2) does not wait.
const PIDFD_NONBLOCK: u32 = 0o4000;

/// pidfd_open(2). Permission is checked when the descriptor is used.
pub(crate) fn pidfd_open(cx: &Ctx<'_>, pid: Pid, flags: u32) -> Result<NewFd> {
    if flags & !PIDFD_NONBLOCK != 0 {
        return Err(Errno::EINVAL);
    }
    let id = u32::try_from(pid.0).ok().filter(|&id| id != 0).ok_or(Errno::EINVAL)?;
    descriptor_of(cx, CageId(id), flags & PIDFD_NONBLOCK != 0).map(NewFd)
}

/// A new descriptor of a process.
///
/// # Errors
/// ESRCH if it is gone; EMFILE.
pub(crate) fn descriptor_of(cx: &Ctx<'_>, id: CageId, nonblock: bool) -> Result<i32> {
    let cage = cx.kernel.cages.get(id).ok_or(Errno::ESRCH)?;
    let file = Arc::new(File::new(ready_fd::new(cx.kernel, nonblock)?, Kind::Process(cage.id)));
    cage.watched_by(&file);
    cx.cage.fds.add_from(0, file, true)
}

/// The process behind a descriptor, and whether waiting for it must not block.
///
/// # Errors
/// EBADF.
pub(crate) fn process_behind(cx: &Ctx<'_>, fd: Fd) -> Result<(CageId, bool)> {
    let file = cx.file(fd)?;
    let Kind::Process(id) = file.kind else { return Err(Errno::EBADF) };
    let flags = rustix::fs::fcntl_getfl(file.host()).map_err(crate::host::errno)?;
    Ok((id, flags.contains(rustix::fs::OFlags::NONBLOCK)))
}
