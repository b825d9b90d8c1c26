//! The command line, parsed and nothing else.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand, ValueEnum};

use lind_kernel::stdio;
use lind_kernel::text::{is_seen, shown};

use crate::overlay::options as overlay;
use crate::{audit, cache, doctor, sandbox, session};

/// Runs a WebAssembly program in a cage, behind any number of grates.
///
/// Name grates first: each starts the next program of the line, and the one nearest to the program sees its system
/// calls first. A name that ends in _grate is one of the grates beside lind-boot; another is a program of the root: tried as given, then with .cwasm and
/// .wasm, then the same in /bin. Files that a grate's options name are yours; root:PATH is one inside the root.
#[derive(Parser, Debug)]
#[command(
    name = "lind-boot",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    subcommand_precedence_over_arg = true,
    override_usage = "lind-boot run [OPTIONS] [--] COMMAND [ARGS]...\n       lind-boot [OPTIONS] PROGRAM [ARGS]...\n       lind-boot session start|exec|ls|logs|signal|stop ...\n       lind-boot diff|apply|discard|log|export|snapshot|rollback|fork STATE ...\n       lind-boot overlay ls|rm ...\n       lind-boot audit verify FILE ...\n       lind-boot compile FILE.wasm [-o FILE.cwasm]\n       lind-boot inspect FILE|PROGRAM... [--json]\n       lind-boot doctor [--json]\n       lind-boot warm PROGRAM|DIR...\n       lind-boot cache ls|clean ...\n       lind-boot explain [OPTIONS] GRATE... PROGRAM\n       lind-boot syscalls [--json]",
    after_help = "Exit status: the program's own; 128+n if signal n ended it; 125 if lind-boot failed; 126 if the program \
                  cannot be run; 127 if it was not found."
)]
pub struct Cli {
    /// What to do instead of running a program.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How to run.
    #[command(flatten)]
    pub run: Run,
}

impl Cli {
    /// The command line of this process.
    ///
    /// # Errors
    /// What is wrong with it, or what was asked for instead, such as the help.
    pub fn of_process() -> Result<Cli, clap::Error> {
        let words = std::env::args_os().collect::<Vec<_>>();
        Cli::alone(&words).map_or_else(|| Cli::try_parse_from(words), Ok)
    }

    /// A line that runs something, by a parser of its options alone: one of all commands takes as long to make as a sandbox.
    /// None if the line needs that one, be it to say what is wrong.
    fn alone(words: &[OsString]) -> Option<Cli> {
        let (name, rest) = words.split_first()?;
        let (first, rest) = rest.split_first()?;
        if first == "run" {
            let line = Alone::<sandbox::RunOptions>::try_parse_from([name].into_iter().chain(rest));
            return line.ok().map(|line| Cli::from(line.options));
        }
        if Command::is_name(first) {
            return None;
        }
        let run = Alone::<Run>::try_parse_from(words).ok()?.options;
        (!run.program.first().is_some_and(Command::is_name)).then(|| Cli::from(run))
    }
}

/// The command of lind-boot whose name is much like this word.
pub fn nearest_command(word: &str) -> Option<String> {
    let commands = Command::augment_subcommands(clap::Command::new("lind-boot")).subcommand_required(true);
    let error = commands.try_get_matches_from(["lind-boot", word]).err()?;
    match error.get(ContextKind::SuggestedSubcommand)? {
        ContextValue::Strings(names) => names.first().cloned(),
        ContextValue::String(name) => Some(name.clone()),
        _ => None,
    }
}

/// Whether `run` has the option that `error` says is unknown: of a line that begins without `run`.
fn is_of_run(error: &clap::Error) -> bool {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return false };
    let options = sandbox::RunOptions::augment_args(clap::Command::new("run"));
    let named = word.strip_prefix("--").map(|word| word.split(['=', ' ']).next().unwrap_or(word));
    let short = word.strip_prefix('-').and_then(|word| word.chars().next());
    let is_run = std::env::args_os().nth(1).is_some_and(|first| Command::is_name(&first));
    let mut all = options.get_arguments();
    !is_run && all.any(|option| named.map_or(option.get_short() == short, |name| option.get_long() == Some(name)))
}

/// Prints what is wrong with the command line, or the help. Words of it may be names that a guest has chosen.
pub fn print_error(error: &clap::Error) {
    let words: Vec<OsString> = std::env::args_os().collect();
    if words.iter().all(|word| word.to_str().is_some_and(|word| word.chars().all(is_seen))) {
        let _ = error.print();
        if is_of_run(error) {
            stdio::say_line("it is an option of `lind-boot run`");
        }
        return;
    }
    // The same mistake, with words that are fit to be shown.
    let again = Cli::try_parse_from(words.iter().map(|word| OsString::from(shown(word.as_bytes())))).err();
    stdio::say(&again.as_ref().unwrap_or(error).to_string());
}

