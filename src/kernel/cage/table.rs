//! The cages that exist, by id.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use lind_abi::layout::Timespec;
use lind_abi::{CageId, Errno, Result};

use super::Cage;
use crate::host::clock;
use crate::lock::unpoisoned;

/// All cages, zombies included.
#[derive(Default)]
pub struct CageTable {
    cages: RwLock<ById>,
}

/// With the time of their birth, since the machine started.
type ById = HashMap<CageId, (Arc<Cage>, Timespec)>;

impl CageTable {
    /// The cage with this id.
    pub fn get(&self, id: CageId) -> Option<Arc<Cage>> {
        self.read().get(&id).map(|(cage, _)| Arc::clone(cage))
    }

    /// When a cage was born, since the machine started.
    pub(crate) fn born(&self, id: CageId) -> Option<Timespec> {
        self.read().get(&id).map(|&(_, born)| born)
    }

    /// Adds a cage.
    ///
    /// # Errors
    /// EAGAIN if `limit` cages exist; EEXIST if one has its id, which the record of a replay has
    /// chosen.
    pub(super) fn insert(&self, cage: Arc<Cage>, limit: u64) -> Result<()> {
        let born = clock::gettime(libc::CLOCK_BOOTTIME).unwrap_or_default();
        let mut cages = self.write();
        if cages.len() as u64 >= limit {
            return Err(Errno::EAGAIN);
        }
        match cages.entry(cage.id) {
            Entry::Occupied(_) => Err(Errno::EEXIST),
            Entry::Vacant(free) => {
                free.insert((cage, born));
                Ok(())
            }
        }
    }

    pub(super) fn remove(&self, id: CageId) {
        self.write().remove(&id);
    }

    /// All cages, in no order.
    pub fn all(&self) -> Vec<Arc<Cage>> {
        self.read().values().map(|(cage, _)| Arc::clone(cage)).collect()
    }

    /// How many cages exist, zombies included.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn read(&self) -> RwLockReadGuard<'_, ById> {
        unpoisoned(self.cages.read())
    }

    fn write(&self) -> RwLockWriteGuard<'_, ById> {
        unpoisoned(self.cages.write())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Walls;
    use crate::testing::in_world;

    #[test]
    fn no_two_cages_have_an_id() {
        in_world(Walls::Openat2, |w| {
            let again = Arc::clone(&w.thread.cage);
            assert_eq!(w.kernel.cages.insert(again, u64::MAX), Err(Errno::EEXIST));
            assert!(w.kernel.cages.get(w.thread.cage.id).is_some());
        });
    }
}
