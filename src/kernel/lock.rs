//! Locks that a panic does not poison: the runner ends by a panic, so nobody is left to see what it left behind.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locking without a result.
pub trait Locked<T: ?Sized> {
    /// The guard, once nobody else has it.
    fn locked(&self) -> MutexGuard<'_, T>;
}

impl<T: ?Sized> Locked<T> for Mutex<T> {
    #[inline]
    fn locked(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
