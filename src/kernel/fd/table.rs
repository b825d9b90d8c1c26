//! The descriptor table of a cage.
//!
//! [`FdTable::host`] gives the host descriptor alone and takes no lock, for calls where every
//! nanosecond counts (see [`hazard`](super::hazard)). [`FdTable::get`] gives the file, held alive
//! by its reference count; the lock of a slot is held while the count goes up (21 ns; an atomic
//! pointer that needs no lock takes 12, but 190 more for each open and close). Changes go through
//! one mutex, which also keeps the lowest free number. Slots come in chunks so that the table grows
//! without moving.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use lind_abi::{CageId, Errno, Result};

use super::hazard::{InUse, Reader, Readers, Users};
use super::locks::{Locks, Owner};
use super::{File, Kind};
use crate::host;
use crate::lock::Locked;

/// The number of standard descriptors.
pub(super) const STANDARD: u32 = 3;

const CHUNK: usize = 256;
const CHUNKS: usize = 256;

/// The largest size of a table, whatever its limit is.
pub const MAX_FILES: usize = CHUNK * CHUNKS;

struct Slot {
    file: Mutex<Option<Arc<File>>>,
    /// The host descriptor of `file`, -1 without one. Set after `file`, cleared before it.
    host: AtomicI32,
    cloexec: AtomicBool,
    /// Whether reading `file` may wait for another process.
    waits: AtomicBool,
}

impl Default for Slot {
    fn default() -> Self {
        Slot {
            file: Mutex::default(),
            host: AtomicI32::new(-1),
            cloexec: AtomicBool::new(false),
            waits: AtomicBool::new(false),
        }
    }
}

impl Slot {
    fn fill(&self, file: Arc<File>, cloexec: bool) -> Option<Arc<File>> {
        let host = file.host().as_raw_fd();
        self.cloexec.store(cloexec, Ordering::Relaxed);
        self.waits.store(file.makes_wait(), Ordering::Relaxed);
        let old = self.file().replace(file);
        self.host.swap(host, Ordering::SeqCst);
        old
    }

    fn take(&self) -> Option<Arc<File>> {
        self.host.swap(-1, Ordering::SeqCst);
        self.file().take()
    }

    fn file(&self) -> MutexGuard<'_, Option<Arc<File>>> {
        self.file.locked()
    }
}

/// A table of open files.
pub struct FdTable {
    chunks: Box<[OnceLock<Box<[Slot; CHUNK]>>; CHUNKS]>,
    writer: Mutex<Writer>,
    users: Users,
    readers: Arc<Readers>,
    /// Whether it has ever had a file whose reads and writes the kernel has to look at, or its cage
    /// a limit on the size of files.
    watched: AtomicBool,
    /// Set by the cage's first record lock: closing then gives locks up.
    locks: OnceLock<(Arc<Locks>, Owner)>,
}

/// State for changes of the table.
#[derive(Clone)]
struct Writer {
    /// Below this no number is free.
    lowest: usize,
    /// One past the highest number in use.
    end: usize,
    /// RLIMIT_NOFILE: numbers from here on are EMFILE.
    limit: usize,
}

/// A file that was looked up. Keeps it alive.
pub struct FileRef(Arc<File>);

impl std::ops::Deref for FileRef {
    type Target = File;
    #[inline]
    fn deref(&self) -> &File {
        &self.0
    }
}

impl FileRef {
    /// A share of the file that outlives the look-up.
    pub fn share(&self) -> Arc<File> {
        Arc::clone(&self.0)
    }

    /// The share that this is.
    pub fn into_share(self) -> Arc<File> {
        self.0
    }
}

