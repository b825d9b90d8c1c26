//! A function as the pass sees it: its instructions, its blocks, and its sites with the operand
//! stack there.

use std::ops::Range;

use anyhow::{Context, Result};
use wasm_encoder::ValType;
use wasmparser::{BlockType, FuncToValidate, FuncValidator, FunctionBody, ModuleArity, Operator, ValidatorResources};

use crate::types::Types;

use super::callgraph::CallGraph;
use super::values::{self, Encoded};

/// An instruction.
pub struct Op<'a> {
    pub op: Operator<'a>,
    /// The range of its bytes in the file.
    pub range: Range<usize>,
    /// The number of the lowest operands that it does not touch.
    pub low: usize,
    pub place: Place,
}

/// The treatment that an instruction needs from the pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Plain,
    /// A call that may come to a fork, by its index in [`Shape::sites`].
    Site(usize),
    /// The start of a block, by its index in [`Shape::blocks`].
    Block(usize),
}

/// The operand stack before an instruction that stays in place or takes operands.
pub struct Stack {
    /// The operands that it leaves alone, of the whole function.
    pub below: Vec<ValType>,
    /// The number of them that belong to outer blocks.
    pub outer: usize,
    /// The operands that it takes, as parameters or arguments; an `if` also its condition.
    pub taken: Vec<ValType>,
}

impl Stack {
    /// The operands of the innermost block with their places: those below, and those taken.
    pub fn own(&self) -> impl DoubleEndedIterator<Item = (usize, ValType)> {
        self.own_below().chain(self.own_taken())
    }

    /// The operands below that belong to the innermost block.
    pub fn own_below(&self) -> impl DoubleEndedIterator<Item = (usize, ValType)> {
        self.below.iter().copied().enumerate().skip(self.outer)
    }

    /// The operands taken.
    pub fn own_taken(&self) -> impl DoubleEndedIterator<Item = (usize, ValType)> {
        let base = self.below.len();
        self.taken.iter().copied().enumerate().map(move |(at, ty)| (base + at, ty))
    }
}

/// A call that may come to a fork.
pub struct Site {
    /// Its offset in the file.
    pub at: usize,
    /// Its number, from 1 on; None if a frame that waits here cannot be left.
    pub number: Option<u32>,
    pub stack: Stack,
    pub results: Vec<ValType>,
    /// Whether a block around it cannot be entered a second time.
    pub closed: bool,
    /// The locals whose values are needed once the call has returned or thrown.
    pub live: Vec<u32>,
}

/// A block, loop, if, or try_table.
pub struct Block {
    pub start: usize,
    /// The instruction of its else, if it has one.
    pub otherwise: Option<usize>,
    pub end: usize,
    pub stack: Stack,
    pub results: Vec<ValType>,
    /// The numbers of the sites in it, and those before its else.
    pub sites: Range<u32>,
    pub before_else: Range<u32>,
}

/// A function, decoded.
pub struct Shape<'a> {
    /// The offset in the file of its body, and of its first instruction.
    pub start: usize,
    /// The parameters and the locals.
    pub locals: Vec<ValType>,
    pub results: Vec<ValType>,
    pub ops: Vec<Op<'a>>,
    pub blocks: Vec<Block>,
    pub sites: Vec<Site>,
}

/// A block that is open while the function is read.
struct Open {
    block: Option<usize>,
    /// Whether the code before it does not go on.
    dead: bool,
    closed: bool,
}

impl<'a> Shape<'a> {
    /// Decodes a function.
    pub fn read(
        function: FuncToValidate<ValidatorResources>,
        body: &FunctionBody<'a>,
        types: &Types,
        encoded: &Encoded,
        (graph, section): (&CallGraph, usize),
    ) -> Result<Shape<'a>> {
        let ty = types.function_type(function.ty).context("a function without a type")?;
        let mut locals = encoded.all(ty.params())?;
        let results = encoded.all(ty.results())?;
        let mut validator = function.into_validator(wasmparser::FuncValidatorAllocations::default());
        validator.read_locals(&mut body.get_binary_reader())?;
        let mut reader = body.get_locals_reader()?;
        for _ in 0..reader.get_count() {
            let (count, ty) = reader.read()?;
            let ty = encoded.one(ty)?;
            locals.extend(std::iter::repeat_n(ty, count as usize));
        }
        let shape = Shape {
            start: body.range().start,
            locals,
            results,
            ops: Vec::new(),
            blocks: Vec::new(),
            sites: Vec::new(),
        };
        let open = vec![Open { block: None, dead: false, closed: false }];
        let mut reading = Reading { shape, validator, types, encoded, open };
        let mut reader = body.get_operators_reader()?;
        while !reader.eof() {
            let (op, at) = reader.read_with_offset()?;
            let is_site = graph.is_site(at - section);
            reading.op(op, at..reader.original_position(), is_site)?;
        }
        Ok(reading.shape)
    }

    /// Numbers the sites whose frames can be left, after liveness is computed.
    pub fn number_sites(&mut self) {
        let mut next = 1..;
        for site in &mut self.sites {
            let mut live = site.live.iter().filter_map(|local| self.locals.get(*local as usize));
            let leaves = !site.closed
                && values::writable(&site.stack.below)
                && values::writable(&site.results)
                && live.all(|ty| values::size(*ty).is_some());
            site.number = if leaves { next.next() } else { None };
        }
        let (mut next, mut open) = (1, Vec::new());
        for op in &self.ops {
            match (op.place, &op.op) {
                (Place::Site(site), _) => next = self.sites[site].number.map_or(next, |number| number + 1),
                (Place::Block(block), _) => {
                    self.blocks[block].sites.start = next;
                    open.push(block);
                }
                (_, Operator::Else) => {
                    open.last()
                        .into_iter()
                        .for_each(|block| self.blocks[*block].before_else = self.blocks[*block].sites.start..next);
                }
                (_, Operator::End) => {
                    let Some(block) = open.pop().map(|block| &mut self.blocks[block]) else { continue };
                    block.sites.end = next;
                    if block.otherwise.is_none() {
                        block.before_else = block.sites.clone();
                    }
                }
                _ => {}
            }
        }
    }

    /// The sites that have numbers, in order.
    pub fn numbered(&self) -> impl DoubleEndedIterator<Item = (u32, &Site)> {
        self.sites.iter().filter_map(|site| Some((site.number?, site)))
    }
}

