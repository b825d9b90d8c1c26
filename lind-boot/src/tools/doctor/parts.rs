//! The processes that try things. Each puts up walls, all or a single one, and reports on standard
//! output: for each trial or fact a line with its name and a number.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum as _;
use lind_kernel::root::{Root, Walls};
use lind_kernel::stdio;

use super::trials::{Target, Trial};
use crate::cli::doctor::Part;
use crate::cli::sandbox::Options;
use crate::failure::Failure;
use crate::launch::Attendant;
use crate::{config, installed, sandbox, walls};

/// The report before the last trial.
const READY: &str = "ready";

/// The longest time of a part: the first start of a user compiles grates.
const TIME: Duration = Duration::from_secs(120);

/// The report of a part.
#[derive(Default, Debug)]
pub struct Report {
    /// The trials, and the host's error for each; 0 if it succeeded.
    pub trials: BTreeMap<Trial, i32>,
    /// Other numbers.
    pub facts: BTreeMap<String, i32>,
    /// The text of /proc/PID/status behind the walls. None without /proc.
    pub status: Option<String>,
    /// Why the part failed.
    pub failed: Option<String>,
}

/// The options of the sandbox for the trials: the defaults of `run`, and one directory.
fn options(target: &Target) -> Options {
    let mut volume = target.project().into_os_string();
    volume.push(":/project");
    Options { volume: vec![volume], timeout: Some(TIME), ..Options::default() }
}

/// Runs a part, in the process that [`ask`] has started.
///
/// # Errors
/// When the walls cannot be put up.
pub fn run(part: Part, target: &Target) -> Result<(), Failure> {
    match part {
        Part::Mounts => {
            let user = walls::unshare_mounts(false).is_err();
            if user {
                walls::unshare_mounts(true)?;
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

/// Tries everything behind the walls, and exits.
fn trying(target: &Target) -> Result<Attendant> {
    let open = walls::open_directory(&target.folder)?;
    let target = target.clone();
    Ok(Box::new(move |_| {
        let sets = rustix::thread::capabilities(None).map(|sets| sets.effective | sets.permitted);
        let more = sets.map(|sets| i32::from(!walls::kept_capabilities().contains(sets)));
        tell("capabilities", more.unwrap_or(1));
        try_all(&target, &open);
        std::process::exit(0)
    }))
}

fn alone(part: Part, target: &Target) -> Result<()> {
    let open = walls::open_directory(&target.folder)?;
    match part {
        Part::Root => {
            let root = sandbox::root_alone(&options(target))?;
            if walls::change_root(&root, false).0 != Walls::Chroot {
                bail!("cannot change the root directory");
            }
        }
        Part::Landlock => {
            let image = config::root(None)?;
            let root = Root::new(walls::open_directory(&image)?, Some(&image), Walls::Openat2);
            tell("landlock", walls::landlock_alone(&root)?);
            tell("no-new-privileges", i32::from(rustix::thread::no_new_privs()?));
        }
        _ => walls::install_filter()?,
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
            // The process that started this one inspects it from outside, and closes standard input
            // then.
            let _ = std::io::stdin().read(&mut [0]);
        }
    });
}

/// Starts a part, and reads its report.
pub fn ask(part: Part, target: &Target) -> Report {
    let mut report = Report::default();
    if let Err(error) = read_report(part, target, &mut report) {
        report.failed = Some(format!("{error:#}"));
    }
    report
}

fn read_report(part: Part, target: &Target, report: &mut Report) -> Result<()> {
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
            Some(trial) => drop(report.trials.insert(trial, number)),
            None if name == READY => {
                asked_for_exec = true;
                let seen = |name: &str| format!("/proc/{}/{name}", child.id());
                if part == Part::Walls {
                    report.status = std::fs::read_to_string(seen("status")).ok();
                    report.facts.insert("readable".into(), i32::from(std::fs::File::open(seen("mem")).is_ok()));
                }
                drop(child.stdin.take());
            }
            None => drop(report.facts.insert(name.to_owned(), number)),
        }
    }
    ended(&mut child, asked_for_exec, report)
}

/// Waits for a part that has closed its output.
fn ended(child: &mut Child, asked_for_exec: bool, report: &mut Report) -> Result<()> {
    drop(child.stdin.take());
    let mut said = String::new();
    if let Some(errors) = &mut child.stderr {
        let _ = errors.take(64 << 10).read_to_string(&mut said);
    }
    let status = child.wait()?;
    if asked_for_exec && !report.trials.contains_key(&Trial::Exec) {
        // The process executed another program, which could not report.
        report.trials.insert(Trial::Exec, 0);
    }
    if report.trials.is_empty() && report.facts.is_empty() {
        let last = said.lines().rev().find(|line| line.starts_with("lind-boot: ")).or_else(|| said.lines().last());
        let last = last.map(|line| line.trim_start_matches("lind-boot: ").to_owned());
        return Err(anyhow!(
            last.unwrap_or_else(|| format!("the process that tries it printed nothing and ended with {status}"))
        ));
    }
    Ok(())
}
