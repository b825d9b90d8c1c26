//! Reads the file of a module.

use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::{Result, bail};

use crate::code::cwasm::Kind;

/// The largest .wasm that is read.
const MAX_WASM: u64 = 512 << 20;

/// The hash of a file's bytes, which are mostly not needed.
pub fn hash_of(file: &File) -> Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    each_piece(file, |piece| {
        hasher.update(piece);
    })?;
    Ok(hasher.finalize())
}

/// The bytes of a file, whatever its descriptor's offset is.
pub fn read_source(file: &File) -> Result<Vec<u8>> {
    let mut wasm = Vec::new();
    each_piece(file, |piece| wasm.extend(piece))?;
    Ok(wasm)
}

/// The reason why a file that is neither a module nor compiled code does not run.
pub fn not_a_program(kind: &Kind) -> anyhow::Error {
    match kind {
        Kind::OfHost => anyhow::anyhow!("a program for the host, not for a cage: compile its source with lind_compile"),
        _ => anyhow::anyhow!("not a WebAssembly program (.wasm or .cwasm)"),
    }
}

fn each_piece(file: &File, mut take: impl FnMut(&[u8])) -> Result<()> {
    const PIECE: usize = 256 << 10;
    let (mut piece, mut at) = (Vec::new(), 0);
    // A guest may have used up the memory.
    piece.try_reserve_exact(PIECE).map_err(|_| std::io::Error::from_raw_os_error(libc::ENOMEM))?;
    piece.resize(PIECE, 0);
    loop {
        let got = file.read_at(&mut piece, at)?;
        if got == 0 {
            return Ok(());
        }
        take(&piece[..got]);
        at += got as u64;
        if at > MAX_WASM {
            bail!("larger than {} MiB", MAX_WASM >> 20);
        }
    }
}
