//! Tests of the permissions to change ids, limits and groups.

use lind_abi::layout::{Rlimit, Utsname};
use lind_abi::{Errno, nr};

use crate::cage::capability;
use crate::root::Walls;
use crate::testing::{World, in_world};

/// Ids as they may come to be where nobody is root, so that nobody has capabilities either.
fn with_ids(w: &World, ids: [u32; 3]) {
    let mut settings = w.thread.cage.settings();
    settings.credentials.uid = ids;
    settings.credentials.capabilities = crate::cage::Capabilities::default();
}

fn ids(w: &World) -> [u32; 3] {
    let at = w.buffer(12);
    w.ok(nr::getresuid, &[at, at + 4, at + 8]);
    assert_eq!(w.ok(nr::geteuid, &[]), i64::from(w.load::<[u32; 3]>(at)[1]));
    w.load(at)
}

#[test]
fn ids_change_only_among_those_the_cage_has() {
    in_world(Walls::Openat2, |w| {
        with_ids(w, [1000, 1001, 1002]);
        assert_eq!(w.err(nr::setuid, &[0]), Errno::EPERM);
        assert_eq!(w.err(nr::setuid, &[-1]), Errno::EINVAL);
        assert_eq!(w.ok(nr::setuid, &[1002]), 0);
        assert_eq!(ids(w), [1000, 1002, 1002]);
        assert_eq!(w.ok(nr::setreuid, &[-1, 1000]), 0);
        assert_eq!(ids(w), [1000, 1000, 1002]);
        assert_eq!(w.err(nr::setreuid, &[1002, -1]), Errno::EPERM);
        assert_eq!(w.ok(nr::setreuid, &[1000, 1002]), 0);
        assert_eq!(ids(w), [1000, 1002, 1002]);
        assert_eq!(w.ok(nr::setresuid, &[1002, 1000, -1]), 0);
        assert_eq!(ids(w), [1002, 1000, 1002]);
        assert_eq!(w.err(nr::setresuid, &[-1, 7, -1]), Errno::EPERM);
        // Root without capabilities has no ids to pick from but its own.
        with_ids(w, [1000, 0, 0]);
        assert_eq!(w.err(nr::setuid, &[5]), Errno::EPERM);
        assert_eq!(w.ok(nr::setuid, &[1000]), 0);
        assert_eq!(ids(w), [1000, 1000, 0]);
        assert_eq!(w.err(nr::setgroups, &[0, 0]), Errno::EPERM);
    });
}

#[test]
fn hard_limits_only_go_down() {
    in_world(Walls::Openat2, |w| {
        // A process with CAP_SYS_RESOURCE raises them again: tests/conformance/process/real_time.c.
        w.thread.cage.settings().credentials.capabilities.effective = 0;
        let set = |resource: i64, cur, max| w.call(nr::setrlimit, &[resource, w.value(&Rlimit { cur, max })]);
        assert_eq!(set(7, 10, 20), Ok(0));
        assert_eq!(set(7, 20, 21), Err(Errno::EPERM));
        assert_eq!(set(7, 21, 20), Err(Errno::EINVAL));
        assert_eq!(set(16, 0, 0), Err(Errno::EINVAL));
        assert_eq!(set(-1, 0, 0), Err(Errno::EINVAL));
        let child = w.sibling();
        child.thread.cage.settings().credentials.capabilities.effective = 0;
        let at = child.buffer(16);
        child.ok(nr::getrlimit, &[7, at]);
        assert_eq!(child.load::<[u64; 2]>(at), [10, 20]);
        assert_eq!(child.err(nr::setrlimit, &[7, child.value(&Rlimit { cur: 0, max: 30 })]), Errno::EPERM);
        // A parent may limit its child, not the other way round.
        let id = |w: &World| i64::from(w.thread.cage.id.0);
        let lower = Rlimit { cur: 5, max: 5 };
        assert_eq!(w.ok(nr::prlimit64, &[id(&child), 7, w.value(&lower), 0]), 0);
        child.ok(nr::getrlimit, &[7, at]);
        assert_eq!(child.load::<[u64; 2]>(at), [5, 5]);
        assert_eq!(child.err(nr::prlimit64, &[id(w), 7, 0, at]), Errno::EPERM);
        assert_eq!(w.err(nr::prlimit64, &[9999, 7, 0, at]), Errno::ESRCH);
    });
}

