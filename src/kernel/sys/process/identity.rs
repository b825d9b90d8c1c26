//! Ids of a process: its own, its parent's, its users and groups.

use std::sync::atomic::Ordering;

use lind_abi::{Addr, Gid, Pid, Result, Uid};

use crate::call::Ctx;

/// getpid(2)
#[inline]
pub(crate) fn getpid(cx: &Ctx<'_>) -> Result<Pid> {
    Ok(Pid(cx.cage.id.0.cast_signed()))
}

/// gettid(2)
#[inline]
pub(crate) fn gettid(cx: &Ctx<'_>) -> Result<Pid> {
    Ok(Pid(cx.thread.tid.cast_signed()))
}

/// getppid(2): 0 for the first cage, and the first cage for orphans.
pub(crate) fn getppid(cx: &Ctx<'_>) -> Result<Pid> {
    Ok(Pid(cx.cage.shown_parent().map_or(0, |id| id.0.cast_signed())))
}

/// geteuid(2)
#[inline]
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn geteuid(cx: &Ctx<'_>) -> Result<Uid> {
    Ok(Uid(cx.cage.effective.load(Ordering::Relaxed) as u32))
}

/// getegid(2)
#[inline]
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn getegid(cx: &Ctx<'_>) -> Result<Gid> {
    Ok(Gid((cx.cage.effective.load(Ordering::Relaxed) >> 32) as u32))
}

/// getuid(2)
pub(crate) fn getuid(cx: &Ctx<'_>) -> Result<Uid> {
    Ok(Uid(cx.cage.settings().credentials.uid[0]))
}

/// getgid(2)
pub(crate) fn getgid(cx: &Ctx<'_>) -> Result<Gid> {
    Ok(Gid(cx.cage.settings().credentials.gid[0]))
}

/// set_tid_address(2)
pub(crate) fn set_tid_address(cx: &Ctx<'_>, addr: Addr) -> Result<Pid> {
    cx.thread.at_end.clear_tid.store(addr.0, Ordering::Relaxed);
    gettid(cx)
}
