//! The two Wasmtime engines: one that only runs code, and one that compiles, made when first
//! needed.
//!
//! Both have the same configuration, so that what one serializes the other accepts. Wasmtime checks
//! that again whenever it loads code.

#![allow(unsafe_code)]

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use lind_kernel::mem::GuestMemory;
use wasmtime::{
    Collector, Config, Engine, LinearMemory, MemoryCreator, MemoryType, OptLevel, ProfilingStrategy, Strategy,
};

/// Bytes of a guest's address space.
pub const SPACE: u64 = GuestMemory::SPACE;

/// The bytes of inaccessible memory before and after it.
pub const GUARD: u64 = GuestMemory::GUARD;

/// The minimum and maximum that every module must declare for its memory, in pages.
pub const PAGES: u64 = SPACE / 65536;

/// Host stack that guest code may use per entry into a Store.
pub const WASM_STACK: usize = 4 << 20;

/// The most an instance may hold in exceptions at once.
pub const GC_HEAP: u64 = 16 << 20;

/// Changes whenever compiled code of an earlier build must not be used again.
pub const COMPILED_FORMAT: &str = "lind 6, wasmtime 48.0.8";

/// The hash that names this format of compiled code. It covers the version of the adapter: a
/// program with another adapter is another program.
pub fn format_of(adapter: Option<&str>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(COMPILED_FORMAT.as_bytes());
    if let Some(adapter) = adapter {
        hasher.update(b", adapter ").update(adapter.as_bytes());
    }
    hasher.finalize()
}

/// A memory creator for a process that compiles and runs nothing.
pub struct NoMemories;

// SAFETY: it never returns a memory.
unsafe impl MemoryCreator for NoMemories {
    fn new_memory(
        &self,
        _: MemoryType,
        _: usize,
        _: Option<usize>,
        _: Option<usize>,
        _: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        Err("nothing runs here".to_owned())
    }
}

/// The engines of this process.
pub struct Engines {
    /// Runs code; has no compiler, which keeps it out of start-up.
    pub runtime: Engine,
    /// The compilers, with threads and without.
    compilers: [OnceLock<Engine>; 2],
    memories: Arc<dyn MemoryCreator>,
    /// The processor that compiled code is for.
    processor: Processor,
}

/// The processor that compiled code is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Processor {
    /// This one, with all that it can do.
    This,
    /// Every processor of this architecture.
    Any,
}

impl Engines {
    /// Makes the running engine, whose instances get their memories from `memories`. Wasmtime
    /// installs its handlers of faults meanwhile.
    ///
    /// # Errors
    /// When Wasmtime does not support this host.
    pub fn new(memories: Arc<dyn MemoryCreator>) -> wasmtime::Result<Engines> {
        Engines::of(memories, Processor::This)
    }

    /// Engines whose compiled code runs on every processor of this architecture.
    ///
    /// # Errors
    /// As for `new`.
    pub fn for_any_processor(memories: Arc<dyn MemoryCreator>) -> wasmtime::Result<Engines> {
        Engines::of(memories, Processor::Any)
    }

    fn of(memories: Arc<dyn MemoryCreator>, processor: Processor) -> wasmtime::Result<Engines> {
        let runtime = Engine::new(&config(None, &memories))?;
        Ok(Engines { runtime, compilers: Default::default(), memories, processor })
    }

    /// The engine with a compiler, which uses the threads of the caller's pool if `parallel`.
    ///
    /// # Errors
    /// When Cranelift does not support this host.
    pub fn compiler(&self, parallel: bool) -> wasmtime::Result<&Engine> {
        let place = &self.compilers[usize::from(!parallel)];
        if let Some(engine) = place.get() {
            return Ok(engine);
        }
        let mut config = config(Some(parallel), &self.memories);
        if self.processor == Processor::Any {
            // With a target named, Wasmtime does not look at what this processor can do.
            config.target(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH))?;
            // Where in the module an instruction came from only the lines of a backtrace need, and
            // it takes as much room as the instructions. Such code is sent to users.
            config.generate_address_map(false);
        }
        let engine = Engine::new(&config)?;
        Ok(place.get_or_init(|| engine))
    }
}

/// The configuration of the engine that runs code, or of one that compiles, in parallel or not.
fn config(compiler: Option<bool>, memories: &Arc<dyn MemoryCreator>) -> Config {
    let mut config = Config::new();
    config.enable_compiler(compiler.is_some());
    if let Some(parallel) = compiler {
        config.strategy(Strategy::Cranelift);
        config.cranelift_opt_level(OptLevel::Speed);
        config.parallel_compilation(parallel);
    }

    // These features a module may use. Shared memories stay off: their type is not what cages have
    // (docs/engine.md, "Memory").
    config.wasm_threads(true).shared_memory(false);
    config.wasm_bulk_memory(true).wasm_multi_value(true).wasm_simd(true);
    config.wasm_reference_types(true).wasm_function_references(true).wasm_tail_call(true);
    // Exceptions are allocated by the collector; the GC proposal's own types are refused by
    // `validate`.
    config.wasm_gc(true).wasm_exceptions(true).collector(Collector::Copying);
    config.wasm_memory64(false).wasm_multi_memory(false).wasm_relaxed_simd(false).wasm_wide_arithmetic(false);

    // The code that the fork pass adds for a fork is laid out away from the rest. A hint moves
    // blocks and does no more.
    config.wasm_branch_hinting(true);

    // One memory of exactly 4 GiB with guards: compiled without bounds checks, mapped by the
    // kernel.
    config.signals_based_traps(true);
    config.memory_reservation(SPACE).memory_guard_size(GUARD).memory_may_move(false);
    config.memory_init_cow(false);
    config.with_host_memory(Arc::clone(memories));
    config.gc_heap_reservation(GC_HEAP).gc_heap_guard_size(1 << 16).gc_heap_may_move(false);
    config.gc_heap_reservation_for_growth(0);

    // No calls are asynchronous, but their stack must not be smaller.
    config.max_wasm_stack(WASM_STACK).async_stack_size(WASM_STACK);
    config.native_unwind_info(false);
    config.wasm_backtrace_max_frames(NonZeroUsize::new(64));
    config.wasm_backtrace_details(wasmtime::WasmBacktraceDetails::Enable);
    config.generate_address_map(true);
    config.profiler(ProfilingStrategy::None);
    config
}
