//! The words of `-v` and `--tmpfs`: `HOST[:GUEST][:ro|rw|overlay[=STATE]]` and `PATH[:SIZE]`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::state::{self, State};
use crate::amount::{Amount, Kind};
use crate::cli::sandbox::Options;
use crate::named::{Changed, shown};

/// A directory or file of the host at a path of the guest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Volume {
    /// Its path on the host, absolute and without links.
    pub host: PathBuf,
    /// The path at which the guest sees it.
    pub guest: PathBuf,
    /// Whether the directory itself stays unchanged.
    pub read_only: bool,
    /// The state of its overlay, which takes the changes.
    pub overlay: Option<State>,
}

impl Volume {
    /// Parses one word of the command line. A relative path starts at the working directory.
    ///
    /// # Errors
    /// A mistake in the word, or a host path that does not exist.
    pub fn parse(word: &OsString) -> Result<Volume> {
        let text = word.to_string_lossy();
        if let Some((rest, state)) = state::of_volume(word).with_context(|| format!("-v {text}"))? {
            return Volume::parse(&rest)?.under(state);
        }
        let (host, guest, read_only) = Volume::fields(word)?;
        let found = host.canonicalize().with_context(|| format!("-v {text}: {}", host.display()))?;
        ensure_no_link(&host, &found).with_context(|| format!("-v {text}"))?;
        let guest = match guest {
            Some(guest) => guest,
            // With `..` in the path, links on the way are resolved, which the text alone cannot do.
            None if host.components().any(|part| part == Component::ParentDir) => found.clone(),
            None => std::path::absolute(&host)?,
        };
        let guest = clean(&guest).with_context(|| format!("-v {text}"))?;
        Ok(Volume { host: found, guest, read_only: read_only.unwrap_or(false), overlay: None })
    }

    /// Splits a word without an overlay into the host's path, the guest's path, and whether it is
    /// read-only.
    fn fields(word: &OsString) -> Result<(PathBuf, Option<PathBuf>, Option<bool>)> {
        let text = word.to_string_lossy();
        let mut fields: Vec<&[u8]> = word.as_bytes().split(|&byte| byte == b':').collect();
        let read_only = match fields.last() {
            Some(&b"ro") if fields.len() > 1 => Some(true),
            Some(&b"rw") if fields.len() > 1 => Some(false),
            Some(mode) if fields.len() > 2 && !is_one_name(&fields) => {
                bail!("-v {text}: {} is neither ro, rw nor overlay", String::from_utf8_lossy(mode))
            }
            _ => None,
        };
        if read_only.is_some() {
            fields.pop();
        }
        let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
        let (host, guest) = match fields[..] {
            [host] => (path(host), None),
            _ if is_one_name(&fields) => (path(&fields.join(&b':')), None),
            [host, guest] => (path(host), Some(path(guest))),
            _ => bail!("-v {text}: expected HOST[:GUEST][:ro|rw]; `-v .` mounts a directory with a colon in its name"),
        };
        ensure!(!host.as_os_str().is_empty(), "-v {text}: expected a directory or file of the host before the colon");
        Ok((host, guest, read_only))
    }

    /// The same volume under an overlay.
    ///
    /// # Errors
    /// When it is not a directory, or the directory of states is unknown.
    pub fn under(self, state: Option<State>) -> Result<Volume> {
        ensure!(
            self.host.is_dir(),
            "-v {}: is not a directory, and only a directory can have an overlay",
            self.host.display()
        );
        let state = state.map_or_else(|| State::of_directory(&self.host), Ok)?;
        Ok(Volume { read_only: true, overlay: Some(state), ..self })
    }

    /// # Errors
    /// When the guest's path is not UTF-8, and so cannot be part of `what`.
    pub fn ensure_text(&self, what: &str) -> Result<()> {
        let guest = &self.guest;
        ensure!(
            guest.to_str().is_some(),
            "{}: is not UTF-8, and cannot be part of {what}; mount it elsewhere, as in -v .:/project",
            guest.display()
        );
        Ok(())
    }

