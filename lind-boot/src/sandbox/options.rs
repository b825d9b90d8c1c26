//! The command line of `lind-boot run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::amount::Kind;
use super::publish::Published;

/// Options of `run`, and the command.
#[derive(Args, Debug, Default)]
pub struct RunOptions {
    /// What the sandbox is.
    #[command(flatten)]
    pub options: Options,
    /// Runs it in a session that `lind-boot session start` has started
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Writes a policy under which the same may be done again, and nothing more; adds to one that is there. NAME is a file in ~/.config/lind/policies
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["session", "explain"])]
    pub learn: Option<PathBuf>,
    /// Changes nothing: says at the end what would have been changed
    #[arg(long, conflicts_with_all = ["session", "explain"])]
    pub dry_run: bool,
    /// As it is without: the command has our standard input and our terminal
    #[arg(short, long)]
    pub interactive: bool,
    /// As it is without
    #[arg(short, long)]
    pub tty: bool,
    /// Says what is mounted, what may be done and which grates see to it, and runs nothing
    #[arg(long)]
    pub explain: bool,
    /// With --explain: as JSON
    #[arg(long, requires = "explain")]
    pub json: bool,
    /// The command: a name in the image, or a path of the host to a .wasm or .cwasm
    #[arg(required = true, value_name = "COMMAND", trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// Options of `learn`: it is `run --learn`.
#[derive(Args, Debug)]
pub struct LearnOptions {
    /// The policy; one that is there already is added to. NAME is a file in ~/.config/lind/policies
    #[arg(short, long, value_name = "NAME|FILE")]
    output: PathBuf,
    /// What the sandbox is.
    #[command(flatten)]
    options: Options,
    /// The command, as for run
    #[arg(required = true, value_name = "COMMAND", trailing_var_arg = true)]
    command: Vec<OsString>,
}

impl From<LearnOptions> for RunOptions {
    fn from(learn: LearnOptions) -> RunOptions {
        let LearnOptions { output, options, command } = learn;
        RunOptions { options, learn: Some(output), command, ..RunOptions::default() }
    }
}

/// What all programs together may use.
#[derive(Args, Debug, Default, Clone)]
pub struct Amounts {
    /// Memory of all programs together: 64M, 2G
    #[arg(long, value_name = "SIZE", value_parser = |text: &str| Kind::Bytes.typed(text))]
    pub memory: Option<String>,
    /// Processor time of all programs together: 10s, 2m
    #[arg(long, value_name = "TIME", value_parser = |text: &str| Kind::Time.plain(text))]
    pub cpu: Option<String>,
    /// Processes at a time
    #[arg(long, value_name = "COUNT", value_parser = |text: &str| Kind::Count.plain(text))]
    pub cages: Option<String>,
    /// Open files at a time
    #[arg(long, value_name = "COUNT", value_parser = |text: &str| Kind::Count.plain(text))]
    pub files: Option<String>,
    /// Bytes written to files: 100M
    #[arg(long, value_name = "SIZE", value_parser = |text: &str| Kind::Bytes.typed(text))]
    pub disk: Option<String>,
}

impl Amounts {
    /// The amount of a limit.
    pub fn named(&self, limit: &str) -> Option<&str> {
        match limit {
            "memory" => self.memory.as_deref(),
            "cpu" => self.cpu.as_deref(),
            "cages" => self.cages.as_deref(),
            "files" => self.files.as_deref(),
            "disk" => self.disk.as_deref(),
            _ => None,
        }
    }
}

/// A host name as sethostname(2) takes it, of letters that tools print as they are.
fn host_name(text: &str) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if text.is_empty() || text.len() > 64 || !text.bytes().all(allowed) {
        return Err("must be 1 to 64 letters, digits, dots and dashes".to_owned());
    }
    Ok(text.to_owned())
}

