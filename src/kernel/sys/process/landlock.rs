//! landlock(7): a process confines its own use of files. The rules are kept by
//! [`crate::landlock`].

use std::os::fd::AsFd;

use lind_abi::{Errno, Fd, In, Len, Result};
use rustix::event::epoll;

use crate::authority;
use crate::cage::capability;
use crate::call::Ctx;
use crate::fd::{File, Kind};
use crate::host::errno;
use crate::landlock::{Ruleset, VERSION, access, named_by};

/// LANDLOCK_CREATE_RULESET_VERSION
const ASKS_VERSION: u32 = 1;
/// LANDLOCK_RULE_PATH_BENEATH
const PATH_BENEATH: i32 = 1;
/// The size of struct landlock_path_beneath_attr: the accesses and a descriptor.
const RULE: usize = 12;

/// landlock_create_ruleset(2): a descriptor, or the version.
pub(crate) fn landlock_create_ruleset(cx: &Ctx<'_>, attr: In<u8>, size: Len, flags: u32) -> Result<i32> {
    const FIRST_VERSION: u64 = 8;
    // A grate that keeps files itself would not know of the rules.
    if !authority::follow_root(cx.kernel, cx.cage) {
        return Err(Errno::EOPNOTSUPP);
    }
    if flags != 0 {
        let asks = flags == ASKS_VERSION && attr.addr == 0 && size.0 == 0;
        return if asks { Ok(VERSION) } else { Err(Errno::EINVAL) };
    }
    if attr.addr == 0 {
        return Err(Errno::EFAULT);
    }
    let [handled] = cx.load_versioned(attr, size, FIRST_VERSION)?;
    if handled & !access::ALL != 0 {
        return Err(Errno::EINVAL);
    }
    if handled == 0 {
        return Err(Errno::ENOMSG);
    }
    // A file that can be neither read nor written.
    let host = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(errno)?;
    cx.cage.fds.add(File::new(host, Kind::Ruleset(Ruleset::new(handled))), true)
}

/// landlock_add_rule(2)
pub(crate) fn landlock_add_rule(cx: &Ctx<'_>, ruleset: Fd, kind: i32, attr: In<u8>, flags: u32) -> Result<()> {
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let file = cx.file(ruleset)?;
    let Kind::Ruleset(ruleset) = &file.kind else { return Err(Errno::EBADFD) };
    if kind != PATH_BENEATH {
        return Err(Errno::EINVAL);
    }
    let mut bytes = [0; RULE];
    cx.copy_in(attr, &mut bytes)?;
    let (allowed, number) = bytes.split_at(8);
    let allowed = u64::from_le_bytes(allowed.try_into().map_err(|_| Errno::EINVAL)?);
    let number = i32::from_le_bytes(number.try_into().map_err(|_| Errno::EINVAL)?);
    if allowed == 0 {
        return Err(Errno::ENOMSG);
    }
    if allowed & !ruleset.handled() != 0 {
        return Err(Errno::EINVAL);
    }
    let named = cx.file(Fd { number, cage: attr.cage })?;
    let node = named_by(&named, allowed)?;
    let held = named.host();
    let kept: Option<&dyn AsFd> = matches!(named.kind, Kind::Named(_)).then_some(&held as _);
    ruleset.add(node, allowed, kept)
}

/// landlock_restrict_self(2), of all threads of the cage.
pub(crate) fn landlock_restrict_self(cx: &Ctx<'_>, ruleset: Fd, flags: u32) -> Result<()> {
    let may = {
        let settings = cx.cage.settings();
        settings.no_new_privs || settings.credentials.can(capability::SYS_ADMIN)
    };
    // The rules have to hold for all files that the cage gets.
    if !may || !authority::follow_root(cx.kernel, cx.cage) {
        return Err(Errno::EPERM);
    }
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    match &cx.file(ruleset)?.kind {
        Kind::Ruleset(ruleset) => cx.cage.confined.add(ruleset),
        _ => Err(Errno::EBADFD),
    }
}
