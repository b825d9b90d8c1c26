//! Files of the user that options name: for results, and with policies and variables.
//!
//! Guests can write to volumes, and an earlier run may have left anything there. So no such file is
//! opened through a link that a guest can have created: neither as its last name, nor on a way that
//! leads through such a volume. A file with rules, or one that is written, must not lie in such a
//! volume at all.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// The directories and files of the host that guests of a run may change, without links in them.
#[derive(Default)]
pub struct Changed(Vec<PathBuf>);

/// The use of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum For {
    /// The file is written.
    Results,
    /// The file says what may be done.
    Rules,
    /// The file has variables for the command, and may come from where the command writes.
    Variables,
}

/// A file that an option names.
pub struct Named<'a> {
    option: &'a str,
    given: &'a Path,
    place: Place,
}

enum Place {
    /// A descriptor that lind-boot was started with.
    Open(u32),
    /// A name in /dev or /proc/PID/fd: links there are the host's.
    Hosts,
    /// A path without links in any of its directories.
    At(PathBuf),
}

impl Changed {
    /// The set of these places.
    pub fn new(places: impl IntoIterator<Item = PathBuf>) -> Changed {
        Changed(places.into_iter().collect())
    }

    fn holds(&self, path: &Path) -> Option<&Path> {
        self.0.iter().find(|place| path.starts_with(place)).map(PathBuf::as_path)
    }

    /// Resolves the directories of a path. Its last name may be a link; no link on the way may be
    /// one that a guest can have created.
    ///
    /// # Errors
    /// When there is such a link, or no such directory.
    pub fn way_to(&self, path: &Path) -> Result<PathBuf> {
        let path = std::path::absolute(path)?;
        let mut at = PathBuf::from("/");
        let mut parts = path.components().skip(1).peekable();
        while let Some(part) = parts.next() {
            let next = at.join(part);
            if parts.peek().is_none() && matches!(part, Component::Normal(_)) {
                return Ok(next);
            }
            at = self.through(&at, &next)?;
        }
        Ok(at)
    }

    /// Resolves a path as `way_to` does, and its last name as well: it may be missing, but not be a
    /// link that a guest can have created.
    ///
    /// # Errors
    /// As for `way_to`.
    pub fn place_of(&self, path: &Path) -> Result<PathBuf> {
        let path = self.way_to(path)?;
        match path.parent() {
            Some(parent) if path.symlink_metadata().is_ok() => self.through(parent, &path),
            _ => Ok(path),
        }
    }

    /// The place that `next`, a name in the directory `at`, leads to.
    fn through(&self, at: &Path, next: &Path) -> Result<PathBuf> {
        let is_link = next.symlink_metadata().with_context(|| shown(next))?.is_symlink();
        if let Some(place) = self.holds(at).filter(|_| is_link) {
            bail!(
                "{} is a symbolic link in {}, where commands can create links; name the path that it leads to",
                shown(next),
                shown(place)
            );
        }
        next.canonicalize().with_context(|| shown(next))
    }
}

impl<'a> Named<'a> {
    /// Finds the file that an option names. A number is an open descriptor, for results only.
    ///
    /// # Errors
    /// An error that says why the file cannot be there, and what to do.
    pub fn find(option: &'a str, given: &'a Path, what: For, changed: &Changed) -> Result<Named<'a>> {
        let number = given.to_str().and_then(|text| text.parse::<u32>().ok()).filter(|_| what == For::Results);
        let place = match number {
            Some(number) => Place::Open(number),
            None => place(given, what, changed).with_context(|| format!("{option} {}", shown(given)))?,
        };
        Ok(Named { option, given, place })
    }

    /// Its path, without links.
    pub fn path(&self) -> &Path {
        match &self.place {
            Place::At(path) => path,
            Place::Open(_) | Place::Hosts => self.given,
        }
    }

    /// Opens it for reading.
    ///
    /// # Errors
    /// The host's error.
    pub fn read(&self) -> Result<File> {
        let file = self.open(OFlags::RDONLY)?;
        ensure!(!file.metadata()?.is_dir(), "{}: is a directory, not a file", self.shown());
        Ok(file)
    }

    /// Opens it for writing, and truncates it.
    ///
    /// # Errors
    /// The host's error.
    pub fn output(&self) -> Result<File> {
        match self.place {
            Place::Open(number) => given(number).with_context(|| format!("{} {}", self.option, shown(self.given))),
            Place::Hosts | Place::At(_) => self.open(OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC),
        }
    }

    /// Opens it for reading and writing, and creates it if it does not exist.
    ///
    /// # Errors
    /// The host's error.
    pub fn update(&self) -> Result<File> {
        self.open(OFlags::RDWR | OFlags::CREATE)
    }

    fn open(&self, flags: OFlags) -> Result<File> {
        let (flags, mode) = (flags | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::from_raw_mode(0o666));
        let opened: Result<OwnedFd, Errno> = match &self.place {
            Place::At(path) => {
                let strictly = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
                let mode = if flags.contains(OFlags::CREATE) { mode } else { Mode::empty() };
                rustix::fs::openat2(CWD, path, flags | OFlags::NOFOLLOW, mode, strictly)
            }
            Place::Hosts | Place::Open(_) => rustix::fs::openat(CWD, self.given, flags, mode),
        };
        Ok(File::from(opened.map_err(std::io::Error::from).with_context(|| self.shown())?))
    }

    fn shown(&self) -> String {
        format!("{} {}", self.option, shown(self.given))
    }
}

