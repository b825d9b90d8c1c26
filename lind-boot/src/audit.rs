//! `lind-boot audit`: checks logs that `--audit` has written. The witness grate does it, in a
//! sandbox with nothing but the log.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};

use crate::run::Failure;
use crate::sandbox;

/// The commands on a log.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Check that a log is complete and unchanged. Exit status: 0 if it is, 1 if it was changed, 2
    /// if it has no end, 3 if it cannot be read
    Verify(Verify),
}

/// Options of `audit verify`.
#[derive(Args, Debug)]
pub struct Verify {
    /// The log; its head is read from FILE.head
    pub file: PathBuf,
    /// Require the log to be signed with this key, which lind-boot printed when the log began: 64
    /// hexadecimal digits
    #[arg(long, value_name = "KEY")]
    pub public: Option<OsString>,
    /// Read the head from FILE
    #[arg(long, value_name = "FILE", conflicts_with = "no_head")]
    pub head: Option<PathBuf>,
    /// Check the log without its head; a log that was cut off then passes unnoticed
    #[arg(long)]
    pub no_head: bool,
    /// Print the records too
    #[arg(long)]
    pub show: bool,
}

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
