//! Passes over a linked wasm module, between the linker and the engine.
//!
//! - `wasi`: makes a program for WASI preview 1 use system calls.
//! - `memory`: makes the memory defined, fixed in size, unshared and exported; data must be
//!   passive.
//! - `fpcast` and `mismatch`: let calls with another type than the function's reach it.
//! - `longjmp`: lets longjmp skip the cleanup that an exception runs.
//! - `fork`: lets programs that fork leave their stack and come back to it, in two processes.
//! - `loops`: makes loops that only wait for memory to change read it each time.
//! - `data_image`: stores the memory that the start function leaves.
//!
//! A pass rewrites only the bytes that it has to change, so that a function without need of a pass
//! stays as the compiler wrote it. Running the passes again changes nothing.
//!
//! Names stay, and debugging information follows the code where it moves (`dwarf`).

mod code;
mod data_image;
mod dataflow;
mod dwarf;
mod fork;
mod fpcast;
mod hints;
mod longjmp;
mod loops;
mod memory;
mod mismatch;
mod module;
mod ops;
mod registers;
mod types;
pub mod wasi;

use anyhow::{Context, Result, bail, ensure};
use wasmparser::{Parser, Validator, WasmFeatures};

pub use fork::Fork;
use fpcast::table;
use module::{Module, id};

/// The passes to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Define the memory as the runtime needs it.
    pub memory: bool,
    /// Make loops that wait for memory to change read it each time.
    pub loops: bool,
    /// Let calls with another type than the function's reach it, as they do on x86-64.
    pub fpcast: bool,
    /// The programs that can fork.
    pub fork: Fork,
}

impl Default for Options {
    fn default() -> Self {
        Options { memory: true, loops: true, fpcast: true, fork: Fork::Auto }
    }
}

/// Runs the passes over a module and returns the new module. The bytes may be anything; bytes that
/// are not a valid module of the expected kind are an error.
pub fn run(bytes: &[u8], options: &Options) -> Result<Vec<u8>> {
    check_kind(bytes)?;
    let adapted = if wasi::is_for(bytes) { Some(wasi::adapt(bytes).context("a program of WASI")?) } else { None };
    if adapted.is_none() {
        validate(bytes).context("not a valid module")?;
    }
    let mut module = Module::parse(adapted.as_deref().unwrap_or(bytes))?;
    for section in module.custom_names() {
        // A program that was linked with --emit-relocs has this section as well.
        let object = section == table::LINKING && module.body(id::EXPORT).is_none();
        ensure!(!object, "an object file; link it first");
        ensure!(section != "dylink.0", "a shared library; only linked programs are supported");
    }
    // The calls that the fork pass adds are not the program's.
    if options.fpcast && !fork::can_fork(&module)? {
        // This has to be the first pass: relocations refer to the places that the linker assigned.
        fpcast::adapt_calls(&mut module)?;
        mismatch::mend_stubs(&mut module)?;
    }
    // Relocations only fit the linker's own output.
    module.remove_custom(|name| name == table::LINKING || name.starts_with("reloc."));
    if options.memory {
        memory::define(&mut module)?;
    }
    longjmp::pass_by(&mut module)?;
    fork::let_fork(&mut module, options.fork)?;
    if options.loops {
        loops::watch_memory(&mut module)?;
    }
    hints::hint(&mut module)?;
    data_image::attach(&mut module)?;
    let out = module.finish()?;
    validate(&out).context("the result is not a valid module; this is a bug of lind-passes")?;
    Ok(out)
}

fn check_kind(bytes: &[u8]) -> Result<()> {
    if Parser::is_core_wasm(bytes) {
        return Ok(());
    }
    if Parser::is_component(bytes) {
        bail!("a component; a core module is expected");
    }
    match bytes {
        [b'\0', b'a', b's', b'm', ..] => bail!("a wasm file of another version than 1"),
        [0x7f, b'E', b'L', b'F', ..] => {
            bail!("not a wasm module but an ELF file; was it compiled for the host, or precompiled?")
        }
        _ => bail!("not a wasm module"),
    }
}

fn validate(bytes: &[u8]) -> Result<()> {
    Validator::new_with_features(WasmFeatures::default()).validate_all(bytes)?;
    Ok(())
}
