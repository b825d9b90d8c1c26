//! Programs: from a file to code that is ready to be instantiated.
//!
//! A .wasm is compiled once: in memory and on disk its code is found again by the hash of its
//! bytes. A .cwasm runs only with this user's signature. A program that was read before from the
//! same unchanged file is kept in memory.

#![allow(unsafe_code)]

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, bail, ensure};
use lind_kernel::Errno;
use lind_kernel::mem::InitialData;
use lind_kernel::runtime::{Gone, LoadError};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use wasmtime::Module;

use crate::code::cache::{self, Cache, name_in_cache};
use crate::code::compile::{Compiler, LOOK};
use crate::code::cwasm::{self, Compiled, Kind, Refused};
use crate::code::delivered::Delivered;
use crate::code::ending;
use crate::code::engines::Engines;
use crate::code::key::{CodeStore, Compiles, Elsewhere};
use crate::code::progress::{self, Shown};
use crate::code::remember::{of_source, remember};
use crate::code::signature::Checks;
use crate::code::source::{hash_of, not_a_program, read_source};
use crate::code::validate::Facts;
use crate::code::verified::{FileState, Note, read_unwritten};
use crate::code::wire::CompileError;
use lind_kernel::lock::Locked;

/// The most programs that are kept in memory. Beyond that, the least recently used one is dropped.
const KEPT: usize = 128;

/// Code that may run, and what is known about it.
pub struct CompiledModule {
    /// Its machine code.
    pub module: Module,
    /// The facts that the engine found about it.
    pub facts: Facts,
    /// Its data.
    pub initial: InitialData,
}

/// Makes a program of a module: whatever the engine keeps ready for its instances.
type Ready<P> = Box<dyn Fn(CompiledModule) -> Result<P> + Send + Sync>;

/// Makes programs of files, and remembers them.
pub struct Loader<P> {
    engines: Arc<Engines>,
    checks: Checks,
    cache: Option<Arc<Cache>>,
    compiles: CompilerProcess,
    /// Lets signals end a runner that has no cage yet, as long as the returned value lives:
    /// compiling takes long.
    endable: fn() -> Box<dyn Any>,
    ready: Ready<P>,
    kept: Mutex<Kept<P>>,
    /// The hashes of modules that are being compiled at this moment, so that two cages that start
    /// the same one compile it once.
    under_way: Mutex<HashSet<[u8; 32]>>,
}

/// The process that compiles.
enum CompilerProcess {
    /// This process.
    Own(Box<Compiler>),
    /// Another process.
    Other(Arc<dyn Elsewhere>),
}

/// Marks a module as being compiled as long as it lives.
struct UnderWay<'a> {
    all: &'a Mutex<HashSet<[u8; 32]>>,
    source: [u8; 32],
}

impl<'a> UnderWay<'a> {
    /// None if another thread compiles it.
    fn begin(all: &'a Mutex<HashSet<[u8; 32]>>, source: [u8; 32]) -> Option<UnderWay<'a>> {
        // Not `then_some`: a value that is made and dropped again would end the other thread's
        // mark.
        all.locked().insert(source).then(|| UnderWay { all, source })
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.all.locked().remove(&self.source);
    }
}

struct Kept<P> {
    by_source: HashMap<[u8; 32], (u64, Arc<P>)>,
    by_file: HashMap<FileState, (u64, Arc<P>)>,
    clock: u64,
}

impl<P> Loader<P> {
    /// A loader over the user's keys and cache.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn new(
        engines: Arc<Engines>,
        endable: fn() -> Box<dyn Any>,
        store: CodeStore,
        ready: Ready<P>,
    ) -> Result<Loader<P>> {
        let secret = matches!(store.compiles, Compiles::Here(_)).then(|| store.secret()).transpose()?;
        let cache = store.cache.map(|cache| Arc::new(Cache::new(cache, store.limit)));
        let compiles = match (store.compiles, secret) {
            (Compiles::There(other), _) => CompilerProcess::Other(other),
            (_, Some(secret)) => {
                ending::at_signals();
                CompilerProcess::Own(Box::new(Compiler {
                    engines: Arc::clone(&engines),
                    secret,
                    cache: cache.clone(),
                    delivered: Delivered::of_this_program().map(Arc::new),
                }))
            }
            (Compiles::Here(_), None) => bail!("no key"),
        };
        let (kept, under_way) = (Mutex::default(), Mutex::default());
        Ok(Loader { engines, checks: store.checks, cache, compiles, endable, ready, kept, under_way })
    }

