//! Options of `doctor`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options of `doctor`.
#[derive(Args, Debug)]
pub struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Check instead whether containers of this node can be cages; DIR is the node's root [default:
    /// /]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "/")]
    pub node: Option<PathBuf>,
    /// Run as one of the processes that try something
    #[arg(long, hide = true, requires = "target")]
    pub part: Option<Part>,
    /// Try it on this directory of the host, ...
    #[arg(long, hide = true)]
    pub target: Option<PathBuf>,
    /// ... on this port, ...
    #[arg(long, hide = true, default_value_t = 0)]
    pub port: u16,
    /// ... and on this process
    #[arg(long, hide = true, default_value_t = 0)]
    pub process: u32,
}

/// The walls behind which a process tries things.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub enum Part {
    /// Mounts of its own, if the host permits them: reports 1 if that takes a user namespace
    Mounts,
    /// A program in a sandbox
    Cage,
    /// The sandbox's root alone
    Root,
    /// Landlock alone
    Landlock,
    /// seccomp alone
    Seccomp,
    /// All walls around a sandbox
    Walls,
}
