//! The first copy of a function, which runs normally: edits that leave its instructions in place.

use std::ops::Range;

use anyhow::Result;
use wasm_encoder::{Catch, InstructionSink};
use wasmparser::Operator;

use crate::code::Edit;
use crate::module::leb_padded;

use super::callgraph::CallGraph;
use super::emit::{self, Slots};
use super::frames::Frames;
use super::runtime::{Runtime, groups};
use super::shape::{Op, Place, Shape, Site, Stack};

/// The first copy while it is made.
pub struct First<'f, 'a> {
    pub shape: &'f Shape<'a>,
    pub frames: &'f Frames,
    pub graph: &'f CallGraph,
    pub runtime: &'f mut Runtime,
    /// The file, and the offset in it of the code section's contents.
    pub bytes: &'a [u8],
    pub section: usize,
    pub slots: Slots,
}

impl First<'_, '_> {
    /// The edits of the code section, in order.
    pub fn edits(mut self) -> Result<Vec<Edit>> {
        let mut edits = Vec::new();
        // The number of the lowest operands that are in their locals.
        let (mut put_away, mut open) = (0, 0);
        for (at, op) in self.shape.ops.iter().enumerate() {
            match (op.place, &op.op) {
                (Place::Site(site), _) => {
                    let site = &self.shape.sites[site];
                    self.site(op, site, open, &mut put_away, &mut edits)?;
                }
                (Place::Block(block), _) => {
                    let block = &self.shape.blocks[block];
                    open += 1;
                    if !block.sites.is_empty() {
                        let insert = self.put_away(&block.stack, &mut put_away);
                        self.insert(op.range.start, insert, &mut edits);
                    }
                }
                (_, Operator::End) if at + 1 < self.shape.ops.len() => open -= 1,
                (_, Operator::End) if self.frames.is_empty() => {}
                (_, Operator::End) => {
                    let mut code = Vec::new();
                    self.frames.close(&mut InstructionSink::new(&mut code), self.shape, self.runtime)?;
                    self.insert(op.range.start, code, &mut edits);
                }
                _ => edits.extend(replaced(&op.op, &op.range, self.section, self.graph, self.runtime)),
            }
            put_away = put_away.min(op.low);
        }
        edits.splice(0..0, self.start()?);
        Ok(edits)
    }

    /// Declarations of locals, and the pads.
    fn start(&mut self) -> Result<Vec<Edit>> {
        let first = self.shape.ops.first().map_or(self.shape.start, |op| op.range.start);
        let mut reader = wasmparser::BinaryReader::new(&self.bytes[self.shape.start..first], 0);
        let declared = reader.read_var_u32()?;
        let groups = groups(self.slots.types());
        let mut count = Vec::new();
        leb_padded(&mut count, declared + u32::try_from(groups.0.len())?, reader.original_position());
        let mut insert = Vec::new();
        groups.encode_list(&mut insert);
        if !self.frames.is_empty() {
            self.frames.open(&mut InstructionSink::new(&mut insert), self.shape, self.runtime);
        }
        Ok(vec![
            Edit { at: self.shape.start - self.section, remove: reader.original_position(), insert: count },
            Edit { at: first - self.section, remove: 0, insert },
        ])
    }

    /// Moves the operands below into their locals and back, unless they are there.
    fn put_away(&mut self, stack: &Stack, put_away: &mut usize) -> Vec<u8> {
        let mut code = Vec::new();
        let mut sink = InstructionSink::new(&mut code);
        if *put_away < stack.below.len() {
            let missing = || stack.own().filter(|(at, _)| at >= put_away);
            self.slots.set(&mut sink, missing());
            self.slots.get(&mut sink, missing());
            *put_away = stack.below.len();
        }
        code
    }

    fn site(&mut self, op: &Op, site: &Site, open: u32, put_away: &mut usize, edits: &mut Vec<Edit>) -> Result<()> {
        let call = emit::call(op, (self.bytes, self.section), self.graph, self.runtime);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut inner = call;
        match site.number {
            Some(number) => {
                before = self.put_away(&site.stack, put_away);
                let (frames, labels) = (self.frames, open + self.frames.labels());
                let saved = &frames.sites[number as usize - 1];
                // Where nothing catches, an exception comes only for frames that are dropped.
                if let Some(label) = frames.label(saved, labels) {
                    let ty = self.runtime.block_type(&site.stack.taken, &site.results);
                    let catch = Catch::One { tag: self.runtime.tag, label };
                    InstructionSink::new(&mut before).try_table(ty, [catch]);
                    InstructionSink::new(&mut after).end();
                }
                let mut sink = InstructionSink::new(&mut after);
                frames.leave(&mut sink, (saved, &site.results), labels, self.runtime)?;
            }
            None => {
                let mut code = Vec::new();
                emit::pinned_call(&mut code, &site.stack, &site.results, &inner, &mut self.slots, self.runtime);
                inner = code;
            }
        }
        before.extend(inner);
        before.extend(after);
        edits.push(Edit { at: op.range.start - self.section, remove: op.range.len(), insert: before });
        Ok(())
    }

    fn insert(&self, at: usize, insert: Vec<u8>, edits: &mut Vec<Edit>) {
        if !insert.is_empty() {
            edits.push(Edit { at: at - self.section, remove: 0, insert });
        }
    }
}

/// The edit of a call that is not a site.
pub fn replaced(
    op: &Operator,
    range: &Range<usize>,
    section: usize,
    graph: &CallGraph,
    runtime: &Runtime,
) -> Option<Edit> {
    let call = emit::replaced(op, range.start - section, graph, runtime)?;
    let mut insert = vec![NOP; range.len().saturating_sub(call.len())];
    insert.extend(call);
    Some(Edit { at: range.start - section, remove: range.len(), insert })
}

const NOP: u8 = 1;
