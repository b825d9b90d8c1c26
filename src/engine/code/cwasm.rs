//! Files of compiled code: the bytes that Wasmtime serialized, then a trailer with facts about the
//! module, and a signature that proves who made the file.
//!
//! ```text
//! code | zeroes up to a multiple of a page | pages of data | their layout | manifest
//! | jumps 4 each | traps 4 each | magic 16 | format 32 | source 32
//! | heap_base, entry, start, end, landing, manifest's size, numbers of traps and jumps: 4 each
//! | signature 64
//! ```
//!
//! The signature ([`crate::code::signature`]) is over the hash of everything before it. No byte of
//! a file is trusted, or given to Wasmtime, before the signature has been verified over bytes that
//! nobody else can change: those of a sealed copy, or of a file of the cache that only the user may
//! write. If such a file has not changed since an earlier verification, a note
//! ([`crate::code::verified`]) replaces this one.

use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::Result;
use lind_kernel::sealed;
use rustix::fd::{BorrowedFd, OwnedFd};
use wasmtime_environ::obj::ELFOSABI_WASMTIME;

use crate::code::cache::Own;
use crate::code::data_image::Layout;
use crate::code::engines::format_of;
use crate::code::jump_table::Jumps;
use crate::code::manifest::{MAX_SIZE, Manifest};
use crate::code::signature::{self, Checks, SIGNATURE, Secret};
use crate::code::trap_table::Traps;
use crate::code::validate::{Entry, Facts, Places};
use crate::code::verified::FileState;
use crate::code::wasi::ADAPTERS;

/// The kind of a file, by its first bytes.
pub enum Kind {
    /// WebAssembly.
    Module,
    /// Compiled code, by its first bytes; the rest may be anything.
    Compiled,
    /// A program of the host's format.
    OfHost,
    /// None of these.
    Other,
}

impl Kind {
    /// The number of first bytes that show the kind.
    pub const BYTES: usize = 8;

    /// The kind of the file that begins with `start`. Compiled code is an ELF file, for a system of
    /// its own.
    pub fn of(start: &[u8]) -> Kind {
        match start {
            [b'\x7f', b'E', b'L', b'F', _, _, _, abi, ..] if *abi != ELFOSABI_WASMTIME => Kind::OfHost,
            [b'\x7f', b'E', b'L', b'F', ..] => Kind::Compiled,
            [b'\0', b'a', b's', b'm', ..] => Kind::Module,
            _ => Kind::Other,
        }
    }
}

const MAGIC: &[u8; 16] = b"lind compiled 4\n";
const PAGE: usize = 4096;
const TRAILER: usize = 16 + 32 + 32 + 8 * 4 + SIGNATURE;

/// Compiled code that may be run.
pub struct Compiled {
    /// The code, in a file that no one else can change.
    pub code: File,
    /// The facts that were found when it was compiled.
    pub facts: Facts,
    /// Where in the file the pages of data begin.
    pub pages: u64,
    /// The hash of the module it was compiled from.
    pub source: [u8; 32],
}

/// Why a file was not accepted.
#[derive(Debug)]
pub enum Refused {
    /// No valid signature: not compiled here, or changed since.
    Untrusted,
    /// Compiled by a lind-boot of another version.
    OtherVersion,
    /// The file cannot be read.
    Unreadable(anyhow::Error),
}

impl From<std::io::Error> for Refused {
    fn from(error: std::io::Error) -> Refused {
        Refused::Unreadable(error.into())
    }
}

impl From<rustix::io::Errno> for Refused {
    fn from(error: rustix::io::Errno) -> Refused {
        Refused::Unreadable(error.into())
    }
}

/// The version and the module that compiled code belongs to.
pub struct Of {
    /// The version of lind-boot.
    pub format: blake3::Hash,
    /// The hash of the module.
    pub source: blake3::Hash,
}

/// The bytes of a file of compiled code.
pub fn encode(secret: &Secret, mut code: Vec<u8>, initial: &[u8], facts: &Facts, of: &Of) -> Vec<u8> {
    code.resize(code.len().next_multiple_of(PAGE), 0);
    code.extend(initial);
    code.extend(facts.initial.to_bytes());
    let manifest = facts.manifest.section();
    code.extend(&manifest);
    let (traps, jumps) = (facts.traps.as_bytes(), facts.jumps.to_bytes());
    let count =
        |bytes: &[u8]| u32::try_from(bytes.len() / 4).expect("each is a place in code that is smaller than 4 GiB");
    let counts = [count(traps), count(&jumps)];
    code.extend(jumps);
    code.extend(traps);
    code.extend(MAGIC);
    code.extend(of.format.as_bytes());
    code.extend(of.source.as_bytes());
    let Places { start, end, landing } = facts.places;
    // `Manifest::parse` accepted it, so it is small; a larger one would be refused when it is read.
    let size = u32::try_from(manifest.len()).unwrap_or(u32::MAX);
    for number in [facts.heap_base, entry_number(facts.entry), start, end, landing, size, counts[0], counts[1]] {
        code.extend(number.to_le_bytes());
    }
    let hash = signature::hasher().update(&code).finalize();
    code.extend(secret.sign(&hash));
    code
}

