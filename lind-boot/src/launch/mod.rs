//! Launches a plan: opens what it names on the host, puts up the walls, and runs the first program
//! behind them until it ends.

mod command;
pub mod denials;
pub mod end;
pub mod limits;
mod mounts;
mod outside;
mod perf;
mod plan;
mod resolved;
mod settings;
pub mod state_files;

use std::convert::Infallible;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use lind_engine::signal::{host_signals, process_signals};
use lind_engine::syscall::perf::Perf;
use lind_engine::{CodeStore, Engine, Link};
use lind_kernel::cage::{self, Limits, Program, Status};
use lind_kernel::root::{Directory, Root, Walls};
use lind_kernel::{Kernel, stdio};

use crate::cli::PerfFormat;
use crate::failure::Failure;
use crate::plan::grates::Folders;
use crate::plan::stack;
use crate::plan::step::Step;
use crate::plan::typed::Finder;
use crate::{config, walls};
use end::End;
pub use mounts::{Kept, Mounts};
use outside::Outside;
pub use plan::Plan;
use resolved::{Resolved, check_grates, check_private};

/// Starts the threads that serve the run, behind the walls and before its first cage runs.
pub type Attendant = Box<dyn FnOnce(&Arc<Kernel>) -> anyhow::Result<()>>;

/// Runs a program, waits for its end, and exits with its status as a shell would report it. Nothing
/// is dropped at the end: the descriptors behind these values belong to the cages by then, and
/// guest threads may still run.
///
/// # Errors
/// When it could not be started.
pub fn start(plan: &Plan, mounts: Mounts, end: End, attend: Option<Attendant>) -> Result<Infallible, Failure> {
    let ignored = process_signals::hold();
    // As early as possible: it is a copy of this process, and costs less the less there is.
    let link = Arc::new(
        Link::start(walls::of_compiler(plan.require_confinement))
            .context("cannot start the compiler process (check `ulimit -u`)")?,
    );
    // A user namespace is only needed for changing the root, which a table of mounts does without.
    let in_namespace = !matches!(mounts, Mounts::Kernel(_)) && walls::own_namespace_if_need_be();
    let grates = Folders::new(&plan.grates);
    let stack = plan.stack.as_deref().map(|file| stack_of(file, plan, &grates, &link)).transpose()?;
    let resolved = Resolved::new(plan, stack)?;
    let mut store = store_of(plan, &resolved, &link)?;
    let detached = store.detach();
    let cache =
        store.cache.as_ref().map(|cache| cache.try_clone()).transpose().context("cannot share the code cache")?;
    let perf = plan.perf.map(|_| Arc::new(Perf::default()));
    let engine = Engine::with_perf(store, plan.backtrace, perf.as_ref())?;
    // Before the walls are up, which may hide them.
    let preparing = engine.preparing(plan.ahead.iter().filter_map(|path| File::open(path).ok()).collect());
    let outside = opened(plan, &resolved, &grates, &engine)?;
    // Each cage has its own umask, which the kernel applies. The first cage's is the one this
    // process was started with.
    let umask = rustix::process::umask(rustix::fs::Mode::empty()).bits();
    let kernel = {
        let cache = cache.as_ref().map(AsFd::as_fd);
        let handed: Vec<_> = outside.handed.iter().map(AsFd::as_fd).collect();
        let detached = detached.and(outside.detached);
        confined_kernel(plan, &resolved, mounts, (cache, &handed, in_namespace, detached), &link)?
    };
    drop(outside.handed);
    let beginning = engine.keep_first();
    if attend.is_some() && !plan.verbose {
        engine.keep_quiet();
    }
    kernel.attach(Box::new(engine));
    let watcher = host_signals::watch().context("cannot start the thread for signals (check `ulimit -u`)")?;
    kernel.bring(outside.line);
    plan.set_up(&kernel);
    let start_in = Directory::open(&kernel.root, &resolved.cwd)
        .map_err(|errno| anyhow!("working directory {}: {errno}", resolved.cwd.to_string_lossy()))?;
    let argv = command::settle(&kernel, &start_in, plan, (&resolved, outside.argv, outside.first))
        .inspect_err(|failure| end.ended(Status::Exited(failure.status)))?;
    let Resolved { root, envp, .. } = resolved;
    let name = argv.first().context("no program given")?.clone();
    let program = Program { name: name.clone(), argv, envp, ignored, umask, preserved: plan.preserved };
    let first =
        cage::boot(&kernel, start_in, program).map_err(|error| command::not_started(error, &name, &root, &grates))?;
    drop(cache);
    end.watch(&kernel)?;
    if let Some(attend) = attend {
        attend(&kernel)?;
    }
    if !plan.ahead.is_empty() {
        // Where the host has no thread to give, each program is compiled when it runs.
        let _ = std::thread::Builder::new().name("prepare".into()).spawn(preparing);
    }
    let ending = Ending { link, end, verbose: plan.verbose, perf: plan.perf.zip(perf) };
    host_signals::run(watcher, beginning, kernel, first, ending)
}

