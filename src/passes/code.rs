//! Edits of the code section, made on its bytes: what is not edited stays as the compiler encoded it.

use std::ops::Range;

use anyhow::Result;
use wasmparser::FunctionBody;

use crate::module::{entries, leb};

/// At offset `at` of the code section's bytes, `remove` bytes give way to `insert`.
pub struct Edit {
    pub at: usize,
    pub remove: usize,
    pub insert: Vec<u8>,
}

/// The functions of a code section. The range starts at the function's size, the body after it.
pub fn functions(section: &[u8]) -> Result<Vec<(Range<usize>, FunctionBody<'_>)>> {
    entries(section)
}

/// Applies edits, which lie within function bodies and are sorted by place, and corrects the sizes of the
/// functions they are in.
pub fn apply(section: &[u8], edits: &[Edit]) -> Result<Vec<u8>> {
    let functions = functions(section)?;
    let mut out = Vec::with_capacity(section.len() + 16 * edits.len());
    let first = functions
        .first()
        .map_or(section.len(), |(range, _)| range.start);
    out.extend_from_slice(&section[..first]);
    let mut edits = edits.iter().peekable();
    for (range, body) in functions {
        let body = body.range();
        let (mut new, mut from) = (Vec::new(), body.start);
        while let Some(edit) = edits.next_if(|edit| edit.at < range.end) {
            new.extend_from_slice(&section[from..edit.at]);
            new.extend_from_slice(&edit.insert);
            from = edit.at + edit.remove;
        }
        if from == body.start {
            out.extend_from_slice(&section[range]);
        } else {
            new.extend_from_slice(&section[from..body.end]);
            leb(&mut out, u32::try_from(new.len())?);
            out.extend_from_slice(&new);
        }
    }
    Ok(out)
}
