//! Edits of the code section, made on its bytes: unedited code stays as the compiler encoded it.

use std::ops::Range;

use anyhow::Result;
use wasmparser::FunctionBody;

use crate::dwarf;
use crate::module::{Module, entries, id, leb_padded};

/// At offset `at` of the code section's bytes, `remove` bytes are replaced by `insert`, which is
/// not shorter.
pub struct Edit {
    pub at: usize,
    pub remove: usize,
    pub insert: Vec<u8>,
}

/// The new places of the bytes of a code section. Debugging information counts from the section's
/// first byte.
#[derive(Default)]
pub struct Moves {
    /// From this old offset on, bytes are this much further back.
    steps: Vec<(usize, usize)>,
    /// The old section's size; beyond it are the marks that linkers leave for code they dropped.
    size: usize,
}

impl Moves {
    /// The new place of an old offset. An insertion belongs to the instruction that follows it.
    pub fn place(&self, old: u64) -> u64 {
        let Some(at) = usize::try_from(old).ok().filter(|&old| old <= self.size) else {
            return old;
        };
        let next = self.steps.partition_point(|&(from, _)| from <= at);
        let by = next.checked_sub(1).map_or(0, |step| self.steps[step].1);
        old + by as u64
    }

    /// The new length of the `length` bytes at `old`.
    pub fn length(&self, old: u64, length: u64) -> u64 {
        self.place(old.saturating_add(length)).saturating_sub(self.place(old))
    }

    fn step(&mut self, from: usize, by: usize) {
        match self.steps.last_mut() {
            Some(last) if last.0 == from => last.1 = by,
            _ => self.steps.push((from, by)),
        }
    }
}

/// The functions of a code section. The range starts at the function's size, the body after it.
pub fn functions(section: &[u8]) -> Result<Vec<(Range<usize>, FunctionBody<'_>)>> {
    entries(section)
}

/// Applies edits, which lie within function bodies and are sorted by place, and corrects all
/// references to places in the code: the sizes of the edited functions, and the debugging
/// information. Adds the bodies of new functions at the end.
pub fn edit(module: &mut Module, edits: &[Edit], new: &[Vec<u8>]) -> Result<()> {
    let Some(section) = module.body(id::CODE).filter(|_| !edits.is_empty()) else {
        return Ok(());
    };
    let (section, moves) = apply(section, edits, new)?;
    module.set(id::CODE, section);
    dwarf::follow(module, &moves);
    // These count from the start of a function, in formats of their own; without them the code is
    // only slower.
    module.remove_custom(|name| name.starts_with("metadata.code."));
    Ok(())
}

/// The new section, and the moves of its bytes.
fn apply(section: &[u8], edits: &[Edit], new: &[Vec<u8>]) -> Result<(Vec<u8>, Moves)> {
    let functions = functions(section)?;
    let mut moves = Moves { steps: Vec::new(), size: section.len() };
    let mut out = Vec::with_capacity(section.len() + 16 * edits.len());
    let first = functions.first().map_or(section.len(), |(range, _)| range.start);
    leb_padded(&mut out, u32::try_from(functions.len() + new.len())?, first);
    moves.step(first, out.len() - first);
    let mut edits = edits.iter().peekable();
    for (range, body) in functions {
        let body = body.range();
        let mine: Vec<&Edit> = std::iter::from_fn(|| edits.next_if(|edit| edit.at < range.end)).collect();
        if mine.is_empty() {
            out.extend_from_slice(&section[range]);
            continue;
        }
        let grown: usize = mine.iter().map(|edit| edit.insert.len() - edit.remove).sum();
        leb_padded(&mut out, u32::try_from(body.len() + grown)?, body.start - range.start);
        let mut from = body.start;
        moves.step(from, out.len() - from);
        for edit in mine {
            out.extend_from_slice(&section[from..edit.at]);
            out.extend_from_slice(&edit.insert);
            from = edit.at + edit.remove;
            moves.step(edit.at + edit.remove.max(1), out.len() - from);
        }
        out.extend_from_slice(&section[from..body.end]);
    }
    for body in new {
        leb_padded(&mut out, u32::try_from(body.len())?, 1);
        out.extend_from_slice(body);
    }
    Ok((out, moves))
}
