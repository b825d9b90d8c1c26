//! Semaphore sets.

use lind_abi::layout::{Sembuf, SemidDs, Timespec};
use lind_abi::{Errno, In, InOut, Len, Out, Result};

use super::{IPC_INFO, IPC_RMID, IPC_SET, IPC_STAT, command, tell_all, wait};
use crate::call::Ctx;
use crate::ipc::{
    HIGHEST, MOST, MOST_IN_SET, MOST_OPERATIONS, MOST_SEMAPHORES, Operation, READ, Set, Tried, UNDO, WRITE, release,
};
use crate::sys::wait::Deadline;

const GETPID: u32 = 11;
const GETVAL: u32 = 12;
const GETALL: u32 = 13;
const GETNCNT: u32 = 14;
const GETZCNT: u32 = 15;
const SETVAL: u32 = 16;
const SETALL: u32 = 17;
const SEM_STAT: u32 = 18;
const SEM_INFO: u32 = 19;
const SEM_STAT_ANY: u32 = 20;

/// semget(2)
pub(crate) fn semget(cx: &Ctx<'_>, key: i32, count: i32, flags: i32) -> Result<i32> {
    let wanted = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
    let fits = |set: &Set| if wanted > set.semaphores.len() { Err(Errno::EINVAL) } else { Ok(()) };
    let mut state = cx.kernel.ipc.lock();
    let there: usize = state.sets.values().map(|set| set.semaphores.len()).sum();
    let make = || {
        if there + Set::check_count(count)? > MOST_SEMAPHORES {
            return Err(Errno::ENOSPC);
        }
        cx.cage.memory.map().charge(Set::cost(wanted))?;
        Set::new(count, cx.cage.id)
    };
    state.sets.get(cx, key, flags.cast_unsigned(), fits, make)
}

/// semop(2)
pub(crate) fn semop(cx: &Ctx<'_>, id: i32, ops: In<Sembuf>, count: Len) -> Result<()> {
    operate(cx, id, ops, count, &Deadline::Never)
}

/// semtimedop(2)
pub(crate) fn semtimedop(cx: &Ctx<'_>, id: i32, ops: In<Sembuf>, count: Len, timeout: In<Timespec>) -> Result<()> {
    let deadline = Deadline::load(cx, timeout)?;
    operate(cx, id, ops, count, &deadline)
}

fn operate(cx: &Ctx<'_>, id: i32, ops: In<Sembuf>, count: Len, deadline: &Deadline) -> Result<()> {
    match count.0 & u64::from(u32::MAX) {
        0 => return Err(Errno::EINVAL),
        count if count > MOST_OPERATIONS => return Err(Errno::E2BIG),
        _ => {}
    }
    let ops = cx.load_array(ops, usize::try_from(count.0 & u64::from(u32::MAX)).map_err(|_| Errno::E2BIG)?)?;
    let ops: Vec<_> = ops.iter().map(|op| Operation { index: op.num, change: op.op, flags: op.flg }).collect();
    let wanted = if ops.iter().any(|op| op.change != 0) { WRITE } else { READ };
    let mut waited = false;
    loop {
        let (event, seen, index, zero) = {
            let mut state = cx.kernel.ipc.lock();
            let set = match state.sets.permitted(cx, id, wanted) {
                // It was there.
                Err(Errno::EINVAL) if waited => return Err(Errno::EIDRM),
                set => &mut set?.value,
            };
            let seen = set.changed.seen();
            let charge = |bytes: i64| {
                let mut map = cx.cage.memory.map();
                if bytes < 0 {
                    map.release(bytes.unsigned_abs());
                    return Ok(());
                }
                map.charge(bytes.unsigned_abs())
            };
            match set.try_all(cx.cage.id, &ops, charge)? {
                Tried::Done => return Ok(()),
                Tried::Waits { index, zero } => {
                    *set.waiting(index, zero) += 1;
                    (std::sync::Arc::clone(&set.changed), seen, index, zero)
                }
            }
        };
        waited = true;
        let result = wait(cx, &event, seen, deadline);
        if let Ok(object) = cx.kernel.ipc.lock().sets.find(id) {
            *object.value.waiting(index, zero) -= 1;
        } else if result.is_err() {
            return Err(Errno::EIDRM);
        }
        result?;
    }
}

