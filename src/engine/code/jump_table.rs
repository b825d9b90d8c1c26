//! The functions that a signal handler must not leave by a jump: those that call setjmp, which
//! catch a jump only around their own calls.
//!
//! Such a function was compiled with calls of [`POLL`] in its loops (scripts/driver/jumps.py), so a
//! signal soon finds it in one of its callees. A function without such calls is interrupted
//! anywhere, as all others are.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use anyhow::Result;
use wasmparser::{BinaryReader, FunctionBody, Operator};
use wasmtime::Module;

/// The import that such functions call.
const POLL: &str = "__lind_poll";

/// The imports that they call without catching anything.
const UNCAUGHT: [&str; 2] = ["__wasm_setjmp", "__wasm_setjmp_test"];

/// The ranges of such functions in a module's machine code: pairs of start and end, ascending.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Jumps(Arc<[u32]>);

/// The functions' indices. `first` is that of the first body, `exported` finds a function by name.
///
/// # Errors
/// The module is not valid.
pub fn find(
    wasm: &[u8],
    bodies: &[Range<usize>],
    first: u32,
    exported: impl Fn(&str) -> Option<u32>,
) -> Result<HashSet<u32>> {
    let Some(poll) = exported(POLL) else { return Ok(HashSet::new()) };
    let mut found: HashSet<u32> = UNCAUGHT.into_iter().filter_map(exported).collect();
    for (function, body) in (first..).zip(bodies) {
        let body = FunctionBody::new(BinaryReader::new(&wasm[body.clone()], body.start));
        for op in body.get_operators_reader()? {
            if matches!(op?, Operator::Call { function_index } if function_index == poll) {
                found.insert(function);
                break;
            }
        }
    }
    Ok(found)
}

impl Jumps {
    /// The ranges in a compiled module, by the indices of the functions.
    ///
    /// # Errors
    /// The machine code is larger than code can be.
    pub fn of(module: &Module, functions: &HashSet<u32>) -> Result<Jumps> {
        let mut places = Vec::with_capacity(2 * functions.len());
        if !functions.is_empty() {
            // They are in the order of the code, which `places_in` of the compiler has checked.
            for function in module.functions().filter(|function| functions.contains(&function.index.as_u32())) {
                places.push(u32::try_from(function.offset)?);
                places.push(u32::try_from(function.offset + function.len)?);
            }
        }
        Ok(Jumps(places.into()))
    }

    /// Reads the bytes of [`Jumps::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Jumps {
        let (words, _) = bytes.as_chunks();
        Jumps(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    /// The bytes for a file: 4 for each offset.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|place| place.to_le_bytes()).collect()
    }

    /// Whether the instruction at this offset is in one of them.
    pub fn contain(&self, at: u32) -> bool {
        !self.0.partition_point(|place| *place <= at).is_multiple_of(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_an_offset_in_them() {
        let jumps = Jumps([16, 32, 32, 40, 64, 80].into());
        let inside = |at| jumps.contain(at);
        assert!([16, 31, 32, 39, 64, 79].into_iter().all(inside));
        assert!(![0, 15, 40, 63, 80, u32::MAX].into_iter().any(inside));
        assert!(!Jumps::default().contain(0));
        assert_eq!(Jumps::from_bytes(&jumps.to_bytes()), jumps);
    }
}
