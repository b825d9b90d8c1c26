//! `lind-boot audit`: looks at logs that `--audit` has written. The witness grate knows how, and sees nothing but the log.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};

use crate::run::Failure;
use crate::sandbox;

/// What to do with a log.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Checks that a log is whole and was not changed: status 0 if so, 1 if not, 2 if it does not end, 3 if it cannot be read
    Verify(Verify),
}

/// Options of `audit verify`.
#[derive(Args, Debug)]
pub struct Verify {
    /// The log; its head, FILE.head, is read too
    pub file: PathBuf,
    /// The key that must have signed it, as lind-boot printed it when the log began: 64 hexadecimal digits
    #[arg(long, value_name = "KEY")]
    pub public: Option<OsString>,
    /// The head, where it is another file
    #[arg(long, value_name = "FILE", conflicts_with = "no_head")]
    pub head: Option<PathBuf>,
    /// Checks the log without its head: a log that was cut off is not noticed then
    #[arg(long)]
    pub no_head: bool,
    /// Prints the records too
    #[arg(long)]
    pub show: bool,
}

/// Does it, and ends with the status of the grate.
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
