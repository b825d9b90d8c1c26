//! Runs a program in a cage, behind any number of grates.
//!
//! `main` is C's: Rust's own start reads /proc/self/maps to find a guard page for the main thread's
//! stack, which guests do not run on. Leaving that out took 1.5 % off the time to start a small
//! program (1536 to 1512 us, a busy machine).
#![cfg_attr(not(test), no_main)]

mod audit;
mod cache;
mod cli;
mod config;
mod confine;
mod denials;
mod doctor;
mod end;
mod explain;
mod found;
mod inspect;
mod installed;
mod limits;
mod named;
mod outside;
mod overlay;
mod report;
mod reserve;
mod run;
mod sandbox;
mod session;
mod stack;
mod syscalls;

#[cfg(not(test))]
use std::ffi::{c_char, c_int};

use cli::{Cli, Command};
use end::End;
use lind_engine::signal::host_signals;
use lind_kernel::stdio;
use sandbox::Mounts;

#[global_allocator]
static ALLOCATOR: reserve::Reserve = reserve::Reserve;

/// The exit status of our own failures, as in docker and env.
const FAILED: u8 = 125;

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
    let cli = match Cli::of_process() {
        Ok(cli) => cli,
        Err(error) => {
            cli::print_error(&error);
            return if error.use_stderr() { FAILED } else { 0 };
        }
    };
    if cli.command.as_ref().is_some_and(|command| !command.runs()) || cli.run.precompile.is_some() {
        host_signals::errors_are_no_signals();
    }
    if let Some(verb) = cli.command.as_ref().and_then(Command::verb) {
        return reported(overlay::run(&verb));
    }
    let done = match (cli.command, cli.run.precompile.as_deref()) {
        (Some(Command::Syscalls(options)), _) => syscalls::print(&options),
        (Some(Command::Explain(options)), _) => explain::print(&options, cli.run.root.as_ref()),
        (Some(Command::Inspect(options)), _) => inspect::print(&options),
        (Some(Command::Doctor(options)), _) => match doctor::run(&options) {
            Ok(holds) => return u8::from(!holds),
            Err(failure) => Err(failure),
        },
        (Some(Command::Audit(command)), _) => audit::run(&command).map(|never| match never {}),
        (Some(Command::Cache(command)), _) => cache::run(&command),
        (Some(Command::Warm(options)), _) => cache::warm(&options),
        (Some(Command::Compile(options)), _) => run::compile(&options.file, options.output.as_deref()),
        (None, Some(file)) => run::compile(file, None),
        (Some(Command::Run(options)), _) => match session::Exec::of_run(&options) {
            Ok(Some(exec)) => return session::exec(&exec),
            Ok(None) if options.dry_run && options.options.overlay_all.is_none() => match overlay::dry_run() {
                Ok(status) => return status,
                Err(failure) => Err(failure),
            },
            Ok(None) => sandbox::run(&options).map(|_| ()),
            Err(error) => Err(error.into()),
        },
        (Some(Command::Learn(options)), _) => sandbox::run(&(*options).into()).map(|_| ()),
        (Some(Command::Session(command)), _) => match session::run(command) {
            Ok(status) => return status,
            Err(failure) => Err(failure),
        },
        (Some(Command::RemoveAtEnd(options)), _) => {
            sandbox::remove(&options);
            Ok(())
        }
        (Some(Command::Overlay(command)), _) => overlay::manage(&command),
        // The other commands are verbs on overlays, handled above.
        (Some(_), _) => Ok(()),
        (None, None) => run::run(&cli.run, Mounts::default(), End::default(), None).map(|never| match never {}),
    };
    reported(done)
}

/// The exit status of a command; prints why it failed.
#[cfg_attr(test, allow(dead_code, reason = "the test harness has a main of its own"))]
fn reported(done: Result<(), run::Failure>) -> u8 {
    match done {
        Ok(()) => 0,
        Err(error) => {
            let reason = format!("{:#}", error.reason);
            if !reason.is_empty() {
                stdio::say_line(&reason);
            }
            error.status
        }
    }
}
