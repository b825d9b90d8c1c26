//! WASI preview 1: turns a program for it into one that makes system calls.
//!
//! The functions that it imports are written in C (`adapter/`), over `lind.syscall`. The pass puts
//! that module's functions behind the program's own, so that all calls of a program of WASI take
//! the way of any program's calls: through the kernel and through every grate. Nothing is added to
//! the trusted code.
//!
//! The memory is the program's. It gets the size that cages have; the adapter counts how much of it
//! the program believes to have, and handles its `memory.size` and `memory.grow`. Its data, which
//! other engines write before the start, are written by a function that the adapter calls. The
//! adapter keeps its state in pages of its own.

mod merge;
mod parts;

use anyhow::{Context, Result, bail};
use wasmparser::{Imports, Parser, Payload};

/// The name of the module with WASI's functions.
const PREVIEW1: &str = "wasi_snapshot_preview1";

/// The adapter, compiled from `adapter/` by `build.rs`.
static ADAPTER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/wasi.wasm"));

/// The version of the adapter: with another adapter a program compiles to other code.
pub const VERSION: &str = env!("WASI_ADAPTER");

/// Whether a module imports WASI's functions. A malformed module counts as one that does not.
pub fn is_for(bytes: &[u8]) -> bool {
    for payload in Parser::new(0).parse_all(bytes) {
        match payload {
            Ok(Payload::ImportSection(reader)) => {
                let mut names = reader.into_iter().map_while(Result::ok).flat_map(|imports| match imports {
                    Imports::Single(_, import) => Some(import.module),
                    _ => None,
                });
                return names.any(|module| module == PREVIEW1 || module == "wasi_unstable");
            }
            Ok(Payload::CodeSectionStart { .. }) | Err(_) => return false,
            Ok(_) => {}
        }
    }
    false
}

/// Returns the same program over system calls. The bytes may be anything.
///
/// # Errors
/// The module is malformed, or imports something that the adapter does not provide.
pub fn adapt(bytes: &[u8]) -> Result<Vec<u8>> {
    crate::validate(bytes).context("not a valid module")?;
    let program = parts::Parts::of(bytes)?;
    let adapter = parts::Parts::of(ADAPTER)?;
    if !adapter.data.is_empty() {
        bail!("the adapter has data; this is a bug of lind-passes");
    }
    merge::merged(&program, &adapter)
}
