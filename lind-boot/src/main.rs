//! Runs a program in a cage, behind any number of grates.
//!
//! `main` is C's: Rust's own start reads /proc/self/maps to find a guard page for the main thread's
//! stack, which guests do not run on. Leaving that out took 1.5 % off the time to start a small
//! program (1536 to 1512 us, a busy machine).
#![cfg_attr(not(test), no_main)]

mod amount;
mod cli;
mod config;
mod failure;
mod files;
mod installed;
mod launch;
mod named;
mod overlay;
mod plan;
mod private;
mod reserve;
mod sandbox;
mod session;
mod tools;
mod walls;

#[cfg(not(test))]
use std::ffi::{c_char, c_int};

use cli::{Command, Run};
use failure::{FAILED, Failure};
use launch::Mounts;
use launch::end::End;
use lind_engine::signal::process_signals;
use lind_kernel::stdio;
use tools::{audit, cache, compile, doctor, explain, image, import, inspect, syscalls};

#[global_allocator]
static ALLOCATOR: reserve::Reserve = reserve::Reserve;

// SAFETY: this is the program's one `main`, with C's signature. The arguments are read through std,
// which keeps its own copy from before `main`.
#[cfg(not(test))]
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn main(_argc: c_int, _argv: *const *const c_char) -> c_int {
    c_int::from(status())
}

#[cfg_attr(test, allow(dead_code, reason = "the test harness has a main of its own"))]
fn status() -> u8 {
    stdio::fill();
    if let Some(status) = session::exec_at_once() {
        return status;
    }
    reserve::Reserve::begin();
    let command = match Command::of_process() {
        Ok(command) => command,
        Err(error) => {
            cli::print_error(&error);
            return if error.use_stderr() { FAILED } else { 0 };
        }
    };
    if !command.runs() {
        process_signals::errors_are_no_signals();
    }
    run(command).unwrap_or_else(|error| {
        let reason = format!("{:#}", error.reason);
        if !reason.is_empty() {
            stdio::say_line(&reason);
        }
        error.status
    })
}

/// Runs a command, and returns its exit status. A command that runs guests returns only if nothing
/// ran.
#[cfg_attr(test, allow(dead_code, reason = "the test harness has a main of its own"))]
fn run(command: Command) -> Result<u8, Failure> {
    if let Some(verb) = overlay::Verb::of(&command) {
        return overlay::run(&verb).map(|()| 0);
    }
    match command {
        Command::Program(run) => return program(*run),
        Command::Run(options) => return sandboxed(&options),
        Command::Learn(options) => sandbox::run(&(*options).into()).map(|_| ()),
        Command::Record(options) => return sandboxed(&(*options).into()),
        Command::Replay(options) => return sandbox::replay(&options).map(|never| match never {}),
        Command::Session(several) => return session::run(several.command),
        Command::Container(several) => return session::container(&several.command),
        Command::Sh(shell) => return Ok(session::shell(shell.arguments)),
        Command::Doctor(options) => return doctor::run(&options).map(|holds| u8::from(!holds)),
        Command::Audit(several) => audit::run(&several.command).map(|never| match never {}),
        Command::Overlay(several) => overlay::manage(&several.command),
        Command::Syscalls(options) => syscalls::print(&options),
        Command::Explain(options) => explain::print(&options),
        Command::Inspect(options) => inspect::print(&options),
        Command::ImportSettings(options) => import::run(&options),
        Command::Image(several) => match &several.command {
            cli::image::Command::Build(options) => image::build(options),
        },
        Command::Cache(several) => cache::run(&several.command),
        Command::Warm(options) => cache::warm(&options),
        Command::Compile(options) => compile::run(&options.file, options.output.as_deref()),
        Command::UnpackImage(options) => image::unpack(&options.archive, &options.directory),
        Command::RemoveAtEnd(options) => {
            sandbox::remove(&options);
            Ok(())
        }
        // The other commands are verbs on overlays, handled above.
        _ => Ok(()),
    }?;
    Ok(0)
}

/// Runs grates and a program.
fn program(run: Run) -> Result<u8, Failure> {
    match run.precompile.as_deref() {
        Some(file) => compile::run(file, None).map(|()| 0),
        None => launch::start(&run.into(), Mounts::default(), End::default(), None).map(|never| match never {}),
    }
}

/// Runs a command in a sandbox, or in a session.
fn sandboxed(options: &cli::sandbox::RunOptions) -> Result<u8, Failure> {
    if let Some(exec) = cli::session::Exec::of_run(options)? {
        return Ok(session::exec(&exec));
    }
    if options.dry_run && options.options.overlay_all.is_none() {
        return overlay::dry_run();
    }
    match options.options.ask {
        Some(_) if !options.explain => session::run_asking(options),
        _ => sandbox::run(options),
    }
    .map(|_| 0)
}
