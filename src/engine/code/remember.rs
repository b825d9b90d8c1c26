//! Work that is done once so that later starts of a file need not read it from end to end.
//!
//! The compiler process reads the file itself and notes its own findings: if a note could repeat
//! another process's claim, a runner that was taken over could choose what later runs start.

use std::fs::File;

use rustix::fd::AsFd;

use crate::code::cache::{Cache, name_in_cache};
use crate::code::cwasm::{self, Compiled, Kind};
use crate::code::signature::Checks;
use crate::code::source::{hash_of, read_source};
use crate::code::verified::{FileState, Note, read_unwritten};

/// Notes that the code of a module or a .cwasm is in the cache, or puts that of a .cwasm there. A
/// failure costs time, not correctness.
pub fn remember(cache: &Cache, checks: &Checks, file: &File) {
    let mut start = [0; Kind::BYTES];
    let got = rustix::io::pread(file, &mut start, 0).unwrap_or(0);
    match Kind::of(&start[..got]) {
        Kind::Module => remember_module(cache, checks, file),
        Kind::Compiled => remember_compiled(cache, checks, file),
        _ => {}
    }
}

fn remember_module(cache: &Cache, checks: &Checks, file: &File) {
    if let (Some(state), Ok(hash)) = read_unwritten(file, hash_of)
        && let Some((_, code)) = of_source(cache, checks, hash.as_bytes())
        && code.settled()
    {
        Note { source: *hash.as_bytes(), code }.keep(cache, checks, &state);
    }
}

fn remember_compiled(cache: &Cache, checks: &Checks, file: &File) {
    let (state, opened) = read_unwritten(file, |file| cwasm::open(checks, file.as_fd()));
    let (Some(state), Ok(compiled)) = (state, opened) else { return };
    match of_source(cache, checks, &compiled.source) {
        Some((_, code)) if code.settled() => Note { source: compiled.source, code }.keep(cache, checks, &state),
        Some(_) => {}
        None => {
            if let Ok(bytes) = read_source(&compiled.code) {
                cache.put(&name_in_cache(blake3::Hash::from_bytes(compiled.source)), &bytes);
            }
        }
    }
}

/// The code of the module with this hash, if it is in the cache, has a right signature, and nobody
/// else can change it; with the state of its file before that check.
pub fn of_source(cache: &Cache, checks: &Checks, source: &[u8; 32]) -> Option<(Compiled, FileState)> {
    let file = cache.get(&name_in_cache(blake3::Hash::from_bytes(*source)))?;
    let state = FileState::of(&file).ok()?;
    let compiled = cwasm::open_own(checks, cache.own(&file)?).ok()?;
    (compiled.source == *source).then_some((compiled, state))
}
