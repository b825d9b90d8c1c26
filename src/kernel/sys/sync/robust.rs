//! Lists of robust futexes.

use std::sync::atomic::Ordering;

use lind_abi::layout::RobustList;
use lind_abi::{Addr, Errno, Len, Out, Pid, Result};

use crate::call::Ctx;

/// set_robust_list(2)
pub(crate) fn set_robust_list(cx: &Ctx<'_>, head: Addr, len: Len) -> Result<()> {
    if len.0 != size_of::<RobustList>() as u64 {
        return Err(Errno::EINVAL);
    }
    cx.thread.at_end.robust_list.store(head.0, Ordering::Release);
    Ok(())
}

/// get_robust_list(2), of this thread or another one of its cage. EPERM for those of other cages.
pub(crate) fn get_robust_list(cx: &Ctx<'_>, pid: Pid, head: Out<u32>, len: Out<u32>) -> Result<()> {
    let tid = u32::try_from(pid.0).map_err(|_| Errno::ESRCH)?;
    let list = if tid == 0 || tid == cx.thread.tid {
        cx.thread.at_end.robust_list.load(Ordering::Acquire)
    } else if let Some(thread) = cx.cage.thread(tid) {
        thread.at_end.robust_list.load(Ordering::Acquire)
    } else {
        let exists = cx.kernel.cages.all().iter().any(|cage| cage.thread(tid).is_some());
        return Err(if exists { Errno::EPERM } else { Errno::ESRCH });
    };
    cx.store(head, &u32::try_from(list).map_err(|_| Errno::EFAULT)?)?;
    cx.store(len, &u32::try_from(size_of::<RobustList>()).map_err(|_| Errno::EFAULT)?)
}
