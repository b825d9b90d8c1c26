//! The microkernel that every system call of a cage ends in, unless a grate answers it.
//!
//! It owns cages, interposition tables, memory maps and file descriptors, and leans on the host
//! kernel for everything else. It knows nothing of the engine that runs guest code: that is the
//! [`runtime::GuestRuntime`] trait, and the tests have one of their own.
//!
//! # Module map
//! - [`call`]: from a number and six arguments to a kernel function or a grate
//! - [`copy_out`]: copies that are made when a grate's handler returns
//! - [`denial`]: reports of calls that grates have refused
//! - [`threei`], [`authority`]: handler tables, and who may change or name what
//! - [`cage`]: cages and their threads, birth, exit, wait, signals
//! - [`event`]: waiting for something that happens inside the kernel
//! - `spin`: looking for a while before sleeping
//! - [`mem`]: guest memory, its map, and the doors through which the kernel touches it
//! - [`fd`]: descriptor tables and open files
//! - `async_io`: signals about files that can be read or written: SIGIO and SIGURG
//! - `path`: where look-ups of guest paths start, and what they must not do
//! - [`root`]: how guest paths are kept inside the guest's root
//! - `procfs`: /proc and /dev, which the kernel serves itself
//! - `host`: the host calls that take guest addresses
//! - [`sealed`]: memory files that nobody can change any more
//! - `ipc`: System V shared memory, semaphores and message queues
//! - `terminal`: sessions' terminals and pseudoterminals
//! - [`stdio`]: messages of the runner itself
//! - `writing`: opening for writing, which is refused for files that a cage executes
//! - `sys`: one function per system call, by area
//!
//! # Lock order
//! A thread that holds one of these takes only later ones; `stopped_outside` comes before them all.
//! No thread holds two cages' locks of one kind, except for `Cage::signals`: sending a signal to
//! several cages takes those of all, by ascending id.
//!
//! 1. `Kernel::kinship`
//! 2. `Cage::news`
//! 3. `Cage::signals`
//! 4. a thread's own queue of signals
//! 5. what listens for signals (`signal::Listeners`)
//! 6. a timer's setting
//! 7. `Cage::family`
//! 8. the writers of `HandlerTable`
//! 9. the writers of `FdTable`
//! 10. a file's `async_io::Notice`
//! 11. `Terminals`
//! 12. `Ipc`, the state of `AsyncIo`, and the clock's of `timers`
//! 13. `Memory::map`
//! 14. `Cage::settings`
//! 15. `cage::text_busy`
//! 16. the names in a mount (`root::budget`), also while the host changes them
//! 17. the record locks of files (`Locks`)
//! 18. `Loopback::changing`, a socket's `Private`, the ports of `Loopback`, in this order
//! 19. `CageTable`, `Cage::timers`, `Cage::watchers`, `cage::Names` and `Kernel::allowance`:
//!     nothing within these
//!
//! No guard is held while a grate is entered or the host blocks.
//!
//! # Failures
//! An errno goes back to the caller. A fault of a guest ends its cage by a signal. A panic is a bug
//! of ours: no guest may reach one.
#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "tests cut random numbers to size"))]

mod async_io;
pub mod authority;
pub mod cage;
pub mod call;
pub mod copy_out;
pub mod course;
pub mod denial;
pub mod event;
pub mod fd;
pub mod fd_routes;
mod host;
mod ipc;
mod landlock;
pub mod lock;
pub mod mem;
mod path;
mod procfs;
pub mod root;
pub mod rules;
pub mod runtime;
pub mod sealed;
pub mod set_id;
mod spin;
pub mod stdio;
mod sys;
pub mod terminal;
#[cfg(any(test, feature = "testing"))]
#[allow(dead_code, missing_docs, clippy::print_stderr, reason = "for tests, of which each area uses its part")]
pub mod testing;
pub mod text;
pub mod threei;
mod timers;
mod writing;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

pub use host::lease::Lease;
pub use host::mounts::{detached as detached_mount, restrict as restrict_mount};
pub use host::requests;
pub use lind_abi::{Arg, CageId, Call, Errno, Result};
pub use procfs::Allowance;

use cage::CageTable;
use lock::Locked as _;
use root::Root;
use runtime::GuestRuntime;

