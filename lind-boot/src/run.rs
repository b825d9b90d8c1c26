//! Runs a program: from options to an exit status.

use std::convert::Infallible;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use lind_engine::signal::host_signals;
use lind_engine::syscall::perf::Perf;
use lind_engine::{CodeStore, Engine, Link};
use lind_kernel::cage::{self, Limits, Program, Status};
use lind_kernel::root::{Directory, Last, Root, Walls};
use lind_kernel::runtime::LoadError;
use lind_kernel::{Errno, Kernel, stdio, text};

use crate::cli::{PerfFormat, Run};
use crate::config::{self, Config, check_grates, check_private};
use crate::end::End;
use crate::outside::{self, Folders};
use crate::sandbox::Mounts;
use crate::{confine, explain, limits, report, stack};

/// The reason why nothing ran, and the exit status for it.
pub struct Failure {
    /// The message.
    pub reason: anyhow::Error,
    /// The exit status.
    pub status: u8,
}

impl From<anyhow::Error> for Failure {
    fn from(reason: anyhow::Error) -> Failure {
        Failure { reason, status: crate::FAILED }
    }
}

impl Failure {
    /// The failure of another process of ours, which has printed its message.
    pub fn said() -> Failure {
        Failure { reason: anyhow!(""), status: crate::FAILED }
    }

    /// The statuses of shells: 127 for a program that was not found, 126 for one that cannot be
    /// run.
    fn of(error: LoadError, name: &CStr, root: &Path, grates: &Folders) -> Failure {
        match error.errno {
            Errno::ENOENT => Failure { reason: not_found(name, root, grates), status: 127 },
            Errno::ENOMEM | Errno::EAGAIN | Errno::EMFILE | Errno::ENFILE => {
                Failure { reason: anyhow!(error.reason), status: crate::FAILED }
            }
            _ => Failure { reason: anyhow!(error.reason), status: 126 },
        }
    }
}

/// Says where the program was looked for. Users often mean a path of the host.
fn not_found(name: &CStr, root: &Path, grates: &Folders) -> anyhow::Error {
    if cage::is_grate_name(name.to_bytes()) {
        let (name, folders) = (name.to_string_lossy(), grates.names());
        return anyhow!("{name}: no such grate in {folders}; for a grate inside the root, write a path with a slash");
    }
    let (is_path, name) = (name.to_bytes().contains(&b'/'), name.to_string_lossy());
    let folders = if is_path { "" } else { " or its /bin" };
    let meant = if is_path { format!("; to run a file of the host: lind-boot run {name}") } else { String::new() };
    let meant = crate::cli::nearest_command(&name)
        .map_or(meant, |command| format!("; did you mean the command `lind-boot {command}`?"));
    anyhow!("{name}: not found in the root {}{folders}, with or without .cwasm or .wasm{meant}", root.display())
}

/// Checks the command behind the grates. The interpreter of a script takes its place, so that all
/// grates see the interpreter as the program.
///
/// # Errors
/// When it does not exist, or cannot be run. If grates show other files than the kernel sees, the
/// error comes from starting it instead.
fn settle_command(kernel: &Kernel, start_in: &Directory, options: &Run, mut config: Config) -> Result<Config, Failure> {
    let Some(at) = options.command.filter(|at| *at < config.argv.len()) else { return Ok(config) };
    let visible = options.in_grates.is_empty();
    for _ in 0..=cage::INTERPRETERS {
        let name = &config.argv[at];
        let found = match cage::find_program(kernel, start_in.dir(), name, true, Last::Follow) {
            Ok(found) => found,
            Err(Errno::ENOENT) if visible => return Err(missing(name, options, &config)),
            Err(Errno::EACCES) if visible => {
                let name = name.to_string_lossy();
                let reason =
                    anyhow!("{name}: cannot be run: it is a directory, or a file that may not be read or executed");
                return Err(Failure { reason, status: 126 });
            }
            Err(_) => break,
        };
        let path = without_dots(
            &Path::new(OsStr::from_bytes(config.cwd.to_bytes())).join(OsStr::from_bytes(found.path.to_bytes())),
        );
        if options.in_grates.iter().any(|folder| path.starts_with(folder)) {
            break;
        }
        match interpreter(&found) {
            Ok(Some(words)) => drop(config.argv.splice(at..=at, words)),
            Ok(None) => break,
            Err(why) if visible => {
                let reason = anyhow!("{}: {why}", name.to_string_lossy());
                return Err(Failure { reason, status: 126 });
            }
            Err(_) => break,
        }
    }
    Ok(config)
}