/// What a sandbox is.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// A directory or file of the host, at the same path or at GUEST; it can be changed unless `ro` stands behind. With `overlay` the directory stays as
    /// it is, and what is changed is kept in a state, to be looked at (lind-boot diff), applied or thrown away: a file, or a directory if STATE ends with /
    #[arg(short, long, value_name = "HOST[:GUEST][:ro|rw|overlay[=STATE]]")]
    pub volume: Vec<OsString>,
    /// The same for a program of WASI, which finds it under the name given: HOST, or GUEST, which begins with /
    #[arg(long, value_name = "HOST[::GUEST]")]
    pub dir: Vec<OsString>,
    /// Where the command starts [default: the current directory if it is in a volume, else the home directory]
    #[arg(short, long, value_name = "DIR")]
    pub workdir: Option<PathBuf>,
    /// What the host is called [default: sandbox]
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    pub hostname: Option<String>,
    /// An empty directory in memory
    #[arg(long, value_name = "PATH[:SIZE]")]
    pub tmpfs: Vec<String>,
    /// The directory with the tools, read-only [default: $LIND_ROOT, or the one that came with lind-boot]
    #[arg(long, value_name = "DIR")]
    pub image: Option<PathBuf>,
    /// Sets a variable of the environment, or passes ours on
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Variables from a file, one NAME=VALUE a line
    #[arg(long, value_name = "FILE")]
    pub env_file: Vec<PathBuf>,
    /// Whether the host's network may be used [default: none]
    #[arg(long, value_name = "WHICH")]
    pub network: Option<Network>,
    /// A host that may be reached, and no other: NAME or ADDRESS[/BITS], with a port behind a colon
    #[arg(long, value_name = "HOST[:PORT]")]
    pub allow: Vec<String>,
    /// A port of the host that leads to a port of the sandbox: 8080:80; HOSTADDRESS is 127.0.0.1 if left out
    #[arg(short, long, value_name = "[HOSTADDRESS:]HOSTPORT:PORT", value_parser = Published::parse)]
    pub publish: Vec<Published>,
    /// Who makes the mounts: the host (bind), or lind-boot itself where the host permits none [default: auto]
    #[arg(long, value_name = "WHO")]
    pub mounts: Option<How>,
    /// Mounts every volume read-only
    #[arg(long)]
    pub read_only: bool,
    /// What a policy file says: one in ~/.config/lind/policies, or agent, build, readonly, untrusted, which come with lind-boot [default: agent]
    #[arg(long, value_name = "NAME|FILE")]
    pub policy: Option<String>,
    /// Lets files of this name be made and changed that the policy protects in any directory; `*` and `?` are as in a shell
    #[arg(long, value_name = "NAME")]
    pub allow_name: Vec<String>,
    /// Limits.
    #[command(flatten)]
    pub amounts: Amounts,
    /// Ends everything after this time, with status 124: 10s, 2m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// A grate between the policy and the command, with its options as in a shell; may be repeated, the last sees the command's calls first
    #[arg(long, value_name = "'NAME [OPTIONS]'")]
    pub grate: Vec<String>,
    /// A directory of grates for --grate, before the one of lind-boot; may be repeated
    #[arg(long, value_name = "DIR")]
    pub grates: Vec<PathBuf>,
    /// Writes a log of all calls that nobody can change unnoticed
    #[arg(long, value_name = "FILE")]
    pub audit: Option<PathBuf>,
    /// Writes a JSON object for each thing that was denied, to a file or an open one's number
    #[arg(long, value_name = "FILE|FD")]
    pub denials: Option<PathBuf>,
    /// At the end writes a JSON object: status, signal, times, which limit ended it, how much was denied
    #[arg(long, value_name = "FILE|FD")]
    pub result: Option<PathBuf>,
    /// Says what keeps the command inside, and how it ended
    #[arg(long)]
    pub verbose: bool,
    /// Of --dry-run: where the states of overlays on all volumes go that could be changed
    #[arg(long, hide = true)]
    pub overlay_all: Option<PathBuf>,
}

/// How mounts are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum How {
    /// By the host if it permits it
    #[default]
    Auto,
    /// By the host
    Bind,
    /// By lind-boot's kernel, which walks each path itself
    Kernel,
}

/// Which network there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Network {
    /// None
    None,
    /// The host's
    Host,
}

/// A number with a unit: ms, s, m, h. Without one, seconds.
///
/// # Errors
/// What is expected.
pub fn duration(text: &str) -> Result<Duration, String> {
    match Kind::Time.parse(text) {
        Some(0) => Err("must be more than nothing".into()),
        Some(nanoseconds) => Ok(Duration::from_nanos(nanoseconds)),
        None => Err(Kind::Time.expected().into()),
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
