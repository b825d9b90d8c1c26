//! The command line: clap's structs, and nothing else.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand, ValueEnum};

use lind_kernel::stdio;
use lind_kernel::text::{is_seen, shown};

use crate::overlay::options as overlay;
use crate::{audit, cache, doctor, sandbox, session};

/// Run a WebAssembly program in a cage, behind any number of grates.
///
/// Write the grates first: each starts the next program on the line, and the grate next to the
/// program sees its system calls first. A name that ends in _grate is a grate of lind-boot. Any
/// other name is a program in the root: it is tried as given, then with .cwasm and .wasm, then the
/// same in /bin. Files that a grate's options name are files of the host; root:PATH is a file
/// inside the root.
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
    /// The command, if the line begins with one.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of a run without a command.
    #[command(flatten)]
    pub run: Run,
}

impl Cli {
    /// Parses the command line of this process.
    ///
    /// # Errors
    /// A mistake in the line, or the text of --help or --version.
    pub fn of_process() -> Result<Cli, clap::Error> {
        let words = std::env::args_os().collect::<Vec<_>>();
        Cli::alone(&words).map_or_else(|| Cli::try_parse_from(words), Ok)
    }

    /// Parses a line that runs a program, with a parser of the options of a run alone: building the
    /// parser of all commands takes as long as building a sandbox. Returns None if the line needs
    /// the large parser, even if only to report a mistake.
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

/// The command of lind-boot with the name most similar to `word`.
pub fn nearest_command(word: &str) -> Option<String> {
    let commands = Command::augment_subcommands(clap::Command::new("lind-boot")).subcommand_required(true);
    let error = commands.try_get_matches_from(["lind-boot", word]).err()?;
    match error.get(ContextKind::SuggestedSubcommand)? {
        ContextValue::Strings(names) => names.first().cloned(),
        ContextValue::String(name) => Some(name.clone()),
        _ => None,
    }
}

/// Whether the unknown option of `error` is one of `run`, and the line does not begin with `run`.
fn is_of_run(error: &clap::Error) -> bool {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return false };
    let options = sandbox::RunOptions::augment_args(clap::Command::new("run"));
    let named = word.strip_prefix("--").map(|word| word.split(['=', ' ']).next().unwrap_or(word));
    let short = word.strip_prefix('-').and_then(|word| word.chars().next());
    let is_run = std::env::args_os().nth(1).is_some_and(|first| Command::is_name(&first));
    let mut all = options.get_arguments();
    !is_run && all.any(|option| named.map_or(option.get_short() == short, |name| option.get_long() == Some(name)))
}

