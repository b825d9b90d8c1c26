//! Passes over a linked wasm module, between the linker and the engine.
//!
//! - `wasi`: a program for WASI preview 1 makes system calls instead.
//! - `memory`: the memory becomes defined, fixed in size, unshared and exported; data must be passive.
//! - `fpcast` and `mismatch`: calls with another type than the function's reach it.
//! - `longjmp`: it goes past what is done when an exception goes by.
//! - `fork`: programs that fork can leave their stack and come back to it, in two processes.
//! - `loops`: loops that only wait for memory to change keep looking at it.
//! - `data_image`: what the start function leaves in memory, written down.
//!
//! A pass rewrites the bytes it is about and leaves the others alone, so that a function a pass has nothing
//! to do with is the function the compiler wrote. Running the passes again changes nothing.
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

/// Which passes to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Define the memory as the runtime wants it.
    pub memory: bool,
    /// Keep loops that wait for memory to change looking at it.
    pub loops: bool,
    /// Let calls with another type than the function's reach it, as they do on x86-64.
    pub fpcast: bool,
    /// Which programs can fork.
    pub fork: Fork,
}

impl Default for Options {
    fn default() -> Self {
        Options { memory: true, loops: true, fpcast: true, fork: Fork::Auto }
    }
}

/// Runs the passes over a module and returns the new module. Any bytes may come in; what is not a valid
/// module of the expected kind is an error.
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
    // The calls that the fork pass adds are none of the program's.
    if options.fpcast && !fork::can_fork(&module)? {
        // First of all: relocations speak of the places that the linker knew.
        fpcast::adapt_calls(&mut module)?;
        mismatch::mend_stubs(&mut module)?;
    }
    // Relocations are only ever right for what the linker wrote.
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
