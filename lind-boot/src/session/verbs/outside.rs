//! Files of the host that are made from what a session says. A guest has chosen their names and
//! contents, and may have made links where they go: no link is followed below the directory, and no
//! link is made that leads out of it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};

/// The flags of a directory that is only a place.
const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A directory of the host.
pub struct Directory(OwnedFd);

/// A file of the host that is copied into a session.
pub enum Found {
    /// A directory, with the names in it.
    Directory(Directory, Vec<OsString>),
    /// A symbolic link, and where it leads.
    Link(PathBuf),
    /// A regular file.
    File(File),
    /// A device, a socket or a FIFO.
    Other,
}

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
    let (mut above, mut named) = (path.components().count() - 1, false);
    for part in target.components() {
        match part {
            Component::Normal(_) => named = true,
            Component::CurDir => {}
            // Behind a name, which may be a link, `..` is anywhere.
            Component::ParentDir if above > 0 && !named => above -= 1,
            _ => return false,
        }
    }
    true
}

impl Directory {
    /// Opens the directory that a path's last name is in. No link leads to it: the path comes from
    /// [`Changed::place_of`](crate::named::Changed::place_of).
    ///
    /// # Errors
    /// The host's error.
    pub fn of(path: &Path) -> Result<Directory> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        let strictly = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = rustix::fs::openat2(rustix::fs::CWD, parent, PLACE, Mode::empty(), strictly);
        Ok(Directory(opened.with_context(|| parent.display().to_string())?))
    }

    /// Opens a directory in this one.
    ///
    /// # Errors
    /// The host's error.
    pub fn below(&self, name: &Path) -> Result<Directory> {
        Ok(Directory(self.strictly(name).with_context(|| name.display().to_string())?))
    }

    fn strictly(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let strictly = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&self.0, path, PLACE, Mode::empty(), strictly)
    }

    /// Looks at the file of this name, and returns its permissions too.
    ///
    /// # Errors
    /// The host's error.
    pub fn look(&self, name: &OsStr) -> Result<(u32, Found)> {
        self.found(name).with_context(|| name.display().to_string())
    }

    fn found(&self, name: &OsStr) -> Result<(u32, Found)> {
        let open = |flags: OFlags| {
            rustix::fs::openat(&self.0, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
        };
        let place = open(OFlags::PATH)?;
        let kind = |mode| FileType::from_raw_mode(mode);
        let stat = rustix::fs::fstat(&place)?;
        let found = match kind(stat.st_mode) {
            FileType::Directory => {
                let entries = rustix::fs::Dir::read_from(open(OFlags::RDONLY | OFlags::DIRECTORY)?)?;
                let names = entries.map(|entry| Ok(OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned()));
                let names = names.collect::<rustix::io::Result<Vec<OsString>>>()?;
                let names = names.into_iter().filter(|name| name != "." && name != "..").collect();
                Found::Directory(Directory(place), names)
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&place, c"", Vec::new())?;
                Found::Link(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
            }
            FileType::RegularFile => {
                // Another file may have the name by now.
                let file = open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
                match kind(rustix::fs::fstat(&file)?.st_mode) {
                    FileType::RegularFile => Found::File(File::from(file)),
                    _ => Found::Other,
                }
            }
            _ => Found::Other,
        };
        Ok((stat.st_mode & 0o777, found))
    }

    /// The directory that a path's last name is in.
    fn parent(&self, path: &Path) -> Result<OwnedFd> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.strictly(parent).with_context(|| format!("{}: its directory", path.display()))
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
    pub fn finish(self, written: Result<()>) -> Result<()> {
        let named = written.and_then(|()| {
            let renamed = rustix::fs::renameat(&self.at, &self.temporary, &self.at, &self.name);
            renamed.with_context(|| self.name.display().to_string())
        });
        if named.is_err() {
            let _ = rustix::fs::unlinkat(&self.at, &self.temporary, AtFlags::empty());
        }
        named
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
        assert!(stays("a/b", "../c") && stays("a/b/c", "../../x/y") && stays("l", "."));
        // With a link a/x to `..`, the link a/q to x/../../z would lead out.
        assert!(!stays("a/q", "x/../../z") && !stays("l", "x/../y"));
        assert!(!stays("a/b", "../../c") && !stays("l", "..") && !stays("l", "/etc") && !stays("l", "x/../../y"));
    }

    #[test]
    fn links_are_not_followed() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(other.path(), folder.path().join("out")).unwrap();
        std::os::unix::fs::symlink(other.path().join("f"), folder.path().join("f")).unwrap();
        let directory = Directory::of(&folder.path().canonicalize().unwrap().join("f")).unwrap();
        assert!(directory.begin(Path::new("out/x"), 0o644).is_err());
        assert!(directory.make_directory(Path::new("out/x"), 0o755).is_err());
        assert!(directory.make_directory(Path::new("out"), 0o755).is_err());
        assert!(directory.make_link(Path::new("out/x"), Path::new("y")).is_err());
        let mut new = directory.begin(Path::new("f"), 0o644).unwrap();
        new.file.write_all(b"text").unwrap();
        new.finish(Ok(())).unwrap();
        assert_eq!(std::fs::read(folder.path().join("f")).unwrap(), b"text");
        assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
    }
}
