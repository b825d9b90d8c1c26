//! Options of the commands on the overlays of a session.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::overlay::{Applied, Report, Shown};

/// An overlay of a session.
#[derive(Args, Debug)]
pub struct Of {
    /// The name of the session
    pub name: String,
    /// The directory of the overlay, if the session has several
    #[arg(long, value_name = "DIR")]
    pub volume: Option<PathBuf>,
}

/// An overlay of a session, and paths.
#[derive(Args, Debug)]
pub struct Paths {
    /// The overlay.
    #[command(flatten)]
    pub of: Of,
    /// Only these paths of the directory [default: all]
    pub paths: Vec<OsString>,
}

/// Options of `session diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// The overlay and the paths.
    #[command(flatten)]
    pub of: Paths,
    /// The output.
    #[command(flatten)]
    pub shown: Shown,
}

/// Options of `session apply`.
#[derive(Args, Debug)]
pub struct Apply {
    /// The overlay and the paths.
    #[command(flatten)]
    pub of: Paths,
    /// The way in which it works.
    #[command(flatten)]
    pub applied: Applied,
}

/// Options of `session discard`.
#[derive(Args, Debug)]
pub struct Discard {
    /// The overlay and the paths.
    #[command(flatten)]
    pub of: Paths,
    /// The result.
    #[command(flatten)]
    pub report: Report,
}

/// Options of `session snapshot` and `session rollback`.
#[derive(Args, Debug)]
pub struct Snapshot {
    /// The overlay.
    #[command(flatten)]
    pub of: Of,
    /// The name of the snapshot
    pub label: OsString,
    /// The result.
    #[command(flatten)]
    pub report: Report,
}

/// Options of `session snapshots`.
#[derive(Args, Debug)]
pub struct Snapshots {
    /// The overlay.
    #[command(flatten)]
    pub of: Of,
}
