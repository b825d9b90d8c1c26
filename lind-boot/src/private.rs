//! Directories of a user for what lives as long as a run: the sockets of sessions, mounts that
//! lind-boot makes itself. No other user can enter them.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};

/// The places for such a directory, the first choice first: below $XDG_RUNTIME_DIR, in /tmp, and
/// where that variable usually leads. The last is for a user who starts sessions with the variable
/// and looks for them without it.
pub fn candidates() -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let own = own.and_then(|path| path.canonicalize().ok()).map(|path| path.join("lind"));
    let user = rustix::process::geteuid().as_raw();
    let shared = PathBuf::from(format!("/tmp/lind-{user}"));
    own.into_iter().chain([shared, PathBuf::from(format!("/run/user/{user}/lind"))]).collect()
}

/// Creates such a directory unless it exists, and checks that only this user can enter it.
///
/// # Errors
/// The reason why it cannot be used.
pub fn make(path: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => bail!("{}: {error}", path.display()),
        _ => {}
    }
    let found = path.symlink_metadata().with_context(|| path.display().to_string())?;
    let ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0;
    ensure!(ours, "{}: must be a directory of yours with mode 0700", path.display());
    Ok(())
}

/// An empty directory, for a guest that has nothing but its volumes.
///
/// # Errors
/// The reason why none can be created.
pub fn empty() -> Result<PathBuf> {
    let mut why = None;
    for parent in candidates() {
        let folder = parent.join("empty");
        match make(&parent).and_then(|()| make(&folder)) {
            Ok(()) => return Ok(folder),
            Err(error) => why = Some(error),
        }
    }
    let why = why.unwrap_or_else(|| anyhow!("there is no place for it"));
    Err(why.context("cannot create an empty directory: set XDG_RUNTIME_DIR to a directory of yours"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn others_have_no_way_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lind");
        make(&path).unwrap();
        make(&path).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).unwrap();
        assert!(make(&path).is_err());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(make(&link).is_err());
    }
}
