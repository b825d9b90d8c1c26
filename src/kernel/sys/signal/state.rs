//! The calls about dispositions, masks and pending signals.

use std::sync::atomic::Ordering;

use lind_abi::flags::SigmaskHow;
use lind_abi::layout::{Sigaction, Sigset, Stack, Zero};
use lind_abi::{Errno, In, Len, Out, Result, Signal};

use super::{SET_SIZE, check_size, number, own_thread};
use crate::cage::signal::{SS_AUTODISARM, UNBLOCKABLE, bit, flag};
use crate::call::Ctx;

/// The flags that Linux knows, and one of our libc; others are dropped silently, so that programs
/// can find out which are supported.
const SA_FLAGS: u32 = 0xdc00_0807 | flag::SA_LIND_INTERRUPT;

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
    let before = thread.mask.load(Ordering::Relaxed);
    if !set.is_null() {
        let set = cx.load(set)?.bits;
        let mask = match how.0 {
            SigmaskHow::SIG_BLOCK => before | set,
            SigmaskHow::SIG_UNBLOCK => before & !set,
            SigmaskHow::SIG_SETMASK => set,
            _ => return Err(Errno::EINVAL),
        };
        thread.set_mask(cx.kernel, mask);
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
    let blocked = thread.pending() & thread.mask.load(Ordering::Relaxed);
    let len = usize::try_from(size.0).map_err(|_| Errno::EINVAL)?;
    cx.copy_out(set.cast(), &blocked.to_le_bytes()[..len])
}

/// sigaltstack(2)
pub(crate) fn sigaltstack(cx: &Ctx<'_>, new: In<Stack>, old: Out<Stack>) -> Result<()> {
    const SS_ONSTACK: i32 = 1;
    const SS_DISABLE: i32 = 2;
    const MINSIGSTKSZ: u32 = 2048;
    let thread = own_thread(cx)?;
    let new = if new.is_null() { None } else { Some(cx.load(new)?) };
    let on_it = thread.on_alt_stack();
    let mut stack = thread.alt_stack();
    let before = *stack;
    if let Some(new) = new {
        if on_it {
            return Err(Errno::EPERM);
        }
        *stack = match new.flags & !SS_AUTODISARM {
            SS_DISABLE => Stack::ZERO,
            0 | SS_ONSTACK if new.size < MINSIGSTKSZ => return Err(Errno::ENOMEM),
            0 | SS_ONSTACK => Stack { flags: new.flags & SS_AUTODISARM, ..new },
            _ => return Err(Errno::EINVAL),
        };
    }
    drop(stack);
    let state = match before.size {
        0 => SS_DISABLE,
        _ if on_it => SS_ONSTACK,
        _ => 0,
    };
    cx.store_if(old, &Stack { flags: state | before.flags, ..before })
}
