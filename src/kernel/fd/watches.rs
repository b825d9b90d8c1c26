//! The watches of an inotify instance, for /proc/PID/fdinfo. The host removes a watch when its file
//! is removed, which is not seen here: such a watch stays in the list until the instance closes.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::lock::Locked;

/// IN_ALL_EVENTS, IN_EXCL_UNLINK and IN_ONESHOT.
const SHOWN: u32 = 0x8400_0fff;

/// The watches of an inotify instance, by their numbers.
#[derive(Debug, Default)]
pub struct Watches(Mutex<BTreeMap<i32, Watch>>);

/// A watched file, and the events that are reported.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// The file's number.
    pub inode: u64,
    /// The device that it is on.
    pub device: u64,
    /// The events, and how they are reported.
    pub mask: u32,
}

impl Watches {
    /// Adds a watch, or changes the events of one. `adds`: the events are added to those before.
    pub fn put(&self, number: i32, watch: Watch, adds: bool) {
        let mut table = self.0.locked();
        let before = if adds { table.get(&number).map_or(0, |watch| watch.mask) } else { 0 };
        table.insert(number, Watch { mask: (watch.mask & SHOWN) | before, ..watch });
    }

    /// Removes a watch.
    pub fn remove(&self, number: i32) {
        self.0.locked().remove(&number);
    }

    /// All watches.
    pub fn list(&self) -> Vec<(i32, Watch)> {
        self.0.locked().iter().map(|(number, watch)| (*number, *watch)).collect()
    }
}
