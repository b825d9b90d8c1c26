//! Advice, writing back, and resident pages: madvise(2), msync(2), mincore(2).

use lind_abi::flags::{Advice, SyncFlags};
use lind_abi::{Addr, Errno, Len, Out, Result};

use super::pages;
use crate::call::Ctx;
use crate::mem::{OnFork, PAGE};

/// madvise(2)
pub(crate) fn madvise(cx: &Ctx<'_>, addr: Addr, len: Len, advice: Advice) -> Result<()> {
    let what = advised(advice)?;
    let range = pages(addr.0, len.0, Errno::EINVAL)?;
    if range.is_empty() {
        return Ok(());
    }
    let memory = &cx.cage.memory;
    match what {
        Advised::Host(advice) => memory
            .for_mapped(range, |part| cx.blocking(|| memory.guest.advise(part.start, part.end - part.start, advice))),
        Advised::Discard(advice) => memory.discard(range, advice),
        Advised::Guard(guarded) => memory.guard_pages(range, guarded),
        Advised::Fork(on_fork) => memory.set_on_fork(range, on_fork),
        Advised::Nothing => memory.for_mapped(range, |_| Ok(())),
    }
}

enum Advised {
    /// The host does it.
    Host(i32),
    /// The contents are not needed.
    Discard(i32),
    /// Nobody has access, or those again who had.
    Guard(bool),
    /// Kept for fork.
    Fork(OnFork),
    /// No effect: there are no core dumps to leave pages out of, and mappings are not tuned to a
    /// kind of access.
    Nothing,
}

/// MADV_REMOVE, which would change the file, and all others are EINVAL, as on a Linux built without
/// them.
fn advised(advice: Advice) -> Result<Advised> {
    Ok(match advice.0 {
        // To the host these are kinds of mappings: each would split a mapping that is one in the
        // cage's map.
        Advice::MADV_NORMAL
        | Advice::MADV_RANDOM
        | Advice::MADV_SEQUENTIAL
        | Advice::MADV_HUGEPAGE
        | Advice::MADV_NOHUGEPAGE => Advised::Nothing,
        Advice::MADV_WILLNEED
        | Advice::MADV_COLD
        | Advice::MADV_PAGEOUT
        | Advice::MADV_POPULATE_READ
        | Advice::MADV_POPULATE_WRITE => Advised::Host(i32::try_from(advice.0).map_err(|_| Errno::EINVAL)?),
        Advice::MADV_DONTNEED => Advised::Discard(libc::MADV_DONTNEED),
        Advice::MADV_FREE => Advised::Discard(libc::MADV_FREE),
        Advice::MADV_GUARD_INSTALL => Advised::Guard(true),
        Advice::MADV_GUARD_REMOVE => Advised::Guard(false),
        Advice::MADV_DONTFORK => Advised::Fork(OnFork::Omit),
        Advice::MADV_DOFORK | Advice::MADV_KEEPONFORK => Advised::Fork(OnFork::Keep),
        Advice::MADV_WIPEONFORK => Advised::Fork(OnFork::Wipe),
        Advice::MADV_DONTDUMP | Advice::MADV_DODUMP => Advised::Nothing,
        _ => return Err(Errno::EINVAL),
    })
}

/// msync(2)
pub(crate) fn msync(cx: &Ctx<'_>, addr: Addr, len: Len, flags: SyncFlags) -> Result<()> {
    let both = SyncFlags::MS_ASYNC | SyncFlags::MS_SYNC;
    if flags.beyond(both | SyncFlags::MS_INVALIDATE) || flags.has(both) {
        return Err(Errno::EINVAL);
    }
    let range = pages(addr.0, len.0, Errno::ENOMEM)?;
    if range.is_empty() {
        return Ok(());
    }
    let memory = &cx.cage.memory;
    let flags = i32::try_from(flags.0).map_err(|_| Errno::EINVAL)?;
    memory.for_mapped(range, |part| cx.blocking(|| memory.guest.sync(part.start, part.end - part.start, flags)))
}

/// mincore(2)
#[allow(clippy::cast_possible_truncation, reason = "CHUNK is small")]
pub(crate) fn mincore(cx: &Ctx<'_>, addr: Addr, len: Len, vec: Out<u8>) -> Result<()> {
    /// Pages asked of the host at once.
    const CHUNK: u64 = 4096;
    let range = pages(addr.0, len.0, Errno::ENOMEM)?;
    let total = (range.end - range.start) / PAGE;
    cx.output(vec, Len(total))?;
    let memory = &cx.cage.memory;
    let mut resident = [0; CHUNK as usize];
    for first in (0..total).step_by(CHUNK as usize) {
        let count = CHUNK.min(total - first);
        let start = range.start + first * PAGE;
        memory.for_mapped(start..start + count * PAGE, |_| Ok(()))?;
        let resident = &mut resident[..usize::try_from(count).map_err(|_| Errno::ENOMEM)?];
        memory.guest.resident(start, count * PAGE, resident)?;
        cx.copy_out(Out::new(vec.addr + first, vec.cage), resident)?;
    }
    Ok(())
}
