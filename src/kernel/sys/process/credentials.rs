//! User and group ids.
//!
//! A cage has its own, which begin as those of the user who runs it and change as on Linux, but
//! only to ids that the runner may take on: see `Cage::change_credentials`.

use std::sync::Arc;

use lind_abi::{Errno, Gid, In, Len, Out, Result, Uid};

use crate::cage::{Credentials, EFFECTIVE, REAL, SAVED, capability};
use crate::call::Ctx;

/// The argument that leaves an id as it is.
const KEEP: u32 = u32::MAX;

/// Users or groups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    User,
    Group,
}

impl Kind {
    fn of(self, credentials: &Credentials) -> [u32; 3] {
        match self {
            Kind::User => credentials.uid,
            Kind::Group => credentials.gid,
        }
    }

    /// The capability to take on any id.
    fn capability(self) -> u64 {
        match self {
            Kind::User => capability::SETUID,
            Kind::Group => capability::SETGID,
        }
    }
}

/// Changes ids by `change`, which gets the old ones and whether all others are permitted.
fn set(cx: &Ctx<'_>, kind: Kind, change: impl FnOnce([u32; 3], bool) -> Result<[u32; 3]>) -> Result<()> {
    cx.cage.change_credentials(|own| {
        let new = change(kind.of(own), own.can(kind.capability()))?;
        match kind {
            Kind::User => own.change_users(new),
            Kind::Group => own.change_groups(new),
        }
        Ok(())
    })
}

fn set_one(cx: &Ctx<'_>, kind: Kind, id: u32) -> Result<()> {
    if id == KEEP {
        return Err(Errno::EINVAL);
    }
    set(cx, kind, |old, any| {
        if !any && id != old[REAL] && id != old[SAVED] {
            return Err(Errno::EPERM);
        }
        Ok(if any { [id; 3] } else { [old[REAL], id, old[SAVED]] })
    })
}

/// setreuid(2): the saved id follows the effective one when the real one is set, or when the
/// effective one is set to another id than the real one.
fn set_real_effective(cx: &Ctx<'_>, kind: Kind, real: u32, effective: u32) -> Result<()> {
    set(cx, kind, |old, any| {
        let may_real = [KEEP, old[REAL], old[EFFECTIVE]].contains(&real);
        let may_effective = effective == KEEP || old.contains(&effective);
        if !(any || may_real && may_effective) {
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
    set(cx, kind, |old, any| {
        if !any && ids.iter().any(|id| *id != KEEP && !old.contains(id)) {
            return Err(Errno::EPERM);
        }
        let mut new = old;
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
    let ids = kind.of(&cx.cage.settings().credentials);
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

/// setfsuid(2): the old one is returned, as on failure.
pub(crate) fn setfsuid(cx: &Ctx<'_>, uid: Uid) -> Result<Uid> {
    let old = cx.cage.settings().credentials.fsuid;
    let changed = cx.cage.change_credentials(|own| {
        let may = own.can(capability::SETUID) || own.uid.contains(&uid.0);
        if uid.0 == KEEP || uid.0 == old || !may {
            return Err(Errno::EPERM);
        }
        own.change_file_user(uid.0);
        Ok(())
    });
    let _ = changed;
    Ok(Uid(old))
}

/// setfsgid(2). See `setfsuid`.
pub(crate) fn setfsgid(cx: &Ctx<'_>, gid: Gid) -> Result<Gid> {
    let old = cx.cage.settings().credentials.fsgid;
    let changed = cx.cage.change_credentials(|own| {
        let may = own.can(capability::SETGID) || own.gid.contains(&gid.0);
        if gid.0 == KEEP || gid.0 == old || !may {
            return Err(Errno::EPERM);
        }
        own.fsgid = gid.0;
        Ok(())
    });
    let _ = changed;
    Ok(Gid(old))
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

/// setgroups(2), which sorts them.
pub(crate) fn setgroups(cx: &Ctx<'_>, size: Len, list: In<u32>) -> Result<()> {
    /// NGROUPS_MAX of Linux.
    const MOST: usize = 65536;
    if !cx.cage.settings().credentials.can(capability::SETGID) {
        return Err(Errno::EPERM);
    }
    // An int.
    let size = usize::try_from(size.0 & u64::from(u32::MAX)).ok().filter(|&size| size <= MOST).ok_or(Errno::EINVAL)?;
    let mut groups = cx.load_array(list, size)?;
    if groups.contains(&KEEP) {
        return Err(Errno::EINVAL);
    }
    groups.sort_unstable();
    cx.cage.change_credentials(|own| {
        own.groups = groups.into();
        Ok(())
    })
}