/// Removes `.` and `..` from an absolute path, by its text alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(clean.pop()),
            part => clean.push(part),
        }
    }
    clean
}

/// The operating system that compiled code names (ELF's EI_OSABI).
const WASMTIME: u8 = 200;

/// The words that replace a script: its interpreter, the option of its first line, and its own
/// path. None for a module.
fn interpreter(found: &cage::Found<'_>) -> Result<Option<Vec<CString>>, String> {
    let stat = rustix::fs::fstat(&found.file).map_err(|errno| errno.to_string())?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
        return Err("not a regular file".to_owned());
    }
    let Some((name, option)) = cage::interpreter_of(&found.file).map_err(|errno| errno.to_string())? else {
        let mut head = [0; 8];
        let got = rustix::io::pread(&found.file, &mut head, 0).unwrap_or(0);
        // Compiled code is an ELF file with an operating system of its own.
        let (is_elf, is_ours) = (head[..got].starts_with(b"\x7fELF"), head[7] == WASMTIME);
        return match head[..got].starts_with(b"\0asm") || is_elf && is_ours {
            true => Ok(None),
            false if is_elf => Err("a program for the host, not for a cage".to_owned()),
            false => Err("neither a WebAssembly module nor a script".to_owned()),
        };
    };
    if stat.st_mode & 0o111 == 0 {
        return Err("a script that is not executable (chmod +x)".to_owned());
    }
    // It takes a place in the line, where a word that is not a path could be a grate or an option
    // of one.
    if !name.to_bytes().starts_with(b"/") {
        return Err(format!("the interpreter in its first line is not an absolute path: {}", name.to_string_lossy()));
    }
    Ok(Some([Some(name), option, Some(found.path.clone())].into_iter().flatten().collect()))
}

fn missing(name: &CStr, options: &Run, config: &Config) -> Failure {
    let (name, cwd, image) = (
        name.to_string_lossy(),
        config.cwd.to_string_lossy(),
        options.image.as_ref().unwrap_or(&config.root).display(),
    );
    let folders = if name.contains('/') { String::new() } else { format!(": neither in {cwd} nor in /bin") };
    let reason = anyhow!("{name}: not found in the sandbox{folders}, with or without .cwasm or .wasm (image {image})");
    Failure { reason, status: 127 }
}

/// Starts the threads that serve the run, behind the walls and before its first cage runs.
pub type Attendant = Box<dyn FnOnce(&Arc<Kernel>) -> anyhow::Result<()>>;

/// Compiles a module for this machine.
///
/// # Errors
/// The compiler's error.
pub fn compile(file: &Path, output: Option<&Path>) -> Result<(), Failure> {
    let store = CodeStore::open()?;
    if let Some(why) = store.unkept {
        return Err(anyhow!("cannot use the signing key ({why}), and code that is not signed would not run").into());
    }
    let engine = Engine::new(store, false)?;
    let path = engine.precompile(file, output)?;
    print(&format!("OK: {}\n", text::shown(path.as_os_str().as_bytes())))
}

/// Prints the output of a command. Names in it that are not ours have passed [`text::shown`].
///
/// # Errors
/// When standard output cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    stdio::print(text).map_err(|errno| anyhow!("cannot write to standard output: {errno}").into())
}

/// Prints the output of a command as JSON.
///
/// # Errors
/// When standard output cannot be written.
pub fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&text::json(&format!("{value:#}\n")))
}

