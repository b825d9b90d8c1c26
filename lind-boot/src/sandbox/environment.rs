//! The environment of a sandbox's programs.

use std::ffi::{OsStr, OsString};

use anyhow::{Context, Result, ensure};

use super::identity;
use super::mounts::Tree;
use crate::cli::sandbox::Options;
use crate::named::{Changed, For, Named};
use crate::plan::HOME;

/// The variables that programs need.
fn usual(tree: &Tree) -> Vec<OsString> {
    let mut words: Vec<OsString> =
        ["PATH=/bin:/usr/bin", "LANG=C.UTF-8", "TMPDIR=/tmp", "TERM"].map(OsString::from).to_vec();
    words.push(format!("HOME={HOME}").into());
    // The names in the image's /etc/passwd.
    words.push(if rustix::process::geteuid().is_root() { "USER=root" } else { "USER=user" }.into());
    words.push(if tree.image.join("bin/bash").exists() { "SHELL=/bin/bash" } else { "SHELL=/bin/sh" }.into());
    words.extend(identity::variables(&tree.image, &tree.volumes));
    words
}

/// The environment: variables that programs need, then those of files, then those of options.
///
/// # Errors
/// A file that cannot be read, or has something else than variables.
pub fn environment<'a>(
    options: &Options,
    tree: &Tree,
    preopened: impl Iterator<Item = &'a OsString>,
    may_change: &Changed,
) -> Result<Vec<OsString>> {
    let mut words = if options.clear_env { Vec::new() } else { usual(tree) };
    for file in &options.env_file {
        let shown = file.display();
        let opened = Named::find("--env-file", file, For::Variables, may_change)?.read()?;
        let text = std::io::read_to_string(opened).with_context(|| format!("--env-file {shown}"))?;
        for (number, text) in text.lines().enumerate() {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            ensure!(text.contains('='), "--env-file {shown}:{}: expected NAME=VALUE", number + 1);
            words.push(text.into());
        }
    }
    let names: Vec<&OsStr> = preopened.map(OsString::as_os_str).collect();
    if !names.is_empty() {
        let mut word = OsString::from("WASI_PREOPENS=");
        word.push(names.join(OsStr::new(":")));
        words.push(word);
    }
    words.extend(options.env.iter().cloned());
    Ok(words)
}
