//! Options of the commands on the overlays of a session.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::overlay::Excludes;

/// An overlay of a session.
#[derive(Args, Debug)]
pub struct Of {
    /// The name of the session
    pub name: String,
    /// The directory of the overlay, if the session has several
    #[arg(long, value_name = "DIR")]
    pub volume: Option<PathBuf>,
}

/// Options of `session diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// The overlay.
    #[command(flatten)]
    pub of: Of,
    /// Only these paths of the directory [default: all]
    pub paths: Vec<OsString>,
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

/// Options of `session apply`.
#[derive(Args, Debug)]
pub struct Apply {
    /// The overlay.
    #[command(flatten)]
    pub of: Of,
    /// Only these paths of the directory [default: all]
    pub paths: Vec<OsString>,
    /// The paths that are left out.
    #[command(flatten)]
    pub but: Excludes,
    /// Overwrite files of the directory that have changed since
    #[arg(long)]
    pub force: bool,
    /// Print what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Options of `session discard`.
#[derive(Args, Debug)]
pub struct Discard {
    /// The overlay.
    #[command(flatten)]
    pub of: Of,
    /// Only these paths of the directory [default: all]
    pub paths: Vec<OsString>,
}

/// Options of `session snapshot` and `session rollback`.
#[derive(Args, Debug)]
pub struct Snapshot {
    /// The overlay.
    #[command(flatten)]
    pub of: Of,
    /// The name of the snapshot
    pub label: OsString,
}

/// Options of `session snapshots`.
#[derive(Args, Debug)]
pub struct Snapshots {
    /// The overlay.
    #[command(flatten)]
    pub of: Of,
}
