//! Cages and their threads.
//!
//! A cage is a guest process. It is shared by reference counting: its threads, the grates that act
//! on it and the table of cages hold it, and it is a zombie from its end until its parent has
//! waited.

mod birth;
mod credentials;
mod drain;
mod exec;
mod exit;
mod fork;
mod life;
mod line;
mod load;
mod names;
pub(crate) mod processors;
mod reading;
mod reparent;
mod robust;
pub(crate) mod root;
pub mod signal;
mod table;
mod text_busy;
mod thread;
pub(crate) mod timer;
pub(crate) mod usage;
mod wait;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use lind_abi::flags::Resource;
use lind_abi::{CageId, Errno, Result};

pub(crate) use birth::searches;
pub use birth::{Program, boot, spawn};
pub use credentials::{Capabilities, Credentials, FileIds};
pub(crate) use credentials::{EFFECTIVE, REAL, SAVED, capability, secure};
pub use exec::{INTERPRETERS, Named, Where, commit_exec, interpreter_of, prepare_exec};
pub use exit::Status;
pub use fork::{Birth, How};
pub(crate) use fork::{make_child, parent_of};
pub use line::{Installed, Line, is_grate_name, other_spelling};
pub use load::{Found, find_program};
pub(crate) use names::{LONGEST_NAME, Names};
pub use table::CageTable;
pub(crate) use text_busy::Busy;
pub use text_busy::Text;
pub use thread::{Attention, Next, Thread};
pub(crate) use wait::{Wait, Which, wait_child};

use life::Life;

use crate::fd::FdTable;
use crate::lock::Locked;
use crate::mem::CageMemory;
use crate::root::Directory;
use crate::threei::HandlerTable;

/// The resource limits of a cage. Inherited; a child can only lower it, or raise it again if it is
/// privileged.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// RLIMIT_NOFILE, soft and hard.
    pub files: (u64, u64),
    /// RLIMIT_AS in bytes, soft and hard: at most the 4 GiB a cage can address.
    pub memory: (u64, u64),
    /// RLIMIT_DATA in bytes, soft and hard: bounds the heap of brk(2).
    pub data: (u64, u64),
    /// RLIMIT_STACK in bytes, soft and hard. The main stack has 8 MiB whatever this says.
    pub stack: (u64, u64),
    /// RLIMIT_FSIZE in bytes.
    pub file_size: (u64, u64),
    /// The limits that are kept and inherited but not enforced, by number.
    pub others: [(u64, u64); 16],
    /// The values, by number, above which not even a privileged cage may raise a hard limit: the
    /// hard limits that the runner, or the grate that started it, has given it. None: the present
    /// hard limits.
    pub bounds: Option<[u64; 16]>,
    /// The nice value of getpriority(2). It has no effect and is kept for programs that ask.
    pub nice: i32,
    /// Cages that may be alive at once, over the whole runner.
    pub cages: u64,
    /// Threads that a cage may have at once.
    pub threads: usize,
}

impl Limits {
    /// Soft and hard limit of a resource; None for a number that is none.
    pub fn of(&mut self, resource: Resource) -> Option<&mut (u64, u64)> {
        Some(match resource.0 {
            Resource::RLIMIT_NOFILE => &mut self.files,
            Resource::RLIMIT_AS => &mut self.memory,
            Resource::RLIMIT_DATA => &mut self.data,
            Resource::RLIMIT_STACK => &mut self.stack,
            Resource::RLIMIT_FSIZE => &mut self.file_size,
            other => return self.others.get_mut(usize::try_from(other).ok()?),
        })
    }

    /// The hard limits are the most that there can be, from now on.
    pub(crate) fn bind(&mut self) {
        let hard = self.hard();
        self.bounds = Some(self.bounds.map_or(hard, |bounds| std::array::from_fn(|at| bounds[at].min(hard[at]))));
    }

