//! Notes about files that were verified at an earlier start, so that a large program is not read
//! from end to end at each.
//!
//! A note says that the file with this device, inode, size and times was a module with this hash,
//! or code of one with a right signature, and that the file of the cache with that device, inode,
//! size and times had a right signature. It is authenticated with a key that is derived from the
//! user's, and lies in the cache, which the process that runs guests cannot write. So only facts
//! that this user's lind-boot has seen are trusted; a note relies on the rule that a written file
//! shows it. It does:
//!
//! - Every change of a file's bytes sets its ctime, which nobody can set otherwise. Clocks may tick
//!   every 10 ms, so nothing is noted that was changed shortly before ([`FileState::settled`]).
//! - But pages of a shared mapping set it when they are written to for the first time, and may then
//!   be written to for long without it. So a module, which a guest may write to, is noted only if
//!   nobody had it open for writing or mapped so while it was read, which a lease proves
//!   ([`read_unwritten`]), or if only other users can write to it, which no guest here is; and only
//!   on filesystems where a mapping counts as a writer as long as it exists, and a later mapping
//!   sets ctime. overlayfs does not do the first, tmpfs not the second.
//! - No guest can reach the files of the cache. They are written under another name and renamed.

#![allow(unsafe_code)]

use std::fs::File;

use lind_kernel::Lease;
use rustix::fd::AsFd;

use crate::code::cache::Cache;
use crate::code::engines::COMPILED_FORMAT;
use crate::code::signature::Checks;

/// The state of a file when it was read. Guests can set every time but ctime.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileState {
    device: u64,
    inode: u64,
    size: i64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl FileState {
    const LEN: usize = 7 * 8;

    /// The state of an open file.
    ///
    /// # Errors
    /// The host's error.
    pub fn of(file: impl AsFd) -> rustix::io::Result<FileState> {
        let stat = rustix::fs::fstat(file)?;
        Ok(FileState {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            changed: (stat.st_ctime, stat.st_ctime_nsec.cast_signed()),
            modified: (stat.st_mtime, stat.st_mtime_nsec.cast_signed()),
        })
    }

    /// Whether every change from now on shows in the times.
    pub fn settled(&self) -> bool {
        /// Coarse clocks tick every 10 ms at most.
        const TICK_NS: i128 = 20_000_000;
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let ns = |(sec, nsec): (i64, i64)| i128::from(sec) * 1_000_000_000 + i128::from(nsec);
        ns((now.tv_sec, now.tv_nsec)) - ns(self.changed) > TICK_NS
    }

    fn to_bytes(self) -> [u8; FileState::LEN] {
        let FileState { device, inode, size, changed, modified } = self;
        let words = [device.cast_signed(), inode.cast_signed(), size, changed.0, changed.1, modified.0, modified.1];
        std::array::from_fn(|i| words[i / 8].to_le_bytes()[i % 8])
    }

    fn from_bytes(bytes: &[u8; FileState::LEN]) -> FileState {
        let word = |n: usize| i64::from_le_bytes(std::array::from_fn(|i| bytes[8 * n + i]));
        FileState {
            device: word(0).cast_unsigned(),
            inode: word(1).cast_unsigned(),
            size: word(2),
            changed: (word(3), word(4)),
            modified: (word(5), word(6)),
        }
    }
}

/// The result of `read`, and the state of the file that identifies this content from now on. None
/// if somebody may have written to it meanwhile, or may write to it later without leaving a trace.
pub fn read_unwritten<T>(file: &File, read: impl FnOnce(&File) -> T) -> (Option<FileState>, T) {
    let lease = Lease::take(file.as_fd()).ok();
    let alone = lease.is_some() || only_others_write(file);
    let state = FileState::of(file).ok().filter(|state| alone && state.settled() && shows_writes(file));
    (state, read(file))
}

/// Whether no guest can write it, because this user cannot: it belongs to another user, as an
/// installed file belongs to root. In this case no lease can be had, and none is needed.
fn only_others_write(file: &File) -> bool {
    const OTHERS_WRITE: u32 = 0o022;
    let user = rustix::process::geteuid();
    let others = |stat: rustix::fs::Stat| stat.st_uid != user.as_raw() && stat.st_mode & OTHERS_WRITE == 0;
    !user.is_root() && rustix::fs::fstat(file).is_ok_and(others)
}

/// Whether the first write to each page of a new mapping sets ctime, and a mapping for writing is a
/// file open for writing.
fn shows_writes(file: &File) -> bool {
    const EXT4: i64 = 0xef53;
    const XFS: i64 = 0x5846_5342;
    const BTRFS: i64 = 0x9123_683e;
    rustix::fs::fstatfs(file).is_ok_and(|fs| [EXT4, XFS, BTRFS].contains(&fs.f_type))
}

/// The facts that were found about a module.
pub struct Note {
    /// The hash of the module.
    pub source: [u8; 32],
    /// The file of its compiled code in the cache, whose signature was right.
    pub code: FileState,
}

/// source | code | tag
const LEN: usize = 32 + FileState::LEN + 32;

impl Note {
    /// The note about a module in this state.
    pub fn find(cache: &Cache, checks: &Checks, module: &FileState) -> Option<Note> {
        let file = cache.get(&name(module))?;
        let mut bytes = [0; LEN + 1];
        let got = rustix::io::pread(&file, &mut bytes, 0).ok()?;
        let bytes: [u8; LEN] = bytes[..got].try_into().ok()?;
        let (said, tag) = bytes.split_first_chunk::<{ LEN - 32 }>()?;
        let (source, code) = said.split_first_chunk::<32>()?;
        let note = Note { source: *source, code: FileState::from_bytes(code.try_into().ok()?) };
        // Comparison with a `blake3::Hash` takes the same time wherever the bytes differ.
        (note.tag(checks, module) == <[u8; 32]>::try_from(tag).ok()?).then_some(note)
    }

