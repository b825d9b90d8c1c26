//! Credentials of a cage: ids, groups and capabilities, and how they change each other.
//!
//! They belong to the whole cage, not to one thread; docs/processes.md describes the consequences.
//! [`host::identity`](crate::host::identity) makes the host use them.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::{Errno, Result};

use super::Cage;
use crate::host;
pub(crate) use crate::host::identity::capability;
use crate::host::identity::{self, Identity};

/// The indices of ids in their arrays: real, effective, saved.
pub(crate) const REAL: usize = 0;
/// See `REAL`.
pub(crate) const EFFECTIVE: usize = 1;
/// See `REAL`.
pub(crate) const SAVED: usize = 2;

/// Bits of prctl(PR_SET_SECUREBITS); each has one beside it that locks it.
pub(crate) mod secure {
    /// Root has no capabilities for being root.
    pub const NOROOT: u32 = 1 << 0;
    /// Changes of ids change no capabilities.
    pub const NO_SETUID_FIXUP: u32 = 1 << 2;
    /// Root's capabilities remain when the process stops being root.
    pub const KEEP_CAPS: u32 = 1 << 4;
    /// Nothing is added to the ambient set.
    pub const NO_CAP_AMBIENT_RAISE: u32 = 1 << 6;
    /// The bits that lock another bit.
    pub const LOCKS: u32 = 0xaa;
    /// All bits that exist.
    pub const ALL: u32 = 0xff;
}

/// The sets of capabilities(7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The capabilities that execve(2) may keep.
    pub inheritable: u64,
    /// The capabilities that it may use.
    pub permitted: u64,
    /// The capabilities in use.
    pub effective: u64,
    /// The most that execve(2) can give.
    pub bounding: u64,
    /// The capabilities that execve(2) keeps for a process that is not root.
    pub ambient: u64,
}

/// Ids, groups and capabilities.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// Real, effective, saved user id.
    pub uid: [u32; 3],
    /// Real, effective, saved group id.
    pub gid: [u32; 3],
    /// The ids used for access to files: setfsuid(2), setfsgid(2). They follow the effective ids
    /// unless those calls set them.
    pub fsuid: u32,
    /// See `fsuid`.
    pub fsgid: u32,
    /// Supplementary groups.
    pub groups: Arc<[u32]>,
    /// Capabilities.
    pub capabilities: Capabilities,
    /// prctl(PR_SET_SECUREBITS).
    pub secure_bits: u32,
    /// The identity that the host sees in its calls on files: 0 is the runner's.
    stamp: u64,
}

/// The ids that a program file's set-user-ID and set-group-ID bits give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileIds {
    /// The user id that the file gives.
    pub uid: Option<u32>,
    /// The group id that the file gives.
    pub gid: Option<u32>,
}

impl Credentials {
    /// The runner's own, before anything of them has changed.
    pub fn of_runner() -> Credentials {
        use rustix::process::{getegid, geteuid, getgid, getgroups, getuid};
        let groups = getgroups().unwrap_or_default().iter().map(|g| g.as_raw()).collect();
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        let all = if uid == 0 { capability::OF_ROOT } else { 0 };
        Credentials {
            uid: [getuid().as_raw(), uid, uid],
            gid: [getgid().as_raw(), gid, gid],
            fsuid: uid,
            fsgid: gid,
            groups,
            capabilities: Capabilities {
                inheritable: 0,
                permitted: all,
                effective: all,
                bounding: capability::OF_ROOT,
                ambient: 0,
            },
            secure_bits: 0,
            stamp: 0,
        }
    }

    /// Whether it may do what a capability allows.
    pub fn can(&self, capability: u64) -> bool {
        self.capabilities.effective & capability != 0
    }

    /// Whether a group is among its own, for files and the like.
    pub fn in_group(&self, gid: u32) -> bool {
        self.fsgid == gid || self.groups.contains(&gid)
    }