    /// Makes a program of a file. `path` is for messages. `gone` tells whether the waiting thread
    /// has gone; without it, the process itself waits.
    ///
    /// # Errors
    /// ENOEXEC for a file that is not a program, EACCES for a .cwasm without a valid signature,
    /// EINTR when nobody waits any more.
    pub fn load(&self, file: BorrowedFd<'_>, path: &str, gone: Option<Gone<'_>>) -> Result<Arc<P>, LoadError> {
        let state = FileState::of(file).ok();
        if let Some(program) = state.and_then(|state| self.kept().file(&state)) {
            return Ok(program);
        }
        let mut start = [0; Kind::BYTES];
        let got = rustix::io::pread(file, &mut start, 0).map_err(|error| refused(path, anyhow::Error::from(error)))?;
        let noted = || state.as_ref().and_then(|state| self.noted(state));
        let program = match Kind::of(&start[..got]) {
            Kind::Compiled => noted().map_or_else(|| self.load_compiled(file, path), Ok),
            Kind::Module => {
                noted().map_or_else(|| self.load_source(file, path, gone).map_err(|error| refused(path, error)), Ok)
            }
            other => Err(refused(path, not_a_program(&other))),
        }?;
        // Remembered by file only if the file did not change while it was read, nor so recently
        // that its times may not show it.
        if let Some(state) = state
            && state.settled()
            && FileState::of(file).is_ok_and(|now| now == state)
        {
            self.kept().insert_file(state, &program);
        }
        Ok(program)
    }

