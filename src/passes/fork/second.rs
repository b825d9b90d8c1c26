//! The second copy of a function, which resumes a frame that was left.
//!
//! It has no parameters. It pops its record, and then has to reach a site within blocks. Each block
//! with sites starts with a jump to the one of its parts, a site or a block, in which the frame
//! waited:
//!
//! ```text
//! block $part2
//!   block $part1
//!     (jump to $part1 or $part2, or go on)
//!     the code before the first part
//!   end
//!   the first part, and the code behind it
//! end
//! the second part, ...
//! ```
//!
//! Before a part all operands of the block go into their locals, since no block may lie between a
//! value and its use; behind the jump they are read from there. The record's values went there,
//! too. Blocks with sites take no parameters for the same reason. The local `to` is the site to
//! reach, 0 once there.

use std::collections::HashMap;

use anyhow::Result;
use wasm_encoder::{BlockType, Catch, InstructionSink, ValType};
use wasmparser::Operator;

use super::callgraph::CallGraph;
use super::emit::{self, Slots};
use super::frames::{self, Frames, Value};
use super::runtime::{Runtime, groups};
use super::shape::{Block, Op, Place, Shape, Site, Stack};
use super::values;

/// An open block of the written code.
struct Open {
    /// The number of labels, with its own.
    label: u32,
    /// Its block in the function, if that has sites.
    block: Option<usize>,
    /// Whether it is only entered to resume, at one of its parts.
    only_resumes: bool,
    /// The numbers of the sites in each part that is not yet written, the next part last.
    parts: Vec<std::ops::Range<u32>>,
}

/// The second copy while it is made.
pub struct Second<'f, 'a> {
    shape: &'f Shape<'a>,
    frames: &'f Frames,
    graph: &'f CallGraph,
    runtime: &'f mut Runtime,
    /// The file, and the offset in it of the code section's contents.
    bytes: &'a [u8],
    section: usize,
    slots: Slots,
    to: u32,
    code: Vec<u8>,
    labels: u32,
    open: Vec<Open>,
    /// Whether code is left out: the code before the first part of a block that is only resumed.
    skipping: bool,
}

impl<'f, 'a> Second<'f, 'a> {
    pub fn new(
        shape: &'f Shape<'a>,
        frames: &'f Frames,
        graph: &'f CallGraph,
        runtime: &'f mut Runtime,
        (bytes, section): (&'a [u8], usize),
        mut slots: Slots,
    ) -> Self {
        let to = slots.fresh(ValType::I32);
        let (code, open) = (Vec::new(), Vec::new());
        Second { shape, frames, graph, runtime, bytes, section, slots, to, code, labels: 0, open, skipping: false }
    }

    fn sink(&mut self) -> InstructionSink<'_> {
        InstructionSink::new(&mut self.code)
    }

    /// The body of the function.
    pub fn body(mut self) -> Result<Vec<u8>> {
        self.restore()?;
        self.frames.open(&mut InstructionSink::new(&mut self.code), self.shape, self.runtime);
        self.labels = self.frames.labels();
        let parts = self.parts(0..self.shape.ops.len());
        self.open.push(Open { label: self.labels, block: None, only_resumes: true, parts });
        self.jump(&[]);
        for (at, op) in self.shape.ops.iter().enumerate() {
            self.op(at, op)?;
        }
        self.frames.close(&mut InstructionSink::new(&mut self.code), self.shape, self.runtime)?;
        self.sink().end();
        let types = self.shape.locals.iter().map(|ty| values::nullable(*ty));
        let locals: Vec<ValType> = types.chain(self.slots.types().iter().copied()).collect();
        let mut body = Vec::new();
        groups(&locals).encode(&mut body);
        body.extend(self.code);
        Ok(body)
    }

    /// Pops the record. Sites that store the same values share the code.
    fn restore(&mut self) -> Result<()> {
        let (mut kinds, mut known, mut kind_of) = (Vec::new(), HashMap::new(), Vec::new());
        for saved in &self.frames.sites {
            let values = self.frames.values(saved);
            let kind = *known.entry(values.clone()).or_insert_with(|| {
                kinds.push(values);
                kinds.len() - 1
            });
            kind_of.push(u32::try_from(kind)?);
        }
        let to = self.to;
        self.runtime.next_site(&mut InstructionSink::new(&mut self.code));
        self.sink().local_set(to);
        let count = u32::try_from(kinds.len())?;
        if count > 1 {
            (0..=count).for_each(|_| {
                self.sink().block(BlockType::Empty);
            });
            self.sink().local_get(to).i32_const(1).i32_sub().br_table(kind_of, count - 1);
        }
        for (number, kind) in (1..).zip(kinds) {
            if count > 1 {
                self.sink().end();
            }
            let (first, rest) = frames::pieces(&kind);
            self.pop(first, true)?;
            for piece in rest {
                self.pop(piece, false)?;
            }
            if count > 1 {
                self.sink().br(count - number);
            }
        }
        if count > 1 {
            self.sink().end();
        }
        Ok(())
    }

