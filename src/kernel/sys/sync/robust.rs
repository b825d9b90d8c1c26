//! Lists of robust futexes.

use std::sync::atomic::Ordering;

use lind_abi::layout::RobustList;
use lind_abi::{Addr, Errno, Len, Result};

use crate::call::Ctx;

/// set_robust_list(2). The list is kept; nobody walks it yet when the thread ends.
pub(crate) fn set_robust_list(cx: &Ctx<'_>, head: Addr, len: Len) -> Result<()> {
    if len.0 != size_of::<RobustList>() as u64 {
        return Err(Errno::EINVAL);
    }
    cx.thread.robust_list.store(head.0, Ordering::Release);
    Ok(())
}
