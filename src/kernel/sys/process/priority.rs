//! Priorities, personalities and capabilities: what a cage may ask about, and cannot have more of.

use lind_abi::{CageId, Errno, Pid, Result};

use super::{in_group, on_process};
use crate::cage::Cage;
use crate::call::Ctx;

const PRIO_PROCESS: i32 = 0;
const PRIO_PGRP: i32 = 1;
const PRIO_USER: i32 = 2;
const LOWEST: i32 = 19;
const HIGHEST: i32 = -20;

/// getpriority(2) as the kernel has it: from 40 down to 1, of the one that stands in front of the others.
pub(crate) fn getpriority(cx: &Ctx<'_>, which: i32, who: i32) -> Result<i32> {
    let mut best: Option<i32> = None;
    for_each(cx, which, who, |cage| {
        let nice = cage.settings().limits.nice;
        best = Some(best.map_or(nice, |best| best.min(nice)));
        Ok(())
    })?;
    best.map(|nice| 20 - nice).ok_or(Errno::ESRCH)
}

/// setpriority(2): kept and inherited; the host's scheduler is not told. Only down: EACCES.
pub(crate) fn setpriority(cx: &Ctx<'_>, which: i32, who: i32, priority: i32) -> Result<()> {
    let nice = priority.clamp(HIGHEST, LOWEST);
    let mut any = false;
    let mut refused = Ok(());
    for_each(cx, which, who, |cage| {
        any = true;
        let limits = &mut cage.settings().limits;
        if nice < limits.nice {
            refused = Err(Errno::EACCES);
        } else {
            limits.nice = nice;
        }
        Ok(())
    })?;
    if any { refused } else { Err(Errno::ESRCH) }
}

/// The cage itself and its descendants, as far as they are meant.
fn for_each(cx: &Ctx<'_>, which: i32, who: i32, mut act: impl FnMut(&Cage) -> Result<()>) -> Result<()> {
    let may_name = |id: CageId, cage: &Cage| id == cx.cage.id || cage.descends_from(cx.cage.id);
    match which {
        PRIO_PROCESS => on_process(cx, Pid(who), act),
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

/// personality(2): there is one, Linux's.
pub(crate) fn personality(_cx: &Ctx<'_>, persona: u64) -> Result<i32> {
    match persona & u64::from(u32::MAX) {
        0 | 0xffff_ffff => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}
