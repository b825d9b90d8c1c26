//! Scheduling policies of threads.
//!
//! Neither they nor priorities affect the host's scheduler: they are kept for programs that ask for
//! them. Real-time policies need CAP_SYS_NICE or a limit that grants them, as on Linux;
//! SCHED_DEADLINE is always refused.

use std::sync::atomic::Ordering;

use lind_abi::flags::Resource;
use lind_abi::layout::Timespec;
use lind_abi::{Addr, Errno, In, Out, Pid, Result};

use super::may_schedule;
use super::system::on_thread;
use crate::cage::{Thread, capability};
use crate::call::Ctx;

const SCHED_OTHER: u32 = 0;
const SCHED_FIFO: u32 = 1;
const SCHED_RR: u32 = 2;
const SCHED_BATCH: u32 = 3;
const SCHED_IDLE: u32 = 5;
const SCHED_DEADLINE: u32 = 6;
/// The highest priority of the real-time policies; the lowest is 1.
const HIGHEST: u32 = 99;

/// struct sched_attr as it was first, and as it has become.
const SMALLEST: u32 = 48;
const WHOLE: u32 = 56;
/// Bits of its flags.
const FLAG_RESET_ON_FORK: u64 = 0x01;
const FLAG_KEEP_POLICY: u64 = 0x08;
const FLAG_KEEP_PARAMS: u64 = 0x10;
const FLAGS: u64 = 0x7f;

/// The scheduling that is asked for.
struct Wanted {
    /// The policy; None to keep it.
    policy: Option<u32>,
    priority: u32,
    /// The nice value of ordinary policies; None to keep it.
    nice: Option<i32>,
    reset_on_fork: bool,
    /// Runtime, deadline and period of SCHED_DEADLINE.
    deadline: [u64; 3],
}

/// sched_get_priority_max(2)
pub(crate) fn sched_get_priority_max(_cx: &Ctx<'_>, policy: i32) -> Result<i32> {
    priorities(policy).map(|(_, max)| max)
}

/// sched_get_priority_min(2)
pub(crate) fn sched_get_priority_min(_cx: &Ctx<'_>, policy: i32) -> Result<i32> {
    priorities(policy).map(|(min, _)| min)
}

fn priorities(policy: i32) -> Result<(i32, i32)> {
    match u32::try_from(policy).map_err(|_| Errno::EINVAL)? {
        SCHED_FIFO | SCHED_RR => Ok((1, 99)),
        SCHED_OTHER | SCHED_BATCH | SCHED_IDLE | SCHED_DEADLINE => Ok((0, 0)),
        _ => Err(Errno::EINVAL),
    }
}

/// sched_rr_get_interval(2): Linux's time slice for SCHED_RR, and none for others.
pub(crate) fn sched_rr_get_interval(cx: &Ctx<'_>, pid: Pid, interval: Out<Timespec>) -> Result<()> {
    const SLICE: i64 = 100_000_000;
    let word = on_known(cx, pid, |thread| Ok(thread.host.policy.load(Ordering::Relaxed)))?;
    cx.store(interval, &Timespec { sec: 0, nsec: if Thread::policy_of(word) == SCHED_RR { SLICE } else { 0 } })
}

/// sched_getscheduler(2)
pub(crate) fn sched_getscheduler(cx: &Ctx<'_>, pid: Pid) -> Result<i32> {
    let word = on_known(cx, pid, |thread| Ok(thread.host.policy.load(Ordering::Relaxed)))?;
    Ok((word & !Thread::PRIORITY).cast_signed())
}

/// sched_getparam(2): struct sched_param begins with the priority, and the rest is libc's.
pub(crate) fn sched_getparam(cx: &Ctx<'_>, pid: Pid, param: Addr) -> Result<()> {
    if param.0 == 0 {
        return Err(Errno::EINVAL);
    }
    let word = on_known(cx, pid, |thread| Ok(thread.host.policy.load(Ordering::Relaxed)))?;
    cx.store(Out::new(param.0, cx.cage.id), &Thread::priority_of(word))
}

