//! Births of cages: the first one, and children that `spawn` makes.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use lind_abi::{CageId, Errno, NR_ANY, Result};

use super::credentials;
use super::exit::Family;
use super::load::{Loaded, load_named};
use super::reading::READING;
use super::reparent::Kin;
use super::root::OwnRoot;
use super::signal::{self, Signals};
use super::{Cage, Credentials, FileIds, Settings, Text, Thread};
use crate::Kernel;
use crate::event::Event;
use crate::fd::FdTable;
use crate::landlock::{Confined, Domain};
use crate::mem::{CageMemory, Memory};
use crate::root::Directory;
use crate::runtime::{Hop, LoadError, Start};
use crate::threei::{AS_BEFORE, Change, Handler, HandlerTable};

/// A program to start: its name, arguments and environment.
pub struct Program {
    /// The name as typed.
    pub name: CString,
    /// argv, with the name in front.
    pub argv: Vec<CString>,
    /// envp.
    pub envp: Vec<CString>,
    /// The signals that the first cage ignores from the start, as a set.
    pub ignored: u64,
    /// The umask of the first cage.
    pub umask: u32,
    /// For the first cage: how many descriptors behind the standard ones it has from the process.
    pub preserved: u32,
}

/// Starts the first cage, in `start_in`: host descriptors 0, 1 and 2 are its own.
///
/// # Errors
/// The reason why the program cannot be loaded; ENOMEM and EAGAIN if memory or threads are
/// used up.
pub fn boot(kernel: &Arc<Kernel>, start_in: Directory, program: Program) -> std::result::Result<Arc<Cage>, LoadError> {
    let loaded = load_named(kernel, start_in.dir(), (&program.name, None, true), None)?;
    begin(kernel, start_in, program, loaded)
}

/// Builds the first cage from a loaded program.
// Not inlined: its frame has several pages, and loading would lie on top of them; each further page
// of stack costs a start one more page fault.
#[inline(never)]
fn begin(
    kernel: &Arc<Kernel>,
    start_in: Directory,
    program: Program,
    loaded: Loaded,
) -> std::result::Result<Arc<Cage>, LoadError> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |errno: Errno| LoadError { errno, reason: format!("{what}: {errno}"), untrusted: false }
    };
    let born = Born {
        handlers: if kernel.root.read_only() { HandlerTable::only(READING) } else { HandlerTable::default() },
        fds: FdTable::with_stdio(kernel.limits.files.0, &kernel.readers, program.preserved),
        cwd: Arc::new(start_in),
        root: None,
        domain: None,
        umask: program.umask,
        settings: first_settings(kernel, loaded.path.clone(), loaded.text),
        signals: Signals::ignoring(program.ignored),
        ancestors: Box::new([]),
        launching: kernel.engine().is_grate(&loaded.executable),
        is_command: false,
        forked_under: 0,
        memory: CageMemory::own(Memory::new(kernel.limits.memory.0).map_err(failed("no room for a cage"))?),
    };
    let thread = born.create(kernel).map_err(failed("no room for a cage"))?;
    let cage = Arc::clone(&thread.cage);
    if !kernel.engine().is_grate(&loaded.executable) {
        kernel.line().has_program();
    }
    let start = Start {
        executable: loaded.executable,
        random: kernel.seeded(cage.id, &program.argv),
        argv: program.argv,
        envp: program.envp,
        path: loaded.path,
        text: None,
        ids: FileIds::default(),
    };
    kernel.engine().start(kernel, thread, start).map_err(failed("cannot start the program"))?;
    Ok(cage)
}

/// The settings of the first cage.
fn first_settings(kernel: &Kernel, program: CString, text: Text) -> Settings {
    let mut limits = kernel.limits;
    limits.bind();
    Settings {
        credentials: Credentials::of_runner(),
        limits,
        group: 0,
        session: 0,
        program,
        text: Some(text),
        dumpable: true,
        no_new_privs: false,
        core_filter: Settings::CORE_FILTER,
        timer_slack: Settings::TIMER_SLACK,
        timer_slack_at_start: Settings::TIMER_SLACK,
        persona: 0,
        barriers: 0,
        oom: crate::procfs::OomScore::default(),
        death_signal: 0,
        names: Arc::clone(&kernel.names),
        ipc: crate::ipc::Space::FIRST,
    }
}

/// The handler table of a child: the parent's with these functions of the parent, or
/// [`AS_BEFORE`].
fn table_with(parent: &Cage, handlers: &[(u32, u32)]) -> Result<HandlerTable> {
    let table = parent.handlers.inherit();
    let to = |entry| match entry {
        AS_BEFORE => Change::Inherited,
        entry => Change::To(Handler::Grate { cage: parent.id, entry, serialized: false }),
    };
    for &(_, entry) in handlers.iter().filter(|&&(number, _)| number == NR_ANY) {
        table.set_default(to(entry), |_| Ok::<(), Errno>(()), |_, _| true)?;
    }
    for &(number, entry) in handlers.iter().filter(|&&(number, _)| number != NR_ANY) {
        table.set(u64::from(number), to(entry), |_| Ok::<(), Errno>(()))?;
    }
    Ok(table)
}

/// Makes `parent` ready to handle calls.
fn prepare_to_serve(kernel: &Kernel, parent: &Arc<Cage>, handlers: &[(u32, u32)]) -> Result<()> {
    if !kernel.engine().serves(parent) {
        return Err(Errno::ENOEXEC);
    }
    if !handlers.iter().all(|&(number, _)| kernel.engine().may_handle(parent, u64::from(number))) {
        return Err(Errno::EPERM);
    }
    parent.serve(None)
}