impl From<Run> for Cli {
    fn from(run: Run) -> Cli {
        Cli { command: None, run }
    }
}

impl From<sandbox::RunOptions> for Cli {
    fn from(run: sandbox::RunOptions) -> Cli {
        Cli { command: Some(Command::Run(Box::new(run))), run: Run::default() }
    }
}

/// One kind of line.
#[derive(Parser, Debug)]
#[command(version)]
struct Alone<T: Args> {
    /// How to run.
    #[command(flatten)]
    options: T,
}

/// What does not run a program.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Runs a command in a sandbox: on directories of the host that are named, without network, within limits
    Run(Box<sandbox::RunOptions>),
    /// Runs a command in a sandbox and writes the policy under which it may do the same again
    Learn(Box<sandbox::LearnOptions>),
    /// Keeps a sandbox for many commands
    #[command(subcommand)]
    Session(session::Command),
    /// Says what was changed in an overlay
    Diff(overlay::Diff),
    /// Changes the directory below an overlay as the overlay is changed
    Apply(overlay::Apply),
    /// Throws changes of an overlay away
    Discard(overlay::Paths),
    /// Says which command changed what in an overlay, and when
    Log(overlay::One),
    /// Writes all that an overlay shows to a directory or a tar file
    Export(overlay::Export),
    /// Gives what an overlay shows a name
    Snapshot(overlay::Named),
    /// Makes an overlay show what it did at a snapshot
    Rollback(overlay::Named),
    /// Makes another head of an overlay, which shows the same and is changed by itself
    Fork(overlay::Named),
    /// The states of overlays
    #[command(subcommand)]
    Overlay(overlay::Overlay),
    /// Logs of --audit
    #[command(subcommand)]
    Audit(audit::Command),
    /// Compiles a module ahead of time, for this user on this machine
    Compile(Compile),
    /// Says where each system call of a program behind these grates would go, and runs nothing
    Explain(Explain),
    /// Says what a .wasm or .cwasm is: program or grate, what it imports, which calls it declares to handle
    Inspect(Inspect),
    /// Says whether what is promised of a sandbox holds on this host, and what to do where it does not
    Doctor(doctor::Doctor),
    /// Compiles programs before they are run, and keeps the code in the cache
    Warm(cache::Warm),
    /// What is kept of compiled code
    #[command(subcommand)]
    Cache(cache::Command),
    /// Lists the system calls: which there are, and what is not supported
    Syscalls(Syscalls),
    /// Removes a directory when standard input ends
    #[command(hide = true)]
    RemoveAtEnd(sandbox::RemoveAtEnd),
}

impl Command {
    /// Whether guests run in this process, or its signals are for some in another.
    pub fn runs(&self) -> bool {
        matches!(
            self,
            Command::Run(_)
                | Command::Learn(_)
                | Command::Audit(_)
                | Command::Session(session::Command::Serve(_) | session::Command::Exec(_))
                | Command::Overlay(overlay::Overlay::Ls { state: Some(_) })
        ) || self.verb().is_some()
    }

    /// The command as one on the state of an overlay, if it is one.
    pub fn verb(&self) -> Option<overlay::Verb<'_>> {
        Some(match self {
            Command::Diff(options) => overlay::Verb::Diff(options),
            Command::Apply(options) => overlay::Verb::Apply(options),
            Command::Discard(options) => overlay::Verb::Discard(options),
            Command::Log(options) => overlay::Verb::Log(options),
            Command::Export(options) => overlay::Verb::Export(options),
            Command::Snapshot(options) => overlay::Verb::Snapshot(options),
            Command::Rollback(options) => overlay::Verb::Rollback(options),
            Command::Fork(options) => overlay::Verb::Fork(options),
            _ => return None,
        })
    }

    fn is_name(word: &OsString) -> bool {
        word.to_str().is_some_and(Command::has_subcommand)
    }
}

/// Options of `compile`.
#[derive(Args, Debug)]
pub struct Compile {
    /// The module
    pub file: PathBuf,
    /// Where the result goes [default: beside the module]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Options of `explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// The guest's root directory [default: $LIND_ROOT, or lindfs of the source tree]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Grates from a TOML file, before those that are named
    #[arg(long, value_name = "FILE")]
    pub stack: Option<PathBuf>,
    /// A directory of grates, before the one of lind-boot; may be repeated
    #[arg(long, value_name = "DIR")]
    pub grates: Vec<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Grates with their options, and the program
    #[arg(required = true, value_name = "PROGRAM", trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<String>,
}