/// The path as text for messages.
pub fn shown(path: &Path) -> String {
    lind_kernel::text::shown(path.as_os_str().as_encoded_bytes())
}

fn place(given: &Path, what: For, changed: &Changed) -> Result<Place> {
    let path = changed.way_to(given)?;
    let folder = path.parent().context("is a directory, not a file")?;
    let is_descriptors = folder.starts_with("/proc") && folder.ends_with("fd");
    if is_descriptors || folder == Path::new("/dev") && changed.holds(folder).is_none() {
        return Ok(Place::Hosts);
    }
    if path.is_symlink() {
        let leads = path.canonicalize().map(|path| format!(": {}", shown(&path))).unwrap_or_default();
        bail!("is a symbolic link, which an earlier command may have created; name the file itself{leads}");
    }
    if let Some(volume) = changed.holds(&path).filter(|_| what != For::Variables) {
        let volume = shown(volume);
        match what {
            For::Results => bail!("lies in {volume}, which the command can change (-v): name a file elsewhere"),
            _ => bail!(
                "lies in {volume}, which commands can change (-v), so that a command could give itself rights: move it to {}, and name it \
                 without its ending; or mount that directory read-only (:ro)",
                crate::config::policies().map_or_else(|_| "another directory".to_owned(), |folder| shown(&folder))
            ),
        }
    }
    // Opening a fifo that a guest has put there could block forever.
    let in_volume = changed.holds(&path).is_some();
    ensure!(!in_volume || path.symlink_metadata().is_ok_and(|found| found.is_file()), "not a regular file");
    Ok(Place::At(path))
}

/// Opens a descriptor that lind-boot was started with for writing.
fn given(number: u32) -> Result<File> {
    Ok(match number {
        1 => File::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?),
        2 => File::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?),
        // Not truncated: the file is the starter's, who may have written to it.
        number => File::options().append(true).open(format!("/proc/self/fd/{number}")).with_context(|| {
            format!("descriptor {number} is not open for writing; write ./{number} for a file of that name")
        })?,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Case {
        _folder: tempfile::TempDir,
        top: PathBuf,
        changed: Changed,
    }

    /// A project that guests change, `out` beside it, and links.
    fn case() -> Case {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for name in ["project/sub", "out"] {
            std::fs::create_dir_all(top.join(name)).unwrap();
        }
        std::fs::write(top.join("kept"), "kept").unwrap();
        std::fs::write(top.join("project/file"), "A=1").unwrap();
        symlink("../kept", top.join("out/link")).unwrap();
        symlink("../../out", top.join("project/sub/way")).unwrap();
        symlink("../kept", top.join("project/link")).unwrap();
        symlink("project", top.join("other")).unwrap();
        let changed = Changed::new([top.join("project")]);
        Case { _folder: folder, top, changed }
    }

    fn why(case: &Case, name: &str, what: For) -> String {
        let path = case.top.join(name);
        let found = Named::find("--result", &path, what, &case.changed).err().map(|error| format!("{error:#}"));
        found.unwrap_or_default()
    }

    #[test]
    fn no_link_is_followed_that_a_guest_can_have_made() {
        let case = case();
        for what in [For::Results, For::Rules, For::Variables] {
            assert!(why(&case, "out/link", what).contains("a symbolic link"), "{what:?}");
            assert!(why(&case, "project/link", what).contains("a symbolic link"), "{what:?}");
            assert!(why(&case, "project/sub/way/new", what).contains("sub/way is a symbolic link in"), "{what:?}");
            assert_eq!(why(&case, "out/new", what), "", "{what:?}");
        }
        assert_eq!(std::fs::read(case.top.join("kept")).unwrap(), b"kept");
    }

    #[test]
    fn rules_and_results_lie_where_no_guest_writes() {
        let case = case();
        for name in ["project/file", "project/new", "other/file", "project/sub/../file"] {
            assert!(why(&case, name, For::Results).contains("name a file elsewhere"), "{name}");
            assert!(why(&case, name, For::Rules).contains("move it to"), "{name}");
        }
        assert_eq!(why(&case, "project/file", For::Variables), "");
        assert!(why(&case, "project/sub", For::Variables).contains("not a regular file"));
    }

    #[test]
    fn a_link_that_comes_later_is_not_followed_either() {
        let case = case();
        let path = case.top.join("out/new");
        let named = Named::find("--result", &path, For::Results, &case.changed).unwrap();
        symlink("../kept", &path).unwrap();
        assert!(named.output().is_err() && named.update().is_err() && named.read().is_err());
        std::fs::remove_file(&path).unwrap();
        named.output().unwrap().write_all(b"{}").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"{}");
    }

    #[test]
    fn descriptors_are_named_by_number_and_by_path() {
        let none = Changed::default();
        let open = |path: &str| Named::find("--result", Path::new(path), For::Results, &none).unwrap().output().is_ok();
        assert!(open("/dev/null") && open("/dev/full"));
        assert!(!open("987"));
        let (reader, writer) = std::io::pipe().unwrap();
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        (&writer).write_all(b"A=1").unwrap();
        drop(writer);
        let named = Named::find("--env-file", Path::new(&path), For::Variables, &none).unwrap();
        assert_eq!(std::io::read_to_string(named.read().unwrap()).unwrap(), "A=1");
    }
}
