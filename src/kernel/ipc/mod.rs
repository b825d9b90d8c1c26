//! System V shared memory, semaphores and message queues, and POSIX message queues.
//!
//! They belong to the runner: its cages share keys and ids with each other and with nobody else,
//! unless one has begun a namespace of its own ([`Space`]). The host's are not used, since they
//! would outlive the runner and be seen by other programs.
//!
//! Ids ascend and are not used again, in whatever namespace: a segment that a cage took along to
//! another one stays the one that it was. One lock keeps all of them; a waiting call waits on the
//! object's own event.

mod memory;
mod named;
mod queue;
mod semaphore;
mod space;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use lind_abi::layout::IpcPerm;
use lind_abi::{CageId, Errno, Result};

use crate::Kernel;
use crate::cage::{Cage, EFFECTIVE, capability};
use crate::call::Ctx;
use crate::host::clock;
use crate::lock::Locked;

pub(crate) use memory::Segment;
pub use named::End;
pub(crate) use named::{Letter, Named, Notice, Notification, Sent, Size, Way};
pub(crate) use queue::{LONGEST, Message, Queue, ROOM};
pub(crate) use semaphore::{HIGHEST, MOST_IN_SET, MOST_OPERATIONS, Operation, Set, Tried, UNDO};
pub(crate) use space::Space;

/// ipc(5): flags of the get calls.
const IPC_CREAT: u32 = 0o1000;
const IPC_EXCL: u32 = 0o2000;
const IPC_PRIVATE: i32 = 0;
/// Does not wait.
pub(crate) const IPC_NOWAIT: u32 = 0o4000;

/// Permissions to ask for.
pub(crate) const READ: u32 = 0o4;
/// See `READ`.
pub(crate) const WRITE: u32 = 0o2;

/// Objects of one kind there may be, in all namespaces together.
pub(crate) const MOST: usize = 1024;
/// SEMMNS: semaphores of all sets together.
pub(crate) const MOST_SEMAPHORES: usize = 32 * MOST_IN_SET;
/// MSGTQL: messages of all queues together.
pub(crate) const MOST_MESSAGES: usize = 1 << 18;

/// All objects of a runner.
#[derive(Default)]
pub(crate) struct Ipc {
    state: Mutex<State>,
}

/// The objects, locked.
#[derive(Default)]
pub(crate) struct State {
    pub segments: Table<Segment>,
    pub sets: Table<Set>,
    pub queues: Table<Queue>,
    /// Messages of all queues together.
    pub messages: usize,
    pub named: Named,
}

impl Ipc {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.locked()
    }

    /// Applies what a cage did with SEM_UNDO.
    pub fn undo(&self, cage: &Cage) {
        let mut state = self.lock();
        let notes: usize = state.sets.objects.values_mut().map(|object| object.value.undo(cage.id)).sum();
        cage.memory.map().release(notes as u64 * UNDO);
    }

    /// Handles the end of a cage: SEM_UNDO is applied, and `heir` pays for its remaining objects.
    pub fn ended(&self, kernel: &Kernel, cage: &Cage, heir: Option<&Cage>) {
        let mut state = self.lock();
        state.pass_on(cage, heir);
        let space = cage.settings().ipc;
        state.left(kernel, space);
    }
}

impl State {
    fn pass_on(&mut self, cage: &Cage, heir: Option<&Cage>) {
        if cage.memory.map().charged() == 0 {
            return;
        }
        // Nobody has this id.
        let payer = heir.map_or(CageId(0), |heir| heir.id);
        let mut left = 0;
        for object in self.sets.objects.values_mut() {
            object.value.undo(cage.id);
            left += object.value.leave_to(cage.id, payer);
        }
        for object in self.queues.objects.values_mut() {
            left += object.value.leave_to(cage.id, payer);
        }
        if let Some(heir) = heir {
            heir.memory.map().inherit(left);
        }
    }
}

impl std::fmt::Debug for Ipc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ipc").finish_non_exhaustive()
    }
}

/// So many bytes that a cage was charged for are gone.
pub(crate) fn release(kernel: &Kernel, payer: CageId, bytes: u64) {
    if let Some(cage) = kernel.cages.get(payer) {
        cage.memory.map().release(bytes);
    }
}

/// The owner and mode of an object.
#[derive(Clone, Debug)]
pub(crate) struct Permissions {
    key: i32,
    owner: (u32, u32),
    creator: (u32, u32),
    mode: u32,
    /// When it was made or its permissions changed.
    pub changed: i64,
}

