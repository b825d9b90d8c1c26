//! Code that both copies of a function share: locals for operands, and sites that cannot be left.
//!
//! An operand that lies below a call is at a place of the stack that nothing else takes until it is
//! used. So each place has a local of its own for each type, and both copies, and both ways to a
//! site, find a value in the same local.

use std::collections::HashMap;

use anyhow::Result;
use wasm_encoder::{BlockType, Catch, InstructionSink, RefType, ValType};
use wasmparser::Operator;

use super::callgraph::CallGraph;
use super::runtime::Runtime;
use super::shape::{Op, Shape, Stack};
use super::values;

const EXNREF: ValType = ValType::Ref(RefType::EXNREF);

/// The locals that hold operands, behind the function's own.
#[derive(Clone)]
pub struct Slots {
    first: u32,
    types: Vec<ValType>,
    known: HashMap<(usize, ValType), u32>,
}

impl Slots {
    pub fn new(shape: &Shape) -> Result<Slots> {
        Ok(Slots { first: u32::try_from(shape.locals.len())?, types: Vec::new(), known: HashMap::new() })
    }

    /// The types of the locals.
    pub fn types(&self) -> &[ValType] {
        &self.types
    }

    /// A local for one purpose only.
    pub fn fresh(&mut self, ty: ValType) -> u32 {
        self.types.push(values::nullable(ty));
        self.first + u32::try_from(self.types.len() - 1).unwrap_or(u32::MAX)
    }

    /// The local of a place on the stack.
    pub fn of(&mut self, (at, ty): (usize, ValType)) -> u32 {
        if let Some(local) = self.known.get(&(at, ty)) {
            return *local;
        }
        let local = self.fresh(ty);
        self.known.insert((at, ty), local);
        local
    }

    /// Moves operands from the stack into their locals, the last first.
    pub fn set(&mut self, sink: &mut InstructionSink, operands: impl DoubleEndedIterator<Item = (usize, ValType)>) {
        for operand in operands.rev() {
            sink.local_set(self.of(operand));
        }
    }

    /// Moves operands from their locals to the stack.
    pub fn get(&mut self, sink: &mut InstructionSink, operands: impl Iterator<Item = (usize, ValType)>) {
        for operand in operands {
            sink.local_get(self.of(operand));
            if !values::defaultable(operand.1) {
                sink.ref_as_non_null();
            }
        }
    }
}

/// The bytes of an instruction, as far as they are the same at sites and elsewhere. `section` is
/// the offset of the code section's contents.
pub fn call(op: &Op, (bytes, section): (&[u8], usize), graph: &CallGraph, runtime: &Runtime) -> Vec<u8> {
    let replaced = replaced(&op.op, op.range.start - section, graph, runtime);
    replaced.unwrap_or_else(|| bytes[op.range.clone()].to_vec())
}

/// The replacement of an instruction at this place of the code section: a call of `lind.fork`
/// becomes a call of the function that asks; a call that does not return is followed by a call of
/// the function that drops frames which are not kept.
pub fn replaced(op: &Operator, at: usize, graph: &CallGraph, runtime: &Runtime) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut sink = InstructionSink::new(&mut out);
    match op {
        Operator::Call { function_index } if graph.is_last(at) => {
            let callee = if graph.forks.contains(function_index) { runtime.ask } else { *function_index };
            sink.call(callee).call(runtime.drop_frames)
        }
        Operator::Call { function_index } if graph.forks.contains(function_index) => sink.call(runtime.ask),
        Operator::ReturnCall { function_index } if graph.forks.contains(function_index) => {
            sink.return_call(runtime.ask)
        }
        _ => return None,
    };
    Some(out)
}

/// A call in a frame that cannot be left. It is counted while it lasts, however it ends.
pub fn pinned_call(
    code: &mut Vec<u8>,
    stack: &Stack,
    results: &[ValType],
    call: &[u8],
    slots: &mut Slots,
    runtime: &mut Runtime,
) {
    let ty = runtime.block_type(&[], results);
    let mut sink = InstructionSink::new(code);
    slots.set(&mut sink, stack.own_taken());
    runtime.pin(&mut sink, 1);
    sink.block(ty).block(BlockType::Result(EXNREF)).try_table(ty, [Catch::AllRef { label: 0 }]);
    slots.get(&mut sink, stack.own_taken());
    code.extend_from_slice(call);
    let mut sink = InstructionSink::new(code);
    sink.end().br(1).end();
    runtime.pin(&mut sink, -1);
    sink.throw_ref().end();
    runtime.pin(&mut sink, -1);
}