    /// The value to which a hard limit may be raised.
    pub(crate) fn bound(&mut self, resource: Resource) -> u64 {
        let at = resource.0 as usize;
        let bounds = self.bounds.unwrap_or_else(|| self.hard());
        bounds.get(at).copied().unwrap_or(0)
    }

    fn hard(&mut self) -> [u64; 16] {
        std::array::from_fn(|at| u32::try_from(at).ok().and_then(|at| self.of(Resource(at))).map_or(0, |limit| limit.1))
    }
}

impl Default for Limits {
    fn default() -> Self {
        let mut others = [(u64::MAX, u64::MAX); 16];
        // No core files, no priority above the runner's.
        for resource in [Resource::RLIMIT_CORE, Resource::RLIMIT_NICE, Resource::RLIMIT_RTPRIO] {
            others[resource as usize] = (0, 0);
        }
        // The host's, which is the runner's as a whole besides.
        let locked = rustix::process::getrlimit(rustix::process::Resource::Memlock);
        let bytes = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        others[Resource::RLIMIT_MEMLOCK as usize] = (bytes(locked.current), bytes(locked.maximum));
        others[Resource::RLIMIT_SIGPENDING as usize] = (8192, 8192);
        Limits {
            files: (1024, 4096),
            memory: (1 << 32, 1 << 32),
            data: (u64::MAX, u64::MAX),
            stack: (8 << 20, 8 << 20),
            file_size: (u64::MAX, u64::MAX),
            others,
            bounds: None,
            nice: 0,
            cages: 4096,
            threads: 1024,
        }
    }
}

/// The settings that a cage inherits besides memory, descriptors and handlers, and may change for
/// itself.
pub struct Settings {
    /// Its ids, groups and capabilities.
    pub credentials: Credentials,
    /// Limits.
    pub limits: Limits,
    /// Process group, and session: ids of cages that began them.
    pub group: u32,
    /// See `group`.
    pub session: u32,
    /// The path the program was found at.
    pub program: std::ffi::CString,
    /// Its file, until the cage has ended.
    pub text: Option<Text>,
    /// prctl(PR_SET_DUMPABLE), PR_SET_NO_NEW_PRIVS, PR_SET_TIMERSLACK.
    pub dumpable: bool,
    /// See `dumpable`.
    pub no_new_privs: bool,
    /// See `dumpable`; in nanoseconds. Setting 0 restores the value that it began with.
    pub timer_slack: u64,
    /// /proc/PID/coredump_filter.
    pub(crate) core_filter: u32,
    /// See `timer_slack`.
    pub timer_slack_at_start: u64,
    /// personality(2): its flags.
    pub persona: u32,
    /// The commands for which membarrier(2) has been registered.
    pub barriers: i32,
    /// /proc/PID/oom_score_adj.
    pub(crate) oom: crate::procfs::OomScore,
    /// prctl(PR_SET_PDEATHSIG): the signal for when the parent ends; 0 for none.
    pub death_signal: u8,
    /// The names of the machine.
    pub(crate) names: Arc<Names>,
    /// The System V objects and message queues that it finds.
    pub(crate) ipc: crate::ipc::Space,
}

impl Settings {
    /// The timer slack a thread starts with, in nanoseconds.
    pub(crate) const TIMER_SLACK: u64 = 50_000;

    /// The parts of memory that Linux dumps by default.
    pub(crate) const CORE_FILTER: u32 = 0x33;

    /// The settings of a forked child.
    fn forked(&self) -> Settings {
        Settings {
            credentials: self.credentials.clone(),
            program: self.program.clone(),
            text: self.text.clone(),
            names: Arc::clone(&self.names),
            death_signal: 0,
            timer_slack_at_start: self.timer_slack,
            ..*self
        }
    }

    /// In nanoseconds; 0 is what it began with.
    pub(crate) fn set_timer_slack(&mut self, nanos: u64) {
        self.timer_slack = if nanos == 0 { self.timer_slack_at_start } else { nanos };
    }

