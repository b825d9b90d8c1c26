//! Compiles a module to machine code, signs it and keeps it.
//!
//! A module that a cage wrote is compiled when a cage runs it, and a module made for the purpose
//! can take minutes and gigabytes. So a process that runs guests has another process compile
//! ([`crate::code::serve`]), and only a few modules at once.

#![allow(unsafe_code)]

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use wasmtime::Module;

use crate::code::cache::{Cache, name_in_cache};
use crate::code::cwasm::{self, Of};
use crate::code::data_image::DataImage;
use crate::code::delivered::Delivered;
use crate::code::engines::{Engines, format_of};
use crate::code::jump_table::Jumps;
use crate::code::progress;
use crate::code::signature::Secret;
use crate::code::trap_table::Traps;
use crate::code::validate::{self, LANDING, Places};
use crate::code::wasi;
use lind_kernel::lock::Locked;

/// Compiles modules, signs the code, and keeps it.
pub struct Compiler {
    pub engines: Arc<Engines>,
    pub secret: Secret,
    pub cache: Option<Arc<Cache>>,
    pub delivered: Option<Arc<Delivered>>,
}

/// The interval at which a waiting thread checks whether it still has to wait.
pub const LOOK: Duration = Duration::from_millis(4);

/// The stack size of each compiler thread, in bytes: as much as Linux gives a process's first
/// thread.
const STACK: usize = 8 << 20;

/// The most modules that are compiled at once. Each may take gigabytes.
pub const AT_ONCE: usize = 4;

/// The memory needed to compile, in bytes: for each byte of a module, and at least.
const PER_BYTE: usize = 64;
const AT_LEAST: usize = 256 << 20;

/// The memory needed to compile a module of so many bytes.
pub fn needs(bytes: usize) -> usize {
    bytes.saturating_mul(PER_BYTE).saturating_add(AT_LEAST)
}

/// The most memory that all compilations may use together, unless there is only one.
pub fn most() -> usize {
    let host = rustix::system::sysinfo();
    let all = host.totalram.saturating_mul(host.mem_unit.into());
    usize::try_from(all / 2).unwrap_or(usize::MAX)
}

/// Whether one more module may be compiled beside those. A module alone always may: otherwise it
/// never could.
pub fn fits(running: &[usize], needs: usize, most: usize) -> bool {
    let all = running.iter().fold(needs, |all, needs| all.saturating_add(*needs));
    running.is_empty() || running.len() < AT_ONCE && all <= most
}

/// The compilations of this process, each as the memory that it needs.
static RUNNING: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// A turn to compile: counts a compilation of this process as long as it lives.
struct Turn(usize);

impl Turn {
    /// Waits for a turn.
    fn wait(needs: usize) -> Turn {
        loop {
            let mut running = RUNNING.locked();
            if fits(&running, needs, most()) {
                running.push(needs);
                return Turn(needs);
            }
            drop(running);
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut running = RUNNING.locked();
        if let Some(at) = running.iter().position(|needs| *needs == self.0) {
            running.swap_remove(at);
        }
    }
}

impl Compiler {
    /// Compiles a module, or takes its delivered code, and puts the code into the cache.
    ///
    /// # Errors
    /// The reason why the module cannot be compiled.
    pub fn compile_and_keep(&self, wasm: &[u8]) -> Result<Vec<u8>> {
        let source = blake3::hash(wasm);
        let bytes = self.delivered(&source).map_or_else(|| self.compile(wasm), Ok)?;
        if let Some(cache) = &self.cache {
            cache.put(&name_in_cache(source), &bytes);
        }
        Ok(bytes)
    }

    /// The delivered code of a module, signed, if this processor can run it.
    fn delivered(&self, source: &blake3::Hash) -> Option<Vec<u8>> {
        let (mut code, hash) = self.delivered.as_ref()?.code_of(source)?;
        // SAFETY: the program was built with the hash of this code, so lind-boot compiled it.
        unsafe { Module::deserialize(&self.engines.runtime, &code) }.ok()?;
        code.extend(self.secret.sign(&hash));
        Some(code)
    }

    /// Compiles a module.
    ///
    /// # Errors
    /// The reason why it cannot be compiled.
    pub fn compile(&self, wasm: &[u8]) -> Result<Vec<u8>> {
        let _turn = Turn::wait(needs(wasm.len()));
        let adapted = wasi::adapted(wasm)?;
        let (module, mut facts, jumping) = validate::check(&adapted)?;
        let code = match pool() {
            Some(pool) => {
                let compiler = self.engines.compiler(true)?;
                pool.install(|| compiler.precompile_module(&module))?
            }
            None => {
                progress::count_here();
                self.engines.compiler(false)?.precompile_module(&module)?
            }
        };
        // SAFETY: these bytes were serialized a moment ago and have been nowhere else.
        let module = unsafe { Module::deserialize(&self.engines.runtime, &code)? };
        facts.places = places_in(&module)?;
        facts.traps = Traps::of(&code, module.text(), facts.places.landing)?;
        facts.jumps = Jumps::of(&module, &jumping)?;
        let initial = DataImage::of(&adapted, facts.heap_base)?;
        facts.initial = initial.layout;
        let of = Of { format: format_of(wasi::adapter_of(wasm)), source: blake3::hash(wasm) };
        Ok(cwasm::encode(&self.secret, code, initial.pages, &facts, &of))
    }
}

/// The compiler's threads. None if the host cannot start them now: then the caller compiles alone.
/// The library's own pool would end the process.
fn pool() -> Option<&'static rayon_core::ThreadPool> {
    static POOL: OnceLock<rayon_core::ThreadPool> = OnceLock::new();
    if let Some(pool) = POOL.get() {
        return Some(pool);
    }
    let threads = rayon_core::ThreadPoolBuilder::new().thread_name(|_| "compile".to_owned()).stack_size(STACK);
    let made = threads.start_handler(|_| progress::count_here()).build().ok()?;
    Some(POOL.get_or_init(|| made))
}

/// Finds the functions and the landing pad in a module's machine code.
fn places_in(module: &Module) -> Result<Places> {
    /// The most padding, in bytes, that the compiler puts between functions to align them.
    const GAP: usize = 64;
    let text = module.text();
    let mut end = None;
    let mut start = 0;
    let mut last = &text[..0];
    for function in module.functions() {
        let from = end.unwrap_or(function.offset);
        ensure!((from..from + GAP).contains(&function.offset), "something else lies between the functions");
        start = if end.is_none() { function.offset } else { start };
        end = Some(function.offset + function.len);
        last = text.get(function.offset..function.offset + function.len).context("a function lies outside the code")?;
    }
    let end = end.context("the module has no functions")?;
    // The landing pad is nothing but an `unreachable`: frame set-up and `ud2`.
    let ud2 = last.windows(2).position(|pair| pair == [0x0f, 0x0b]).filter(|_| last.len() <= 16);
    let landing = end - last.len() + ud2.with_context(|| format!("{LANDING} is not what was compiled"))?;
    Ok(Places { start: u32::try_from(start)?, end: u32::try_from(end)?, landing: u32::try_from(landing)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_are_compiled_where_there_is_memory() {
        const MOST: usize = 1000;
        assert!(fits(&[], 5000, MOST));
        assert!(fits(&[400], 600, MOST) && !fits(&[400], 601, MOST));
        assert!(!fits(&[1; AT_ONCE], 1, MOST) && !fits(&[1], usize::MAX, MOST));
    }
}
