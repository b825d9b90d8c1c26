//! The signal mask that a call has for as long as it waits.

use std::sync::atomic::Ordering;

use lind_abi::layout::Sigset;
use lind_abi::{Errno, In, Len, Result};

use crate::cage::Thread;
use crate::call::Ctx;

/// SIGKILL and SIGSTOP cannot be blocked.
const UNBLOCKABLE: u64 = 1 << 8 | 1 << 18;

/// Restores a thread's mask when the call is over.
pub(super) struct Masked<'a>(Option<(&'a Thread, u64)>);

/// Sets the mask that a guest gives for a call; NULL leaves it as it is.
///
/// # Errors
/// EINVAL unless `size` is 8; EFAULT.
pub(super) fn mask<'a>(cx: &'a Ctx<'_>, set: In<Sigset>, size: Len) -> Result<Masked<'a>> {
    if set.is_null() {
        return Ok(Masked(None));
    }
    if size.0 != size_of::<Sigset>() as u64 {
        return Err(Errno::EINVAL);
    }
    let set: Sigset = cx.load(set)?;
    let before = cx.thread.mask.swap(set.bits & !UNBLOCKABLE, Ordering::AcqRel);
    Ok(Masked(Some((cx.thread, before))))
}

impl Drop for Masked<'_> {
    fn drop(&mut self) {
        if let Some((thread, before)) = self.0 {
            thread.mask.store(before, Ordering::Release);
        }
    }
}