/// Options of `inspect`.
#[derive(Args, Debug)]
pub struct Inspect {
    /// The directory with the tools, for names [default: the checkout's or installed one]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Files, or names of grates and of programs
    #[arg(required = true, value_name = "FILE|PROGRAM")]
    pub files: Vec<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `syscalls`.
#[derive(Args, Debug)]
pub struct Syscalls {
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

const CWD: &str = "/";
const MEMORY: u64 = 4096;
const FILES: u64 = 1024;

/// Options of a run.
#[derive(Args, Debug)]
pub struct Run {
    /// The guest's root directory [default: $LIND_ROOT, or lindfs of the source tree]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Sets a variable of the guest's environment, or passes ours on
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// The guest's working directory, a path inside the root
    #[arg(long, value_name = "DIR", default_value = CWD)]
    pub cwd: OsString,
    /// At exit prints how often and how long each system call took, per cage and route
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, default_missing_value = "text", require_equals = true)]
    pub perf: Option<PerfFormat>,
    /// When a program traps, prints the functions it was in
    #[arg(long)]
    pub backtrace: bool,
    /// Says what keeps the guest inside, and what else happens at the start
    #[arg(long)]
    pub verbose: bool,
    /// Refuses to run unless every wall is up
    #[arg(long)]
    pub require_confinement: bool,
    /// The most memory each cage may map, in MiB
    #[arg(long, value_name = "MIB", default_value_t = MEMORY, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub memory: u64,
    /// The most file descriptors each cage may have
    #[arg(long, value_name = "COUNT", default_value_t = FILES, value_parser = clap::value_parser!(u64).range(3..=65536))]
    pub files: u64,
    /// Grates from a TOML file, before those that are named
    #[arg(long, value_name = "FILE")]
    pub stack: Option<PathBuf>,
    /// A directory of grates, outside the root, before the one of lind-boot; may be repeated
    #[arg(long, value_name = "DIR")]
    pub grates: Vec<PathBuf>,
    /// What a grate would do with the options behind its name, as JSON and in its own words. Nothing is run behind it, and it can only read
    #[arg(long, hide = true)]
    pub explain: bool,
    /// Same as the command compile
    #[arg(long, value_name = "FILE.wasm", conflicts_with = "program")]
    pub precompile: Option<PathBuf>,
    /// Directories of the host that are mounted in the root, and whether the guest may change them.
    #[arg(skip)]
    pub mounted: Vec<(PathBuf, bool)>,
    /// Where the guest sees those that it may change.
    #[arg(skip)]
    pub volumes: Vec<PathBuf>,
    /// Which word is the command behind the grates.
    #[arg(skip)]
    pub command: Option<usize>,
    /// Where grates show other files than the kernel sees.
    #[arg(skip)]
    pub in_grates: Vec<PathBuf>,
    /// What the host is called, if not as it is.
    #[arg(skip)]
    pub host_name: Option<String>,
    /// The directory whose entries are in the root, where that is another.
    #[arg(skip)]
    pub image: Option<PathBuf>,
    /// The program, and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    pub program: Vec<OsString>,
}

impl Default for Run {
    /// Without options, and without a program.
    fn default() -> Run {
        Run {
            root: None,
            env: Vec::new(),
            cwd: CWD.into(),
            perf: None,
            backtrace: false,
            verbose: false,
            require_confinement: false,
            memory: MEMORY,
            files: FILES,
            stack: None,
            grates: Vec::new(),
            explain: false,
            precompile: None,
            mounted: Vec::new(),
            volumes: Vec::new(),
            host_name: None,
            image: None,
            command: None,
            in_grates: Vec::new(),
            program: Vec::new(),
        }
    }
}

