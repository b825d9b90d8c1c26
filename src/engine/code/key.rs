//! The per-user key that signs compiled code, and the directories of key and cache.
//!
//! A compiled program is native code: only what this user's lind-boot compiled may run. The key
//! proves it. It lives outside every guest root and is made on first use. A second file beside it
//! holds the keys that only verify code, so that the process that runs guests never reads the
//! signing key; the compiler process does ([`crate::code::serve`]).

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use lind_kernel::runtime::Gone;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::code::cache::{self, USUAL_LIMIT};
use crate::code::progress::Shown;
use crate::code::signature::{Checks, Secret};

/// The beginning of error messages.
const KEPT: &str = "the key of compiled code, in $XDG_DATA_HOME or ~/.local/share";

/// The names of the files.
const KEY: &str = "key";
const CHECKS: &str = "key.check";

/// The key and the cache, with their directories, which must not be inside a guest's root.
pub struct CodeStore {
    /// The keys that verify compiled code.
    pub checks: Checks,
    /// The process that compiles.
    pub(crate) compiles: Compiles,
    /// The directory where compiled code is cached; none if it cannot be made.
    pub cache: Option<OwnedFd>,
    /// The directories of key and cache, for the runner to check against the guest's root.
    pub private: Vec<PathBuf>,
    /// The most bytes that the cache may hold.
    pub limit: u64,
    /// The reason why the key is known to this process only: then code that it compiles is of no
    /// use to another.
    pub unkept: Option<String>,
}

/// The process that compiles the modules that the cache does not have.
pub(crate) enum Compiles {
    /// This process, which runs no guests and holds the user's key.
    Here([u8; 32]),
    /// Another process.
    There(Arc<dyn Elsewhere>),
}

/// Another process, which compiles for this one.
pub(crate) trait Elsewhere: Send + Sync {
    /// Compiles the module in a file; returns a file of code. `gone` tells whether the waiting
    /// thread has gone: then the compilation is cancelled.
    ///
    /// # Errors
    /// EINTR when nobody waits any more; the fault of the module; ENOMEM if compiling it takes more
    /// memory than there is.
    fn compile(&self, module: BorrowedFd<'_>, gone: Option<Gone<'_>>, shown: Option<&mut Shown>) -> Result<OwnedFd>;

