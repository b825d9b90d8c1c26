//! The image: what of it the guest's root has, and where.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::root::{again, open};

/// Names at its top that are left out: what the plan or the kernel puts there, and what runs in front of programs.
const NOT_OF_IMAGE: [&[u8]; 5] = [b"tmp", b"proc", b"dev", b"sys", b"grates"];

/// How a name is opened to look at it. No link is followed.
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// One part of the image.
pub struct Entry {
    /// Where the guest has it.
    pub path: PathBuf,
    /// What is there.
    pub what: What,
}

/// What a part of the image is.
pub enum What {
    /// A directory with all in it, or a file: to be mounted.
    Tree(OwnedFd, FileType),
    /// A directory with these permissions, whose entries are parts of their own and come later.
    Opened(Mode),
    /// A symbolic link.
    Link(Vec<u8>),
}

/// The parts of an image. What it has at its top is mounted as it is, but for directories in which something else is to be mounted at a name
/// that is not there. An image cannot be changed, so those are made anew, and their entries are mounted in them.
///
/// # Errors
/// What of the image cannot be read.
pub fn parts<'a>(image: &Path, points: impl IntoIterator<Item = &'a Path>) -> Result<Vec<Entry>> {
    let shown = || format!("image {}", image.display());
    let top = open(CWD, image).with_context(shown)?;
    let opened = points.into_iter().flat_map(|point| lacking(&top, point)).collect();
    let mut found = Vec::new();
    list(&top, Path::new("/"), &opened, &mut found).with_context(shown)?;
    Ok(found)
}

/// The image's directories on the way to a mount point that it lacks; none where it has one, or has no directory to make one in.
fn lacking(top: &OwnedFd, point: &Path) -> Vec<PathBuf> {
    let mut path = PathBuf::from("/");
    let mut passed = Vec::new();
    for name in point.iter().skip(1) {
        path.push(name);
        if !is_kept(&path) {
            return Vec::new();
        }
        let below = path.strip_prefix("/").unwrap_or(&path);
        match rustix::fs::openat2(top, below, LOOK, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS) {
            Err(Errno::NOENT) => return passed,
            Err(_) => return Vec::new(),
            Ok(_) => passed.push(path.clone()),
        }
    }
    Vec::new()
}

fn list(directory: &OwnedFd, path: &Path, opened: &BTreeSet<PathBuf>, found: &mut Vec<Entry>) -> Result<()> {
    for entry in Dir::read_from(again(directory)?)? {
        let name = entry?.file_name().to_bytes().to_vec();
        let path = path.join(OsStr::from_bytes(&name));
        if matches!(&name[..], b"." | b"..") || !is_kept(&path) {
            continue;
        }
        let at = match rustix::fs::openat(directory, &name[..], LOOK, Mode::empty()) {
            // Somebody removes it while the image is listed.
            Err(Errno::NOENT) => continue,
            at => at.with_context(|| path.display().to_string())?,
        };
        let mode = rustix::fs::fstat(&at)?.st_mode;
        let what = match FileType::from_raw_mode(mode) {
            FileType::Symlink => What::Link(rustix::fs::readlinkat(&at, c"", Vec::new())?.into_bytes()),
            FileType::Directory if opened.contains(&path) => {
                found.push(Entry { path: path.clone(), what: What::Opened(Mode::from_raw_mode(mode)) });
                list(&at, &path, opened, found)?;
                continue;
            }
            kind @ (FileType::Directory | FileType::RegularFile) => What::Tree(at, kind),
            // What else there may be, no image needs.
            _ => continue,
        };
        found.push(Entry { path, what });
    }
    Ok(())
}

/// Whether the guest's root has what the image has there.
fn is_kept(path: &Path) -> bool {
    let mut names = path.iter().skip(1).map(OsStr::as_bytes);
    names.next().is_some_and(|first| {
        let at_top = names.next().is_none();
        !(NOT_OF_IMAGE.contains(&first) || at_top && first.starts_with(b"."))
    })
}

/// Whether the guest sees something of the image at a path, or a link.
pub fn has(image: &Path, path: &Path) -> bool {
    let mut names = path.iter().skip(1);
    let Some(first) = names.next().filter(|name| !NOT_OF_IMAGE.contains(&name.as_bytes())) else { return false };
    let path = names.fold(PathBuf::from(first), |path, name| path.join(name));
    let found = open(CWD, image)
        .and_then(|image| rustix::fs::openat2(image.as_fd(), path, LOOK, Mode::empty(), ResolveFlags::IN_ROOT));
    found.is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// What the guest's root has of an image, as words.
    fn told(image: &Path, points: &[&str]) -> Vec<String> {
        let mut told: Vec<_> = parts(image, points.iter().map(Path::new))
            .unwrap()
            .iter()
            .map(|entry| {
                let path = entry.path.display();
                match &entry.what {
                    What::Tree(_, FileType::Directory) => format!("{path}/"),
                    What::Tree(..) => format!("{path}"),
                    What::Opened(mode) => format!("{path}/ {:o}", mode.bits()),
                    What::Link(_) => format!("{path}@"),
                }
            })
            .collect();
        told.sort();
        told
    }

    #[test]
    fn directories_are_opened_for_mount_points_that_they_lack() {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path();
        fs::create_dir_all(image.join("usr/share/doc")).unwrap();
        fs::create_dir_all(image.join("tmp/a")).unwrap();
        fs::create_dir(image.join(".git")).unwrap();
        fs::write(image.join("usr/.hidden"), "").unwrap();
        fs::write(image.join("file"), "").unwrap();
        symlink("../bin", image.join("usr/bin")).unwrap();
        fs::set_permissions(image.join("usr"), std::os::unix::fs::PermissionsExt::from_mode(0o751)).unwrap();
        let whole = ["/file", "/usr/"];
        // What is there, what lies where the image is not looked at, and what cannot be made.
        for point in ["/usr", "/usr/share/doc", "/new", "/tmp/x", "/.git/x", "/file/x", "/usr/bin/x", "/usr/.hidden/x"]
        {
            assert_eq!(told(image, &[point]), whole, "{point}");
        }
        let usr = ["/file", "/usr/ 751", "/usr/.hidden", "/usr/bin@"];
        assert_eq!(told(image, &["/usr/src/app"]), [&usr[..], &["/usr/share/"]].concat());
        assert_eq!(
            told(image, &["/usr/share/x", "/usr/y"]),
            [&usr[..], &["/usr/share/ 755", "/usr/share/doc/"]].concat()
        );
    }
}
