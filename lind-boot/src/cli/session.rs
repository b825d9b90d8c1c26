//! Options of `session`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, Subcommand};

use super::sandbox::{Amounts, Options, RunOptions, duration};
use super::verbs::{Files, Verb};

/// The commands on sessions.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Start a session: a sandbox like that of `run`, which stays
    Start(Box<Start>),
    /// Run a command in a session
    Exec(Exec),
    /// List the sessions and the commands that run in them, or the files of a session
    Ls(Ls),
    /// Print the messages of a session and its grates
    Logs(Name),
    /// Send a signal to the commands of a session
    Signal(Signal),
    /// End a session and its commands
    Stop(Name),
    /// Look into a session, or change something in it
    #[command(flatten)]
    In(Verb),
    /// Run the session that `start` starts
    #[command(hide = true)]
    Serve(Box<Start>),
}

/// Options of `session start`.
#[derive(Args, Debug)]
pub struct Start {
    /// The name of the session
    pub name: String,
    /// End the session after this time without commands, such as 10s or 2m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub idle: Option<Duration>,
    /// Write at the end a policy that allows what the commands did and nothing more; extend it if
    /// it exists. NAME is a file in ~/.config/lind/policies
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "explain")]
    pub learn: Option<PathBuf>,
    /// Print the mounts, the rules and the grates that enforce them; start nothing
    #[arg(long)]
    pub explain: bool,
    /// Print as JSON the explanation, or the name, the process and the socket of the session
    #[arg(long)]
    pub json: bool,
    /// End the session when the process that starts it ends, or the process PID
    #[arg(long, value_name = "PID", num_args = 0..=1, require_equals = true, conflicts_with = "explain")]
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    pub die_with_parent: Option<Option<i32>>,
    /// Options of the sandbox.
    #[command(flatten)]
    pub options: Options,
}

/// Options of `session exec`.
#[derive(Args, Debug, Default)]
pub struct Exec {
    /// Start the command in DIR, a path of the guest [default: the current directory if it is
    /// mounted, else the session's]
    #[arg(short, long, value_name = "DIR")]
    pub workdir: Option<PathBuf>,
    /// Set a variable in the command's environment; without =VALUE, pass on its value
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Kill the command and all that it has started after this time, such as 10s or 2m, and exit
    /// with status 124
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Start the command and leave it: print its number, for `session attach`, `wait` and `kill`
    #[arg(short, long)]
    pub detach: bool,
    /// Limits of this command, within those of the session.
    #[command(flatten)]
    pub amounts: Amounts,
    /// The name of the session
    pub name: String,
    /// The command and its arguments
    #[arg(required = true, value_name = "COMMAND", trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

impl Exec {
    /// The `session exec` that a `run --session` stands for. None without that option.
    ///
    /// # Errors
    /// When the line has options that only the whole session can have.
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
            "--session allows only -w, -e, --timeout and limits; give other options to `lind-boot session start {name}`"
        );
        let Options { workdir, env, timeout, amounts, .. } = own;
        Ok(Some(Exec { workdir, env, timeout, amounts, name, command: run.command.clone(), detach: false }))
    }

    /// A `session exec` line without options, which needs no parser.
    pub fn plain(words: &[OsString]) -> Option<Exec> {
        let [_, session, exec, name, rest @ ..] = words else { return None };
        let command = if rest.first().is_some_and(|word| word == "--") { rest.get(1..)? } else { rest };
        let plain = |word: &OsString| !word.as_encoded_bytes().starts_with(b"-");
        let ours = session == "session" && exec == "exec" && plain(name) && command.first().is_some_and(plain);
        let name = name.to_str().filter(|_| ours)?.to_owned();
        Some(Exec { name, command: command.to_vec(), ..Exec::default() })
    }
}

/// The arguments of a shell, which `session::exec_at_once` takes as they are. So this is only for
/// the help.
#[derive(Args, Debug)]
#[command(
    after_help = "Projects and their sandboxes are listed in ~/.config/lind/projects.toml:\n\n    [project.\"~/work\"]\n    policy = \"agent\"\n\n\
                  The other keys are the options of `lind-boot session start`; docs/shell.md explains them."
)]
pub struct Sh {
    /// The arguments of bash, such as -c COMMAND
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// The name of a session.
#[derive(Args, Debug)]
pub struct Name {
    /// The name of the session
    pub name: String,
}

/// Options of `session ls`.
#[derive(Args, Debug)]
pub struct Ls {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Files instead of sessions.
    #[command(flatten)]
    pub files: Files,
}

/// Options of `session signal`.
#[derive(Args, Debug)]
pub struct Signal {
    /// The name of the session
    pub name: String,
    /// The signal: a name or a number
    #[arg(value_parser = signal)]
    pub signal: u8,
    /// Signal only this command, by the number that `ls` shows
    #[arg(long)]
    pub id: Option<u32>,
}

/// Parses the name of a signal, with or without SIG, or its number.
///
/// # Errors
/// The form that the text must have.
pub fn signal(text: &str) -> Result<u8, String> {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    ];
    let upper = text.to_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let named = NAMES.iter().position(|known| *known == name).and_then(|at| u8::try_from(at + 1).ok());
    let number = named.or_else(|| text.parse().ok()).filter(|number| (1..=64).contains(number));
    number.ok_or_else(|| "must be the name or number of a signal, such as TERM, KILL, 15".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Command as Top;

    #[test]
    fn plain_lines_say_what_the_parser_says() {
        for line in [&["n", "--", "a", "-x"][..], &["n", "a", "b"], &["n", "a", "--", "-w"]] {
            let words: Vec<OsString> =
                ["lind-boot", "session", "exec"].iter().chain(line).map(OsString::from).collect();
            let plain = Exec::plain(&words).unwrap_or_else(|| panic!("{line:?} is plain"));
            let Ok(Top::Session(parsed)) = Top::parse(&words) else { panic!("{line:?}") };
            let Command::Exec(parsed) = parsed.command else { panic!("{line:?}") };
            assert_eq!(format!("{plain:?}"), format!("{parsed:?}"));
        }
        for line in [&["-w", "/", "n", "a"][..], &["n"], &["n", "--"], &["n", "-w", "/", "a"], &[]] {
            let words: Vec<OsString> =
                ["lind-boot", "session", "exec"].iter().chain(line).map(OsString::from).collect();
            assert!(Exec::plain(&words).is_none(), "{line:?}");
        }
    }

    #[test]
    fn signals_have_names_and_numbers() {
        for (text, number) in [("TERM", 15), ("sigkill", 9), ("SYS", 31), ("64", 64), ("1", 1)] {
            assert_eq!(signal(text), Ok(number));
        }
        for wrong in ["", "0", "65", "SIG", "TERMX", "-1"] {
            assert!(signal(wrong).is_err(), "{wrong}");
        }
    }
}
