//! Code that comes with this program: compiled where the program was built, so that its first start
//! on a user's machine need not compile.
//!
//! A directory `lib/lind/code` beside the program's own `bin` has a file of code for each module,
//! and a list:
//!
//! ```text
//! list            a line for each module: hash of the module, a space, hash of its code; where
//!                 HASH.packed was there, a space and the hash of that file
//! HASH.code       compiled code without its signature (see `cwasm`); HASH is the module's
//! HASH.packed     the same as `zstd --long=27` compresses it; read where there is no HASH.code
//! ```
//!
//! Hashes are 64 hexadecimal digits: BLAKE3 of a module's bytes and of a packed file, and the hash
//! that signatures are made over. Nothing is decompressed before its hash is known to be right. The
//! hash of the list itself is inside the program, put there after the program was linked (by
//! [`delivery`](crate::code::delivery)). So delivered code is as trustworthy as the
//! program, whoever can write to the directory. The process that compiles takes code from here
//! instead of compiling, signs it with the user's key and keeps it in the cache; nothing else reads
//! the directory.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use anyhow::{Result, ensure};
use rustix::fs::{Mode, OFlags, openat};

use crate::code::signature;
use crate::code::source::hash_of;

/// The place of the list's hash in the program: a mark to find it by, and the hash, or zeroes.
#[repr(C)]
struct Slot {
    mark: [u8; 32],
    list: [u8; 32],
}

#[used]
static SLOT: Slot = Slot { mark: *b"lind: hash of the delivered list", list: [0; 32] };

/// The bytes before the hash, wherever in the program it is.
pub(crate) fn mark() -> &'static [u8; 32] {
    &SLOT.mark
}

/// The name of the list.
pub(crate) const LIST: &str = "list";
/// Sizes that are not read: of the list, and of a file of code.
const LARGEST_LIST: u64 = 1 << 20;
const LARGEST_CODE: u64 = 1 << 30;
/// The binary logarithm of the bytes that packed code refers back to, at most.
const WINDOW: u32 = 27;

/// The delivered code of this program.
pub struct Delivered {
    folder: OwnedFd,
    /// For each module's hash, the hashes of its code and of its packed file.
    codes: HashMap<[u8; 32], Hashes>,
}

/// The hashes of a line of the list.
struct Hashes {
    code: [u8; 32],
    packed: Option<[u8; 32]>,
}

impl Delivered {
    /// Whether this program was built with the hash of a list.
    pub fn is_expected() -> bool {
        expected() != [0; 32]
    }

    /// The code that was delivered with this program. None if there is none, or the list is not the
    /// one that the program was built with.
    pub fn of_this_program() -> Option<Delivered> {
        let wanted = expected();
        if wanted == [0; 32] {
            return None;
        }
        let program = std::env::current_exe().ok()?;
        Delivered::open(&program.ancestors().nth(2)?.join("lib/lind/code"), &wanted)
    }

    /// The code in `folder`, if its list has this hash.
    fn open(folder: &Path, wanted: &[u8; 32]) -> Option<Delivered> {
        let folder = OwnedFd::from(File::open(folder).ok()?);
        let list = read(folder.as_fd(), LIST, LARGEST_LIST).ok()?;
        if blake3::hash(&list) != *wanted {
            return None;
        }
        let hash = |text: &str| Some(*blake3::Hash::from_hex(text).ok()?.as_bytes());
        let read_line = |line: &str| {
            let mut words = line.split(' ').map(hash);
            let (source, code, packed) = (words.next()??, words.next()??, words.next());
            Some((source, Hashes { code, packed: packed.map_or(Some(None), |hash| hash.map(Some))? }))
        };
        let codes = std::str::from_utf8(&list).ok()?.lines().map(read_line).collect::<Option<_>>()?;
        Some(Delivered { folder, codes })
    }

    /// The directory, for walls to leave open.
    pub fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// The code of the module with this hash, without a signature, and the hash to sign. None if
    /// there is none, or its file was changed.
    pub fn code_of(&self, source: &blake3::Hash) -> Option<(Vec<u8>, blake3::Hash)> {
        let wanted = self.codes.get(source.as_bytes())?;
        let unpacked = || self.unpacked(source, &wanted.packed?).ok();
        let code = read(self.folder(), &name_of(source), LARGEST_CODE).ok().or_else(unpacked)?;
        let hash = signature::hasher().update(&code).finalize();
        (hash == wanted.code).then_some((code, hash))
    }

    /// The code in a packed file with this hash.
    fn unpacked(&self, source: &blake3::Hash, wanted: &[u8; 32]) -> Result<Vec<u8>> {
        let packed = read(self.folder(), &packed_name_of(source), LARGEST_CODE)?;
        ensure!(blake3::hash(&packed) == *wanted, "it was changed");
        unpack(&packed, LARGEST_CODE)
    }

    /// Whether the list names the module in this file.
    pub fn names(&self, module: &Path) -> bool {
        let source = File::open(module).map_err(anyhow::Error::from).and_then(|file| hash_of(&file));
        source.is_ok_and(|source| self.codes.contains_key(source.as_bytes()))
    }

    /// The number of modules that the list names.
    pub fn count(&self) -> usize {
        self.codes.len()
    }

    /// The number of modules whose code is missing or was changed. Reads all of it.
    pub fn count_bad(&self) -> usize {
        self.codes.keys().filter(|source| self.code_of(&blake3::Hash::from_bytes(**source)).is_none()).count()
    }
}