/// sched_setparam(2)
pub(crate) fn sched_setparam(cx: &Ctx<'_>, pid: Pid, param: Addr) -> Result<()> {
    let priority = priority_at(cx, pid, param)?;
    on_known(cx, pid, |thread| {
        let reset_on_fork = thread.host.policy.load(Ordering::Relaxed) & Thread::RESET_ON_FORK != 0;
        schedule(cx, thread, &Wanted { policy: None, priority, nice: None, reset_on_fork, deadline: [0; 3] })
    })
}

/// sched_setscheduler(2)
pub(crate) fn sched_setscheduler(cx: &Ctx<'_>, pid: Pid, policy: i32, param: Addr) -> Result<i32> {
    let policy = u32::try_from(policy).map_err(|_| Errno::EINVAL)?;
    let priority = priority_at(cx, pid, param)?;
    let reset_on_fork = policy & Thread::RESET_ON_FORK != 0;
    let policy = Some(policy & !Thread::RESET_ON_FORK);
    let wanted = Wanted { policy, priority, nice: None, reset_on_fork, deadline: [0; 3] };
    on_known(cx, pid, |thread| schedule(cx, thread, &wanted)).map(|()| 0)
}

fn priority_at(cx: &Ctx<'_>, pid: Pid, param: Addr) -> Result<u32> {
    if param.0 == 0 || pid.0 < 0 {
        return Err(Errno::EINVAL);
    }
    cx.load(In::new(param.0, cx.cage.id))
}

