//! Limits and usage of resources: getrlimit(2), setrlimit(2), prlimit(2), getrusage(2).

use lind_abi::flags::{Resource, RusageWho};
use lind_abi::layout::{Rlimit, Rusage};
use lind_abi::{Errno, In, Out, Pid, Result};

use super::on_process;
use crate::cage::signal::stands_over;
use crate::cage::{Cage, capability, usage};
use crate::call::Ctx;

/// getrlimit(2)
pub(crate) fn getrlimit(cx: &Ctx<'_>, resource: Resource, limit: Out<Rlimit>) -> Result<()> {
    cx.store(limit, &get(cx.cage, resource)?)
}

/// setrlimit(2)
pub(crate) fn setrlimit(cx: &Ctx<'_>, resource: Resource, limit: In<Rlimit>) -> Result<()> {
    set(cx, cx.cage, resource, cx.load(limit)?)
}

/// prlimit(2), of the cage or a descendant.
pub(crate) fn prlimit64(cx: &Ctx<'_>, pid: Pid, resource: Resource, new: In<Rlimit>, old: Out<Rlimit>) -> Result<()> {
    let new = if new.is_null() { None } else { Some(cx.load(new)?) };
    let before = on_process(cx, pid, |cage| {
        let before = get(cage, resource)?;
        new.map_or(Ok(()), |new| set(cx, cage, resource, new))?;
        Ok(before)
    })?;
    cx.store_if(old, &before)
}

fn get(cage: &Cage, resource: Resource) -> Result<Rlimit> {
    let (cur, max) = *cage.settings().limits.of(resource).ok_or(Errno::EINVAL)?;
    Ok(Rlimit { cur, max })
}

/// A hard limit can only go down; a process with CAP_SYS_RESOURCE raises it again, to what the cage
/// was started with, for limits are part of its walls. Limits that a grate sets for a client stay.
fn set(cx: &Ctx<'_>, cage: &Cage, resource: Resource, new: Rlimit) -> Result<()> {
    replace(cx, cage, resource, new)?;
    if resource.0 == Resource::RLIMIT_CPU
        && let Some(cage) = cx.kernel.cages.get(cage.id)
    {
        cage.watch_cpu(cx.kernel);
    }
    Ok(())
}

fn replace(cx: &Ctx<'_>, cage: &Cage, resource: Resource, new: Rlimit) -> Result<()> {
    let privileged = cx.cage.settings().credentials.can(capability::SYS_RESOURCE);
    let binds = cage.id != cx.cage.id && stands_over(cx.kernel, cx.cage.id, cage);
    let mut settings = cage.settings();
    let bound = settings.limits.bound(resource);
    let limit = settings.limits.of(resource).ok_or(Errno::EINVAL)?;
    if new.cur > new.max {
        return Err(Errno::EINVAL);
    }
    if new.max > limit.1 && !(privileged && new.max <= bound) {
        return Err(Errno::EPERM);
    }
    *limit = (new.cur, new.max);
    if binds {
        settings.limits.bind();
    }
    match resource.0 {
        Resource::RLIMIT_NOFILE => cage.fds.set_limit(new.cur),
        Resource::RLIMIT_FSIZE if new.cur != u64::MAX => cage.fds.watch(),
        Resource::RLIMIT_AS => cage.memory.map().set_limit(new.cur),
        _ => {}
    }
    Ok(())
}

/// getrusage(2)
pub(crate) fn getrusage(cx: &Ctx<'_>, who: RusageWho, to: Out<Rusage>) -> Result<()> {
    let used = match who.0 {
        RusageWho::RUSAGE_SELF => cx.cage.usage(),
        RusageWho::RUSAGE_CHILDREN => cx.cage.children_usage(),
        RusageWho::RUSAGE_THREAD => usage::running(cx.thread),
        _ => return Err(Errno::EINVAL),
    };
    cx.store(to, &used)
}
