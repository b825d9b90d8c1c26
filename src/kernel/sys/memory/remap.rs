//! mremap(2).

use lind_abi::flags::RemapFlags;
use lind_abi::{Addr, Errno, Len, Result};

use super::{lock, pages};
use crate::call::Ctx;
use crate::mem::{Move, PAGE, page_up, space};

/// mremap(2)
pub(crate) fn mremap(
    cx: &Ctx<'_>,
    addr: Addr,
    old_len: Len,
    new_len: Len,
    flags: RemapFlags,
    new_addr: Addr,
) -> Result<Addr> {
    let keeps = flags.has(RemapFlags::MREMAP_DONTUNMAP);
    if flags.beyond(RemapFlags::MREMAP_MAYMOVE | RemapFlags::MREMAP_FIXED | RemapFlags::MREMAP_DONTUNMAP) {
        return Err(Errno::EINVAL);
    }
    let may_move = flags.has(RemapFlags::MREMAP_MAYMOVE);
    if (flags.has(RemapFlags::MREMAP_FIXED) || keeps) && !may_move {
        return Err(Errno::EINVAL);
    }
    if keeps && old_len.0 != new_len.0 {
        return Err(Errno::EINVAL);
    }
    let old = pages(addr.0, old_len.0, Errno::EINVAL)?;
    let new_len = page_up(new_len.0).filter(|&len| len > 0).ok_or(Errno::EINVAL)?;
    let how = if flags.has(RemapFlags::MREMAP_FIXED) {
        let to = new_addr.0;
        let end = to.checked_add(new_len).filter(|&end| end <= space::LIMIT).ok_or(Errno::EINVAL)?;
        let overlaps = to < old.end && old.start < end;
        if !to.is_multiple_of(PAGE) || overlaps {
            return Err(Errno::EINVAL);
        }
        if to < space::FIRST {
            return Err(Errno::EPERM);
        }
        if end > space::END {
            return Err(Errno::ENOMEM);
        }
        Move::To(to)
    } else if may_move {
        Move::IfNeeded
    } else {
        Move::No
    };
    if new_len > space::LIMIT {
        return Err(Errno::ENOMEM);
    }
    let memory = &cx.cage.memory;
    let more = new_len.saturating_sub(old.end - old.start);
    let locked = memory.map().mapped_at(old.start).is_some_and(|(_, region)| region.locked);
    if locked && more > 0 {
        lock::of_new(cx, more, true).map_err(|_| Errno::EAGAIN)?;
    }
    let start = if keeps { memory.relocate(old, how) } else { memory.remap(old, new_len, how) };
    start.map(Addr)
}
