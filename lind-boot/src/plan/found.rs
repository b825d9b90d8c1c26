//! Finds the programs that a user names to have them inspected or compiled, and tells whether a
//! file is one.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::grates::Folders;
use crate::config;

/// The file of this name, or else the grate, or the program of the root.
///
/// # Errors
/// An error that says where it was looked for.
pub fn program(name: &Path, root: Option<&PathBuf>) -> Result<PathBuf> {
    if name.exists() {
        return Ok(name.to_owned());
    }
    let grate = name.to_str().and_then(|name| Folders::new(&[]).find(name));
    grate.map_or_else(|| of_root(name, root), Ok)
}

fn of_root(name: &Path, root: Option<&PathBuf>) -> Result<PathBuf> {
    let root = config::root(root)?;
    let inside = name.strip_prefix("/").unwrap_or(name);
    let names = ["", ".cwasm", ".wasm"].map(|suffix| format!("{}{suffix}", inside.display()));
    let mut files =
        [root.clone(), root.join("bin")].into_iter().flat_map(|folder| names.each_ref().map(|name| folder.join(name)));
    match files.find(|path| path.is_file()) {
        // A link in the root may lead to a path of the guest, which is another path here.
        Some(path) if path.canonicalize().is_ok_and(|path| path.starts_with(&root)) => Ok(path),
        _ => bail!("{}: neither a file nor a grate nor a program of {}", name.display(), root.display()),
    }
}

/// Whether a file begins like a module.
pub fn is_module(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *b"\0asm"
}

/// The modules in the `/bin` of an image, small ones first, so that most are ready soon.
pub fn modules_of_image(image: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(image.join("bin")).into_iter().flatten().flatten();
    let files = files.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut found: Vec<_> = files
        .map(|entry| (entry.metadata().map_or(0, |metadata| metadata.len()), entry.path()))
        .filter(|(_, path)| is_module(path))
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Whether a file is a module or compiled from one. An ELF file of another kind is not.
pub fn is_program(path: &Path) -> bool {
    is_module(path) || path.extension().is_some_and(|suffix| suffix == "cwasm") && path.is_file()
}
