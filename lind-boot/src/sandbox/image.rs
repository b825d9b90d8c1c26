//! The parts of the image that are in the guest's root, and their paths.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::mounts::{again, open};

/// The names at its top that are left out: the plan or the kernel provides these directories, and
/// `grates` is not for programs.
const NOT_OF_IMAGE: [&[u8]; 5] = [b"tmp", b"proc", b"dev", b"sys", b"grates"];

/// The flags to open a name for inspection. No link is followed.
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// One part of the image.
pub struct Entry {
    /// Its path in the guest.
    pub path: PathBuf,
    /// Its kind.
    pub what: What,
}

/// The kinds of parts.
pub enum What {
    /// A directory with all its contents, or a file: it is mounted.
    Tree(OwnedFd, FileType),
    /// A directory with these permissions, whose entries are separate parts that follow.
    Opened(Mode),
    /// A symbolic link.
    Link(Vec<u8>),
}

/// The parts of an image, without those at `left_out`. An entry at its top is mounted whole, unless
/// something else is to be mounted below it at a name that does not exist, or is left out. An image
/// cannot be changed, so such a directory is created in the root, and its entries are mounted in
/// it.
///
/// # Errors
/// When a part of the image cannot be read.
pub fn parts<'a>(image: &Path, left_out: &[PathBuf], points: impl IntoIterator<Item = &'a Path>) -> Result<Vec<Entry>> {
    let shown = || format!("image {}", image.display());
    let top = open(CWD, image).with_context(shown)?;
    let opened = points.into_iter().flat_map(|point| lacking(&top, point, left_out)).collect();
    let mut found = Vec::new();
    list(&top, Path::new("/"), (&opened, left_out), &mut found).with_context(shown)?;
    Ok(found)
}

/// The image's directories above a mount point that it lacks. None if the image has the point, or
/// has no directory in which it could be created.
fn lacking(top: &OwnedFd, point: &Path, left_out: &[PathBuf]) -> Vec<PathBuf> {
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
            Ok(_) if left_out.contains(&path) => return passed,
            Ok(_) => passed.push(path.clone()),
        }
    }
    Vec::new()
}

fn list(
    directory: &OwnedFd,
    path: &Path,
    (opened, left_out): (&BTreeSet<PathBuf>, &[PathBuf]),
    found: &mut Vec<Entry>,
) -> Result<()> {
    for entry in Dir::read_from(again(directory)?)? {
        let name = entry?.file_name().to_bytes().to_vec();
        let path = path.join(OsStr::from_bytes(&name));
        if matches!(&name[..], b"." | b"..") || !is_kept(&path) || left_out.contains(&path) {
            continue;
        }
        let at = match rustix::fs::openat(directory, &name[..], LOOK, Mode::empty()) {
            // It was removed while the image is listed.
            Err(Errno::NOENT) => continue,
            at => at.with_context(|| path.display().to_string())?,
        };
        let mode = rustix::fs::fstat(&at)?.st_mode;
        let what = match FileType::from_raw_mode(mode) {
            FileType::Symlink => What::Link(rustix::fs::readlinkat(&at, c"", Vec::new())?.into_bytes()),
            FileType::Directory if opened.contains(&path) => {
                found.push(Entry { path: path.clone(), what: What::Opened(Mode::from_raw_mode(mode)) });
                list(&at, &path, (opened, left_out), found)?;
                continue;
            }
            kind @ (FileType::Directory | FileType::RegularFile) => What::Tree(at, kind),
            // An image needs no other kinds of files.
            _ => continue,
        };
        found.push(Entry { path, what });
    }
    Ok(())
}

/// Whether this path of the image is in the guest's root.
fn is_kept(path: &Path) -> bool {
    let mut names = path.iter().skip(1).map(OsStr::as_bytes);
    names.next().is_some_and(|first| {
        let at_top = names.next().is_none();
        !(NOT_OF_IMAGE.contains(&first) || at_top && first.starts_with(b"."))
    })
}

/// Whether the guest sees a file or a link of the image at a path.
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

    /// The parts of an image, as words.
    fn described(image: &Path, points: &[&str]) -> Vec<String> {
        let mut described: Vec<_> = parts(image, &[PathBuf::from("/home/user")], points.iter().map(Path::new))
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
        described.sort();
        described
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
        fs::create_dir_all(image.join("home/user/old")).unwrap();
        fs::create_dir(image.join("home/other")).unwrap();
        let whole = ["/file", "/home/", "/usr/"];
        // A path of the image, a path in a directory that is not taken from the image, and a path
        // that cannot be created.
        for point in ["/usr", "/usr/share/doc", "/new", "/tmp/x", "/.git/x", "/file/x", "/usr/bin/x", "/usr/.hidden/x"]
        {
            assert_eq!(described(image, &[point]), whole, "{point}");
        }
        let usr = ["/file", "/home/", "/usr/ 751", "/usr/.hidden", "/usr/bin@"];
        assert_eq!(described(image, &["/usr/src/app"]), [&usr[..], &["/usr/share/"]].concat());
        assert_eq!(
            described(image, &["/usr/share/x", "/usr/y"]),
            [&usr[..], &["/usr/share/ 755", "/usr/share/doc/"]].concat()
        );
        // The home directory is another one.
        for point in ["/home/user", "/home/user/x"] {
            assert_eq!(described(image, &[point]), ["/file", "/home/ 755", "/home/other/", "/usr/"], "{point}");
        }
    }
}
