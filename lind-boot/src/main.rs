//! Runs a program in a cage, behind any number of grates.

mod cli;
mod config;
mod confine;
mod report;
mod run;
mod syscalls;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

/// Our own failure, as docker and env have it.
const FAILED: u8 = 125;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { FAILED } else { 0 });
        }
    };
    let done = match (cli.command, cli.run.precompile.as_deref()) {
        (Some(Command::Syscalls(options)), _) => syscalls::print(&options),
        (Some(Command::Compile(options)), _) => run::compile(&options.file, options.output.as_deref()),
        (None, Some(file)) => run::compile(file, None),
        (None, None) => run::run(&cli.run).map(|never| match never {}),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lind-boot: {:#}", error.reason);
            run::leave(error.status)
        }
    }
}