    /// Whether the guest may change the files it sees there.
    pub fn can_be_changed(&self) -> bool {
        !self.read_only || self.overlay.is_some()
    }
}

/// Whether the fields together are a host path with colons in it. A word that could be HOST:GUEST
/// is not taken for one.
fn is_one_name(fields: &[&[u8]]) -> bool {
    let is_guest = |field: &&[u8]| field.starts_with(b"/");
    fields.len() > 1 && !fields[1..].iter().any(is_guest) && Path::new(OsStr::from_bytes(&fields.join(&b':'))).exists()
}

/// Refuses a link in the place of a directory: an earlier command may have created it, and it would
/// show any directory that the user can read. The working directory is allowed, because the user is
/// in it.
fn ensure_no_link(host: &Path, found: &Path) -> Result<()> {
    // With a slash at its end, a name means the link's target.
    let plain = host.components().as_path();
    let stands_there = std::env::current_dir().is_ok_and(|here| here == found);
    ensure!(
        !plain.is_symlink() || stands_there,
        "is a symbolic link, which an earlier command may have created; name the path that it leads to: {}",
        shown(found)
    );
    Ok(())
}

/// # Errors
/// When the path of a volume leads through a link in another volume that can be changed.
pub fn ensure_no_links(options: &Options, changed: &Changed) -> Result<()> {
    let ensure = |option: &str, host: PathBuf| {
        changed.way_to(&host).map(drop).with_context(|| format!("{option} {}", shown(&host)))
    };
    for word in &options.volume {
        let (rest, _) = state::of_volume(word)?.unwrap_or_else(|| (word.clone(), None));
        ensure("-v", Volume::fields(&rest)?.0)?;
    }
    options.dir.iter().try_for_each(|word| ensure("--dir", of_dir(word).0))
}

/// # Errors
/// When two volumes have one path, where only the last would be visible.
pub fn ensure_apart(volumes: &[Volume]) -> Result<()> {
    for (number, volume) in volumes.iter().enumerate() {
        let other = volumes[..number].iter().find(|other| other.guest == volume.guest && *other != volume);
        if let Some(other) = other {
            bail!(
                "-v {}: {} is mounted at {} already; name another place (HOST:GUEST)",
                volume.host.display(),
                other.host.display(),
                volume.guest.display()
            );
        }
    }
    Ok(())
}

/// Checks file systems in memory that are grates of the line: each answers for all that is below
/// its directory, and calls pass through all of them.
///
/// # Errors
/// When something is to be mounted inside one, or there are too many.
pub fn ensure_grates_can_hold(tmpfs: &[Tmpfs], volumes: &[Volume]) -> Result<()> {
    const MOST: usize = 6;
    ensure!(
        tmpfs.len() <= MOST,
        "--tmpfs: at most {MOST} are possible where lind-boot makes the mounts itself (--mounts=kernel)"
    );
    let guests = tmpfs.iter().map(|tmpfs| &tmpfs.guest).chain(volumes.iter().map(|volume| &volume.guest));
    for guest in guests {
        if let Some(over) = tmpfs.iter().find(|tmpfs| guest.starts_with(&tmpfs.guest) && *guest != tmpfs.guest) {
            bail!(
                "{}: cannot be mounted inside --tmpfs {} where lind-boot makes the mounts itself (--mounts=kernel)",
                guest.display(),
                over.guest.display()
            );
        }
    }
    Ok(())
}