    /// Compiles `path` and writes the .cwasm beside it (or to `out`); returns where.
    ///
    /// # Errors
    /// The fault of the module, or the host's error.
    pub fn precompile(&self, path: &Path, out: Option<&Path>) -> Result<PathBuf> {
        let wasm = read_source(&File::open(path).with_context(|| format!("cannot open {}", path.display()))?)?;
        let wrong = match Kind::of(&wasm) {
            Kind::Module => None,
            Kind::Compiled => Some(anyhow::anyhow!("compiled already")),
            other => Some(not_a_program(&other)),
        };
        if let Some(wrong) = wrong {
            return Err(wrong).with_context(|| path.display().to_string());
        }
        let out = out.map_or_else(|| path.with_extension("cwasm"), Path::to_owned);
        let CompilerProcess::Own(compiler) = &self.compiles else { bail!("another process compiles") };
        let shown = Shown::begin(&path.to_string_lossy(), progress::functions(&wasm), false);
        let bytes = compiler.compile(&wasm).with_context(|| path.display().to_string())?;
        drop(shown);
        // `-o /dev/null`: a file renamed there would take the device's place.
        if std::fs::metadata(&out).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            std::fs::write(&out, &bytes).with_context(|| format!("cannot write {}", out.display()))?;
            return Ok(out);
        }
        let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = out.file_name().and_then(|name| name.to_str()).context("the output has no usable name")?;
        let folder = File::open(folder).with_context(|| format!("cannot open {}", folder.display()))?;
        cache::write(folder.as_fd(), name, &bytes).with_context(|| format!("cannot write {}", out.display()))?;
        Ok(out)
    }

    /// Makes sure that a program need not be compiled when it runs. Returns whether it was compiled
    /// now.
    ///
    /// # Errors
    /// The reason why the file is not a program or cannot run.
    pub fn warm(&self, path: &Path) -> Result<bool> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let compiled = || -> Result<bool> {
            let mut start = [0; Kind::BYTES];
            let got = file.read_at(&mut start, 0)?;
            Ok(!matches!(Kind::of(&start[..got]), Kind::Module) || self.is_cached(&file)?)
        };
        let compiled = compiled().with_context(|| path.display().to_string())?;
        let source = path.with_extension("wasm");
        match self.load(file.as_fd(), &path.to_string_lossy(), None) {
            Ok(_) => Ok(!compiled),
            // The .wasm beside it is what runs in this case.
            Err(error) if error.untrusted && source != path && source.is_file() => self.warm(&source),
            Err(error) => bail!(error.reason),
        }
    }

    /// Whether there is code of a module already.
    pub fn is_ready(&self, path: &Path) -> bool {
        File::open(path).is_ok_and(|file| self.is_cached(&file).unwrap_or(false))
    }

    fn is_cached(&self, module: &File) -> Result<bool> {
        Ok(self.cached(hash_of(module)?.as_bytes(), None).is_some())
    }

    fn load_compiled(&self, file: BorrowedFd<'_>, path: &str) -> Result<Arc<P>, LoadError> {
        let untrusted = |why: &str| LoadError {
            errno: Errno::EACCES,
            reason: format!("{path}: {why}; pass the .wasm instead, or precompile it again"),
            untrusted: true,
        };
        let file = File::from(file.try_clone_to_owned().map_err(|error| refused(path, error.into()))?);
        let (state, opened) = read_unwritten(&file, |file| cwasm::open(&self.checks, file.as_fd()));
        match opened {
            Ok(compiled) => {
                if state.is_some() {
                    self.remember(&file);
                }
                self.program(compiled)
                    .map_err(|error| untrusted(&format!("compiled for another machine or version ({error:#})")))
            }
            Err(Refused::Untrusted) => Err(untrusted("this .cwasm was not compiled by you, or was changed since")),
            Err(Refused::OtherVersion) => Err(untrusted("compiled by another version of lind-boot")),
            Err(Refused::Unreadable(error)) => Err(refused(path, error)),
        }
    }

    fn load_source(&self, file: BorrowedFd<'_>, path: &str, gone: Option<Gone<'_>>) -> Result<Arc<P>> {
        let file = File::from(file.try_clone_to_owned()?);
        let (state, hash) = read_unwritten(&file, hash_of);
        let source = *hash?.as_bytes();
        if let Some(program) = self.kept().source(&source) {
            return Ok(program);
        }
        if let Some(program) = self.cached(&source, state.map(|_| &file)) {
            return Ok(program);
        }
        let (_alone, waited) = self.alone(source, path, gone)?;
        // Another thread or process was faster.
        if let Some(program) = self.kept().source(&source) {
            return Ok(program);
        }
        if waited && let Some(program) = self.cached(&source, None) {
            return Ok(program);
        }
        let code = self.compiled(&file, Some(path), gone)?;
        match (cwasm::open(&self.checks, code.as_fd()), &self.compiles) {
            (Ok(compiled), _) => self.program(compiled),
            // The signing key has been replaced since this process began.
            (Err(Refused::Untrusted), CompilerProcess::Other(other)) => {
                let opened = cwasm::open(&other.checks()?, code.as_fd());
                self.program(opened.map_err(|refused| not_accepted(&refused))?)
            }
            (Err(refused), CompilerProcess::Own(_) | CompilerProcess::Other(_)) => Err(not_accepted(&refused)),
        }
    }

    /// Compiles a module for later runs, unless there is code of it. No caller waits for it: it is
    /// not announced, and nothing is kept in memory.
    ///
    /// # Errors
    /// As for loading.
    pub fn prepare(&self, module: &File) -> Result<()> {
        let Some(cache) = self.cache.as_ref().filter(|cache| cache.keeps()) else { return Ok(()) };
        let has = |source| cache.get(&name_in_cache(source)).is_some();
        let note = FileState::of(module).ok().and_then(|state| Note::find(cache, &self.checks, &state));
        if note.is_some_and(|note| has(blake3::Hash::from_bytes(note.source))) {
            return Ok(());
        }
        let (state, source) = read_unwritten(module, hash_of);
        let source = source?;
        if has(source) {
            // Otherwise each session would read it again, until it has run.
            if state.is_some() {
                self.remember(module);
            }
        } else if let Some(_alone) = UnderWay::begin(&self.under_way, *source.as_bytes()) {
            self.compiled(module, None, None)?;
        }
        Ok(())
    }

    /// Waits until no other thread compiles this module, and announces it meanwhile. Returns also
    /// whether it had to wait.
    fn alone(&self, source: [u8; 32], path: &str, gone: Option<Gone<'_>>) -> Result<(UnderWay<'_>, bool)> {
        let mut shown = None;
        loop {
            if let Some(alone) = UnderWay::begin(&self.under_way, source) {
                return Ok((alone, shown.is_some()));
            }
            shown.get_or_insert_with(|| Shown::begin(path, 0, self.keeps()));
            ensure!(gone.is_none_or(|gone| !gone()), Errno::EINTR);
            std::thread::sleep(LOOK);
        }
    }

    fn keeps(&self) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.keeps())
    }

    /// Compiles a module, whatever its file contains by now. With a name it is announced.
    fn compiled(&self, module: &File, name: Option<&str>, gone: Option<Gone<'_>>) -> Result<OwnedFd> {
        let _endable = (self.endable)();
        let shown = |functions| name.map(|name| Shown::begin(name, functions, self.keeps()));
        match &self.compiles {
            CompilerProcess::Own(compiler) => {
                let wasm = read_source(module)?;
                let _shown = shown(progress::functions(&wasm));
                let bytes = compiler.compile_and_keep(&wasm)?;
                let code = File::from(rustix::fs::memfd_create(c"compiled", rustix::fs::MemfdFlags::CLOEXEC)?);
                code.write_all_at(&bytes, 0)?;
                Ok(code.into())
            }
            CompilerProcess::Other(other) => other.compile(module.as_fd(), gone, shown(0).as_mut()),
        }
    }

    /// Sees to it that later starts of a file need not read it from end to end.
    fn remember(&self, file: &File) {
        let Some(cache) = self.cache.as_ref().filter(|cache| cache.keeps()) else { return };
        match &self.compiles {
            CompilerProcess::Own(_) => remember(cache, &self.checks, file),
            CompilerProcess::Other(other) => other.remember(file.as_fd()),
        }
    }

    /// The program of a module that was read before, if nobody has written to it since, nor to its
    /// compiled code.
    fn noted(&self, module: &FileState) -> Option<Arc<P>> {
        let cache = self.cache.as_ref()?;
        let note = Note::find(cache, &self.checks, module)?;
        if let Some(program) = self.kept().source(&note.source) {
            return Some(program);
        }
        let own = cache.own(&cache.get(&name_in_cache(blake3::Hash::from_bytes(note.source)))?)?;
        let compiled = cwasm::open_noted(own, &note.code).ok()?;
        (compiled.source == note.source).then(|| self.program(compiled).ok()).flatten()
    }

    /// The program of the module with this hash. `module` is its file, if its times identify it.
    fn cached(&self, source: &[u8; 32], module: Option<&File>) -> Option<Arc<P>> {
        let cache = self.cache.as_ref()?;
        if let Some((compiled, state)) = of_source(cache, &self.checks, source)
            && let Ok(program) = self.program(compiled)
        {
            if let Some(module) = module.filter(|_| state.settled()) {
                self.remember(module);
            }
            return Some(program);
        }
        // Some filesystems do not allow mapping code: then a copy is mapped.
        let file = cache.get(&name_in_cache(blake3::Hash::from_bytes(*source)))?;
        let compiled = cwasm::open(&self.checks, file.as_fd()).ok()?;
        (compiled.source == *source).then(|| self.program(compiled).ok()).flatten()
    }

    fn program(&self, compiled: Compiled) -> Result<Arc<P>> {
        if let Some(program) = self.kept().source(&compiled.source) {
            return Ok(program);
        }
        let (facts, source) = (compiled.facts.clone(), compiled.source);
        let initial = initial_of(&compiled);
        let module = CompiledModule { module: self.module(compiled)?, facts, initial };
        let program = Arc::new((self.ready)(module)?);
        self.kept().insert_source(source, &program);
        Ok(program)
    }

    /// The module of compiled code.
    ///
    /// # Errors
    /// The code was compiled for another machine or configuration.
    pub fn module(&self, compiled: Compiled) -> Result<Module> {
        // SAFETY: `Compiled` exists only for bytes whose signature was right, so Wasmtime
        // serialized them for this user, and the file is sealed, so they never change.
        Ok(unsafe { Module::deserialize_open_file(&self.engines.runtime, compiled.code) }?)
    }

    /// The public keys that verify compiled code.
    pub fn checks(&self) -> &Checks {
        &self.checks
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept<P>> {
        self.kept.locked()
    }
}