    /// Makes later starts of a file quick: they need not read it. A failure costs time, not
    /// correctness; so does a busy compiler.
    fn remember(&self, file: BorrowedFd<'_>);

    /// The keys that verify code.
    ///
    /// # Errors
    /// The reason why they cannot be used.
    fn checks(&self) -> Result<Checks>;
}

/// The place of key and cache.
pub enum Kept {
    /// In these directories.
    In(PathBuf, PathBuf),
    /// Nowhere, for this reason.
    Nowhere(String),
}

impl Kept {
    /// The directories of a store.
    pub fn of(store: &CodeStore) -> Kept {
        match (&store.unkept, &store.private[..]) {
            (None, [data, cache]) => Kept::In(data.clone(), cache.clone()),
            (why, _) => Kept::Nowhere(why.clone().unwrap_or_default()),
        }
    }
}

/// A possible place of a user's key and cache.
struct Place {
    data: PathBuf,
    cache: PathBuf,
}

impl CodeStore {
    /// Opens the user's key and cache, making them on first use: in the home directory that HOME
    /// names, or else in the one from the user database. If neither can hold them, the key is a new
    /// one that is not stored. For processes that run no guests.
    ///
    /// # Errors
    /// A key exists that others may read, or that others may have made.
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
        let mut key = [0; 32];
        File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut key)).context("/dev/urandom")?;
        let checks = Secret::of(&key)?.checks();
        let compiles = Compiles::Here(key);
        Ok(CodeStore { checks, compiles, cache: None, private: Vec::new(), limit, unkept: Some(why) })
    }

    /// The existing directories that may hold this user's key or cache.
    pub fn places() -> Vec<PathBuf> {
        Place::all().flat_map(|place| [place.data, place.cache]).filter_map(|path| path.canonicalize().ok()).collect()
    }

    /// The directory of the cache.
    pub fn cache_path(&self) -> Option<&Path> {
        self.private.get(1).map(PathBuf::as_path)
    }

    /// Like [`CodeStore::open`], with given directories.
    ///
    /// # Errors
    /// The errors of `open`.
    pub fn open_in(data: &Path, cache: &Path) -> Result<CodeStore> {
        let (key, file) = read_key(data).context(KEPT)?;
        let checks = Secret::of(&key)?.checks();
        if !kept_checks(data).is_ok_and(|kept| kept == Some(checks)) {
            // A process that runs guests then asks the compiler each time.
            let _ = write_checks(data, &checks, &file);
        }
        Self::with_cache(checks, Compiles::Here(key), data, cache)
    }

    /// The store of a process that runs guests: the key is not read, and `other` compiles. `keys`
    /// are asked for if the ones that verify code are not kept.
    ///
    /// # Errors
    /// The errors of `open`.
    pub(crate) fn without_secret(
        other: Arc<dyn Elsewhere>,
        keys: impl FnOnce() -> Result<(Checks, Kept)>,
    ) -> Result<CodeStore> {
        let limit = limit()?;
        let compiles = Compiles::There(other);
        if let Some(place) = Place::all().next()
            && let Some(checks) = kept_checks(&place.data).context(KEPT)?
        {
            let store = Self::with_cache(checks, compiles, &place.data, &place.cache)?;
            return Ok(CodeStore { limit, ..store });
        }
        Ok(match keys()? {
            (checks, Kept::In(data, cache)) => {
                CodeStore { limit, ..Self::with_cache(checks, compiles, &data, &cache)? }
            }
            (checks, Kept::Nowhere(why)) => {
                CodeStore { checks, compiles, cache: None, private: Vec::new(), limit, unkept: Some(why) }
            }
        })
    }

    /// # Errors
    /// Others can write to one of the directories.
    fn with_cache(checks: Checks, compiles: Compiles, data: &Path, cache: &Path) -> Result<CodeStore> {
        ensure_own(data)?;
        ensure_own(cache)?;
        let opened = make_private(cache).and_then(|()| Ok(File::open(cache)?)).ok().map(OwnedFd::from);
        let private = vec![data.to_owned(), cache.to_owned()];
        Ok(CodeStore { checks, compiles, cache: opened, private, limit: USUAL_LIMIT, unkept: None })
    }

    /// The secret that signs compiled code.
    ///
    /// # Errors
    /// This process runs guests, and so has no secret.
    pub(crate) fn secret(&self) -> Result<Secret> {
        match &self.compiles {
            Compiles::Here(key) => Secret::of(key),
            Compiles::There(_) => bail!("another process compiles"),
        }
    }
}

impl CodeStore {
    /// Makes sure that the descriptor of the cache's directory leads nowhere else.
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
        // The last place needs no home.
        homes().map(Some).chain([None]).filter_map(move |home| {
            let below = |base: &Option<PathBuf>, usual| {
                Some(base.clone().or_else(|| Some(home.as_ref()?.join(usual)))?.join("lind"))
            };
            Some(Place { data: below(&data, ".local/share")?, cache: below(&cache, ".cache")? })
        })
    }
}

/// The user's home directories, the better first: the environment's, and the one in the database of
/// users. A home directory that does not exist is not created.
pub fn homes() -> impl Iterator<Item = PathBuf> {
    let homes: [fn() -> Option<PathBuf>; 2] = [|| named("HOME"), home_in_database];
    homes.into_iter().filter_map(|home| home().filter(|home| home.is_dir()))
}

/// The cache size that the user allows, in bytes.
fn limit() -> Result<u64> {
    let Some(text) = std::env::var_os("LIND_CACHE_SIZE") else { return Ok(USUAL_LIMIT) };
    let size = text.to_str().and_then(cache::size);
    size.with_context(|| format!("LIND_CACHE_SIZE={}: must be a size such as 512M or 2G", text.to_string_lossy()))
}

/// A directory that a variable names.
fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The user's home directory by /etc/passwd. Users that only a directory service knows have to set
/// HOME.
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

/// Fails for a directory that others can write: they could replace the key or the code in it, or
/// remove them.
fn ensure_own(folder: &Path) -> Result<()> {
    let Ok(found) = folder.metadata() else { return Ok(()) };
    let shown = folder.display();
    if found.uid() != rustix::process::geteuid().as_raw() && found.uid() != 0 {
        bail!(
            "{shown} belongs to another user, who could put code of theirs there; set XDG_DATA_HOME and XDG_CACHE_HOME to directories of yours"
        );
    }
    if found.mode() & 0o022 != 0 {
        bail!("{shown} can be written to by others, who could put code of theirs there: chmod go-w {shown}");
    }
    Ok(())
}

