//! What an inotify instance watches, as /proc/PID/fdinfo says it. The host forgets a watch when its file goes, which is not seen here:
//! such a watch stays in the list until the instance closes.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::lock::Locked;

/// IN_ALL_EVENTS, IN_EXCL_UNLINK and IN_ONESHOT.
const SHOWN: u32 = 0x8400_0fff;

/// The watches of an inotify instance, by their numbers.
#[derive(Debug, Default)]
pub struct Watches(Mutex<BTreeMap<i32, Watch>>);

/// A file, and what is told of it.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// The file's number.
    pub inode: u64,
    /// The device that it is on.
    pub device: u64,
    /// Events, and how they are told.
    pub mask: u32,
}

impl Watches {
    /// Notes a watch, or that it is for more or for other events. `adds`: to those that there are.
    pub fn put(&self, number: i32, watch: Watch, adds: bool) {
        let mut table = self.0.locked();
        let before = if adds { table.get(&number).map_or(0, |watch| watch.mask) } else { 0 };
        table.insert(number, Watch { mask: (watch.mask & SHOWN) | before, ..watch });
    }

    /// Forgets one.
    pub fn remove(&self, number: i32) {
        self.0.locked().remove(&number);
    }

    /// All of them.
    pub fn list(&self) -> Vec<(i32, Watch)> {
        self.0.locked().iter().map(|(number, watch)| (*number, *watch)).collect()
    }
}
