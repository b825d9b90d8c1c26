//! Options of `record` and `replay`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::sandbox::{Options, RunOptions};

/// Options of `record`: it is `run` with a file.
#[derive(Args, Debug)]
pub struct Record {
    /// Write the record to this new file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Options of the sandbox.
    #[command(flatten)]
    options: Options,
    /// The command, as for `run`
    #[arg(required = true, value_name = "COMMAND", trailing_var_arg = true)]
    command: Vec<OsString>,
}

impl From<Record> for RunOptions {
    fn from(record: Record) -> RunOptions {
        let Record { output, options, command } = record;
        RunOptions { options, record: Some(output), command, ..RunOptions::default() }
    }
}

/// Options of `replay`.
#[derive(Args, Debug)]
pub struct Replay {
    /// The record
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Stop before the call with this number; print the last calls and the open descriptors
    #[arg(long, value_name = "CALL")]
    pub until: Option<u64>,
    /// Print the calls, as strace does
    #[arg(long)]
    pub trace: bool,
    /// Run nothing; print the first call in which this record differs from OTHER
    #[arg(long, value_name = "OTHER", conflicts_with_all = ["until", "trace", "again"])]
    pub diff: Option<PathBuf>,
    /// Record the replay in this new file
    #[arg(long, value_name = "FILE", hide = true)]
    pub again: Option<PathBuf>,
    /// Use DIR as the image [default: the one of the recording]
    #[arg(long, value_name = "DIR")]
    pub image: Option<PathBuf>,
}
