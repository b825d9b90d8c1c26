//! Identities of host threads for access to files: setfsuid(2), setfsgid(2), groups and the
//! effective capabilities.
//!
//! The host keeps them for each thread. A thread remembers its identity by a unique number, the
//! stamp, so that a call needs one comparison to know that nothing has to be changed. A new host
//! thread inherits its maker's identity, and marks its own as unknown. If the runner is not root,
//! every cage has the runner's identity, and nothing here is called.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use lind_abi::{Errno, Result};
use rustix::thread::CapabilitySet;
use syscalls::{Sysno, raw_syscall};

use super::result;

/// The identity with which a thread uses files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Arc<[u32]>,
    /// The capabilities it may use of those about files and ports.
    pub capabilities: u64,
}

/// Sets of capabilities, as capabilities(7) numbers them.
pub mod capability {
    /// The names and bits of capabilities(7).
    pub const CHOWN: u64 = 1 << 0;
    pub const DAC_OVERRIDE: u64 = 1 << 1;
    pub const DAC_READ_SEARCH: u64 = 1 << 2;
    pub const FOWNER: u64 = 1 << 3;
    pub const FSETID: u64 = 1 << 4;
    pub const KILL: u64 = 1 << 5;
    pub const SETGID: u64 = 1 << 6;
    pub const SETUID: u64 = 1 << 7;
    pub const SETPCAP: u64 = 1 << 8;
    pub const NET_BIND_SERVICE: u64 = 1 << 10;
    pub const IPC_LOCK: u64 = 1 << 14;
    pub const IPC_OWNER: u64 = 1 << 15;
    pub const SYS_CHROOT: u64 = 1 << 18;
    pub const SYS_PTRACE: u64 = 1 << 19;
    pub const SYS_ADMIN: u64 = 1 << 21;
    pub const SYS_NICE: u64 = 1 << 23;
    pub const SYS_RESOURCE: u64 = 1 << 24;
    pub const MKNOD: u64 = 1 << 27;

    /// The capabilities about files, which setfsuid(2) gives and takes.
    pub const OF_FILES: u64 = CHOWN | DAC_OVERRIDE | DAC_READ_SEARCH | FOWNER | FSETID | MKNOD;
    /// The capabilities that have an effect at the host if the runner has them too.
    pub const OF_HOST: u64 = CHOWN | DAC_OVERRIDE | DAC_READ_SEARCH | FOWNER | FSETID | NET_BIND_SERVICE;
    /// The capabilities of a cage of root: all that allow anything here.
    pub const OF_ROOT: u64 = OF_FILES
        | KILL
        | SETGID
        | SETUID
        | SETPCAP
        | NET_BIND_SERVICE
        | IPC_LOCK
        | IPC_OWNER
        | SYS_CHROOT
        | SYS_ADMIN
        | SYS_NICE
        | SYS_RESOURCE;
    /// CAP_LAST_CAP
    pub const LAST: u64 = 40;
}

/// Users or groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A user.
    User,
    /// A group.
    Group,
}

/// The stamp of no identity: the next user of the thread sets its own.
pub const NOBODYS: u64 = u64::MAX;

/// The capabilities needed to take on another identity and to return.
const RETURN: u64 = capability::SETGID | capability::SETUID;

/// The last stamp that was given. Stamps belong to the process, as identities do: several kernels
/// in a process share them.
static STAMPS: AtomicU64 = AtomicU64::new(0);
static RUNNER: OnceLock<Runner> = OnceLock::new();

thread_local! {
    /// The stamp of the identity that this thread has.
    static HAS: Cell<u64> = const { Cell::new(NOBODYS) };
    /// The identity and capabilities that it has set last, so that equal ones are not set again.
    /// None if unknown.
    static HELD: RefCell<Option<(Identity, u64)>> = const { RefCell::new(None) };
}

struct Runner {
    identity: Identity,
    /// The effective capabilities.
    capabilities: u64,
    changes: bool,
}

/// The runner as it is before anybody becomes another.
fn runner() -> &'static Runner {
    RUNNER.get_or_init(|| {
        let uid = rustix::process::geteuid().as_raw();
        let capabilities = rustix::thread::capabilities(None).map_or(0, |sets| sets.effective.bits());
        let groups = rustix::process::getgroups().unwrap_or_default().iter().map(|group| group.as_raw()).collect();
        let identity = Identity {
            uid,
            gid: rustix::process::getegid().as_raw(),
            groups,
            capabilities: capabilities & capability::OF_HOST,
        };
        // Root of a user namespace may have groups that do not exist there, or may not set any:
        // then no thread could return.
        let changes = uid == 0 && capabilities & RETURN == RETURN && set(&identity, capabilities).is_ok();
        Runner { identity, capabilities, changes }
    })
}

