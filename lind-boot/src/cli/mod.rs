//! The command line: clap's structs, and nothing else.
//!
//! The first word decides: if it is the name of a command, the rest is parsed with that command's
//! own struct; any other line starts grates and a program. Building the parsers of all commands
//! would take as long as building a sandbox.

pub mod audit;
pub mod cache;
pub mod container;
pub mod doctor;
pub mod image;
pub mod import;
pub mod overlay;
pub mod policy;
pub mod publish;
pub mod replay;
pub mod run;
pub mod sandbox;
pub mod session;
pub mod states;
pub mod tools;
pub mod verbs;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use lind_kernel::stdio;
use lind_kernel::text::{is_seen, shown};

pub use run::{PerfFormat, Run};

/// The name of this program in messages.
const NAME: &str = "lind-boot";

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
    override_usage = "lind-boot run [OPTIONS] [--] COMMAND [ARGS]...\n       lind-boot [OPTIONS] PROGRAM [ARGS]...\n       lind-boot record -o FILE [OPTIONS] -- COMMAND [ARGS]...\n       lind-boot replay FILE [--until CALL] [--trace] [--diff OTHER]\n       lind-boot session start|exec|ls|logs|signal|stop ...\n       lind-boot diff|apply|discard|log|export|snapshot|rollback|fork STATE ...\n       lind-boot overlay ls|rm ...\n       lind-boot audit verify FILE ...\n       lind-boot compile FILE.wasm [-o FILE.cwasm]\n       lind-boot inspect FILE|PROGRAM... [--json]\n       lind-boot doctor [--json]\n       lind-boot import-settings FILE [-o NAME]\n       lind-boot image build -t NAME DIR|MODULE|RECIPE\n       lind-boot warm PROGRAM|DIR...\n       lind-boot cache ls|clean ...\n       lind-boot explain [OPTIONS] GRATE... PROGRAM\n       lind-boot syscalls [--json]",
    after_help = "Exit status: the program's own; 128+n if signal n ended it; 125 if lind-boot failed; 126 if the program \
                  cannot be run; 127 if it was not found."
)]
struct Top {
    /// Options of a run without a command.
    #[command(flatten)]
    run: Run,
}

/// Commands on one kind of thing, such as `session start` and `session stop`.
#[derive(Args, Debug)]
pub struct Several<T: Subcommand> {
    /// The command.
    #[command(subcommand)]
    pub command: T,
}

/// A command, and how its options are parsed.
struct Entry {
    name: &'static str,
    about: &'static str,
    is_hidden: bool,
    options: fn(clap::Command) -> clap::Command,
    read: fn(&ArgMatches) -> Result<Command, clap::Error>,
}