/// Whether a file claims that this version compiled it. For messages only: it proves nothing.
pub fn is_of_this_version(file: BorrowedFd<'_>) -> bool {
    const WANTED: usize = MAGIC.len() + blake3::OUT_LEN;
    let read = || {
        let end = u64::try_from(rustix::fs::fstat(file).ok()?.st_size).ok()?;
        let mut begin = [0; WANTED];
        let got = rustix::io::pread(file, &mut begin, end.checked_sub(TRAILER as u64)?).ok()?;
        (got == WANTED).then_some(begin)
    };
    read().is_some_and(|begin| begin.starts_with(MAGIC) && is_known(&begin[MAGIC.len()..]))
}

/// Whether this is a format of this version.
fn is_known(format: &[u8]) -> bool {
    ADAPTERS.iter().any(|adapter| format == format_of(*adapter).as_bytes())
}

/// Takes a private copy of a file and accepts it if its signature is right.
///
/// # Errors
/// See [`Refused`].
pub fn open(checks: &Checks, file: BorrowedFd<'_>) -> Result<Compiled, Refused> {
    if !may_be_copied(checks, file)? {
        return Err(Refused::Untrusted);
    }
    let (copy, hash) = sealed_copy(file)?;
    accept(copy, |_, _, signature| Ok(checks.signed(&hash, signature)))
}

/// Accepts a file of the cache if its signature is right, without a copy of it.
///
/// # Errors
/// See [`Refused`].
pub fn open_own(checks: &Checks, own: Own) -> Result<Compiled, Refused> {
    accept(own.into_file(), |file, signed, signature| Ok(checks.signed(&hash_of(file, signed)?, signature)))
}

/// Accepts a file of the cache whose signature was right when it was as it is now.
///
/// # Errors
/// See [`Refused`].
pub fn open_noted(own: Own, then: &FileState) -> Result<Compiled, Refused> {
    accept(own.into_file(), |file, _, _| Ok(FileState::of(file)? == *then))
}

/// Accepts a file whose bytes cannot change: `copy` is sealed, or an [`Own`] file. `proven` says
/// whether the signature at its end fits the bytes before it.
fn accept(
    copy: File,
    proven: impl FnOnce(&File, usize, &[u8; SIGNATURE]) -> Result<bool, Refused>,
) -> Result<Compiled, Refused> {
    let len = usize::try_from(rustix::fs::fstat(&copy)?.st_size).map_err(|_| Refused::Untrusted)?;
    if len < TRAILER {
        return Err(Refused::Untrusted);
    }
    let mut trailer = [0; TRAILER];
    copy.read_exact_at(&mut trailer, (len - TRAILER) as u64)?;
    let (body, signature) = trailer.split_at(TRAILER - SIGNATURE);
    if body[..16] != *MAGIC {
        return Err(Refused::Untrusted);
    }
    let signature = signature.first_chunk().ok_or(Refused::Untrusted)?;
    if !proven(&copy, len - SIGNATURE, signature)? {
        return Err(Refused::Untrusted);
    }
    // From here on the bytes are known to come from `encode`.
    if !is_known(&body[16..48]) {
        return Err(Refused::OtherVersion);
    }
    let (source, numbers) = body[48..].split_at(32);
    let field = |index: usize| u32::from_le_bytes(std::array::from_fn(|i| numbers[4 * index + i]));
    let traps = 4 * field(6) as usize;
    let end = (len - TRAILER).checked_sub(traps).ok_or(Refused::Untrusted)?;
    let mut table = vec![0; traps];
    copy.read_exact_at(&mut table, end as u64)?;
    let jumps = 4 * field(7) as usize;
    let end = end.checked_sub(jumps).ok_or(Refused::Untrusted)?;
    let mut jumping = vec![0; jumps];
    copy.read_exact_at(&mut jumping, end as u64)?;
    let (manifest, end) = manifest(&copy, end, field(5))?;
    let (initial, pages) = initial(&copy, end)?;
    Ok(Compiled {
        code: copy,
        facts: Facts {
            heap_base: field(0),
            entry: numbered_entry(field(1)),
            places: Places { start: field(2), end: field(3), landing: field(4) },
            manifest,
            traps: Traps::from_bytes(table),
            jumps: Jumps::from_bytes(&jumping),
            initial,
        },
        pages,
        source: std::array::from_fn(|i| source[i]),
    })
}

/// The manifest of `size` bytes that ends at `end`, and the offset where it begins.
fn manifest(file: &File, end: usize, size: u32) -> Result<(Manifest, usize), Refused> {
    let size = usize::try_from(size).ok().filter(|size| *size <= MAX_SIZE.min(end)).ok_or(Refused::Untrusted)?;
    let mut section = vec![0; size];
    file.read_exact_at(&mut section, (end - size) as u64)?;
    Ok((Manifest::parse(&section).map_err(Refused::Unreadable)?, end - size))
}

