//! The longjmp pass: lets longjmp skip the cleanup that an exception runs.
//!
//! To the compiler longjmp is an exception with a tag of its own. Cleanup code (destructors,
//! `__attribute__((cleanup))`) is compiled to catch every exception, and so would run for longjmp
//! too: also in the function that longjmp returns to, whose objects are still in use and would be
//! destroyed a second time at its end. Elsewhere longjmp does nothing of that kind, and nor does it
//! here: a `try_table` that catches all gets a clause for that tag in front, which throws it on
//! from outside.
//!
//! ```text
//! try_table (catch_all_ref $l)     block $after
//!   body                             block (result i32 exnref)
//! end                        ->        try_table (catch_ref $longjmp 0) (catch_all_ref $l)
//!                                        body
//!                                      end
//!                                      br $after
//!                                    end
//!                                    throw_ref
//!                                  end
//! ```

use anyhow::Result;
use wasm_encoder::reencode::{Reencode as _, RoundtripReencoder};
use wasm_encoder::{BlockType, Encode, InstructionSink, ValType};
use wasmparser::{BrTable, Catch, ExternalKind, FunctionBody, Operator, TryTable};

use crate::code::{self, Edit};
use crate::module::{Module, id, leb, leb_padded};
use crate::types::Types;

/// The function that throws the tag in every program that uses it.
const LONGJMP: &str = "__wasm_longjmp";

/// Runs the pass.
pub fn pass_by(module: &mut Module) -> Result<()> {
    let types = Types::read(module)?;
    let (Some(tag), Some(section)) = (tag(module, &types)?, module.body(id::CODE)) else { return Ok(()) };
    let pair = u32::try_from(types.count())?;
    let mut edits = Vec::new();
    for (_, body) in code::functions(section)? {
        let pass = Pass { tag, pair, types: &types, frames: vec![false], edits: Vec::new() };
        edits.extend(pass.function(section, &body)?);
    }
    if edits.is_empty() {
        return Ok(());
    }
    code::edit(module, &edits, &[])?;
    let mut ty = vec![0x60, 0];
    [ValType::I32, ValType::EXNREF].as_slice().encode(&mut ty);
    module.append(id::TYPE, &[ty])
}

/// The tag of longjmp, if the program uses it.
fn tag(module: &Module, types: &Types) -> Result<Option<u32>> {
    let exports = module.entries::<wasmparser::Export>(id::EXPORT)?;
    let found = exports.iter().map(|(_, export)| export);
    let found = found.filter(|export| export.kind == ExternalKind::Func).find(|export| export.name == LONGJMP);
    let imported = types.function_count() - module.entries::<u32>(id::FUNCTION)?.len();
    let Some(index) = found.and_then(|export| usize::try_from(export.index).ok()?.checked_sub(imported)) else {
        return Ok(None);
    };
    let Some(section) = module.body(id::CODE) else { return Ok(None) };
    let Some((_, body)) = code::functions(section)?.into_iter().nth(index) else { return Ok(None) };
    for op in body.get_operators_reader()? {
        if let Operator::Throw { tag_index } = op? {
            // In the compiler's form, the exception carries the address of longjmp's arguments.
            let carries = types.tag(tag_index).map(wasmparser::FuncType::params);
            return Ok(Some(tag_index).filter(|_| carries == Some(&[wasmparser::ValType::I32][..])));
        }
    }
    Ok(None)
}

struct Pass<'a> {
    tag: u32,
    /// The type of the clause's values: the tag's value, and the exception.
    pair: u32,
    types: &'a Types,
    /// The open blocks, and whether two more have been put around each.
    frames: Vec<bool>,
    edits: Vec<Edit>,
}