/// Declares the commands: for each its help text, its name, and its options.
macro_rules! commands {
    ($($(#[doc = $about:literal])+ $name:literal $(if $hidden:ident)? => $variant:ident($options:ty),)+) => {
        /// A line: a command, or grates and a program.
        #[derive(Debug)]
        pub enum Command {
            $($(#[doc = $about])+ $variant(Box<$options>),)+
            /// Grates and a program, without a command
            Program(Box<Run>),
        }

        const COMMANDS: &[Entry] = &[$(Entry {
            name: $name,
            about: concat!($($about),+),
            is_hidden: [$(stringify!($hidden),)? ""].len() > 1,
            options: <$options as Args>::augment_args,
            read: |found| Ok(Command::$variant(Box::new(<$options as FromArgMatches>::from_arg_matches(found)?))),
        },)+];
    };
}

commands! {
    /// Run a command in a sandbox: with the directories that you mount, without network, within
    /// limits
    "run" => Run(sandbox::RunOptions),
    /// Run a command in a sandbox, and write a policy that allows what it did and nothing more
    "learn" => Learn(sandbox::LearnOptions),
    /// Run a command in a sandbox, and write all that it gets from outside into a record
    "record" => Record(replay::Record),
    /// Run a recorded command again: it gets what the record has, and nothing of the host
    "replay" => Replay(replay::Replay),
    /// Start, use and stop sandboxes that run many commands
    "session" => Session(Several<session::Command>),
    /// Run bash in the session of the project that you are in, as the command lind-sh does
    "sh" => Sh(session::Sh),
    /// Show what changed in an overlay
    "diff" => Diff(overlay::Diff),
    /// Apply the changes of an overlay to the directory below it
    "apply" => Apply(overlay::Apply),
    /// Throw away changes of an overlay
    "discard" => Discard(overlay::Discard),
    /// Show which command changed what in an overlay, and when
    "log" => Log(overlay::Log),
    /// Write all files that an overlay shows to a directory or a tar file
    "export" => Export(overlay::Export),
    /// Give the present contents of an overlay a name
    "snapshot" => Snapshot(overlay::Snapshot),
    /// Return an overlay to the contents of a snapshot
    "rollback" => Rollback(overlay::Snapshot),
    /// Create another head of an overlay: a copy of its contents that changes separately
    "fork" => Fork(overlay::Named),
    /// List and remove the states of overlays
    "overlay" => Overlay(Several<overlay::Overlay>),
    /// Verify logs that --audit has written
    "audit" => Audit(Several<audit::Command>),
    /// Compile a module ahead of time, for this user on this machine
    "compile" => Compile(tools::Compile),
    /// Show where each system call of a program behind these grates would go; runs nothing
    "explain" => Explain(tools::Explain),
    /// Show what a .wasm or .cwasm file is: program or grate, its imports, the calls it declares to
    /// handle
    "inspect" => Inspect(tools::Inspect),
    /// Check whether the sandbox holds what it promises on this host, and say what to do if not
    "doctor" => Doctor(doctor::Doctor),
    /// Make a policy of the settings of another sandbox: Claude Code's, srt's, Codex's
    "import-settings" => ImportSettings(import::ImportSettings),
    /// Make images for podman, docker and containerd
    "image" => Image(Several<image::Command>),
    /// Compile programs before they run, and keep the code in the cache
    "warm" => Warm(cache::Warm),
    /// List and clean the cache of compiled code
    "cache" => Cache(Several<cache::Command>),
    /// List the system calls, with those that are missing
    "syscalls" => Syscalls(tools::Syscalls),
    /// Run a container, and processes in it, for the OCI runtime
    "container" if hidden => Container(Several<container::Command>),
    /// Remove a directory when standard input ends
    "remove-at-end" if hidden => RemoveAtEnd(tools::RemoveAtEnd),
    /// Unpack the image of a package into a directory
    "unpack-image" if hidden => UnpackImage(tools::UnpackImage),
}

impl Entry {
    /// The command of this name.
    fn of(name: &OsStr) -> Option<&'static Entry> {
        COMMANDS.iter().find(|entry| name == entry.name)
    }

    /// The command as the help lists it.
    fn listed(&self) -> clap::Command {
        clap::Command::new(self.name).about(self.about.trim()).hide(self.is_hidden)
    }

    /// The command with all of its options.
    fn whole(&self) -> clap::Command {
        let bare =
            clap::Command::new(self.name).bin_name(format!("{NAME} {}", self.name)).disable_help_subcommand(true);
        // The structs of options have descriptions of their own.
        (self.options)(bare).about(self.about.trim()).long_about(None)
    }

    /// Parses the words from the name on.
    fn parse(&self, words: &[OsString]) -> Result<Command, clap::Error> {
        (self.read)(&self.whole().try_get_matches_from(words)?)
    }
}

impl Command {
    /// Parses the command line of this process.
    ///
    /// # Errors
    /// A mistake in the line, or the text of --help or --version.
    pub fn of_process() -> Result<Command, clap::Error> {
        Command::parse(&std::env::args_os().collect::<Vec<_>>())
    }

    fn parse(words: &[OsString]) -> Result<Command, clap::Error> {
        if let Some((entry, words)) = words.get(1).and_then(|first| Some((Entry::of(first)?, &words[1..]))) {
            return entry.parse(words);
        }
        let read = |top: clap::Command| Run::from_arg_matches(&top.try_get_matches_from(words)?);
        // Only the help lists the commands.
        let run = read(Top::command()).or_else(|error| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                read(Top::command().subcommands(COMMANDS.iter().map(Entry::listed)))
            }
            _ => Err(error),
        })?;
        let named = run.program.first().and_then(|name| Entry::of(name));
        let behind_dashes = words.iter().rev().nth(run.program.len()).is_some_and(|word| word == "--");
        if let Some(Entry { name, .. }) = named.filter(|_| !behind_dashes) {
            let why = format!(
                "{name} is a command, and no option comes before it: write `{NAME} {name} ...`; for a program of \
                 that name write ./{name}\n"
            );
            return Err(Top::command().error(ErrorKind::ArgumentConflict, why));
        }
        Ok(Command::Program(Box::new(run)))
    }

    /// Whether this process runs guests, or passes signals on to a guest in another process.
    pub fn runs(&self) -> bool {
        match self {
            Command::Program(run) => run.precompile.is_none(),
            Command::Session(several) => {
                matches!(several.command, session::Command::Serve(_) | session::Command::Exec(_))
            }
            Command::Overlay(several) => matches!(several.command, overlay::Overlay::Ls { state: Some(_) }),
            Command::Run(_)
            | Command::Learn(_)
            | Command::Record(_)
            | Command::Replay(_)
            | Command::Audit(_)
            | Command::Sh(_) => true,
            Command::Container(_) => true,
            Command::Diff(_) | Command::Apply(_) | Command::Discard(_) | Command::Log(_) => true,
            Command::Export(_) | Command::Snapshot(_) | Command::Rollback(_) | Command::Fork(_) => true,
            Command::Compile(_) | Command::Explain(_) | Command::Inspect(_) | Command::Doctor(_) => false,
            Command::ImportSettings(_) | Command::Image(_) => false,
            Command::Warm(_)
            | Command::Cache(_)
            | Command::Syscalls(_)
            | Command::RemoveAtEnd(_)
            | Command::UnpackImage(_) => false,
        }
    }
}

/// The command of lind-boot with the name most similar to `word`.
pub fn nearest_command(word: &str) -> Option<String> {
    let commands = COMMANDS.iter().map(|entry| clap::Command::new(entry.name));
    let all = clap::Command::new(NAME).subcommands(commands).subcommand_required(true);
    let error = all.try_get_matches_from([NAME, word]).err()?;
    match error.get(ContextKind::SuggestedSubcommand)? {
        ContextValue::Strings(names) => names.first().cloned(),
        ContextValue::String(name) => Some(name.clone()),
        _ => None,
    }
}

/// Whether the unknown option of `error` is one of `run`, and of `session start`.
fn is_of_run(error: &clap::Error) -> bool {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return false };
    let options = sandbox::RunOptions::augment_args(clap::Command::new("run"));
    let named = word.strip_prefix("--").map(|word| word.split(['=', ' ']).next().unwrap_or(word));
    let short = word.strip_prefix('-').and_then(|word| word.chars().next());
    let mut all = options.get_arguments();
    all.any(|option| named.map_or(option.get_short() == short, |name| option.get_long() == Some(name)))
}