/// How --perf prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PerfFormat {
    /// A table for people
    Text,
    /// For programs
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn arguments_after_the_program_are_its_own() {
        let cli = Cli::parse_from(["lind-boot", "--cwd", "/tmp", "app", "--root", "x", "-v"]);
        assert_eq!(cli.run.program, ["app", "--root", "x", "-v"]);
        assert!(cli.run.root.is_none() && !cli.run.verbose);
    }

    #[test]
    fn a_command_is_recognised_only_in_front() {
        assert!(matches!(Cli::parse_from(["lind-boot", "syscalls", "--json"]).command, Some(Command::Syscalls(_))));
        let cli = Cli::parse_from(["lind-boot", "app", "syscalls"]);
        assert!(cli.command.is_none());
        assert_eq!(cli.run.program, ["app", "syscalls"]);
    }

    #[test]
    fn a_parser_of_one_kind_says_what_the_whole_one_does() {
        let lines: [&[&str]; 18] = [
            &["app"],
            &[""],
            &["app", "--root", "x", "--", "-v"],
            &["./compile", "syscalls"],
            &["namespace_grate", "--prefix", "/tmp", "%{", "imfs_grate", "%}", "app"],
            &["app", "--help"],
            &["app", "--"],
            &["run", "--", "app", "--", "-w"],
            &["run", "--image", "lindfs", "--network=none", "-v", "x:/y:ro", "--", "app", "-v"],
            &["run", "-w", "a", "--memory", "1G", "--timeout=2m", "--explain", "--json", "app"],
            &["run", "-vx", "app", "--help"],
            &["run", "--session", "s", "app"],
            &["--root", "r", "--cwd=/x", "-e", "A=b", "app", "--root", "other"],
            &["--verbose", "--backtrace", "--perf=json", "--memory", "64", "app", "run"],
            &["--precompile", "app.wasm"],
            &["--verbose"],
            &["--stack", "s.toml", "--grates", "a", "--grates", "b", "./run"],
            &["--", "app", "-v"],
        ];
        for line in lines {
            let words = ["lind-boot"].iter().chain(line).map(OsString::from).collect::<Vec<_>>();
            let alone = Cli::alone(&words).unwrap_or_else(|| panic!("{line:?} needs no other parser"));
            assert_eq!(format!("{alone:?}"), format!("{:?}", Cli::parse_from(&words)), "{line:?}");
        }
    }

    #[test]
    fn what_is_wrong_the_whole_parser_says() {
        let commands = Cli::command();
        let names = commands.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>();
        for word in names.into_iter().filter(|name| *name != "run") {
            assert!(Cli::alone(&["lind-boot".into(), word.into(), "app".into()]).is_none(), "{word}");
        }
        let lines: [&[&str]; 13] = [
            &[],
            &["--help"],
            &["--version"],
            &["run"],
            &["run", "--"],
            &["run", "--help"],
            &["run", "--json", "app"],
            &["run", "-w", "a", "-w", "b", "app"],
            &["--memory", "0", "app"],
            &["--precompile", "a.wasm", "app"],
            &["--root", "r", "run", "app"],
            &["--", "syscalls"],
            &["warm", "app"],
        ];
        for line in lines {
            let words = ["lind-boot"].iter().chain(line).map(OsString::from).collect::<Vec<_>>();
            assert!(Cli::alone(&words).is_none(), "{line:?}");
        }
    }

    #[test]
    fn the_nearest_is_named() {
        assert_eq!(nearest_command("rum").as_deref(), Some("run"));
        assert_eq!(nearest_command("sesion").as_deref(), Some("session"));
        for word in ["zebra", "", "-v"] {
            assert_eq!(nearest_command(word), None, "{word}");
        }
        let lines: [(&[&str], &str); 5] = [
            (&["run", "--memroy", "5M", "app"], "--memory"),
            (&["run", "--denial=x", "app"], "--denials"),
            (&["learn", "-o", "x", "--volum", ".", "app"], "--volume"),
            (&["session", "exec", "s", "--timeuot", "5s", "app"], "--timeout"),
            (&["--verbos", "app"], "--verbose"),
        ];
        for (line, nearest) in lines {
            let words = ["lind-boot"].iter().chain(line);
            assert!(Cli::alone(&words.clone().map(OsString::from).collect::<Vec<_>>()).is_none(), "{line:?}");
            let said = Cli::try_parse_from(words).unwrap_err().to_string();
            assert!(said.contains(&format!("'{nearest}'")), "{said}");
        }
        for line in [&["session", "exec", "s", "-v", "."][..], &["-v", "app"]] {
            let said = Cli::try_parse_from(["lind-boot"].iter().chain(line)).unwrap_err().to_string();
            assert!(said.contains("unexpected argument '-v'"), "{said}");
        }
    }

    #[test]
    fn perf_takes_its_format_only_by_equals() {
        let cli = Cli::parse_from(["lind-boot", "--perf", "app"]);
        assert_eq!((cli.run.perf, cli.run.program.len()), (Some(PerfFormat::Text), 1));
        assert_eq!(Cli::parse_from(["lind-boot", "--perf=json", "app"]).run.perf, Some(PerfFormat::Json));
    }
}
