//! Compiled code on disk, found again by the hash of the module it came from.
//!
//! What is read from here is believed no more than any other file (see [`crate::code::cwasm`]), but may be used in place if only the user
//! can write it: no guest reaches the directory, and our own files are replaced, never written into. Guests decide what is compiled,
//! so the directory is kept within bounds: what was not written for longest goes first.

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, bail};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use crate::code::engines::COMPILED_FORMAT;

/// What the directory may hold.
const MOST_FILES: usize = 1000;
/// In bytes.
const MOST_BYTES: u64 = 2 << 30;

/// The user's directory of compiled code.
pub struct Cache {
    directory: OwnedFd,
    /// Whether nobody else can put files there.
    own: bool,
}

/// A file of the cache that only the user can write.
pub struct Own(File);

impl Own {
    /// The file.
    pub fn into_file(self) -> File {
        self.0
    }
}

struct Entry {
    written: (i64, u64),
    size: u64,
    name: std::ffi::CString,
}

impl Cache {
    /// The cache in `directory`.
    pub fn new(directory: OwnedFd) -> Cache {
        let own = only_for_user(&directory, FileType::Directory);
        Cache { directory, own }
    }

    /// Whether files of it can be safe to use in place.
    pub fn is_own(&self) -> bool {
        self.own
    }

    /// The file itself, if it is safe to use in place.
    pub fn own(&self, file: &File) -> Option<Own> {
        // Another name could be one in a guest's root.
        let alone = rustix::fs::fstat(file).is_ok_and(|stat| stat.st_nlink == 1);
        let safe = self.own && alone && only_for_user(file, FileType::RegularFile);
        safe.then(|| file.try_clone().ok().map(Own)).flatten()
    }

    /// A file of that name.
    pub fn get(&self, name: &str) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat(&self.directory, name, flags, Mode::empty()).ok().map(File::from)
    }

    /// Keeps `bytes` under a name. A cache that cannot be written costs time, not correctness: failures are not reported.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let within = MOST_BYTES.saturating_sub(bytes.len() as u64);
        if self.prune(MOST_FILES - 1, within).is_ok() {
            let _ = write(self.directory.as_fd(), name, bytes);
        }
    }

    /// Removes the oldest files until at most `files` with at most `bytes` are left.
    fn prune(&self, files: usize, bytes: u64) -> rustix::io::Result<()> {
        let mut entries = self.entries()?;
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.written));
        let mut total = 0;
        for (newer, entry) in entries.iter().enumerate() {
            total += entry.size;
            if newer >= files || total > bytes {
                rustix::fs::unlinkat(&self.directory, &entry.name, AtFlags::empty())?;
            }
        }
        Ok(())
    }

    fn entries(&self) -> rustix::io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        // Not `Dir::read_from`: the directory may be open only to be looked into (O_PATH), and stays so when it is opened again.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for entry in Dir::new(rustix::fs::openat(&self.directory, c".", flags, Mode::empty())?)? {
            let name = entry?.file_name().to_owned();
            let Ok(stat) = rustix::fs::statat(&self.directory, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                let size = u64::try_from(stat.st_size).unwrap_or(0);
                entries.push(Entry { written: (stat.st_mtime, stat.st_mtime_nsec), size, name });
            }
        }
        Ok(entries)
    }
}

/// Writes a file of compiled code, whole or not at all.
///
/// # Errors
/// What the host says.
pub fn write(directory: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<()> {
    let aside = format!(".{name}.{}.{:?}", std::process::id(), std::thread::current().id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file =
        rustix::fs::openat(directory, &aside, flags, Mode::from_raw_mode(0o755)).context("cannot create the file")?;
    let written = File::from(file).write_all_at(bytes, 0).map_err(anyhow::Error::from);
    let renamed = written.and_then(|()| Ok(rustix::fs::renameat(directory, &aside, directory, name)?));
    if let Err(error) = renamed {
        let _ = rustix::fs::unlinkat(directory, &aside, AtFlags::empty());
        bail!(error);
    }
    Ok(())
}

/// The same module compiles differently for another format; the name says so, and old ones are simply not found.
pub fn name_in_cache(source: blake3::Hash) -> String {
    let format = blake3::hash(COMPILED_FORMAT.as_bytes()).to_hex();
    format!("{}-{}.cwasm", source.to_hex(), &format.as_str()[..16])
}

/// Whether nobody but the user can write it.
fn only_for_user(file: impl AsFd, kind: FileType) -> bool {
    const OTHERS_WRITE: u32 = 0o022;
    rustix::fs::fstat(file).is_ok_and(|stat| {
        stat.st_uid == rustix::process::geteuid().as_raw()
            && stat.st_mode & OTHERS_WRITE == 0
            && FileType::from_raw_mode(stat.st_mode) == kind
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_others_may_write_is_not_used_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let mode =
            |path: &std::path::Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        let cache = || Cache::new(File::open(folder.path()).unwrap().into());
        let own = |cache: &Cache| cache.own(&cache.get("a.cwasm").unwrap()).is_some();
        cache().put("a.cwasm", b"code");
        assert!(own(&cache()));
        for others in [0o775, 0o757] {
            mode(folder.path(), others);
            assert!(!own(&cache()));
            mode(folder.path(), 0o755);
            mode(&folder.path().join("a.cwasm"), others);
            assert!(!own(&cache()));
            mode(&folder.path().join("a.cwasm"), 0o755);
        }
        assert!(own(&cache()));
        std::fs::hard_link(folder.path().join("a.cwasm"), folder.path().join("c.cwasm")).unwrap();
        assert!(!own(&cache()));
        let link = folder.path().join("b.cwasm");
        std::os::unix::fs::symlink("a.cwasm", &link).unwrap();
        assert!(cache().get("b.cwasm").is_none());
    }

    #[test]
    fn the_oldest_go_first() {
        let folder = tempfile::tempdir().unwrap();
        // As the runner has it: a mount that is not to be read, only to be looked into.
        let directory = rustix::fs::open(folder.path(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let cache = Cache::new(directory);
        for number in 0..6_u64 {
            cache.put(&format!("{number}.cwasm"), &[0; 100]);
            let file = File::options().write(true).open(folder.path().join(format!("{number}.cwasm"))).unwrap();
            file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000 + number)).unwrap();
        }
        let left = |cache: &Cache| (0..6).filter(|n| cache.get(&format!("{n}.cwasm")).is_some()).collect::<Vec<_>>();
        assert_eq!(left(&cache), [0, 1, 2, 3, 4, 5]);
        cache.prune(4, u64::MAX).unwrap();
        assert_eq!(left(&cache), [2, 3, 4, 5]);
        cache.prune(4, 250).unwrap();
        assert_eq!(left(&cache), [4, 5]);
    }
}