struct Reading<'a, 't> {
    shape: Shape<'a>,
    validator: FuncValidator<ValidatorResources>,
    types: &'t Types,
    encoded: &'t Encoded,
    open: Vec<Open>,
}

impl<'a> Reading<'a, '_> {
    fn op(&mut self, op: Operator<'a>, range: Range<usize>, is_site: bool) -> Result<()> {
        let height = self.height();
        let innermost = self.open.last().context("an instruction after the end")?;
        let frame = self.validator.get_control_frame(0).context("an instruction after the end")?;
        let (dead, base) = (innermost.dead || frame.unreachable, frame.height);
        let takes = match op.operator_arity(&self.validator) {
            Some((takes, _)) if !dead => takes as usize,
            _ => height - base,
        };
        let mut low = height.saturating_sub(takes).max(base);
        let at = self.shape.ops.len();
        let place = match op {
            Operator::Block { blockty } | Operator::Loop { blockty } | Operator::If { blockty } => {
                self.block(blockty, &op, base, dead)?
            }
            Operator::TryTable { ref try_table } => self.block(try_table.ty, &op, base, dead)?,
            Operator::Else | Operator::End => {
                low = base;
                self.close(&op, at);
                Place::Plain
            }
            _ if !dead && is_site => self.site(&op, range.start, (base, takes))?,
            _ => Place::Plain,
        };
        self.validator.op(range.start, &op)?;
        self.shape.ops.push(Op { op, range, low, place });
        Ok(())
    }

    fn height(&self) -> usize {
        self.validator.operand_stack_height() as usize
    }

    fn close(&mut self, op: &Operator, at: usize) {
        let ends = matches!(op, Operator::End);
        let block =
            if ends { self.open.pop().and_then(|open| open.block) } else { self.open.last().and_then(|o| o.block) };
        let Some(block) = block.and_then(|block| self.shape.blocks.get_mut(block)) else {
            return;
        };
        if ends {
            block.end = at;
        } else {
            block.otherwise = Some(at);
        }
    }

    fn block(&mut self, ty: BlockType, op: &Operator, outer: usize, dead: bool) -> Result<Place> {
        let (params, results) = match ty {
            BlockType::Empty => (Vec::new(), Vec::new()),
            BlockType::Type(ty) => (Vec::new(), vec![self.encoded.one(ty)?]),
            BlockType::FuncType(ty) => {
                let ty = self.types.function_type(ty).context("a block without a type")?;
                (self.encoded.all(ty.params())?, self.encoded.all(ty.results())?)
            }
        };
        let is_loop = matches!(op, Operator::Loop { .. });
        let closed = self.open.last().is_some_and(|open| open.closed)
            || is_loop && params.iter().any(|ty| !values::defaultable(*ty));
        let mut taken = params;
        let condition = usize::from(matches!(op, Operator::If { .. }));
        let height = self.height();
        let below = height.saturating_sub(taken.len() + condition);
        taken.extend(std::iter::repeat_n(ValType::I32, condition));
        let below = if dead { Vec::new() } else { self.operands(below)? };
        let stack = Stack { below, outer, taken };
        let block = self.shape.blocks.len();
        self.open.push(Open { block: Some(block), dead, closed });
        self.shape.blocks.push(Block {
            start: self.shape.ops.len(),
            otherwise: None,
            end: usize::MAX,
            stack,
            results,
            sites: 0..0,
            before_else: 0..0,
        });
        Ok(Place::Block(block))
    }

    fn site(&mut self, op: &Operator, at: usize, (outer, takes): (usize, usize)) -> Result<Place> {
        let ty = match op {
            Operator::Call { function_index } => self.types.type_index_of_function(*function_index),
            Operator::CallIndirect { type_index, .. } | Operator::CallRef { type_index } => Some(*type_index),
            _ => None,
        };
        let ty = ty.and_then(|ty| self.types.function_type(ty)).context("a call without a type")?;
        let results = self.encoded.all(ty.results())?;
        let closed = self.open.last().is_some_and(|open| open.closed);
        let all = self.operands(self.height())?;
        let (below, taken) = all.split_at(all.len() - takes);
        let stack = Stack { below: below.to_vec(), outer, taken: taken.to_vec() };
        let site = Site { at, number: None, stack, results, closed, live: Vec::new() };
        self.shape.sites.push(site);
        Ok(Place::Site(self.shape.sites.len() - 1))
    }

    /// The lowest operands of the stack.
    fn operands(&self, count: usize) -> Result<Vec<ValType>> {
        let height = self.height();
        let operand = |at: usize| {
            let ty = self.validator.get_operand_type(height - 1 - at).flatten().context("an operand without a type")?;
            self.encoded.one(ty)
        };
        (0..count).map(operand).collect()
    }
}
