//! What there is in /dev.

use super::{Entry, What};
use crate::root::devices::NAMES;

const fn link(name: &'static str, to: fn(&super::Subject<'_>) -> lind_abi::Result<Vec<u8>>) -> Entry {
    Entry { name, mode: 0o777, what: What::Link(to) }
}

const fn device(index: usize) -> Entry {
    Entry { name: NAMES[index], mode: 0o666, what: What::Device(index) }
}

/// /dev
pub(super) static TOP: Entry = Entry { name: "dev", mode: 0o755, what: What::Directory(NODES) };

static NODES: &[Entry] = &[
    link("fd", |_| Ok(b"/proc/self/fd".to_vec())),
    device(2),
    device(0),
    Entry { name: "shm", mode: 0o1777, what: What::Shared },
    device(3),
    link("stderr", |_| Ok(b"/proc/self/fd/2".to_vec())),
    link("stdin", |_| Ok(b"/proc/self/fd/0".to_vec())),
    link("stdout", |_| Ok(b"/proc/self/fd/1".to_vec())),
    device(5),
    device(4),
    device(1),
];

/// /dev/shm/NAME
pub(super) static MEMORY: Entry = Entry { name: "", mode: 0, what: What::Memory };