/// semctl(2). The fourth argument is a number or a pointer, depending on the command.
pub(crate) fn semctl(cx: &Ctx<'_>, id: i32, index: i32, cmd: i32, arg: InOut<SemidDs>) -> Result<i32> {
    let command = command(cmd);
    let number = u32::try_from(arg.addr & u64::from(u32::MAX)).unwrap_or(0);
    let at = usize::try_from(index).map_err(|_| Errno::EINVAL);
    let sets = &cx.kernel.ipc;
    match command {
        IPC_RMID => {
            let mut state = sets.lock();
            let set = state.sets.remove(cx, id)?;
            set.charges().for_each(|(payer, bytes)| release(cx.kernel, payer, bytes));
            set.changed.notify_all();
            Ok(0)
        }
        IPC_SET => {
            let new: SemidDs = cx.load(cx.reading(arg))?;
            sets.lock().sets.owned(cx, id)?.permissions.set(&new.perm).map(|()| 0)
        }
        IPC_STAT | SEM_STAT | SEM_STAT_ANY => {
            let (status, result) = {
                let mut state = sets.lock();
                let (id, result) =
                    if command == IPC_STAT { (id, 0) } else { state.sets.at(cx, id).map(|id| (id, id))? };
                let object = state.sets.permitted(cx, id, if command == SEM_STAT_ANY { 0 } else { READ })?;
                (object.value.to_guest(&object.permissions), result)
            };
            cx.store(cx.writing(arg), &status).map(|()| result)
        }
        IPC_INFO | SEM_INFO => info(cx, arg, command == SEM_INFO),
        GETVAL | GETPID | GETNCNT | GETZCNT => {
            let mut state = sets.lock();
            let semaphore = state.sets.permitted(cx, id, READ)?.value.semaphores.get(at?).ok_or(Errno::EINVAL)?;
            let value = match command {
                GETVAL => semaphore.value.into(),
                GETPID => semaphore.by,
                GETNCNT => semaphore.growing,
                _ => semaphore.zero,
            };
            Ok(value.cast_signed())
        }
        GETALL => {
            let values: Vec<u8> = {
                let mut state = sets.lock();
                let set = &state.sets.permitted(cx, id, READ)?.value;
                set.semaphores.iter().flat_map(|semaphore| semaphore.value.to_le_bytes()).collect()
            };
            cx.copy_out(Out::new(arg.addr, arg.cage), &values).map(|()| 0)
        }
        SETVAL => {
            let cage = cx.cage.id;
            let mut state = sets.lock();
            let forgotten = state.sets.permitted(cx, id, WRITE)?.value.set_value(cage, at?, number)?;
            forgotten.into_iter().for_each(|payer| release(cx.kernel, payer, UNDO));
            Ok(0)
        }
        SETALL => set_all(cx, id, arg),
        _ => Err(Errno::EINVAL),
    }
}

/// IPC_INFO, and SEM_INFO, which counts the sets and semaphores that there are.
fn info(cx: &Ctx<'_>, arg: InOut<SemidDs>, counts: bool) -> Result<i32> {
    /// The size that Linux reports for an undo structure; it has no effect.
    const UNDO_SIZE: usize = 20;
    let (count, all) = {
        let state = cx.kernel.ipc.lock();
        let sizes = state.sets.objects(cx).map(|(_, object)| object.value.semaphores.len());
        sizes.fold((0, 0), |sum, size| (sum.0 + 1, sum.1 + size))
    };
    let most = MOST_SEMAPHORES;
    let operations = usize::try_from(MOST_OPERATIONS).unwrap_or(usize::MAX);
    let highest = usize::from(HIGHEST);
    let (sets, semaphores) = if counts { (count, all) } else { (UNDO_SIZE, highest) };
    let words = [most, MOST, most, most, MOST_IN_SET, operations, operations, sets, highest, semaphores];
    tell_all(cx, arg, count, &words)
}

/// SETALL
fn set_all(cx: &Ctx<'_>, id: i32, arg: InOut<SemidDs>) -> Result<i32> {
    let sets = &cx.kernel.ipc;
    let count = sets.lock().sets.permitted(cx, id, WRITE)?.value.semaphores.len();
    let values: Vec<u16> = cx.load_array(In::new(arg.addr, arg.cage), count)?;
    if values.iter().any(|&value| value > HIGHEST) {
        return Err(Errno::ERANGE);
    }
    let mut state = sets.lock();
    let set = &mut state.sets.permitted(cx, id, WRITE)?.value;
    for (at, value) in values.into_iter().enumerate() {
        let forgotten = set.set_value(cx.cage.id, at, value.into())?;
        forgotten.into_iter().for_each(|payer| release(cx.kernel, payer, UNDO));
    }
    Ok(0)
}
