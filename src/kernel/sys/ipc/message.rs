//! Message queues.

use std::sync::Arc;

use lind_abi::layout::MsqidDs;
use lind_abi::{Errno, In, InOut, Len, Out, Result};

use super::{IPC_INFO, IPC_RMID, IPC_SET, IPC_STAT, command, tell_all, wait};
use crate::call::Ctx;
use crate::ipc::{IPC_NOWAIT, LONGEST, MOST, MOST_MESSAGES, Message, Queue, READ, ROOM, WRITE, release};
use crate::sys::wait::Deadline;

/// Looks at a message without taking it; only with checkpointing is that built into Linux.
const MSG_COPY: u32 = 0o40000;
const MSG_STAT: u32 = 11;
const MSG_INFO: u32 = 12;
const MSG_STAT_ANY: u32 = 13;

/// msgget(2)
pub(crate) fn msgget(cx: &Ctx<'_>, key: i32, flags: i32) -> Result<i32> {
    cx.kernel.ipc.lock().queues.get(cx, key, flags.cast_unsigned(), |_| Ok(()), || Ok(Queue::new()))
}

/// msgsnd(2). The message begins with its type, a long.
pub(crate) fn msgsnd(cx: &Ctx<'_>, id: i32, msg: In<i32>, size: Len, flags: i32) -> Result<()> {
    let size = usize::try_from(size.0 & u64::from(u32::MAX)).map_err(|_| Errno::EINVAL)?;
    if size > LONGEST {
        return Err(Errno::EINVAL);
    }
    let kind = cx.load(msg)?;
    let mut text = vec![0; size];
    cx.copy_in(In::new(msg.addr + 4, msg.cage), &mut text)?;
    if kind < 1 {
        return Err(Errno::EINVAL);
    }
    let message = Message { kind, payer: cx.cage.id, text };
    let mut waited = false;
    loop {
        let (event, seen) = {
            let mut state = cx.kernel.ipc.lock();
            let there = state.messages;
            let queue = match state.queues.permitted(cx, id, WRITE) {
                // It was there.
                Err(Errno::EINVAL) if waited => return Err(Errno::EIDRM),
                queue => &mut queue?.value,
            };
            let seen = queue.changed.seen();
            if queue.has_room(&message) {
                if there >= MOST_MESSAGES {
                    return Err(Errno::ENOMEM);
                }
                cx.cage.memory.map().charge(message.cost())?;
                queue.send(message, cx.cage.id.0);
                state.messages += 1;
                return Ok(());
            }
            if flags.cast_unsigned() & IPC_NOWAIT != 0 {
                return Err(Errno::EAGAIN);
            }
            (Arc::clone(&queue.changed), seen)
        };
        waited = true;
        wait(cx, &event, seen, &Deadline::Never)?;
    }
}

/// msgrcv(2). MSG_COPY is ENOSYS.
pub(crate) fn msgrcv(cx: &Ctx<'_>, id: i32, msg: Out<i32>, size: Len, kind: i32, flags: i32) -> Result<usize> {
    let flags = flags.cast_unsigned();
    if flags & MSG_COPY != 0 {
        return Err(Errno::ENOSYS);
    }
    // The size is a long that must not be negative.
    let size = u32::try_from(size.0 & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    let room = usize::try_from(size.cast_signed()).map_err(|_| Errno::EINVAL)?;
    let mut waited = false;
    loop {
        let (event, seen) = {
            let mut state = cx.kernel.ipc.lock();
            let queue = match state.queues.permitted(cx, id, READ) {
                // It was there.
                Err(Errno::EINVAL) if waited => return Err(Errno::EIDRM),
                queue => &mut queue?.value,
            };
            let seen = queue.changed.seen();
            if let Some(message) = queue.receive(kind, room, flags, cx.cage.id.0)? {
                state.messages -= 1;
                release(cx.kernel, message.payer, message.cost());
                drop(state);
                let text = &message.text[..message.text.len().min(room)];
                cx.store(msg, &message.kind)?;
                cx.copy_out(Out::new(msg.addr + 4, msg.cage), text)?;
                return Ok(text.len());
            }
            if flags & IPC_NOWAIT != 0 {
                return Err(Errno::ENOMSG);
            }
            (Arc::clone(&queue.changed), seen)
        };
        waited = true;
        wait(cx, &event, seen, &Deadline::Never)?;
    }
}

/// msgctl(2)
pub(crate) fn msgctl(cx: &Ctx<'_>, id: i32, cmd: i32, buf: InOut<MsqidDs>) -> Result<i32> {
    let queues = &cx.kernel.ipc;
    match command(cmd) {
        how @ (IPC_STAT | MSG_STAT | MSG_STAT_ANY) => {
            let (status, result) = {
                let mut state = queues.lock();
                let (id, result) =
                    if how == IPC_STAT { (id, 0) } else { state.queues.at(cx, id).map(|id| (id, id))? };
                let object = state.queues.permitted(cx, id, if how == MSG_STAT_ANY { 0 } else { READ })?;
                (object.value.to_guest(&object.permissions), result)
            };
            cx.store(cx.writing(buf), &status).map(|()| result)
        }
        how @ (IPC_INFO | MSG_INFO) => {
            /// Values that Linux reports but no longer uses: a segment's size, and how many there
            /// are.
            const SEGMENT: [usize; 2] = [16, 0xffff];
            let (count, messages, bytes) = {
                let state = queues.lock();
                let held = state.queues.objects(cx).map(|(_, object)| object.value.holds());
                held.fold((0, 0, 0), |sum, queue| (sum.0 + 1, sum.1 + queue.0, sum.2 + queue.1))
            };
            let (pool, map, most) =
                if how == MSG_INFO { (count, messages, bytes) } else { (MOST * ROOM / 1024, ROOM, MOST_MESSAGES) };
            tell_all(cx, buf, count, &[pool, map, LONGEST, ROOM, MOST, SEGMENT[0], most, SEGMENT[1]])
        }
        IPC_SET => {
            let new: MsqidDs = cx.load(cx.reading(buf))?;
            let mut state = queues.lock();
            let object = state.queues.owned(cx, id)?;
            object.value.set_room(new.qbytes)?;
            object.permissions.set(&new.perm).map(|()| 0)
        }
        IPC_RMID => {
            let mut state = queues.lock();
            let queue = state.queues.remove(cx, id)?;
            state.messages -= queue.holds().0;
            queue.messages().for_each(|message| release(cx.kernel, message.payer, message.cost()));
            queue.changed.notify_all();
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}
