//! Births of cages: the first one, and children that `spawn` makes.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use lind_abi::flags::OpenFlags;
use lind_abi::{CageId, Errno, NR_ANY, Result};

use super::credentials;
use super::exit::Family;
use super::line::{self, Installed};
use super::reading::READING;
use super::reparent::Kin;
use super::root::OwnRoot;
use super::signal::{self, Signals};
use super::{Cage, Credentials, FileIds, Settings, Text, Thread};
use crate::Kernel;
use crate::event::Event;
use crate::fd::FdTable;
use crate::host;
use crate::landlock::{self, Confined, Domain};
use crate::mem::{CageMemory, Memory};
use crate::root::table::{Dir, MountId};
use crate::root::{Directory, Last};
use crate::runtime::{Executable, Gone, Hop, LoadError, Start};
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

/// A program file that was found.
pub struct Found<'k> {
    /// The file.
    pub file: OwnedFd,
    /// Its guest path.
    pub path: CString,
    /// The place where it was found.
    pub from: From<'k>,
}

/// The places where programs are found.
#[derive(Clone, Copy)]
pub enum From<'k> {
    /// A path in the root.
    Root,
    /// The root, by a name that was searched for. It may not be a grate, because any program may
    /// have put it there.
    Search,
    /// The command line.
    Line(&'k Installed),
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
    let start = Start { executable, argv: program.argv, envp: program.envp, path, text: None, ids: FileIds::default() };
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
        let id = CageId(kernel.new_id()?);
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

/// A program that was found and loaded.
pub(super) struct Loaded {
    pub executable: Executable,
    pub path: CString,
    pub text: Text,
}

/// Finds a program, unless it is an open file, and loads it for a child of the cage `whose`, which
/// may end meanwhile.
fn load_named(
    kernel: &Kernel,
    cwd: Dir<'_>,
    (name, file, search): (&CStr, Option<OwnedFd>, bool),
    whose: Option<&Cage>,
) -> std::result::Result<Loaded, LoadError> {
    let found = match file {
        Some(file) => Found { file, path: name.to_owned(), from: From::Root },
        None => find_program(kernel, cwd, name, search, Last::Follow).map_err(|errno| not_found(errno, name))?,
    };
    if let Some(cage) = whose {
        cage.may_run(kernel, &found).map_err(|errno| not_found(errno, &found.path))?;
    }
    let text = kernel.run(found.file.as_fd()).map_err(|errno| not_found(errno, &found.path))?;
    // Set-user-ID bits apply to execve(2) only: a spawned program has its parent's ids.
    let beside = |source: &CStr| find_program(kernel, cwd, source, false, Last::Follow).map(|found| found.file);
    let is_dead = || whose.is_some_and(Cage::is_dead);
    let gone: Option<Gone<'_>> = whose.is_some().then_some(&is_dead);
    let (executable, text, _) = load_file(kernel, &beside, (&found.file, text), (&found.path, found.from), gone)?;
    if search {
        kernel.line().begins(kernel.engine().is_grate(&executable));
    }
    Ok(Loaded { executable, path: found.path, text })
}

impl Cage {
    /// Whether its domain lets it run a program.
    ///
    /// # Errors
    /// EACCES.
    pub(super) fn may_run(&self, kernel: &Kernel, program: &Found<'_>) -> Result<()> {
        if matches!(program.from, From::Line(_)) {
            return Ok(());
        }
        let file = Dir::new(program.file.as_fd(), MountId::ROOT);
        landlock::permit_opened(kernel, self, file, landlock::access::EXECUTE)
    }
}

fn not_found(errno: Errno, name: &CStr) -> LoadError {
    LoadError { errno, reason: format!("{}: {errno}", name.to_string_lossy()), untrusted: false }
}

/// Opens the file of this name that takes the place of one that may not run.
pub(super) type Beside<'a> = &'a dyn Fn(&CStr) -> Result<OwnedFd>;

/// Loads a program file. Returns the executable, the file that runs, and the ids that it gives. If
/// a .cwasm may not be trusted, the .wasm beside it takes its place. The engine opens further files
/// with the runner's identity, which the calling thread keeps afterwards.
///
/// # Errors
/// The reason why the program cannot be loaded.
pub(super) fn load_file(
    kernel: &Kernel,
    beside: Beside<'_>,
    (file, text): (&OwnedFd, Text),
    (path, from): (&CString, From<'_>),
    gone: Option<Gone<'_>>,
) -> std::result::Result<(Executable, Text, FileIds), LoadError> {
    let ids = |file: &OwnedFd| file_ids(kernel, file.as_fd());
    host::identity::take_on_runner().map_err(|errno| not_found(errno, path))?;
    let loaded = match (kernel.engine().load(file.as_fd(), path, gone), from) {
        (Err(error), From::Line(grate)) if error.untrusted => {
            let Some(source) = &grate.source else { return Err(error) };
            kernel.engine().load(source.as_fd(), path, gone).map(|executable| (executable, text, FileIds::default()))
        }
        (loaded, From::Line(_)) => loaded.map(|executable| (executable, text, FileIds::default())),
        (Err(error), _) if error.untrusted => {
            let source = path.to_bytes().strip_suffix(b".cwasm").map(|stem| [stem, b".wasm"].concat());
            let source = source.and_then(|path| CString::new(path).ok());
            let Some(source) = source else { return Err(error) };
            let Ok(file) = beside(&source) else { return Err(error) };
            let text = kernel.run(file.as_fd()).map_err(|errno| not_found(errno, &source))?;
            kernel.engine().load(file.as_fd(), &source, gone).map(|executable| (executable, text, ids(&file)))
        }
        (loaded, _) => loaded.map(|executable| (executable, text, ids(file))),
    };
    match loaded {
        Ok((executable, ..)) if matches!(from, From::Search) && kernel.engine().is_grate(&executable) => {
            let path = path.to_string_lossy();
            let reason = format!(
                "{path}: a grate in the root, which programs may have put there: name it with a slash, or use --grates"
            );
            Err(LoadError { errno: Errno::EACCES, reason, untrusted: false })
        }
        loaded => loaded,
    }
}

/// The ids that a program's file gives who runs it; none on a filesystem that gives none.
fn file_ids(kernel: &Kernel, file: BorrowedFd<'_>) -> FileIds {
    const SET_USER: u32 = 0o4000;
    const SET_GROUP: u32 = 0o2010;
    let Ok(stat) = rustix::fs::fstat(file) else { return FileIds::default() };
    let has = |bits: u32| stat.st_mode & bits == bits;
    if !(has(SET_USER) || has(SET_GROUP)) {
        return FileIds::default();
    }
    // On a mount of the kernel's none counts.
    let gives = kernel.root.table().is_none()
        && rustix::fs::fstatvfs(file).is_ok_and(|fs| !fs.f_flag.contains(rustix::fs::StatVfsMountFlags::NOSUID));
    FileIds {
        uid: (gives && has(SET_USER)).then_some(stat.st_uid),
        gid: (gives && has(SET_GROUP)).then_some(stat.st_gid),
    }
}

impl Kernel {
    /// Marks a file that is about to be executed. The calling thread has the runner's identity
    /// afterwards: the host lets only a file's owner ask for its writers.
    ///
    /// # Errors
    /// ETXTBSY while it is open for writing.
    pub(super) fn run(&self, file: BorrowedFd<'_>) -> Result<Text> {
        host::identity::take_on_runner()?;
        self.busy.run(file, &self.locks)
    }
}

/// Opens the program `name`. With `search` (the command line of the runner) a name that grates have
/// is one of the line's; another is tried as given, then with `.cwasm` and `.wasm`, then the same
/// in `/bin` if it has no slash, and with the other of `-` and `_` before `grate` if it has one.
///
/// # Errors
/// ENOENT; EACCES for a directory or another file that is not regular; ELOOP for a symbolic link
/// that is not to be followed; ENOTDIR if a cage that is not of the line names a grate of the line.
pub fn find_program<'k>(kernel: &'k Kernel, cwd: Dir<'_>, name: &CStr, search: bool, last: Last) -> Result<Found<'k>> {
    let marked = line::marked(name);
    if marked.is_some() && !search {
        return Err(Errno::ENOTDIR);
    }
    let name = name.to_bytes();
    if let Some(name) = marked.or_else(|| Some(name).filter(|name| search && line::is_grate_name(name))) {
        let grate = kernel.line().grate(name).ok_or(Errno::ENOENT)?;
        let file = grate.file().try_clone_to_owned().map_err(|_| Errno::EMFILE)?;
        return Ok(Found { file, path: grate.path.clone(), from: From::Line(grate) });
    }
    let (folders, suffixes): (&[&[u8]], &[&[u8]]) = match (search, name.contains(&b'/')) {
        (false, _) => (&[b""], &[b""]),
        (true, true) => (&[b""], &[b"", b".cwasm", b".wasm"]),
        // A file in the working directory never replaces a program.
        (true, false) => (&[b"/bin/", b""], &[b"", b".cwasm", b".wasm"]),
    };
    // Grates that start programs look for them, too.
    let looked_for =
        name.strip_prefix(b"/bin/").is_some_and(|name| !name.contains(&b'/') && !line::is_grate_name(name));
    let from = if search && (looked_for || !name.contains(&b'/')) { From::Search } else { From::Root };
    let mut failure = Errno::ENOENT;
    let respelled = line::other_spelling(name).filter(|_| search);
    for name in [Some(name), respelled.as_deref()].into_iter().flatten() {
        for (folder, suffix) in folders.iter().flat_map(|folder| suffixes.iter().map(move |suffix| (folder, suffix))) {
            let path = CString::new([folder, name, suffix].concat()).map_err(|_| Errno::EINVAL)?;
            match open_program(kernel, cwd, &path, last) {
                Ok(file) => return Ok(Found { file, path, from }),
                Err(Errno::ENOENT | Errno::ENOTDIR) if search => {}
                Err(errno) if failure == Errno::ENOENT => failure = errno,
                Err(_) => {}
            }
        }
    }
    Err(failure)
}

fn open_program(kernel: &Kernel, cwd: Dir<'_>, path: &CStr, last: Last) -> Result<OwnedFd> {
    // O_NONBLOCK: a fifo of that name must not hold us up.
    let flags = OpenFlags::O_CLOEXEC | OpenFlags::O_NONBLOCK;
    let nofollow = if last == Last::NoFollow { OpenFlags::O_NOFOLLOW } else { 0 };
    let file = match kernel.root.open(cwd, path, flags | nofollow, 0) {
        // A socket, which cannot be opened and so is not a program either.
        Err(Errno::ENXIO) => return Err(Errno::EACCES),
        opened => opened?.file,
    };
    let stat = rustix::fs::fstat(&file).map_err(crate::host::errno)?;
    match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
        rustix::fs::FileType::RegularFile => Ok(file),
        _ => Err(Errno::EACCES),
    }
}
