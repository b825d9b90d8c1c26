//! Resolves a plan: the root, the environment, the words of the command line.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::Plan;
use crate::config::{environment, root};
use crate::plan::step::Step;

/// The option that makes a grate describe what it would do.
const EXPLAIN: &str = "--explain";

/// A run with its root, environment and words resolved.
pub struct Resolved {
    /// The root directory, canonical.
    pub root: PathBuf,
    /// envp.
    pub envp: Vec<CString>,
    /// The first grates of the line.
    pub line: Vec<Step>,
    /// The words behind them: further grates as one types them, and the program.
    pub words: Vec<OsString>,
    /// The guest's working directory.
    pub cwd: CString,
}

impl Resolved {
    /// Resolves plan. `stack` has the root and the grates of a file, if they are known
    /// already.
    ///
    /// # Errors
    /// A root that does not exist, a word with a NUL byte.
    pub fn new(plan: &Plan, stack: Option<(PathBuf, Vec<Step>)>) -> Result<Resolved> {
        match plan.program.first() {
            None => bail!("no program given (try --help)"),
            Some(name) if name.as_bytes().starts_with(b"-") => {
                let name = name.to_string_lossy();
                bail!("{name}: a program's name cannot begin with a dash; write ./{name} for a file of that name")
            }
            Some(_) => {}
        }
        let (root, line) = match stack {
            Some((root, line)) => (root, line),
            None => (root(plan.root.as_ref())?, plan.line.clone()),
        };
        let (name, words) = plan.program.split_at(usize::from(plan.explain));
        let explain = plan.explain.then(|| OsString::from(EXPLAIN));
        let words = name.iter().cloned().chain(explain).chain(words.iter().cloned()).collect();
        Ok(Resolved { root, envp: environment(&plan.env)?, line, words, cwd: c_string(&plan.cwd)? })
    }
}

fn c_string(text: &OsString) -> Result<CString> {
    CString::new(text.as_bytes()).with_context(|| text.to_string_lossy().into_owned())
}

/// Refuses a root, or a directory mounted in it, that contains the key or the cache of compiled
/// code: a guest must not see them.
///
/// # Errors
/// An error that names the directory.
pub fn check_private(root: &Path, private: &[PathBuf]) -> Result<()> {
    let Some(place) = held(root, private) else { return Ok(()) };
    bail!(
        "the guest's {} contains {}, where the key and cache of compiled code are: a guest could forge programs. Choose \
         another directory, mount it with :ro or :overlay, or set XDG_DATA_HOME and XDG_CACHE_HOME",
        root.display(),
        place.display()
    );
}

/// Refuses a root, or a directory mounted in it, that contains the grates: a guest could change
/// them, except in the places `unchanged`.
///
/// # Errors
/// An error that names the directory.
pub fn check_grates(root: &Path, folders: &[PathBuf], unchanged: &[PathBuf]) -> Result<()> {
    let changed: Vec<_> = folders
        .iter()
        .filter(|folder| {
            !folder.canonicalize().is_ok_and(|found| unchanged.iter().any(|place| found.starts_with(place)))
        })
        .cloned()
        .collect();
    let Some(place) = held(root, &changed) else { return Ok(()) };
    bail!(
        "the guest's {} contains {}, where the grates are: a guest could change them. Choose another directory, or other \
         grates by --grates",
        root.display(),
        place.display()
    );
}

/// One of `places` that is in `root`.
fn held(root: &Path, places: &[PathBuf]) -> Option<PathBuf> {
    places
        .iter()
        .map(|place| place.canonicalize().unwrap_or_else(|_| place.clone()))
        .find(|place| place.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_not_a_program() {
        let plan = Plan { program: vec!["--bogus".into(), "x".into()], ..Plan::default() };
        let error = Resolved::new(&plan, None).err().expect("refused");
        assert!(error.to_string().contains("--bogus: a program's name cannot begin"), "{error}");
    }

    #[test]
    fn a_root_around_the_key_is_refused() {
        let private = [PathBuf::from("/nowhere/home/.local/share/lind")];
        assert!(check_private(Path::new("/nowhere/home"), &private).is_err());
        assert!(check_private(Path::new("/nowhere/home2"), &private).is_ok());
        assert!(check_grates(Path::new("/nowhere"), &private, &[]).is_err());
        assert!(check_grates(Path::new("/nowhere/home2"), &private, &[]).is_ok());
        let folder = tempfile::tempdir().unwrap();
        let (root, folders) = (folder.path().canonicalize().unwrap(), [folder.path().join("grates")]);
        std::fs::create_dir(&folders[0]).unwrap();
        let unchanged = [root.join("grates")];
        assert!(check_grates(&root, &folders, &[]).is_err());
        assert!(check_grates(&root, &folders, &unchanged).is_ok());
        assert!(check_grates(&root, &folders, &[root.join("grates/a")]).is_err());
    }
}
