//! Files of the host that are made from what a session says. A guest has chosen their names and
//! contents, and may have made links where they go: no link is followed below the directory, and no
//! link is made that leads out of it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};

/// A directory of the host.
pub struct Directory(OwnedFd);

/// A file that gets its name when it is whole.
pub struct New {
    at: OwnedFd,
    temporary: String,
    name: PathBuf,
    /// The file.
    pub file: File,
}

/// The path in a name that a session has sent.
///
/// # Errors
/// When it leads somewhere else.
pub fn inside(name: &[u8]) -> Result<PathBuf> {
    let path = PathBuf::from(OsStr::from_bytes(name));
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    ensure!(plain && !name.is_empty() && !name.contains(&0), "the session names a file outside: {}", path.display());
    Ok(path)
}

/// Whether a link at `path` that leads to `target` stays in the directory.
pub fn stays_inside(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count() - 1;
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return false,
        }
    }
    true
}

impl Directory {
    /// Opens a directory that the user has named.
    ///
    /// # Errors
    /// The host's error.
    pub fn open(path: &Path) -> Result<Directory> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Directory(rustix::fs::open(path, flags, Mode::empty()).with_context(|| path.display().to_string())?))
    }

    /// The directory that a path's last name is in.
    fn parent(&self, path: &Path) -> Result<OwnedFd> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let strictly = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&self.0, parent, flags, Mode::empty(), strictly)
            .with_context(|| format!("{}: its directory", path.display()))
    }

    fn last(path: &Path) -> Result<&OsStr> {
        path.file_name().with_context(|| format!("{}: has no name", path.display()))
    }

    /// Makes a directory, unless one is there.
    ///
    /// # Errors
    /// The host's error.
    pub fn make_directory(&self, path: &Path, mode: u32) -> Result<()> {
        let (parent, last) = (self.parent(path)?, Self::last(path)?);
        match rustix::fs::mkdirat(&parent, last, Mode::from_raw_mode(mode & 0o777 | 0o700)) {
            Err(rustix::io::Errno::EXIST) => {
                let found = rustix::fs::statat(&parent, last, AtFlags::SYMLINK_NOFOLLOW)?;
                let is_one = rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir();
                ensure!(is_one, "{}: is there already, and not a directory", path.display());
                Ok(())
            }
            made => made.with_context(|| path.display().to_string()),
        }
    }

    /// Makes a symbolic link. It replaces a file that is there, but not a directory.
    ///
    /// # Errors
    /// The host's error.
    pub fn make_link(&self, path: &Path, target: &Path) -> Result<()> {
        let (parent, last) = (self.parent(path)?, Self::last(path)?);
        match rustix::fs::unlinkat(&parent, last, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(errno) => return Err(errno).with_context(|| path.display().to_string()),
        }
        rustix::fs::symlinkat(target, &parent, last).with_context(|| path.display().to_string())
    }

    /// Begins a file.
    ///
    /// # Errors
    /// The host's error.
    pub fn begin(&self, path: &Path, mode: u32) -> Result<New> {
        let (at, name) = (self.parent(path)?, PathBuf::from(Self::last(path)?));
        let temporary = format!(".lind-copy-{}", std::process::id());
        let _ = rustix::fs::unlinkat(&at, &temporary, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&at, &temporary, flags, Mode::from_raw_mode(mode & 0o777))
            .with_context(|| path.display().to_string())?;
        Ok(New { at, temporary, name, file: File::from(file) })
    }
}

impl New {
    /// Gives the file its name.
    ///
    /// # Errors
    /// The host's error.
    pub fn finish(self) -> Result<()> {
        let renamed = rustix::fs::renameat(&self.at, &self.temporary, &self.at, &self.name);
        if renamed.is_err() {
            let _ = rustix::fs::unlinkat(&self.at, &self.temporary, AtFlags::empty());
        }
        renamed.with_context(|| self.name.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn names_are_claims() {
        assert_eq!(inside(b"a/b\xff").unwrap(), Path::new(OsStr::from_bytes(b"a/b\xff")));
        for wrong in [&b""[..], b"/a", b"../a", b"a/../../b", b"a\0b"] {
            assert!(inside(wrong).is_err(), "{wrong:?}");
        }
        let stays = |path: &str, target: &str| stays_inside(Path::new(path), Path::new(target));
        assert!(stays("a/b", "../c") && stays("l", "x/../y") && stays("l", "."));
        assert!(!stays("a/b", "../../c") && !stays("l", "..") && !stays("l", "/etc") && !stays("l", "x/../../y"));
    }

    #[test]
    fn links_are_not_followed() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(other.path(), folder.path().join("out")).unwrap();
        std::os::unix::fs::symlink(other.path().join("f"), folder.path().join("f")).unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        assert!(directory.begin(Path::new("out/x"), 0o644).is_err());
        assert!(directory.make_directory(Path::new("out/x"), 0o755).is_err());
        assert!(directory.make_directory(Path::new("out"), 0o755).is_err());
        assert!(directory.make_link(Path::new("out/x"), Path::new("y")).is_err());
        let mut new = directory.begin(Path::new("f"), 0o644).unwrap();
        new.file.write_all(b"text").unwrap();
        new.finish().unwrap();
        assert_eq!(std::fs::read(folder.path().join("f")).unwrap(), b"text");
        assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
    }
}