/// A volume for a program of WASI, and its entry for the program
/// (`src/passes/wasi/adapter/main.c`): its name, if that is a path of the guest at which it can be
/// mounted, or else its name and its path. `number` is the position of the option.
///
/// # Errors
/// A mistake in `--dir HOST[::GUEST]`, or a host path that does not exist.
pub fn preopened(word: &OsString, number: usize) -> Result<(Volume, OsString)> {
    let text = word.to_string_lossy();
    let (host, given) = of_dir(word);
    let name = given.clone().unwrap_or_else(|| host.clone());
    ensure!(
        !name.as_os_str().is_empty() && !name.as_os_str().as_bytes().iter().any(|byte| b":=".contains(byte)),
        "--dir {text}: expected HOST[::GUEST]; a name has neither : nor ="
    );
    let found = host.canonicalize().with_context(|| format!("--dir {text}: {}", host.display()))?;
    ensure_no_link(&host, &found).with_context(|| format!("--dir {text}"))?;
    ensure!(found.is_dir(), "--dir {text}: {} is not a directory", host.display());
    let is_place = name.has_root() && name != Path::new("/");
    let goes_up = name.components().any(|part| part == Component::ParentDir);
    let guest = if is_place || given.is_none() && !goes_up && !name.has_root() {
        clean(&std::path::absolute(&name)?).with_context(|| format!("--dir {text}"))?
    } else {
        PathBuf::from(format!("/preopens/{number}"))
    };
    let mut entry = if is_place { OsString::new() } else { name.into_os_string() };
    if !is_place {
        entry.push("=");
    }
    entry.push(&guest);
    Ok((Volume { host: found, guest, read_only: false, overlay: None }, entry))
}

/// Splits the word of `--dir HOST[::GUEST]`.
fn of_dir(word: &OsStr) -> (PathBuf, Option<PathBuf>) {
    let bytes = word.as_bytes();
    let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
    match bytes.windows(2).position(|pair| pair == b"::") {
        Some(at) => (path(&bytes[..at]), Some(path(&bytes[at + 2..]))),
        None => (path(bytes), None),
    }
}

/// A file system in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tmpfs {
    /// The path at which the guest sees it.
    pub guest: PathBuf,
    /// Its size.
    pub size: Amount,
}

/// The default size of such a file system.
pub const TMPFS_SIZE: Amount = Amount { kind: Kind::Bytes, number: 256 << 20 };

impl Tmpfs {
    /// Parses one word of the command line.
    ///
    /// # Errors
    /// A mistake in the word.
    pub fn parse(word: &str) -> Result<Tmpfs> {
        let (path, size) = word.split_once(':').map_or((word, None), |(path, size)| (path, Some(size)));
        let size = size.map_or(Ok(TMPFS_SIZE), |size| Kind::Bytes.parse(size));
        let size = size.ok().filter(|size| (1..1 << 40).contains(&size.number));
        let size =
            size.with_context(|| format!("--tmpfs {word}: expected a size after the colon, such as 64M or 1G"))?;
        let guest = clean(Path::new(path)).with_context(|| format!("--tmpfs {word}"))?;
        Ok(Tmpfs { guest, size })
    }
}

/// Checks a guest path, and removes `.` from it.
///
/// # Errors
/// When it does not begin at the root, has `..`, is the root itself, or is inside a directory of
/// the kernel.
pub fn clean(path: &Path) -> Result<PathBuf> {
    let shown = path.display();
    ensure!(path.has_root(), "{shown}: must be a path of the guest, which begins with /");
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::RootDir | Component::CurDir => {}
            _ => bail!("{shown}: a path of the guest cannot have `..`"),
        }
    }
    ensure!(clean.parent().is_some(), "{shown}: cannot mount over the root itself; name another path after a colon");
    let own = ["/proc", "/dev", "/sys"].iter().any(|place| clean.starts_with(place));
    ensure!(!own, "{shown}: cannot mount in /proc, /dev and /sys, which are the kernel's own");
    Ok(clean)
}

/// The guest's name of `path`, which is in the directory `host` of the host, mounted at `guest`.
pub fn below(path: &Path, host: &Path, guest: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(host).ok()?;
    Some(if rest.as_os_str().is_empty() { guest.to_owned() } else { guest.join(rest) })
}

/// The guest's path of a host path without links, if a volume shows it.
pub fn shown_at(path: &Path, volumes: &[Volume]) -> Option<PathBuf> {
    volumes.iter().rev().find_map(|volume| below(path, &volume.host, &volume.guest))
}

