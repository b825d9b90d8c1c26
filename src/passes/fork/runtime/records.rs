//! Records, and the helpers that functions share to read them.
//!
//! A record is, from its lowest byte on: function number and site number in one i32, then the
//! values. Records grow downward from `__lind_fork_top`, so that the number comes first when a
//! record is popped.

use anyhow::{Context, Result};
use wasm_encoder::{BlockType, HeapType, InstructionSink, ValType};

use super::super::values;
use super::{NO_VALUES, Runtime, function};

/// The kinds of helpers for a list of types.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Helper {
    /// Pops a record and returns its values.
    Load,
    /// Pops further values of a record.
    Pull,
    /// Enters the function of the next record, which has these results.
    Next,
}

impl Runtime {
    /// The offsets of these values in a record, and its size.
    pub fn offsets(&self, values: &[(ValType, u32)]) -> Result<(Vec<u64>, i32)> {
        layout(&values.iter().map(|(ty, _)| *ty).collect::<Vec<_>>(), true)
    }

    /// The helper that pops a record.
    pub fn load(&mut self, types: &[ValType]) -> Result<u32> {
        self.helper(Helper::Load, types)
    }

    /// The helper that pops values behind a record's first ones.
    pub fn pull(&mut self, types: &[ValType]) -> Result<u32> {
        self.helper(Helper::Pull, types)
    }

    /// The helper that enters the function of the next record, which has these results.
    pub fn next(&mut self, results: &[ValType]) -> Result<u32> {
        self.helper(Helper::Next, results)
    }

    fn helper(&mut self, helper: Helper, types: &[ValType]) -> Result<u32> {
        let key = (helper, types.to_vec());
        if let Some(index) = self.helpers.get(&key) {
            return Ok(*index);
        }
        let letters: String = types.iter().map(|ty| values::letter(*ty)).collect();
        let (name, results, body) = match helper {
            Helper::Load => ("load", types, self.reader(types, true)?),
            Helper::Pull => ("pull", types, self.reader(types, false)?),
            Helper::Next => ("next", types, self.enter(types)),
        };
        let index = self.add(NO_VALUES, results, format!("__lind_{name} {letters}").trim_end().to_owned(), body)?;
        self.helpers.insert(key, index);
        Ok(index)
    }

    fn reader(&self, types: &[ValType], record: bool) -> Result<Vec<u8>> {
        let top = self.top;
        let (offsets, size) = layout(types, record)?;
        Ok(function(&[ValType::I32], |sink| {
            sink.global_get(top).local_tee(0).i32_const(size).i32_add().global_set(top);
            for (ty, offset) in types.iter().zip(offsets) {
                sink.local_get(0);
                values::load(sink, *ty, offset);
            }
            sink.end();
        }))
    }

    fn enter(&mut self, results: &[ValType]) -> Vec<u8> {
        let ty = self.function_type(NO_VALUES, results);
        let others: Vec<u32> = self
            .last
            .clone()
            .iter()
            .filter(|last| *last != results)
            .map(|last| self.function_type(NO_VALUES, last))
            .collect();
        function(&[], |sink| {
            // Frames between the one that waits for these results and one that does not return were
            // not kept.
            for other in others {
                self.next_function(sink);
                sink.table_get(self.table).ref_test_non_null(HeapType::Concrete(other)).if_(BlockType::Empty);
                self.next_function(sink);
                sink.call_indirect(self.table, other).call(self.drop_frames).unreachable().end();
            }
            self.next_function(sink);
            sink.return_call_indirect(self.table, ty).end();
        })
    }

    /// Pushes the function number of the next record.
    pub(super) fn next_function(&self, sink: &mut InstructionSink) {
        sink.global_get(self.top);
        values::load(sink, ValType::I32, 0);
        sink.i32_const(self.site_bits.cast_signed()).i32_shr_u();
    }

    /// Pushes the site number of the next record.
    pub fn next_site(&self, sink: &mut InstructionSink) {
        sink.global_get(self.top);
        values::load(sink, ValType::I32, 0);
        sink.i32_const((1i32 << self.site_bits) - 1).i32_and();
    }
}

/// The offsets of values in a record, and its size.
pub(super) fn layout(types: &[ValType], record: bool) -> Result<(Vec<u64>, i32)> {
    let mut size = if record { 4 } else { 0 };
    let mut offsets = Vec::with_capacity(types.len());
    for ty in types {
        offsets.push(u64::try_from(size)?);
        size += values::size(*ty).context("a reference in a record")?;
    }
    Ok((offsets, size))
}
