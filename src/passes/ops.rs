//! Decodes a function's instructions for the loop pass.

use anyhow::Result;
use wasmparser::{Catch, FunctionBody, Operator};

use crate::types::Types;

/// An instruction in the terms of the walk.
pub enum Kind {
    /// A constant, or arithmetic on `n` operands; one result that depends on nothing else.
    Pure(usize),
    LocalGet(u32),
    LocalSet(u32),
    LocalTee(u32),
    /// A load of linear memory; the address is the deepest of `n` operands.
    Load(usize),
    /// Blocks, with their parameters and results.
    Block(usize, usize),
    Loop(usize, usize),
    If(usize, usize),
    /// Parameters, results, the labels of the catches.
    Try(usize, usize, Vec<u32>),
    Else,
    End,
    Br(u32),
    BrIf(u32),
    BrTable(Vec<u32>),
    /// A branch on a reference: operands taken before the branch, label, operands taken after it,
    /// results.
    BrRef {
        before: usize,
        label: u32,
        after: usize,
        results: usize,
    },
    /// Control does not go on to the next instruction.
    Leave,
    Other {
        pops: usize,
        pushes: usize,
        barrier: bool,
    },
}

/// An instruction and its place.
pub struct Op<'a> {
    /// The instruction's bytes, for telling equal computations.
    pub bytes: &'a [u8],
    /// The offset in the code section of the instruction's end.
    pub end: usize,
    /// The number of loads before it in the function.
    pub loads: usize,
    pub kind: Kind,
}

/// The indices of a loop and of its end in the list of instructions.
pub struct Loop {
    pub start: usize,
    pub end: usize,
}

/// A function with at least one loop, decoded.
pub struct Body<'a> {
    pub ops: Vec<Op<'a>>,
    /// The loops, innermost first: ordered by their ends.
    pub loops: Vec<Loop>,
}

impl<'a> Body<'a> {
    /// Decodes a function of the code section; None if it has no loops.
    pub fn decode(section: &'a [u8], body: &FunctionBody<'a>, types: &Types) -> Result<Option<Body<'a>>> {
        let mut reader = body.get_operators_reader()?;
        let (mut ops, mut loops, mut open) = (Vec::new(), Vec::new(), Vec::new());
        let mut loads = 0;
        while !reader.eof() {
            let (op, start) = reader.read_with_offset()?;
            let end = reader.original_position();
            let kind = classify(&op, &section[start..end], types);
            match kind {
                Kind::Loop(..) => open.push((ops.len(), true)),
                Kind::Block(..) | Kind::If(..) | Kind::Try(..) => open.push((ops.len(), false)),
                Kind::End => {
                    if let Some((start, true)) = open.pop() {
                        loops.push(Loop { start, end: ops.len() });
                    }
                }
                _ => {}
            }
            let is_load = matches!(kind, Kind::Load(_));
            ops.push(Op { bytes: &section[start..end], end, loads, kind });
            loads += usize::from(is_load);
        }
        Ok((!loops.is_empty()).then_some(Body { ops, loops }))
    }
}

fn classify(op: &Operator, bytes: &[u8], types: &Types) -> Kind {
    match op {
        Operator::LocalGet { local_index } => Kind::LocalGet(*local_index),
        Operator::LocalSet { local_index } => Kind::LocalSet(*local_index),
        Operator::LocalTee { local_index } => Kind::LocalTee(*local_index),
        Operator::Block { blockty } => with(types.block(*blockty), Kind::Block),
        Operator::Loop { blockty } => with(types.block(*blockty), Kind::Loop),
        Operator::If { blockty } => with(types.block(*blockty), Kind::If),
        Operator::TryTable { try_table } => {
            let (params, results) = types.block(try_table.ty);
            Kind::Try(params, results, try_table.catches.iter().map(catch_label).collect())
        }
        Operator::Else => Kind::Else,
        Operator::End => Kind::End,
        Operator::Br { relative_depth } => Kind::Br(*relative_depth),
        Operator::BrIf { relative_depth } => Kind::BrIf(*relative_depth),
        Operator::BrTable { targets } => {
            Kind::BrTable(targets.targets().map_while(|t| t.ok()).chain([targets.default()]).collect())
        }
        Operator::BrOnNull { relative_depth } => {
            Kind::BrRef { before: 1, label: *relative_depth, after: 0, results: 1 }
        }
        Operator::BrOnNonNull { relative_depth } => {
            Kind::BrRef { before: 0, label: *relative_depth, after: 1, results: 0 }
        }
        Operator::BrOnCast { relative_depth, .. } | Operator::BrOnCastFail { relative_depth, .. } => {
            Kind::BrRef { before: 0, label: *relative_depth, after: 0, results: 0 }
        }
        Operator::Unreachable
        | Operator::Return
        | Operator::ReturnCall { .. }
        | Operator::ReturnCallIndirect { .. }
        | Operator::ReturnCallRef { .. }
        | Operator::Throw { .. }
        | Operator::ThrowRef => Kind::Leave,
        _ => by_opcode(op, bytes, types),
    }
}

fn with(arity: (usize, usize), kind: impl Fn(usize, usize) -> Kind) -> Kind {
    kind(arity.0, arity.1)
}

fn catch_label(catch: &Catch) -> u32 {
    match catch {
        Catch::One { label, .. } | Catch::OneRef { label, .. } | Catch::All { label } | Catch::AllRef { label } => {
            *label
        }
    }
}

/// Instructions that come in families, told apart by their encoding.
fn by_opcode(op: &Operator, bytes: &[u8], types: &Types) -> Kind {
    let (pops, pushes) = op.operator_arity(types).map_or((0, 0), |(pops, pushes)| (pops as usize, pushes as usize));
    match bytes {
        // Select, globals (which loops without a call hardly change), constants, comparisons,
        // arithmetic, conversions of i32, i64, f32, f64.
        [0x1b | 0x1c | 0x23 | 0x41..=0x44 | 0x45..=0xc4, ..] => Kind::Pure(pops),
        [0x28..=0x35, ..] => Kind::Load(1),
        // v128.load and its widening, splatting, lane and zero-filling forms.
        [0xfd, 0x00..=0x0a | 0x54..=0x57 | 0x5c | 0x5d, ..] => Kind::Load(pops),
        // Calls, stores, v128 stores, atomics. Bulk instructions and others that the engine happens
        // to implement by calls do not count.
        [0x10 | 0x11 | 0x14 | 0x36..=0x3e | 0xfe, ..] | [0xfd, 0x0b | 0x58..=0x5b, ..] => {
            Kind::Other { pops, pushes, barrier: true }
        }
        _ => Kind::Other { pops, pushes, barrier: false },
    }
}
