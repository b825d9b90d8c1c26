//! Priorities and personalities: values that are kept for programs that ask for them.

use lind_abi::flags::Resource;
use lind_abi::{CageId, Errno, Pid, Result};

use super::{in_group, on_process_near};
use crate::cage::signal::grates_over;
use crate::cage::{Cage, Credentials, capability};
use crate::call::Ctx;

const PRIO_PROCESS: i32 = 0;
const PRIO_PGRP: i32 = 1;
const PRIO_USER: i32 = 2;
const LOWEST: i32 = 19;
const HIGHEST: i32 = -20;

/// getpriority(2) in the kernel's form: from 40 down to 1, the highest of the processes meant.
pub(crate) fn getpriority(cx: &Ctx<'_>, which: i32, who: i32) -> Result<i32> {
    let mut best: Option<i32> = None;
    for_each(cx, which, who, |cage| {
        let nice = cage.settings().limits.nice;
        best = Some(best.map_or(nice, |best| best.min(nice)));
        Ok(())
    })?;
    best.map(|nice| 20 - nice).ok_or(Errno::ESRCH)
}

/// setpriority(2): the value is kept and inherited, but does not affect the host's scheduler.
/// Raising it needs CAP_SYS_NICE, or RLIMIT_NICE.
pub(crate) fn setpriority(cx: &Ctx<'_>, which: i32, who: i32, priority: i32) -> Result<()> {
    let nice = priority.clamp(HIGHEST, LOWEST);
    let own = cx.cage.settings().credentials.clone();
    let mut any = false;
    let mut refused = Ok(());
    for_each(cx, which, who, |cage| {
        any = true;
        let mut settings = cage.settings();
        if !may_schedule(&own, &settings.credentials) {
            refused = Err(Errno::EPERM);
            return Ok(());
        }
        let limits = &mut settings.limits;
        let granted = limits.of(Resource(Resource::RLIMIT_NICE)).map_or(0, |limit| limit.0);
        let may_have = u64::try_from(20 - nice).is_ok_and(|least| least <= granted);
        if nice < limits.nice && !may_have && !own.can(capability::SYS_NICE) {
            refused = Err(Errno::EACCES);
        } else {
            limits.nice = nice;
        }
        Ok(())
    })?;
    if any { refused } else { Err(Errno::ESRCH) }
}

/// Linux's rule for permission to schedule another process.
pub(super) fn may_schedule(own: &Credentials, of: &Credentials) -> bool {
    own.can(capability::SYS_NICE) || of.uid[..2].contains(&own.uid[1])
}

/// The cages that are meant, as far as the caller's grates let it know of them.
fn for_each(cx: &Ctx<'_>, which: i32, who: i32, mut act: impl FnMut(&Cage) -> Result<()>) -> Result<()> {
    let over = grates_over(cx.kernel, cx.cage);
    let may_name = |id: CageId, cage: &Cage| {
        id == cx.cage.id || cage.descends_from(cx.cage.id) || over.iter().all(|&grate| cage.descends_from(grate))
    };
    match which {
        PRIO_PROCESS => on_process_near(cx, Pid(who), act),
        PRIO_PGRP => {
            let group = if who == 0 { cx.cage.group() } else { u32::try_from(who).map_err(|_| Errno::ESRCH)? };
            let mut members = in_group(cx, group).filter(|cage| may_name(cage.id, cage));
            members.try_for_each(|cage| act(&cage))
        }
        PRIO_USER => {
            let real = cx.cage.settings().credentials.uid[0];
            let user = if who == 0 { real } else { who.cast_unsigned() };
            let cages = cx.kernel.cages.all();
            let of_user = |cage: &Cage| !cage.is_dead() && cage.settings().credentials.uid[0] == user;
            cages.iter().filter(|cage| may_name(cage.id, cage) && of_user(cage)).try_for_each(|cage| act(cage))
        }
        _ => Err(Errno::EINVAL),
    }
}

/// personality(2). Kept and inherited; of its flags, UNAME26 and STICKY_TIMEOUTS do something.
pub(crate) fn personality(cx: &Ctx<'_>, persona: u64) -> Result<i32> {
    const ASK: u32 = u32::MAX;
    let wanted = u32::try_from(persona & u64::from(u32::MAX)).unwrap_or(ASK);
    let mut settings = cx.cage.settings();
    let before = settings.persona;
    if wanted != ASK {
        settings.persona = wanted;
    }
    Ok(before.cast_signed())
}

/// Flags of personality(2).
pub(crate) mod persona {
    /// uname(2) reports a release 2.6.
    pub const UNAME26: u32 = 0x002_0000;
    /// select(2) does not write back the remaining time.
    pub const STICKY_TIMEOUTS: u32 = 0x400_0000;
}