    fn pop(&mut self, piece: &[Value], record: bool) -> Result<()> {
        let types = frames::types(piece);
        let helper = if record { self.runtime.load(&types)? } else { self.runtime.pull(&types)? };
        self.sink().call(helper);
        for (_, local) in piece.iter().rev() {
            self.sink().local_set(*local);
        }
        Ok(())
    }

    /// The parts with sites among instructions, the first last.
    fn parts(&self, ops: std::ops::Range<usize>) -> Vec<std::ops::Range<u32>> {
        let (mut parts, mut at) = (Vec::new(), ops.start);
        while at < ops.end {
            match self.shape.ops[at].place {
                Place::Site(site) => {
                    parts.extend(self.shape.sites[site].number.map(|number| number..number + 1));
                }
                Place::Block(block) => {
                    let block = &self.shape.blocks[block];
                    if !block.sites.is_empty() {
                        parts.push(block.sites.clone());
                    }
                    at = block.end;
                }
                Place::Plain => {}
            }
            at += 1;
        }
        parts.reverse();
        parts
    }

    /// At the start of a block or its else: jumps to the part that is to be resumed. If none is,
    /// its operands are loaded from their locals.
    fn jump(&mut self, operands: &[(usize, ValType)]) {
        let Some(open) = self.open.last() else { return };
        let (to, only_resumes) = (self.to, open.only_resumes);
        let parts: Vec<_> = open.parts.iter().rev().cloned().collect();
        for _ in &parts {
            self.sink().block(BlockType::Empty);
            self.labels += 1;
        }
        let targets = |shift: u32| {
            let numbered = (shift..).zip(&parts);
            numbered.flat_map(|(label, part)| part.clone().map(move |_| label)).collect::<Vec<u32>>()
        };
        match parts.first() {
            None => {}
            // No other part can be meant.
            Some(_) if only_resumes && parts.len() == 1 => {}
            Some(first) if only_resumes => {
                let (start, targets) = (first.start.cast_signed(), targets(0));
                self.sink().local_get(to).i32_const(start).i32_sub().br_table(targets, 0);
            }
            Some(_) if parts.len() == 1 => {
                self.sink().local_get(to).br_if(0);
            }
            Some(first) => {
                let (start, targets) = (first.start.cast_signed(), targets(1));
                self.sink().block(BlockType::Empty).local_get(to).i32_const(start).i32_sub().br_table(targets, 0).end();
            }
        }
        if only_resumes && !parts.is_empty() {
            self.skipping = true;
            return;
        }
        let mut sink = InstructionSink::new(&mut self.code);
        self.slots.get(&mut sink, operands.iter().copied());
    }

    fn op(&mut self, at: usize, op: &Op) -> Result<()> {
        let numbered = match op.place {
            Place::Site(site) => self.shape.sites[site].number.is_some(),
            Place::Block(block) => !self.shape.blocks[block].sites.is_empty(),
            Place::Plain => false,
        };
        if self.skipping && !numbered {
            return Ok(());
        }
        if self.graph.changes.binary_search(&(op.range.start - self.section)).is_ok() {
            self.runtime.note_change(&mut InstructionSink::new(&mut self.code));
        }
        match op.place {
            Place::Site(site) if numbered => return self.site(op, &self.shape.sites[site]),
            Place::Site(site) => {
                let (site, call) =
                    (&self.shape.sites[site], emit::call(op, (self.bytes, self.section), self.graph, self.runtime));
                let (code, slots) = (&mut self.code, &mut self.slots);
                emit::pinned_call(code, &site.stack, &site.results, &call, slots, self.runtime);
            }
            Place::Block(block) if numbered => self.block(block, op),
            Place::Block(_) => {
                self.plain(op);
                self.labels += 1;
                self.open.push(Open { label: self.labels, block: None, only_resumes: false, parts: Vec::new() });
            }
            Place::Plain => match op.op {
                Operator::Else => self.otherwise(),
                Operator::End if at + 1 < self.shape.ops.len() => self.end(),
                // The function's own end is among the pads.
                Operator::End => {}
                _ => self.plain(op),
            },
        }
        Ok(())
    }

