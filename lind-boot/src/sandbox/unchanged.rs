//! Files of the host that volumes show, and that no guest may change.

use std::collections::{BTreeSet, VecDeque};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::installed;
use crate::named::shown;
use crate::plan::step::{Setting, Value};
use crate::plan::volume::{Tmpfs, Volume, below};

/// The most links that a path may lead through.
const LINKS: usize = 40;

/// The places that stay as they are in volumes that can be changed: the files that lind-boot is and
/// trusts, and those that `--keep` names.
///
/// Each is mounted over itself, read-only, except in overlays, which have no mounts inside. That
/// alone would let a guest rename a directory above it and put another one there, so the write
/// filter protects the path too.
pub struct Unchanged {
    /// The places of the host.
    pub places: Vec<PathBuf>,
    /// The mounts over them.
    pub volumes: Vec<Volume>,
    guests: Vec<PathBuf>,
}

impl Unchanged {
    /// Finds what is kept in these volumes.
    ///
    /// # Errors
    /// When a volume lies in a place that is kept, or a command could change a file there by
    /// another name.
    pub fn find<'a>(
        named: impl IntoIterator<Item = &'a PathBuf>,
        volumes: &[Volume],
        tmpfs: &[Tmpfs],
    ) -> Result<Unchanged> {
        let mut places = installed::trusted();
        for path in named {
            places.extend(ways(path).with_context(|| format!("--keep {}", shown(path)))?);
        }
        let mut kept = Unchanged { places: Vec::new(), volumes: Vec::new(), guests: Vec::new() };
        for volume in volumes.iter().filter(|volume| volume.can_be_changed()) {
            for place in &places {
                ensure!(
                    volume.read_only || !volume.host.starts_with(place) || !place.exists(),
                    "-v {}: is in {}, with files that lind-boot trusts or --keep names: a guest could change them; choose \
                     another directory, or mount it with :ro",
                    shown(&volume.host),
                    shown(place)
                );
                if let Some(guest) = below(place, &volume.host, &volume.guest)
                    && guest != volume.guest
                    && shows(volume, &guest, volumes, tmpfs)
                {
                    kept.add(place, guest, !volume.read_only);
                }
            }
        }
        let inodes = kept.linked();
        if !inodes.is_empty() {
            let changed = volumes.iter().filter(|volume| !volume.read_only);
            changed.map(|volume| volume.host.as_path()).try_for_each(|host| kept.ensure_no_name(host, &inodes))?;
        }
        Ok(kept)
    }

    /// The options of the write filter.
    pub fn settings(&self) -> Vec<Setting> {
        self.guests.iter().map(|guest| Setting::new("--protect", Value::text(guest))).collect()
    }

    fn add(&mut self, place: &Path, guest: PathBuf, mounts: bool) {
        if self.guests.contains(&guest) {
            return;
        }
        let found = place.symlink_metadata();
        if mounts && found.is_ok_and(|found| found.is_dir() || found.is_file()) {
            let (host, guest) = (place.to_owned(), guest.clone());
            self.volumes.push(Volume { host, guest, read_only: true, overlay: None });
        }
        self.places.push(place.to_owned());
        self.guests.push(guest);
    }

    /// The files in these places that have further names: a package that was installed by hard
    /// links. To look for them takes a while, so the program itself says whether it is one.
    fn linked(&self) -> BTreeSet<(u64, u64)> {
        let mut inodes = BTreeSet::new();
        let has_names = |path: PathBuf| path.metadata().is_ok_and(|found| found.nlink() > 1);
        if !self.places.is_empty() && installed::program().is_some_and(has_names) {
            for place in &self.places {
                each_file(place, &mut |_, found| {
                    if found.nlink() > 1 {
                        inodes.insert((found.dev(), found.ino()));
                    }
                    Ok(())
                })
                .unwrap_or_default();
            }
        }
        inodes
    }

    /// Looks for other names of files in a volume.
    fn ensure_no_name(&self, host: &Path, inodes: &BTreeSet<(u64, u64)>) -> Result<()> {
        each_file(host, &mut |path, found| {
            if inodes.contains(&(found.dev(), found.ino())) && !self.places.iter().any(|place| path.starts_with(place))
            {
                bail!(
                    "-v {}: a guest could change lind-boot or what it trusts by another name (a hard link): {}; install \
                     the package with copies (uv: --link-mode=copy), or mount the directory with :overlay",
                    shown(host),
                    shown(path)
                );
            }
            Ok(())
        })
    }
}

/// Whether the file at `guest`, which is in a volume, is the volume's there, and nothing else is
/// mounted over it.
fn shows(volume: &Volume, guest: &Path, volumes: &[Volume], tmpfs: &[Tmpfs]) -> bool {
    let others = volumes.iter().map(|other| &other.guest).chain(tmpfs.iter().map(|tmpfs| &tmpfs.guest));
    let inner = |other: &&PathBuf| **other != volume.guest && other.starts_with(&volume.guest);
    !others.filter(inner).any(|other| guest.starts_with(other))
}

