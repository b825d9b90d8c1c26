//! Options of the commands that look into a session or change something in it.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::policy::{Allow, Answer, Deny, Policy, Questions, Rule};
use super::session::signal;
use super::states::{Apply, Diff, Discard, Snapshot, Snapshots};

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// List the commands of a session, with when they started
    Ps(Ps),
    /// Send a signal to commands of a session
    Kill(Kill),
    /// Show what a command writes, from what the session has kept on, and exit as it does
    Attach(Attach),
    /// Wait for the end of a command, and exit as it does
    Wait(Wait),
    /// Print what a session uses, and its limits
    Stats(Stats),
    /// Print the calls that were denied to commands of a session, and what would allow each
    Denials(Denials),
    /// Show what commands of a session have changed in an overlay
    Diff(Diff),
    /// Apply changes in an overlay of a session to the directory below
    Apply(Apply),
    /// Throw away changes in an overlay of a session
    Discard(Discard),
    /// Name the present contents of an overlay of a session
    Snapshot(Snapshot),
    /// List the snapshots of an overlay of a session
    Snapshots(Snapshots),
    /// Return to a snapshot of an overlay of a session
    Rollback(Snapshot),
    /// Print files of a session
    Cat(Cat),
    /// Copy files into a session, or out of it: one of the two is SESSION:PATH, and - is a tar
    Cp(Cp),
    /// Write standard input to a file of a session
    Write(Write),
    /// Say what files of a session are
    Stat(Stat),
    /// Make a directory in a session
    Mkdir(Mkdir),
    /// Rename a file of a session
    Mv(Mv),
    /// Remove files of a session
    Rm(Rm),
    /// Print what changes in a directory of a session
    Watch(Watch),
    /// Allow the commands of a session something more, from the next call on
    Allow(Allow),
    /// Deny the commands of a session something, from the next call on
    Deny(Deny),
    /// Take back a rule of a session
    Revoke(Rule),
    /// Print the rules of a session
    Policy(Policy),
    /// List the calls that wait for an answer (--ask), or ask about each at a terminal
    Questions(Questions),
    /// Answer a question
    Answer(Answer),
}

/// Options of `session ps`.
#[derive(Args, Debug)]
pub struct Ps {
    /// The name of the session
    pub name: String,
    /// List also commands that have ended, as far as the session remembers them
    #[arg(short, long)]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `session kill`.
#[derive(Args, Debug)]
pub struct Kill {
    /// The name of the session
    pub name: String,
    /// The commands, by the numbers that `ps` shows
    #[arg(required = true)]
    pub ids: Vec<u32>,
    /// The signal: a name or a number
    #[arg(short, long, value_parser = signal, default_value = "KILL")]
    pub signal: u8,
    /// Send it to the whole process group of each command
    #[arg(short, long)]
    pub group: bool,
}

/// Options of `session attach`.
#[derive(Args, Debug)]
pub struct Attach {
    /// The name of the session
    pub name: String,
    /// The command, by the number that `ps` shows
    pub id: u32,
    /// Leave out so many bytes of its output
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub from: u64,
    /// Send standard input to the command, and at its end the end of the command's
    #[arg(short, long)]
    pub interactive: bool,
}

/// Options of `session wait`.
#[derive(Args, Debug)]
pub struct Wait {
    /// The name of the session
    pub name: String,
    /// The command, by the number that `ps` shows
    pub id: u32,
}

/// Options of `session stats`.
#[derive(Args, Debug)]
pub struct Stats {
    /// The name of the session
    pub name: String,
    /// Print JSON, with exact numbers
    #[arg(long)]
    pub json: bool,
    /// Print the text format of Prometheus
    #[arg(long, conflicts_with = "json")]
    pub prometheus: bool,
}

/// Options of `session denials`.
#[derive(Args, Debug)]
pub struct Denials {
    /// The name of the session
    pub name: String,
    /// Go on with those to come, until the session ends
    #[arg(short, long)]
    pub follow: bool,
    /// Print only denials behind this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub since: u64,
    /// Print only denials of this command, by the number that `ps` shows
    #[arg(long, value_name = "N")]
    pub id: Option<u32>,
    /// Print JSON, an object on a line
    #[arg(long)]
    pub json: bool,
}

/// Options of `session cat`.
#[derive(Args, Debug)]
pub struct Cat {
    /// The name of the session
    pub name: String,
    /// The files; a path without / at its start is one below the session's working directory
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

/// Options of `session cp`.
#[derive(Args, Debug)]
pub struct Cp {
    /// SESSION:PATH, a path of the host, or - for a tar on standard input
    pub from: PathBuf,
    /// SESSION:PATH, a path of the host, or - for a tar on standard output
    pub to: PathBuf,
}

/// Options of `session write`.
#[derive(Args, Debug)]
pub struct Write {
    /// The name of the session
    pub name: String,
    /// The file; it is replaced in one step
    pub path: PathBuf,
    /// Add to the end of the file instead
    #[arg(short, long)]
    pub append: bool,
    /// Make the directories on the way
    #[arg(short, long)]
    pub parents: bool,
    /// Fail if the file is already there
    #[arg(long, conflicts_with = "append")]
    pub new: bool,
    /// The mode of the file, in octal digits
    #[arg(short, long, value_parser = mode)]
    pub mode: Option<u32>,
}

/// Options of `session stat`.
#[derive(Args, Debug)]
pub struct Stat {
    /// The name of the session
    pub name: String,
    /// The files
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Follow links
    #[arg(short = 'L', long)]
    pub follow: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `session mkdir`.
#[derive(Args, Debug)]
pub struct Mkdir {
    /// The name of the session
    pub name: String,
    /// The directory
    pub path: PathBuf,
    /// Make the directories on the way; an existing directory is left as it is
    #[arg(short, long)]
    pub parents: bool,
    /// The mode of the directory, in octal digits
    #[arg(short, long, value_parser = mode)]
    pub mode: Option<u32>,
}

/// Options of `session mv`.
#[derive(Args, Debug)]
pub struct Mv {
    /// The name of the session
    pub name: String,
    /// The file
    pub from: PathBuf,
    /// Its new path
    pub to: PathBuf,
    /// Fail if something is already there
    #[arg(short, long)]
    pub no_clobber: bool,
}

/// Options of `session rm`.
#[derive(Args, Debug)]
pub struct Rm {
    /// The name of the session
    pub name: String,
    /// The files
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Remove directories with all that is in them
    #[arg(short, long)]
    pub recursive: bool,
    /// Ignore files that are missing
    #[arg(short, long)]
    pub force: bool,
}

/// Options of `session watch`.
#[derive(Args, Debug)]
pub struct Watch {
    /// The name of the session
    pub name: String,
    /// The directory
    pub path: PathBuf,
    /// Watch the directories in it, too
    #[arg(short, long)]
    pub recursive: bool,
    /// Print JSON, an object on a line
    #[arg(long)]
    pub json: bool,
}

/// Options of `session ls` on files.
#[derive(Args, Debug)]
pub struct Files {
    /// Print mode, owner, size and time of files
    #[arg(short, long, requires = "name")]
    pub long: bool,
    /// List the directories in a directory, too
    #[arg(short = 'R', long, requires = "name")]
    pub recursive: bool,
    /// List the files of this session, and not the sessions
    pub name: Option<String>,
    /// The directory
    #[arg(default_value = ".")]
    pub path: PathBuf,
}

fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|&mode| mode <= 0o7777);
    mode.ok_or_else(|| "must be octal digits, such as 644".to_owned())
}
