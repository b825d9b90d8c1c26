//! Runs cages on Wasmtime. The only crate that knows it.
//!
//! # Module map
//! - [`config`]: the two Wasmtime engines
//! - [`image`], [`validate`], [`cwasm`], [`cache`], [`note`], [`key`]: from a file to code that may run
//! - [`manifest`], [`inspect`]: what a grate says it handles, and what a person is told about a file
//! - [`initial`], [`memory`], [`layout`], [`stack`]: a cage's address space, as Wasmtime and the program see it
//! - [`pool`], [`host`], [`thread`], [`imports`]: host threads, the run loop, the crossing between guest and kernel
//! - [`fork`]: two threads out of one; [`lend`]: two threads on one host thread
//! - [`grate`]: handlers, run on the caller's thread
//! - [`filter`], [`pure`]: what decides in their place by computing alone
//! - [`fault`], [`faulted`], [`trap`], [`traps`], [`interrupt`]: what ends or interrupts guest code from outside
//! - [`signal`], [`outside`]: running signal handlers, signals to the runner itself
//!
//! # What is sound here
//! Compiled code is run only when this user compiled it (`cwasm`). Guest memory is touched only through
//! `lind_kernel::mem`. Frames are skipped only where they own nothing (`fault`, `filter`).

#![allow(clippy::vec_box, clippy::boxed_local, reason = "a worker is big, and changes lists with every call")]

mod backtrace;
mod cache;
mod compile;
mod config;
mod cwasm;
mod fault;
mod faulted;
mod filter;
mod fork;
mod grate;
mod host;
mod image;
mod imports;
mod initial;
mod inspect;
mod interrupt;
mod key;
mod layout;
mod lend;
pub mod manifest;
mod memory;
mod near;
mod note;
pub mod outside;
pub mod perf;
mod pool;
mod pure;
mod signal;
mod stack;
mod thread;
mod trap;
mod traps;
mod validate;

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lind_abi::CageId;
use lind_kernel::cage::{Cage, Thread};
use lind_kernel::engine::{self as boundary, Gone, LoadError, Start};
use lind_kernel::{Kernel, Result};
use wasmtime::Linker;

pub use inspect::{Inspection, ModuleFacts, Seal};
pub use key::CodeStore;
pub use validate::Entry;

use config::Engines;
use image::{Image, Images};
use interrupt::Interrupts;
use lend::Lenders;
use pool::Pool;

/// The engine: make one, hand it to [`Kernel::attach`].
pub struct Engine {
    shared: Arc<Shared>,
}

/// What all host threads share.
pub(crate) struct Shared {
    engines: Arc<Engines>,
    images: Images,
    /// Whether traps are reported with a backtrace.
    backtrace: bool,
    interrupts: Arc<Interrupts>,
    lenders: Lenders,
    pool: Arc<Pool>,
    /// What each living cage runs.
    programs: Mutex<HashMap<CageId, Arc<Program>>>,
}

/// What a cage runs.
pub(crate) struct Program {
    image: Arc<Image>,
    /// Held by the thread that makes a serialized call of it.
    turn: Mutex<()>,
}

/// The first guest thread, which waits for [`outside::run`].
pub struct First(Arc<Pool>);

impl Engine {
    /// Keeps the first guest thread back, to be run by the calling thread.
    pub fn keep_first(&self) -> First {
        self.shared.pool.begin_with_main();
        First(Arc::clone(&self.shared.pool))
    }

    /// An engine that compiles with, and trusts only, the key of `store`. With `backtrace`, traps say where.
    ///
    /// # Errors
    /// When Wasmtime does not support this host.
    pub fn new(store: CodeStore, backtrace: bool) -> anyhow::Result<Engine> {
        Self::with_perf(store, backtrace, None)
    }

