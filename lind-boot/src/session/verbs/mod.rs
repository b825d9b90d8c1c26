//! The commands that look into a session or change something in it: each sends requests of the
//! second version and prints the answers.

mod attach;
mod copy;
mod denials;
mod files;
mod link;
mod outside;
mod policy;
mod processes;
mod prometheus;
mod questions;
mod states;
mod stats;

use anyhow::Result;

use crate::cli::verbs::{Files, Verb};
use crate::failure::Failure;

pub use attach::start_detached;

/// Runs a command, and returns the exit status.
///
/// # Errors
/// When the command fails.
pub fn run(verb: Verb) -> Result<u8, Failure> {
    match &verb {
        Verb::Ps(ps) => processes::list(ps)?,
        Verb::Kill(kill) => processes::kill(kill)?,
        Verb::Attach(attach) => return attach::attach(attach),
        Verb::Wait(wait) => return attach::wait(wait),
        Verb::Stats(stats) => stats::print(stats)?,
        Verb::Denials(denials) => denials::list(denials)?,
        Verb::Diff(_)
        | Verb::Apply(_)
        | Verb::Discard(_)
        | Verb::Snapshot(_)
        | Verb::Snapshots(_)
        | Verb::Rollback(_) => on_state(verb)?,
        Verb::Cat(cat) => files::cat(cat)?,
        Verb::Cp(cp) => copy::copy(cp)?,
        Verb::Write(write) => files::write(write)?,
        Verb::Stat(stat) => files::stat(stat)?,
        Verb::Mkdir(mkdir) => files::mkdir(mkdir)?,
        Verb::Mv(mv) => files::rename(mv)?,
        Verb::Rm(rm) => files::remove(rm)?,
        Verb::Watch(watch) => files::watch(watch)?,
        Verb::Allow(rule) => policy::allow(rule)?,
        Verb::Deny(rule) => policy::deny(rule)?,
        Verb::Revoke(rule) => policy::revoke(rule)?,
        Verb::Policy(policy) => policy::show(policy)?,
        Verb::Questions(questions) => questions::follow(questions)?,
        Verb::Answer(answer) => questions::answer(answer)?,
    }
    Ok(0)
}

fn on_state(verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Diff(diff) => states::diff(diff),
        Verb::Apply(apply) => states::apply(apply),
        Verb::Discard(discard) => states::discard(discard),
        Verb::Snapshot(snapshot) => states::snapshot(snapshot),
        Verb::Snapshots(snapshots) => states::snapshots(&snapshots),
        Verb::Rollback(rollback) => states::rollback(rollback),
        _ => Ok(()),
    }
}

/// Lists files.
///
/// # Errors
/// When they cannot be listed.
pub fn list_files(name: &str, files: &Files, json: bool) -> Result<u8, Failure> {
    files::list(name, files, json)?;
    Ok(0)
}
