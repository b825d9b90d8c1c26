//! Programs for WASI preview 1: what is compiled is the same program over system calls.

use std::borrow::Cow;

use anyhow::{Context, Result};
use lind_passes::wasi;

/// The module that is to be checked and compiled, for one that somebody wants to run.
///
/// # Errors
/// What a program of WASI wants that there is not.
pub fn adapted(wasm: &[u8]) -> Result<Cow<'_, [u8]>> {
    if !wasi::is_for(wasm) {
        return Ok(wasm.into());
    }
    wasi::adapt(wasm).map(Cow::from).context("a program of WASI")
}
