//! Locking memory: RLIMIT_MEMLOCK is 0 in a cage, so nothing can be locked, and unlocking changes nothing.

use lind_abi::{Addr, Errno, Len, Result};

use super::pages;
use crate::call::Ctx;

/// mlock(2)
pub(crate) fn mlock(cx: &Ctx<'_>, addr: Addr, len: Len) -> Result<()> {
    mlock2(cx, addr, len, 0)
}

/// mlock2(2)
pub(crate) fn mlock2(_cx: &Ctx<'_>, _addr: Addr, _len: Len, flags: i32) -> Result<()> {
    const MLOCK_ONFAULT: i32 = 1;
    if flags & !MLOCK_ONFAULT != 0 { Err(Errno::EINVAL) } else { Err(Errno::EPERM) }
}

/// munlock(2)
pub(crate) fn munlock(cx: &Ctx<'_>, addr: Addr, len: Len) -> Result<()> {
    let start = addr.0 / crate::mem::PAGE * crate::mem::PAGE;
    let len = len.0.checked_add(addr.0 - start).ok_or(Errno::EINVAL)?;
    let range = pages(start, len, Errno::ENOMEM)?;
    if range.is_empty() { Ok(()) } else { cx.cage.memory.for_mapped(range, |_| Ok(())) }
}

/// mlockall(2)
pub(crate) fn mlockall(_cx: &Ctx<'_>, flags: i32) -> Result<()> {
    const MCL_ONFAULT: i32 = 4;
    let known = (1..8).contains(&flags) && flags != MCL_ONFAULT;
    if known { Err(Errno::EPERM) } else { Err(Errno::EINVAL) }
}

/// munlockall(2)
pub(crate) fn munlockall(_cx: &Ctx<'_>) -> Result<()> {
    Ok(())
}
