//! getdents64(2) of a directory in the kernel's own trees.
//!
//! The position is the key of the next entry, not a count, so that no entry is left out when a
//! process ends meanwhile. Keys ascend: 0 and 1 are `.` and `..`, then come the fixed names, then
//! the numbers.

use lind_abi::{Errno, Len, Out, Result};

use super::{Entry, Name, Place, What, proc, seen};
use crate::call::Ctx;
use crate::terminal;

const DT_UNKNOWN: u8 = 0;
const DT_CHR: u8 = 2;
const DT_DIR: u8 = 4;
const DT_REG: u8 = 8;
const DT_LNK: u8 = 10;

/// Keys of entries that have a number begin here: more than any table has entries.
const NUMBERED: u64 = 1 << 16;

/// The offset of the name in a struct linux_dirent64.
const HEAD: usize = 19;

struct Listed {
    key: u64,
    name: Name,
    kind: u8,
}

/// Writes entries from position `from` on to the guest's buffer. Returns the bytes written and the
/// new position.
///
/// # Errors
/// EINVAL when not even one entry fits; EFAULT; ENOENT when the directory's subject is gone.
pub(crate) fn list(cx: &Ctx<'_>, place: &Place, from: u64, buf: Out<u8>, len: Len) -> Result<(usize, u64)> {
    let mut bytes: Vec<u8> = Vec::new();
    let room = usize::try_from(len.0.min(1 << 20)).unwrap_or(0);
    let mut position = from;
    for entry in entries(cx, place)?.into_iter().filter(|entry| entry.key >= from) {
        let size = (HEAD + entry.name.len() + 1).next_multiple_of(8);
        if bytes.len() + size > room {
            if bytes.is_empty() {
                return Err(Errno::EINVAL);
            }
            break;
        }
        position = entry.key + 1;
        let number = match entry.key {
            0 => place.inode(),
            1 => place.above().map_or(1, |above| above.inode()),
            _ => place.inode_of(&entry.name),
        };
        let start = bytes.len();
        bytes.extend(number.to_le_bytes());
        bytes.extend(position.to_le_bytes());
        bytes.extend(u16::try_from(size).map_err(|_| Errno::EINVAL)?.to_le_bytes());
        bytes.push(entry.kind);
        bytes.extend(&*entry.name);
        bytes.resize(start + size, 0);
    }
    cx.copy_out(buf, &bytes)?;
    Ok((bytes.len(), position))
}

fn entries(cx: &Ctx<'_>, place: &Place) -> Result<Vec<Listed>> {
    let directory = |key, name: &'static str| Listed { key, name: Name::Borrowed(name.as_bytes()), kind: DT_DIR };
    let mut all = vec![directory(0, "."), directory(1, "..")];
    let numbered = |number: u32, kind| Listed { key: NUMBERED + u64::from(number), name: proc::name(number), kind };
    // A directory whose process has ended meanwhile is empty.
    let subject = place.subject(cx)?;
    match place.node().entry.what {
        What::Directory(entries) | What::Processes(entries) | What::Processors(entries) => {
            // The console is there only if a terminal was handed in.
            let is_there = |entry: &Entry| !matches!(entry.what, What::Console) || terminal::console(cx).is_some();
            for (key, entry) in (2..).zip(entries).filter(|(_, entry)| is_there(entry)) {
                all.push(Listed { key, name: Name::Borrowed(entry.name.as_bytes()), kind: kind(&entry.what) });
            }
        }
        _ => {}
    }
    if place.is_dev() {
        for (key, name) in (NUMBERED..).zip(cx.kernel.root.mounted_in_dev()) {
            if !all.iter().any(|entry| *entry.name == *name) {
                all.push(Listed { key, name: Name::Owned(name.to_vec()), kind: DT_UNKNOWN });
            }
        }
    }
    match place.node().entry.what {
        What::Processes(_) => {
            let mut ids: Vec<_> = cx.kernel.cages.all().iter().map(|cage| cage.id).collect();
            ids.sort_unstable();
            all.extend(ids.into_iter().filter(|&id| seen(cx, id).is_some()).map(|id| numbered(id.0, DT_DIR)));
        }
        What::Processors(_) => {
            for cpu in cx.kernel.processors.list() {
                let name = Name::Owned(format!("cpu{cpu}").into_bytes());
                all.push(Listed { key: NUMBERED + cpu as u64, name, kind: DT_DIR });
            }
        }
        What::Tasks => {
            let mut tids: Vec<_> = subject.cage()?.threads().iter().map(|thread| thread.tid).collect();
            tids.sort_unstable();
            all.extend(tids.into_iter().map(|tid| numbered(tid, DT_DIR)));
        }
        What::Descriptors | What::DescriptorInfos => {
            let kind = if matches!(place.node().entry.what, What::Descriptors) { DT_LNK } else { DT_REG };
            let open = subject.cage()?.fds.open_in(0, u32::MAX);
            all.extend(open.into_iter().map(|fd| numbered(fd.cast_unsigned(), kind)));
        }
        What::Terminals => {
            all.push(Listed { key: 2, name: Name::Borrowed(b"ptmx"), kind: DT_CHR });
            all.extend(cx.kernel.terminals.numbers().into_iter().map(|number| numbered(number, DT_CHR)));
        }
        What::Shared => {
            for (key, name) in (NUMBERED..).zip(cx.kernel.shared.names()) {
                all.push(Listed { key, name: Name::Owned(name.into()), kind: DT_REG });
            }
        }
        What::Directory(_) => {}
        _ => return Err(Errno::ENOTDIR),
    }
    Ok(all)
}

fn kind(what: &What) -> u8 {
    use What::*;
    match what {
        Directory(_) | Processes(_) | Processors(_) | Tasks | Descriptors | DescriptorInfos | Terminals | Shared => {
            DT_DIR
        }
        Text(_) | Setting(..) | Memory => DT_REG,
        Link(_) | Cwd | Root | Descriptor => DT_LNK,
        Device(_) | Controlling | Console | Multiplexer | Terminal => DT_CHR,
    }
}