/// Starts a program in a child of `parent`; an open program is passed as a file. The child gets a
/// copy of the parent's table and then `handlers` (number, entry), all of them functions of the
/// parent or [`AS_BEFORE`]. `lender` is the calling host thread, if it may run the child.
///
/// # Errors
/// ENOEXEC if there are handlers and the parent exports no way to enter them, EPERM if it does not
/// declare them or no longer serves calls; the errors of finding and loading; EAGAIN at the limit
/// of cages.
pub fn spawn(
    kernel: &Arc<Kernel>,
    parent: &Arc<Cage>,
    (program, file): (Program, Option<OwnedFd>),
    handlers: &[(u32, u32)],
    lender: Option<&dyn Hop>,
) -> Result<CageId> {
    if !handlers.is_empty() {
        prepare_to_serve(kernel, parent, handlers)?;
    }
    let cwd = parent.cwd.load_full();
    parent.as_itself()?;
    let Loaded { executable, path, text } =
        load_named(kernel, cwd.dir(), (&program.name, file, searches(kernel, parent)), Some(parent))
            .map_err(|e| e.errno)?;
    let table = table_with(parent, handlers)?;
    let mut settings = parent.settings().forked();
    settings.credentials.execute(FileIds::default());
    settings.limits.bind();
    settings.runs(path.clone(), Some(text));
    let fds = parent.fds.inherit();
    let listeners = super::signal::renew(kernel, parent, &fds)?;
    let (launching, is_grate) = (parent.launching.load(Ordering::Acquire), kernel.engine().is_grate(&executable));
    let born = Born {
        handlers: table,
        fds,
        cwd,
        root: parent.root.get(),
        domain: parent.confined.get(),
        umask: parent.umask.load(std::sync::atomic::Ordering::Relaxed),
        settings,
        signals: parent.signals().executed(),
        ancestors: parent.line(),
        launching: launching && is_grate,
        is_command: launching && !is_grate,
        forked_under: 0,
        memory: CageMemory::own(Memory::new(parent.settings().limits.memory.0)?),
    };
    let thread = born.create(kernel)?;
    let child = Arc::clone(&thread.cage);
    child.listens_by(listeners);
    parent.family().children.push(child.id);
    if !is_grate {
        kernel.line().has_program();
    }
    let start = Start {
        executable,
        random: kernel.seeded(child.id, &program.argv),
        argv: program.argv,
        envp: program.envp,
        path,
        text: None,
        ids: FileIds::default(),
    };
    let started = match lender {
        Some(host) => host.lend(kernel, thread, start),
        None => kernel.engine().start(kernel, thread, start),
    };
    if let Err(errno) = started {
        parent.family().children.retain(|&id| id != child.id);
        kernel.cages.remove(child.id);
        return Err(errno);
    }
    Ok(child.id)
}

/// Whether programs that a cage starts are found by name as on lind-boot's command line. That line
/// consists of the first cage and the grates after it, down to the first program that handles no
/// calls.
pub(crate) fn searches(kernel: &Kernel, cage: &Cage) -> bool {
    cage.launching.load(Ordering::Acquire) && kernel.engine().serves(cage)
}

/// The parts of a new cage.
pub(super) struct Born {
    pub handlers: HandlerTable,
    pub fds: FdTable,
    pub cwd: Arc<Directory>,
    pub root: Option<Arc<Directory>>,
    pub domain: Option<Arc<Domain>>,
    pub umask: u32,
    pub settings: Settings,
    pub signals: Signals,
    pub ancestors: Box<[CageId]>,
    pub launching: bool,
    pub is_command: bool,
    pub forked_under: u32,
    pub memory: CageMemory,
}

impl Born {
    /// Makes the cage and its first thread, which does not run yet.
    pub(super) fn create(mut self, kernel: &Arc<Kernel>) -> Result<Arc<Thread>> {
        let id = kernel.id_of_child(self.ancestors.last().copied())?;
        kernel.cages_made.fetch_add(1, Ordering::Relaxed);
        if self.ancestors.is_empty() {
            (self.settings.group, self.settings.session) = (id.0, id.0);
        }
        let effective = credentials::effective_word(&self.settings.credentials);
        let files_as = credentials::files_word(&self.settings.credentials);
        if files_as != 0 {
            self.fds.watch();
        }
        let limit = self.settings.limits.cages;
        let kin = Kin::of(self.ancestors.last().copied());
        let cage = Arc::new(Cage {
            id,
            kin,
            ancestors: self.ancestors,
            handlers: self.handlers,
            routes: crate::fd_routes::OfCage::default(),
            memory: self.memory,
            fds: self.fds,
            cwd: ArcSwap::new(self.cwd),
            root: OwnRoot::new(self.root),
            confined: Confined::new(self.domain),
            umask: AtomicU32::new(self.umask),
            effective: AtomicU64::new(effective),
            files_as: AtomicU64::new(files_as),
            settings: Mutex::new(self.settings),
            family: Mutex::new(Family::default()),
            news: Mutex::default(),
            changed: Event::default(),
            gone: Event::default(),
            signals: Mutex::new(self.signals),
            timers: Mutex::default(),
            pace: crate::timers::Pace::default(),
            files_pace: crate::timers::Pace::default(),
            launching: AtomicBool::new(self.launching),
            is_command: self.is_command,
            fresh_fork: AtomicBool::new(false),
            forked_under: self.forked_under,
            life: super::life::Stage::default(),
            returned: AtomicBool::new(false),
            pending: AtomicU64::new(0),
            listeners: signal::Listeners::default(),
            watchers: Mutex::default(),
            exit_notice: AtomicU64::new(0),
        });
        let thread = Thread::join(&cage, id.0, false)?;
        kernel.cages.insert(cage, limit)?;
        if kernel.senders.asked() {
            thread.cage.fds.watch();
        }
        thread.cage.watch_cpu(kernel);
        Ok(thread)
    }
}
