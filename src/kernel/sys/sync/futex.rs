//! futex(2).
//!
//! A guest's word is a word of the host's, so the host's futexes work: private ones are keyed by
//! its address, which only this cage has, others by the memory object behind it.

use lind_abi::flags::FutexOp;
use lind_abi::layout::Timespec;
use lind_abi::{Errno, In, InOut, Len, Result};

use crate::call::Ctx;
use crate::host::futex as host;
use crate::mem::HostRange;
use crate::spin;
use crate::sys::wait::Deadline;

use super::inherit;

const PRIVATE: u32 = 128;
pub(super) const CLOCK_REALTIME: u32 = 256;
/// FUTEX_BITSET_MATCH_ANY
const ANY: u32 = u32::MAX;

/// futex(2). FUTEX_CMP_REQUEUE_PI and its like are ENOSYS.
pub(crate) fn futex(
    cx: &Ctx<'_>,
    addr: InOut<u32>,
    op: FutexOp,
    value: u32,
    timeout: In<Timespec>,
    addr2: InOut<u32>,
    value3: u32,
) -> Result<i32> {
    let flags = op.0 & (PRIVATE | CLOCK_REALTIME);
    let realtime = flags & CLOCK_REALTIME != 0;
    let command = op.0 & !flags;
    if realtime && command != FutexOp::FUTEX_WAIT_BITSET {
        return Err(Errno::ENOSYS);
    }
    let woken = match command {
        FutexOp::FUTEX_WAIT => {
            // An absolute time, so that the wait can be resumed; the host measures it on the
            // monotonic clock.
            let deadline = match Deadline::load(cx, timeout)? {
                Deadline::Never => None,
                Deadline::Now => Some(Timespec::default()),
                Deadline::At(time) => Some(time),
            };
            let op = FutexOp::FUTEX_WAIT_BITSET | flags;
            let word = word(cx, addr)?;
            spin::for_word(cx, || cx.load(cx.reading(addr)) != Ok(value));
            cx.blocking(|| host::wait(word, op, value, deadline.as_ref(), ANY))
        }
        FutexOp::FUTEX_WAIT_BITSET => {
            let deadline = if timeout.is_null() { None } else { Some(cx.load_timespec(timeout)?) };
            let word = word(cx, addr)?;
            spin::for_word(cx, || cx.load(cx.reading(addr)) != Ok(value));
            cx.blocking(|| host::wait(word, op.0, value, deadline.as_ref(), value3))
        }
        FutexOp::FUTEX_WAKE | FutexOp::FUTEX_WAKE_BITSET => host::wake(word(cx, addr)?, op.0, value, 0, None, value3),
        FutexOp::FUTEX_REQUEUE | FutexOp::FUTEX_CMP_REQUEUE | FutexOp::FUTEX_WAKE_OP => {
            // The argument of the timeout holds a count.
            let value2 = u32::try_from(timeout.addr & u64::from(u32::MAX)).map_err(|_| Errno::EINVAL)?;
            host::wake(word(cx, addr)?, op.0, value, value2, Some(word(cx, addr2)?), value3)
        }
        FutexOp::FUTEX_LOCK_PI => {
            let deadline = if timeout.is_null() { None } else { Some(cx.load_timespec(timeout)?) };
            inherit::lock(cx, addr, flags, deadline.as_ref()).map(|()| 0)
        }
        FutexOp::FUTEX_TRYLOCK_PI => inherit::try_lock(cx, addr).map(|()| 0),
        FutexOp::FUTEX_UNLOCK_PI => inherit::unlock(cx, addr, flags).map(|()| 0),
        _ => Err(Errno::ENOSYS),
    };
    i32::try_from(woken?).map_err(|_| Errno::EINVAL)
}

/// The word at an address.
///
/// # Errors
/// EINVAL unless it is aligned; EFAULT.
pub(super) fn word<'c>(cx: &'c Ctx<'_>, at: InOut<u32>) -> Result<HostRange<'c>> {
    if !at.addr.is_multiple_of(4) {
        return Err(Errno::EINVAL);
    }
    cx.output(cx.writing(at).cast(), Len(4))
}