    /// Stores the note for a module in this state. A failure costs time, not correctness.
    pub fn keep(&self, cache: &Cache, checks: &Checks, module: &FileState) {
        let mut bytes = self.source.to_vec();
        bytes.extend(self.code.to_bytes());
        bytes.extend(self.tag(checks, module).as_bytes());
        cache.put(&name(module), &bytes);
    }

    fn tag(&self, checks: &Checks, module: &FileState) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(checks.notes());
        hasher.update(blake3::hash(COMPILED_FORMAT.as_bytes()).as_bytes());
        for part in [&module.to_bytes()[..], &self.source, &self.code.to_bytes()] {
            hasher.update(part);
        }
        hasher.finalize()
    }
}

/// The name of the note. A later note of the same file replaces it.
fn name(module: &FileState) -> String {
    format!("{:x}-{:x}.note", module.device, module.inode)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::unix::fs::OpenOptionsExt;
    use std::time::Duration;

    use super::*;

    const KEY: [u8; Checks::BYTES] = [7; Checks::BYTES];

    /// Makes a file that was last changed long enough ago.
    fn settled_file(path: &std::path::Path) -> File {
        std::fs::write(path, b"module").unwrap();
        let file = File::open(path).unwrap();
        settle(&file);
        file
    }

    fn settle(file: &File) {
        while !FileState::of(file).unwrap().settled() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn state(file: &File) -> Option<FileState> {
        read_unwritten(file, |_| ()).0
    }

    #[test]
    fn a_note_is_found_by_whoever_has_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = settled_file(&folder.path().join("module"));
        let module = FileState::of(&file).unwrap();
        let cache = || Cache::new(File::open(folder.path()).unwrap().into(), u64::MAX);
        assert!(Note::find(&cache(), &Checks::from_bytes(&KEY), &module).is_none());
        let code = FileState { inode: 3, size: -1, modified: (i64::MIN, 9), ..module };
        Note { source: [5; 32], code }.keep(&cache(), &Checks::from_bytes(&KEY), &module);
        let found = Note::find(&cache(), &Checks::from_bytes(&KEY), &module).unwrap();
        assert!(found.source == [5; 32] && found.code == code);
        assert!(Note::find(&cache(), &Checks::from_bytes(&[8; Checks::BYTES]), &module).is_none());
        let (s, ns) = module.changed;
        for other in [
            FileState { size: 7, ..module },
            FileState { changed: (s, ns ^ 1), ..module },
            FileState { changed: (s + 1, ns), ..module },
            FileState { modified: (0, 0), ..module },
            FileState { inode: 1, ..module },
        ] {
            assert!(Note::find(&cache(), &Checks::from_bytes(&KEY), &other).is_none(), "{other:?}");
        }
        let path = folder.path().join(name(&module));
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, bad).unwrap();
            assert!(Note::find(&cache(), &Checks::from_bytes(&KEY), &module).is_none(), "byte {at}");
        }
        for bad in [&good[..good.len() - 1], &[&good[..], b"x"].concat(), b""] {
            std::fs::write(&path, bad).unwrap();
            assert!(Note::find(&cache(), &Checks::from_bytes(&KEY), &module).is_none());
        }
        std::fs::write(&path, &good).unwrap();
        assert!(Note::find(&cache(), &Checks::from_bytes(&KEY), &module).is_some());
    }

    #[test]
    fn what_somebody_may_be_writing_to_has_no_state() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("module");
        let file = settled_file(&path);
        // A temporary directory may be on a filesystem where nothing is noted.
        let noted = shows_writes(&file);
        assert_eq!(state(&file).is_some(), noted);
        let writer = OpenOptions::new().write(true).read(true).open(&path).unwrap();
        assert!(state(&file).is_none(), "open for writing");
        // SAFETY: a new mapping of a file of six bytes, of which the first is written, and nothing
        // else refers to it.
        unsafe {
            use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
            let both = ProtFlags::READ | ProtFlags::WRITE;
            let page = mmap(std::ptr::null_mut(), 4096, both, MapFlags::SHARED, &writer, 0).unwrap();
            page.cast::<u8>().write(b'M');
            drop(writer);
            settle(&file);
            let before = FileState::of(&file).unwrap();
            page.cast::<u8>().write(b'N');
            assert!(state(&file).is_none(), "mapped for writing");
            assert_eq!(FileState::of(&file).unwrap(), before, "why a mapping counts: the times do not show it");
            munmap(page, 4096).unwrap();
        }
        settle(&file);
        assert_eq!(state(&file).is_some(), noted);
        // The lease is over.
        OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
    }

    #[test]
    fn a_mapping_made_later_sets_ctime() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("module");
        let file = settled_file(&path);
        let Some(before) = state(&file) else { return };
        let writer = OpenOptions::new().write(true).read(true).open(&path).unwrap();
        // SAFETY: as above.
        unsafe {
            use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
            let both = ProtFlags::READ | ProtFlags::WRITE;
            let page = mmap(std::ptr::null_mut(), 4096, both, MapFlags::SHARED, &writer, 0).unwrap();
            page.cast::<u8>().write(b'M');
            munmap(page, 4096).unwrap();
        }
        assert_ne!(FileState::of(&file).unwrap(), before);
    }
}
