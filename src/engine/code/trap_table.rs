//! The instructions of compiled code that do nothing but trap (`ud2`), and the signal that each
//! causes.
//!
//! To the host all of them are SIGILL. Only Wasmtime's table tells which of them is a division by
//! zero, and that table is not available at run time: so the needed part of it is extracted when a
//! module is compiled.

use std::sync::Arc;

use anyhow::{Context, Result};
use object::{Object, ObjectSection};
use wasmtime_environ::{CompiledTrap, Trap, iterate_traps, obj::ELF_WASMTIME_TRAPS};

/// Sorted entries: each an offset in the code, with the kind in the two lowest bits. Little-endian
/// as in the file, whose bytes are used unchanged: large programs have tens of kilobytes of them,
/// and most are never read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Traps(Arc<Vec<u8>>);

const KINDS: [i32; 3] = [libc::SIGILL, libc::SIGFPE, libc::SIGSEGV];

impl Traps {
    /// The instructions of a serialized module with this code, without its landing pad.
    ///
    /// # Errors
    /// The module is not in the format of this version of Wasmtime.
    pub fn of(elf: &[u8], text: &[u8], landing: u32) -> Result<Traps> {
        const UD2: &[u8] = &[0x0f, 0x0b];
        /// Two bits are for the kind.
        const MOST: u32 = u32::MAX >> 2;
        let file = object::File::parse(elf)?;
        let section = file.section_by_name(ELF_WASMTIME_TRAPS).context("compiled code without a table of traps")?;
        let all = iterate_traps(section.data()?).context("an unreadable table of traps")?;
        let is_ud2 = |at: u32| text.get(at as usize..).is_some_and(|code| code.starts_with(UD2));
        let found = all.filter(|(at, _)| *at != landing && *at <= MOST && is_ud2(*at));
        let mut words: Vec<u32> = found.filter_map(|(at, trap)| Some(at << 2 | kind(&trap)?)).collect();
        words.sort_unstable();
        Ok(Traps::from_bytes(words.into_iter().flat_map(u32::to_le_bytes).collect()))
    }

    /// Reads the bytes of [`Traps::as_bytes`].
    pub fn from_bytes(bytes: Vec<u8>) -> Traps {
        Traps(Arc::new(bytes))
    }

    /// The bytes for a file: 4 for each entry.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The signal that the instruction at this offset causes.
    pub fn signal(&self, at: u32) -> Option<u8> {
        let (words, _) = self.0.as_chunks();
        let found = words.binary_search_by_key(&at, |word| u32::from_le_bytes(*word) >> 2).ok()?;
        KINDS.get((words[found][0] & 3) as usize).and_then(|signal| u8::try_from(*signal).ok())
    }
}

/// The index in `KINDS` of a trap that a program may handle. A handler for an overflow of the stack
/// would have no stack.
fn kind(trap: &CompiledTrap) -> Option<u32> {
    let CompiledTrap::Normal(trap) = trap else { return None };
    match trap {
        Trap::UnreachableCodeReached | Trap::BadSignature => Some(0),
        Trap::IntegerDivisionByZero | Trap::IntegerOverflow | Trap::BadConversionToInteger => Some(1),
        Trap::TableOutOfBounds | Trap::IndirectCallToNull | Trap::NullReference => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traps_are_found_by_their_offset() {
        let words = [8 << 2, 40 << 2 | 1, 44 << 2 | 2_u32];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let traps = Traps::from_bytes(bytes.clone());
        assert_eq!(traps.as_bytes(), bytes);
        assert_eq!([8, 40, 44, 9, 41].map(|at| traps.signal(at)), [Some(4), Some(8), Some(11), None, None]);
        assert_eq!(Traps::from_bytes((3_u32).to_le_bytes().to_vec()).signal(0), None);
    }
}
