//! Options of `container`, which the OCI runtime calls.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The commands on containers.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Become the runner of the container that is described over standard input
    Serve(Serve),
    /// Run a process in a container
    Exec(Exec),
}

/// Options of `container serve`.
#[derive(Args, Debug)]
pub struct Serve {
    /// The number of open files behind the standard ones that the container's programs get
    #[arg(default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=256))]
    pub preserved: u32,
}

/// Options of `container exec`.
#[derive(Args, Debug, PartialEq, Eq)]
pub struct Exec {
    /// The socket of the container
    pub socket: PathBuf,
    /// The file with the description of the process
    pub process: PathBuf,
    /// The file that gets a line when the process runs, or cannot be run
    pub news: Option<PathBuf>,
}

impl Exec {
    /// A `container exec` line, which needs no parser.
    pub fn plain(words: &[OsString]) -> Option<Exec> {
        let [_, container, exec, socket, process, rest @ ..] = words else { return None };
        let ours = container == "container" && exec == "exec" && rest.len() <= 1;
        ours.then(|| Exec { socket: socket.into(), process: process.into(), news: rest.first().map(PathBuf::from) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Command as Top;

    #[test]
    fn plain_lines_say_what_the_parser_says() {
        for line in [&["s", "p"][..], &["s", "p", "n"]] {
            let words: Vec<OsString> =
                ["lind-boot", "container", "exec"].iter().chain(line).map(OsString::from).collect();
            let Ok(Top::Container(parsed)) = Top::parse(&words) else { panic!("{line:?}") };
            let Command::Exec(parsed) = parsed.command else { panic!("{line:?}") };
            assert_eq!(Exec::plain(&words), Some(parsed));
        }
        for line in [&["s"][..], &["s", "p", "n", "more"], &[]] {
            let words: Vec<OsString> =
                ["lind-boot", "container", "exec"].iter().chain(line).map(OsString::from).collect();
            assert_eq!(Exec::plain(&words), None, "{line:?}");
        }
    }
}
