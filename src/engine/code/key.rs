//! The per-user key that tags compiled code, and where compiled code is kept.
//!
//! A compiled program is native code: only what this user's lind-boot compiled may run. The key proves it. It lives
//! outside every guest root, is made on first use, and is read before the process confines itself.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fd::{AsFd, OwnedFd};

use crate::code::cache::{self, USUAL_LIMIT};

/// What messages begin with.
const KEPT: &str = "the key of compiled code, in $XDG_DATA_HOME or ~/.local/share";

/// Directories that must not be inside a guest's root, and what was read from them.
pub struct CodeStore {
    /// Tags compiled code.
    pub key: [u8; 32],
    /// Where compiled code is cached; none if it cannot be made.
    pub cache: Option<OwnedFd>,
    /// The directories of key and cache, for the runner to check against the guest's root.
    pub private: Vec<PathBuf>,
    /// What the cache may hold, in bytes.
    pub limit: u64,
    /// Why the key is one of this process only: then nothing that it compiles is of use to another.
    pub unkept: Option<String>,
}

/// Where key and cache of a user may be.
struct Place {
    data: PathBuf,
    cache: PathBuf,
}

impl CodeStore {
    /// Opens the user's key and cache, making them on first use: in the home directory that HOME names, or else in the one that the
    /// user database does. Where neither can have them, the key is a new one that is kept nowhere. Call it before confinement.
    ///
    /// # Errors
    /// When there is a key that others may read or have made.
    pub fn open() -> Result<CodeStore> {
        let (mut why, limit) = (None, limit()?);
        for place in Place::all() {
            match Self::open_in(&place.data, &place.cache) {
                Ok(store) => return Ok(CodeStore { limit, ..store }),
                // The host does not permit it there.
                Err(error) if error.root_cause().is::<std::io::Error>() => {
                    why.get_or_insert(format!("{error:#}"));
                }
                Err(error) => return Err(error),
            }
        }
        let why = why.unwrap_or_else(|| format!("{KEPT}: neither XDG_DATA_HOME nor HOME is a directory"));
        let (mut key, unkept) = ([0; 32], Some(why));
        File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut key)).context("/dev/urandom")?;
        Ok(CodeStore { key, cache: None, private: Vec::new(), limit, unkept })
    }

    /// The directory of the cache.
    pub fn cache_path(&self) -> Option<&Path> {
        self.private.get(1).map(PathBuf::as_path)
    }

    /// As [`CodeStore::open`], with the directories named.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_in(data: &Path, cache: &Path) -> Result<CodeStore> {
        let key = read_key(data).context(KEPT)?;
        let opened = make_private(cache).and_then(|()| Ok(File::open(cache)?)).ok().map(OwnedFd::from);
        let private = vec![data.to_owned(), cache.to_owned()];
        Ok(CodeStore { key, cache: opened, private, limit: USUAL_LIMIT, unkept: None })
    }
}

impl CodeStore {
    /// Makes sure that the cache's directory leads nowhere else.
    ///
    /// # Errors
    /// EPERM without rights over mounts.
    pub fn detach(&mut self) -> lind_kernel::Result<()> {
        if let Some(cache) = &mut self.cache {
            *cache = lind_kernel::detached_mount(cache.as_fd(), false)?;
        }
        Ok(())
    }
}

impl Place {
    fn all() -> impl Iterator<Item = Place> {
        let (data, cache) = (named("XDG_DATA_HOME"), named("XDG_CACHE_HOME"));
        // Without a home, if none is needed. One that is not there is not made.
        let homes: [fn() -> Option<PathBuf>; 2] = [|| named("HOME"), home_in_database];
        let homes = homes.into_iter().filter_map(|home| home().filter(|home| home.is_dir())).map(Some).chain([None]);
        homes.filter_map(move |home| {
            let below = |base: &Option<PathBuf>, usual| {
                Some(base.clone().or_else(|| Some(home.as_ref()?.join(usual)))?.join("lind"))
            };
            Some(Place { data: below(&data, ".local/share")?, cache: below(&cache, ".cache")? })
        })
    }
}

/// What the user lets the cache hold, in bytes.
fn limit() -> Result<u64> {
    let Some(text) = std::env::var_os("LIND_CACHE_SIZE") else { return Ok(USUAL_LIMIT) };
    let size = text.to_str().and_then(cache::size);
    size.with_context(|| format!("LIND_CACHE_SIZE={}: must be a size such as 512M or 2G", text.to_string_lossy()))
}

/// A directory that a variable names.
fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The user's home directory by /etc/passwd. Users that only a directory service knows have to set HOME.
fn home_in_database() -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw().to_string();
    let database = std::fs::read("/etc/passwd").ok()?;
    database.split(|&byte| byte == b'\n').find_map(|line| {
        let fields: Vec<_> = line.split(|&byte| byte == b':').collect();
        let of_user = fields.get(2).is_some_and(|id| *id == user.as_bytes());
        let home = fields.get(5).filter(|home| of_user && home.starts_with(b"/"))?;
        Some(PathBuf::from(OsStr::from_bytes(home)))
    })
}

fn make_private(path: &Path) -> Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("cannot make {}", path.display()))
}

fn read_key(data: &Path) -> Result<[u8; 32]> {
    let path = data.join("key");
    match open_key(&path) {
        Ok(file) => check_key(file, &path),
        Err(error) if error.kind() == ErrorKind::NotFound => make_key(data, &path),
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            bail!("{} is a symbolic link, and may lead to where guests are; put the key itself there", path.display())
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Where it leads is not looked at, so it must not be a link.
fn open_key(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path)
}

fn check_key(mut file: File, path: &Path) -> Result<[u8; 32]> {
    let metadata = file.metadata()?;
    if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
        bail!("{} must belong to you and be readable by nobody else (chmod 600)", path.display());
    }
    let mut key = [0; 32];
    let whole = file.read_exact(&mut key).is_ok() && file.read(&mut [0])? == 0;
    if !whole {
        bail!("{} is not a key of 32 bytes; remove it and precompile again", path.display());
    }
    Ok(key)
}

fn make_key(data: &Path, path: &Path) -> Result<[u8; 32]> {
    make_private(data)?;
    let (mut key, mut name) = ([0; 32], [0; 8]);
    let mut random = File::open("/dev/urandom")?;
    random.read_exact(&mut key)?;
    random.read_exact(&mut name)?;
    // Written aside and linked into place, so that two first runs agree on one key and none sees half of one. Runs in two
    // containers may have one process id.
    let aside = data.join(format!("key.{:x}", u64::from_le_bytes(name)));
    let linked = write_key(&aside, &key).and_then(|()| std::fs::hard_link(&aside, path));
    let _ = std::fs::remove_file(&aside);
    match linked {
        Ok(()) => Ok(key),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => check_key(open_key(path)?, path),
        Err(error) => Err(error).with_context(|| format!("cannot make {}", path.display())),
    }
}

fn write_key(to: &Path, key: &[u8; 32]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_runs_agree_on_a_key() {
        for _ in 0..50 {
            let folder = tempfile::tempdir().unwrap();
            let (data, cache) = (folder.path().join("data"), folder.path().join("cache"));
            let open = || CodeStore::open_in(&data, &cache).unwrap().key;
            let keys: Vec<[u8; 32]> = std::thread::scope(|scope| {
                let runs: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
                runs.into_iter().map(|run| run.join().unwrap()).collect()
            });
            let kept = open();
            assert!(keys.iter().all(|key| *key == kept));
            assert_eq!(std::fs::read_dir(&data).unwrap().count(), 1, "nothing is left aside");
        }
    }
}
