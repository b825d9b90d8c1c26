//! exit(2), and waiting for children: wait4(2), waitid(2).

use lind_abi::flags::WaitFlags;
use lind_abi::layout::{Rusage, Siginfo};
use lind_abi::{CageId, Errno, Fd, NoReturn, Out, Pid, Result};

use super::process_behind;
use crate::cage::{Next, Status, Wait, Which, wait_child};
use crate::call::Ctx;

/// exit(2): only the calling thread. The thread ends when control is back at its own call, so a
/// grate that forwards the call can finish its bookkeeping; for the grate the call returns 0.
pub(crate) fn exit(cx: &Ctx<'_>, status: i32) -> Result<NoReturn> {
    leave(cx, Next::ExitThread(status))
}

/// exit_group(2). See `exit`.
pub(crate) fn exit_group(cx: &Ctx<'_>, status: i32) -> Result<NoReturn> {
    leave(cx, Next::Exit(Status::exited(status)))
}

fn leave(cx: &Ctx<'_>, next: Next) -> Result<NoReturn> {
    if cx.thread.cage.id != cx.cage.id {
        // No thread of that cage is on this stack, so none can be ended.
        return Err(Errno::ESRCH);
    }
    cx.thread.set_next(next);
    Ok(NoReturn)
}

/// Flags that only Linux has.
const OF_LINUX: u32 = WaitFlags::__WALL | WaitFlags::__WCLONE | WaitFlags::__WNOTHREAD;

fn is_for_clones(options: WaitFlags) -> bool {
    options.has(WaitFlags::__WCLONE) && !options.has(WaitFlags::__WALL)
}

/// wait4(2). 0 means the children in the cage's own group, less than -1 those in a group.
pub(crate) fn wait4(cx: &Ctx<'_>, pid: Pid, status: Out<i32>, options: WaitFlags, usage: Out<Rusage>) -> Result<Pid> {
    let known = WaitFlags::WNOHANG | WaitFlags::WUNTRACED | WaitFlags::WCONTINUED | OF_LINUX;
    if options.beyond(known) {
        return Err(Errno::EINVAL);
    }
    let which = match pid.0 {
        -1 => Which::Any,
        0 => Which::Group(cx.cage.group()),
        i32::MIN => return Err(Errno::ESRCH),
        pid if pid > 0 => Which::Cage(CageId(pid.unsigned_abs())),
        pid => Which::Group(pid.unsigned_abs()),
    };
    let wait = Wait {
        which,
        ended: true,
        stopped: options.has(WaitFlags::WUNTRACED),
        continued: options.has(WaitFlags::WCONTINUED),
        no_hang: options.has(WaitFlags::WNOHANG),
        own: options.has(WaitFlags::__WNOTHREAD),
        clones: is_for_clones(options),
        keep: false,
    };
    let Some(found) = wait_child(cx, &wait)? else { return Ok(Pid(0)) };
    cx.store_if(status, &found.change.wait_word())?;
    cx.store_if(usage, &found.usage)?;
    Ok(Pid(found.id.0.cast_signed()))
}

/// waitid(2)
pub(crate) fn waitid(
    cx: &Ctx<'_>,
    kind: i32,
    id: Pid,
    info: Out<Siginfo>,
    options: WaitFlags,
    usage: Out<Rusage>,
) -> Result<()> {
    const P_ALL: i32 = 0;
    const P_PID: i32 = 1;
    const P_PGID: i32 = 2;
    const P_PIDFD: i32 = 3;
    let wanted = WaitFlags::WEXITED | WaitFlags::WUNTRACED | WaitFlags::WCONTINUED;
    let known = wanted | WaitFlags::WNOHANG | WaitFlags::WNOWAIT | OF_LINUX;
    if options.beyond(known) || options.0 & wanted == 0 {
        return Err(Errno::EINVAL);
    }
    let mut busy = false;
    let which = match (kind, id.0) {
        (P_ALL, _) => Which::Any,
        (P_PID, 1..) => Which::Cage(CageId(id.0.unsigned_abs())),
        (P_PGID, 0) => Which::Group(cx.cage.group()),
        (P_PGID, 1..) => Which::Group(id.0.unsigned_abs()),
        (P_PIDFD, number @ 0..) => {
            let (id, nonblock) = process_behind(cx, Fd { number, cage: cx.cage.id })?;
            busy = nonblock && !options.has(WaitFlags::WNOHANG);
            Which::Cage(id)
        }
        _ => return Err(Errno::EINVAL),
    };
    let wait = Wait {
        which,
        ended: options.has(WaitFlags::WEXITED),
        stopped: options.has(WaitFlags::WUNTRACED),
        continued: options.has(WaitFlags::WCONTINUED),
        no_hang: busy || options.has(WaitFlags::WNOHANG),
        own: options.has(WaitFlags::__WNOTHREAD),
        clones: is_for_clones(options),
        keep: options.has(WaitFlags::WNOWAIT),
    };
    let found = wait_child(cx, &wait)?;
    if busy && found.is_none() {
        return Err(Errno::EAGAIN);
    }
    // As on Linux only these fields are written, and zeros if there is nothing to report.
    let mut siginfo = Siginfo::default();
    if let Some(found) = &found {
        let (code, status) = found.change.code_and_status();
        (siginfo.signo, siginfo.code) = (17, code);
        siginfo.fields[..3].copy_from_slice(&[found.id.0, found.uid, status]);
        cx.store_if(usage, &found.usage)?;
    }
    cx.store_if(info, &siginfo)
}
