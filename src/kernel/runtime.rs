//! The interface between the kernel and the runtime of guest code: [`GuestRuntime`] and [`Hop`] are
//! implemented by the engine, and called by the kernel.

use std::any::Any;
use std::cell::Cell;
use std::ffi::CString;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use lind_abi::{CageId, Call, Errno, Result, Word};

use crate::Kernel;
use crate::cage::{Cage, Text, Thread};
use crate::threei::Packed;

/// A program ready to run. Opaque to the kernel.
pub type Executable = Arc<dyn Any + Send + Sync>;

/// The reason why a program could not be loaded: an errno for the guest, and a text for the user.
#[derive(Debug)]
pub struct LoadError {
    /// The result of exec or spawn.
    pub errno: Errno,
    /// The message of lind-boot.
    pub reason: String,
    /// A .cwasm without a valid tag: the .wasm beside it may be tried.
    pub untrusted: bool,
}

/// The parameters of starting a program.
pub struct Start {
    /// The program to run.
    pub executable: Executable,
    /// argv, argv[0] as typed.
    pub argv: Vec<CString>,
    /// envp.
    pub envp: Vec<CString>,
    /// The bytes for AT_RANDOM, if they are not the host's.
    pub random: Option<[u8; 16]>,
    /// The path it was found at, for AT_EXECFN.
    pub path: CString,
    /// The file that the cage executes from the point of no return of execve(2) on.
    pub text: Option<Text>,
    /// The ids that the file gives at execve(2).
    pub ids: crate::cage::FileIds,
}

/// Whether the cage that waits for a program has ended meanwhile.
pub type Gone<'a> = &'a dyn Fn() -> bool;

/// The engine that runs guest code, as the kernel uses it.
pub trait GuestRuntime: Send + Sync {
    /// Loads a program file, and compiles it if need be. `path` is for messages only. Compiling may
    /// take long and ends early when `gone` says so; without `gone` the process waits.
    ///
    /// # Errors
    /// ENOEXEC for a file that is not a module, EACCES for a .cwasm that may not be trusted,
    /// ENOMEM; EINTR if the waiting cage has ended.
    fn load(
        &self,
        file: BorrowedFd<'_>,
        path: &CString,
        gone: Option<Gone<'_>>,
    ) -> std::result::Result<Executable, LoadError>;

    /// Starts `thread`, the first of its cage, at `_start` of the executable, on a host thread of
    /// its own. When it ends, for whatever reason, the engine calls
    /// [`Thread::ended`](crate::cage::Thread::ended).
    ///
    /// # Errors
    /// ENOMEM or EAGAIN; the cage has then not run.
    fn start(&self, kernel: &Arc<Kernel>, thread: Arc<Thread>, start: Start) -> Result<()>;

    /// Starts a further thread of its cage, at `__lind_thread_start(boot)` of the program that the
    /// cage runs, on a host thread of its own. It ends as one of `start` does.
    ///
    /// # Errors
    /// ENOSYS if the program has no such entry; EAGAIN. The thread has then not run.
    fn start_thread(&self, kernel: &Arc<Kernel>, thread: &Arc<Thread>, boot: u32) -> Result<()>;

    /// Whether a program exports a way to enter handlers.
    fn is_grate(&self, executable: &Executable) -> bool;

    /// Whether the program of `cage` exports a way to enter handlers.
    fn serves(&self, cage: &Cage) -> bool;

    /// Whether the program of `cage` may register handlers for this number
    /// ([`NR_ANY`](lind_abi::NR_ANY): for all): it may handle only the calls that it declares. If
    /// not, prints that on standard error.
    fn may_handle(&self, cage: &Cage, number: u64) -> bool;

    /// Prints on standard error that the grate `cage`, of the program at `path`, has ended before
    /// `clients` cages whose calls it handled, since they only get EIO.
    fn left_clients(&self, cage: &Cage, path: &CString, clients: usize);

    /// Interrupts the host call that `thread` may be blocked in. Best effort, may be repeated.
    fn interrupt(&self, thread: &Thread);

    /// Called before the first descriptor is made that shows state of the kernel's, not of the
    /// host's: from now on every thread that calls the kernel needs the cages' descriptors.
    fn needs_descriptors(&self);

    /// The first cage has stopped. Stops everything until the process that started it continues it.
    fn stop_process(&self);
}

/// A call that a grate is serving. Frames nest on the host stack of the thread that made the call.
#[derive(Clone, Copy)]
pub struct Served<'a> {
    /// The call, as the grate sees it.
    pub call: &'a Call<'a>,
    /// The thread whose cage the call acts on. It waits, further down this very host stack.
    pub client: &'a Thread,
}

/// The outcome of a filter or a handler.
#[derive(Clone, Copy)]
pub enum Entered {
    /// The call has this result, as encoded for the guest.
    Answered(i64),
    /// The call goes on ([`lind_abi::PASS`]), to where the grate's own table sends calls of this
    /// number.
    Passed(Packed),
}

/// The way from the calling host thread into grates.
pub trait Hop {
    /// Runs handler `entry` of the grate `cage` on this thread. `past` is the number of grates that
    /// have let this call go on before. `serialized`: no other serialized call of that grate runs
    /// meanwhile. EIO when the grate is dead or dies meanwhile, ELOOP and EAGAIN when the stack is
    /// used up.
    fn enter(&self, cage: CageId, entry: u32, serialized: bool, past: usize, served: &Served<'_>) -> Entered;

    /// Asks the filter of the grate that `to` names about a call that `client` makes on itself.
    /// None if it has none that can be asked now, or if the filter leaves the decision to its
    /// handler.
    fn ask_filter(
        &self,
        _client: CageId,
        _number: u32,
        _values: &[Word; 6],
        _to: Packed,
        _past: usize,
    ) -> Option<Entered> {
        None
    }

    /// As [`GuestRuntime::start`], for a child whose parent is going to wait: it may then run on
    /// this host thread ([`Hop::run_lent`]).
    ///
    /// # Errors
    /// As for `start`.
    fn lend(&self, kernel: &Arc<Kernel>, thread: Arc<Thread>, start: Start) -> Result<()> {
        kernel.engine().start(kernel, thread, start)
    }

    /// Runs the child that [`Hop::lend`] has kept back, if there is one: on this host thread until
    /// its first thread has ended, if that is the thread that `waits` is about to wait for; else on
    /// a host thread of its own. Returns whether there was one.
    fn run_lent(&self, _waits: Option<&Thread>) -> bool {
        false
    }

    /// The host thread's cache of the cage by whose table a call was made last. Composers of grates
    /// make such a call for every call of their clients.
    fn cached_cage(&self) -> &CachedCage;
}

/// A cached cage, which is found without the table of all cages. The host thread must forget it
/// when it has nothing to run, so that an ended cage does not keep its memory.
#[derive(Default)]
pub struct CachedCage(Cell<Option<Arc<Cage>>>);

impl CachedCage {
    /// Takes the cage out, if it is this one and still runs.
    #[inline]
    pub(crate) fn take(&self, id: CageId) -> Option<Arc<Cage>> {
        match self.0.take() {
            Some(cage) if cage.id == id && !cage.is_dead() => Some(cage),
            other => {
                self.0.set(other);
                None
            }
        }
    }

    /// Keeps a cage for the next call.
    #[inline]
    pub(crate) fn keep(&self, cage: Arc<Cage>) {
        self.0.set(Some(cage));
    }

    /// Drops the cage.
    pub fn forget(&self) {
        self.0.set(None);
    }
}
