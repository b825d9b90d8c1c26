//! Locks that a panic does not poison: the runner ends by a panic, so no thread is left to see
//! inconsistent state.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// The value of a lock or a wait, even if a thread has panicked while it held the lock.
#[inline]
pub fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

/// Locking without a result.
pub trait Locked<T: ?Sized> {
    /// Waits for the lock and returns its guard.
    fn locked(&self) -> MutexGuard<'_, T>;
}

impl<T: ?Sized> Locked<T> for Mutex<T> {
    #[inline]
    fn locked(&self) -> MutexGuard<'_, T> {
        unpoisoned(self.lock())
    }
}
