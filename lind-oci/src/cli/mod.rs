//! The command line. It takes what runc's does, as far as engines use it.

mod words;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::signals::signal;

/// The lines that `--version` prints, as other runtimes have them.
pub const VERSION: &str =
    concat!("lind-oci version ", env!("CARGO_PKG_VERSION"), "\ncommit: ", env!("CARGO_PKG_VERSION"), "\nspec: 1.2.0\n");

/// Run containers, as an OCI runtime, in cages
#[derive(Parser, Debug)]
#[command(name = "lind-oci", disable_help_subcommand = true, disable_version_flag = true)]
pub struct Line {
    /// Options of all commands.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Options before the command.
#[derive(Args, Debug, Default)]
pub struct Global {
    /// Keep the states of containers in DIR [default: /run/lind-oci, or $XDG_RUNTIME_DIR/lind-oci]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Write errors and warnings to FILE
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// The format of the log
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: Format,
    /// Take cgroupsPath for SLICE:PREFIX:NAME
    #[arg(long)]
    pub systemd_cgroup: bool,
    /// Ignore control groups that may not be made: true, false or auto
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub rootless: Option<String>,
    /// Accepted for compatibility; has no effect
    #[arg(long)]
    pub debug: bool,
    /// Accepted for compatibility; has no effect
    #[arg(long, value_name = "FILE", hide = true)]
    pub criu: Option<PathBuf>,
}

/// The formats of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Format {
    /// Lines of text
    #[default]
    Text,
    /// Lines of JSON
    Json,
}

/// The formats of lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Shape {
    /// A table
    #[default]
    Table,
    /// JSON
    Json,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Create a container, whose process waits for `start`
    Create(Create),
    /// Let the process of a container begin
    Start(Id),
    /// Create a container, start it, wait for its end, and delete it
    Run(Run),
    /// Print the state of a container
    State(Id),
    /// Send a signal to the process of a container
    Kill(Kill),
    /// Delete a container that has ended
    Delete(Delete),
    /// Run a process in a container
    Exec(Box<Exec>),
    /// List the processes of a container, as the host numbers them
    Ps(Ps),
    /// Stop the processes of a container for a while
    Pause(Id),
    /// Let the processes of a paused container go on
    Resume(Id),
    /// Change the limits of a container
    Update(Box<Update>),
    /// Print what a container uses
    Events(Events),
    /// List the containers
    List(List),
    /// Print what this runtime supports
    Features,
    /// Write a config.json to begin with
    Spec(Spec),
    /// Refused: cages have no checkpoints
    #[command(disable_help_flag = true)]
    Checkpoint(Rest),
    /// Refused: cages have no checkpoints
    #[command(disable_help_flag = true)]
    Restore(Rest),
}

/// The id of a container.
#[derive(Args, Debug)]
pub struct Id {
    /// The id of the container
    pub id: String,
}

/// Words that have no effect.
#[derive(Args, Debug)]
pub struct Rest {
    /// Anything
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub words: Vec<OsString>,
}

/// Options of `create`.
#[derive(Args, Debug)]
pub struct Create {
    /// The directory with config.json
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub bundle: PathBuf,
    /// Send the master of the process's terminal to this socket
    #[arg(long, value_name = "SOCKET")]
    pub console_socket: Option<PathBuf>,
    /// Write the number of the container's process to FILE
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// Pass on COUNT open files behind the standard ones
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub preserve_fds: u32,
    /// Accepted for compatibility; has no effect: a cage has its root in another way
    #[arg(long)]
    pub no_pivot: bool,
    /// Accepted for compatibility; has no effect: cages have no keyrings
    #[arg(long)]
    pub no_new_keyring: bool,
    /// The id of the container
    pub id: String,
}

/// Options of `run`.
#[derive(Args, Debug)]
pub struct Run {
    /// Options of `create`.
    #[command(flatten)]
    pub create: Create,
    /// Do not wait for the end of the container
    #[arg(short, long)]
    pub detach: bool,
    /// Do not delete the container at its end
    #[arg(long)]
    pub keep: bool,
    /// Accepted for compatibility; has no effect
    #[arg(long)]
    pub no_subreaper: bool,
}

