//! Waiting for signals.

use lind_abi::layout::{Siginfo, Sigset, Timespec};
use lind_abi::{Errno, In, Len, Out, Result, Signal};

use super::{check_size, own_thread};
use crate::cage::signal::{self, UNBLOCKABLE};
use crate::call::Ctx;
use crate::sys::wait::{Deadline, mask};

/// pause(2)
pub(crate) fn pause(cx: &Ctx<'_>) -> Result<()> {
    own_thread(cx)?;
    Err(until_signal(cx))
}

/// sigsuspend(2)
pub(crate) fn rt_sigsuspend(cx: &Ctx<'_>, set: In<Sigset>, size: Len) -> Result<()> {
    check_size(size)?;
    // Unlike elsewhere, NULL is not a valid mask here.
    let _: Sigset = cx.load(set)?;
    let masked = mask(cx, set, size)?;
    let errno = until_signal(cx);
    masked.done(true);
    Err(errno)
}

/// Waits until the thread has a signal to take.
fn until_signal(cx: &Ctx<'_>) -> Errno {
    loop {
        let seen = cx.cage.changed.seen();
        if cx.has_signals() && !cx.again(&Err::<(), _>(Errno::EINTR)) {
            return Errno::EINTR;
        }
        // However the wait ends, the question is asked again.
        let _ = cx.waiting(|| cx.cage.changed.wait(seen, None));
    }
}

/// sigtimedwait(2), sigwait(3).
pub(crate) fn rt_sigtimedwait(
    cx: &Ctx<'_>,
    set: In<Sigset>,
    info: Out<Siginfo>,
    timeout: In<Timespec>,
    size: Len,
) -> Result<Signal> {
    check_size(size)?;
    let thread = own_thread(cx)?;
    let wanted = cx.load(set)?.bits & !UNBLOCKABLE;
    let deadline = Deadline::load(cx, timeout)?;
    loop {
        let seen = cx.cage.changed.seen();
        // A signal that is waited for is taken here, even one that is not blocked and has a
        // handler.
        if let Some(came) = signal::take_waited(thread, wanted) {
            cx.store_if(info, &came.to_guest())?;
            return Ok(Signal(came.signal.into()));
        }
        if deadline.has_passed() {
            return Err(Errno::EAGAIN);
        }
        if cx.has_signals() && !cx.again(&Err::<(), _>(Errno::EINTR)) {
            return Err(Errno::EINTR);
        }
        let end = deadline.time();
        let _ = cx.waiting(|| cx.cage.changed.wait(seen, end.as_ref()));
    }
}