    /// Another program runs from now on; returns the file of the one before.
    fn runs(&mut self, program: std::ffi::CString, text: Option<Text>) -> Option<Text> {
        self.program = program;
        self.dumpable = true;
        self.barriers = 0;
        std::mem::replace(&mut self.text, text)
    }
}

/// A guest process. Its fields are grouped by what guards them; the order of the locks is in the
/// head of the crate.
pub struct Cage {
    // Fixed at birth.
    /// Its id, also its pid.
    pub id: CageId,
    /// The cages that this one descends from: the first cage first, its maker last.
    ancestors: Box<[CageId]>,
    /// How many programs its parent had run when it was forked.
    pub(crate) forked_under: u32,

    // Fields with locks of their own inside, and fields that need none.
    /// See [`reparent`].
    kin: reparent::Kin,
    /// The handler table, which routes its calls.
    pub handlers: HandlerTable,
    /// The routes by descriptor that its grates have declared.
    pub(crate) routes: crate::fd_routes::OfCage,
    /// Its memory.
    pub memory: CageMemory,
    /// Its descriptors.
    pub fds: FdTable,
    /// Its working directory.
    pub cwd: arc_swap::ArcSwap<Directory>,
    /// Its root directory, if it has changed that.
    pub(crate) root: root::OwnRoot,
    /// The rules by which it has confined its use of files.
    pub(crate) confined: crate::landlock::Confined,
    /// Happens when a thread of it may have to look again: after news of a child, of its signals,
    /// or of the cage.
    pub(crate) changed: crate::event::Event,
    /// Happens when the cage has ended and all consequences are done. It is apart from `changed`,
    /// which also happens at the ends of threads.
    pub(crate) gone: crate::event::Event,
    /// The listeners for its signals, and for its end.
    pub(crate) listeners: signal::Listeners,
    /// How much its timers have had of the clock.
    pub(crate) pace: crate::timers::Pace,
    /// The share that events of its files have had of the thread of `async_io`.
    pub(crate) files_pace: crate::timers::Pace,

    // Single words, each changed at once.
    /// Its umask.
    pub umask: AtomicU32,
    /// The stage of its life.
    life: life::Stage,
    /// Whether programs that it starts are found by name as on lind-boot's command line: it is a
    /// grate of that line.
    pub(crate) launching: AtomicBool,
    /// Whether it is the command behind all grates of that line.
    pub(crate) is_command: bool,
    /// Forked, and has run no program of its own since.
    pub(crate) fresh_fork: AtomicBool,
    /// Uses memory that it borrowed no more: it has ended, or has memory of its own.
    pub(crate) returned: AtomicBool,
    /// Exit notice entry plus one; 0 is none.
    pub(crate) exit_notice: AtomicU64,

    /// Held while news of its children become known by wait4(2) and by SIGCHLD, so that a thread
    /// that has seen one of them also finds the other.
    pub(super) news: Mutex<()>,

    /// Dispositions, waiting signals, and whether it is stopped; see `signal`.
    pub(crate) signals: Mutex<signal::Signals>,
    /// The set of signals that wait for any of its threads: bit n-1 is signal n. Written under
    /// `signals`.
    pub(crate) pending: AtomicU64,

    /// Threads, children, how it ended; see `exit`.
    pub(crate) family: Mutex<exit::Family>,

    /// Its timers.
    pub(crate) timers: Mutex<timer::Owned>,

    /// See `listeners`.
    pub(crate) watchers: Mutex<exit::Watchers>,

    /// The rest of what it inherited.
    pub settings: Mutex<Settings>,
    /// Effective user and group id (low and high half) for geteuid, which is a fast path. Written
    /// under `settings`.
    pub effective: AtomicU64,
    /// The identity that the host sees when it uses files; see `credentials`. Written under
    /// `settings`.
    files_as: AtomicU64,
}

impl Cage {
    /// Whether `ancestor` is a proper ancestor.
    pub fn descends_from(&self, ancestor: CageId) -> bool {
        self.ancestors.contains(&ancestor)
    }

    /// The cage that made it, which need not be its parent now; None for the first.
    pub fn maker(&self) -> Option<CageId> {
        self.ancestors.last().copied()
    }

