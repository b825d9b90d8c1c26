//! Ending, and waiting for children that ended.

use lind_abi::flags::WaitFlags;
use lind_abi::layout::Rusage;
use lind_abi::{CageId, Errno, NoReturn, Out, Pid, Result};

use crate::cage::{Next, Status, wait_child};
use crate::call::Ctx;

/// exit(2): only the calling thread. What is left to do happens when control is back at the thread's own call, so a
/// grate that forwards the call can finish its bookkeeping; for it the call returns 0.
pub(crate) fn exit(cx: &Ctx<'_>, status: i32) -> Result<NoReturn> {
    leave(cx, Next::ExitThread(status))
}

/// exit_group(2). See `exit`.
pub(crate) fn exit_group(cx: &Ctx<'_>, status: i32) -> Result<NoReturn> {
    leave(cx, Next::Exit(Status::exited(status)))
}

fn leave(cx: &Ctx<'_>, next: Next) -> Result<NoReturn> {
    if cx.thread.cage.id != cx.cage.id {
        // There is no thread of that cage on this stack whose flow could change.
        return Err(Errno::ESRCH);
    }
    cx.thread.set_next(next);
    Ok(NoReturn)
}

/// wait4(2). Process groups do not exist yet: 0 means any child, as -1 does.
pub(crate) fn wait4(cx: &Ctx<'_>, pid: Pid, status: Out<i32>, options: WaitFlags, usage: Out<Rusage>) -> Result<Pid> {
    let known =
        WaitFlags::WNOHANG | WaitFlags::WUNTRACED | WaitFlags::WCONTINUED | WaitFlags::__WALL | WaitFlags::__WCLONE;
    if options.beyond(known) {
        return Err(Errno::EINVAL);
    }
    let which = match pid.0 {
        0 | -1 => None,
        pid => Some(CageId(u32::try_from(pid).map_err(|_| Errno::ECHILD)?)),
    };
    let no_hang = options.has(WaitFlags::WNOHANG);
    let Some((id, how, used)) = wait_child(cx.kernel, cx.thread, cx.cage, which, no_hang)? else {
        return Ok(Pid(0));
    };
    cx.store_if(status, &how.wait_word())?;
    cx.store_if(usage, &used)?;
    Ok(Pid(id.0.cast_signed()))
}
