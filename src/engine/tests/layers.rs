//! The engine's folders import downwards: `code` nothing, `space` only `code`. The folders above hang together by Guest and
//! HostThread, which each of them needs.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders, and which others each may import from.
const MAY_IMPORT: [(&str, &[&str]); 2] = [("code", &[]), ("space", &["code"])];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

#[test]
fn folders_import_downwards() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    for (folder, allowed) in MAY_IMPORT {
        let files = sources(&engine.join(folder));
        assert!(files.len() > 2, "{folder} has moved");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for (place, _) in text.match_indices("crate::") {
                let name =
                    text[place + "crate::".len()..].split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
                if name != folder && !allowed.contains(&name) {
                    wrong.push(format!("{}: crate::{name}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "imports against the order of src/engine/lib.rs:\n{}", wrong.join("\n"));
}
