//! The signal mask that a call has for as long as it waits.

use lind_abi::layout::Sigset;
use lind_abi::{Errno, In, Len, Result};

use super::Deadline;
use crate::Kernel;
use crate::cage::Thread;
use crate::call::Ctx;

/// The mask of a thread for the time of a call.
pub(crate) struct Masked<'a> {
    kernel: &'a Kernel,
    before: Option<(&'a Thread, u64)>,
}

/// Sets the mask that a guest gives for a call; NULL leaves it as it is.
///
/// # Errors
/// EINVAL unless `size` is 8; EFAULT; ESRCH on behalf of a cage that has no thread on this stack.
pub(crate) fn mask<'a>(cx: &'a Ctx<'_>, set: In<Sigset>, size: Len) -> Result<Masked<'a>> {
    let mut masked = Masked { kernel: cx.kernel, before: None };
    if set.is_null() {
        return Ok(masked);
    }
    if size.0 != size_of::<Sigset>() as u64 {
        return Err(Errno::EINVAL);
    }
    if cx.thread.cage.id != cx.cage.id {
        return Err(Errno::ESRCH);
    }
    let set: Sigset = cx.load(set)?;
    masked.before = Some((cx.thread, cx.thread.set_mask(cx.kernel, set.bits)));
    Ok(masked)
}

impl Masked<'_> {
    /// Waits with this mask. A signal that it lets through ends the wait, but ready descriptors are
    /// looked at first: a wait that finds something is not interrupted.
    pub fn wait(self, cx: &Ctx<'_>, deadline: Deadline, wait: impl FnOnce(Deadline) -> Result<usize>) -> Result<usize> {
        let signals = self.before.is_some() && cx.has_signals();
        let mut result = wait(if signals { Deadline::Now } else { deadline });
        if signals && result == Ok(0) && !matches!(deadline, Deadline::Now) {
            result = cx.blocking(|| if cx.has_signals() { Err(Errno::EINTR) } else { Ok(0) });
        }
        self.done(result == Err(Errno::EINTR));
        result
    }

    /// Restores the mask. After an interruption the handlers run first, with the mask that let
    /// their signals through.
    pub fn done(self, interrupted: bool) {
        let Some((thread, before)) = self.before else { return };
        if interrupted {
            thread.restore_mask_later(before);
        } else {
            thread.set_mask(self.kernel, before);
        }
    }
}
