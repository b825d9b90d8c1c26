//! `session diff`, `apply`, `discard`, `snapshot`, `snapshots` and `rollback`: the commands on the
//! states of overlays, while a session lends the state.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::link::Link;
use crate::cli::overlay::{Apply, Diff, Named, Overlay, Paths};
use crate::cli::states::{self, Of};
use crate::failure::Failure;
use crate::overlay::{self, Verb};
use crate::session::wire;

/// Shows the changes.
///
/// # Errors
/// When the state cannot be borrowed, or the command fails.
pub fn diff(diff: states::Diff) -> Result<(), Failure> {
    let states::Diff { of, paths, but, stat, patch, name_status, json } = diff;
    let of = borrowed(&of, false)?.with(paths);
    overlay::run(&Verb::Diff(&Diff { of, but, stat, patch, name_status, json, of_dry_run: false }))
}

/// Applies changes to the directory below.
///
/// # Errors
/// As for `diff`.
pub fn apply(apply: states::Apply) -> Result<(), Failure> {
    let states::Apply { of, paths, but, force, dry_run } = apply;
    let of = borrowed(&of, !dry_run)?.with(paths);
    overlay::run(&Verb::Apply(&Apply { of, but, force, dry_run }))
}

/// Throws changes away.
///
/// # Errors
/// As for `diff`.
pub fn discard(discard: states::Discard) -> Result<(), Failure> {
    overlay::run(&Verb::Discard(&borrowed(&discard.of, true)?.with(discard.paths)))
}

/// Names the present contents.
///
/// # Errors
/// As for `diff`.
pub fn snapshot(snapshot: states::Snapshot) -> Result<(), Failure> {
    let state = borrowed(&snapshot.of, false)?.state;
    overlay::run(&Verb::Snapshot(&Named { state, name: snapshot.label }))
}

/// Lists the snapshots.
///
/// # Errors
/// As for `diff`.
pub fn snapshots(snapshots: &states::Snapshots) -> Result<(), Failure> {
    overlay::manage(&Overlay::Ls { state: Some(borrowed(&snapshots.of, false)?.state) })
}

/// Returns to a snapshot.
///
/// # Errors
/// As for `diff`.
pub fn rollback(rollback: states::Snapshot) -> Result<(), Failure> {
    let state = borrowed(&rollback.of, true)?.state;
    overlay::run(&Verb::Rollback(&Named { state, name: rollback.label }))
}

/// A state, and the directory that it belongs to.
struct Borrowed {
    state: OsString,
    lower: PathBuf,
}

impl Borrowed {
    fn with(self, paths: Vec<OsString>) -> Paths {
        Paths { state: self.state, paths, lower: Some(self.lower) }
    }
}

/// Borrows a state until this process ends: then the session takes it back, also if we are killed.
fn borrowed(of: &Of, change: bool) -> Result<Borrowed> {
    let volume = of.volume.as_ref().map(|volume| -> Result<Value> {
        let volume = volume.canonicalize().or_else(|_| std::path::absolute(volume))?;
        Ok(wire::word(volume.as_os_str().as_bytes()))
    });
    let mut link = Link::to(&of.name)?;
    let answer = link.ask(json!({"do": "hold", "volume": volume.transpose()?, "change": change}))?;
    let path = |key: &str| {
        let bytes = wire::bytes(&answer[key]).with_context(|| format!("the session does not say its {key}"))?;
        anyhow::Ok(OsString::from_vec(bytes))
    };
    let borrowed = Borrowed { state: path("state")?, lower: path("volume")?.into() };
    // The connection stays open.
    std::mem::forget(link);
    Ok(borrowed)
}