/// Calls a function for each file at and below a path. Links are not followed.
fn each_file(path: &Path, call: &mut impl FnMut(&Path, &Metadata) -> Result<()>) -> Result<()> {
    let Ok(found) = path.symlink_metadata() else { return Ok(()) };
    if !found.is_dir() {
        return call(path, &found);
    }
    // A guest has no more rights than the user, who cannot read what is left out here.
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        each_file(&entry.path(), call)?;
    }
    Ok(())
}

/// The places that a path leads through, each without links before its last name: the links on its
/// way, which could be made to lead elsewhere, and its end.
fn ways(path: &Path) -> Result<Vec<PathBuf>> {
    let path = std::path::absolute(path)?;
    let mut parts: VecDeque<_> = path.components().map(|part| part.as_os_str().to_owned()).collect();
    let (mut at, mut found) = (PathBuf::from("/"), Vec::new());
    while let Some(part) = parts.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        match next.read_link() {
            Ok(target) => {
                ensure!(found.len() < LINKS, "leads through too many symbolic links");
                found.push(next);
                target.components().rev().for_each(|part| parts.push_front(part.as_os_str().to_owned()));
            }
            Err(_) => at = next,
        }
    }
    found.push(at);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::plan::state::State;

    fn volume(host: &Path, guest: &str) -> Volume {
        Volume { host: host.to_owned(), guest: guest.into(), read_only: false, overlay: None }
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(path.join("project/real/bin")).unwrap();
        std::fs::write(path.join("project/real/bin/python"), "").unwrap();
        (folder, path)
    }

    #[test]
    fn links_on_the_way_are_kept_as_well() {
        let (_folder, path) = folder();
        symlink("real", path.join("project/env")).unwrap();
        symlink("project", path.join("here")).unwrap();
        let found = ways(&path.join("here/env/../env/bin")).unwrap();
        let expected = ["here", "project/env", "project/env", "project/real/bin"];
        assert_eq!(found, expected.map(|name| path.join(name)));
        symlink("round", path.join("round")).unwrap();
        assert!(ways(&path.join("round")).is_err());

        let kept = Unchanged::find([&path.join("here/env")], &[volume(&path.join("project"), "/p")], &[]).unwrap();
        assert_eq!(kept.guests, ["/p/env", "/p/real"].map(PathBuf::from));
        // A link cannot be mounted over.
        assert_eq!(kept.volumes.iter().map(|volume| &volume.guest).collect::<Vec<_>>(), [Path::new("/p/real")]);
        assert!(kept.volumes[0].read_only && kept.settings().len() == 2);
    }

    #[test]
    fn only_what_a_volume_shows_is_kept() {
        let (_folder, path) = folder();
        let project = path.join("project");
        let find = |volumes: &[Volume], tmpfs: &[Tmpfs]| Unchanged::find([&project.join("real")], volumes, tmpfs);
        assert!(find(&[Volume { read_only: true, ..volume(&project, "/p") }], &[]).unwrap().places.is_empty());
        assert!(find(&[volume(&path.join("elsewhere"), "/p")], &[]).unwrap().places.is_empty());
        let memory = Tmpfs::parse("/p/real").unwrap();
        assert!(find(&[volume(&project, "/p")], &[memory]).unwrap().places.is_empty());
        let (read_only, overlay) = (true, Some(State::parse("/s/t.db".as_ref()).unwrap()));
        let over = find(&[Volume { read_only, overlay, ..volume(&project, "/p") }], &[]).unwrap();
        assert_eq!((over.guests, over.volumes.len()), (vec!["/p/real".into()], 0));
        let both = find(&[volume(&path, "/a"), volume(&project, "/b")], &[]).unwrap();
        assert_eq!(both.guests, ["/a/project/real", "/b/real"].map(PathBuf::from));
        for inside in ["real", "real/bin"] {
            assert!(find(&[volume(&project.join(inside), "/p")], &[]).is_err());
        }
    }

    #[test]
    fn other_names_of_files_are_found() {
        let (_folder, path) = folder();
        let project = path.join("project");
        let kept = Unchanged::find([&project.join("real")], &[volume(&project, "/p")], &[]).unwrap();
        let found = project.join("real/bin/python").metadata().unwrap();
        let inodes = BTreeSet::from([(found.dev(), found.ino())]);
        assert!(kept.ensure_no_name(&project, &inodes).is_ok());
        std::fs::hard_link(project.join("real/bin/python"), project.join("other")).unwrap();
        assert!(kept.ensure_no_name(&project, &inodes).is_err());
    }
}