    /// Before a part: moves the operands into their locals, those that stay on the stack as well.
    fn boundary(&mut self, stack: &Stack) -> bool {
        let resumes = std::mem::replace(&mut self.skipping, false);
        let mut sink = InstructionSink::new(&mut self.code);
        if !resumes {
            self.slots.set(&mut sink, stack.own());
        }
        sink.end();
        self.slots.get(&mut sink, stack.own_below());
        self.labels -= 1;
        if let Some(open) = self.open.last_mut() {
            open.parts.pop();
        }
        resumes
    }

    fn site(&mut self, op: &Op, site: &Site) -> Result<()> {
        let resumes = self.boundary(&site.stack);
        let (frames, labels) = (self.frames, self.labels);
        let saved = &frames.sites[site.number.map_or(0, |number| number as usize - 1)];
        let ty = self.runtime.block_type(&[], &site.results);
        let next = self.runtime.next(&site.results)?;
        let call = emit::call(op, (self.bytes, self.section), self.graph, self.runtime);
        let (to, tag) = (self.to, self.runtime.tag);
        let tried = frames.label(saved, labels);
        let mut sink = InstructionSink::new(&mut self.code);
        if let Some(label) = tried {
            sink.try_table(ty, [Catch::One { tag, label }]);
        }
        if resumes {
            sink.i32_const(0).local_set(to).call(next);
        } else {
            sink.local_get(to).if_(ty).i32_const(0).local_set(to).call(next).else_();
            self.slots.get(&mut sink, site.stack.own_taken());
            self.code.extend_from_slice(&call);
            self.sink().end();
        }
        let mut sink = InstructionSink::new(&mut self.code);
        if tried.is_some() {
            sink.end();
        }
        frames.leave(&mut sink, (saved, &site.results), labels, self.runtime)
    }

    fn block(&mut self, number: usize, op: &Op) {
        let block = &self.shape.blocks[number];
        let resumes = self.boundary(&block.stack);
        let ty = self.runtime.block_type(&[], &block.results);
        let operands: Vec<(usize, ValType)> = block.stack.own_taken().collect();
        let mut params = operands.clone();
        let mut only_resumes = resumes;
        match &op.op {
            Operator::Loop { .. } => {
                self.head(block, &operands);
                only_resumes = false;
            }
            Operator::If { .. } => {
                let to = self.to;
                let condition = params.pop().map_or(0, |operand| self.slots.of(operand));
                // To the branch with the site; if nothing is resumed, by the condition.
                let first = block.before_else.end.cast_signed();
                self.sink().local_get(to).i32_const(first).i32_lt_u().local_get(condition).local_get(to).select();
                self.sink().if_(ty);
            }
            Operator::TryTable { try_table } => {
                let catches: Vec<Catch> = try_table.catches.iter().map(|catch| self.catch(catch)).collect();
                self.sink().try_table(ty, catches);
            }
            _ => {
                self.sink().block(ty);
            }
        }
        self.labels += 1;
        let parts = self.parts(block.start + 1..block.otherwise.unwrap_or(block.end));
        self.open.push(Open { label: self.labels, block: Some(number), only_resumes, parts });
        self.jump(&params);
    }

    /// The head of a loop. Its parameters arrive on the stack each time around; the first time, if
    /// it is entered to resume, they have no meaning, and their places belong to the values of the
    /// record.
    fn head(&mut self, block: &Block, operands: &[(usize, ValType)]) {
        let ty = self.runtime.block_type(&block.stack.taken, &block.results);
        let held: Vec<u32> = operands.iter().map(|(_, ty)| self.slots.fresh(*ty)).collect();
        let places: Vec<u32> = operands.iter().map(|operand| self.slots.of(*operand)).collect();
        let to = self.to;
        let mut sink = InstructionSink::new(&mut self.code);
        self.slots.get(&mut sink, operands.iter().copied());
        sink.loop_(ty);
        if operands.is_empty() {
            return;
        }
        for held in held.iter().rev() {
            sink.local_set(*held);
        }
        sink.local_get(to).i32_eqz().if_(BlockType::Empty);
        for (held, place) in held.iter().zip(places) {
            sink.local_get(*held).local_set(place);
        }
        sink.end();
    }

