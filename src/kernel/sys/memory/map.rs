//! Mapping, unmapping, protection, and the heap.

use lind_abi::flags::{MapFlags, Prot};
use lind_abi::{Addr, Errno, Fd, Len, Off, Result};

use super::{lock, pages};
use crate::call::Ctx;
use crate::fd::Kind;
use crate::mem::{Content, PAGE, Place, page_up, space};

const ACCESS: u32 = Prot::PROT_READ | Prot::PROT_WRITE | Prot::PROT_EXEC;
/// The bits of mmap(2)'s flags for the kind of mapping. MAP_DROPPABLE, which newer Linux has, is
/// not supported.
const MAP_TYPE: u32 = 0xf;

/// mmap(2)
pub(crate) fn mmap(
    cx: &Ctx<'_>,
    addr: Addr,
    len: Len,
    prot: Prot,
    flags: MapFlags,
    fd: Fd,
    offset: Off,
) -> Result<Addr> {
    let offset = offset.0.cast_unsigned();
    if !offset.is_multiple_of(PAGE) {
        return Err(Errno::EINVAL);
    }
    let file = if flags.has(MapFlags::MAP_ANONYMOUS) { None } else { Some(cx.file(fd)?) };
    if len.0 == 0 {
        return Err(Errno::EINVAL);
    }
    let shared = is_shared(flags)?;
    let len = page_up(len.0).filter(|&len| len <= space::LIMIT).ok_or(Errno::ENOMEM)?;
    let place = place(addr.0, len, flags)?;
    let content = match &file {
        None => Content::Zero,
        Some(file) if matches!(file.kind, Kind::Host | Kind::Named(_)) => Content::File(file.host(), offset),
        Some(_) => return Err(Errno::ENODEV),
    };
    let prot = prot.0 & ACCESS;
    let memory = &cx.cage.memory;
    let locked = lock::of_new(cx, len, flags.has(MapFlags::MAP_LOCKED))?;
    let start = memory.map_pages(place, len, prot, shared, content)?;
    if let Err(errno) = lock::lock_new(cx, start..start + len, locked) {
        memory.unmap_pages(start..start + len)?;
        return Err(errno);
    }
    if flags.has(MapFlags::MAP_POPULATE) && !flags.has(MapFlags::MAP_NONBLOCK) {
        // mmap(2): the call does not fail if the mapping cannot be populated.
        let write = prot & Prot::PROT_WRITE != 0 && !shared;
        let advice = if write { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
        let _ = memory.guest.advise(start, len, advice);
    }
    Ok(Addr(start))
}

/// The kind of mapping, and the flags we refuse.
fn is_shared(flags: MapFlags) -> Result<bool> {
    let refused = [
        // A region that grows on a fault; only old thread libraries use it.
        (MapFlags::MAP_GROWSDOWN, Errno::EINVAL),
        // As on a host without huge pages set aside.
        (MapFlags::MAP_HUGETLB, Errno::ENOMEM),
    ];
    if let Some(&(_, errno)) = refused.iter().find(|&&(flag, _)| flags.has(flag)) {
        return Err(errno);
    }
    match flags.0 & MAP_TYPE {
        MapFlags::MAP_PRIVATE => Ok(false),
        MapFlags::MAP_SHARED => Ok(true),
        // Only a file can know more flags than all mappings have.
        MapFlags::MAP_SHARED_VALIDATE if !flags.has(MapFlags::MAP_ANONYMOUS) => {
            let known = MapFlags::NAMES.rows.iter().fold(0, |all, &(bit, _)| all | bit) & !MapFlags::MAP_SYNC;
            if flags.beyond(known) { Err(Errno::EOPNOTSUPP) } else { Ok(true) }
        }
        _ => Err(Errno::EINVAL),
    }
}

fn place(addr: u64, len: u64, flags: MapFlags) -> Result<Place> {
    let no_replace = flags.has(MapFlags::MAP_FIXED_NOREPLACE);
    if !no_replace && !flags.has(MapFlags::MAP_FIXED) {
        // As Linux rounds a hint: down to a page, up to the lowest address.
        let hint = addr / PAGE * PAGE;
        return Ok(Place::Hint(if hint == 0 { 0 } else { hint.max(space::FIRST) }));
    }
    if addr > space::LIMIT - len {
        return Err(Errno::ENOMEM);
    }
    if !addr.is_multiple_of(PAGE) {
        return Err(Errno::EINVAL);
    }
    if addr + len > space::END {
        return Err(Errno::ENOMEM);
    }
    Ok(if no_replace { Place::FixedNoReplace(addr) } else { Place::Fixed(addr) })
}

/// munmap(2)
pub(crate) fn munmap(cx: &Ctx<'_>, addr: Addr, len: Len) -> Result<()> {
    let range = pages(addr.0, len.0, Errno::EINVAL)?;
    if range.is_empty() {
        return Err(Errno::EINVAL);
    }
    cx.cage.memory.unmap_pages(range)
}

/// mprotect(2). No mapping grows on a fault, so PROT_GROWSDOWN and PROT_GROWSUP are EINVAL.
pub(crate) fn mprotect(cx: &Ctx<'_>, addr: Addr, len: Len, prot: Prot) -> Result<()> {
    /// PROT_SEM, which Linux takes and ignores.
    const PROT_SEM: u32 = 8;
    if prot.beyond(ACCESS | PROT_SEM) || !addr.0.is_multiple_of(PAGE) {
        return Err(Errno::EINVAL);
    }
    let range = pages(addr.0, len.0, Errno::ENOMEM)?;
    if range.is_empty() {
        return Ok(());
    }
    cx.cage.memory.protect_pages(range, prot.0 & ACCESS)
}

/// brk(2) in the kernel's form: the new break, or the old one if it cannot move.
pub(crate) fn brk(cx: &Ctx<'_>, addr: Addr) -> Result<Addr> {
    let data_limit = cx.cage.settings().limits.data.0;
    let memory = &cx.cage.memory;
    let old = memory.map().brk.end;
    let Ok(locked) = lock::of_new(cx, addr.0.saturating_sub(old), false) else { return Ok(Addr(old)) };
    let new = memory.set_break(addr.0, data_limit);
    if let (Some(start), Some(end)) = (page_up(old), page_up(new))
        && start < end
        && lock::lock_new(cx, start..end, locked).is_err()
    {
        return Ok(Addr(memory.set_break(old, data_limit)));
    }
    Ok(Addr(new))
}
