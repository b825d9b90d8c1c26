//! The root directory of a cage that has changed it by chroot(2).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;

use crate::root::Directory;

/// A root directory below the one that all cages begin with.
pub(crate) struct OwnRoot {
    /// Whether there is one: most look-ups ask nothing else.
    changed: AtomicBool,
    directory: ArcSwapOption<Directory>,
}

impl OwnRoot {
    /// The one that a cage is born with.
    pub fn new(directory: Option<Arc<Directory>>) -> OwnRoot {
        OwnRoot { changed: AtomicBool::new(directory.is_some()), directory: ArcSwapOption::new(directory) }
    }

    /// The directory; None for the root that all cages begin with.
    #[inline]
    pub fn get(&self) -> Option<Arc<Directory>> {
        if self.changed.load(Ordering::Acquire) { self.directory.load_full() } else { None }
    }

    /// Changes it. A look-up of another thread that has begun goes on from the one before.
    pub fn set(&self, directory: Option<Arc<Directory>>) {
        let changed = directory.is_some();
        self.directory.store(directory);
        self.changed.store(changed, Ordering::Release);
    }
}
