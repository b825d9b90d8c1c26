//! Shared memory segments.

use std::os::fd::AsFd;

use lind_abi::layout::ShmidDs;
use lind_abi::{Addr, Errno, InOut, Len, Result};

use super::{IPC_INFO, IPC_RMID, IPC_SET, IPC_STAT, command, tell_all};
use crate::call::Ctx;
use crate::host::keep::Locked;
use crate::ipc::{MOST, READ, Segment, State, WRITE, attachments};
use crate::mem::{Attached, Content, PAGE, Place, space};
use crate::sys::memory::locking_limit;

const SHM_RDONLY: u32 = 0o10000;
const SHM_RND: u32 = 0o20000;
const SHM_REMAP: u32 = 0o40000;
const SHM_EXEC: u32 = 0o100_000;
/// SHM_LOCKED: shown in the mode of a locked segment.
const SHM_LOCKED: u32 = 0o2000;
const SHM_LOCK: u32 = 11;
const SHM_UNLOCK: u32 = 12;
const SHM_STAT: u32 = 13;
const SHM_INFO: u32 = 14;
const SHM_STAT_ANY: u32 = 15;

/// Segments of one runner, in bytes: as much as one guest can address, for all of them in all
/// namespaces.
const MOST_BYTES: u64 = space::LIMIT;

/// shmget(2)
pub(crate) fn shmget(cx: &Ctx<'_>, key: i32, size: Len, flags: i32) -> Result<i32> {
    let mut state = cx.kernel.ipc.lock();
    forget_detached(cx, &mut state);
    let used: u64 = state.segments.values().map(|segment| segment.size).sum();
    let fits = |segment: &Segment| if size.0 > segment.size { Err(Errno::EINVAL) } else { Ok(()) };
    let make = || {
        if used.saturating_add(size.0) > MOST_BYTES {
            return Err(if size.0 > space::LIMIT { Errno::EINVAL } else { Errno::ENOSPC });
        }
        Segment::new(size.0, cx.cage.id.0)
    };
    state.segments.get(cx, key, flags.cast_unsigned(), fits, make)
}

/// shmat(2)
pub(crate) fn shmat(cx: &Ctx<'_>, id: i32, addr: Addr, flags: i32) -> Result<Addr> {
    let flags = flags.cast_unsigned();
    let read_only = flags & SHM_RDONLY != 0;
    if flags & !(SHM_RDONLY | SHM_RND | SHM_REMAP | SHM_EXEC) != 0 {
        return Err(Errno::EINVAL);
    }
    let (file, size) = {
        let mut state = cx.kernel.ipc.lock();
        forget_detached(cx, &mut state);
        let wanted = if read_only { READ } else { READ | WRITE };
        let segment = &state.segments.permitted(cx, id, wanted)?.value;
        (segment.file.try_clone().map_err(|_| Errno::ENOMEM)?, segment.size)
    };
    let len = size.next_multiple_of(PAGE);
    let place = match addr.0 {
        0 if flags & SHM_REMAP != 0 => return Err(Errno::EINVAL),
        0 => Place::Hint(0),
        addr => {
            let start = if flags & SHM_RND != 0 { addr / PAGE * PAGE } else { addr };
            let fits = start.is_multiple_of(PAGE) && start >= space::FIRST;
            if !fits || start.checked_add(len).is_none_or(|end| end > space::END) {
                return Err(Errno::EINVAL);
            }
            if flags & SHM_REMAP != 0 { Place::Fixed(start) } else { Place::FixedNoReplace(start) }
        }
    };
    let prot = if read_only { 1 } else { 3 };
    let memory = &cx.cage.memory;
    let mapped = memory.map_pages(place, len, prot, true, Content::File(file.as_fd(), 0));
    let start = mapped.map_err(|errno| if errno == Errno::EEXIST { Errno::EINVAL } else { errno })?;
    memory.map().update(start..start + len, |region| region.segment = Some(Attached { id, at: start }));
    if let Ok(object) = cx.kernel.ipc.lock().segments.find(id) {
        object.value.note_attached(cx.cage.id.0);
    }
    Ok(Addr(start))
}

