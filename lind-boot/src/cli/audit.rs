//! Options of `audit`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

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
