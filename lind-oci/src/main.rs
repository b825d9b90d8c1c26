//! An OCI runtime: container engines run it in place of runc or crun, and their containers are
//! cages.
//!
//! It knows config.json, the directory of states, control groups and hooks, and ends with each
//! command. A container is a process of lind-boot (`container serve`), which this program starts
//! and describes the container to. docs/oci.md says what of config.json has which effect.

mod cgroup;
mod cli;
mod commands;
mod config;
mod console;
mod control;
mod frames;
mod hooks;
mod log;
mod mapping;
mod network;
mod pod;
mod process;
mod program;
mod prometheus;
mod runner;
mod signals;
mod state;

use std::process::ExitCode;

use log::Log;

/// The exit status of a command that fails.
const FAILED: u8 = 1;

/// The exit status of an `exec` whose process could not be run, as of other runtimes.
const EXEC_FAILED: u8 = 255;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == pod::WORD) {
        pod::sleep();
    }
    if cli::asks_for_version(&words) {
        return match commands::print(cli::VERSION) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(FAILED),
        };
    }
    let (line, unknown) = match cli::parse(&words) {
        Ok(parsed) => parsed,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { FAILED } else { 0 });
        }
    };
    let log = Log::open(&line.global);
    for option in unknown {
        log.warn(&format!("{option}: this runtime does not know this option, and ignores it"));
    }
    match commands::run(&line, &log) {
        Ok(status) => ExitCode::from(status),
        Err(reason) => {
            log.fail(&format!("{reason:#}"));
            ExitCode::from(if matches!(line.command, cli::Command::Exec(_)) { EXEC_FAILED } else { FAILED })
        }
    }
}
