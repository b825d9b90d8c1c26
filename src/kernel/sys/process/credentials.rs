//! User and group ids.
//!
//! A cage has its own, inherited from the user who runs it. They change only among those it has already, and
//! nothing on the host depends on them: files are opened with the runner's own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::{Errno, Gid, In, Len, Out, Result, Uid};

use crate::cage::Credentials;
use crate::call::Ctx;

/// The argument that leaves an id as it is.
const KEEP: u32 = u32::MAX;
/// Where the ids stand: real, effective, saved.
const REAL: usize = 0;
const EFFECTIVE: usize = 1;
const SAVED: usize = 2;

/// Users or groups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    User,
    Group,
}

impl Kind {
    fn of(self, credentials: &mut Credentials) -> &mut [u32; 3] {
        match self {
            Kind::User => &mut credentials.uid,
            Kind::Group => &mut credentials.gid,
        }
    }
}

/// Changes ids by `change`, which gets the old ones and whether the cage is root in its own view.
fn set(cx: &Ctx<'_>, kind: Kind, change: impl FnOnce([u32; 3], bool) -> Result<[u32; 3]>) -> Result<()> {
    let mut settings = cx.cage.settings();
    let credentials = &mut settings.credentials;
    let root = credentials.uid[EFFECTIVE] == 0;
    let old = *kind.of(credentials);
    let new = change(old, root)?;
    if new.iter().any(|id| !old.contains(id)) {
        return Err(Errno::EPERM);
    }
    *kind.of(credentials) = new;
    let effective = u64::from(credentials.uid[EFFECTIVE]) | u64::from(credentials.gid[EFFECTIVE]) << 32;
    cx.cage.effective.store(effective, Ordering::Relaxed);
    Ok(())
}

fn set_one(cx: &Ctx<'_>, kind: Kind, id: u32) -> Result<()> {
    if id == KEEP {
        return Err(Errno::EINVAL);
    }
    set(cx, kind, |old, root| {
        if !root && id != old[REAL] && id != old[SAVED] {
            return Err(Errno::EPERM);
        }
        Ok(if root { [id; 3] } else { [old[REAL], id, old[SAVED]] })
    })
}

/// setreuid(2): the saved id follows the effective one when the real one is set, or the effective one to what is not real.
fn set_real_effective(cx: &Ctx<'_>, kind: Kind, real: u32, effective: u32) -> Result<()> {
    set(cx, kind, |old, root| {
        if !root && real != KEEP && real != old[REAL] && real != old[EFFECTIVE] {
            return Err(Errno::EPERM);
        }
        let mut new = old;
        replace(&mut new[REAL], real);
        replace(&mut new[EFFECTIVE], effective);
        if real != KEEP || (effective != KEEP && effective != old[REAL]) {
            new[SAVED] = new[EFFECTIVE];
        }
        Ok(new)
    })
}

fn set_all(cx: &Ctx<'_>, kind: Kind, ids: [u32; 3]) -> Result<()> {
    set(cx, kind, |mut new, _| {
        new.iter_mut().zip(ids).for_each(|(id, to)| replace(id, to));
        Ok(new)
    })
}

fn replace(id: &mut u32, to: u32) {
    if to != KEEP {
        *id = to;
    }
}

fn get_all(cx: &Ctx<'_>, kind: Kind, to: [Out<u32>; 3]) -> Result<()> {
    let ids = *kind.of(&mut cx.cage.settings().credentials);
    ids.iter().zip(to).try_for_each(|(id, to)| cx.store(to, id))
}

/// setuid(2)
pub(crate) fn setuid(cx: &Ctx<'_>, uid: Uid) -> Result<()> {
    set_one(cx, Kind::User, uid.0)
}

/// setgid(2)
pub(crate) fn setgid(cx: &Ctx<'_>, gid: Gid) -> Result<()> {
    set_one(cx, Kind::Group, gid.0)
}

/// setreuid(2)
pub(crate) fn setreuid(cx: &Ctx<'_>, ruid: Uid, euid: Uid) -> Result<()> {
    set_real_effective(cx, Kind::User, ruid.0, euid.0)
}

/// setregid(2)
pub(crate) fn setregid(cx: &Ctx<'_>, rgid: Gid, egid: Gid) -> Result<()> {
    set_real_effective(cx, Kind::Group, rgid.0, egid.0)
}

/// setresuid(2)
pub(crate) fn setresuid(cx: &Ctx<'_>, ruid: Uid, euid: Uid, suid: Uid) -> Result<()> {
    set_all(cx, Kind::User, [ruid.0, euid.0, suid.0])
}

/// setresgid(2)
pub(crate) fn setresgid(cx: &Ctx<'_>, rgid: Gid, egid: Gid, sgid: Gid) -> Result<()> {
    set_all(cx, Kind::Group, [rgid.0, egid.0, sgid.0])
}

/// getresuid(2)
pub(crate) fn getresuid(cx: &Ctx<'_>, ruid: Out<u32>, euid: Out<u32>, suid: Out<u32>) -> Result<()> {
    get_all(cx, Kind::User, [ruid, euid, suid])
}

/// getresgid(2)
pub(crate) fn getresgid(cx: &Ctx<'_>, rgid: Out<u32>, egid: Out<u32>, sgid: Out<u32>) -> Result<()> {
    get_all(cx, Kind::Group, [rgid, egid, sgid])
}

/// setfsuid(2): it is the effective one, always; the old one is returned, as on failure.
pub(crate) fn setfsuid(cx: &Ctx<'_>, _uid: Uid) -> Result<Uid> {
    super::geteuid(cx)
}

/// setfsgid(2). See `setfsuid`.
pub(crate) fn setfsgid(cx: &Ctx<'_>, _gid: Gid) -> Result<Gid> {
    super::getegid(cx)
}

/// getgroups(2)
pub(crate) fn getgroups(cx: &Ctx<'_>, size: i32, list: Out<u32>) -> Result<usize> {
    let groups = Arc::clone(&cx.cage.settings().credentials.groups);
    let size = usize::try_from(size).map_err(|_| Errno::EINVAL)?;
    if size == 0 {
        return Ok(groups.len());
    }
    if size < groups.len() {
        return Err(Errno::EINVAL);
    }
    for (index, group) in groups.iter().enumerate() {
        cx.store(Out::new(list.addr.saturating_add(4 * index as u64), list.cage), group)?;
    }
    Ok(groups.len())
}

/// setgroups(2). To the host its files are the runner's all the same.
pub(crate) fn setgroups(cx: &Ctx<'_>, size: Len, list: In<u32>) -> Result<()> {
    /// NGROUPS_MAX of Linux.
    const MOST: usize = 65536;
    let size = usize::try_from(size.0).ok().filter(|&size| size <= MOST).ok_or(Errno::EINVAL)?;
    if super::geteuid(cx)?.0 != 0 {
        return Err(Errno::EPERM);
    }
    let groups = cx.load_array(list, size)?;
    cx.cage.settings().credentials.groups = groups.into();
    Ok(())
}
