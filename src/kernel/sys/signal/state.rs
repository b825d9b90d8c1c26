//! What signals do, which are blocked, which are pending.

use std::sync::atomic::Ordering;

use lind_abi::flags::SigmaskHow;
use lind_abi::layout::{Sigaction, Sigset};
use lind_abi::{Errno, In, Len, Out, Result, Signal};

use super::number;
use crate::cage::signal::{self, UNBLOCKABLE, bit};
use crate::call::Ctx;

/// The size of a signal set, which callers pass for checking.
const SET_SIZE: u64 = 8;
/// The flags Linux knows; it drops others silently, so that programs can ask which there are.
const SA_FLAGS: u32 = 0xdc00_0807;

fn check_size(size: Len) -> Result<()> {
    if size.0 == SET_SIZE { Ok(()) } else { Err(Errno::EINVAL) }
}

/// rt_sigaction(2)
pub(crate) fn rt_sigaction(
    cx: &Ctx<'_>,
    sig: Signal,
    act: In<Sigaction>,
    old: Out<Sigaction>,
    size: Len,
) -> Result<()> {
    check_size(size)?;
    let new = if act.is_null() { None } else { Some(cx.load(act)?) };
    let signal = number(sig)?;
    if new.is_some() && bit(signal) & UNBLOCKABLE != 0 {
        return Err(Errno::EINVAL);
    }
    let [low, high] = [UNBLOCKABLE & 0xffff_ffff, UNBLOCKABLE >> 32].map(|half| u32::try_from(half).unwrap_or(0));
    let new = new.map(|new: Sigaction| Sigaction {
        flags: new.flags & SA_FLAGS,
        mask: [new.mask[0] & !low, new.mask[1] & !high],
        ..new
    });
    let before = cx.cage.set_action(signal, new);
    if cx.thread.cage.id == cx.cage.id {
        signal::act_on_pending(cx.kernel, cx.thread);
    }
    cx.store_if(old, &before)
}

/// rt_sigprocmask(2)
pub(crate) fn rt_sigprocmask(
    cx: &Ctx<'_>,
    how: SigmaskHow,
    set: In<Sigset>,
    old: Out<Sigset>,
    size: Len,
) -> Result<()> {
    check_size(size)?;
    let thread = own_thread(cx)?;
    let before = thread.mask.load(Ordering::Acquire);
    if !set.is_null() {
        let set = cx.load(set)?.bits & !UNBLOCKABLE;
        let mask = match how.0 {
            SigmaskHow::SIG_BLOCK => before | set,
            SigmaskHow::SIG_UNBLOCK => before & !set,
            SigmaskHow::SIG_SETMASK => set,
            _ => return Err(Errno::EINVAL),
        };
        thread.mask.store(mask, Ordering::Release);
        signal::act_on_pending(cx.kernel, thread);
    }
    cx.store_if(old, &Sigset { bits: before })
}

/// rt_sigpending(2)
pub(crate) fn rt_sigpending(cx: &Ctx<'_>, set: Out<Sigset>, size: Len) -> Result<()> {
    // Smaller sets are allowed here: the caller gets that many bytes.
    if size.0 > SET_SIZE {
        return Err(Errno::EINVAL);
    }
    let thread = own_thread(cx)?;
    let pending = thread.pending.load(Ordering::Acquire) | cx.cage.pending.load(Ordering::Acquire);
    let blocked = pending & thread.mask.load(Ordering::Acquire);
    let len = usize::try_from(size.0).map_err(|_| Errno::EINVAL)?;
    cx.copy_out(set.cast(), &blocked.to_le_bytes()[..len])
}

/// The thread whose mask a call means. ESRCH when it acts on a cage that has none on this stack.
fn own_thread<'a>(cx: &Ctx<'a>) -> Result<&'a crate::cage::Thread> {
    if cx.thread.cage.id == cx.cage.id { Ok(cx.thread) } else { Err(Errno::ESRCH) }
}