    /// The ancestors of a child of this cage.
    fn line(&self) -> Box<[CageId]> {
        self.ancestors.iter().copied().chain([self.id]).collect()
    }

    /// From the first cage down to the one that made it.
    pub fn ancestors(&self) -> &[CageId] {
        &self.ancestors
    }

    /// Whether it was forked and has not exec'd.
    pub fn is_fresh_fork(&self) -> bool {
        self.fresh_fork.load(Ordering::Acquire)
    }

    /// Whether it has ended: its handlers answer nothing any more.
    #[inline]
    pub fn is_dead(&self) -> bool {
        self.life.has_reached(Life::Dead)
    }

    /// Whether handlers that point to it are answered.
    #[inline]
    pub fn answers(&self) -> bool {
        !self.life.has_reached(Life::Retired)
    }

    /// Notes that functions of its program are handlers from now on. `programs`: the number of
    /// programs it had run when it was asked for.
    ///
    /// # Errors
    /// EPERM if it runs another program now, or had handlers in one that it ran before; ESRCH if it
    /// is ending.
    pub(crate) fn serve(&self, programs: Option<u32>) -> Result<()> {
        let mut family = self.family();
        if family.ended.is_some() {
            return Err(Errno::ESRCH);
        }
        let other = programs.is_some_and(|programs| programs != family.programs);
        if family.replacing || other || !self.answers() {
            return Err(Errno::EPERM);
        }
        family.serves = true;
        // A fork that found that the memory was its own is over when the map is free.
        drop(self.memory.map());
        Ok(())
    }

    /// The settings, locked.
    pub fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.locked()
    }

    /// Its process group. Returns a copy: a guard of `settings` would be held for the rest of the
    /// caller's expression, which may lock it again.
    pub fn group(&self) -> u32 {
        self.settings().group
    }

    /// Its session.
    pub fn session(&self) -> u32 {
        self.settings().session
    }

    /// Its children's news, held back.
    pub(super) fn news(&self) -> MutexGuard<'_, ()> {
        self.news.locked()
    }

    pub(crate) fn family(&self) -> MutexGuard<'_, exit::Family> {
        self.family.locked()
    }

    /// Its children, alive or to be waited for.
    pub(crate) fn child_ids(&self) -> Vec<CageId> {
        let family = self.family();
        family.children.iter().copied().chain(family.zombies.iter().map(|zombie| zombie.id)).collect()
    }

    /// A thread of this cage that has not ended.
    pub fn thread(&self, tid: u32) -> Option<Arc<Thread>> {
        self.threads().into_iter().find(|thread| thread.tid == tid)
    }

    /// How many threads there are, those included that serve others' calls here.
    pub fn thread_count(&self) -> usize {
        self.family().threads.len()
    }

    /// The threads that have not ended.
    pub(crate) fn threads(&self) -> Vec<Arc<Thread>> {
        self.family().threads.iter().filter_map(std::sync::Weak::upgrade).collect()
    }

    /// A further thread of this cage, with the settings of `like`.
    ///
    /// # Errors
    /// EAGAIN when there are too many, ids are used up or the cage is ending.
    pub(crate) fn new_own_thread(self: &Arc<Cage>, kernel: &crate::Kernel, like: &Thread) -> Result<Arc<Thread>> {
        let thread = Thread::join(self, kernel.new_id()?, false)?;
        thread.mask.store(like.mask.load(Ordering::Acquire), Ordering::Release);
        thread.runs_as(like);
        *thread.name.locked() = *like.name.locked();
        Ok(thread)
    }

    /// A further thread of this cage that runs on another cage's host thread: a grate's worker.
    ///
    /// # Errors
    /// EAGAIN when ids are used up or the cage is ending.
    pub fn new_thread(self: &Arc<Cage>, kernel: &crate::Kernel) -> Result<Arc<Thread>> {
        Thread::join(self, kernel.new_worker_id()?, true)
    }
}
