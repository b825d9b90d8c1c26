//! A layer: a tar of files, compressed. Its bytes depend on names and contents alone: files belong
//! to root, their times are one time, and their modes are those of programs or of other files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::layout::Hashed;
use super::recipe::Copy;

/// Compiled code, which runs for the user who has compiled it, and for nobody else.
const COMPILED: &str = "cwasm";

/// The files of a layer, by their paths.
#[derive(Default)]
pub struct Files(BTreeMap<PathBuf, Entry>);

/// A file of a layer.
enum Entry {
    Directory { is_shared: bool },
    File(PathBuf),
    Link(PathBuf),
}

impl Files {
    /// Collects what the lines of a recipe name. Later lines replace files of earlier ones.
    ///
    /// # Errors
    /// When a file is missing, or is of a kind that images do not have.
    pub fn collect(copies: &[Copy]) -> Result<Files> {
        let mut files = Files::default();
        for Copy { from, to } in copies {
            let mut path = PathBuf::from(to.trim_matches('/'));
            // A link is what it leads to.
            let place = from.canonicalize().with_context(|| from.display().to_string())?;
            let is_directory = place.is_dir();
            if !is_directory && to.ends_with('/') {
                path.push(from.file_name().with_context(|| format!("{}: has no name", from.display()))?);
            }
            for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
                let above = files.0.entry(above.to_owned()).or_insert(Entry::Directory { is_shared: false });
                ensure!(!matches!(above, Entry::File(_)), "copy: to = {to:?}: something above it is a file");
            }
            match is_directory {
                true => files.add_all(&place, &path)?,
                false => files.add(&place, path)?,
            }
        }
        ensure!(!files.0.is_empty(), "there are no files to make a layer of");
        Ok(files)
    }

    /// Adds a directory with all that is in it.
    fn add_all(&mut self, folder: &Path, to: &Path) -> Result<()> {
        self.add(folder, to.to_owned())?;
        for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let to = to.join(path.file_name().unwrap_or_default());
            if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                self.add_all(&path, &to)?;
            } else {
                self.add(&path, to)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, to: PathBuf) -> Result<()> {
        let found = path.symlink_metadata().with_context(|| path.display().to_string())?;
        if found.is_file() && path.extension().is_some_and(|extension| extension == COMPILED) {
            let (module, bare) = (path.with_extension("wasm"), path.with_extension(""));
            ensure!(
                module.is_file() || bare.is_file(),
                "{}: compiled code runs only for the user who has compiled it; put {} into the image instead",
                path.display(),
                module.display()
            );
            return Ok(());
        }
        let entry = match found.file_type() {
            kind if kind.is_dir() => {
                let is_shared = found.permissions().mode() & 0o1000 != 0 || to == Path::new("tmp");
                Entry::Directory { is_shared }
            }
            kind if kind.is_file() => Entry::File(path.to_owned()),
            kind if kind.is_symlink() => Entry::Link(std::fs::read_link(path)?),
            _ => bail!("{}: is not a file, a directory or a link, and an image has no others", path.display()),
        };
        if !matches!(entry, Entry::Directory { .. }) {
            // A directory of an earlier line goes with all that is in it.
            self.0.retain(|path, _| !path.starts_with(&to));
        }
        if !to.as_os_str().is_empty() {
            self.0.insert(to, entry);
        }
        Ok(())
    }

    /// Writes them. Returns the hash of the tar before it was compressed.
    ///
    /// # Errors
    /// The host's error.
    pub fn write(&self, to: impl Write, time: u64) -> Result<String> {
        let compressed = GzEncoder::new(to, Compression::default());
        let mut tar = Builder::new(Hashed::new(compressed));
        for (name, entry) in &self.0 {
            append(&mut tar, name, entry, time).with_context(|| name.display().to_string())?;
        }
        let (digest, _, compressed) = tar.into_inner()?.end();
        compressed.finish()?.flush()?;
        Ok(digest)
    }
}

fn append(tar: &mut Builder<impl Write>, name: &Path, entry: &Entry, time: u64) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    match entry {
        Entry::Directory { is_shared } => {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(if *is_shared { 0o1777 } else { 0o755 });
            tar.append_data(&mut header, name, std::io::empty())?;
        }
        Entry::Link(target) => {
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            tar.append_link(&mut header, name, target)?;
        }
        Entry::File(path) => {
            let file = File::open(path)?;
            let found = file.metadata()?;
            header.set_entry_type(EntryType::Regular);
            header.set_mode(if found.permissions().mode() & 0o100 != 0 { 0o755 } else { 0o644 });
            header.set_size(found.len());
            tar.append_data(&mut header, name, file)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(folder: &Path, lines: &[(&str, &str)]) -> Result<Vec<String>> {
        let copies: Vec<Copy> =
            lines.iter().map(|(from, to)| Copy { from: folder.join(from), to: (*to).to_owned() }).collect();
        Ok(Files::collect(&copies)?.0.into_keys().map(|path| path.display().to_string()).collect())
    }

    #[test]
    fn later_lines_replace_earlier_ones() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::fs::create_dir_all(folder.join("a/deep")).unwrap();
        std::fs::write(folder.join("a/deep/file"), "").unwrap();
        std::fs::write(folder.join("b"), "").unwrap();
        let collected = |lines| collect(folder, lines).unwrap().join(" ");
        assert_eq!(collected(&[("a", "/")]), "deep deep/file");
        assert_eq!(collected(&[("a", "/x/"), ("b", "/x/")]), "x x/b x/deep x/deep/file");
        assert_eq!(collected(&[("a", "/"), ("b", "/deep")]), "deep");
        assert_eq!(collected(&[("b", "/deep"), ("a", "/")]), "deep deep/file");
        std::os::unix::fs::symlink("a", folder.join("link")).unwrap();
        assert_eq!(collected(&[("link", "/y")]), "y y/deep y/deep/file");
        let why = collect(folder, &[("b", "/deep"), ("b", "/deep/file")]).unwrap_err().to_string();
        assert!(why.contains("above it is a file"), "{why}");
        assert!(collect(folder, &[("nowhere", "/")]).is_err() && collect(folder, &[]).is_err());
    }
}
