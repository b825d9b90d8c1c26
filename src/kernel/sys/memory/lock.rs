//! Locking memory, up to RLIMIT_MEMLOCK.

use std::ops::Range;

use lind_abi::flags::Resource;
use lind_abi::{Addr, Errno, Len, Result};

use super::pages;
use crate::cage::capability;
use crate::call::Ctx;
use crate::mem::{Fill, PAGE};

/// mlock(2)
pub(crate) fn mlock(cx: &Ctx<'_>, addr: Addr, len: Len) -> Result<()> {
    mlock2(cx, addr, len, 0)
}

/// mlock2(2)
pub(crate) fn mlock2(cx: &Ctx<'_>, addr: Addr, len: Len, flags: i32) -> Result<()> {
    const MLOCK_ONFAULT: i32 = 1;
    if flags & !MLOCK_ONFAULT != 0 {
        return Err(Errno::EINVAL);
    }
    let limit = locking_limit(cx)?;
    let range = around(addr, len)?;
    if range.is_empty() {
        return Ok(());
    }
    let fill = if flags == 0 { Fill::AtOnce } else { Fill::WhenUsed };
    cx.cage.memory.lock_pages(range, limit, fill)
}

/// munlock(2)
pub(crate) fn munlock(cx: &Ctx<'_>, addr: Addr, len: Len) -> Result<()> {
    let range = around(addr, len)?;
    if range.is_empty() { Ok(()) } else { cx.cage.memory.unlock_pages(range) }
}

/// mlockall(2)
pub(crate) fn mlockall(cx: &Ctx<'_>, flags: i32) -> Result<()> {
    const MCL_CURRENT: i32 = 1;
    const MCL_FUTURE: i32 = 2;
    const MCL_ONFAULT: i32 = 4;
    if flags & !(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0 || flags & (MCL_CURRENT | MCL_FUTURE) == 0 {
        return Err(Errno::EINVAL);
    }
    let limit = locking_limit(cx)?;
    let memory = &cx.cage.memory;
    let fill = if flags & MCL_ONFAULT == 0 { Fill::AtOnce } else { Fill::WhenUsed };
    if flags & MCL_CURRENT != 0 {
        memory.lock_all(limit, fill)?;
    }
    memory.map().lock_new = (flags & MCL_FUTURE != 0).then_some(fill);
    Ok(())
}

/// munlockall(2)
pub(crate) fn munlockall(cx: &Ctx<'_>) -> Result<()> {
    cx.cage.memory.unlock_all()
}

/// How a new mapping is to be locked, if it is: `asked` by MAP_LOCKED, or because all new ones are.
///
/// # Errors
/// EPERM for a caller that asks and may not lock anything; EAGAIN if `len` more bytes are beyond
/// the limit.
pub(super) fn of_new(cx: &Ctx<'_>, len: u64, asked: bool) -> Result<Option<Fill>> {
    let (locked, all) = {
        let map = cx.cage.memory.map();
        (map.locked(), map.lock_new)
    };
    let fill = if asked { Some(Fill::AtOnce) } else { all };
    if fill.is_none() {
        return Ok(None);
    }
    match locking_limit(cx) {
        Err(errno) if asked => Err(errno),
        Ok(limit) if locked.saturating_add(len) <= limit => Ok(fill),
        _ => Err(Errno::EAGAIN),
    }
}

/// Locks a new mapping. Pages that cannot be brought into memory are left out.
///
/// # Errors
/// EAGAIN where the host has no more.
pub(super) fn lock_new(cx: &Ctx<'_>, range: Range<u64>, fill: Option<Fill>) -> Result<()> {
    let Some(fill) = fill else { return Ok(()) };
    let memory = &cx.cage.memory;
    memory.lock_pages(range.clone(), u64::MAX, Fill::WhenUsed).map_err(|_| Errno::EAGAIN)?;
    if fill == Fill::AtOnce {
        let _ = memory.lock_pages(range, u64::MAX, fill);
    }
    Ok(())
}

/// RLIMIT_MEMLOCK; with CAP_IPC_LOCK a process may lock all that it may map.
///
/// # Errors
/// EPERM if that is nothing.
pub(crate) fn locking_limit(cx: &Ctx<'_>) -> Result<u64> {
    if cx.cage.settings().credentials.can(capability::IPC_LOCK) {
        return Ok(u64::MAX);
    }
    let limit = cx.cage.settings().limits.of(Resource(Resource::RLIMIT_MEMLOCK)).map_or(0, |limit| limit.0);
    if limit == 0 { Err(Errno::EPERM) } else { Ok(limit) }
}

/// The pages that a range touches.
fn around(addr: Addr, len: Len) -> Result<Range<u64>> {
    let start = addr.0 / PAGE * PAGE;
    let len = len.0.checked_add(addr.0 - start).ok_or(Errno::EINVAL)?;
    pages(start, len, Errno::ENOMEM)
}