/// Whether the runner can use files with other identities: it is root, has the capabilities, and
/// the host accepts the change.
pub fn changes() -> bool {
    runner().changes
}

/// Whether `identity` is the runner's own, as far as the runner's capabilities go.
pub fn is_runner(identity: &Identity) -> bool {
    let own = &runner().identity;
    let able = identity.capabilities & own.capabilities == own.capabilities;
    able && (identity.uid, identity.gid, &identity.groups) == (own.uid, own.gid, &own.groups)
}

/// A number for an identity.
pub fn new_stamp() -> u64 {
    STAMPS.fetch_add(1, Ordering::Relaxed) + 1
}

/// Whether the calling thread has the identity with this stamp.
#[inline(always)]
pub fn is(stamp: u64) -> bool {
    HAS.get() == stamp
}

/// Whether the host has such a user or group, as seen by the runner. The calling thread has no
/// known identity afterwards.
pub fn exists(kind: Kind, id: u32) -> bool {
    HAS.set(NOBODYS);
    forget_held();
    become_one(kind, id).is_ok()
}

/// The calling thread is the runner's own again.
///
/// # Errors
/// EPERM if the host does not let it.
pub fn take_on_runner() -> Result<()> {
    if is(0) {
        return Ok(());
    }
    // The runner's identity was never needed, so no thread has taken on another one that this
    // thread could have inherited.
    if RUNNER.get().is_none() {
        HAS.set(0);
        return Ok(());
    }
    let own = runner();
    if !own.changes {
        HAS.set(0);
        return Ok(());
    }
    set(&own.identity, own.capabilities)?;
    HAS.set(0);
    Ok(())
}

/// The calling thread uses files as this one from here on.
///
/// # Errors
/// EPERM if the host does not let it: then it has nobody's.
pub fn take_on(stamp: u64, identity: &Identity) -> Result<()> {
    let able = runner().capabilities & (identity.capabilities | RETURN);
    set(identity, able)?;
    HAS.set(stamp);
    Ok(())
}

/// Returns the identity that the thread held, which is unknown from now until it is set again.
fn forget_held() -> Option<(Identity, u64)> {
    // A thread that ends has forgotten it before.
    HELD.try_with(RefCell::take).ok().flatten()
}

fn set(identity: &Identity, capabilities: u64) -> Result<()> {
    HAS.set(NOBODYS);
    let held = forget_held();
    let is_held = |same: fn(&Identity, &Identity) -> bool| held.as_ref().is_some_and(|(held, _)| same(held, identity));
    let same_user = is_held(|held, new| held.uid == new.uid);
    if !same_user {
        become_one(Kind::User, identity.uid)?;
    }
    if !is_held(|held, new| held.gid == new.gid) {
        become_one(Kind::Group, identity.gid)?;
    }
    // The host sorts a copy of them each time, and there may be 65,536.
    if !is_held(|held, new| held.groups == new.groups) {
        set_groups(&identity.groups)?;
    }
    // Last, because setfsuid(2) changes some of the capabilities.
    if !same_user || held.is_none_or(|(_, held)| held != capabilities) {
        let mut sets = rustix::thread::capabilities(None).map_err(super::errno)?;
        sets.effective = CapabilitySet::from_bits_retain(capabilities);
        rustix::thread::set_capabilities(None, sets).map_err(super::errno)?;
    }
    let _ = HELD.try_with(|held| held.replace(Some((identity.clone(), capabilities))));
    Ok(())
}

/// Sets the groups of the calling thread; libc's function would set those of all threads.
fn set_groups(groups: &[u32]) -> Result<()> {
    // SAFETY: the host reads `len` numbers from the list, which is as long.
    result(unsafe { raw_syscall!(Sysno::setgroups, groups.len(), groups.as_ptr() as usize) }).map(drop)
}

/// setfsuid(2) or setfsgid(2), which show only afterwards whether they had an effect.
fn become_one(kind: Kind, id: u32) -> Result<()> {
    let call = match kind {
        Kind::User => Sysno::setfsuid,
        Kind::Group => Sysno::setfsgid,
    };
    let make = |id: u32| {
        // SAFETY: the call takes no address.
        unsafe { raw_syscall!(call, id as usize) }
    };
    make(id);
    if make(u32::MAX) == id as usize { Ok(()) } else { Err(Errno::EPERM) }
}
