//! Resolves options: the root, the directory of policies, the environment.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::installed;

/// The user's directory of policies.
///
/// # Errors
/// When there is neither XDG_CONFIG_HOME nor a home directory.
pub fn policies() -> Result<PathBuf> {
    let folder = directory().context(
        "cannot find the directory of policies: set XDG_CONFIG_HOME or HOME, or name the policy by a path with a slash",
    );
    Ok(folder?.join("policies"))
}

/// The user's directory of configuration.
///
/// # Errors
/// When there is neither XDG_CONFIG_HOME nor a home directory.
pub fn directory() -> Result<PathBuf> {
    let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named.or_else(|| Some(lind_engine::homes().next()?.join(".config")));
    Ok(base.context("no directory of configuration: set XDG_CONFIG_HOME or HOME")?.join("lind"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_variables_replace_earlier_ones() {
        let envp = environment(&["A=1".into(), "B=2".into(), "A=3=4".into()]).unwrap();
        assert_eq!(envp, [c"B=2".to_owned(), c"A=3=4".to_owned()]);
        assert!(environment(&["=x".into()]).is_err());
    }
}
