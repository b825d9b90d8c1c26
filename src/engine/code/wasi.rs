//! Programs for WASI preview 1: each is compiled together with an adapter that makes system calls.

use std::borrow::Cow;

use anyhow::{Context, Result};
use lind_passes::wasi;

/// The adapter that a module gets, if it needs one.
pub fn adapter_of(wasm: &[u8]) -> Option<&'static str> {
    wasi::is_for(wasm).then_some(wasi::VERSION)
}

/// Every adapter that a module may get, or none.
pub const ADAPTERS: [Option<&str>; 2] = [None, Some(wasi::VERSION)];

/// The module to be checked and compiled in place of the given one.
///
/// # Errors
/// The module imports something that the adapter does not provide.
pub fn adapted(wasm: &[u8]) -> Result<Cow<'_, [u8]>> {
    if adapter_of(wasm).is_none() {
        return Ok(wasm.into());
    }
    wasi::adapt(wasm).map(Cow::from).context("a program of WASI")
}
