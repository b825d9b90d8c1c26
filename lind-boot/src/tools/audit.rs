//! `lind-boot audit`: checks logs that `--audit` has written. The witness grate does it, in a
//! sandbox with nothing but the log.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context;

use crate::cli::audit::Command;
use crate::failure::Failure;
use crate::sandbox;

/// Runs the grate, and exits with its status.
///
/// # Errors
/// When the grate cannot be started.
pub fn run(command: &Command) -> Result<Infallible, Failure> {
    let Command::Verify(verify) = command;
    let absolute = |path: &PathBuf| std::path::absolute(path).with_context(|| path.display().to_string());
    let mut words: Vec<OsString> = vec!["witness_grate".into(), "--verify".into(), absolute(&verify.file)?.into()];
    if let Some(key) = &verify.public {
        words.extend(["--public".into(), key.clone()]);
    }
    if let Some(head) = &verify.head {
        words.extend(["--head".into(), absolute(head)?.into()]);
    }
    words.extend(verify.no_head.then(|| "--no-head".into()));
    words.extend(verify.show.then(|| "--show".into()));
    sandbox::run_tool(Vec::new(), words)
}