    fn has(&self, bit: u32) -> bool {
        self.secure_bits & bit != 0
    }

    /// Sets the user ids: capabilities follow root, as capabilities(7) says under "Effect of user
    /// ID changes".
    pub fn change_users(&mut self, new: [u32; 3]) {
        let old = std::mem::replace(&mut self.uid, new);
        self.fsuid = new[EFFECTIVE];
        if self.has(secure::NO_SETUID_FIXUP) {
            return;
        }
        let sets = &mut self.capabilities;
        if old.contains(&0) && !new.contains(&0) {
            if self.secure_bits & secure::KEEP_CAPS == 0 {
                (sets.permitted, sets.effective) = (0, 0);
            }
            sets.ambient = 0;
        }
        if old[EFFECTIVE] == 0 && new[EFFECTIVE] != 0 {
            sets.effective = 0;
        } else if old[EFFECTIVE] != 0 && new[EFFECTIVE] == 0 {
            sets.effective = sets.permitted;
        }
    }

    /// Sets the group ids.
    pub fn change_groups(&mut self, new: [u32; 3]) {
        self.gid = new;
        self.fsgid = new[EFFECTIVE];
    }

    /// Sets the user id for access to files.
    pub fn change_file_user(&mut self, new: u32) {
        let old = std::mem::replace(&mut self.fsuid, new);
        if self.has(secure::NO_SETUID_FIXUP) {
            return;
        }
        let sets = &mut self.capabilities;
        if old == 0 && new != 0 {
            sets.effective &= !capability::OF_FILES;
        } else if old != 0 && new == 0 {
            sets.effective |= sets.permitted & capability::OF_FILES;
        }
    }

    /// Changes the credentials as execve(2) of a program with these bits does.
    pub fn execute(&mut self, file: FileIds) {
        let changes = file.uid.is_some_and(|uid| uid != self.uid[EFFECTIVE])
            || file.gid.is_some_and(|gid| gid != self.gid[EFFECTIVE]);
        self.uid[EFFECTIVE] = file.uid.unwrap_or(self.uid[EFFECTIVE]);
        self.gid[EFFECTIVE] = file.gid.unwrap_or(self.gid[EFFECTIVE]);
        (self.uid[SAVED], self.fsuid) = (self.uid[EFFECTIVE], self.uid[EFFECTIVE]);
        (self.gid[SAVED], self.fsgid) = (self.gid[EFFECTIVE], self.gid[EFFECTIVE]);
        let noroot = self.has(secure::NOROOT);
        let sets = &mut self.capabilities;
        if changes {
            sets.ambient = 0;
        }
        let root = !noroot && (self.uid[REAL] == 0 || self.uid[EFFECTIVE] == 0);
        sets.permitted = if root { sets.inheritable | sets.bounding } else { sets.ambient };
        sets.effective = if root && self.uid[EFFECTIVE] == 0 { sets.permitted } else { sets.ambient };
        self.secure_bits &= !secure::KEEP_CAPS;
    }

    /// Whether the program has rights that the process which started it does not have: AT_SECURE.
    pub fn is_raised(&self) -> bool {
        self.uid[REAL] != self.uid[EFFECTIVE] || self.gid[REAL] != self.gid[EFFECTIVE]
    }

    fn identity(&self) -> Identity {
        Identity {
            uid: self.fsuid,
            gid: self.fsgid,
            groups: Arc::clone(&self.groups),
            capabilities: self.capabilities.effective & capability::OF_HOST,
        }
    }

    /// The identity for access(2): the real ids, with the capabilities that they could use.
    fn real_identity(&self) -> Identity {
        let of_root = if self.uid[REAL] == 0 { self.capabilities.permitted } else { 0 };
        let able = if self.has(secure::NO_SETUID_FIXUP) { self.capabilities.effective } else { of_root };
        Identity {
            uid: self.uid[REAL],
            gid: self.gid[REAL],
            groups: Arc::clone(&self.groups),
            capabilities: able & capability::OF_HOST,
        }
    }