    /// As [`Engine::new`]; with counters, every call that guests make is counted and timed.
    ///
    /// # Errors
    /// As for `new`.
    pub fn with_perf(store: CodeStore, backtrace: bool, perf: Option<&Arc<perf::Perf>>) -> anyhow::Result<Engine> {
        let engines = Arc::new(Engines::new()?);
        interrupt::install();
        faulted::install();
        let mut linker = Linker::new(&engines.runtime);
        imports::define(&mut linker, perf)?;
        let images = Images::new(Arc::clone(&engines), linker, perf.is_some(), store);
        Ok(Engine {
            shared: Arc::new(Shared {
                engines,
                images,
                backtrace,
                interrupts: Arc::default(),
                lenders: Lenders::default(),
                pool: Arc::default(),
                programs: Mutex::default(),
            }),
        })
    }

    /// Compiles a .wasm and writes the .cwasm beside it, or to `out`. Returns where.
    ///
    /// # Errors
    /// What is wrong with the module, or with writing the file.
    pub fn precompile(&self, path: &Path, out: Option<&Path>) -> anyhow::Result<PathBuf> {
        self.shared.images.precompile(path, out)
    }

    /// What a .wasm or a .cwasm is, without running it.
    ///
    /// # Errors
    /// When it cannot be read, or is neither.
    pub fn inspect(&self, path: &Path) -> anyhow::Result<Inspection> {
        self.shared.images.inspect(path)
    }
}

impl boundary::Engine for Engine {
    fn load(
        &self,
        file: BorrowedFd<'_>,
        path: &CString,
        gone: Option<Gone<'_>>,
    ) -> std::result::Result<boundary::Image, LoadError> {
        let image = self.shared.images.load(file, &path.to_string_lossy(), gone)?;
        Ok(image)
    }

    fn start(&self, kernel: &Arc<Kernel>, thread: Arc<Thread>, start: Start) -> Result<()> {
        thread::start(&self.shared, kernel, thread, &start)
    }

    fn start_thread(&self, kernel: &Arc<Kernel>, thread: &Arc<Thread>, boot: u32) -> Result<()> {
        thread::start_thread(&self.shared, kernel, Arc::clone(thread), boot)
    }

    fn serves(&self, cage: &Cage) -> bool {
        self.shared.program(cage.id).is_some_and(|program| program.image.facts.entry != Entry::None)
    }

    fn may_handle(&self, cage: &Cage, number: u64) -> bool {
        let Some(program) = self.shared.program(cage.id) else { return false };
        let image = &program.image;
        let allowed = image.facts.manifest.allows(number);
        if !allowed {
            let call = u32::try_from(number).map_or_else(|_| number.to_string(), manifest::call_name);
            let path = image.path.escape_debug();
            let text = format!("lind-boot: {path} (cage {}): its manifest does not declare {call}\n", cage.id.0);
            let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
        }
        allowed
    }

    fn left_clients(&self, cage: &Cage, path: &CString, clients: usize) {
        let path = path.to_string_lossy();
        let then = if cage.maker().is_some() { "calls that it handled fail with EIO" } else { "all end with it" };
        let text = format!(
            "lind-boot: {} (cage {}): ended before its clients ({clients}): {then}\n",
            path.escape_debug(),
            cage.id.0
        );
        let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
    }

    fn interrupt(&self, thread: &Thread) {
        match self.shared.lenders.find(thread) {
            Some(lender) => lender.interrupt(&self.shared),
            None => self.shared.interrupts.interrupt(thread),
        }
    }

    fn needs_descriptors(&self) {
        outside::share_now();
    }

    fn stop_process(&self) {
        outside::stop_process();
    }

    fn watch(&self) {
        outside::watch();
    }
}

impl Shared {
    /// What a living cage runs.
    fn program(&self, cage: CageId) -> Option<Arc<Program>> {
        self.programs().get(&cage).cloned()
    }

    fn set_program(&self, cage: CageId, image: &Arc<Image>) {
        self.programs().insert(cage, Arc::new(Program { image: Arc::clone(image), turn: Mutex::new(()) }));
    }

    fn forget_program(&self, cage: CageId) {
        let program = self.programs().remove(&cage);
        if program.is_some_and(|program| program.image.facts.entry != Entry::None) {
            self.pool.sweep();
        }
    }

    fn programs(&self) -> MutexGuard<'_, HashMap<CageId, Arc<Program>>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