/// The command to which the unknown option of `error` belongs, where another one or none was named.
fn meant(error: &clap::Error, words: &[OsString]) -> Option<&'static str> {
    let word = |number: usize| words.get(number).map(OsString::as_os_str);
    let in_session = word(1) == Some("session".as_ref()) && word(2) == Some("exec".as_ref());
    if in_session {
        return is_of_run(error).then_some("session start");
    }
    let is_command = word(1).is_some_and(|first| Entry::of(first).is_some());
    (!is_command && is_of_run(error)).then_some("run")
}

/// Prints a mistake in the command line, or the help. Words of the line may be names that a guest
/// has chosen.
pub fn print_error(error: &clap::Error) {
    let words: Vec<OsString> = std::env::args_os().collect();
    if words.iter().all(|word| word.to_str().is_some_and(|word| word.chars().all(is_seen))) {
        let _ = error.print();
        if let Some(command) = meant(error, &words) {
            stdio::say_line(&format!("this is an option of `lind-boot {command}`; write `lind-boot {command} ...`"));
        }
        return;
    }
    // The same mistake, with unprintable characters escaped.
    let words: Vec<OsString> = words.iter().map(|word| OsString::from(shown(word.as_bytes()))).collect();
    let again = Command::parse(&words).err();
    stdio::say(&again.as_ref().unwrap_or(error).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<Command, clap::Error> {
        Command::parse(&[NAME].iter().chain(line).map(OsString::from).collect::<Vec<_>>())
    }

    fn program(line: &[&str]) -> Run {
        match parse(line) {
            Ok(Command::Program(run)) => *run,
            other => panic!("{line:?}: {other:?}"),
        }
    }

    #[test]
    fn the_definitions_are_sound() {
        Top::command().subcommands(COMMANDS.iter().map(Entry::listed)).debug_assert();
        for entry in COMMANDS {
            entry.whole().debug_assert();
            assert!(!entry.about.contains("  ") && !entry.about.ends_with('.'), "{}", entry.name);
            let said = parse(&[entry.name, "--help"]).unwrap_err().to_string();
            assert!(said.starts_with(entry.about.trim()), "{said}");
        }
    }

    #[test]
    fn arguments_after_the_program_are_its_own() {
        let run = program(&["--cwd", "/tmp", "app", "--root", "x", "-v"]);
        assert_eq!(run.program, ["app", "--root", "x", "-v"]);
        assert!(run.root.is_none() && !run.verbose);
        for line in [
            &["app"][..],
            &[""],
            &["./compile", "syscalls"],
            &["app", "--help"],
            &["app", "run"],
            &["namespace_grate", "--prefix", "/tmp", "%{", "imfs_grate", "%}", "app"],
        ] {
            assert_eq!(program(line).program, line, "{line:?}");
        }
        assert_eq!(program(&["--stack", "s.toml", "--grates", "a", "--grates", "b", "./run"]).program, ["./run"]);
        assert_eq!(program(&["--", "app", "-v"]).program, ["app", "-v"]);
    }

    #[test]
    fn the_first_word_decides() {
        assert!(matches!(parse(&["syscalls", "--json"]), Ok(Command::Syscalls(_))));
        let Ok(Command::Run(run)) = parse(&["run", "-vx", "-w", "/", "--", "app", "--", "-w"]) else { panic!() };
        assert_eq!((run.command.len(), run.options.volume.len()), (3, 1));
        assert!(program(&["--precompile", "app.wasm"]).precompile.is_some());
        assert_eq!(program(&["--", "syscalls"]).program, ["syscalls"]);
        for line in [&["--root", "r", "run", "app"][..], &["--verbose", "syscalls"]] {
            let said = parse(line).unwrap_err().to_string();
            assert!(said.contains("is a command, and no option comes before it"), "{said}");
        }
        for line in [&[][..], &["--help"], &["--version"], &["run"], &["run", "--"], &["run", "--help"], &["session"]] {
            assert!(parse(line).is_err(), "{line:?}");
        }
        for line in [
            &["run", "--json", "app"][..],
            &["run", "-w", "a", "-w", "b", "app"],
            &["--memory", "0", "app"],
            &["--precompile", "a.wasm", "app"],
            &["warm"],
        ] {
            assert!(parse(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn the_help_lists_the_commands() {
        for line in [&["--help"][..], &["-h"], &[]] {
            let said = parse(line).unwrap_err().to_string();
            let listed = |entry: &Entry| said.contains(&format!("\n  {} ", entry.name));
            assert!(COMMANDS.iter().all(|entry| listed(entry) != entry.is_hidden), "{said}");
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
            let said = parse(line).unwrap_err().to_string();
            assert!(said.contains(&format!("'{nearest}'")), "{said}");
        }
    }

    #[test]
    fn v_is_a_volume_or_nothing() {
        let takes = |options: clap::Command| {
            let short = |option: &&clap::Arg| option.get_short() == Some('v');
            options.get_arguments().find(short).map(|option| option.get_long().unwrap_or_default().to_owned())
        };
        let with_inner = |options: clap::Command| {
            let inner: Vec<_> = options.get_subcommands().cloned().collect();
            [vec![options], inner].concat()
        };
        let all = COMMANDS.iter().flat_map(|entry| with_inner(entry.whole()));
        let named: Vec<_> = all.chain([Top::command()]).filter_map(takes).collect();
        assert!(named.len() >= 3 && named.iter().all(|name| name == "volume"), "{named:?}");
        for line in [&["session", "exec", "s", "-v", "."][..], &["-v", "app"]] {
            let said = parse(line).unwrap_err().to_string();
            assert!(said.contains("unexpected argument '-v'"), "{said}");
        }
    }

    #[test]
    fn perf_takes_its_format_only_by_equals() {
        let run = program(&["--perf", "app"]);
        assert_eq!((run.perf, run.program.len()), (Some(PerfFormat::Text), 1));
        assert_eq!(program(&["--perf=json", "app"]).perf, Some(PerfFormat::Json));
    }
}