/// The key, and the file that it was read from.
fn read_key(data: &Path) -> Result<([u8; 32], KeyFile)> {
    let path = data.join(KEY);
    match open_key(&path) {
        Ok(file) => check_key(file, &path),
        Err(error) if error.kind() == ErrorKind::NotFound => make_key(data, &path),
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => bail!(is_a_link(&path)),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn is_a_link(path: &Path) -> String {
    format!("{} is a symbolic link, which may lead into a guest's root; put the key itself there", path.display())
}

/// Opens without following a link.
fn open_key(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// The keys that verify code; none if they are unknown or belong to another signing key than the
/// one that is there. The key is not read.
///
/// # Errors
/// A key exists that cannot be used.
fn kept_checks(data: &Path) -> Result<Option<Checks>> {
    let path = data.join(KEY);
    let Ok(key) = std::fs::symlink_metadata(&path) else { return Ok(None) };
    if key.is_symlink() {
        bail!(is_a_link(&path));
    }
    check_private(&key, &path)?;
    Ok(read_checks(data).filter(|(_, of)| *of == key_file(&key)).map(|(checks, _)| checks))
}

fn check_private(metadata: &std::fs::Metadata, path: &Path) -> Result<()> {
    if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
        bail!("{} must belong to you and be readable by nobody else (chmod 600)", path.display());
    }
    if metadata.nlink() != 1 {
        bail!(
            "{} has another name, which may be in a guest's root; remove that name, or put a copy here",
            path.display()
        );
    }
    Ok(())
}

fn check_key(mut file: File, path: &Path) -> Result<([u8; 32], KeyFile)> {
    let metadata = file.metadata()?;
    check_private(&metadata, path)?;
    let mut key = [0; 32];
    let whole = file.read_exact(&mut key).is_ok() && file.read(&mut [0])? == 0;
    if !whole {
        bail!("{} is not a key of 32 bytes; remove it and precompile again", path.display());
    }
    Ok((key, key_file(&metadata)))
}

/// Identifies the file of a key and its last change: another key is in another file, or was written
/// to this one later.
type KeyFile = [u8; 32];

fn key_file(metadata: &std::fs::Metadata) -> KeyFile {
    let words =
        [metadata.dev(), metadata.ino(), metadata.ctime().cast_unsigned(), metadata.ctime_nsec().cast_unsigned()];
    std::array::from_fn(|i| words[i / 8].to_le_bytes()[i % 8])
}

/// The verifying keys from the file beside the signing key, and the state of the key file that they
/// belong to; none if the file is not to be trusted.
fn read_checks(data: &Path) -> Option<(Checks, KeyFile)> {
    let path = data.join(CHECKS);
    let mut file = open_key(&path).ok()?;
    let metadata = file.metadata().ok()?;
    check_private(&metadata, &path).ok()?;
    let mut bytes = [0; Checks::BYTES + size_of::<KeyFile>() + 1];
    let got = file.read(&mut bytes).ok()?;
    let (checks, of) = bytes[..got].split_first_chunk()?;
    Some((Checks::from_bytes(checks), of.try_into().ok()?))
}

fn write_checks(data: &Path, checks: &Checks, of: &KeyFile) -> std::io::Result<()> {
    let aside = aside(data)?;
    let written = write_private(&aside, &[&checks.to_bytes()[..], of].concat())
        .and_then(|()| std::fs::rename(&aside, data.join(CHECKS)));
    if written.is_err() {
        let _ = std::fs::remove_file(&aside);
    }
    written
}

/// A new name beside the files. Runs in two containers may have the same process id.
fn aside(data: &Path) -> std::io::Result<PathBuf> {
    let mut name = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut name)?;
    Ok(data.join(format!("key.{:x}", u64::from_le_bytes(name))))
}

fn make_key(data: &Path, path: &Path) -> Result<([u8; 32], KeyFile)> {
    make_private(data)?;
    let mut key = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    // It is written under another name and renamed, so that two first runs agree on one key and
    // none sees half of one.
    let aside = aside(data)?;
    let put = write_private(&aside, &key).and_then(|()| put_new(&aside, path));
    let _ = std::fs::remove_file(&aside);
    match put {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("cannot make {}", path.display()))
        }
        _ => check_key(open_key(path)?, path),
    }
}