/// Opens what the line names on the host. No guest may be able to change the grates there.
fn opened(plan: &Plan, resolved: &Resolved, grates: &Folders, engine: &Engine) -> Result<Outside, Failure> {
    let inside = settings::Inside { root: &resolved.root, cwd: Path::new(OsStr::from_bytes(resolved.cwd.to_bytes())) };
    let outside = outside::open(grates, (resolved.line.clone(), &resolved.words), engine, plan.explain, &inside)?;
    limits::suffice(outside.grates)?;
    for place in std::iter::once(&resolved.root).chain(plan.mounts_to_change()) {
        check_grates(place, &outside.folders, &plan.unchanged)?;
    }
    Ok(outside)
}

/// Opens the store of compiled code, which no guest may see.
fn store_of(plan: &Plan, resolved: &Resolved, link: &Arc<Link>) -> anyhow::Result<CodeStore> {
    let store = CodeStore::beside(link)?;
    if let Some(why) = &store.unkept {
        stdio::say_line(&format!(
            "compiled code cannot be kept ({why}); set XDG_DATA_HOME and XDG_CACHE_HOME to directories of yours"
        ));
    }
    check_private(&resolved.root, &store.private)?;
    // In read-only mounts these directories are hidden, and no guest can put files in their place.
    for place in plan.mounts_to_change() {
        check_private(place, &store.private)?;
    }
    Ok(store)
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
            stdio::say(&perf::report(perf, *format));
        }
    }

    fn handlers_decide(&self) -> bool {
        !self.end.is_strict()
    }

    fn overdue(&self, kernel: &Kernel) -> ! {
        self.end.overdue(kernel)
    }
}

/// The root, and the grates of a file.
fn stack_of(file: &Path, plan: &Plan, grates: &Folders, link: &Arc<Link>) -> anyhow::Result<(PathBuf, Vec<Step>)> {
    let stack = stack::read(file)?;
    let root = config::root(plan.root.as_ref())?;
    // This engine only serves to check the names, for good messages.
    let engine = Engine::new(CodeStore::beside(link)?, false)?;
    let steps = Finder { root: &root, grates, named: &[], engine: &engine }.steps(&stack)?;
    Ok((root, steps))
}

/// Puts up the walls and makes the kernel behind them.
fn confined_kernel(
    plan: &Plan,
    resolved: &Resolved,
    mounts: Mounts,
    (cache, handed, in_namespace, detached): (Option<BorrowedFd<'_>>, &[BorrowedFd<'_>], bool, lind_kernel::Result<()>),
    link: &Link,
) -> Result<Arc<Kernel>, Failure> {
    let limits = Limits {
        files: (plan.files, plan.files.max(4096)),
        memory: (plan.memory << 20, plan.memory << 20),
        ..Limits::default()
    };
    limits::raise_files();
    let pages = lind_kernel::mem::PageMap::open();
    lind_kernel::mem::budget::learn();
    let directory = walls::open_directory(&resolved.root).context("root directory")?;
    let mut root = Root::new(directory, Some(&resolved.root), Walls::Openat2);
    let detached = detached
        .and_then(|()| root.detach(&cache.iter().chain(handed).copied().collect::<Vec<_>>()))
        .map_err(|errno| errno.to_string());
    let how = match mounts {
        Mounts::Kernel(kept) => {
            // The user's working directory is outside the root, so it is left.
            let _ = rustix::process::chdir(&resolved.root);
            let names: Vec<_> = kept.sources.iter().map(PathBuf::as_path).collect();
            root.set_table(kept.table, &names);
            walls::OVER_TABLE
        }
        mounts => {
            let (walls, how) = match &mounts {
                Mounts::Whole(_) => walls::switch_root(&resolved.root)?,
                _ => walls::change_root(&resolved.root, in_namespace),
            };
            root.set_walls(walls);
            if let Mounts::Host(mounted) | Mounts::Whole(mounted) = mounts {
                root.set_mounted(mounted);
            }
            how
        }
    };
    let in_grates = plan.in_grates.iter().map(|path| path.as_os_str().as_bytes().to_vec());
    root.set_in_grates(in_grates.collect());
    root.set_volumes(plan.volumes.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect());
    if plan.explain {
        root.set_read_only();
    }
    let mut report = walls::confine(how, &root, (cache, handed), detached);
    root.walls_are_up();
    if plan.verbose || plan.require_confinement {
        report.compiler = link.walls().map_err(|error| format!("{error:#}"));
    }
    if plan.verbose {
        stdio::say_line(&format!("root {}, {}", resolved.root.display(), report.line()));
    }
    if plan.require_confinement {
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