/// The guest's path of a host path, if a volume shows it.
pub fn inside(path: &Path, volumes: &[Volume]) -> Option<PathBuf> {
    shown_at(&path.canonicalize().ok()?, volumes)
}

/// The host directories that the guest may change, directly or in an overlay that may be applied.
pub fn changed(volumes: &[Volume]) -> Changed {
    Changed::new(volumes.iter().filter(|volume| volume.can_be_changed()).map(|volume| volume.host.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(word: &str) -> Result<Volume> {
        Volume::parse(&OsString::from(word))
    }

    #[test]
    fn volumes_are_read_as_docker_has_them() {
        let of = |host: &str, guest: &str, read_only| Volume {
            host: host.into(),
            guest: guest.into(),
            read_only,
            overlay: None,
        };
        assert_eq!(volume("/etc").unwrap(), of("/etc", "/etc", false));
        assert_eq!(volume("/etc:ro").unwrap(), of("/etc", "/etc", true));
        assert_eq!(volume("/etc:/a/./b").unwrap(), of("/etc", "/a/b", false));
        assert_eq!(volume("/etc:/a:rw").unwrap(), of("/etc", "/a", false));
        for wrong in ["", ":/a", "/etc:a", "/etc:/a/../b", "/etc:/a:wo", "/etc:/:ro", "/nowhere/at/all", "/etc:/proc/1"]
        {
            assert!(volume(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_is_taken_as_a_shell_does() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let colons = folder.join("a:b:c");
        std::fs::create_dir(&colons).unwrap();
        let named = |end: &str| volume(&format!("{}{end}", colons.display())).unwrap();
        assert_eq!(
            (named("").guest, named(":ro").read_only, named("/..").guest),
            (colons.clone(), true, folder.clone())
        );
        assert!(format!("{:#}", volume("/etc:a:b").unwrap_err()).contains("neither ro"));
        let both = [volume("/etc:/a").unwrap(), volume("/usr:/a").unwrap()];
        assert!(ensure_apart(&both).is_err());
        assert!(ensure_apart(&[both[0].clone(), both[0].clone()]).is_ok());
    }

    #[test]
    fn an_overlay_is_mounted_read_only_and_can_be_changed() {
        let found = volume("/etc:/a:overlay=/s/t.db").unwrap();
        assert_eq!((found.host, found.guest, found.read_only), ("/etc".into(), "/a".into(), true));
        assert_eq!(found.overlay.unwrap().file, Path::new("/s/t.db"));
        assert!(volume("/etc:overlay=/s").unwrap().can_be_changed() && !volume("/etc:ro").unwrap().can_be_changed());
        for wrong in ["/etc/passwd:overlay=/s", "/etc:overlay=", "/etc:ro:overlay=a b"] {
            assert!(volume(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn file_systems_in_memory_have_sizes() {
        assert_eq!(Tmpfs::parse("/a").unwrap(), Tmpfs { guest: "/a".into(), size: TMPFS_SIZE });
        assert_eq!(Tmpfs::parse("/a:64M").unwrap().size.number, 64 << 20);
        for wrong in ["a", "/a:", "/a:0", "/a:-1", "/a:1mm", "/a:x", "/a:1,mode=777"] {
            assert!(Tmpfs::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn of_several_volumes_the_last_counts() {
        let of = |host: &str, guest: &str| Volume {
            host: host.into(),
            guest: guest.into(),
            read_only: false,
            overlay: None,
        };
        let volumes = [of("/", "/host"), of("/usr", "/tools")];
        assert_eq!(inside(Path::new("/usr/bin"), &volumes), Some("/tools/bin".into()));
        assert_eq!(inside(Path::new("/usr"), &volumes), Some("/tools".into()));
        assert_eq!(inside(Path::new("/etc"), &volumes), Some("/host/etc".into()));
        assert_eq!(inside(Path::new("/etc"), &volumes[1..]), None);
    }
}
