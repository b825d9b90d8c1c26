//! Replays: the programs of a record, which get nothing of the host but their own code.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lind_engine::code::manifest::Use;
use lind_kernel::course::Course;

use super::mounts::Tree;
use super::record::{self, Record};
use super::root::Maker;
use super::{Denials, Failure, Sandbox};
use crate::cli::replay::Replay;
use crate::cli::sandbox::{How, Options};
use crate::plan::step::{self, Step, Value};
use crate::plan::volume::Volume;

/// Replays a record, or compares two.
///
/// # Errors
/// When the record cannot be replayed.
pub fn replay(options: &Replay) -> Result<Infallible, Failure> {
    let file = whole(&options.file)?;
    let record = Record::read(&file)?;
    let mut answers = record::answerer(file);
    if let Some(other) = &options.diff {
        Record::read(other)?;
        answers = answers.with("--diff", Value::host(whole(other)?, Use::Reads));
    }
    if let Some(until) = options.until {
        answers = answers.with("--until", Value::text(until.to_string()));
    }
    if let Some(again) = &options.again {
        record.head.write(again).with_context(|| format!("--again {}", again.display()))?;
        answers = answers.with("--again", Value::host(whole(again)?, Use::Updates));
    }
    let beside = options.trace.then(|| Step { ends: true, ..Step::new("strace_grate") });
    if beside.is_some() {
        answers = answers.with("--beside", Value::text("1"));
    }
    let line: Vec<_> = std::iter::once(Step { ends: true, ..answers }).chain(beside).collect();
    sandbox(options, record, step::words(&line))?.start(
        &Options::default(),
        0,
        &Denials::new(None),
        Box::new(|_| Ok(())),
    )
}

/// The path from the root on.
fn whole(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).context("cannot find the current directory")
}

/// The sandbox: the image, and the files of programs that are not in it.
fn sandbox(options: &Replay, record: Record, grates: Vec<OsString>) -> Result<Sandbox> {
    let Record { head, command, env, workdir, programs } = record;
    // A comparison starts no program, and so needs none: the grate only wants its name.
    let (own_grates, command, workdir, programs) = match options.diff {
        Some(_) => (Vec::new(), [grates, vec!["true".into()]].concat(), PathBuf::from("/"), Vec::new()),
        None => (grates, command, workdir, programs),
    };
    let volume = |(host, guest)| Volume { host, guest, read_only: true, overlay: None };
    let image = options.image.as_ref().unwrap_or(&head.image);
    let tree = Tree {
        image: image.canonicalize().with_context(|| format!("the image of the recording, {}", image.display()))?,
        scratch: Vec::new(),
        tmpfs: Vec::new(),
        volumes: programs.into_iter().map(volume).collect(),
        hidden: Vec::new(),
        whole: None,
    };
    Ok(Sandbox {
        tree,
        maker: Maker::choose(How::Auto)?,
        grates: Vec::new(),
        own_grates,
        command,
        workdir,
        unchanged: Vec::new(),
        env,
        policy: String::new(),
        learner: None,
        used: None,
        lent: Vec::new(),
        ahead: Vec::new(),
        contained: None,
        course: Some((Course::Replayed, head.seed()?)),
    })
}
