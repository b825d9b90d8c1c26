//! Directories of git with another name than `.git`, which a rule for that name misses.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::volume::{Volume, inside};

/// The guest's paths of such directories at the top of volumes: the top itself, or the directory
/// that its `.git` leads to.
pub fn unusual(volumes: &[Volume]) -> Vec<PathBuf> {
    let of = |volume: &Volume| {
        if is_repository(&volume.host) {
            return Some(volume.guest.clone());
        }
        let folder = where_it_leads(&volume.host)?;
        inside(&folder, volumes).filter(|guest| guest.file_name() != Some(".git".as_ref()))
    };
    volumes.iter().filter(|volume| volume.can_be_changed()).filter_map(of).collect()
}

/// Whether git takes a directory for a repository.
fn is_repository(folder: &Path) -> bool {
    folder.join("HEAD").symlink_metadata().is_ok() && ["objects", "refs"].iter().all(|name| folder.join(name).is_dir())
}

/// The directory that `.git` leads to, if it is a link, or a file with `gitdir: PATH`.
fn where_it_leads(project: &Path) -> Option<PathBuf> {
    let name = project.join(".git");
    if name.is_dir() {
        return name.is_symlink().then_some(name);
    }
    let text = std::fs::read(&name).ok()?;
    let path = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
    Some(project.join(PathBuf::from(OsString::from_vec(path.to_vec()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_by_another_name_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        for name in ["bare/objects", "bare/refs", "file/kept", "link", "plain/.git", "kept"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        std::fs::write(folder.join("bare/HEAD"), "").unwrap();
        std::fs::write(folder.join("file/.git"), "gitdir: ../file/kept\n").unwrap();
        std::os::unix::fs::symlink("../kept", folder.join("link/.git")).unwrap();
        let volume = |name: &str| Volume {
            host: folder.join(name),
            guest: Path::new("/g").join(name),
            read_only: false,
            overlay: None,
        };
        let found = |names: &[&str]| unusual(&names.iter().map(|name| volume(name)).collect::<Vec<_>>());
        assert_eq!(found(&["bare", "plain"]), [Path::new("/g/bare")]);
        assert_eq!(found(&["file"]), [Path::new("/g/file/kept")]);
        assert!(found(&["link"]).is_empty(), "nobody can change it");
        assert_eq!(found(&["link", "kept"]), [Path::new("/g/kept")]);
    }
}
