//! Compiled code on disk, found again by the hash of the module it came from.
//!
//! A file of the cache is trusted no more than any other file (see [`crate::code::cwasm`]), but it
//! may be used in place if only the user can write it: no guest reaches the directory, and
//! lind-boot replaces its files and never writes into them. Guests decide which modules are
//! compiled, so the directory has limits: the least recently used files are deleted first. The time
//! of use is the host's atime, which costs a start nothing. Most file systems update it once a day;
//! some never do, and then the time of writing counts.

use std::borrow::Cow;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, bail};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use crate::code::ending;
use crate::code::engines::COMPILED_FORMAT;
use lind_passes::wasi;

/// The most files that the directory may hold.
const MOST_FILES: usize = 10_000;
/// Code that was used again within so many seconds is deleted last: the programs of an image stay
/// while test runs compile programs of their own, which run once.
const RECENT: i64 = 7 * 24 * 60 * 60;
/// The cache's limit in bytes, unless the user sets another.
pub const USUAL_LIMIT: u64 = 2 << 30;

/// The user's directory of compiled code.
pub struct Cache {
    directory: OwnedFd,
    /// Whether nobody else can put files there.
    own: bool,
    /// The most bytes that it may hold.
    limit: u64,
}

/// A file of the cache that only the user can write.
pub struct Own(File);

impl Own {
    /// The file.
    pub fn into_file(self) -> File {
        self.0
    }
}

/// A file of the cache.
pub struct Entry {
    name: CString,
    /// Its size in bytes.
    pub size: u64,
    used: (i64, u64),
    /// Whether it was read since it was written.
    again: bool,
    /// When it was written, in seconds since 1970.
    pub written: i64,
}

/// The kind of a file of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Compiled code of this version.
    Code,
    /// A note that code of this version was verified ([`crate::code::verified`]).
    Note,
    /// A file that this version never uses: code of another version, or a file that a run left when
    /// it was killed while writing.
    Leftover,
}

impl Entry {
    /// Its name.
    pub fn name(&self) -> Cow<'_, str> {
        self.name.to_string_lossy()
    }

    /// When it was last used, in seconds since 1970.
    pub fn used(&self) -> i64 {
        self.used.0
    }

    /// The kind of the file, by its name.
    pub fn content(&self) -> Content {
        match self.name.to_bytes() {
            name if name.starts_with(b".") => Content::Leftover,
            name if name.ends_with(format_suffix().as_bytes()) => Content::Code,
            name if name.ends_with(b".note") => Content::Note,
            _ => Content::Leftover,
        }
    }
}

/// A number of bytes, with K, M, G or T behind it for more.
pub fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        "T" | "t" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

impl Cache {
    /// The cache in `directory`, which may hold so many bytes.
    pub fn new(directory: OwnedFd, limit: u64) -> Cache {
        let own = only_for_user(&directory, FileType::Directory);
        Cache { directory, own, limit }
    }

    /// Whether it keeps anything that can be safe to use in place.
    pub fn keeps(&self) -> bool {
        self.own && self.limit > 0
    }

    /// A second handle of a file, for use in place, if that is safe.
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

    /// Keeps `bytes` under a name. A cache that cannot be written costs time, not correctness:
    /// failures are not reported.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        // A file that is larger than the limit displaces no other file.
        let Some(within) = self.limit.checked_sub(bytes.len() as u64) else { return };
        if self.prune(MOST_FILES - 1, within).is_ok() {
            let _ = write(self.directory.as_fd(), name, bytes);
        }
    }

    /// Removes the files that were not used for longest until at most `files` with at most `bytes`
    /// are left.
    fn prune(&self, files: usize, bytes: u64) -> rustix::io::Result<()> {
        let mut entries = self.entries()?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let recent = i64::try_from(now.as_secs()).unwrap_or(i64::MAX) - RECENT;
        entries.sort_by_key(|entry| std::cmp::Reverse((entry.again && entry.used() >= recent, entry.used)));
        let mut total = 0;
        for (newer, entry) in entries.iter().enumerate() {
            total += entry.size;
            if newer >= files || total > bytes {
                self.remove(entry)?;
            }
        }
        Ok(())
    }

    /// Removes a file. A process that runs the code goes on.
    ///
    /// # Errors
    /// The host's error.
    pub fn remove(&self, entry: &Entry) -> rustix::io::Result<()> {
        match rustix::fs::unlinkat(&self.directory, &entry.name, AtFlags::empty()) {
            // Another run was faster.
            Err(rustix::io::Errno::NOENT) => Ok(()),
            removed => removed,
        }
    }

    /// The files of the cache.
    ///
    /// # Errors
    /// The host's error.
    pub fn entries(&self) -> rustix::io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        // Not `Dir::read_from`: the directory may be open with O_PATH only, and stays so when it is
        // opened again.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for entry in Dir::new(rustix::fs::openat(&self.directory, c".", flags, Mode::empty())?)? {
            let name = entry?.file_name().to_owned();
            let Ok(stat) = rustix::fs::statat(&self.directory, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                let size = u64::try_from(stat.st_size).unwrap_or(0);
                let (read, written) = ((stat.st_atime, stat.st_atime_nsec), (stat.st_mtime, stat.st_mtime_nsec));
                let (used, again) = (read.max(written), read > written);
                entries.push(Entry { name, size, used, again, written: stat.st_mtime });
            }
        }
        Ok(entries)
    }
}

