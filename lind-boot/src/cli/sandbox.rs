//! Options of `run` and `learn`: a sandbox and a command.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::publish::Published;
use crate::amount::{self, Amount, Kind};

/// Options of `run`, and the command.
#[derive(Args, Debug, Default)]
pub struct RunOptions {
    /// Options of the sandbox.
    #[command(flatten)]
    pub options: Options,
    /// Run the command in a session that `lind-boot session start` has started
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Write a policy that allows what the command did and nothing more; extend it if it exists.
    /// NAME is a file in ~/.config/lind/policies
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["session", "explain"])]
    pub learn: Option<PathBuf>,
    /// The new file for the record, of `record`.
    #[arg(skip)]
    pub record: Option<PathBuf>,
    /// Leave the volumes unchanged, and print at the end what would have changed
    #[arg(long, conflicts_with_all = ["session", "explain"])]
    pub dry_run: bool,
    /// Pass on COUNT open files behind the standard ones, as descriptors 3 and up
    #[arg(long, value_name = "COUNT", default_value_t = 0, conflicts_with = "session")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=256))]
    pub preserve_fds: u32,
    /// Accepted for compatibility with docker; has no effect: the command always has standard input
    #[arg(short, long)]
    pub interactive: bool,
    /// Accepted for compatibility with docker; has no effect: the command always has the terminal
    #[arg(short, long)]
    pub tty: bool,
    /// Print the mounts, the rules and the grates that enforce them; run nothing
    #[arg(long)]
    pub explain: bool,
    /// Print the explanation as JSON
    #[arg(long, requires = "explain")]
    pub json: bool,
    /// The command: a program of the image, or the path of a .wasm or .cwasm file of the host
    #[arg(required = true, value_name = "COMMAND", trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// Options of `learn`: it is `run --learn`.
#[derive(Args, Debug)]
pub struct LearnOptions {
    /// Write the policy to this file, or extend it if it exists. NAME is a file in
    /// ~/.config/lind/policies
    #[arg(short, long, value_name = "NAME|FILE")]
    output: PathBuf,
    /// Options of the sandbox.
    #[command(flatten)]
    options: Options,
    /// The command, as for `run`
    #[arg(required = true, value_name = "COMMAND", trailing_var_arg = true)]
    command: Vec<OsString>,
}

impl From<LearnOptions> for RunOptions {
    fn from(learn: LearnOptions) -> RunOptions {
        let LearnOptions { output, options, command } = learn;
        RunOptions { options, learn: Some(output), command, ..RunOptions::default() }
    }
}

/// Limits of all programs together.
#[derive(Args, Clone, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Amounts {
    /// Limit the memory of all programs together, such as 64M or 2G
    #[arg(long, value_name = "SIZE", value_parser = |text: &str| Kind::Bytes.typed(text))]
    #[serde(deserialize_with = "amount::bytes")]
    pub memory: Option<Amount>,
    /// Limit the processor time of all programs together, such as 10s or 2m
    #[arg(long, value_name = "TIME", value_parser = |text: &str| Kind::Time.parse(text))]
    #[serde(deserialize_with = "amount::time")]
    pub cpu: Option<Amount>,
    /// Limit the number of processes at one time
    #[arg(long, value_name = "COUNT", value_parser = |text: &str| Kind::Count.parse(text))]
    #[serde(deserialize_with = "amount::count")]
    pub cages: Option<Amount>,
    /// Limit the number of open files at one time
    #[arg(long, value_name = "COUNT", value_parser = |text: &str| Kind::Count.parse(text))]
    #[serde(deserialize_with = "amount::count")]
    pub files: Option<Amount>,
    /// Limit the number of threads at one time
    #[arg(long, value_name = "COUNT", value_parser = |text: &str| Kind::Count.parse(text))]
    #[serde(deserialize_with = "amount::count")]
    pub threads: Option<Amount>,
    /// Limit the bytes written to files, such as 100M
    #[arg(long, value_name = "SIZE", value_parser = |text: &str| Kind::Bytes.typed(text))]
    #[serde(deserialize_with = "amount::bytes")]
    pub disk: Option<Amount>,
}

