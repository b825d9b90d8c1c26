//! Executable files that are in use. As long as a cage runs a file, no cage can open it for writing
//! or truncate it: ETXTBSY.
//!
//! The host knows nothing of this: it sees files that were read. A cage that opens a file for
//! writing looks here afterwards, before anything is written; a cage that is about to run one asks
//! the host for writers and then notes it here, both under the lock. So one of them sees the other,
//! and only one has to give way.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

use lind_abi::{Errno, Result};

use crate::fd::locks::{FileId, Locks};
use crate::host::{self, lease::Lease};
use crate::lock::Locked;

/// The files that cages execute.
#[derive(Default)]
pub(crate) struct Busy(Mutex<HashMap<FileId, Run>>);

/// A file that is being executed.
struct Run {
    /// The number of cages that execute it.
    count: usize,
    /// Keeps it, though its name may have gone: its number must not become another file's.
    file: OwnedFd,
}

/// Marks a file as being executed by a cage, until it is dropped.
pub struct Text {
    busy: Arc<Busy>,
    file: FileId,
}

impl Busy {
    /// `file` is about to be run. Fails if the file is open for writing, or mapped so, inside or
    /// outside. Writers cannot be detected for files of other users, on filesystems without leases,
    /// and for files whose locks the kernel itself holds at the host by a descriptor that may
    /// write.
    ///
    /// # Errors
    /// ETXTBSY; the errors of fstat(2) and dup(2).
    pub fn run(self: &Arc<Busy>, file: BorrowedFd<'_>, locks: &Locks) -> Result<Text> {
        let id = FileId::of(file)?;
        let mut running = self.running();
        if matches!(Lease::take(file), Err(Errno::EAGAIN)) && !locks.at_host(id) {
            return Err(Errno::ETXTBSY);
        }
        match running.entry(id) {
            Entry::Occupied(mut run) => run.get_mut().count += 1,
            Entry::Vacant(entry) => {
                let file = rustix::io::fcntl_dupfd_cloexec(file, 3).map_err(host::errno)?;
                entry.insert(Run { count: 1, file });
            }
        }
        Ok(Text { busy: Arc::clone(self), file: id })
    }

    /// Whether a file that was just opened for writing may be written to.
    ///
    /// # Errors
    /// ETXTBSY.
    pub fn check(&self, file: FileId) -> Result<()> {
        if self.running().contains_key(&file) { Err(Errno::ETXTBSY) } else { Ok(()) }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<FileId, Run>> {
        self.0.locked()
    }
}

impl Text {
    /// The file, opened once more.
    ///
    /// # Errors
    /// EMFILE.
    pub fn file(&self) -> Result<OwnedFd> {
        let running = self.busy.running();
        let file = &running.get(&self.file).ok_or(Errno::ENOENT)?.file;
        rustix::io::fcntl_dupfd_cloexec(file, 3).map_err(host::errno)
    }
}

impl Clone for Text {
    fn clone(&self) -> Text {
        if let Some(run) = self.busy.running().get_mut(&self.file) {
            run.count += 1;
        }
        Text { busy: Arc::clone(&self.busy), file: self.file }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        let mut running = self.busy.running();
        let Entry::Occupied(mut run) = running.entry(self.file) else { return };
        run.get_mut().count -= 1;
        if run.get().count == 0 {
            let file = run.remove().file;
            // Closing what has no name any more can take long.
            drop(running);
            drop(file);
        }
    }
}