/// Options of `kill`.
#[derive(Args, Debug)]
pub struct Kill {
    /// Send the signal to all processes of the container
    #[arg(short, long)]
    pub all: bool,
    /// The id of the container
    pub id: String,
    /// The signal: a name or a number
    #[arg(default_value = "TERM", value_parser = signal)]
    pub signal: u8,
}

/// Options of `delete`.
#[derive(Args, Debug)]
pub struct Delete {
    /// Kill the container if it runs, and be content if it does not exist
    #[arg(short, long)]
    pub force: bool,
    /// The id of the container
    pub id: String,
}

/// Options of `exec`.
#[derive(Args, Debug)]
pub struct Exec {
    /// The file with the process, as config.json has it
    #[arg(short, long, value_name = "FILE")]
    pub process: Option<PathBuf>,
    /// Do not wait for the end of the process
    #[arg(short, long)]
    pub detach: bool,
    /// Write the number of the process to FILE
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// Send the master of the process's terminal to this socket
    #[arg(long, value_name = "SOCKET")]
    pub console_socket: Option<PathBuf>,
    /// Give the process a terminal
    #[arg(short, long)]
    pub tty: bool,
    /// The directory in which it starts
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<String>,
    /// Set a variable
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// The user, as UID[:GID]
    #[arg(short, long, value_name = "UID[:GID]")]
    pub user: Option<String>,
    /// Further groups
    #[arg(short = 'g', long, value_name = "GID")]
    pub additional_gids: Vec<u32>,
    /// Let no program give it more rights
    #[arg(long)]
    pub no_new_privs: bool,
    /// A capability
    #[arg(short, long, value_name = "CAPABILITY")]
    pub cap: Vec<String>,
    /// Accepted for compatibility; has no effect
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub preserve_fds: u32,
    /// Accepted for compatibility; has no effect
    #[arg(long, value_name = "PROFILE")]
    pub apparmor: Option<String>,
    /// Accepted for compatibility; has no effect
    #[arg(long, value_name = "LABEL")]
    pub process_label: Option<String>,
    /// Accepted for compatibility; has no effect
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// Accepted for compatibility; has no effect
    #[arg(long)]
    pub no_subreaper: bool,
    /// Let the process wait until a paused container goes on
    #[arg(long)]
    pub ignore_paused: bool,
    /// The id of the container
    pub id: String,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// Options of `ps`.
#[derive(Args, Debug)]
pub struct Ps {
    /// A table, or the numbers as JSON
    #[arg(short, long, default_value = "table")]
    pub format: Shape,
    /// The id of the container
    pub id: String,
    /// Accepted for compatibility; has no effect
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub options: Vec<OsString>,
}

/// Options of `update`.
#[derive(Args, Debug, Default)]
pub struct Update {
    /// The file with limits as config.json has them; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub resources: Option<PathBuf>,
    /// The limit of memory, in bytes
    #[arg(long, allow_hyphen_values = true)]
    pub memory: Option<i64>,
    /// The memory that is left to it, in bytes
    #[arg(long, allow_hyphen_values = true)]
    pub memory_reservation: Option<i64>,
    /// The limit of memory and swap together, in bytes
    #[arg(long, allow_hyphen_values = true)]
    pub memory_swap: Option<i64>,
    /// The share of processor time
    #[arg(long, alias = "cpu-shares")]
    pub cpu_share: Option<u64>,
    /// The processor time in each period, in microseconds
    #[arg(long, allow_hyphen_values = true)]
    pub cpu_quota: Option<i64>,
    /// The period, in microseconds
    #[arg(long)]
    pub cpu_period: Option<u64>,
    /// The processors
    #[arg(long)]
    pub cpuset_cpus: Option<String>,
    /// The nodes of memory
    #[arg(long)]
    pub cpuset_mems: Option<String>,
    /// The limit of tasks
    #[arg(long, allow_hyphen_values = true)]
    pub pids_limit: Option<i64>,
    /// The share of disks
    #[arg(long)]
    pub blkio_weight: Option<u16>,
    /// The id of the container
    pub id: String,
}

/// Options of `events`.
#[derive(Args, Debug)]
pub struct Events {
    /// Print once what the container uses
    #[arg(long)]
    pub stats: bool,
    /// Print it in the text format of Prometheus, of all containers that run unless one is named
    #[arg(long, requires = "stats")]
    pub prometheus: bool,
    /// The time between two lines
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = interval)]
    pub interval: Duration,
    /// The id of the container
    #[arg(required_unless_present = "prometheus")]
    pub id: Option<String>,
}

