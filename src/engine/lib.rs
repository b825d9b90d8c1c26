//! Runs cages on Wasmtime. No other crate depends on Wasmtime.
//!
//! # Module map, bottom up
//! - [`code`]: which native code may run
//! - [`space`]: a cage's address space, as Wasmtime and the program see it
//! - [`syscall`]: the way in from compiled code
//! - [`run`]: guests, host threads, programs, fork
//! - [`grate`]: handlers and filters, run on the caller's thread
//! - [`signal`]: what ends or interrupts guest code from outside
//!
//! # What is sound here
//! Compiled code is run only when this user compiled it (`code`). Guest memory is touched only
//! through `lind_kernel::mem`. Frames are skipped only where they own nothing (`signal::context`,
//! `grate::filter`).

#![allow(clippy::vec_box, clippy::boxed_local, reason = "a worker is big, and changes lists with every call")]

pub mod code;
mod grate;
mod run;
pub mod signal;
mod space;
pub mod syscall;

use std::any::Any;
use std::collections::HashMap;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use lind_abi::CageId;
use lind_kernel::cage::{Cage, Thread};
use lind_kernel::runtime::{self as boundary, Gone, LoadError, Start};
use lind_kernel::{Kernel, Result, stdio};
use wasmtime::Linker;

pub use code::cache;
pub use code::compile::AT_ONCE;
pub use code::cwasm::is_of_this_version;
pub use code::delivered::Delivered;
pub use code::inspect::{Inspection, ModuleFacts, Seal};
pub use code::key::{CodeStore, homes};
pub use code::link::Link;
pub use code::own_code::let_go as let_go_of_code;
pub use code::validate::Entry;
pub use code::walls::{Wall, Walls as CompilerWalls};

use code::engines::Engines;
use code::loader::Loader;
use code::manifest;
use lind_kernel::lock::Locked;
use run::handoff::Lenders;
use run::pool::Pool;
use run::program::LinkedProgram;
use run::thread;
use signal::preempt::Interrupts;
use signal::{context, fault_delivery, host_signals, preempt, process_signals};
use space::memory::AdoptedMemory;
use syscall::{imports, perf};

/// The engine: make one and pass it to [`Kernel::attach`].
pub struct Engine {
    shared: Arc<Shared>,
}

/// The state that all host threads share.
pub(crate) struct Shared {
    engines: Arc<Engines>,
    loader: Loader<LinkedProgram>,
    /// Whether traps are reported with a backtrace.
    backtrace: bool,
    /// Whether no message reports clients that are left when their grate ends.
    quiet: AtomicBool,
    interrupts: Arc<Interrupts>,
    lenders: Lenders,
    pool: Arc<Pool>,
    /// The program of each living cage.
    programs: Mutex<HashMap<CageId, Arc<Program>>>,
}

/// The program that a cage runs.
pub(crate) struct Program {
    linked: Arc<LinkedProgram>,
    /// Held by the thread that makes a serialized call of it.
    turn: Mutex<()>,
}

/// The first guest thread, which waits for [`host_signals::run`].
pub struct First(Arc<Pool>);

impl Engine {
    /// Reports no clients that are left when their grate ends: a user who runs a command need not
    /// know of grates.
    pub fn keep_quiet(&self) {
        self.shared.quiet.store(true, Ordering::Relaxed);
    }

    /// Keeps the first guest thread back, to be run by the calling thread.
    pub fn keep_first(&self) -> First {
        self.shared.pool.begin_with_main();
        First(Arc::clone(&self.shared.pool))
    }

    /// An engine that trusts only code signed by the key of `store`. With `backtrace`, traps are
    /// reported with their place.
    ///
    /// # Errors
    /// Wasmtime does not support this host.
    pub fn new(store: CodeStore, backtrace: bool) -> anyhow::Result<Engine> {
        Self::with_perf(store, backtrace, None)
    }

    /// Like [`Engine::new`]; with counters, every call that guests make is counted and timed.
    ///
    /// # Errors
    /// The errors of `new`.
    pub fn with_perf(store: CodeStore, backtrace: bool, perf: Option<&Arc<perf::Perf>>) -> anyhow::Result<Engine> {
        // Wasmtime's handlers must be installed after ours: they see faults first and pass on those
        // that are not theirs.
        context::install();
        let engines = Arc::new(Engines::new(Arc::new(AdoptedMemory))?);
        preempt::install();
        fault_delivery::install();
        let mut linker = Linker::new(&engines.runtime);
        imports::define(&mut linker, perf)?;
        let endable: fn() -> Box<dyn Any> = || Box::new(host_signals::Endable::before_the_first());
        let timed = perf.is_some();
        let ready = Box::new(move |compiled| LinkedProgram::ready(compiled, &linker, timed));
        let loader = Loader::new(Arc::clone(&engines), endable, store, ready)?;
        Ok(Engine {
            shared: Arc::new(Shared {
                engines,
                loader,
                backtrace,
                quiet: AtomicBool::new(false),
                interrupts: Arc::default(),
                lenders: Lenders::default(),
                pool: Arc::default(),
                programs: Mutex::default(),
            }),
        })
    }

