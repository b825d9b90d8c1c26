//! Options of a run without a command: grates and a program.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

const CWD: &str = "/";
const MEMORY: u64 = 4096;
const FILES: u64 = 1024;

/// Options of a run.
#[derive(Args, Debug)]
pub struct Run {
    /// Use DIR as the guest's root directory [default: $LIND_ROOT, or the image that came with
    /// lind-boot]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Set a variable in the guest's environment; without =VALUE, pass on its value
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Start in DIR, a path inside the root
    #[arg(long, value_name = "DIR", default_value = CWD)]
    pub cwd: OsString,
    /// Print at exit how often each system call was made and how long it took, per cage and route
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, default_missing_value = "text", require_equals = true)]
    pub perf: Option<PerfFormat>,
    /// Print the functions on the stack when a program traps
    #[arg(long)]
    pub backtrace: bool,
    /// Print which walls confine the guest, what is compiled, and how the program ended
    #[arg(long)]
    pub verbose: bool,
    /// Refuse to run unless every wall is up
    #[arg(long)]
    pub require_confinement: bool,
    /// Limit the memory that each cage may map, in MiB
    #[arg(long, value_name = "MIB", default_value_t = MEMORY, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub memory: u64,
    /// Limit the file descriptors that each cage may have
    #[arg(long, value_name = "COUNT", default_value_t = FILES, value_parser = clap::value_parser!(u64).range(3..=65536))]
    pub files: u64,
    /// Start the grates listed in a TOML file, before those on the line
    #[arg(long, value_name = "FILE")]
    pub stack: Option<PathBuf>,
    /// Look for grates in DIR, outside the root, before lind-boot's own directory; may be repeated
    #[arg(long, value_name = "DIR")]
    pub grates: Vec<PathBuf>,
    /// Print, as JSON, what the grate would do with these options. Starts no program; the grate
    /// gets read-only access
    #[arg(long, hide = true)]
    pub explain: bool,
    /// Compile a module; the same as the command `compile`
    #[arg(long, value_name = "FILE.wasm", conflicts_with = "program")]
    pub precompile: Option<PathBuf>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    pub program: Vec<OsString>,
}

impl Default for Run {
    /// No options, and no program.
    fn default() -> Run {
        Run {
            root: None,
            env: Vec::new(),
            cwd: CWD.into(),
            perf: None,
            backtrace: false,
            verbose: false,
            require_confinement: false,
            memory: MEMORY,
            files: FILES,
            stack: None,
            grates: Vec::new(),
            explain: false,
            precompile: None,
            program: Vec::new(),
        }
    }
}

/// The formats of --perf.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PerfFormat {
    /// A table
    Text,
    /// One JSON array
    Json,
}