/// Options of `list`.
#[derive(Args, Debug)]
pub struct List {
    /// A table or JSON
    #[arg(short, long, default_value = "table")]
    pub format: Shape,
    /// Print ids alone
    #[arg(short, long)]
    pub quiet: bool,
}

/// Options of `spec`.
#[derive(Args, Debug)]
pub struct Spec {
    /// The directory to write the file to
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub bundle: PathBuf,
    /// Accepted for compatibility; has no effect
    #[arg(long)]
    pub rootless: bool,
}

/// Parses seconds or minutes.
fn interval(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix('m') {
        Some(number) => (number, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let seconds: Option<u64> = number.parse().ok().filter(|&number| number > 0);
    seconds
        .map(|seconds| Duration::from_secs(seconds * unit))
        .ok_or_else(|| "must be a time such as 5s or 1m".to_owned())
}

/// The options that ask for the version.
const VERSIONS: [&str; 2] = ["--version", "-v"];

/// Parses a line. Returns also the options before the command that nobody knows.
///
/// # Errors
/// A mistake in the line, or the text of --help or --version.
pub fn parse(words: &[OsString]) -> Result<(Line, Vec<String>), clap::Error> {
    let (words, unknown) = words::known(words);
    Ok((Line::try_parse_from(words)?, unknown))
}

/// Whether a line asks for the version.
pub fn asks_for_version(words: &[OsString]) -> bool {
    // Before the command that is an option of its own.
    words::known(words).1.iter().any(|option| VERSIONS.contains(&option.as_str()))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A line, parsed.
    pub fn line(words: &[&str]) -> (Line, Vec<String>) {
        let words: Vec<OsString> = ["lind-oci"].iter().chain(words).map(OsString::from).collect();
        parse(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    #[test]
    fn the_definitions_are_sound() {
        <Line as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn engines_lines_are_taken() {
        let (parsed, unknown) = line(&[
            "--root",
            "/r",
            "--log=/l",
            "--log-format",
            "json",
            "--systemd-cgroup",
            "--rootless=auto",
            "create",
            "--bundle",
            "/b",
            "--pid-file=/p",
            "--no-pivot",
            "id",
            "--console-socket",
            "/c",
        ]);
        let Command::Create(create) = parsed.command else { panic!("{parsed:?}") };
        assert!(unknown.is_empty() && parsed.global.systemd_cgroup && create.no_pivot);
        assert_eq!((create.id.as_str(), parsed.global.log_format), ("id", Format::Json));
        assert_eq!(create.console_socket, Some("/c".into()));
        let (parsed, _) = line(&["kill", "id", "KILL", "--all"]);
        assert!(matches!(parsed.command, Command::Kill(Kill { all: true, signal: 9, .. })));
        let (parsed, _) = line(&["exec", "--process", "/p", "--detach=true", "--tty=false", "id"]);
        assert!(matches!(parsed.command, Command::Exec(exec) if exec.detach && !exec.tty && exec.command.is_empty()));
        let (parsed, _) = line(&["exec", "id", "ls", "-l", "--detach"]);
        assert!(
            matches!(parsed.command, Command::Exec(exec) if !exec.detach && exec.command == ["ls", "-l", "--detach"])
        );
        let (parsed, _) = line(&["update", "--memory", "-1", "--resources", "-", "id"]);
        assert!(matches!(parsed.command, Command::Update(update) if update.memory == Some(-1)));
        assert!(matches!(line(&["checkpoint", "--image-path", "/x", "id"]).0.command, Command::Checkpoint(_)));
    }
}
