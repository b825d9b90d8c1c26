//! Sending signals: to a process, a thread, a group, all.
//!
//! [`signal::Permission`] decides which signals are permitted, except for SIGCONT, which goes to
//! all of the sender's session.

use std::cell::OnceCell;
use std::sync::Arc;

use lind_abi::layout::Siginfo;
use lind_abi::{CageId, Errno, Fd, In, Pid, Result, Signal};

use super::number;
use crate::cage::signal::{self, Info};
use crate::cage::{Cage, Thread};
use crate::call::Ctx;
use crate::fd::Kind;
use crate::sys::process::process_behind;

/// kill(2). A group, or -1, means those of its members that the cage may signal.
pub(crate) fn kill(cx: &Ctx<'_>, pid: Pid, sig: Signal) -> Result<()> {
    send_to(cx, pid, sig, |signal| Info::from(cx.cage, signal, Info::SI_USER))
}

/// rt_sigqueueinfo(2). A cage may claim only to itself that the kernel, kill(2) or tgkill(2) sent a
/// signal.
pub(crate) fn rt_sigqueueinfo(cx: &Ctx<'_>, pid: Pid, sig: Signal, info: In<Siginfo>) -> Result<()> {
    let info = cx.load(info)?;
    check_code(&info, pid.0.unsigned_abs() == cx.cage.id.0)?;
    if pid.0 <= 0 {
        return Err(Errno::ESRCH);
    }
    send_to(cx, pid, sig, |signal| Info::queued(signal, &info))
}

/// rt_tgsigqueueinfo(2). See `rt_sigqueueinfo`.
pub(crate) fn rt_tgsigqueueinfo(cx: &Ctx<'_>, tgid: Pid, tid: Pid, sig: Signal, info: In<Siginfo>) -> Result<()> {
    let info = cx.load(info)?;
    check_code(&info, tgid.0.unsigned_abs() == cx.cage.id.0)?;
    let group = positive(tgid)?;
    to_thread(cx, Some(group), tid, sig, |signal| Info::queued(signal, &info))
}

/// tkill(2)
pub(crate) fn tkill(cx: &Ctx<'_>, tid: Pid, sig: Signal) -> Result<()> {
    to_thread(cx, None, tid, sig, |signal| Info::from(cx.cage, signal, Info::SI_TKILL))
}

/// tgkill(2)
pub(crate) fn tgkill(cx: &Ctx<'_>, tgid: Pid, tid: Pid, sig: Signal) -> Result<()> {
    let group = positive(tgid)?;
    to_thread(cx, Some(group), tid, sig, |signal| Info::from(cx.cage, signal, Info::SI_TKILL))
}

/// pidfd_send_signal(2). Without an info it acts as kill(2). An open /proc/PID works as well as a
/// descriptor from pidfd_open(2).
pub(crate) fn pidfd_send_signal(cx: &Ctx<'_>, fd: Fd, sig: Signal, info: In<Siginfo>, flags: u32) -> Result<()> {
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let id = named_by(cx, fd)?;
    let to = Pid(id.0.cast_signed());
    if cx.kernel.cages.get(id).is_none() {
        return Err(Errno::ESRCH);
    }
    if info.is_null() {
        return kill(cx, to, sig);
    }
    let info = cx.load(info)?;
    if info.signo != sig.0 {
        return Err(Errno::EINVAL);
    }
    check_code(&info, id == cx.cage.id)?;
    send_to(cx, to, sig, |signal| Info::queued(signal, &info))
}

/// The process that a descriptor, or the directory it is open on, means.
fn named_by(cx: &Ctx<'_>, fd: Fd) -> Result<CageId> {
    let file = cx.file(fd)?;
    let Kind::Pseudo(place) = &file.kind else { return process_behind(cx, fd).map(|(id, _)| id) };
    let flags = rustix::fs::fcntl_getfl(file.host()).map_err(crate::host::errno)?;
    place.process().filter(|_| !flags.contains(rustix::fs::OFlags::PATH)).ok_or(Errno::EBADF)
}

fn check_code(info: &Siginfo, itself: bool) -> Result<()> {
    if (info.code >= 0 || info.code == Info::SI_TKILL) && !itself { Err(Errno::EPERM) } else { Ok(()) }
}

fn positive(id: Pid) -> Result<u32> {
    u32::try_from(id.0).ok().filter(|&id| id > 0).ok_or(Errno::EINVAL)
}