/// shmdt(2)
pub(crate) fn shmdt(cx: &Ctx<'_>, addr: Addr) -> Result<()> {
    let memory = &cx.cage.memory;
    let (id, parts) = {
        let map = memory.map();
        // The parts that are still mapped, also if the first page is not.
        let attached = map.regions().filter_map(|(part, region)| Some((part, region.segment?)));
        let mut parts = attached.filter(|(_, segment)| segment.at == addr.0).peekable();
        let id = parts.peek().ok_or(Errno::EINVAL)?.1.id;
        (id, parts.filter(|(_, segment)| segment.id == id).map(|(part, _)| part).collect::<Vec<_>>())
    };
    for part in parts {
        memory.unmap_pages(part)?;
    }
    let mut state = cx.kernel.ipc.lock();
    if let Ok(object) = state.segments.find(id) {
        object.value.note_detached(cx.cage.id.0);
    }
    forget_detached(cx, &mut state);
    Ok(())
}

/// shmctl(2)
pub(crate) fn shmctl(cx: &Ctx<'_>, id: i32, cmd: i32, buf: InOut<ShmidDs>) -> Result<i32> {
    let mut state = cx.kernel.ipc.lock();
    forget_detached(cx, &mut state);
    match command(cmd) {
        how @ (IPC_STAT | SHM_STAT | SHM_STAT_ANY) => {
            let (id, result) = if how == IPC_STAT { (id, 0) } else { state.segments.at(cx, id).map(|id| (id, id))? };
            let count = attachments(cx.kernel, id);
            let wanted = if how == SHM_STAT_ANY { 0 } else { READ };
            let object = state.segments.permitted(cx, id, wanted)?;
            let status = object.value.to_guest(&object.permissions, count);
            drop(state);
            cx.store(cx.writing(buf), &status).map(|()| result)
        }
        IPC_INFO => {
            let (count, pages) = (state.segments.objects(cx).count(), pages(MOST_BYTES));
            drop(state);
            tell_all(cx, buf, count, &long([usize::MAX, 1, MOST, MOST, pages, 0, 0, 0, 0]))
        }
        SHM_INFO => {
            let segments = || state.segments.objects(cx).map(|(_, object)| &object.value);
            let count = segments().count();
            let size = segments().map(|segment| pages(segment.size)).sum();
            let there = segments().map(Segment::resident).map(pages).sum();
            drop(state);
            tell_all(cx, buf, count, &long([count, size, there, 0, 0, 0]))
        }
        IPC_SET => {
            let new: ShmidDs = cx.load(cx.reading(buf))?;
            state.segments.owned(cx, id)?.permissions.set(&new.perm).map(|()| 0)
        }
        IPC_RMID => {
            state.segments.owned(cx, id)?;
            state.segments.let_go(id);
            forget_detached(cx, &mut state);
            Ok(0)
        }
        SHM_LOCK => lock(cx, &mut state, id).map(|()| 0),
        SHM_UNLOCK => {
            let object = state.segments.owned(cx, id)?;
            object.value.locked = None;
            object.permissions.unmark(SHM_LOCKED);
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// SHM_LOCK: up to the caller's RLIMIT_MEMLOCK, for all segments together.
fn lock(cx: &Ctx<'_>, state: &mut State, id: i32) -> Result<()> {
    let locked = state.segments.values().filter(|segment| segment.locked.is_some()).map(|segment| segment.size);
    let locked: u64 = locked.map(|size| size.next_multiple_of(PAGE)).sum();
    let object = state.segments.owned(cx, id)?;
    let limit = locking_limit(cx)?;
    let size = object.value.size.next_multiple_of(PAGE);
    if object.value.locked.is_none() {
        if locked.saturating_add(size) > limit {
            return Err(Errno::ENOMEM);
        }
        object.value.locked = Some(Locked::new(object.value.file.as_fd(), size)?);
        object.permissions.mark(SHM_LOCKED);
    }
    Ok(())
}

/// Words of 64 bits, of which guests know the lower halves.
fn long<const N: usize>(words: [usize; N]) -> Vec<usize> {
    words.into_iter().flat_map(|word| [word, 0]).collect()
}

fn pages(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(PAGE)).unwrap_or(usize::MAX)
}

/// Forgets segments that were removed and that nobody has attached any more.
fn forget_detached(cx: &Ctx<'_>, state: &mut State) {
    state.segments.forget(|id, segment| segment.removed && attachments(cx.kernel, id) == 0);
}