/// Writes a file of compiled code, whole or not at all. A signal that ends the process leaves
/// nothing half-written.
///
/// # Errors
/// The host's error.
pub fn write(directory: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<()> {
    ending::whole(|| write_aside(directory, name, bytes))
}

fn write_aside(directory: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<()> {
    // A unique name: processes in two containers may have the same id, and both write here.
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let aside = format!(".{name}.{:016x}", u64::from_le_bytes(random));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
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

/// The name under which the code of a module is kept. It depends on the format, so code of older
/// versions is simply not found.
pub fn name_in_cache(source: blake3::Hash) -> String {
    format!("{}{}", source.to_hex(), format_suffix())
}

fn format_suffix() -> String {
    let format = blake3::hash(format!("{COMPILED_FORMAT}, {}", wasi::VERSION).as_bytes()).to_hex();
    format!("-{}.cwasm", &format.as_str()[..16])
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
        let cache = || Cache::new(File::open(folder.path()).unwrap().into(), USUAL_LIMIT);
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
    fn sizes_have_units() {
        assert_eq!(["0", "7", "3K", "2G"].map(size), [Some(0), Some(7), Some(3 << 10), Some(2 << 30)]);
        for wrong in ["", "G", "-1", "1.5G", "1GB", "99999999999T"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn use_counts_and_what_is_too_large_takes_no_place() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(File::open(folder.path()).unwrap().into(), 350);
        let at = |seconds| std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        for (name, used, written) in [("old-used", 5000, 1000), ("new", 2000, 2000), ("unused", 1500, 1500)] {
            cache.put(name, &[0; 100]);
            let times = std::fs::FileTimes::new().set_accessed(at(used)).set_modified(at(written));
            File::options().write(true).open(folder.path().join(name)).unwrap().set_times(times).unwrap();
        }
        cache.put("huge", &[0; 400]);
        let names = || {
            let mut names: Vec<_> = cache.entries().unwrap().iter().map(|entry| entry.name().into_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(names(), ["new", "old-used", "unused"]);
        cache.put("another", &[0; 100]);
        assert_eq!(names(), ["another", "new", "old-used"]);
    }

    #[test]
    fn what_was_used_again_lately_goes_last() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(File::open(folder.path()).unwrap().into(), 350);
        let ago = |days: u64| std::time::SystemTime::now() - std::time::Duration::from_secs(days * 24 * 60 * 60);
        for (name, read, written) in [("image", 3, 40), ("long-ago", 30, 40), ("once", 1, 1)] {
            cache.put(name, &[0; 100]);
            let times = std::fs::FileTimes::new().set_accessed(ago(read)).set_modified(ago(written));
            File::options().write(true).open(folder.path().join(name)).unwrap().set_times(times).unwrap();
        }
        let there = || ["image", "long-ago", "once"].map(|name| cache.get(name).is_some());
        cache.put("test-1", &[0; 100]);
        assert_eq!(there(), [true, false, true]);
        cache.put("test-2", &[0; 100]);
        assert_eq!(there(), [true, false, false]);
        cache.put("test-3", &[0; 100]);
        assert_eq!(there(), [true, false, false]);
    }

    #[test]
    fn leftovers_are_what_this_version_does_not_use() {
        let of = |name: &str| {
            Entry { name: CString::new(name).unwrap(), size: 0, used: (0, 0), again: false, written: 0 }.content()
        };
        assert_eq!(of(&name_in_cache(blake3::hash(b""))), Content::Code);
        assert_eq!(of("1f-2a.note"), Content::Note);
        for other in ["0-0123456789abcdef.cwasm", ".x.cwasm.1.ThreadId(1)", "something"] {
            assert_eq!(of(other), Content::Leftover, "{other}");
        }
    }

    #[test]
    fn the_oldest_go_first() {
        let folder = tempfile::tempdir().unwrap();
        // As the launcher opens it: a directory that can be searched but not read (O_PATH).
        let directory = rustix::fs::open(folder.path(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let cache = Cache::new(directory, USUAL_LIMIT);
        for number in 0..6_u64 {
            cache.put(&format!("{number}.cwasm"), &[0; 100]);
            let file = File::options().write(true).open(folder.path().join(format!("{number}.cwasm"))).unwrap();
            let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000 + number);
            file.set_times(std::fs::FileTimes::new().set_accessed(then).set_modified(then)).unwrap();
        }
        let left = |cache: &Cache| (0..6).filter(|n| cache.get(&format!("{n}.cwasm")).is_some()).collect::<Vec<_>>();
        assert_eq!(left(&cache), [0, 1, 2, 3, 4, 5]);
        cache.prune(4, u64::MAX).unwrap();
        assert_eq!(left(&cache), [2, 3, 4, 5]);
        cache.prune(4, 250).unwrap();
        assert_eq!(left(&cache), [4, 5]);
    }
}
