//! Removes a directory that a guest has filled: it may be deeper than there are descriptors, and
//! without permissions for its owner.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use anyhow::{Result, ensure};
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

/// Removes a directory with its contents. The entries of a subdirectory are moved to the top before
/// it is removed, so that two descriptors are enough for any depth. No other process may change
/// anything meanwhile.
///
/// # Errors
/// The files that cannot be removed.
pub fn remove(folder: &Path) -> Result<()> {
    let top = enter(CWD, folder)?;
    let mut moved = 0_u64;
    loop {
        let names = names(&top)?;
        if names.is_empty() {
            break;
        }
        let gone = names.iter().filter(|name| remove_one(&top, name, &mut moved).is_ok()).count();
        ensure!(gone > 0, "{}: {} names in it cannot be removed", folder.display(), names.len());
    }
    Ok(std::fs::remove_dir(folder)?)
}

/// Removes the entry of the top with this name. Directories in it are moved to the top.
fn remove_one(top: &OwnedFd, name: &CString, moved: &mut u64) -> rustix::io::Result<()> {
    if !is_left(top, name)? {
        return Ok(());
    }
    let directory = enter(top, name)?;
    for child in names(&directory)? {
        if is_left(&directory, &child)? {
            // A directory without write permission cannot be moved.
            open_up(&directory, &child)?;
            *moved += 1;
            rustix::fs::renameat(&directory, &child, top, format!("moved-{moved}"))?;
        }
    }
    rustix::fs::unlinkat(top, name, AtFlags::REMOVEDIR)
}

/// Removes a file. Returns whether it is a directory, which is not removed.
fn is_left(directory: &OwnedFd, name: &CString) -> rustix::io::Result<bool> {
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => Ok(true),
        gone => gone.map(|()| false),
    }
}

fn open_up(at: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<()> {
    rustix::fs::chmodat(at, name, Mode::RWXU, AtFlags::empty())
}

fn enter(at: impl AsFd, name: impl rustix::path::Arg + Copy) -> rustix::io::Result<OwnedFd> {
    open_up(&at, name)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

fn names(directory: &OwnedFd) -> rustix::io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if name.to_bytes() != b"." && name.to_bytes() != b".." {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_depth_nor_modes_keep_a_directory() {
        // More than a process may have open, mostly.
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
        let depth = most.min(20_000) + 100;
        let parent = tempfile::tempdir().unwrap();
        let (folder, outside) = (parent.path().join("folder"), parent.path().join("outside"));
        std::fs::create_dir_all(folder.join("closed/within")).unwrap();
        std::fs::write(&outside, "").unwrap();
        std::os::unix::fs::symlink(&outside, folder.join("closed/link")).unwrap();
        std::fs::write(folder.join("closed/within/file"), "").unwrap();
        let mut at = enter(CWD, &folder).unwrap();
        for _ in 0..depth {
            rustix::fs::mkdirat(&at, c"deep", Mode::RWXU).unwrap();
            at = enter(&at, c"deep").unwrap();
        }
        for closed in ["closed/within", "closed"] {
            std::fs::set_permissions(folder.join(closed), std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
        }
        remove(&folder).unwrap();
        assert!(!folder.exists() && outside.exists());
    }
}
