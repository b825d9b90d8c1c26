//! Finds calls whose results the function returns unchanged, with nothing done in between.
//!
//! The frame of such a call holds nothing that is needed behind it. At a fork it can be left out:
//! the function's caller goes on with the results of its callee.

use wasmparser::{BlockType, Operator, ValType};

use crate::types::Types;

/// Follows the ways behind the calls of a function.
pub struct Tails<'t> {
    types: &'t Types,
    results: &'t [ValType],
    open: Vec<Open>,
    /// The calls whose results are on top of the stack at this place.
    fresh: Vec<usize>,
}

/// An open block. The function itself is the outermost.
struct Open {
    /// Whether it has the results of the function.
    passes: bool,
    /// Whether branches to it lead to its head.
    is_loop: bool,
    /// The calls behind which a way leads to the end of the block.
    waiting: Vec<usize>,
}

impl<'t> Tails<'t> {
    /// Begins a function with these results.
    pub fn new(types: &'t Types, results: &'t [ValType]) -> Self {
        Tails {
            types,
            results,
            open: vec![Open { passes: true, is_loop: false, waiting: Vec::new() }],
            fresh: Vec::new(),
        }
    }

    /// At an instruction other than a call.
    pub fn step(&mut self, op: &Operator) {
        match *op {
            Operator::Nop => {}
            Operator::Block { blockty } | Operator::If { blockty } => self.enter(blockty, false),
            Operator::Loop { blockty } => self.enter(blockty, true),
            Operator::TryTable { ref try_table } => self.enter(try_table.ty, false),
            Operator::Else => self.ends(0),
            Operator::End => {
                self.ends(0);
                self.fresh = self.open.pop().map_or(Vec::new(), |open| open.waiting);
            }
            Operator::Return => self.ends(self.open.len().saturating_sub(1)),
            Operator::Br { relative_depth } => match self.open.iter().nth_back(relative_depth as usize) {
                Some(open) if !open.is_loop => self.ends(relative_depth as usize),
                _ => self.fresh.clear(),
            },
            _ => self.fresh.clear(),
        }
    }

    /// At a call with these results.
    pub fn call(&mut self, number: usize, results: &[ValType]) {
        self.fresh.clear();
        self.fresh.extend((results == self.results).then_some(number));
    }

    fn enter(&mut self, ty: BlockType, is_loop: bool) {
        self.fresh.clear();
        let passes = match ty {
            BlockType::Empty => self.results.is_empty(),
            BlockType::Type(ty) => self.results == [ty],
            BlockType::FuncType(ty) => self.types.function_type(ty).is_some_and(|ty| ty.results() == self.results),
        };
        self.open.push(Open { passes, is_loop, waiting: Vec::new() });
    }

    /// A way leads to the end of a block.
    fn ends(&mut self, block: usize) {
        let fresh = std::mem::take(&mut self.fresh);
        if let Some(open) = self.open.iter_mut().nth_back(block)
            && open.passes
        {
            open.waiting.extend(fresh);
        }
    }

    /// The calls, once the function has ended.
    pub fn found(self) -> Vec<usize> {
        self.fresh
    }
}
