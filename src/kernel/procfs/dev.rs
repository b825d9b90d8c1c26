//! The tree of /dev.

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
    Entry { name: "console", mode: 0o620, what: What::Console },
    link("fd", |_| Ok(b"/proc/self/fd".to_vec())),
    device(2),
    device(0),
    Entry { name: "ptmx", mode: 0o666, what: What::Multiplexer },
    Entry { name: "pts", mode: 0o755, what: What::Terminals },
    device(3),
    Entry { name: "shm", mode: 0o1777, what: What::Shared },
    link("stderr", |_| Ok(b"/proc/self/fd/2".to_vec())),
    link("stdin", |_| Ok(b"/proc/self/fd/0".to_vec())),
    link("stdout", |_| Ok(b"/proc/self/fd/1".to_vec())),
    Entry { name: "tty", mode: 0o666, what: What::Controlling },
    device(4),
    device(1),
];

/// /dev/shm/NAME
pub(super) static MEMORY: Entry = Entry { name: "", mode: 0, what: What::Memory };

/// /dev/ptmx
pub(super) static MULTIPLEXER: Entry = Entry { name: "ptmx", mode: 0o666, what: What::Multiplexer };

/// /dev/pts/N
pub(super) static TERMINAL: Entry = Entry { name: "", mode: 0o620, what: What::Terminal };
