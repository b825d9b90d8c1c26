//! Options of the commands on the states of overlays.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Paths that are left out.
#[derive(Args, Debug)]
pub struct Excludes {
    /// Leave out what matches PATTERN, and all below it: a name in any directory, or with a slash a
    /// path from the top; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<OsString>,
}

/// The output of `diff`.
#[derive(Args, Debug)]
pub struct Shown {
    /// The paths that are left out.
    #[command(flatten)]
    pub but: Excludes,
    /// Show how much of each file changed
    #[arg(long)]
    pub stat: bool,
    /// Show a patch as git does
    #[arg(short, long)]
    pub patch: bool,
    /// Show only the kind and the name of each change
    #[arg(long, conflicts_with_all = ["stat", "patch"])]
    pub name_status: bool,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["stat", "patch", "name_status"])]
    pub json: bool,
}

/// Options of `diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// The state and the paths.
    #[command(flatten)]
    pub of: Paths,
    /// The output.
    #[command(flatten)]
    pub shown: Shown,
    /// Show the changes of `run --dry-run`, whose state the user has not named
    #[arg(long, hide = true)]
    pub of_dry_run: bool,
}

/// The ways in which `apply` works.
#[derive(Args, Debug)]
pub struct Applied {
    /// The paths that are left out.
    #[command(flatten)]
    pub but: Excludes,
    /// Overwrite files of the directory that have changed since
    #[arg(long)]
    pub force: bool,
    /// Print what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The result.
    #[command(flatten)]
    pub report: Report,
}

/// Options of `apply`.
#[derive(Args, Debug)]
pub struct Apply {
    /// The state and the paths.
    #[command(flatten)]
    pub of: Paths,
    /// The way in which it works.
    #[command(flatten)]
    pub applied: Applied,
}

/// Options of `discard`.
#[derive(Args, Debug)]
pub struct Discard {
    /// The state and the paths.
    #[command(flatten)]
    pub of: Paths,
    /// The result.
    #[command(flatten)]
    pub report: Report,
}

/// The result of a command that changes a state.
#[derive(Args, Clone, Copy, Debug)]
pub struct Report {
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// A state, and paths.
#[derive(Args, Debug)]
pub struct Paths {
    /// The state: NAME, or a path with a slash; NAME:HEAD selects another head
    pub state: OsString,
    /// Only these paths of the directory [default: all]
    pub paths: Vec<OsString>,
    /// Use DIR as the directory below [default: the directory of the last run]
    #[arg(long, value_name = "DIR")]
    pub lower: Option<PathBuf>,
}

/// Options of `snapshot` and `rollback`.
#[derive(Args, Debug)]
pub struct Snapshot {
    /// The state and the snapshot.
    #[command(flatten)]
    pub of: Named,
    /// The result.
    #[command(flatten)]
    pub report: Report,
}

/// Options of `log`.
#[derive(Args, Debug)]
pub struct Log {
    /// The state: NAME, or a path with a slash; NAME:HEAD selects another head
    pub state: OsString,
    /// The paths that are left out.
    #[command(flatten)]
    pub but: Excludes,
}

/// A state, and a name.
#[derive(Args, Debug)]
pub struct Named {
    /// The state: NAME, or a path with a slash; NAME:HEAD selects another head
    pub state: OsString,
    /// The name of the snapshot or head
    pub name: OsString,
}

/// Options of `export`.
#[derive(Args, Debug)]
pub struct Export {
    /// The state: NAME, or a path with a slash; NAME:HEAD selects another head
    pub state: OsString,
    /// A directory to create, a FILE.tar, or - for a tar on standard output
    pub to: PathBuf,
    /// Export all files that the command saw, or only the changes, as the upper directory of an
    /// overlayfs
    #[arg(long, value_enum, default_value_t = Format::All)]
    pub format: Format,
    /// Use DIR as the directory below [default: the directory of the last run]
    #[arg(long, value_name = "DIR")]
    pub lower: Option<PathBuf>,
}

/// The formats of an export.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// All files that the command saw
    All,
    /// Only the changes, as the upper directory of an overlayfs
    Overlayfs,
}

/// The states of the user.
#[derive(Subcommand, Debug)]
pub enum Overlay {
    /// List the states, or the snapshots and heads of STATE
    Ls {
        /// The state
        state: Option<OsString>,
    },
    /// Remove a state, with all its changes
    Rm {
        /// The state
        state: OsString,
    },
}
