//! Process groups and sessions.
//!
//! A cage inherits both from its parent; the first leads its own. The terminals of sessions are in
//! `terminal`.

use lind_abi::{Errno, Pid, Result};

use super::on_process;
use crate::cage::Cage;
use crate::call::Ctx;
use crate::sys::signal::cage_of;

fn pid(id: u32) -> Pid {
    Pid(id.cast_signed())
}

/// getpgid(2)
pub(crate) fn getpgid(cx: &Ctx<'_>, of: Pid) -> Result<Pid> {
    asked_of(cx, of, Cage::group)
}

/// getpgrp(2)
pub(crate) fn getpgrp(cx: &Ctx<'_>) -> Result<Pid> {
    getpgid(cx, Pid(0))
}

/// getsid(2)
pub(crate) fn getsid(cx: &Ctx<'_>, of: Pid) -> Result<Pid> {
    asked_of(cx, of, Cage::session)
}

/// The facts that every cage may know about every other.
fn asked_of(cx: &Ctx<'_>, of: Pid, what: fn(&Cage) -> u32) -> Result<Pid> {
    if of.0 == 0 {
        return Ok(pid(what(cx.cage)));
    }
    let id = u32::try_from(of.0).map_err(|_| Errno::ESRCH)?;
    Ok(pid(what(&*cage_of(cx, id).ok_or(Errno::ESRCH)?)))
}

/// setsid(2)
pub(crate) fn setsid(cx: &Ctx<'_>) -> Result<Pid> {
    let id = cx.cage.id.0;
    // A group that bears the cage's id may hold others, even if the cage has left it.
    if in_group(cx, id).next().is_some() {
        return Err(Errno::EPERM);
    }
    let mut settings = cx.cage.settings();
    (settings.group, settings.session) = (id, id);
    Ok(pid(id))
}

/// setpgid(2), for the cage or a child of it that has not run a program of its own.
pub(crate) fn setpgid(cx: &Ctx<'_>, of: Pid, group: Pid) -> Result<()> {
    // 0 means the process itself, whose number is then looked at first.
    let group = u32::try_from(if group.0 == 0 { of.0 } else { group.0 }).map_err(|_| Errno::EINVAL)?;
    let session = cx.cage.session();
    on_process(cx, of, |cage| {
        if cage.id != cx.cage.id && cage.parent() != Some(cx.cage.id) {
            return Err(Errno::ESRCH);
        }
        if cage.id != cx.cage.id && !cage.is_fresh_fork() {
            return Err(Errno::EACCES);
        }
        let group = if group == 0 { cage.id.0 } else { group };
        let exists = group == cage.id.0 || in_group(cx, group).any(|member| member.session() == session);
        let mut settings = cage.settings();
        if settings.session == cage.id.0 || settings.session != session || !exists {
            return Err(Errno::EPERM);
        }
        settings.group = group;
        Ok(())
    })
}

/// The cages of a group. Ended ones belong to it until they are waited for: a shell may put the
/// second half of a pipe into the group of the first, which has ended by then.
pub(crate) fn in_group(cx: &Ctx<'_>, group: u32) -> impl Iterator<Item = std::sync::Arc<Cage>> {
    let cages = cx.kernel.cages.all();
    cages.into_iter().filter(move |cage| cage.group() == group)
}
