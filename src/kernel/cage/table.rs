//! The cages that exist, by id.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use lind_abi::{CageId, Errno, Result};

use super::Cage;

/// All cages, zombies included.
#[derive(Default)]
pub struct CageTable {
    cages: RwLock<HashMap<CageId, Arc<Cage>>>,
}

impl CageTable {
    /// The cage with this id.
    pub fn get(&self, id: CageId) -> Option<Arc<Cage>> {
        self.cages.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// Adds a cage.
    ///
    /// # Errors
    /// EAGAIN if `limit` cages exist.
    pub(super) fn insert(&self, cage: Arc<Cage>, limit: u64) -> Result<()> {
        let mut cages = self.cages.write().unwrap_or_else(PoisonError::into_inner);
        if cages.len() as u64 >= limit {
            return Err(Errno::EAGAIN);
        }
        cages.insert(cage.id, cage);
        Ok(())
    }

    pub(super) fn remove(&self, id: CageId) {
        self.cages.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// All cages, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<Cage>> {
        self.cages.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// How many cages exist, zombies included.
    pub fn len(&self) -> usize {
        self.cages.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