#[test]
fn groups_and_sessions_are_inherited_and_left() {
    in_world(Walls::Openat2, |w| {
        let me = i64::from(w.thread.cage.id.0);
        let child = w.sibling();
        let it = i64::from(child.thread.cage.id.0);
        assert_eq!(w.ok(nr::getpgrp, &[]), me);
        assert_eq!(child.ok(nr::getpgid, &[0]), me);
        assert_eq!(child.ok(nr::getsid, &[0]), me);
        assert_eq!(w.err(nr::setsid, &[]), Errno::EPERM);
        assert_eq!(w.err(nr::setpgid, &[0, 0]), Errno::EPERM);
        assert_eq!(w.err(nr::setpgid, &[it, it]), Errno::EACCES);
        // As if it had been forked.
        child.thread.cage.fresh_fork.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(w.err(nr::setpgid, &[it, 12345]), Errno::EPERM);
        assert_eq!(w.err(nr::setpgid, &[it, -1]), Errno::EINVAL);
        assert_eq!(w.ok(nr::setpgid, &[it, 0]), 0);
        assert_eq!(w.ok(nr::getpgid, &[it]), it);
        assert_eq!(child.err(nr::setsid, &[]), Errno::EPERM);
        assert_eq!(child.ok(nr::setpgid, &[0, me]), 0);
        assert_eq!(child.ok(nr::setsid, &[]), it);
        assert_eq!(child.ok(nr::getsid, &[0]), it);
        assert_eq!(w.err(nr::setpgid, &[it, me]), Errno::EPERM);
    });
}

#[test]
fn the_machine_is_wasm32() {
    in_world(Walls::Openat2, |w| {
        let at = w.buffer(400);
        w.ok(nr::uname, &[at]);
        let name: Utsname = w.load(at);
        assert!(name.sysname.starts_with(b"Linux\0") && name.machine.starts_with(b"wasm32\0"));
        let random = w.filled(nr::getrandom, |at, len| vec![at, len, 0]);
        assert_eq!(random.len(), 8192);
        assert!(random.iter().any(|&byte| byte != 0));
        assert_eq!(w.err(nr::getrandom, &[at, 8, 6]), Errno::EINVAL);
        assert_eq!(w.err(nr::getrandom, &[16, 8, 0]), Errno::EFAULT);
        assert_eq!(w.err(nr::getrandom, &[0xffff_fff0, 32, 0]), Errno::EFAULT);
    });
}

#[test]
fn it_takes_a_capability_to_name_the_machine() {
    in_world(Walls::Openat2, |w| {
        let child = w.sibling();
        let may = |capabilities| child.thread.cage.settings().credentials.capabilities.effective = capabilities;
        may(capability::OF_ROOT & !capability::SYS_ADMIN);
        for number in [nr::sethostname, nr::setdomainname] {
            assert_eq!(child.err(number, &[child.data(b"theirs"), 6]), Errno::EPERM);
            may(capability::SYS_ADMIN);
            assert_eq!(child.ok(number, &[child.data(b"ours"), 4]), 0);
            may(0);
            assert_eq!(child.err(number, &[16, 99]), Errno::EPERM);
        }
        let at = w.buffer(400);
        w.ok(nr::uname, &[at]);
        let name: Utsname = w.load(at);
        assert!(name.nodename.starts_with(b"ours\0") && name.domainname.starts_with(b"ours\0"));
    });
}