/// An object and its owner.
#[derive(Debug)]
pub(crate) struct Object<T> {
    space: Space,
    pub permissions: Permissions,
    pub value: T,
}

/// Objects of one kind.
#[derive(Debug)]
pub(crate) struct Table<T> {
    objects: BTreeMap<i32, Object<T>>,
    keys: BTreeMap<(Space, i32), i32>,
    next: i32,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { objects: BTreeMap::new(), keys: BTreeMap::new(), next: 0 }
    }
}

impl<T> Table<T> {
    /// shmget(2) and its like: the id of the object with this key. `fits` checks an existing
    /// object, `make` makes a new one.
    ///
    /// # Errors
    /// EEXIST, ENOENT, EACCES, ENOSPC depending on the flags; the errors of `fits` and `make`.
    pub fn get(
        &mut self,
        cx: &Ctx<'_>,
        key: i32,
        flags: u32,
        fits: impl FnOnce(&T) -> Result<()>,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<i32> {
        let space = Space::of(cx);
        if key != IPC_PRIVATE
            && let Some(&id) = self.keys.get(&(space, key))
        {
            if flags & (IPC_CREAT | IPC_EXCL) == IPC_CREAT | IPC_EXCL {
                return Err(Errno::EEXIST);
            }
            let object = self.objects.get(&id).ok_or(Errno::ENOENT)?;
            fits(&object.value)?;
            let wanted = flags >> 6 | flags >> 3 | flags;
            object.permissions.check(cx, wanted & 0o6)?;
            return Ok(id);
        }
        if key != IPC_PRIVATE && flags & IPC_CREAT == 0 {
            return Err(Errno::ENOENT);
        }
        if self.objects.len() >= MOST || self.next == i32::MAX {
            return Err(Errno::ENOSPC);
        }
        let value = make()?;
        let permissions = Permissions { key, ..Permissions::new(cx, flags & 0o777) };
        let id = self.next;
        self.next += 1;
        self.objects.insert(id, Object { space, permissions, value });
        if key != IPC_PRIVATE {
            self.keys.insert((space, key), id);
        }
        Ok(id)
    }

    /// The object with this id, of whatever namespace: for a caller who has found it before.
    ///
    /// # Errors
    /// EINVAL.
    pub fn find(&mut self, id: i32) -> Result<&mut Object<T>> {
        self.objects.get_mut(&id).ok_or(Errno::EINVAL)
    }

    fn in_space(&mut self, cx: &Ctx<'_>, id: i32) -> Result<&mut Object<T>> {
        let space = Space::of(cx);
        self.find(id).and_then(|object| if object.space == space { Ok(object) } else { Err(Errno::EINVAL) })
    }

    /// The object with this id, if the caller has this permission.
    ///
    /// # Errors
    /// EINVAL, EACCES.
    pub fn permitted(&mut self, cx: &Ctx<'_>, id: i32, wanted: u32) -> Result<&mut Object<T>> {
        let object = self.in_space(cx, id)?;
        object.permissions.check(cx, wanted)?;
        Ok(object)
    }

    /// The object with this id, if it is the caller's.
    ///
    /// # Errors
    /// EINVAL, EPERM.
    pub fn owned(&mut self, cx: &Ctx<'_>, id: i32) -> Result<&mut Object<T>> {
        let object = self.in_space(cx, id)?;
        object.permissions.check_owner(cx)?;
        Ok(object)
    }

    /// Takes an object out.
    ///
    /// # Errors
    /// EINVAL, EPERM.
    pub fn remove(&mut self, cx: &Ctx<'_>, id: i32) -> Result<T> {
        self.owned(cx, id)?;
        self.forget_key(id);
        self.objects.remove(&id).map(|object| object.value).ok_or(Errno::EINVAL)
    }

    /// The id of the object at a place in the caller's list: objects are listed by places, from 0.
    ///
    /// # Errors
    /// EINVAL.
    pub fn at(&self, cx: &Ctx<'_>, place: i32) -> Result<i32> {
        let place = usize::try_from(place).map_err(|_| Errno::EINVAL)?;
        self.objects(cx).nth(place).map(|(id, _)| id).ok_or(Errno::EINVAL)
    }

    /// The objects of all namespaces.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.objects.values().map(|object| &object.value)
    }

