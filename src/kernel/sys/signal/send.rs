//! Sending signals: to the cage itself, its threads, its group, and its descendants.

use lind_abi::{Errno, Pid, Result, Signal};

use super::number;
use crate::cage::signal;
use crate::cage::{Cage, Thread};
use crate::call::Ctx;
use crate::sys::process::{in_group, on_process};

/// kill(2). A group means those of its members that the cage may signal; -1 all its descendants.
pub(crate) fn kill(cx: &Ctx<'_>, pid: Pid, sig: Signal) -> Result<()> {
    let send = |cage: &Cage| match sig.0 {
        0 => Ok(()),
        _ => signal::send(cx.kernel, cx.thread, cage, number(sig)?),
    };
    if sig.0 != 0 {
        number(sig)?;
    }
    match pid.0 {
        0 => to_many(in_group(cx, cx.cage.settings().group), cx, send),
        -1 => to_many(cx.kernel.cages.all().into_iter().filter(|cage| cage.id != cx.cage.id), cx, send),
        group if group < 0 => to_many(in_group(cx, group.unsigned_abs()), cx, send),
        _ => on_process(cx, pid, send),
    }
}

/// ESRCH when there is nobody; EPERM when there is nobody the cage may signal.
fn to_many(
    cages: impl Iterator<Item = std::sync::Arc<Cage>>,
    cx: &Ctx<'_>,
    mut send: impl FnMut(&Cage) -> Result<()>,
) -> Result<()> {
    let mut outcome = Err(Errno::ESRCH);
    for cage in cages {
        if cage.id != cx.cage.id && !cage.descends_from(cx.cage.id) {
            outcome = outcome.or(Err(Errno::EPERM));
        } else {
            send(&cage)?;
            outcome = Ok(());
        }
    }
    outcome
}

/// tkill(2)
pub(crate) fn tkill(cx: &Ctx<'_>, tid: Pid, sig: Signal) -> Result<()> {
    to_thread(cx, None, tid, sig)
}

/// tgkill(2)
pub(crate) fn tgkill(cx: &Ctx<'_>, tgid: Pid, tid: Pid, sig: Signal) -> Result<()> {
    let group = u32::try_from(tgid.0).ok().filter(|&id| id > 0).ok_or(Errno::EINVAL)?;
    to_thread(cx, Some(group), tid, sig)
}

fn to_thread(cx: &Ctx<'_>, group: Option<u32>, tid: Pid, sig: Signal) -> Result<()> {
    let tid = u32::try_from(tid.0).ok().filter(|&id| id > 0).ok_or(Errno::EINVAL)?;
    if sig.0 != 0 {
        number(sig)?;
    }
    let send = |thread: &Thread| match sig.0 {
        _ if group.is_some_and(|group| group != thread.cage.id.0) => Err(Errno::ESRCH),
        0 => Ok(()),
        _ => signal::send_to_thread(cx.kernel, cx.thread, thread, number(sig)?),
    };
    if let Some(thread) = cx.cage.thread(tid) {
        return send(&thread);
    }
    let cages = cx.kernel.cages.all();
    let thread = cages.iter().find_map(|cage| cage.thread(tid)).ok_or(Errno::ESRCH)?;
    if thread.cage.descends_from(cx.cage.id) { send(&thread) } else { Err(Errno::EPERM) }
}
