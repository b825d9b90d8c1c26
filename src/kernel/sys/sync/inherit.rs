//! Futexes with priority inheritance: FUTEX_LOCK_PI and its like.
//!
//! The word is Linux's: the holder of the lock, whether somebody waits, whether a holder has died.
//! The host cannot keep it, since its threads have other numbers. No priority is inherited: every
//! cage has the ordinary policy, for which Linux inherits none that counts either. A thread that
//! has waited takes the lock with the mark that somebody waits, since others may, so that its
//! release comes here.

use lind_abi::flags::FutexOp;
use lind_abi::layout::Timespec;
use lind_abi::{Errno, InOut, Result};

use super::futex::{CLOCK_REALTIME, word};
use crate::call::Ctx;
use crate::host::futex as host;
use crate::mem::GuestMemory;

const TID: u32 = 0x3fff_ffff;
const OWNER_DIED: u32 = 0x4000_0000;
const WAITERS: u32 = 0x8000_0000;
const ANY: u32 = u32::MAX;

/// Waits until the lock is free, until `deadline` of the realtime clock, and takes it.
pub(super) fn lock(cx: &Ctx<'_>, at: InOut<u32>, private: u32, deadline: Option<&Timespec>) -> Result<()> {
    let memory = cx.memory(at.cage)?;
    let place = word(cx, at)?;
    let mut marks = 0;
    loop {
        let held = match take(cx, memory, at.addr, marks)? {
            Taken::Yes => return Ok(()),
            Taken::HeldBy(held) => held,
        };
        let waited_on = held | WAITERS;
        if held != waited_on && memory.atomic_compare_exchange(at.addr, held, waited_on)? != held {
            continue;
        }
        let op = FutexOp::FUTEX_WAIT_BITSET | CLOCK_REALTIME | private;
        match cx.blocking(|| host::wait(place, op, waited_on, deadline, ANY)) {
            Ok(_) | Err(Errno::EAGAIN) => marks = WAITERS,
            Err(errno) => return Err(errno),
        }
    }
}

/// Takes the lock if it is free. EAGAIN if it is not.
pub(super) fn try_lock(cx: &Ctx<'_>, at: InOut<u32>) -> Result<()> {
    word(cx, at)?;
    match take(cx, cx.memory(at.cage)?, at.addr, 0)? {
        Taken::Yes => Ok(()),
        Taken::HeldBy(_) => Err(Errno::EAGAIN),
    }
}

/// Releases the lock, and wakes one that waits for it. EPERM if another thread holds it.
pub(super) fn unlock(cx: &Ctx<'_>, at: InOut<u32>, private: u32) -> Result<()> {
    let memory = cx.memory(at.cage)?;
    let place = word(cx, at)?;
    let mut held = memory.atomic_load(at.addr)?;
    loop {
        if held & TID != cx.thread.tid {
            return Err(Errno::EPERM);
        }
        let found = memory.atomic_compare_exchange(at.addr, held, 0)?;
        if found == held {
            break;
        }
        held = found;
    }
    if held & WAITERS != 0 {
        host::wake(place, FutexOp::FUTEX_WAKE | private, 1, 0, None, 0)?;
    }
    Ok(())
}

enum Taken {
    Yes,
    HeldBy(u32),
}

fn take(cx: &Ctx<'_>, memory: &GuestMemory, at: u64, marks: u32) -> Result<Taken> {
    let own = cx.thread.tid;
    let mut held = memory.atomic_load(at)?;
    loop {
        match held & TID {
            0 => {}
            holder if holder == own => return Err(Errno::EDEADLK),
            // A robust lock is released when its holder dies; for another lock Linux too returns
            // that its holder does not exist.
            holder if !is_there(cx, holder) && memory.atomic_load(at)? == held => return Err(Errno::ESRCH),
            _ => return Ok(Taken::HeldBy(held)),
        }
        let found = memory.atomic_compare_exchange(at, held, held & (OWNER_DIED | WAITERS) | marks | own)?;
        if found == held {
            return Ok(Taken::Yes);
        }
        held = found;
    }
}

/// Whether a thread of the caller's cage, or of any, has this number.
fn is_there(cx: &Ctx<'_>, tid: u32) -> bool {
    cx.cage.thread(tid).is_some() || cx.kernel.cages.all().iter().any(|cage| cage.thread(tid).is_some())
}
