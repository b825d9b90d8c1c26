//! The processes in which something is tried: each puts up walls, all or one alone, and tells on its standard output, a line for each
//! thing: its name and a number.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use lind_kernel::root::{Root, Walls};
use lind_kernel::stdio;

use super::trials::{Target, Trial};
use crate::run::{Attendant, Failure};
use crate::{config, confine, installed, sandbox};

/// What is told when nothing comes any more but the last trial.
const READY: &str = "ready";

/// What a part may take: the first start of a user compiles grates.
const PATIENCE: Duration = Duration::from_secs(120);

/// Behind what something is tried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub enum Part {
    /// Mounts of its own, if the host permits them: with 1 in a user namespace
    Mounts,
    /// A program in a sandbox asks
    Cage,
    /// The sandbox's root alone
    Root,
    /// Landlock alone
    Landlock,
    /// seccomp alone
    Seccomp,
    /// Everything that stands around a sandbox
    Walls,
}

/// What a part has told.
#[derive(Default, Debug)]
pub struct Told {
    /// What was tried, and what the host said: 0 if it was done.
    pub trials: BTreeMap<Trial, i32>,
    /// Other numbers.
    pub facts: BTreeMap<String, i32>,
    /// Of /proc/PID/status behind the walls, None without /proc.
    pub status: Option<String>,
    /// Why it did not come to that.
    pub failed: Option<String>,
}

/// The options of the sandbox in which everything is tried: those that `run` has by itself, and one directory.
fn options(target: &Target) -> sandbox::Options {
    let mut volume = target.project().into_os_string();
    volume.push(":/project");
    sandbox::Options { volume: vec![volume], timeout: Some(PATIENCE), ..sandbox::Options::default() }
}

/// Is a part: the process that another one of us has started.
///
/// # Errors
/// Why it comes to nothing.
pub fn be(part: Part, target: &Target) -> Result<(), Failure> {
    match part {
        Part::Mounts => {
            let user = confine::unshare_mounts(false).is_err();
            if user {
                confine::unshare_mounts(true)?;
            }
            tell("mounts", i32::from(user));
            Ok(())
        }
        Part::Cage => {
            let attend: Attendant = Box::new(|_| Ok(()));
            sandbox::run_program(&options(target), &words(target)?, attend).map(|never| match never {})
        }
        Part::Walls => {
            sandbox::run_program(&options(target), &words(target)?, trying(target)?).map(|never| match never {})
        }
        Part::Root | Part::Landlock | Part::Seccomp => Ok(alone(part, target)?),
    }
}

fn words(target: &Target) -> Result<Vec<OsString>> {
    let words = target.words()?.into_iter().map(|(_, word)| word);
    Ok(std::iter::once("doctor_grate".to_owned()).chain(words).map(OsString::from).collect())
}

/// What tries everything behind the walls, and ends the process.
fn trying(target: &Target) -> Result<Attendant> {
    let open = confine::open_directory(&target.folder)?;
    let target = target.clone();
    Ok(Box::new(move |_| {
        let sets = rustix::thread::capabilities(None).map(|sets| sets.effective | sets.permitted);
        let more = sets.map(|sets| i32::from(!confine::kept_capabilities().contains(sets)));
        tell("capabilities", more.unwrap_or(1));
        try_all(&target, &open);
        std::process::exit(0)
    }))
}

fn alone(part: Part, target: &Target) -> Result<()> {
    let open = confine::open_directory(&target.folder)?;
    match part {
        Part::Root => {
            let root = sandbox::root_alone(&options(target))?;
            if confine::change_root(&root, false).0 != Walls::Chroot {
                bail!("cannot change the root directory");
            }
        }
        Part::Landlock => {
            let image = config::root(None)?;
            let root = Root::new(confine::open_directory(&image)?, Some(&image), Walls::Openat2);
            tell("landlock", confine::landlock_alone(&root)?);
            tell("no-new-privileges", i32::from(rustix::thread::no_new_privs()?));
        }
        _ => confine::install_filter()?,
    }
    try_all(target, &open);
    Ok(())
}

fn tell(name: &str, number: i32) {
    let _ = stdio::print(&format!("{name} {number}\n"));
}

fn try_all(target: &Target, open: &std::os::fd::OwnedFd) {
    target.tried(open, &mut |trial, error| {
        tell(trial.name(), error);
        if trial == Trial::Mount {
            tell(READY, 0);
            // Whoever started this looks at it from outside, and says when that is done.
            let _ = std::io::stdin().read(&mut [0]);
        }
    });
}

/// Starts a part, and hears what it tells.
pub fn ask(part: Part, target: &Target) -> Told {
    let mut told = Told::default();
    if let Err(error) = heard(part, target, &mut told) {
        told.failed = Some(format!("{error:#}"));
    }
    told
}

fn heard(part: Part, target: &Target, told: &mut Told) -> Result<()> {
    let program = installed::program().context("cannot find the file of lind-boot itself (mount /proc)")?;
    let name = part.to_possible_value().context("a part has a name")?;
    let mut child = Command::new(program)
        .args(["doctor", "--part", name.get_name(), "--target"])
        .arg(&target.folder)
        .args(["--port", &target.port.to_string(), "--process", &target.process.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start another lind-boot")?;
    let output = child.stdout.take().context("a pipe")?;
    let words = target.words()?;
    let mut asked_for_exec = false;
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { break };
        let Some((name, number)) = line.rsplit_once(' ') else { continue };
        let Ok(number) = number.parse::<i32>() else { continue };
        let of_cage = words.iter().find(|(_, word)| word == name).map(|(trial, _)| *trial);
        let trial = of_cage.or_else(|| Trial::ALL.into_iter().find(|trial| trial.name() == name));
        match trial {
            Some(trial) => drop(told.trials.insert(trial, number)),
            None if name == READY => {
                asked_for_exec = true;
                let seen = |name: &str| format!("/proc/{}/{name}", child.id());
                if part == Part::Walls {
                    told.status = std::fs::read_to_string(seen("status")).ok();
                    told.facts.insert("readable".into(), i32::from(std::fs::File::open(seen("mem")).is_ok()));
                }
                drop(child.stdin.take());
            }
            None => drop(told.facts.insert(name.to_owned(), number)),
        }
    }
    ended(&mut child, asked_for_exec, told)
}

/// Of a part that has closed its output.
fn ended(child: &mut Child, asked_for_exec: bool, told: &mut Told) -> Result<()> {
    drop(child.stdin.take());
    let mut said = String::new();
    if let Some(errors) = &mut child.stderr {
        let _ = errors.take(64 << 10).read_to_string(&mut said);
    }
    let status = child.wait()?;
    if asked_for_exec && !told.trials.contains_key(&Trial::Exec) {
        // It has become another program, which could not tell.
        told.trials.insert(Trial::Exec, 0);
    }
    if told.trials.is_empty() && told.facts.is_empty() {
        let last = said.lines().rev().find(|line| line.starts_with("lind-boot: ")).or_else(|| said.lines().last());
        let last = last.map(|line| line.trim_start_matches("lind-boot: ").to_owned());
        return Err(anyhow!(
            last.unwrap_or_else(|| format!("the process that tries it printed nothing and ended with {status}"))
        ));
    }
    Ok(())
}