    /// The objects that the caller sees, with their ids and owners.
    pub fn objects(&self, cx: &Ctx<'_>) -> impl Iterator<Item = (i32, &Object<T>)> {
        let space = Space::of(cx);
        self.objects.iter().filter(move |(_, object)| object.space == space).map(|(&id, object)| (id, object))
    }

    /// The ids of a namespace's objects.
    fn ids(&self, space: Space) -> Vec<i32> {
        self.objects.iter().filter(|(_, object)| object.space == space).map(|(&id, _)| id).collect()
    }

    /// Takes a namespace's objects out.
    fn take(&mut self, space: Space) -> Vec<T> {
        self.keys.retain(|key, _| key.0 != space);
        self.objects.extract_if(.., |_, object| object.space == space).map(|(_, object)| object.value).collect()
    }

    /// Drops objects.
    pub fn forget(&mut self, gone: impl Fn(i32, &T) -> bool) {
        self.objects.retain(|&id, object| !gone(id, &object.value));
    }

    /// Takes an object's key away.
    pub fn forget_key(&mut self, id: i32) {
        self.keys.retain(|_, of| *of != id);
        if let Some(object) = self.objects.get_mut(&id) {
            object.permissions.key = IPC_PRIVATE;
        }
    }
}

impl Permissions {
    /// The permissions of a new object of the caller's.
    fn new(cx: &Ctx<'_>, mode: u32) -> Permissions {
        let credentials = cx.cage.settings().credentials.clone();
        let owner = (credentials.uid[1], credentials.gid[1]);
        Permissions { key: IPC_PRIVATE, owner, creator: owner, mode, changed: now() }
    }

    fn check(&self, cx: &Ctx<'_>, wanted: u32) -> Result<()> {
        let own = cx.cage.settings().credentials.clone();
        let (user, in_group) = (own.uid[EFFECTIVE], |id| own.in_group(id));
        let granted = if own.can(capability::IPC_OWNER) {
            0o7
        } else if user == self.owner.0 || user == self.creator.0 {
            self.mode >> 6
        } else if in_group(self.owner.1) || in_group(self.creator.1) {
            self.mode >> 3
        } else {
            self.mode
        };
        if wanted & !granted & 0o7 == 0 { Ok(()) } else { Err(Errno::EACCES) }
    }

    fn check_owner(&self, cx: &Ctx<'_>) -> Result<()> {
        let settings = cx.cage.settings();
        let (user, able) = (settings.credentials.uid[EFFECTIVE], settings.credentials.can(capability::SYS_ADMIN));
        if able || user == self.owner.0 || user == self.creator.0 { Ok(()) } else { Err(Errno::EPERM) }
    }

    /// IPC_SET.
    ///
    /// # Errors
    /// EINVAL for an id of -1.
    pub fn set(&mut self, new: &IpcPerm) -> Result<()> {
        if new.uid == u32::MAX || new.gid == u32::MAX {
            return Err(Errno::EINVAL);
        }
        self.owner = (new.uid, new.gid);
        self.mode = self.mode & !0o777 | new.mode & 0o777;
        self.changed = now();
        Ok(())
    }

    /// Sets a bit that IPC_STAT shows in the mode.
    pub fn mark(&mut self, bit: u32) {
        self.mode |= bit;
    }

    /// Clears such a bit.
    pub fn unmark(&mut self, bit: u32) {
        self.mode &= !bit;
    }

    /// The struct that IPC_STAT returns.
    pub fn to_guest(&self) -> IpcPerm {
        IpcPerm {
            key: self.key,
            uid: self.owner.0,
            gid: self.owner.1,
            cuid: self.creator.0,
            cgid: self.creator.1,
            mode: self.mode,
            ..IpcPerm::default()
        }
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    clock::gettime(libc::CLOCK_REALTIME).map_or(0, |time| time.sec)
}

/// How many times a segment is attached, in all living cages: parts that mprotect(2), munmap(2) and
/// mlock(2) have made count each.
pub(crate) fn attachments(kernel: &Kernel, id: i32) -> u32 {
    let cages = kernel.cages.all();
    let counts = cages.iter().filter(|cage| !cage.is_dead() && !cage.memory.is_borrowed()).map(|cage| {
        let map = cage.memory.map();
        map.regions().filter(|(_, region)| region.segment.is_some_and(|segment| segment.id == id)).count()
    });
    u32::try_from(counts.sum::<usize>()).unwrap_or(u32::MAX)
}