/// Gives a file a name that no other has: in one call, or where the filesystem cannot do that, by a
/// second name for a moment.
fn put_new(from: &Path, to: &Path) -> std::io::Result<()> {
    let here = rustix::fs::CWD;
    match rustix::fs::renameat_with(here, from, here, to, rustix::fs::RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => std::fs::hard_link(from, to),
        put => Ok(put?),
    }
}

fn write_private(to: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(store: &CodeStore) -> [u8; 32] {
        let Compiles::Here(key) = store.compiles else { panic!("another process has it") };
        key
    }

    fn kept(data: &Path) -> Option<Checks> {
        kept_checks(data).unwrap()
    }

    #[test]
    fn what_checks_follows_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let (data, cache) = (folder.path().join("data"), folder.path().join("cache"));
        let open = || CodeStore::open_in(&data, &cache).unwrap();
        let first = open().checks;
        std::fs::write(data.join(CHECKS), [0; Checks::BYTES]).unwrap();
        assert_eq!((open().checks, kept(&data)), (first, Some(first)));
        // Another key.
        let (_, old) = read_key(&data).unwrap();
        std::fs::rename(data.join(KEY), data.join("old")).unwrap();
        write_private(&data.join(KEY), &[3; 32]).unwrap();
        assert_eq!(kept(&data), None, "it is of another key");
        // A process that had read the first key writes its verifying keys, and has not seen that
        // there is another key now.
        write_checks(&data, &first, &old).unwrap();
        assert_eq!(kept(&data), None, "it is of the key before");
        let second = open().checks;
        assert!(second != first && kept(&data) == Some(second));
        // The next one is written to the same file.
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(data.join(KEY), [4; 32]).unwrap();
        assert_eq!(kept(&data), None, "the key was written anew");
        let third = open().checks;
        assert!(third != second && kept(&data) == Some(third));
        // A file that others may write, or that has a second name, is not trusted.
        std::fs::set_permissions(data.join(CHECKS), Permissions::from_mode(0o666)).unwrap();
        assert_eq!(kept(&data), None);
        std::fs::set_permissions(data.join(CHECKS), Permissions::from_mode(0o600)).unwrap();
        std::fs::hard_link(data.join(CHECKS), folder.path().join("other")).unwrap();
        assert_eq!(kept(&data), None);
    }

    #[test]
    fn nobody_else_can_write_to_the_directories() {
        let folder = tempfile::tempdir().unwrap();
        let (data, cache) = (folder.path().join("data"), folder.path().join("cache"));
        CodeStore::open_in(&data, &cache).unwrap();
        for shared in [&data, &cache] {
            for mode in [0o720, 0o702, 0o1777] {
                std::fs::set_permissions(shared, Permissions::from_mode(mode)).unwrap();
                let why = CodeStore::open_in(&data, &cache).err().map(|error| format!("{error:#}")).unwrap_or_default();
                assert!(why.contains("by others") && why.contains("chmod go-w"), "{mode:o}: {why}");
            }
            std::fs::set_permissions(shared, Permissions::from_mode(0o755)).unwrap();
            assert!(CodeStore::open_in(&data, &cache).is_ok());
        }
    }

    #[test]
    fn first_runs_agree_on_a_key() {
        for _ in 0..50 {
            let folder = tempfile::tempdir().unwrap();
            let (data, cache) = (folder.path().join("data"), folder.path().join("cache"));
            let open = || key_of(&CodeStore::open_in(&data, &cache).unwrap());
            let keys: Vec<[u8; 32]> = std::thread::scope(|scope| {
                let runs: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
                runs.into_iter().map(|run| run.join().unwrap()).collect()
            });
            let kept = open();
            assert!(keys.iter().all(|key| *key == kept));
            assert_eq!(std::fs::read_dir(&data).unwrap().count(), 2, "nothing is left aside");
            assert_eq!(kept_checks(&data).unwrap(), Some(Secret::of(&kept).unwrap().checks()));
        }
    }
}
