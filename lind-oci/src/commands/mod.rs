//! The commands.

mod create;
mod delete;
mod describe;
mod end;
mod exec;
mod front;
mod kill;
mod limits;
mod list;
mod start;
mod template;

use anyhow::{Result, anyhow};

use crate::cli::{Command, Line};
use crate::log::Log;
use crate::state::States;

/// The things that commands need besides their own options.
pub struct Context<'a> {
    /// The containers.
    pub states: States,
    /// The log.
    pub log: &'a Log,
    /// Whether cgroupsPath is SLICE:PREFIX:NAME.
    pub by_systemd: bool,
}

/// Runs a command, and returns the exit status.
///
/// # Errors
/// When the command fails.
pub fn run(line: &Line, log: &Log) -> Result<u8> {
    let context = Context { states: States::of(&line.global), log, by_systemd: line.global.systemd_cgroup };
    let done: Result<()> = match &line.command {
        Command::Create(create) => create::create(&context, create, false).map(drop),
        Command::Start(id) => start::start(&context, &id.id),
        Command::Run(run) => return start::run(&context, run),
        Command::State(id) => list::state(&context, &id.id),
        Command::Kill(kill) => kill::kill(&context, kill),
        Command::Delete(delete) => delete::delete(&context, delete),
        Command::Exec(exec) => return exec::exec(&context, exec),
        Command::Ps(ps) => list::processes(&context, ps),
        Command::Pause(id) => limits::pause(&context, &id.id, true),
        Command::Resume(id) => limits::pause(&context, &id.id, false),
        Command::Update(update) => limits::update(&context, update),
        Command::Events(events) => limits::events(&context, events),
        Command::List(list) => list::list(&context, list),
        Command::Features => describe::features(),
        Command::Spec(spec) => template::write(spec),
        Command::Checkpoint(_) | Command::Restore(_) => Err(anyhow!(
            "checkpoint is not supported: the processes of a cage cannot be written to a file; keep files in a volume, and stop \
             the container"
        )),
    };
    done?;
    Ok(0)
}

/// Prints the output of a command.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(text: &str) -> Result<()> {
    use std::io::Write as _;
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| anyhow!("cannot write to standard output: {error}"))
}
