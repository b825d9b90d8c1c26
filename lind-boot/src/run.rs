//! Running a program: from options to an exit status.

use std::convert::Infallible;
use std::ffi::CStr;
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::{Context, anyhow};
use lind_engine::perf::Perf;
use lind_engine::{CodeStore, Engine, outside};
use lind_kernel::cage::{self, Limits, Program, Status};
use lind_kernel::engine::LoadError;
use lind_kernel::root::{Directory, Root, Walls};
use lind_kernel::{Errno, Kernel};

use crate::cli::Run;
use crate::config::{Config, check_private};
use crate::confine;
use crate::report;

/// Why nothing ran, and the exit status that says so.
pub struct Failure {
    /// For stderr.
    pub reason: anyhow::Error,
    /// Our exit status.
    pub status: u8,
}

impl From<anyhow::Error> for Failure {
    fn from(reason: anyhow::Error) -> Failure {
        Failure { reason, status: crate::FAILED }
    }
}

impl Failure {
    /// As in shells: 127 for what was not found, 126 for what cannot be run.
    fn of(error: LoadError, name: &CStr, root: &Path) -> Failure {
        match error.errno {
            Errno::ENOENT => Failure { reason: not_found(name, root), status: 127 },
            Errno::ENOMEM | Errno::EAGAIN => Failure { reason: anyhow!(error.reason), status: crate::FAILED },
            _ => Failure { reason: anyhow!(error.reason), status: 126 },
        }
    }
}

/// Says where the program was looked for: a path of the host is often meant.
fn not_found(name: &CStr, root: &Path) -> anyhow::Error {
    let folders = if name.to_bytes().contains(&b'/') { "" } else { ", its /grates or its /bin" };
    anyhow!(
        "{}: not found in the root {}{folders}, with or without .cwasm or .wasm",
        name.to_string_lossy(),
        root.display()
    )
}

/// Compiles a module for this machine.
///
/// # Errors
/// What is wrong with it.
pub fn compile(file: &Path, output: Option<&Path>) -> Result<(), Failure> {
    let engine = Engine::new(CodeStore::open()?, false)?;
    let path = engine.precompile(file, output)?;
    println!("OK: {}", path.display());
    Ok(())
}

/// Runs a program, waits for its end, and leaves with its exit status as a shell would report it. Nothing is dropped on
/// the way: the descriptors behind it are the cages' by then, and guest threads may still run.
///
/// # Errors
/// When it could not be started.
pub fn run(options: &Run) -> Result<Infallible, Failure> {
    let ignored = outside::hold();
    let config = Config::new(options)?;
    let store = CodeStore::open()?;
    check_private(&config.root, &store.private)?;
    let cache =
        store.cache.as_ref().map(|cache| cache.try_clone()).transpose().context("cannot share the code cache")?;
    let perf = options.perf.map(|_| std::sync::Arc::new(Perf::default()));
    let engine = Engine::with_perf(store, options.backtrace, perf.as_ref())?;

    let kernel = confined_kernel(options, &config, cache.as_ref().map(AsFd::as_fd))?;
    kernel.attach(Box::new(engine));
    let [name, ..] = &config.argv[..] else { return Err(anyhow!("no program named").into()) };
    let program = Program { name: name.clone(), argv: config.argv.clone(), envp: config.envp, ignored };
    let start_in = Directory::open(&kernel.root, &config.cwd)
        .map_err(|errno| anyhow!("working directory {}: {errno}", config.cwd.to_string_lossy()))?;
    let first = cage::boot(&kernel, start_in, program).map_err(|error| Failure::of(error, name, &config.root))?;
    drop(cache);
    lind_kernel::fd::leave_to_cages(&kernel);
    let status = outside::until_end(&kernel, &first);
    // What the kernel and its cages have open, this thread has not any more: it must not close them.
    std::mem::forget((kernel, first));
    if options.verbose {
        describe_end(status);
    }
    if let (Some(format), Some(perf)) = (options.perf, &perf) {
        eprint!("{}", report::perf(perf, format));
    }
    leave(status.shell_code())
}

/// Puts up the walls and makes the kernel behind them.
fn confined_kernel(
    options: &Run,
    config: &Config,
    cache: Option<std::os::fd::BorrowedFd<'_>>,
) -> Result<std::sync::Arc<Kernel>, Failure> {
    let limits = Limits {
        files: (options.files, options.files.max(4096)),
        memory: (options.memory << 20, options.memory << 20),
        ..Limits::default()
    };
    raise_file_limit();
    // Each cage has an umask of its own, applied by the kernel.
    rustix::process::umask(rustix::fs::Mode::empty());
    let pages = lind_kernel::mem::PageMap::open();
    let directory = confine::open_directory(&config.root).context("root directory")?;
    let mut root = Root::new(directory, Walls::Openat2);
    let (walls, how) = confine::change_root(&config.root);
    root.set_walls(walls);
    let report = confine::confine(how, &root, cache);
    if options.verbose {
        eprintln!("lind-boot: root {}, {}", config.root.display(), report.line());
    }
    if options.require_confinement {
        report.require_all()?;
    }
    Ok(Kernel::new(root, limits, pages))
}

/// Guests have limits of their own; all of them share ours.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

fn describe_end(status: Status) {
    match status {
        Status::Exited(code) => eprintln!("lind-boot: exited with status {code}"),
        Status::Signaled { signal } => eprintln!("lind-boot: ended by signal {signal}"),
    }
}

/// Ends this process at once.
pub fn leave(status: u8) -> ! {
    std::process::exit(i32::from(status))
}
