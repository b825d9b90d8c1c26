//! The per-user key that tags compiled code, and where compiled code is kept.
//!
//! A compiled program is native code: only what this user's lind-boot compiled may run. The key proves it. It lives
//! outside every guest root, is made on first use, and is read before the process confines itself.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fd::{AsFd, OwnedFd};

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
}

impl CodeStore {
    /// Opens the user's key and cache, making them on first use. Call it before confinement.
    ///
    /// # Errors
    /// When the key cannot be read or made, or is not private to this user.
    pub fn open() -> Result<CodeStore> {
        let data = directory("XDG_DATA_HOME", ".local/share").context(KEPT)?;
        let cache = directory("XDG_CACHE_HOME", ".cache").context("the cache of compiled code")?;
        Self::open_in(&data, &cache)
    }

    /// As [`CodeStore::open`], with the directories named.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_in(data: &Path, cache: &Path) -> Result<CodeStore> {
        let key = read_key(data).context(KEPT)?;
        let opened = make_private(cache).and_then(|()| Ok(File::open(cache)?)).ok().map(OwnedFd::from);
        Ok(CodeStore { key, cache: opened, private: vec![data.to_owned(), cache.to_owned()] })
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

fn directory(variable: &str, fallback: &str) -> Result<PathBuf> {
    let base = match std::env::var_os(variable) {
        Some(value) if Path::new(&value).is_absolute() => PathBuf::from(value),
        _ => {
            let home = std::env::var_os("HOME").filter(|home| Path::new(home).is_absolute());
            PathBuf::from(home.with_context(|| format!("neither {variable} nor HOME is set"))?).join(fallback)
        }
    };
    Ok(base.join("lind"))
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