/// sched_setattr(2)
pub(crate) fn sched_setattr(cx: &Ctx<'_>, pid: Pid, attr: Addr, flags: u32) -> Result<()> {
    if attr.0 == 0 || pid.0 < 0 || flags != 0 {
        return Err(Errno::EINVAL);
    }
    let given = attributes_at(cx, attr)?;
    let word = |at: usize| given[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let long = |at: usize| given[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let (policy, how) = (word(4), long(8));
    if policy.cast_signed() < 0 || how & !FLAGS != 0 {
        return Err(Errno::EINVAL);
    }
    let keeps_parameters = how & FLAG_KEEP_PARAMS != 0;
    let wanted = Wanted {
        policy: (how & FLAG_KEEP_POLICY == 0).then_some(policy),
        priority: if keeps_parameters { 0 } else { word(20) },
        nice: (!keeps_parameters).then_some(word(16).cast_signed().clamp(-20, 19)),
        reset_on_fork: how & FLAG_RESET_ON_FORK != 0,
        deadline: [long(24), long(32), long(40)],
    };
    on_known(cx, pid, |thread| schedule(cx, thread, &wanted))
}

/// Reads struct sched_attr, which contains its own size, and has to be zero beyond the known part.
fn attributes_at(cx: &Ctx<'_>, attr: Addr) -> Result<[u8; WHOLE as usize]> {
    const LARGEST: u32 = 4096;
    let at = In::<u8>::new(attr.0, cx.cage.id);
    let size = match cx.load::<u32>(In::new(attr.0, cx.cage.id))? {
        0 => SMALLEST,
        size => size,
    };
    let too_big = || {
        cx.store(Out::new(attr.0, cx.cage.id), &WHOLE)?;
        Err(Errno::E2BIG)
    };
    if !(SMALLEST..=LARGEST).contains(&size) {
        return too_big();
    }
    let mut bytes = [0; LARGEST as usize];
    let bytes = &mut bytes[..size as usize];
    cx.copy_in(at, bytes)?;
    let (known, beyond) = bytes.split_at(bytes.len().min(WHOLE as usize));
    if beyond.iter().any(|&byte| byte != 0) {
        return too_big();
    }
    let mut given = [0; WHOLE as usize];
    given[..known.len()].copy_from_slice(known);
    Ok(given)
}

/// sched_getattr(2)
pub(crate) fn sched_getattr(cx: &Ctx<'_>, pid: Pid, attr: Addr, size: u32, flags: u32) -> Result<()> {
    if attr.0 == 0 || pid.0 < 0 || !(SMALLEST..=4096).contains(&size) || flags != 0 {
        return Err(Errno::EINVAL);
    }
    let (word, nice) = on_known(cx, pid, |thread| {
        Ok((thread.host.policy.load(Ordering::Relaxed), thread.cage.settings().limits.nice))
    })?;
    let policy = Thread::policy_of(word);
    let size = size.min(WHOLE);
    let mut bytes = [0; WHOLE as usize];
    bytes[..4].copy_from_slice(&size.to_le_bytes());
    bytes[4..8].copy_from_slice(&policy.to_le_bytes());
    bytes[8] = u8::from(word & Thread::RESET_ON_FORK != 0);
    if is_ordinary(policy) {
        bytes[16..20].copy_from_slice(&nice.to_le_bytes());
    }
    bytes[20..24].copy_from_slice(&Thread::priority_of(word).to_le_bytes());
    cx.copy_out(Out::new(attr.0, cx.cage.id), &bytes[..size as usize])
}

fn is_ordinary(policy: u32) -> bool {
    matches!(policy, SCHED_OTHER | SCHED_BATCH)
}

/// Applies Linux's rules for changes of scheduling.
fn schedule(cx: &Ctx<'_>, thread: &Thread, wanted: &Wanted) -> Result<()> {
    let word = thread.host.policy.load(Ordering::Relaxed);
    let (old, resets) = (Thread::policy_of(word), word & Thread::RESET_ON_FORK != 0);
    let policy = wanted.policy.unwrap_or(old);
    priorities(policy.cast_signed())?;
    let in_real_time = matches!(policy, SCHED_FIFO | SCHED_RR);
    if wanted.priority > HIGHEST || in_real_time != (wanted.priority != 0) {
        return Err(Errno::EINVAL);
    }
    let [runtime, deadline, period] = wanted.deadline;
    let consistent = runtime >= 1024 && runtime <= deadline && (period == 0 || deadline <= period);
    if policy == SCHED_DEADLINE && !consistent {
        return Err(Errno::EINVAL);
    }
    let own = cx.cage.settings().credentials.clone();
    let mut settings = thread.cage.settings();
    let may = may_schedule(&own, &settings.credentials);
    let limits = &mut settings.limits;
    let real_time = limits.of(Resource(Resource::RLIMIT_RTPRIO)).map_or(0, |limit| limit.0);
    let granted = limits.of(Resource(Resource::RLIMIT_NICE)).map_or(0, |limit| limit.0);
    let may_have = |nice: i32| u64::try_from(20 - nice).is_ok_and(|least| least <= granted);
    let nice = wanted.nice.filter(|_| is_ordinary(policy)).unwrap_or(limits.nice);
    let beyond = u64::from(wanted.priority) > real_time;
    let refused = !may
        || in_real_time && policy != old && real_time == 0
        || in_real_time && beyond && wanted.priority > Thread::priority_of(word)
        || nice < limits.nice && !may_have(nice)
        || old == SCHED_IDLE && policy != SCHED_IDLE && !may_have(limits.nice)
        || resets && !wanted.reset_on_fork;
    if policy == SCHED_DEADLINE || refused && !own.can(capability::SYS_NICE) {
        return Err(Errno::EPERM);
    }
    limits.nice = nice;
    let reset = if wanted.reset_on_fork { Thread::RESET_ON_FORK } else { 0 };
    let priority = wanted.priority << Thread::PRIORITY.trailing_zeros();
    thread.host.policy.store(policy | priority | reset, Ordering::Relaxed);
    Ok(())
}

fn on_known<T>(cx: &Ctx<'_>, pid: Pid, act: impl FnOnce(&Thread) -> Result<T>) -> Result<T> {
    if pid.0 < 0 { Err(Errno::EINVAL) } else { on_thread(cx, pid, act) }
}
