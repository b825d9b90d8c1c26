//! The directories of grates.

use std::path::PathBuf;
use std::sync::LazyLock;

use lind_kernel::cage::{is_grate_name, other_spelling};

use crate::installed;

/// The directories of grates.
pub struct Folders {
    named: Vec<PathBuf>,
    /// Found on first use: most lines name no grate.
    own: LazyLock<Option<PathBuf>>,
}

impl Folders {
    /// The directories that were named, then our own: of the installation or the source tree that
    /// holds this program.
    pub fn new(named: &[PathBuf]) -> Folders {
        Folders { named: named.to_vec(), own: LazyLock::new(installed::grates) }
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.named.iter().chain(self.own.as_ref())
    }

    /// The file of a grate: its compiled code if there is any.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        if !is_grate_name(name.as_bytes()) {
            return None;
        }
        let other = other_spelling(name.as_bytes()).and_then(|name| String::from_utf8(name).ok());
        let suffixes: &[&str] = if name.contains('.') { &[""] } else { &[".cwasm", ".wasm"] };
        let names = [Some(name), other.as_deref()];
        let files =
            names.iter().flatten().flat_map(|name| suffixes.iter().map(move |suffix| format!("{name}{suffix}")));
        files.flat_map(|file| self.all().map(move |folder| folder.join(&file))).find(|path| path.is_file())
    }

    /// The directories as text for messages.
    pub fn names(&self) -> String {
        let names: Vec<_> = self.all().map(|folder| folder.display().to_string()).collect();
        if names.is_empty() { "any directory: no directory of grates was found".to_owned() } else { names.join(", ") }
    }
}
