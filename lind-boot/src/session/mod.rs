//! `lind-boot session`: a sandbox that stays, and runs one command after the other without starting anew.
//!
//! A session is one runner. Behind the grates of its line stands a program that starts commands (`grates/session`); a thread
//! of the runner takes them from a socket, where front ends ask for them: [`client`] is ours. What is said there is in
//! `docs/session.md`.

mod client;
mod commands;
mod control;
mod orders;
pub mod place;
mod request;
mod screen;
mod serve;
mod server;
mod terminal;
mod wire;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, Subcommand};

use crate::run::Failure;
use crate::sandbox::{self, Amounts, Options, RunOptions, duration};

pub use client::exec;

/// What to do with sessions.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Starts a session, a sandbox as `run` makes it
    Start(Box<Start>),
    /// Runs a command in a session
    Exec(Exec),
    /// Lists the sessions, and what runs in them
    Ls(Ls),
    /// Prints what a session and its grates have said
    Logs(Name),
    /// Sends a signal to the commands of a session
    Signal(Signal),
    /// Ends a session
    Stop(Name),
    /// Is the session that `start` starts
    #[command(hide = true)]
    Serve(Box<Start>),
}

/// Options of `session start`.
#[derive(Args, Debug)]
pub struct Start {
    /// What it is called
    pub name: String,
    /// Ends it when nobody has used it for this long: 10s, 2m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub idle: Option<Duration>,
    /// Writes, when it ends, a policy under which its commands may do the same again, and nothing more; adds to one that is there. NAME is a file
    /// in ~/.config/lind/policies
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "explain")]
    pub learn: Option<PathBuf>,
    /// Says what is mounted, what its commands may do and which grates see to it, and starts nothing
    #[arg(long)]
    pub explain: bool,
    /// With --explain: as JSON
    #[arg(long, requires = "explain")]
    pub json: bool,
    /// What its sandbox is.
    #[command(flatten)]
    pub options: Options,
}

/// Options of `session exec`.
#[derive(Args, Debug, Default)]
pub struct Exec {
    /// Where the command starts [default: the current directory if it is in a volume, else where the session does]
    #[arg(short, long, value_name = "DIR")]
    pub workdir: Option<PathBuf>,
    /// Sets a variable of the environment, or passes ours on
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Ends the command and all that it has started after this time, with status 124: 10s, 2m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Limits of this command, within those of the session.
    #[command(flatten)]
    pub amounts: Amounts,
    /// The session
    pub name: String,
    /// The command
    #[arg(required = true, value_name = "COMMAND", trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

impl Exec {
    /// What `run --session` stands for; None without that.
    ///
    /// # Errors
    /// For options that only the whole session can have.
    pub fn of_run(run: &RunOptions) -> Result<Option<Exec>> {
        let Some(name) = run.session.clone() else { return Ok(None) };
        let options = &run.options;
        let own = Options {
            workdir: options.workdir.clone(),
            env: options.env.clone(),
            timeout: options.timeout,
            amounts: options.amounts.clone(),
            ..Options::default()
        };
        ensure!(
            !run.explain && format!("{options:?}") == format!("{own:?}"),
            "with --session there are -w, -e, --timeout and limits; the rest is for `lind-boot session start {name}`"
        );
        let Options { workdir, env, timeout, amounts, .. } = own;
        Ok(Some(Exec { workdir, env, timeout, amounts, name, command: run.command.clone() }))
    }

    /// A line without options, which nothing has to be parsed for.
    fn plain(words: &[OsString]) -> Option<Exec> {
        let [_, session, exec, name, rest @ ..] = words else { return None };
        let command = if rest.first().is_some_and(|word| word == "--") { rest.get(1..)? } else { rest };
        let plain = |word: &OsString| !word.as_encoded_bytes().starts_with(b"-");
        let ours = session == "session" && exec == "exec" && plain(name) && command.first().is_some_and(plain);
        let name = name.to_str().filter(|_| ours)?.to_owned();
        Some(Exec { name, command: command.to_vec(), ..Exec::default() })
    }
}

/// Runs `session exec` without looking at anything else, where the line is that plain: it is to cost little more than the program.
pub fn exec_at_once() -> Option<u8> {
    let words: Vec<OsString> = std::env::args_os().collect();
    Exec::plain(&words).map(|line| exec(&line))
}

/// The name of a session.
#[derive(Args, Debug)]
pub struct Name {
    /// The session
    pub name: String,
}

/// Options of `session ls`.
#[derive(Args, Debug)]
pub struct Ls {
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `session signal`.
#[derive(Args, Debug)]
pub struct Signal {
    /// The session
    pub name: String,
    /// The signal, by name or number
    #[arg(value_parser = control::signal)]
    pub signal: u8,
    /// One command only, by the number that `ls` shows
    #[arg(long)]
    pub id: Option<u32>,
}

/// Does what is asked, and returns the exit status.
///
/// # Errors
/// What went wrong.
pub fn run(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Exec(line) => return Ok(exec(&line)),
        Command::Start(start) if start.explain => sandbox::explain_session(&start.options, start.json),
        Command::Start(start) => control::start(&start),
        Command::Serve(start) => serve::serve(*start),
        Command::Ls(ls) => control::list(ls.json),
        Command::Logs(name) => control::logs(&name.name),
        Command::Signal(signal) => control::send_signal(&signal),
        Command::Stop(name) => control::stop(&name.name),
    }?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command as Top};
    use clap::Parser;

    #[test]
    fn plain_lines_say_what_the_parser_says() {
        for line in [&["n", "--", "a", "-x"][..], &["n", "a", "b"], &["n", "a", "--", "-w"]] {
            let words: Vec<OsString> =
                ["lind-boot", "session", "exec"].iter().chain(line).map(OsString::from).collect();
            let plain = Exec::plain(&words).unwrap_or_else(|| panic!("{line:?} is plain"));
            let Some(Top::Session(Command::Exec(parsed))) = Cli::parse_from(&words).command else { panic!("{line:?}") };
            assert_eq!(format!("{plain:?}"), format!("{parsed:?}"));
        }
        for line in [&["-w", "/", "n", "a"][..], &["n"], &["n", "--"], &["n", "-w", "/", "a"], &[]] {
            let words: Vec<OsString> =
                ["lind-boot", "session", "exec"].iter().chain(line).map(OsString::from).collect();
            assert!(Exec::plain(&words).is_none(), "{line:?}");
        }
    }
}
