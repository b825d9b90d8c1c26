//! The signal mask that a call has for as long as it waits.

use std::sync::atomic::Ordering;

use lind_abi::layout::Sigset;
use lind_abi::{Errno, In, Len, Result};

use crate::cage::Thread;
use crate::cage::signal::{UNBLOCKABLE, act_on_pending};
use crate::call::Ctx;

/// Restores a thread's mask when the call is over.
pub(super) struct Masked<'a>(Option<(&'a Thread, u64)>);

/// Sets the mask that a guest gives for a call; NULL leaves it as it is.
///
/// # Errors
/// EINVAL unless `size` is 8; EFAULT; ESRCH on behalf of a cage that has no thread on this stack.
pub(super) fn mask<'a>(cx: &'a Ctx<'_>, set: In<Sigset>, size: Len) -> Result<Masked<'a>> {
    if set.is_null() {
        return Ok(Masked(None));
    }
    if size.0 != size_of::<Sigset>() as u64 {
        return Err(Errno::EINVAL);
    }
    if cx.thread.cage.id != cx.cage.id {
        return Err(Errno::ESRCH);
    }
    let set: Sigset = cx.load(set)?;
    let before = cx.thread.mask.swap(set.bits & !UNBLOCKABLE, Ordering::AcqRel);
    act_on_pending(cx.kernel, cx.thread);
    Ok(Masked(Some((cx.thread, before))))
}

impl Drop for Masked<'_> {
    fn drop(&mut self) {
        if let Some((thread, before)) = self.0 {
            thread.mask.store(before, Ordering::Release);
        }
    }
}
