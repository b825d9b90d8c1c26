//! `lind-passes IN.wasm -o OUT.wasm`: runs the post-link passes over a module.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use lind_passes::Options;

/// Make a linked wasm module ready to run in a cage.
///
/// The memory becomes defined, 65536 pages, not shared, and exported as "memory"; data must be
/// passive. Loops that wait for memory to change read it again each time around. Link with `wasm-ld
/// --shared-memory --global-base=65536`.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// The linked module
    input: PathBuf,
    /// Where the result goes; may be the input itself
    #[arg(short, long)]
    output: PathBuf,
    /// Let calls with another type than the function's trap, be they direct or through pointers,
    /// instead of reaching the function as they do on x86-64
    #[arg(long)]
    no_fpcast: bool,
    /// Which programs can fork: those that import lind.fork (auto), all (always, to measure what it
    /// costs), or none (never)
    #[arg(long, value_enum, default_value = "auto")]
    fork: Fork,
}

#[derive(Clone, Copy, ValueEnum)]
enum Fork {
    Auto,
    Always,
    Never,
}

impl From<Fork> for lind_passes::Fork {
    fn from(fork: Fork) -> Self {
        match fork {
            Fork::Auto => lind_passes::Fork::Auto,
            Fork::Always => lind_passes::Fork::Always,
            Fork::Never => lind_passes::Fork::Never,
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "lind-passes: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    let input = cli.input.display();
    let bytes = fs::read(&cli.input).with_context(|| format!("{input}"))?;
    let options = Options { fpcast: !cli.no_fpcast, fork: cli.fork.into(), ..Options::default() };
    let result = lind_passes::run(&bytes, &options).with_context(|| format!("{input}"))?;
    write(&cli.output, &result, &cli.input).with_context(|| format!("{}", cli.output.display()))
}

/// Writes beside the output and renames, so that a failure leaves the old file and an interrupted
/// run no partial one. The result has the input's permissions.
fn write(output: &Path, bytes: &[u8], like: &Path) -> Result<()> {
    // `-o /dev/null`: a file renamed there would take the device's place.
    if fs::metadata(output).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(fs::write(output, bytes)?);
    }
    let mut name = output.file_name().context("not the name of a file")?.to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = output.with_file_name(name);
    let written = (|| {
        let mut file = fs::File::create(&beside)?;
        file.write_all(bytes)?;
        file.set_permissions(fs::metadata(like)?.permissions())?;
        fs::rename(&beside, output)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    Ok(written?)
}
