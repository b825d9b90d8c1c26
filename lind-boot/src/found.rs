//! A program that somebody names to have it looked at: found as a line finds it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::config;
use crate::outside::Folders;

/// The file of that name, or the grate, or the program of the root.
///
/// # Errors
/// When there is none; says where it was looked for.
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
        // A link of the root may name a path of the root, which is none here.
        Some(path) if path.canonicalize().is_ok_and(|path| path.starts_with(&root)) => Ok(path),
        _ => bail!("{}: neither a file nor a grate nor a program of {}", name.display(), root.display()),
    }
}
