//! Processes: identity, end, waiting, limits.

mod args;
mod capability;
mod clone;
mod credentials;
mod exec;
mod exit;
mod group;
mod identity;
mod landlock;
mod limits;
mod names;
mod pidfd;
mod prctl;
mod priority;
mod sched;
mod system;

pub(crate) use args::{Room, strings};
pub(crate) use capability::*;
pub(crate) use clone::*;
pub(crate) use credentials::*;
pub(crate) use exec::*;
pub(crate) use exit::*;
pub(crate) use group::*;
pub(crate) use identity::*;
pub(crate) use landlock::*;
pub(crate) use limits::*;
pub(crate) use names::*;
pub(crate) use pidfd::*;
pub(crate) use prctl::*;
pub(crate) use priority::*;
pub(crate) use sched::*;
pub(crate) use system::*;

use lind_abi::{CageId, Errno, Pid, Result};

use crate::cage::Cage;
use crate::cage::signal::grates_over;
use crate::call::Ctx;
use crate::sys::signal::cage_of;

/// Acts on the process that a call names: 0 or any of the cage's threads is the cage itself;
/// otherwise a descendant, which may have ended and wait for its parent.
///
/// # Errors
/// ESRCH if there is none, EPERM for any other cage.
pub(super) fn on_process<T>(cx: &Ctx<'_>, pid: Pid, act: impl FnOnce(&Cage) -> Result<T>) -> Result<T> {
    let id = u32::try_from(pid.0).map_err(|_| Errno::ESRCH)?;
    if id == 0 || id == cx.cage.id.0 || cx.cage.thread(id).is_some() {
        return act(cx.cage);
    }
    let cage = cx.kernel.cages.get(CageId(id)).ok_or(Errno::ESRCH)?;
    if cage.descends_from(cx.cage.id) { act(&cage) } else { Err(Errno::EPERM) }
}

/// As [`on_process`], for calls that Linux permits between any two processes: also on a process
/// with the same grates.
pub(super) fn on_process_near<T>(cx: &Ctx<'_>, pid: Pid, act: impl FnOnce(&Cage) -> Result<T>) -> Result<T> {
    let id = u32::try_from(pid.0).map_err(|_| Errno::ESRCH)?;
    if id == 0 || id == cx.cage.id.0 || cx.cage.thread(id).is_some() {
        return act(cx.cage);
    }
    let cage = cage_of(cx, id).ok_or(Errno::ESRCH)?;
    let near = || grates_over(cx.kernel, cx.cage).iter().all(|&grate| cage.descends_from(grate));
    if cage.descends_from(cx.cage.id) || near() { act(&cage) } else { Err(Errno::EPERM) }
}

#[cfg(test)]
mod tests;