/// A kernel: all cages of one runner. Several can live in one process.
pub struct Kernel {
    /// The cages that exist.
    pub cages: CageTable,
    /// The root, in which guest paths are resolved.
    pub root: Root,
    /// The record locks of all cages.
    pub locks: Arc<fd::locks::Locks>,
    /// The limits a first cage starts with.
    pub limits: cage::Limits,
    /// Taken before all other locks by those who leave children or a parent behind.
    pub(crate) kinship: Mutex<()>,
    pub(crate) busy: Arc<cage::Busy>,
    pub(crate) sockets: fd::SocketNames,
    /// TCP and UDP between cages.
    pub loopback: fd::loopback::Loopback,
    pub(crate) senders: fd::Senders,
    pub(crate) in_flight: Arc<fd::InFlight>,
    /// The descriptors that threads are using.
    pub readers: Arc<fd::Readers>,
    /// The page map, for forks.
    pub pages: mem::PageMap,
    pub(crate) shared: procfs::shared::SharedFiles,
    pub(crate) terminals: terminal::Terminals,
    pub(crate) ipc: ipc::Ipc,
    /// When it was made, since the machine started.
    pub(crate) born: lind_abi::layout::Timespec,
    pub(crate) boot_id: OnceLock<[u8; 16]>,
    pub(crate) timers: Arc<timers::Timers>,
    pub(crate) async_io: async_io::AsyncIo,
    /// The names of the machine that the first cage has.
    pub(crate) names: Arc<cage::Names>,
    pub(crate) processors: cage::processors::Processors,
    denials: OnceLock<denial::Listener>,
    asks: OnceLock<Arc<dyn denial::Ask>>,
    /// The last denials in words for programs, the newest last.
    explained: Mutex<VecDeque<String>>,
    /// The rules of grates that the user can change.
    pub rules: rules::Rules,
    engine: OnceLock<Box<dyn GuestRuntime>>,
    line: OnceLock<cage::Line>,
    allowance: Mutex<Allowance>,
    /// The cage that this process is to others, if not the first.
    represented: OnceLock<lind_abi::CageId>,
    /// The end of the command behind all grates of the command line.
    pub(crate) command_end: OnceLock<cage::Status>,
    /// Whether this process has been stopped together with its first cage, and has not got a
    /// SIGCONT yet. Held while it is stopped, and while cages get SIGCONT.
    pub(crate) stopped_outside: Mutex<bool>,
    /// Whether the run ends after a time.
    pub(crate) timed: AtomicBool,
    /// Files of volumes that give other rights when they are executed at the host.
    pub set_ids: set_id::SetIds,
    /// The number of cages made so far.
    pub(crate) cages_made: AtomicU64,
    pub(crate) course: course::OfKernel,
    last_id: AtomicU32,
    last_worker: AtomicU32,
    last_namespace: AtomicU64,
}

impl Kernel {
    /// A kernel whose guests see `root`; `pages` was opened before the process confined itself. It
    /// runs nothing until [`Kernel::attach`] gives it an engine.
    pub fn new(root: Root, limits: cage::Limits, pages: mem::PageMap) -> Arc<Kernel> {
        Arc::new(Kernel {
            cages: CageTable::default(),
            root,
            locks: Arc::default(),
            limits,
            kinship: Mutex::default(),
            busy: Arc::default(),
            sockets: fd::SocketNames::new(),
            loopback: fd::loopback::Loopback::default(),
            senders: fd::Senders::default(),
            in_flight: Arc::default(),
            readers: Arc::default(),
            pages,
            shared: procfs::shared::SharedFiles::default(),
            terminals: terminal::Terminals::default(),
            ipc: ipc::Ipc::default(),
            born: host::clock::gettime(libc::CLOCK_BOOTTIME).unwrap_or_default(),
            boot_id: OnceLock::new(),
            timers: Arc::default(),
            async_io: async_io::AsyncIo::default(),
            names: Arc::default(),
            processors: cage::processors::Processors::new(),
            denials: OnceLock::new(),
            asks: OnceLock::new(),
            explained: Mutex::default(),
            rules: rules::Rules::default(),
            engine: OnceLock::new(),
            line: OnceLock::new(),
            allowance: Mutex::default(),
            represented: OnceLock::new(),
            command_end: OnceLock::new(),
            stopped_outside: Mutex::default(),
            timed: AtomicBool::new(false),
            set_ids: set_id::SetIds::default(),
            cages_made: AtomicU64::new(0),
            course: course::OfKernel::default(),
            last_id: AtomicU32::new(0),
            last_worker: AtomicU32::new(0),
            last_namespace: AtomicU64::new(0),
        })
    }

    /// Gives the kernel its engine. Later calls have no effect.
    pub fn attach(&self, engine: Box<dyn GuestRuntime>) {
        let _ = self.engine.set(engine);
    }

