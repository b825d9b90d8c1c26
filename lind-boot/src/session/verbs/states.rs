//! `session diff`, `apply`, `discard`, `snapshot`, `snapshots` and `rollback`: the commands on the
//! states of overlays, while a session lends the state.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::link::Link;
use crate::cli::overlay::{Apply, Diff, Discard, Named, Overlay, Paths, Snapshot};
use crate::cli::states::{self, Of};
use crate::failure::Failure;
use crate::overlay::{self, Verb};
use crate::session::wire;

/// Shows the changes.
///
/// # Errors
/// When the state cannot be borrowed, or the command fails.
pub fn diff(diff: states::Diff) -> Result<(), Failure> {
    let of = paths(diff.of, false)?;
    overlay::run(&Verb::Diff(&Diff { of, shown: diff.shown, of_dry_run: false }))
}

/// Applies changes to the directory below.
///
/// # Errors
/// As for `diff`.
pub fn apply(apply: states::Apply) -> Result<(), Failure> {
    let of = paths(apply.of, !apply.applied.dry_run)?;
    overlay::run(&Verb::Apply(&Apply { of, applied: apply.applied }))
}

/// Throws changes away.
///
/// # Errors
/// As for `diff`.
pub fn discard(discard: states::Discard) -> Result<(), Failure> {
    let of = paths(discard.of, true)?;
    overlay::run(&Verb::Discard(&Discard { of, report: discard.report }))
}

/// Names the present contents.
///
/// # Errors
/// As for `diff`.
pub fn snapshot(snapshot: states::Snapshot) -> Result<(), Failure> {
    overlay::run(&Verb::Snapshot(&named(snapshot, false)?))
}

/// Returns to a snapshot.
///
/// # Errors
/// As for `diff`.
pub fn rollback(rollback: states::Snapshot) -> Result<(), Failure> {
    overlay::run(&Verb::Rollback(&named(rollback, true)?))
}

/// Lists the snapshots.
///
/// # Errors
/// As for `diff`.
pub fn snapshots(snapshots: &states::Snapshots) -> Result<(), Failure> {
    overlay::manage(&Overlay::Ls { state: Some(borrowed(&snapshots.of, false)?.state) })
}

/// A state, and the directory that it belongs to.
struct Borrowed {
    state: OsString,
    lower: PathBuf,
}

fn paths(of: states::Paths, change: bool) -> Result<Paths> {
    let Borrowed { state, lower } = borrowed(&of.of, change)?;
    Ok(Paths { state, paths: of.paths, lower: Some(lower) })
}

fn named(of: states::Snapshot, change: bool) -> Result<Snapshot> {
    let state = borrowed(&of.of, change)?.state;
    Ok(Snapshot { of: Named { state, name: of.label }, report: of.report })
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