impl FdTable {
    /// An empty table whose numbers stay below `limit`, used by threads of `readers`.
    pub fn new(limit: u64, readers: &Arc<Readers>) -> FdTable {
        let limit = usize::try_from(limit).unwrap_or(MAX_FILES).min(MAX_FILES);
        let chunks = Box::new([const { OnceLock::new() }; CHUNKS]);
        let writer = Mutex::new(Writer { lowest: 0, end: 0, limit });
        FdTable {
            chunks,
            writer,
            users: Users::default(),
            readers: Arc::clone(readers),
            watched: AtomicBool::new(false),
            locks: OnceLock::new(),
        }
    }

    /// A table with copies of the process's own descriptors 0, 1 and 2, and of `more` behind them,
    /// as far as they are open. Directories are left out: paths must not start outside the root.
    pub fn with_stdio(limit: u64, readers: &Arc<Readers>, more: u32) -> FdTable {
        let table = FdTable::new(limit, readers);
        for number in 0..STANDARD + more {
            let Ok(copy) = host::own_again(number) else { continue };
            let directory =
                rustix::fs::fstat(&copy).is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir());
            if !directory {
                let _ = table.put(number as usize, Arc::new(File::handed_in(copy)), false, None);
            }
        }
        table
    }

    /// The words of the threads that use this kernel's tables.
    pub fn readers(&self) -> &Arc<Readers> {
        &self.readers
    }

    /// The host descriptor behind a descriptor, kept open while `reader`'s thread uses it; one at a
    /// time for each thread.
    ///
    /// # Errors
    /// EBADF.
    #[inline(always)]
    pub fn host<'r>(&self, number: i32, reader: &'r Reader) -> Result<InUse<'r>> {
        let slot = self.slot(usize::try_from(number).map_err(|_| Errno::EBADF)?).ok_or(Errno::EBADF)?;
        reader.announce(&self.users, &slot.host).ok_or(Errno::EBADF)
    }

    /// The file behind a descriptor.
    ///
    /// # Errors
    /// EBADF.
    #[inline]
    pub fn get(&self, number: i32) -> Result<FileRef> {
        let slot = self.slot(usize::try_from(number).map_err(|_| Errno::EBADF)?).ok_or(Errno::EBADF)?;
        if slot.host.load(Ordering::Acquire) < 0 {
            return Err(Errno::EBADF);
        }
        slot.file().clone().map(FileRef).ok_or(Errno::EBADF)
    }

    /// Gives a file the lowest free number that is at least `from`.
    ///
    /// # Errors
    /// EMFILE at the limit.
    pub fn add_from(&self, from: usize, file: Arc<File>, cloexec: bool) -> Result<i32> {
        let mut writer = self.writer();
        let number = (from.max(writer.lowest)..writer.limit).find(|&n| self.is_free(n)).ok_or(Errno::EMFILE)?;
        self.store(&mut writer, number, file, cloexec);
        if from <= writer.lowest {
            writer.lowest = number + 1;
        }
        i32::try_from(number).map_err(|_| Errno::EMFILE)
    }

    /// Gives a file the lowest free number.
    ///
    /// # Errors
    /// EMFILE at the limit.
    pub fn add(&self, file: File, cloexec: bool) -> Result<i32> {
        self.add_from(0, Arc::new(file), cloexec)
    }

    /// Gives a host descriptor the lowest free number.
    ///
    /// # Errors
    /// EMFILE at the limit.
    pub fn add_host(&self, host: OwnedFd, cloexec: bool) -> Result<i32> {
        self.add(File::new(host, Kind::Host), cloexec)
    }

    /// Whether `count` more descriptors fit, for calls that must not do their work if not.
    ///
    /// # Errors
    /// EMFILE.
    pub fn check_room(&self, count: usize) -> Result<()> {
        let writer = self.writer();
        let free = (writer.lowest..writer.limit).filter(|&number| self.is_free(number)).take(count).count();
        if free == count { Ok(()) } else { Err(Errno::EMFILE) }
    }

    /// Gives a file this very number; a file that was there is closed. `closer` is the calling
    /// thread, if known.
    ///
    /// # Errors
    /// EBADF when the number is beyond the limit.
    pub fn put(
        &self,
        number: usize,
        file: Arc<File>,
        cloexec: bool,
        closer: Option<&Reader>,
    ) -> Result<Option<Arc<File>>> {
        let mut writer = self.writer();
        if number >= writer.limit {
            return Err(Errno::EBADF);
        }
        let old = self.store(&mut writer, number, file, cloexec);
        drop(writer);
        if let Some(old) = &old {
            self.closed(old, closer);
        }
        Ok(old)
    }

    /// Closes a descriptor and returns the file it named. `closer` is the thread that does.
    ///
    /// # Errors
    /// EBADF.
    pub fn remove(&self, number: i32, closer: &Reader) -> Result<Arc<File>> {
        let number = usize::try_from(number).map_err(|_| Errno::EBADF)?;
        // Closing what is not open is common (close(-1), close ranges) and needs no lock.
        if self.is_free(number) {
            return Err(Errno::EBADF);
        }
        let mut writer = self.writer();
        let file = self.slot(number).and_then(Slot::take).ok_or(Errno::EBADF)?;
        writer.lowest = writer.lowest.min(number);
        drop(writer);
        self.closed(&file, Some(closer));
        Ok(file)
    }

    /// FD_CLOEXEC.
    ///
    /// # Errors
    /// EBADF.
    pub fn cloexec(&self, number: i32) -> Result<bool> {
        self.open_slot(number).map(|slot| slot.cloexec.load(Ordering::Relaxed))
    }

    /// Sets FD_CLOEXEC.
    ///
    /// # Errors
    /// EBADF.
    pub fn set_cloexec(&self, number: i32, on: bool) -> Result<()> {
        let _writer = self.writer();
        self.open_slot(number).map(|slot| slot.cloexec.store(on, Ordering::Relaxed))
    }

    /// The open numbers within a range, ascending.
    pub fn open_in(&self, first: u32, last: u32) -> Vec<i32> {
        let end = self.writer().end;
        (first as usize..end.min((last as usize).saturating_add(1)))
            .filter(|&n| !self.is_free(n))
            .filter_map(|n| i32::try_from(n).ok())
            .collect()
    }

    /// From now on reading and writing looks at what is behind a number first.
    pub fn watch(&self) {
        self.watched.store(true, Ordering::Relaxed);
    }

    /// Whether reading and writing has to look at what is behind a number first.
    #[inline(always)]
    pub fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// Whether reading from a number may block. The answer may be a little out of date, which
    /// suffices for spinning.
    #[inline(always)]
    pub fn makes_wait(&self, number: i32) -> bool {
        usize::try_from(number)
            .is_ok_and(|number| self.slot(number).is_some_and(|slot| slot.waits.load(Ordering::Relaxed)))
    }

    /// The limit on numbers.
    pub fn limit(&self) -> usize {
        self.writer().limit
    }

    /// The soft limit on numbers.
    pub fn set_limit(&self, limit: u64) {
        self.writer().limit = usize::try_from(limit).unwrap_or(MAX_FILES).min(MAX_FILES);
    }

    /// A table for a new cage that runs a new program: all files that are not close-on-exec, under
    /// the same numbers.
    pub fn inherit(&self) -> FdTable {
        self.copy(|cloexec| !cloexec)
    }

    /// A table for a child that fork(2) makes: the same files under the same numbers.
    pub fn fork(&self) -> FdTable {
        self.copy(|_| true)
    }

    /// Closes what is close-on-exec. `closer` is the thread that runs a new program.
    pub fn close_on_exec(&self, closer: &Reader) {
        for number in self.open_in(0, u32::MAX) {
            if self.cloexec(number) == Ok(true) {
                let _ = self.remove(number, closer);
            }
        }
    }

    fn copy(&self, keep: impl Fn(bool) -> bool) -> FdTable {
        let writer = self.writer();
        let child = FdTable::new(writer.limit as u64, &self.readers);
        *child.writer() = Writer { lowest: 0, ..writer.clone() };
        child.watched.store(self.is_watched(), Ordering::Relaxed);
        for number in 0..writer.end {
            let Some(slot) = self.slot(number) else { continue };
            let cloexec = slot.cloexec.load(Ordering::Relaxed);
            if let Some(file) = slot.file().clone().filter(|_| keep(cloexec)) {
                child.chunk(number).fill(file, cloexec);
            }
        }
        child
    }

    /// Puts other files in the place of those for which `with` has one. Only for a table that is
    /// not in use yet.
    ///
    /// # Errors
    /// The errors of `with`.
    pub fn exchange(&self, mut with: impl FnMut(&Arc<File>) -> Result<Option<Arc<File>>>) -> Result<()> {
        let writer = self.writer();
        for slot in (0..writer.end).filter_map(|number| self.slot(number)) {
            let Some(file) = slot.file().clone() else { continue };
            if let Some(new) = with(&file)? {
                slot.fill(new, slot.cloexec.load(Ordering::Relaxed));
            }
        }
        Ok(())
    }

    /// Closes everything.
    pub fn close_all(&self) {
        let closing: Vec<_> = {
            let mut writer = self.writer();
            let closing = (0..writer.end).filter_map(|number| self.slot(number)?.take()).collect();
            writer.lowest = 0;
            writer.end = 0;
            closing
        };
        self.readers.release(&self.users, None, &closing);
        if let Some((locks, owner)) = self.locks.get() {
            locks.give_up_all(*owner);
        }
    }

    /// The owner of record locks that go when one of these descriptors is closed.
    pub fn lock_owner(&self, locks: &Arc<Locks>, cage: CageId) -> Owner {
        self.locks.get_or_init(|| (Arc::clone(locks), Owner::Cage(cage))).1
    }

    /// Closes a file that has left its slot: it stays open while a thread uses it, and close(2) of
    /// any descriptor of a file gives up the cage's record locks on it.
    #[inline]
    fn closed(&self, file: &Arc<File>, closer: Option<&Reader>) {
        self.readers.release(&self.users, closer, std::slice::from_ref(file));
        if let Some((locks, owner)) = self.locks.get()
            && let Ok(id) = file.id()
        {
            locks.give_up_file(id, *owner);
        }
    }

    fn store(&self, writer: &mut Writer, number: usize, file: Arc<File>, cloexec: bool) -> Option<Arc<File>> {
        writer.end = writer.end.max(number + 1);
        if file.is_watched() {
            self.watched.store(true, Ordering::Relaxed);
        }
        self.chunk(number).fill(file, cloexec)
    }

    #[inline(always)]
    fn slot(&self, number: usize) -> Option<&Slot> {
        self.chunks.get(number / CHUNK)?.get().map(|chunk| &chunk[number % CHUNK])
    }

    /// The slot of a number below MAX_FILES, made if need be.
    fn chunk(&self, number: usize) -> &Slot {
        let chunk = self.chunks[number / CHUNK].get_or_init(|| {
            let slots: Box<[Slot]> = (0..CHUNK).map(|_| Slot::default()).collect();
            slots.try_into().unwrap_or_else(|_| unreachable!("made with CHUNK slots"))
        });
        &chunk[number % CHUNK]
    }

    fn is_free(&self, number: usize) -> bool {
        self.slot(number).is_none_or(|slot| slot.host.load(Ordering::Acquire) < 0)
    }

    fn open_slot(&self, number: i32) -> Result<&Slot> {
        let number = usize::try_from(number).map_err(|_| Errno::EBADF)?;
        self.slot(number).filter(|slot| slot.host.load(Ordering::Acquire) >= 0).ok_or(Errno::EBADF)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.locked()
    }
}

#[cfg(test)]
mod tests;
