//! `lind-sh`: bash in the session of the project around the current directory. The first shell
//! starts the session. To a program that starts it, it is bash: its arguments, files, terminal,
//! exit status, and the signal that ends it.

mod projects;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lind_engine::signal::process_signals;
use lind_kernel::stdio;

use super::client::{self, Outcome};
use super::place::Place;
use crate::cli::session::Exec;
use crate::failure::FAILED;
use projects::{Project, Unlisted};

/// The name under which this program is a shell.
const NAME: &str = "lind-sh";

/// The variables of the caller that a command gets, besides those that the project names: they say
/// how things are shown. None of them usually holds a secret.
const PASSED: [&str; 14] = [
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "COLORTERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "LINES",
    "CI",
    "GIT_PAGER",
    "PAGER",
];

/// How long a session that is ending is waited for, before another takes its place.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// The arguments for bash, if this process is a shell: by its name, or by `lind-boot sh`.
pub fn arguments(words: &[OsString]) -> Option<Vec<OsString>> {
    let (first, rest) = words.split_first()?;
    let name = Path::new(first).file_name()?.as_bytes();
    // login(1) starts a shell under its name with a dash in front.
    if name.strip_prefix(b"-").unwrap_or(name) == NAME.as_bytes() {
        let login = name.starts_with(b"-").then(|| OsString::from("-l"));
        return Some(login.into_iter().chain(rest.iter().cloned()).collect());
    }
    let (command, rest) = rest.split_first()?;
    let asks_for_help = rest.first().is_some_and(|word| word == "--help");
    (command == "sh" && !asks_for_help).then(|| rest.to_vec())
}

/// Runs bash with these arguments, and ends as it does.
pub fn run(arguments: Vec<OsString>) -> u8 {
    process_signals::errors_are_no_signals();
    match run_in_project(arguments) {
        Ok(Outcome::Status(status)) => status,
        Ok(Outcome::Signal(signal)) => {
            no_core();
            process_signals::end_by(signal);
            128_u8.saturating_add(signal)
        }
        Err(error) => {
            match error.downcast_ref::<Unlisted>() {
                Some(unlisted) => stdio::say(&format!("{NAME}: {unlisted}\n")),
                None => stdio::say_line(&format!("{error:#}")),
            }
            FAILED
        }
    }
}

fn run_in_project(arguments: Vec<OsString>) -> Result<Outcome> {
    let here = std::env::current_dir().context("the current directory is not there any more")?;
    let project = Project::of(&here)?;
    let place = Place::of_user()?;
    let command = [OsString::from("bash")].into_iter().chain(arguments).collect();
    let exec = Exec { name: project.session.clone(), env: passed(&project.pass), command, ..Exec::default() };
    let began = Instant::now();
    loop {
        if let Some(outcome) = client::try_run(&place, &exec)? {
            return Ok(outcome);
        }
        if let Err(status) = start(&place, &project)? {
            return Ok(Outcome::Status(status));
        }
        anyhow::ensure!(
            began.elapsed() < PATIENCE,
            "the session {} ends again and again: see `lind-boot session logs {}`",
            exec.name,
            exec.name
        );
        std::thread::sleep(LOOK);
    }
}

/// The variables to pass on that there are.
fn passed(named: &[String]) -> Vec<OsString> {
    let matches = |name: &OsStr| {
        PASSED.into_iter().chain(named.iter().map(String::as_str)).any(|pattern| match pattern.strip_suffix('*') {
            Some(stem) => name.as_bytes().starts_with(stem.as_bytes()),
            None => name == pattern,
        })
    };
    std::env::vars_os().map(|(name, _)| name).filter(|name| matches(name)).collect()
}

/// Starts the session of the project, unless it runs. Of several shells one does that, and the
/// others wait for it.
///
/// # Errors
/// When it cannot be tried. A start that has failed is a status, whose reason has been printed.
fn start(place: &Place, project: &Project) -> Result<Result<(), u8>> {
    let Project { session, directory, options, file, .. } = project;
    let _turn = Turn::take(place, session).context("cannot take turns with other shells")?;
    if place.connect(session)?.is_some() {
        return Ok(Ok(()));
    }
    let program = std::env::current_exe().context("cannot find the file of lind-boot itself (mount /proc)")?;
    let mut command = Command::new(program);
    command.args(["session", "start", session]).args(options).current_dir(directory);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().context("cannot start lind-boot")?;
    if status.success() || place.connect(session)?.is_some() {
        return Ok(Ok(()));
    }
    let path = crate::named::shown(directory);
    stdio::say_line(&format!(
        "the session of {path} was not started; its options are in {}",
        crate::named::shown(file)
    ));
    Ok(Err(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED)))
}

/// The right to start a session: a lock on a file that is removed afterwards.
struct Turn {
    path: std::path::PathBuf,
    _file: File,
}

impl Turn {
    /// Waits for it.
    fn take(place: &Place, session: &str) -> Result<Turn> {
        let path = place.turn(session)?;
        loop {
            let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            file.lock()?;
            let same = |found: std::fs::Metadata| {
                Ok((found.dev(), found.ino()) == {
                    let own = file.metadata()?;
                    (own.dev(), own.ino())
                })
            };
            match path.symlink_metadata().and_then(same) {
                Ok(true) => return Ok(Turn { path, _file: file }),
                Ok(false) => {}
                // The shell before this one has removed it.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Has the host write no file with this process's memory: the command's is not in it.
fn no_core() {
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_makes_it_a_shell() {
        let words = |line: &[&str]| line.iter().map(OsString::from).collect::<Vec<_>>();
        let shell = |line: &[&str]| arguments(&words(line));
        assert_eq!(shell(&["/usr/bin/lind-sh", "-c", "a b"]), Some(words(&["-c", "a b"])));
        assert_eq!(shell(&["-lind-sh"]), Some(words(&["-l"])));
        assert_eq!(shell(&["lind-boot", "sh", "--", "x"]), Some(words(&["--", "x"])));
        assert_eq!(shell(&["lind-sh", "--help"]), Some(words(&["--help"])));
        for line in [&["lind-boot", "sh", "--help"][..], &["lind-boot", "run", "sh"], &["lind-boot"], &[]] {
            assert_eq!(shell(line), None, "{line:?}");
        }
    }
}