fn send_to(cx: &Ctx<'_>, pid: Pid, sig: Signal, info: impl Fn(u8) -> Info) -> Result<()> {
    let signal = if sig.0 == 0 { None } else { Some(number(sig)?) };
    let send = |cage: &Cage| match signal {
        None => Ok(()),
        Some(signal) => signal::send(cx.kernel, cage, info(signal)),
    };
    let in_group = |group: u32| cx.kernel.cages.all().into_iter().filter(move |cage| cage.group() == group);
    let to_many = |cages: &mut dyn Iterator<Item = Arc<Cage>>| {
        let cages = those_it_may_signal(cages, cx, signal)?;
        if let Some(signal) = signal {
            signal::send_to_all(cx.kernel, cages, info(signal));
        }
        Ok(())
    };
    match pid.0 {
        0 => to_many(&mut in_group(cx.cage.group())),
        // -1 leaves out the caller and the first cage, which is the others' init.
        -1 => {
            let first = cx.cage.ancestors().first().copied().unwrap_or(cx.cage.id);
            let all = cx.kernel.cages.all().into_iter();
            to_many(&mut all.filter(|cage| cage.id != cx.cage.id && cage.id != first))
        }
        i32::MIN => Err(Errno::ESRCH),
        group if group < 0 => to_many(&mut in_group(group.unsigned_abs())),
        id if id.unsigned_abs() == cx.cage.id.0 => send(cx.cage),
        id => {
            let cage = cage_of(cx, id.unsigned_abs()).ok_or(Errno::ESRCH)?;
            if may_signal(cx, &OnceCell::new(), &cage, signal) { send(&cage) } else { Err(Errno::EPERM) }
        }
    }
}

/// The cage with this id, or that has a thread with it. It may have ended and wait for its parent.
pub(crate) fn cage_of(cx: &Ctx<'_>, id: u32) -> Option<Arc<Cage>> {
    cx.kernel.cages.get(CageId(id)).or_else(|| cx.kernel.cages.all().into_iter().find(|c| c.thread(id).is_some()))
}

/// ESRCH when there is nobody; EPERM when there is nobody the cage may signal.
fn those_it_may_signal(
    cages: &mut dyn Iterator<Item = Arc<Cage>>,
    cx: &Ctx<'_>,
    signal: Option<u8>,
) -> Result<Vec<Arc<Cage>>> {
    let (over, mut found, mut any) = (OnceCell::new(), Vec::new(), false);
    for cage in cages {
        any = true;
        if may_signal(cx, &over, &cage, signal) {
            found.push(cage);
        }
    }
    match (any, found.is_empty()) {
        (_, false) => Ok(found),
        (true, true) => Err(Errno::EPERM),
        (false, true) => Err(Errno::ESRCH),
    }
}

fn to_thread(cx: &Ctx<'_>, group: Option<u32>, tid: Pid, sig: Signal, info: impl Fn(u8) -> Info) -> Result<()> {
    let tid = positive(tid)?;
    let signal = if sig.0 == 0 { None } else { Some(number(sig)?) };
    let send = |thread: &Thread| match signal {
        _ if group.is_some_and(|group| group != thread.cage.id.0) => Err(Errno::ESRCH),
        None => Ok(()),
        Some(signal) => signal::send_to_thread(cx.kernel, thread, info(signal)),
    };
    if tid == cx.thread.tid && cx.thread.cage.id == cx.cage.id {
        return send(cx.thread);
    }
    if let Some(thread) = cx.cage.thread(tid) {
        return send(&thread);
    }
    let cages = cx.kernel.cages.all();
    let thread = cages.iter().find_map(|cage| cage.thread(tid)).ok_or(Errno::ESRCH)?;
    if may_signal(cx, &OnceCell::new(), &thread.cage, signal) { send(&thread) } else { Err(Errno::EPERM) }
}

/// Whether the cage may signal another: see [`signal::Permission`]. `over` caches
/// [`signal::grates_over`].
fn may_signal(cx: &Ctx<'_>, over: &OnceCell<Vec<CageId>>, to: &Cage, signal: Option<u8>) -> bool {
    const SIGCONT: u8 = signal::number(lind_abi::flags::Signals::SIGCONT);
    let below = to.descends_from(cx.cage.id);
    if to.id == cx.cage.id || (below && signal::stands_over(cx.kernel, cx.cage.id, to)) {
        return true;
    }
    let over = || over.get_or_init(|| signal::grates_over(cx.kernel, cx.cage));
    if !below && over().iter().any(|&grate| !to.descends_from(grate)) {
        return false;
    }
    let (own, its) = {
        let own = cx.cage.settings();
        let own = (own.credentials.clone(), own.session);
        let its = to.settings();
        (own, (its.credentials.clone(), its.session))
    };
    signal::ids_allow(&own.0, its.0.uid) || (signal == Some(SIGCONT) && own.1 == its.1)
}
