//! Scheduling: every cage has the ordinary policy.

use lind_abi::layout::Timespec;
use lind_abi::{Addr, Errno, In, Out, Pid, Result};

use super::on_process;
use crate::call::Ctx;

const SCHED_OTHER: i32 = 0;
const SCHED_FIFO: i32 = 1;
const SCHED_RR: i32 = 2;
const SCHED_BATCH: i32 = 3;
const SCHED_IDLE: i32 = 5;
const SCHED_DEADLINE: i32 = 6;

/// sched_get_priority_max(2)
pub(crate) fn sched_get_priority_max(_cx: &Ctx<'_>, policy: i32) -> Result<i32> {
    priorities(policy).map(|(_, max)| max)
}

/// sched_get_priority_min(2)
pub(crate) fn sched_get_priority_min(_cx: &Ctx<'_>, policy: i32) -> Result<i32> {
    priorities(policy).map(|(min, _)| min)
}

fn priorities(policy: i32) -> Result<(i32, i32)> {
    match policy {
        SCHED_FIFO | SCHED_RR => Ok((1, 99)),
        SCHED_OTHER | SCHED_BATCH | SCHED_IDLE | SCHED_DEADLINE => Ok((0, 0)),
        _ => Err(Errno::EINVAL),
    }
}

/// sched_rr_get_interval(2): there is no time slice to tell of.
pub(crate) fn sched_rr_get_interval(cx: &Ctx<'_>, pid: Pid, interval: Out<Timespec>) -> Result<()> {
    on_known(cx, pid)?;
    cx.store(interval, &Timespec::default())
}

/// sched_getscheduler(2)
pub(crate) fn sched_getscheduler(cx: &Ctx<'_>, pid: Pid) -> Result<i32> {
    on_known(cx, pid)?;
    Ok(SCHED_OTHER)
}

/// sched_getparam(2): struct sched_param begins with the priority, and the rest is libc's.
pub(crate) fn sched_getparam(cx: &Ctx<'_>, pid: Pid, param: Addr) -> Result<()> {
    on_known(cx, pid)?;
    cx.store(Out::new(param.0, cx.cage.id), &0_i32)
}

/// sched_setparam(2)
pub(crate) fn sched_setparam(cx: &Ctx<'_>, pid: Pid, param: Addr) -> Result<()> {
    sched_setscheduler(cx, pid, SCHED_OTHER, param).map(drop)
}

/// sched_setscheduler(2): EPERM for what needs a privilege, and for any change.
pub(crate) fn sched_setscheduler(cx: &Ctx<'_>, pid: Pid, policy: i32, param: Addr) -> Result<i32> {
    /// May be added to a policy.
    const SCHED_RESET_ON_FORK: i32 = 0x4000_0000;
    let priority: i32 = cx.load(In::new(param.0, cx.cage.id))?;
    on_known(cx, pid)?;
    let policy = policy & !SCHED_RESET_ON_FORK;
    let (min, max) = priorities(policy)?;
    if !(min..=max).contains(&priority) {
        return Err(Errno::EINVAL);
    }
    if policy == SCHED_OTHER { Ok(SCHED_OTHER) } else { Err(Errno::EPERM) }
}

fn on_known(cx: &Ctx<'_>, pid: Pid) -> Result<()> {
    if pid.0 < 0 { Err(Errno::EINVAL) } else { on_process(cx, pid, |_| Ok(())) }
}
