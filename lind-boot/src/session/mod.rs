//! `lind-boot session`: a sandbox that stays, and runs many commands without being started again.
//!
//! A session is one runner. Behind its grates a program (`grates/session`) starts commands. A
//! thread of the runner takes requests for them from a socket; [`client`] is the front end that
//! sends them. `docs/session.md` has the protocol.

mod client;
mod commands;
mod container;
mod control;
mod files;
mod orders;
mod output;
mod parent;
mod pipes;
pub mod place;
mod request;
mod screen;
mod serve;
mod server;
mod shell;
mod terminal;
mod verbs;
mod wire;

use std::ffi::OsString;

use crate::cli::container::Exec as ProcessExec;
use crate::cli::session::{Command, Exec, Ls};
use crate::failure::Failure;
use crate::sandbox;

pub use client::exec;
pub use container::run as container;
pub use serve::run_asking;
pub use shell::run as shell;

/// Runs a shell, or a `session exec` line without options, before anything else is set up: it shall
/// cost little more than the program itself.
pub fn exec_at_once() -> Option<u8> {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(line) = ProcessExec::plain(&words) {
        return Some(container::exec(&line));
    }
    if let Some(arguments) = shell::arguments(&words) {
        return Some(shell::run(arguments));
    }
    Exec::plain(&words).map(|line| exec(&line))
}

/// Runs a command on sessions, and returns the exit status.
///
/// # Errors
/// When the command fails.
pub fn run(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Exec(line) if line.detach => return verbs::start_detached(&line.name, client::request(&line)?),
        Command::Exec(line) => return Ok(exec(&line)),
        Command::In(verb) => return verbs::run(verb),
        Command::Ls(Ls { json, files }) if files.name.is_some() => {
            return verbs::list_files(files.name.as_deref().unwrap_or_default(), &files, json);
        }
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