    fn otherwise(&mut self) {
        self.sink().else_();
        let Some(number) = self.open.last().and_then(|open| open.block) else { return };
        let block = &self.shape.blocks[number];
        let parts = self.parts(block.otherwise.map_or(block.end, |at| at + 1)..block.end);
        if let Some(open) = self.open.last_mut() {
            open.parts = parts;
        }
        let params = self.params(block);
        self.jump(&params);
    }

    /// The parameters of a block, without an `if`'s condition.
    fn params(&self, block: &Block) -> Vec<(usize, ValType)> {
        let count = block.stack.taken.len() - usize::from(self.is_if(block));
        block.stack.own_taken().take(count).collect()
    }

    fn is_if(&self, block: &Block) -> bool {
        matches!(self.shape.ops[block.start].op, Operator::If { .. })
    }

    fn end(&mut self) {
        if let Some(number) = self.open.pop().and_then(|open| open.block) {
            let block = &self.shape.blocks[number];
            let params = self.params(block);
            // Without an else, the parameters are the results.
            if self.is_if(block) && block.otherwise.is_none() && !params.is_empty() {
                let mut sink = InstructionSink::new(&mut self.code);
                sink.else_();
                self.slots.get(&mut sink, params.into_iter());
            }
        }
        self.sink().end();
        self.labels -= 1;
    }

    /// Copies an instruction, with labels that count the added blocks.
    fn plain(&mut self, op: &Op) {
        match &op.op {
            Operator::Br { relative_depth } => {
                let label = self.label(*relative_depth);
                self.sink().br(label);
            }
            Operator::BrIf { relative_depth } => {
                let label = self.label(*relative_depth);
                self.sink().br_if(label);
            }
            Operator::BrTable { targets } => {
                let labels: Vec<u32> = targets.targets().map_while(Result::ok).map(|label| self.label(label)).collect();
                let default = self.label(targets.default());
                self.sink().br_table(labels, default);
            }
            Operator::BrOnNull { relative_depth } => {
                let label = self.label(*relative_depth);
                self.sink().br_on_null(label);
            }
            Operator::BrOnNonNull { relative_depth } => {
                let label = self.label(*relative_depth);
                self.sink().br_on_non_null(label);
            }
            Operator::BrOnCast { relative_depth, .. } | Operator::BrOnCastFail { relative_depth, .. } => {
                self.cast(op, *relative_depth);
            }
            Operator::TryTable { try_table } => {
                let catches: Vec<Catch> = try_table.catches.iter().map(|catch| self.catch(catch)).collect();
                if let Place::Block(block) = op.place {
                    let block = &self.shape.blocks[block];
                    let ty = self.runtime.block_type(&block.stack.taken, &block.results);
                    self.sink().try_table(ty, catches);
                }
            }
            Operator::LocalGet { local_index } | Operator::LocalTee { local_index } => {
                let bytes = self.raw(op);
                self.code.extend_from_slice(bytes);
                // A parameter that cannot be null becomes a local that starts as null.
                if self.shape.locals.get(*local_index as usize).is_some_and(|ty| !values::defaultable(*ty)) {
                    self.sink().ref_as_non_null();
                }
            }
            _ => {
                let code = emit::call(op, (self.bytes, self.section), self.graph, self.runtime);
                self.code.extend(code);
            }
        }
    }

    fn raw(&self, op: &Op) -> &'a [u8] {
        &self.bytes[op.range.clone()]
    }

    /// br_on_cast and br_on_cast_fail: opcode, flags, label, and the rest unchanged.
    fn cast(&mut self, op: &Op, label: u32) {
        const UNTIL_LABEL: usize = 3;
        let bytes = self.raw(op);
        let (head, tail) = bytes.split_at(UNTIL_LABEL);
        let rest = tail.iter().position(|byte| byte & 0x80 == 0).map_or(tail.len(), |last| last + 1);
        let label = self.label(label);
        self.code.extend_from_slice(head);
        crate::module::leb(&mut self.code, label);
        self.code.extend_from_slice(&tail[rest..]);
    }

    fn label(&self, label: u32) -> u32 {
        let at = self.open.len().checked_sub(1 + label as usize);
        at.map_or(label, |at| self.labels - self.open[at].label)
    }

    fn catch(&self, catch: &wasmparser::Catch) -> Catch {
        match *catch {
            wasmparser::Catch::One { tag, label } => Catch::One { tag, label: self.label(label) },
            wasmparser::Catch::OneRef { tag, label } => Catch::OneRef { tag, label: self.label(label) },
            wasmparser::Catch::All { label } => Catch::All { label: self.label(label) },
            wasmparser::Catch::AllRef { label } => Catch::AllRef { label: self.label(label) },
        }
    }
}