/// Runs a program, waits for its end, and exits with its status as a shell would report it. Nothing
/// is dropped at the end: the descriptors behind these values belong to the cages by then, and
/// guest threads may still run.
///
/// # Errors
/// When it could not be started.
pub fn run(options: &Run, mounts: Mounts, end: End, attend: Option<Attendant>) -> Result<Infallible, Failure> {
    let ignored = host_signals::hold();
    // As early as possible: it is a copy of this process, and costs less the less there is.
    let link = Arc::new(
        Link::start(confine::of_compiler(options.require_confinement))
            .context("cannot start the compiler process (check `ulimit -u`)")?,
    );
    // A user namespace is only needed for changing the root, which a table of mounts does without.
    let in_namespace = !matches!(mounts, Mounts::Kernel(_)) && confine::own_namespace_if_need_be();
    let grates = Folders::new(&options.grates);
    let stack = options.stack.as_deref().map(|file| stack_of(file, options, &grates, &link)).transpose()?;
    let mut config = Config::new(options, stack)?;
    let mut store = CodeStore::beside(&link)?;
    if let Some(why) = &store.unkept {
        stdio::say_line(&format!(
            "compiled code cannot be kept ({why}); set XDG_DATA_HOME and XDG_CACHE_HOME to directories of yours"
        ));
    }
    check_private(&config.root, &store.private)?;
    // In read-only mounts these directories are hidden, and no guest can put files in their place.
    for (place, _) in options.mounted.iter().filter(|(_, changes)| *changes) {
        check_private(place, &store.private)?;
    }
    let detached = store.detach();
    let cache =
        store.cache.as_ref().map(|cache| cache.try_clone()).transpose().context("cannot share the code cache")?;
    let perf = options.perf.map(|_| Arc::new(Perf::default()));
    let engine = Engine::with_perf(store, options.backtrace, perf.as_ref())?;

    // Before the walls are up, which may hide them.
    let preparing = engine.preparing(options.ahead.iter().filter_map(|path| File::open(path).ok()).collect());
    let outside = outside::open(&grates, &mut config.argv, &engine, options.explain)?;
    limits::suffice(outside.grates)?;
    let mounted = options.mounted.iter().filter_map(|(place, changes)| changes.then_some(place));
    for place in std::iter::once(&config.root).chain(mounted) {
        check_grates(place, &outside.folders)?;
    }
    // Each cage has its own umask, which the kernel applies. The first cage's is the one this
    // process was started with.
    let umask = rustix::process::umask(rustix::fs::Mode::empty()).bits();
    let kernel = {
        let cache = cache.as_ref().map(AsFd::as_fd);
        let handed: Vec<_> = outside.handed.iter().map(AsFd::as_fd).collect();
        let detached = detached.and(outside.detached);
        confined_kernel(options, &config, mounts, (cache, &handed, in_namespace, detached), &link)?
    };
    drop(outside.handed);
    let beginning = engine.keep_first();
    if attend.is_some() && !options.verbose {
        engine.keep_quiet();
    }
    kernel.attach(Box::new(engine));
    let watcher = host_signals::watch().context("cannot start the thread for signals (check `ulimit -u`)")?;
    kernel.bring(outside.line);
    if let Some(name) = &options.host_name {
        kernel.set_host_name(name.as_bytes());
    }
    if config.argv.is_empty() {
        return Err(anyhow!("no program given").into());
    }
    let start_in = Directory::open(&kernel.root, &config.cwd)
        .map_err(|errno| anyhow!("working directory {}: {errno}", config.cwd.to_string_lossy()))?;
    let config = settle_command(&kernel, &start_in, options, config).inspect_err(|failure| {
        end.ended(Status::Exited(failure.status));
    })?;
    let [name, ..] = &config.argv[..] else { return Err(anyhow!("no program given").into()) };
    let program = Program {
        name: name.clone(),
        argv: config.argv.clone(),
        envp: config.envp,
        ignored,
        umask,
        preserved: options.preserved,
    };
    let first =
        cage::boot(&kernel, start_in, program).map_err(|error| Failure::of(error, name, &config.root, &grates))?;
    drop(cache);
    let (verbose, format) = (options.verbose, options.perf);
    end.watch(&kernel)?;
    if let Some(attend) = attend {
        attend(&kernel)?;
    }
    if !options.ahead.is_empty() {
        // Where the host has no thread to give, each program is compiled when it runs.
        let _ = std::thread::Builder::new().name("prepare".into()).spawn(preparing);
    }
    let perf = format.zip(perf);
    host_signals::run(watcher, beginning, kernel, first, Ending { link, end, verbose, perf })
}