    /// Whether access(2) uses another identity than open(2).
    fn asks_as_another(&self) -> bool {
        let (own, real) = (self.identity(), self.real_identity());
        own != real
    }

    /// Whether it names an id that `old` does not.
    fn ids_beyond(&self, old: &Credentials) -> impl Iterator<Item = (identity::Kind, u32)> {
        let users = self.uid.into_iter().chain([self.fsuid]);
        let groups = self.gid.into_iter().chain([self.fsgid]);
        let (old_uid, old_gid) = ((old.uid, old.fsuid), (old.gid, old.fsgid));
        let new_users = users.filter(move |id| !old_uid.0.contains(id) && *id != old_uid.1);
        let new_groups = groups.filter(move |id| !old_gid.0.contains(id) && *id != old_gid.1);
        new_users.map(|id| (identity::Kind::User, id)).chain(new_groups.map(|id| (identity::Kind::Group, id)))
    }
}

/// Effective user and group id, in one word.
pub(super) fn effective_word(credentials: &Credentials) -> u64 {
    u64::from(credentials.uid[EFFECTIVE]) | u64::from(credentials.gid[EFFECTIVE]) << 32
}

/// The identity that the host sees when a cage uses files, for [`Cage::as_itself`]:
/// [`Credentials::stamp`] in all bits but the lowest, which says whether access(2) asks for
/// another.
pub(super) fn files_word(credentials: &Credentials) -> u64 {
    credentials.stamp << 1 | u64::from(credentials.asks_as_another())
}

impl Cage {
    /// Changes the cage's credentials.
    ///
    /// # Errors
    /// The errors of `change`; EPERM for ids that the runner may not take on, EINVAL for ids that
    /// its user namespace does not have.
    pub(crate) fn change_credentials<T>(&self, change: impl FnOnce(&mut Credentials) -> Result<T>) -> Result<T> {
        let outcome = self.try_change_credentials(change);
        // Also after a failure: to find out who exists, the thread becomes everybody.
        self.as_itself()?;
        outcome
    }

    fn try_change_credentials<T>(&self, change: impl FnOnce(&mut Credentials) -> Result<T>) -> Result<T> {
        let mut settings = self.settings();
        let old = &settings.credentials;
        let mut new = old.clone();
        let result = change(&mut new)?;
        if identity::changes() {
            for (kind, id) in new.ids_beyond(old) {
                if !identity::exists(kind, id) {
                    return Err(Errno::EINVAL);
                }
            }
            let wanted = new.identity();
            if wanted != old.identity() {
                new.stamp = if identity::is_runner(&wanted) { 0 } else { identity::new_stamp() };
            }
        } else if new.ids_beyond(old).next().is_some() {
            return Err(Errno::EPERM);
        }
        self.effective.store(effective_word(&new), Ordering::Relaxed);
        self.files_as.store(files_word(&new), Ordering::Relaxed);
        if new.stamp != 0 {
            // The short way of write(2) does not ask who writes.
            self.fds.watch();
        }
        settings.credentials = new;
        Ok(result)
    }

    /// The calling host thread uses files as this cage from here on.
    ///
    /// # Errors
    /// EPERM if the host does not let it; the call must not be made then.
    #[inline(always)]
    pub(crate) fn as_itself(&self) -> Result<()> {
        if identity::is(self.files_as.load(Ordering::Relaxed) >> 1) { Ok(()) } else { self.take_on() }
    }

    /// Whether it may run a program file.
    ///
    /// # Errors
    /// EACCES.
    pub(super) fn may_execute(&self, file: BorrowedFd<'_>) -> Result<()> {
        const X_OK: u32 = 1;
        const EFFECTIVE_IDS: u32 = 0x200; // AT_EACCESS
        const EMPTY_PATH: u32 = 0x1000; // AT_EMPTY_PATH
        if self.files_as.load(Ordering::Relaxed) >> 1 == 0 {
            return Ok(());
        }
        self.as_itself()?;
        host::fs::access(file, c"", X_OK, EFFECTIVE_IDS | EMPTY_PATH)
    }