/// Prints a mistake in the command line, or the help. Words of the line may be names that a guest
/// has chosen.
pub fn print_error(error: &clap::Error) {
    let words: Vec<OsString> = std::env::args_os().collect();
    if words.iter().all(|word| word.to_str().is_some_and(|word| word.chars().all(is_seen))) {
        let _ = error.print();
        if is_of_run(error) {
            stdio::say_line("this is an option of `lind-boot run`; write `lind-boot run ...`");
        }
        return;
    }
    // The same mistake, with unprintable characters escaped.
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

/// A parser of one set of options.
#[derive(Parser, Debug)]
#[command(version)]
struct Alone<T: Args> {
    /// The options.
    #[command(flatten)]
    options: T,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a command in a sandbox: with the directories that you mount, without network, within
    /// limits
    Run(Box<sandbox::RunOptions>),
    /// Run a command in a sandbox, and write a policy that allows what it did and nothing more
    Learn(Box<sandbox::LearnOptions>),
    /// Start, use and stop sandboxes that run many commands
    #[command(subcommand)]
    Session(session::Command),
    /// Show what changed in an overlay
    Diff(overlay::Diff),
    /// Apply the changes of an overlay to the directory below it
    Apply(overlay::Apply),
    /// Throw away changes of an overlay
    Discard(overlay::Paths),
    /// Show which command changed what in an overlay, and when
    Log(overlay::Log),
    /// Write all files that an overlay shows to a directory or a tar file
    Export(overlay::Export),
    /// Give the present contents of an overlay a name
    Snapshot(overlay::Named),
    /// Return an overlay to the contents of a snapshot
    Rollback(overlay::Named),
    /// Create another head of an overlay: a copy of its contents that changes separately
    Fork(overlay::Named),
    /// List and remove the states of overlays
    #[command(subcommand)]
    Overlay(overlay::Overlay),
    /// Verify logs that --audit has written
    #[command(subcommand)]
    Audit(audit::Command),
    /// Compile a module ahead of time, for this user on this machine
    Compile(Compile),
    /// Show where each system call of a program behind these grates would go; runs nothing
    Explain(Explain),
    /// Show what a .wasm or .cwasm file is: program or grate, its imports, the calls it declares to
    /// handle
    Inspect(Inspect),
    /// Check whether the sandbox holds what it promises on this host, and say what to do if not
    Doctor(doctor::Doctor),
    /// Compile programs before they run, and keep the code in the cache
    Warm(cache::Warm),
    /// List and clean the cache of compiled code
    #[command(subcommand)]
    Cache(cache::Command),
    /// List the system calls, with those that are missing
    Syscalls(Syscalls),
    /// Remove a directory when standard input ends
    #[command(hide = true)]
    RemoveAtEnd(sandbox::RemoveAtEnd),
}

impl Command {
    /// Whether this process runs guests, or passes signals on to a guest in another process.
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

    /// The command as a verb on the state of an overlay, if it is one.
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
    /// The module to compile
    pub file: PathBuf,
    /// Write the result to FILE [default: beside the module]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Options of `explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// Use DIR as the guest's root directory [default: $LIND_ROOT, or the image that came with
    /// lind-boot]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Start the grates listed in a TOML file, before those on the line
    #[arg(long, value_name = "FILE")]
    pub stack: Option<PathBuf>,
    /// Look for grates in DIR before lind-boot's own directory; may be repeated
    #[arg(long, value_name = "DIR")]
    pub grates: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The grates with their options, and the program
    #[arg(required = true, value_name = "PROGRAM", trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<String>,
}

/// Options of `inspect`.
#[derive(Args, Debug)]
pub struct Inspect {
    /// Look for programs in the root DIR [default: $LIND_ROOT, or the image that came with
    /// lind-boot]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Files, or names of grates and programs
    #[arg(required = true, value_name = "FILE|PROGRAM")]
    pub files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `syscalls`.
#[derive(Args, Debug)]
pub struct Syscalls {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const CWD: &str = "/";
const MEMORY: u64 = 4096;
const FILES: u64 = 1024;

/// Options of a run.
#[derive(Args, Debug)]
pub struct Run {
    /// Use DIR as the guest's root directory [default: $LIND_ROOT, or the image that came with
    /// lind-boot]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Set a variable in the guest's environment; without =VALUE, pass on its value
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Start in DIR, a path inside the root
    #[arg(long, value_name = "DIR", default_value = CWD)]
    pub cwd: OsString,
    /// Print at exit how often each system call was made and how long it took, per cage and route
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, default_missing_value = "text", require_equals = true)]
    pub perf: Option<PerfFormat>,
    /// Print the functions on the stack when a program traps
    #[arg(long)]
    pub backtrace: bool,
    /// Print which walls confine the guest, what is compiled, and how the program ended
    #[arg(long)]
    pub verbose: bool,
    /// Refuse to run unless every wall is up
    #[arg(long)]
    pub require_confinement: bool,
    /// Limit the memory that each cage may map, in MiB
    #[arg(long, value_name = "MIB", default_value_t = MEMORY, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub memory: u64,
    /// Limit the file descriptors that each cage may have
    #[arg(long, value_name = "COUNT", default_value_t = FILES, value_parser = clap::value_parser!(u64).range(3..=65536))]
    pub files: u64,
    /// Start the grates listed in a TOML file, before those on the line
    #[arg(long, value_name = "FILE")]
    pub stack: Option<PathBuf>,
    /// Look for grates in DIR, outside the root, before lind-boot's own directory; may be repeated
    #[arg(long, value_name = "DIR")]
    pub grates: Vec<PathBuf>,
    /// Print, as JSON, what the grate would do with these options. Starts no program; the grate
    /// gets read-only access
    #[arg(long, hide = true)]
    pub explain: bool,
    /// Compile a module; the same as the command `compile`
    #[arg(long, value_name = "FILE.wasm", conflicts_with = "program")]
    pub precompile: Option<PathBuf>,
    /// Directories of the host that are mounted in the root, and whether the guest may change them.
    #[arg(skip)]
    pub mounted: Vec<(PathBuf, bool)>,
    /// The guest's paths of those that it may change.
    #[arg(skip)]
    pub volumes: Vec<PathBuf>,
    /// The position of the command's name on the line, behind the grates.
    #[arg(skip)]
    pub command: Option<usize>,
    /// Modules that are compiled meanwhile, for commands to come.
    #[arg(skip)]
    pub ahead: Vec<PathBuf>,
    /// The guest's directories in which a grate may show other files than the kernel sees.
    #[arg(skip)]
    pub in_grates: Vec<PathBuf>,
    /// The number of descriptors behind the standard ones that the program gets.
    #[arg(skip)]
    pub preserved: u32,
    /// The host name that guests see, if not the host's own.
    #[arg(skip)]
    pub host_name: Option<String>,
    /// The image whose entries are mounted in the root, if the root is not that directory itself.
    #[arg(skip)]
    pub image: Option<PathBuf>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    pub program: Vec<OsString>,
}

impl Default for Run {
    /// No options, and no program.
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
            preserved: 0,
            host_name: None,
            image: None,
            command: None,
            ahead: Vec::new(),
            in_grates: Vec::new(),
            program: Vec::new(),
        }
    }
}

/// The formats of --perf.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PerfFormat {
    /// A table
    Text,
    /// One JSON array
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
