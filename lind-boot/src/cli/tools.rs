//! Options of the commands that look at programs, and of one for lind-boot itself.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Options of `compile`.
#[derive(Args, Debug)]
pub struct Compile {
    /// The module to compile
    pub file: PathBuf,
    /// Write the result to FILE [default: beside the module]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Options of `explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// Use DIR as the guest's root directory [default: $LIND_ROOT, or the image that came with
    /// lind-boot]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Start the grates listed in a TOML file, before those on the line
    #[arg(long, value_name = "FILE")]
    pub stack: Option<PathBuf>,
    /// Look for grates in DIR before lind-boot's own directory; may be repeated
    #[arg(long, value_name = "DIR")]
    pub grates: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The grates with their options, and the program
    #[arg(required = true, value_name = "PROGRAM", trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<OsString>,
}

/// Options of `inspect`.
#[derive(Args, Debug)]
pub struct Inspect {
    /// Look for programs in the root DIR [default: $LIND_ROOT, or the image that came with
    /// lind-boot]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Files, or names of grates and programs
    #[arg(required = true, value_name = "FILE|PROGRAM")]
    pub files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `syscalls`.
#[derive(Args, Debug)]
pub struct Syscalls {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `remove-at-end`.
#[derive(Args, Debug)]
pub struct RemoveAtEnd {
    /// The directory or socket to remove
    pub path: PathBuf,
}

/// Options of `unpack-image`.
#[derive(Args, Debug)]
pub struct UnpackImage {
    /// The archive, a tar that zstd has compressed
    pub archive: PathBuf,
    /// An empty directory
    pub directory: PathBuf,
}