/// The layout of the pages of data that end at `end`, and the offset in the file where the pages
/// begin.
fn initial(file: &File, end: usize) -> Result<(Layout, u64), Refused> {
    let end = end as u64;
    let (layout, len) = Layout::read(file, end)?.ok_or(Refused::Untrusted)?;
    let pages = (end - len).checked_sub(layout.len()).filter(|at| at.is_multiple_of(PAGE as u64));
    Ok((layout, pages.ok_or(Refused::Untrusted)?))
}

fn entry_number(entry: Entry) -> u32 {
    match entry {
        Entry::None => 0,
        Entry::Handle => 1,
        Entry::PassFptr => 2,
    }
}

fn numbered_entry(number: u32) -> Entry {
    match number {
        1 => Entry::Handle,
        2 => Entry::PassFptr,
        _ => Entry::None,
    }
}

/// Sizes of files of compiled code: up to the first they are copied before they are verified, and
/// beyond the second they are refused.
const SMALL: u64 = 64 << 20;
const LARGEST: u64 = 1 << 30;

/// The piece size that BLAKE3 hashes in parallel. Reading is cheaper than mapping, most of all for
/// a small file.
const PIECE: usize = 16 << 10;

/// Whether a copy may be made of a file, which takes as much of the host's memory: of a small file
/// always, of a large one if its signature is right. A file larger than any code is not even read:
/// it can be sparse and as long as its maker likes.
fn may_be_copied(checks: &Checks, file: BorrowedFd<'_>) -> Result<bool, Refused> {
    let len = u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(u64::MAX);
    if len <= SMALL || len > LARGEST {
        return Ok(len <= SMALL);
    }
    let (file, signed) = (File::from(file.try_clone_to_owned()?), len - SIGNATURE as u64);
    let mut signature = [0; SIGNATURE];
    file.read_exact_at(&mut signature, signed)?;
    let signed = usize::try_from(signed).map_err(|_| Refused::Untrusted)?;
    Ok(checks.signed(&hash_of(&file, signed)?, &signature))
}

/// A copy in a memory file that can no longer change, and the hash of all of it but the signature
/// at its end. If the file grows meanwhile, only its first length is copied: the copy is what
/// counts. Not inlined, like the next function: it is the deepest call of a start, and each further
/// page of stack costs a start one more page fault.
#[inline(never)]
fn sealed_copy(file: BorrowedFd<'_>) -> Result<(File, blake3::Hash), Refused> {
    let len = usize::try_from(rustix::fs::fstat(file)?.st_size).map_err(|_| Refused::Untrusted)?;
    if len < TRAILER {
        return Err(Refused::Untrusted);
    }
    let signed = len - SIGNATURE;
    let copy = sealed::create(c"cwasm")?;
    let mut piece = [0; PIECE];
    let mut hasher = signature::hasher();
    let mut at = 0;
    while at < len {
        let piece = &mut piece[..(len - at).min(PIECE)];
        // Signals interrupt it, and are handled afterwards.
        let got = rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut *piece, at as u64))?;
        let piece = piece.get(..got).filter(|piece| !piece.is_empty()).ok_or(Refused::Untrusted)?;
        copy_all(&copy, piece, at as u64)?;
        hasher.update(&piece[..got.min(signed.saturating_sub(at))]);
        at += got;
    }
    sealed::seal(&copy)?;
    Ok((File::from(copy), hasher.finalize()))
}

fn copy_all(to: &OwnedFd, mut bytes: &[u8], mut at: u64) -> Result<(), Refused> {
    while !bytes.is_empty() {
        let put = rustix::io::retry_on_intr(|| rustix::io::pwrite(to, bytes, at))?;
        bytes = &bytes[put..];
        at += put as u64;
    }
    Ok(())
}

/// `file` must be safe from change (see [`accept`]) and at least `len` bytes long.
#[inline(never)]
fn hash_of(file: &File, len: usize) -> Result<blake3::Hash, Refused> {
    let mut piece = [0; PIECE];
    let mut hasher = signature::hasher();
    for at in (0..len).step_by(PIECE) {
        let piece = &mut piece[..(len - at).min(PIECE)];
        file.read_exact_at(piece, at as u64)?;
        hasher.update(piece);
    }
    Ok(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use rustix::fd::AsFd;

    use super::*;

    #[test]
    fn code_of_another_adapter_is_of_another_version() {
        let secret = Secret::of(&[1; 32]).unwrap();
        let facts = Facts {
            heap_base: 0,
            entry: Entry::None,
            places: Places::default(),
            manifest: Manifest::default(),
            traps: Traps::default(),
            jumps: Jumps::default(),
            initial: Layout::default(),
        };
        let opened = |adapter| {
            let of = Of { format: format_of(adapter), source: blake3::hash(b"module") };
            let file = rustix::fs::memfd_create(c"code", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
            copy_all(&file, &encode(&secret, Vec::new(), &[], &facts, &of), 0).unwrap();
            (open(&secret.checks(), file.as_fd()), is_of_this_version(file.as_fd()))
        };
        for adapter in ADAPTERS {
            assert!(matches!(opened(adapter), (Ok(_), true)), "{adapter:?}");
        }
        assert!(matches!(opened(Some("of last year")), (Err(Refused::OtherVersion), false)));
    }
}