fn refused(path: &str, error: anyhow::Error) -> LoadError {
    LoadError { errno: CompileError::errno_of(&error), reason: format!("{path}: {error:#}"), untrusted: false }
}

fn not_accepted(refused: &Refused) -> anyhow::Error {
    anyhow::anyhow!("our own compiled code was not accepted: {refused:?}")
}

/// The data of compiled code. Without a descriptor for them the program writes its data itself, as
/// a program that has none of this data does.
fn initial_of(compiled: &Compiled) -> InitialData {
    let layout = &compiled.facts.initial;
    match compiled.code.try_clone() {
        Ok(file) if !layout.spans.is_empty() => InitialData::new(file.into(), layout.places(compiled.pages)),
        _ => InitialData::default(),
    }
}

impl<P> Default for Kept<P> {
    fn default() -> Kept<P> {
        Kept { by_source: HashMap::new(), by_file: HashMap::new(), clock: 0 }
    }
}

impl<P> Kept<P> {
    fn source(&mut self, source: &[u8; 32]) -> Option<Arc<P>> {
        self.clock += 1;
        let (used, program) = self.by_source.get_mut(source)?;
        *used = self.clock;
        Some(Arc::clone(program))
    }

    fn file(&mut self, state: &FileState) -> Option<Arc<P>> {
        self.clock += 1;
        let (used, program) = self.by_file.get_mut(state)?;
        *used = self.clock;
        Some(Arc::clone(program))
    }

    fn insert_source(&mut self, source: [u8; 32], program: &Arc<P>) {
        make_room(&mut self.by_source);
        self.by_source.insert(source, (self.clock, Arc::clone(program)));
    }

    fn insert_file(&mut self, state: FileState, program: &Arc<P>) {
        make_room(&mut self.by_file);
        self.by_file.insert(state, (self.clock, Arc::clone(program)));
    }
}

fn make_room<K: Copy + Eq + std::hash::Hash, P>(kept: &mut HashMap<K, (u64, Arc<P>)>) {
    if kept.len() < KEPT {
        return;
    }
    if let Some(oldest) = kept.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| *key) {
        kept.remove(&oldest);
    }
}
