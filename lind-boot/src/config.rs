//! Resolves options: the root, the environment, the words of the command line.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cli::Run;
use crate::installed;

/// The user's directory of policies.
///
/// # Errors
/// When there is neither XDG_CONFIG_HOME nor a home directory.
pub fn policies() -> Result<PathBuf> {
    let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named.or_else(|| Some(lind_engine::homes().next()?.join(".config")));
    Ok(base
        .context("cannot find the directory of policies: set XDG_CONFIG_HOME or HOME, or name the policy by a path with a slash")?
        .join("lind/policies"))
}

/// The option that makes a grate describe what it would do.
const EXPLAIN: &str = "--explain";

/// A run with its root, environment and words resolved.
pub struct Config {
    /// The root directory, canonical.
    pub root: PathBuf,
    /// envp.
    pub envp: Vec<CString>,
    /// argv; the first is the program.
    pub argv: Vec<CString>,
    /// The guest's working directory.
    pub cwd: CString,
}

impl Config {
    /// Resolves options. `stack` has the root and the words before the program, if they are known
    /// already.
    ///
    /// # Errors
    /// A root that does not exist, a word with a NUL byte.
    pub fn new(options: &Run, stack: Option<(PathBuf, Vec<String>)>) -> Result<Config> {
        match options.program.first() {
            None => bail!("no program given (try --help)"),
            Some(name) if name.as_bytes().starts_with(b"-") => {
                let name = name.to_string_lossy();
                bail!("{name}: a program's name cannot begin with a dash; write ./{name} for a file of that name")
            }
            Some(_) => {}
        }
        let (root, stack) = match stack {
            Some((root, stack)) => (root, stack),
            None => (root(options.root.as_ref())?, Vec::new()),
        };
        let (name, words) = options.program.split_at(usize::from(options.explain));
        let explain = options.explain.then(|| OsString::from(EXPLAIN));
        let argv = stack
            .into_iter()
            .map(OsString::from)
            .chain(name.iter().cloned())
            .chain(explain)
            .chain(words.iter().cloned())
            .map(|word| c_string(&word))
            .collect::<Result<_>>()?;
        Ok(Config { root, envp: environment(&options.env)?, argv, cwd: c_string(&options.cwd)? })
    }
}

/// The root that is named, or else the default one, as a canonical path.
///
/// # Errors
/// When there is no such directory.
pub fn root(named: Option<&PathBuf>) -> Result<PathBuf> {
    let named = named.cloned().or_else(|| std::env::var_os("LIND_ROOT").map(PathBuf::from));
    let root = match named {
        Some(root) => root,
        None => installed::image().context("no root directory: pass --root DIR or set LIND_ROOT")?,
    };
    let found = root.canonicalize().with_context(|| format!("root directory {}", root.display()))?;
    if found.is_dir() { Ok(found) } else { bail!("root directory {}: not a directory", root.display()) }
}

/// The guest's environment: the variables that were named, and no others.
///
/// # Errors
/// A word that does not name a variable.
pub fn environment(named: &[OsString]) -> Result<Vec<CString>> {
    let mut envp: Vec<CString> = Vec::new();
    for entry in named {
        let bytes = entry.as_bytes();
        let name = bytes.split(|&b| b == b'=').next().unwrap_or_default();
        if name.is_empty() {
            bail!("--env {}: expected NAME or NAME=VALUE", entry.to_string_lossy());
        }
        let full = if bytes.contains(&b'=') {
            bytes.to_vec()
        } else {
            // A name alone passes our value on, as in docker; it is skipped if we have none.
            let Some(value) = std::env::var_os(OsString::from_vec(name.to_vec())) else { continue };
            [name, b"=", value.as_bytes()].concat()
        };
        envp.retain(|old| old.as_bytes().split(|&b| b == b'=').next() != Some(name));
        envp.push(CString::new(full).with_context(|| format!("--env {}", entry.to_string_lossy()))?);
    }
    Ok(envp)
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
/// them.
///
/// # Errors
/// An error that names the directory.
pub fn check_grates(root: &Path, folders: &[PathBuf]) -> Result<()> {
    let Some(place) = held(root, folders) else { return Ok(()) };
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
    fn later_variables_replace_earlier_ones() {
        let envp = environment(&["A=1".into(), "B=2".into(), "A=3=4".into()]).unwrap();
        assert_eq!(envp, [c"B=2".to_owned(), c"A=3=4".to_owned()]);
        assert!(environment(&["=x".into()]).is_err());
    }

    #[test]
    fn an_option_is_not_a_program() {
        let cli = <crate::cli::Cli as clap::Parser>::parse_from(["lind-boot", "--", "--bogus", "x"]);
        let error = Config::new(&cli.run, None).err().expect("refused");
        assert!(error.to_string().contains("--bogus: a program's name cannot begin"), "{error}");
    }

    #[test]
    fn a_root_around_the_key_is_refused() {
        let private = [PathBuf::from("/nowhere/home/.local/share/lind")];
        assert!(check_private(Path::new("/nowhere/home"), &private).is_err());
        assert!(check_private(Path::new("/nowhere/home2"), &private).is_ok());
        assert!(check_grates(Path::new("/nowhere"), &private).is_err());
        assert!(check_grates(Path::new("/nowhere/home2"), &private).is_ok());
    }
}