    /// The end of the command behind all grates of the command line, if it has ended, and if there
    /// are grates.
    pub fn command_end(&self) -> Option<cage::Status> {
        self.command_end.get().copied()
    }

    /// How many cages there have been, grates too.
    pub fn cages_made(&self) -> u64 {
        self.cages_made.load(Ordering::Relaxed)
    }

    /// Gives the cages a host name that is not the host's.
    pub fn set_host_name(&self, name: &[u8]) {
        self.names.set_host(name);
        self.names.set_domain(b"(none)");
    }

    /// Sets the limits that /sys/fs/cgroup shows.
    pub fn show_allowance(&self, allowance: Allowance) {
        *self.allowance.locked() = allowance;
    }

    /// Lets signals that other processes send to this one be for a cage, instead of the first.
    /// Later calls have no effect.
    pub fn represent(&self, cage: lind_abi::CageId) {
        let _ = self.represented.set(cage);
    }

    /// See [`Kernel::represent`].
    pub fn represented(&self) -> Option<lind_abi::CageId> {
        self.represented.get().copied()
    }

    pub(crate) fn allowance(&self) -> Allowance {
        *self.allowance.locked()
    }

    /// Gives the kernel what the command line brings. Later calls have no effect.
    pub fn bring(&self, line: cage::Line) {
        let _ = self.line.set(line);
    }

    /// The settings that come from the command line.
    pub(crate) fn line(&self) -> &cage::Line {
        self.line.get_or_init(cage::Line::default)
    }

    /// The engine.
    pub fn engine(&self) -> &dyn GuestRuntime {
        self.engine.get().expect("the runner attaches an engine before it starts a cage").as_ref()
    }

    /// The foreground process group of a session's own terminal, one that was handed in; None if no
    /// cage has asked about it.
    pub fn front_group(&self, session: u32) -> Option<u32> {
        self.terminals.console_group(self, session)
    }

    /// The foreground process group of the terminal that was handed in. Any session may have it.
    pub fn console_group(&self) -> Option<u32> {
        self.terminals.handed_in_group(self)
    }

    /// Notes that the runner ends the run after a time. It does not stop itself then, as it could
    /// not end the run while stopped.
    pub fn ends_in_time(&self) {
        self.timed.store(true, Ordering::Relaxed);
    }

    /// The last id that was given out.
    pub(crate) fn newest_id(&self) -> u32 {
        self.last_id.load(Ordering::Relaxed)
    }

    /// The number of a new namespace. The first of each kind has 0. So many are there that no guest
    /// sees them begin again.
    pub(crate) fn new_namespace(&self) -> u64 {
        self.last_namespace.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A new id of a cage or of a thread of its own; they share one space, ascend from 1 and are
    /// never reused.
    ///
    /// # Errors
    /// EAGAIN when 2^29 ids have been used.
    pub fn new_id(&self) -> Result<u32> {
        next(&self.last_id, FIRST_WORKER)
    }

    /// A new id of a grate's worker. They are apart from those that programs see as process ids,
    /// since the number of workers depends on which host threads were idle.
    ///
    /// # Errors
    /// EAGAIN when 2^29 ids have been used.
    pub(crate) fn new_worker_id(&self) -> Result<u32> {
        next(&self.last_worker, FIRST_WORKER).map(|number| FIRST_WORKER + number)
    }
}

/// The ids of workers are greater. All ids have 30 bits, since libc's mutexes use the two above.
const FIRST_WORKER: u32 = 1 << 29;

/// The next number below `end`.
fn next(last: &AtomicU32, end: u32) -> Result<u32> {
    let more = |last: u32| last.checked_add(1).filter(|&next| next < end);
    last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map(|last| last + 1).map_err(|_| Errno::EAGAIN)
}

#[cfg(test)]
mod tests {
    use crate::root::Walls;
    use crate::testing::in_world;

    #[test]
    fn workers_take_no_ids_of_programs() {
        in_world(Walls::Openat2, |w| {
            let before = w.kernel.new_id().unwrap();
            let workers = [w.kernel.new_worker_id().unwrap(), w.kernel.new_worker_id().unwrap()];
            assert!(workers[0] > super::FIRST_WORKER && workers[1] == workers[0] + 1 && workers[1] < 1 << 30);
            assert_eq!(w.kernel.new_id(), Ok(before + 1));
            w.kernel.last_id.store(super::FIRST_WORKER - 2, super::Ordering::Relaxed);
            assert_eq!(w.kernel.new_id(), Ok(super::FIRST_WORKER - 1));
            for _ in 0..2 {
                assert_eq!(w.kernel.new_id(), Err(super::Errno::EAGAIN));
            }
        });
    }
}
