//! Finds the program of the command: one that the guest can see, or a module of the host, whose
//! directory is then mounted.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::image;
use crate::plan::found::is_program;
use crate::plan::volume::{self, Volume, below, shown_at};

/// The guest's name of the command. The directory of a host program that no volume shows is mounted
/// read-only.
///
/// The name may come from somebody else, and an earlier run may have put links into a volume. So a
/// directory is mounted only for a module, and only if no link in a volume leads to the module.
///
/// # Errors
/// When its directory cannot be mounted at its own path.
pub fn command(name: &OsString, here: &Path, root: &Shown<'_>, volumes: &mut Vec<Volume>) -> Result<OsString> {
    let path = Path::new(name);
    // A name without a slash is looked up in the directories of programs. Paths of the guest take
    // precedence over paths of the host.
    let own = |folder: &Path| spelled(&folder.join(path)).any(|path| root.shows(&path, volumes));
    let workdir = root.workdir.filter(|_| !path.has_root());
    if !name.as_bytes().contains(&b'/') || path.has_root() && own(path) || workdir.is_some_and(own) {
        return Ok(name.clone());
    }
    let Some((place, through)) = place_of(&here.join(path), volumes) else { return Ok(name.clone()) };
    // The last name is kept: if it is a link, the guest sees there what it leads to.
    if let Some(shown) = place.parent().and_then(|folder| shown_at(folder, volumes)) {
        return Ok(place.file_name().map_or(shown.clone(), |file| shown.join(file)).into_os_string());
    }
    let found = spelled(&place).find(|path| path.is_file() && is_program(path)).filter(|_| !through);
    // Any other name is a path of the guest; a program for the host alone is one too, and fails
    // there.
    let Some(found) = found else { return Ok(name.clone()) };
    let found = found.canonicalize()?;
    let folder = found.parent().context("a program lies in a directory")?;
    let guest = volume::clean(folder).with_context(|| format!("{}: mount its directory with -v", found.display()))?;
    // It is mounted before the user's volumes inside it, so that they stay visible.
    let at = volumes
        .iter()
        .position(|volume| volume.guest != guest && volume.guest.starts_with(&guest))
        .unwrap_or(volumes.len());
    volumes.insert(at, Volume { host: folder.to_owned(), guest, read_only: true, overlay: None });
    Ok(found.into_os_string())
}

/// The file names that the name of a program can mean.
pub fn spelled(path: &Path) -> impl Iterator<Item = PathBuf> {
    ["", ".cwasm", ".wasm"].into_iter().map(|suffix| {
        let mut path = path.as_os_str().to_owned();
        path.push(suffix);
        PathBuf::from(path)
    })
}

/// Resolves all of a host path but its last name, and returns whether a link in a volume was on the
/// way. None if a directory does not exist.
fn place_of(path: &Path, volumes: &[Volume]) -> Option<(PathBuf, bool)> {
    let name = path.file_name()?;
    let mut at = PathBuf::from("/");
    let mut through = false;
    for part in path.parent()?.components().skip(1) {
        let next = at.join(part);
        let is_link = next.symlink_metadata().ok()?.is_symlink();
        through |= is_link && shown_at(&at, volumes).is_some();
        at = next.canonicalize().ok()?;
    }
    let place = at.join(name);
    through |= place.is_symlink() && shown_at(&at, volumes).is_some();
    Some((place, through))
}

/// The files that the guest sees before a directory is mounted for the command.
pub struct Shown<'a> {
    /// The image.
    pub image: &'a Path,
    /// The directory in which the command starts, if `-w` names it.
    pub workdir: Option<&'a Path>,
}

impl Shown<'_> {
    /// Whether a path of the guest exists.
    fn shows(&self, path: &Path, volumes: &[Volume]) -> bool {
        let volume = volumes.iter().rev().find_map(|volume| below(path, &volume.guest, &volume.host));
        volume.map_or_else(|| image::has(self.image, path), |path| path.symlink_metadata().is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_the_host_brings_its_directory() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::write(folder.join("hello.wasm"), b"\0asm").unwrap();
        let mut volumes = Vec::new();
        let image = folder.join("image");
        std::fs::create_dir_all(image.join("bin")).unwrap();
        std::fs::write(image.join("bin/sh.cwasm"), b"").unwrap();
        let name = |name: &str, volumes: &mut Vec<Volume>| {
            command(&name.into(), &folder, &Shown { image: &image, workdir: None }, volumes).unwrap()
        };
        assert_eq!(name("hello", &mut volumes), "hello");
        // A program of the image, a name that does not exist, and a program for the host alone.
        for path in ["/bin/sh", "/bin/nothing-here", "/bin/cat"] {
            assert_eq!(name(path, &mut volumes), path);
        }
        assert!(volumes.is_empty());
        assert_eq!(name("./hello", &mut volumes), folder.join("hello.wasm"));
        assert_eq!(volumes, [Volume { host: folder.clone(), guest: folder.clone(), read_only: true, overlay: None }]);
        let project = Volume { host: folder.join("p"), guest: folder.join("p"), read_only: false, overlay: None };
        let mut both = vec![project.clone()];
        assert_eq!(name("./hello", &mut both), folder.join("hello.wasm"));
        assert_eq!(both, [volumes.remove(0), project]);
        volumes = vec![Volume { host: folder.clone(), guest: "/p".into(), read_only: false, overlay: None }];
        assert_eq!(name("./hello.wasm", &mut volumes), "/p/hello.wasm");
        assert_eq!(volumes.len(), 1);
    }

    #[test]
    fn nothing_else_of_the_host_is_brought() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (project, other) = (folder.join("p"), folder.join("other"));
        let image = folder.join("image");
        for folder in [&project, &other, &image.join("bin"), &project.join("w")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(other.join("tool.wasm"), b"\0asm").unwrap();
        std::fs::write(other.join("script"), b"#!/bin/sh").unwrap();
        std::fs::write(project.join("made"), b"#!/bin/sh").unwrap();
        std::os::unix::fs::symlink(other.join("tool.wasm"), project.join("link")).unwrap();
        std::os::unix::fs::symlink(&other, project.join("folder")).unwrap();
        std::os::unix::fs::symlink("made", project.join("again")).unwrap();
        let own = Volume { host: project.clone(), guest: "/p".into(), read_only: false, overlay: None };
        let name = |name: &str, workdir: Option<&str>| {
            let mut volumes = vec![own.clone()];
            let shown = Shown { image: &image, workdir: workdir.map(Path::new) };
            let found = command(&name.into(), &project, &shown, &mut volumes).unwrap();
            (found.into_string().unwrap(), volumes.len())
        };
        // A script, and what links that a run may have made lead to.
        for (path, is) in
            [("../other/script", "../other/script"), ("./folder/tool", "./folder/tool"), ("./link", "/p/link")]
        {
            assert_eq!(name(path, None), (is.to_owned(), 1), "{path}");
        }
        assert_eq!(name("../other/tool", None), (other.join("tool.wasm").display().to_string(), 2));
        // A link keeps its name, and what is only there for the guest, its place.
        for (path, is) in [("./again", "/p/again"), ("./none", "/p/none"), ("../p/made", "/p/made")] {
            assert_eq!(name(path, None), (is.to_owned(), 1), "{path}");
        }
        assert_eq!(name("./made", Some("/p")), ("./made".to_owned(), 1));
        assert_eq!(name("./made", Some("/p/w")), ("/p/made".to_owned(), 1));
    }
}