    /// Compiles a .wasm and writes the .cwasm beside it, or to `out`. Returns its path.
    ///
    /// # Errors
    /// The module cannot be compiled, or the file cannot be written.
    pub fn precompile(&self, path: &Path, out: Option<&Path>) -> anyhow::Result<PathBuf> {
        self.shared.loader.precompile(path, out)
    }

    /// Compiles a program for later runs, unless that has been done. Returns whether it was
    /// compiled now.
    ///
    /// # Errors
    /// The reason why the file is not a program or cannot run.
    pub fn warm(&self, path: &Path) -> anyhow::Result<bool> {
        self.shared.loader.warm(path)
    }

    /// The work of compiling modules for later runs, one after the other. No run waits for it.
    pub fn preparing(&self, modules: Vec<File>) -> impl FnOnce() + Send + 'static {
        let shared = Arc::clone(&self.shared);
        move || {
            for module in modules {
                // A run of it says what is wrong with it.
                let _ = shared.loader.prepare(&module);
            }
        }
    }

    /// Whether a program need not be compiled when it runs.
    pub fn is_ready(&self, path: &Path) -> bool {
        self.shared.loader.is_ready(path)
    }

    /// The manifest of a program, which is loaded by this.
    ///
    /// # Errors
    /// The errors of loading.
    pub fn manifest(&self, file: BorrowedFd<'_>, path: &str) -> std::result::Result<manifest::Manifest, LoadError> {
        self.shared.loader.load(file, path, None).map(|linked| linked.facts.manifest.clone())
    }

    /// Describes a .wasm or .cwasm file without running it.
    ///
    /// # Errors
    /// The file cannot be read, or is neither.
    pub fn inspect(&self, path: &Path) -> anyhow::Result<Inspection> {
        self.shared.loader.inspect(path)
    }
}

impl boundary::GuestRuntime for Engine {
    fn load(
        &self,
        file: BorrowedFd<'_>,
        path: &CString,
        gone: Option<Gone<'_>>,
    ) -> std::result::Result<boundary::Executable, LoadError> {
        let linked = self.shared.loader.load(file, &path.to_string_lossy(), gone)?;
        Ok(linked)
    }

    fn start(&self, kernel: &Arc<Kernel>, thread: Arc<Thread>, start: Start) -> Result<()> {
        thread::start(&self.shared, kernel, thread, &start)
    }

    fn start_thread(&self, kernel: &Arc<Kernel>, thread: &Arc<Thread>, boot: u32) -> Result<()> {
        thread::start_thread(&self.shared, kernel, Arc::clone(thread), boot)
    }

    fn is_grate(&self, executable: &boundary::Executable) -> bool {
        executable.downcast_ref::<LinkedProgram>().is_some_and(|linked| linked.facts.entry != Entry::None)
    }

    fn serves(&self, cage: &Cage) -> bool {
        self.shared.program(cage.id).is_some_and(|program| program.linked.facts.entry != Entry::None)
    }

    fn may_handle(&self, cage: &Cage, number: u64) -> bool {
        let Some(program) = self.shared.program(cage.id) else { return false };
        let linked = &program.linked;
        let allowed = linked.facts.manifest.allows(number);
        if !allowed {
            let call = u32::try_from(number).map_or_else(|_| number.to_string(), manifest::call_name);
            let path = cage.settings().program.to_string_lossy().into_owned();
            stdio::say_line(&format!("{path} (cage {}): its manifest does not declare {call}", cage.id.0));
        }
        allowed
    }

    fn left_clients(&self, cage: &Cage, path: &CString, clients: usize) {
        if self.shared.quiet.load(Ordering::Relaxed) {
            return;
        }
        let path = path.to_string_lossy();
        let then = if cage.maker().is_some() { "calls that it handled fail with EIO" } else { "all end with it" };
        stdio::say_line(&format!("{path} (cage {}): ended before its clients ({clients}): {then}", cage.id.0));
    }

    fn interrupt(&self, thread: &Thread) {
        match self.shared.lenders.find(thread) {
            Some(lender) => lender.interrupt(&self.shared),
            None => self.shared.interrupts.interrupt(thread),
        }
    }

    fn needs_descriptors(&self) {
        host_signals::share();
    }

    fn stop_process(&self) {
        process_signals::stop_process();
    }
}

impl Shared {
    /// The program of a living cage.
    fn program(&self, cage: CageId) -> Option<Arc<Program>> {
        self.programs().get(&cage).cloned()
    }

    fn set_program(&self, cage: CageId, linked: &Arc<LinkedProgram>) {
        self.programs().insert(cage, Arc::new(Program { linked: Arc::clone(linked), turn: Mutex::new(()) }));
    }

    fn forget_program(&self, cage: CageId) {
        let program = self.programs().remove(&cage);
        if program.is_some_and(|program| program.linked.facts.entry != Entry::None) {
            self.pool.sweep();
        }
    }

    fn programs(&self) -> MutexGuard<'_, HashMap<CageId, Arc<Program>>> {
        self.programs.locked()
    }
}