impl Amounts {
    /// The limits by name.
    pub fn each(&mut self) -> [(&'static str, &mut Option<Amount>); 6] {
        let Amounts { memory, cpu, cages, files, threads, disk } = self;
        [("memory", memory), ("cpu", cpu), ("cages", cages), ("files", files), ("threads", threads), ("disk", disk)]
    }

    /// Whether this is the name of a limit.
    pub fn has(name: &str) -> bool {
        Amounts::default().each().iter().any(|(known, _)| *known == name)
    }

    /// The limits that are set.
    pub fn set(&self) -> Vec<(&'static str, Amount)> {
        self.clone().each().into_iter().filter_map(|(name, amount)| Some((name, (*amount)?))).collect()
    }

    /// Limits with amounts by name.
    pub fn of(amount: impl Fn(&'static str) -> Option<Amount>) -> Amounts {
        let mut all = Amounts::default();
        all.each().into_iter().for_each(|(name, limit)| *limit = amount(name));
        all
    }

    /// These limits, or else the `others`.
    pub fn or(&self, others: &Amounts) -> Amounts {
        self.with(others, Option::or)
    }

    /// The larger ones of limits that both have.
    pub fn widened(&self, by: &Amounts) -> Amounts {
        self.with(by, |one, other| one.zip(other).map(|(one, other)| one.max(other)))
    }

    fn with(&self, others: &Amounts, of: fn(Option<Amount>, Option<Amount>) -> Option<Amount>) -> Amounts {
        let (mut all, mut others) = (self.clone(), others.clone());
        for ((_, one), (_, other)) in all.each().into_iter().zip(others.each()) {
            *one = of(*one, *other);
        }
        all
    }
}

/// Checks a host name: sethostname(2) must accept it, and it has only letters that tools print
/// unchanged.
fn host_name(text: &str) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if text.is_empty() || text.len() > 64 || !text.bytes().all(allowed) {
        return Err("must be 1 to 64 letters, digits, dots and dashes".to_owned());
    }
    Ok(text.to_owned())
}

/// Options of a sandbox.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// Mount HOST, a directory or file, at GUEST [default: the same path]; may be repeated
    ///
    /// The guest may change it unless `ro` is given: `-v .:/src:ro`. With `overlay` the directory
    /// stays unchanged, and changes are kept in a state: `lind-boot diff` shows them, `apply`
    /// applies them, and `discard` throws them away. STATE is a name, or the path of a file, or of
    /// a directory if it ends with /.
    #[arg(short, long, value_name = "HOST[:GUEST][:ro|rw|overlay[=STATE]]")]
    pub volume: Vec<OsString>,
    /// Mount HOST, a directory, and open it for a WASI program under the name GUEST [default:
    /// HOST]; a GUEST that begins with / is its path too
    #[arg(long, value_name = "HOST[::GUEST]")]
    pub dir: Vec<OsString>,
    /// Let no command change PATH, a file or directory of the host, where a volume shows it; may be
    /// repeated
    #[arg(long, value_name = "PATH")]
    pub keep: Vec<PathBuf>,
    /// Start the command in DIR, a path of the guest [default: the current directory if it is
    /// mounted, else the home directory]
    #[arg(short, long, value_name = "DIR")]
    pub workdir: Option<PathBuf>,
    /// Set the host name that programs see [default: sandbox]
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    pub hostname: Option<String>,
    /// Mount an empty file system in memory at PATH [default size: 256M]
    #[arg(long, value_name = "PATH[:SIZE]")]
    pub tmpfs: Vec<String>,
    /// Use DIR as the image: the read-only directory with the tools [default: $LIND_ROOT, or the
    /// image that came with lind-boot]
    #[arg(long, value_name = "DIR")]
    pub image: Option<PathBuf>,
    /// Set a variable in the command's environment; without =VALUE, pass on its value
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Set variables from a file with one NAME=VALUE a line
    #[arg(long, value_name = "FILE")]
    pub env_file: Vec<PathBuf>,
    /// Set no variables but those of --env and --env-file, not even PATH and HOME
    #[arg(long)]
    pub clear_env: bool,
    /// Choose the network that programs may use [default: the policy's; `agent` has none]
    #[arg(long, value_name = "WHICH")]
    pub network: Option<Network>,
    /// Allow connections to this host and to no other: NAME or ADDRESS[/BITS], with an optional
    /// port; /private behind a name allows its addresses in private networks, too; may be repeated
    #[arg(long, value_name = "HOST[:PORT]")]
    pub allow: Vec<String>,
    /// Forward a port of the host to a port of the sandbox, as in 8080:80; HOSTADDRESS is 127.0.0.1
    /// by default
    #[arg(short, long, value_name = "[HOSTADDRESS:]HOSTPORT:PORT", value_parser = Published::parse)]
    pub publish: Vec<Published>,
    /// Choose who makes the mounts: the host, or lind-boot itself where the host permits none
    /// [default: auto]
    #[arg(long, value_name = "HOW")]
    pub mounts: Option<How>,
    /// Mount every volume read-only
    #[arg(long)]
    pub read_only: bool,
    /// Use this policy: agent, build, readonly or untrusted, the name of a file in
    /// ~/.config/lind/policies, or a path [default: agent]
    #[arg(long, value_name = "NAME|FILE")]
    pub policy: Option<String>,
    /// Allow files of this name to be created and changed although the policy protects the name in
    /// every directory; `*` and `?` match as in a shell
    #[arg(long, value_name = "NAME")]
    pub allow_name: Vec<String>,
    /// The limits.
    #[command(flatten)]
    pub amounts: Amounts,
    /// Kill all programs after this time, such as 10s or 2m, and exit with status 124
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Start this grate between the policy and the command, with its options quoted as in a shell;
    /// may be repeated, and the last sees the command's calls first
    #[arg(long, value_name = "'NAME [OPTIONS]'")]
    pub grate: Vec<String>,
    /// Look for the grates of --grate in DIR before lind-boot's own directory; may be repeated
    #[arg(long, value_name = "DIR")]
    pub grates: Vec<PathBuf>,
    /// Write a tamper-evident log of all system calls to a new file; `lind-boot audit verify`
    /// checks it
    #[arg(long, value_name = "FILE")]
    pub audit: Option<PathBuf>,
    /// Write a JSON object for each denied call, to a file or an open file descriptor
    #[arg(long, value_name = "FILE|FD")]
    pub denials: Option<PathBuf>,
    /// Write a JSON object at the end: status, signal, times, the limit that ended the run, the
    /// number of denials
    #[arg(long, value_name = "FILE|FD")]
    pub result: Option<PathBuf>,
    /// Let a call that would be denied wait for an answer, so long at most [default: 60s];
    /// `lind-boot session denials --follow` asks, and `session answer` answers
    #[arg(long, value_name = "TIME", value_parser = duration, num_args = 0..=1, require_equals = true, default_missing_value = "60s")]
    pub ask: Option<Duration>,
    /// Print which walls confine the command, and how it ended
    #[arg(long)]
    pub verbose: bool,
    /// Put an overlay on every volume that could be changed, with its state in this directory (for
    /// --dry-run)
    #[arg(long, hide = true)]
    pub overlay_all: Option<PathBuf>,
}

/// The ways to make mounts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum How {
    /// The host if it permits mounts, else lind-boot
    #[default]
    Auto,
    /// The host
    Bind,
    /// lind-boot's kernel, which resolves each path itself
    Kernel,
}

/// The networks that programs may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// No network
    None,
    /// The host's network
    Host,
}

/// Parses a time: a number with a unit (ms, s, m, h), or seconds without one.
///
/// # Errors
/// The form that a time must have.
pub fn duration(text: &str) -> Result<Duration, String> {
    match Kind::Time.parse(text)?.number {
        0 => Err("must be more than 0".into()),
        nanoseconds => Ok(Duration::from_nanos(nanoseconds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("3m"), Ok(Duration::from_secs(180)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        for wrong in ["", "s", "0", "1d", "-1", "1.s", "18446744073709551615h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