/// The actions at the end of a run.
struct Ending {
    link: Arc<Link>,
    end: End,
    verbose: bool,
    perf: Option<(PerfFormat, Arc<Perf>)>,
}

impl host_signals::Ending for Ending {
    fn ended(&self, status: Status) {
        self.link.end();
        self.end.ended(status);
        if self.verbose {
            describe_end(status);
        }
        if let Some((format, perf)) = &self.perf {
            stdio::say(&report::perf(perf, *format));
        }
    }

    fn handlers_decide(&self) -> bool {
        !self.end.is_strict()
    }

    fn overdue(&self, kernel: &Kernel) -> ! {
        self.end.overdue(kernel)
    }
}

/// The root, and the words of the command line for a file of grates.
fn stack_of(file: &Path, options: &Run, grates: &Folders, link: &Arc<Link>) -> anyhow::Result<(PathBuf, Vec<String>)> {
    let stack = stack::read(file)?;
    let root = config::root(options.root.as_ref())?;
    // This engine only serves to check the names, for good messages.
    let engine = Engine::new(CodeStore::beside(link)?, false)?;
    let words = explain::Finder { root: &root, grates, named: &[], engine: &engine }.words(&stack)?;
    Ok((root, words))
}

/// Puts up the walls and makes the kernel behind them.
fn confined_kernel(
    options: &Run,
    config: &Config,
    mounts: Mounts,
    (cache, handed, in_namespace, detached): (Option<BorrowedFd<'_>>, &[BorrowedFd<'_>], bool, lind_kernel::Result<()>),
    link: &Link,
) -> Result<Arc<Kernel>, Failure> {
    let limits = Limits {
        files: (options.files, options.files.max(4096)),
        memory: (options.memory << 20, options.memory << 20),
        ..Limits::default()
    };
    limits::raise_files();
    let pages = lind_kernel::mem::PageMap::open();
    lind_kernel::mem::budget::learn();
    let directory = confine::open_directory(&config.root).context("root directory")?;
    let mut root = Root::new(directory, Some(&config.root), Walls::Openat2);
    let detached = detached
        .and_then(|()| root.detach(&cache.iter().chain(handed).copied().collect::<Vec<_>>()))
        .map_err(|errno| errno.to_string());
    let how = match mounts {
        Mounts::Kernel(kept) => {
            // The user's working directory is outside the root, so it is left.
            let _ = rustix::process::chdir(&config.root);
            let names: Vec<_> = kept.sources.iter().map(PathBuf::as_path).collect();
            root.set_table(kept.table, &names);
            confine::OVER_TABLE
        }
        mounts => {
            let (walls, how) = confine::change_root(&config.root, in_namespace);
            root.set_walls(walls);
            if let Mounts::Host(mounted) = mounts {
                root.set_mounted(mounted);
            }
            how
        }
    };
    let in_grates = options.in_grates.iter().map(|path| path.as_os_str().as_bytes().to_vec());
    root.set_in_grates(in_grates.collect());
    root.set_volumes(options.volumes.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect());
    if options.explain {
        root.set_read_only();
    }
    let mut report = confine::confine(how, &root, (cache, handed), detached);
    if options.verbose || options.require_confinement {
        report.compiler = link.walls().map_err(|error| format!("{error:#}"));
    }
    if options.verbose {
        stdio::say_line(&format!("root {}, {}", config.root.display(), report.line()));
    }
    if options.require_confinement {
        report.require_all()?;
    }
    Ok(Kernel::new(root, limits, pages))
}

fn describe_end(status: Status) {
    stdio::say_line(&match status {
        Status::Exited(code) => format!("exited with status {code}"),
        Status::Signaled { signal } => format!("ended by signal {signal}"),
    });
}