impl Pass<'_> {
    fn function(mut self, section: &[u8], body: &FunctionBody<'_>) -> Result<Vec<Edit>> {
        let mut reader = body.get_operators_reader()?;
        while !reader.eof() {
            let (op, at) = reader.read_with_offset()?;
            // No C or C++ compiler emits these. A function that has them is left unchanged.
            if matches!(op, Operator::BrOnCast { .. } | Operator::BrOnCastFail { .. }) {
                return Ok(Vec::new());
            }
            let old = &section[at..reader.original_position()];
            let new = self.operator(&op, old);
            if let Some(insert) = new {
                self.edits.push(Edit { at, remove: old.len(), insert });
            }
        }
        // Where nothing was wrapped, labels are unchanged.
        Ok(self.edits)
    }

    /// The replacement of an operator, if it changes.
    fn operator(&mut self, op: &Operator, old: &[u8]) -> Option<Vec<u8>> {
        match op {
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => self.frames.push(false),
            Operator::TryTable { try_table } => return self.try_table(try_table, old),
            Operator::End if self.frames.pop() == Some(true) => return Some(vec![0x0b, 0x0c, 1, 0x0b, 0x0a, 0x0b]),
            Operator::Br { relative_depth }
            | Operator::BrIf { relative_depth }
            | Operator::BrOnNull { relative_depth }
            | Operator::BrOnNonNull { relative_depth } => {
                let label = self.label(*relative_depth);
                return (label != *relative_depth).then(|| {
                    let mut new = vec![old[0]];
                    leb_padded(&mut new, label, old.len() - 1);
                    new
                });
            }
            Operator::BrTable { targets } => return self.br_table(targets, old),
            _ => {}
        }
        None
    }

    /// The new number of a label, seen from the innermost open block.
    fn label(&self, old: u32) -> u32 {
        let crossed = self.frames.iter().rev().take(old as usize).filter(|wrapped| **wrapped).count();
        old + 2 * u32::try_from(crossed).unwrap_or(0)
    }

    fn br_table(&self, targets: &BrTable<'_>, old: &[u8]) -> Option<Vec<u8>> {
        let all: Vec<u32> = targets.targets().map_while(Result::ok).chain([targets.default()]).collect();
        if all.iter().all(|&label| self.label(label) == label) {
            return None;
        }
        let mut new = vec![old[0]];
        leb(&mut new, targets.len());
        let (last, others) = all.split_last()?;
        others.iter().for_each(|&label| leb(&mut new, self.label(label)));
        // Not shorter than the old one, whose numbers may have been padded.
        let room = old.len().saturating_sub(new.len());
        leb_padded(&mut new, self.label(*last), room);
        Some(new)
    }

    fn try_table(&mut self, try_table: &TryTable, old: &[u8]) -> Option<Vec<u8>> {
        let catches_all = |catch: &Catch| matches!(catch, Catch::All { .. } | Catch::AllRef { .. });
        let is_ours =
            |catch: &Catch| matches!(catch, Catch::One { tag, .. } | Catch::OneRef { tag, .. } if *tag == self.tag);
        let deciding = try_table.catches.iter().find(|catch| catches_all(catch) || is_ours(catch));
        let wraps = deciding.is_some_and(catches_all) && self.types.block(try_table.ty).0 == 0;
        let clauses: Vec<Catch> = try_table.catches.iter().map(|catch| self.clause(catch, wraps)).collect();
        self.frames.push(wraps);
        if !wraps && clauses == try_table.catches {
            return None;
        }
        let mut new = Vec::new();
        let mut sink = InstructionSink::new(&mut new);
        let ty = RoundtripReencoder.block_type(try_table.ty).ok()?;
        if wraps {
            sink.block(ty).block(BlockType::FunctionType(self.pair));
        }
        let first = wraps.then_some(wasm_encoder::Catch::OneRef { tag: self.tag, label: 0 });
        sink.try_table(ty, first.into_iter().chain(clauses.iter().map(encoded)).collect::<Vec<_>>());
        // Not shorter than the old one, whose numbers may have been padded.
        new.resize(new.len().max(old.len()), NOP);
        Some(new)
    }

    fn clause(&self, catch: &Catch, wraps: bool) -> Catch {
        let new = |label: u32| self.label(label) + if wraps { 2 } else { 0 };
        match *catch {
            Catch::One { tag, label } => Catch::One { tag, label: new(label) },
            Catch::OneRef { tag, label } => Catch::OneRef { tag, label: new(label) },
            Catch::All { label } => Catch::All { label: new(label) },
            Catch::AllRef { label } => Catch::AllRef { label: new(label) },
        }
    }
}

/// The bytes that fill the place of padded numbers.
const NOP: u8 = 0x01;

fn encoded(catch: &Catch) -> wasm_encoder::Catch {
    match *catch {
        Catch::One { tag, label } => wasm_encoder::Catch::One { tag, label },
        Catch::OneRef { tag, label } => wasm_encoder::Catch::OneRef { tag, label },
        Catch::All { label } => wasm_encoder::Catch::All { label },
        Catch::AllRef { label } => wasm_encoder::Catch::AllRef { label },
    }
}