/// The list's hash that this program was built with.
fn expected() -> [u8; 32] {
    // SAFETY: a static of this program. Volatile, since the file is changed after the link.
    unsafe { std::ptr::read_volatile(&raw const SLOT.list) }
}

/// The name of the file with a module's code.
pub(crate) fn name_of(source: &blake3::Hash) -> String {
    format!("{}.code", source.to_hex())
}

/// The name of the packed file.
pub(crate) fn packed_name_of(source: &blake3::Hash) -> String {
    format!("{}.packed", source.to_hex())
}

/// Unpacks what becomes at most so many bytes.
fn unpack(packed: &[u8], most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut reader = zstd::Decoder::new(packed)?;
    reader.window_log_max(WINDOW)?;
    reader.take(most + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= most, "it is too large");
    Ok(bytes)
}

/// The bytes of a regular file of at most so many bytes.
fn read(folder: BorrowedFd<'_>, name: &str, most: u64) -> Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(openat(folder, name, flags, Mode::empty())?);
    ensure!(file.metadata()?.is_file(), "{name} is not a regular file");
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= most, "{name} is too large");
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hashes of a module and of the list.
    fn delivery(folder: &Path) -> (blake3::Hash, blake3::Hash) {
        let mut list = String::new();
        for (module, code) in [("module", "code"), ("another", "more")] {
            let (source, hash) =
                (blake3::hash(module.as_bytes()), signature::hasher().update(code.as_bytes()).finalize());
            std::fs::write(folder.join(name_of(&source)), code).unwrap();
            list += &format!("{source} {hash}\n");
        }
        std::fs::write(folder.join(LIST), &list).unwrap();
        (blake3::hash(b"module"), blake3::hash(list.as_bytes()))
    }

    #[test]
    fn code_is_found_by_its_module() {
        let folder = tempfile::tempdir().unwrap();
        let (source, list) = delivery(folder.path());
        let delivered = Delivered::open(folder.path(), list.as_bytes()).unwrap();
        let (code, hash) = delivered.code_of(&source).unwrap();
        assert_eq!((&code[..], hash), (&b"code"[..], signature::hasher().update(b"code").finalize()));
        assert!(delivered.code_of(&blake3::hash(b"unknown")).is_none());
        let module = folder.path().join("module.wasm");
        for (bytes, named) in [(&b"module"[..], true), (b"unknown", false)] {
            std::fs::write(&module, bytes).unwrap();
            assert_eq!(delivered.names(&module), named);
        }
        assert!(!delivered.names(folder.path()));
        assert_eq!((delivered.count(), delivered.count_bad()), (2, 0));
        std::fs::write(folder.path().join(name_of(&source)), "other").unwrap();
        assert_eq!((delivered.count(), delivered.count_bad()), (2, 1));
    }

    #[test]
    fn a_change_of_any_byte_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (source, list) = delivery(folder.path());
        let (list_file, code_file) = (folder.path().join(LIST), folder.path().join(name_of(&source)));
        let found = || Delivered::open(folder.path(), list.as_bytes()).and_then(|all| all.code_of(&source));
        for file in [&list_file, &code_file] {
            let good = std::fs::read(file).unwrap();
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] ^= 1;
                std::fs::write(file, bad).unwrap();
                assert!(found().is_none(), "{}, byte {at}", file.display());
            }
            for bad in [&good[..good.len() - 1], &[&good[..], b"x"].concat(), b""] {
                std::fs::write(file, bad).unwrap();
                assert!(found().is_none());
            }
            std::fs::write(file, &good).unwrap();
            assert!(found().is_some());
        }
        // The same bytes by another way are not read: a link, a FIFO.
        std::fs::rename(&code_file, folder.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", &code_file).unwrap();
        assert!(found().is_none());
        std::fs::remove_file(&code_file).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &code_file, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(found().is_none());
    }

    #[test]
    fn packed_code_is_unpacked() {
        let code: Vec<u8> = (0..640_u32).flat_map(|number| (number % 7).to_le_bytes()).collect();
        let packed = zstd::encode_all(&code[..], 3).unwrap();
        let most = code.len() as u64;
        assert_eq!(unpack(&packed, most).unwrap(), code);
        assert!(unpack(&packed, most - 1).is_err());
        let folder = tempfile::tempdir().unwrap();
        let (source, hash) = (blake3::hash(b"module"), signature::hasher().update(&code).finalize());
        let file = folder.path().join(packed_name_of(&source));
        let found = |list: &str| {
            std::fs::write(folder.path().join(LIST), list).unwrap();
            let delivered = Delivered::open(folder.path(), blake3::hash(list.as_bytes()).as_bytes()).unwrap();
            delivered.code_of(&source).map(|(code, _)| code)
        };
        let list = format!("{source} {hash} {}\n", blake3::hash(&packed));
        std::fs::write(&file, &packed).unwrap();
        assert_eq!(found(&list), Some(code));
        assert_eq!(found(&format!("{source} {hash}\n")), None, "a packed file that is not listed");
        // Any other file gives nothing.
        for at in 0..packed.len() {
            let mut bad = packed.clone();
            bad[at] ^= 1;
            std::fs::write(&file, &bad).unwrap();
            assert_eq!(found(&list), None, "byte {at}");
            std::fs::write(&file, &packed[..at]).unwrap();
            assert_eq!(found(&list), None, "{at} bytes");
        }
    }
}