    /// Applies the ids of a program's file at its start. They count if the runner can take them on,
    /// and only for cages that may gain rights.
    ///
    /// # Errors
    /// As `change_credentials`.
    pub(super) fn executes(&self, file: FileIds) -> Result<()> {
        let gains = file != FileIds::default() && identity::changes() && !self.settings().no_new_privs;
        let exists = |kind, id: &u32| gains && identity::exists(kind, *id);
        let file = FileIds {
            uid: file.uid.filter(|id| exists(identity::Kind::User, id)),
            gid: file.gid.filter(|id| exists(identity::Kind::Group, id)),
        };
        self.change_credentials(|own| {
            own.execute(file);
            Ok(())
        })
    }

    #[cold]
    #[inline(never)]
    fn take_on(&self) -> Result<()> {
        let (stamp, identity) = {
            let settings = self.settings();
            (settings.credentials.stamp, settings.credentials.identity())
        };
        match stamp {
            0 => identity::take_on_runner(),
            stamp => identity::take_on(stamp, &identity),
        }
    }

    /// For access(2): the calling host thread uses files with the real ids until the next call.
    /// False where the host's own access(2) knows them.
    ///
    /// # Errors
    /// As `as_itself`.
    pub(crate) fn as_real(&self) -> Result<bool> {
        if self.files_as.load(Ordering::Relaxed) == 0 || !identity::changes() {
            return Ok(false);
        }
        let identity = self.settings().credentials.real_identity();
        identity::take_on(identity::NOBODYS, &identity)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Credentials {
        let all = capability::OF_ROOT;
        let capabilities = Capabilities { inheritable: 0, permitted: all, effective: all, bounding: all, ambient: 0 };
        Credentials {
            uid: [0; 3],
            gid: [0; 3],
            fsuid: 0,
            fsgid: 0,
            groups: Arc::new([]),
            capabilities,
            secure_bits: 0,
            stamp: 0,
        }
    }

    #[test]
    fn capabilities_go_with_root() {
        let mut c = root();
        c.change_users([0, 7, 0]);
        assert_eq!((c.capabilities.effective, c.capabilities.permitted), (0, capability::OF_ROOT));
        c.change_users([0, 0, 0]);
        assert_eq!(c.capabilities.effective, capability::OF_ROOT);
        c.secure_bits = secure::KEEP_CAPS;
        c.change_users([7; 3]);
        assert_eq!((c.capabilities.effective, c.capabilities.permitted), (0, capability::OF_ROOT));
        c.secure_bits = 0;
        c.change_users([0; 3]);
        c.change_users([7; 3]);
        assert_eq!((c.capabilities.effective, c.capabilities.permitted), (0, 0));
    }

    #[test]
    fn file_ids_take_and_give_what_is_about_files() {
        let mut c = root();
        c.change_file_user(7);
        assert!(!c.can(capability::DAC_OVERRIDE) && c.can(capability::KILL));
        c.change_file_user(0);
        assert!(c.can(capability::DAC_OVERRIDE));
    }

    #[test]
    fn programs_with_a_bit_raise() {
        let mut c = root();
        c.change_users([7; 3]);
        c.execute(FileIds::default());
        assert_eq!((c.uid, c.capabilities.effective, c.is_raised()), ([7; 3], 0, false));
        c.execute(FileIds { uid: Some(0), gid: None });
        assert_eq!((c.uid, c.fsuid, c.is_raised()), ([7, 0, 0], 0, true));
        assert_eq!(c.capabilities.effective, capability::OF_ROOT);
        c.secure_bits = secure::NOROOT;
        c.execute(FileIds::default());
        assert_eq!(c.capabilities.permitted, 0);
    }
}
