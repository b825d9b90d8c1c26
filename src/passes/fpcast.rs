//! The function-pointer pass: makes a call through a pointer of another type than the function's
//! reach the function.
//!
//! In C such a call is undefined, but on x86-64 it works as long as the function only uses the
//! arguments that it gets, and programs rely on that (a comparison with two arguments too few, a
//! callback whose result nobody wants, `void *f()` as a thread). In wasm it traps. The pass puts
//! functions of the same type side by side in the table ([`table`]), so that a pointer tells
//! whether it fits. A call of type T, whose functions are at `first` and behind, becomes
//!
//! ```text
//! local.set $pointer
//! block $done
//!   block $other
//!     (br_if $other (i32.ge_u (i32.sub (local.get $pointer) (i32.const first)) (i32.const count)))
//!     (call_indirect T (local.get $pointer)) (br $done)
//!   end
//!   (call $helper-for-T (local.get $pointer))
//! end
//! ```
//!
//! - The pointer fits: the call is made unchanged, after a subtraction and a comparison with
//!   constants.
//! - The function is of another type: the helper calls it with the arguments that it would find in
//!   x86-64's registers ([`registers`]). Results likewise.
//! - The table has no function at that place: the helper makes the original call, which traps.
//!
//! Unlike on x86-64, arguments beyond the registers (6 integers, 8 floats) are matched by the same
//! rule; variable arguments are in memory, so a mismatch in `...` passes their address as an
//! integer; functions with vectors or references are not adapted. The length of a helper grows with
//! the number of types in the table.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use wasm_encoder::{BlockType, Encode, InstructionSink, ValType};
use wasmparser::{FuncType, FunctionBody, Operator};

use crate::code::{self, Edit};
use crate::module::{Module, id, leb, leb_padded};
use crate::registers::{self, encoded, is_numeric};
use crate::types::Types;

use table::Group;

pub mod table;

/// Runs the pass.
pub fn adapt_calls(module: &mut Module) -> Result<()> {
    let types = Types::read(module)?;
    let Some(groups) = table::group(module, &types)? else { return Ok(()) };
    let Some(section) = module.body(id::CODE) else { return Ok(()) };
    let functions = code::functions(section)?;
    let first = types.function_count() - functions.len();
    let mut helpers = Helpers { types: &types, groups: &groups, made: BTreeMap::new(), list: Vec::new() };
    let mut edits = Vec::new();
    for (function, (_, body)) in (first..).zip(&functions) {
        edits.extend(sites(u32::try_from(function)?, body, &mut helpers)?);
    }
    let made = helpers.list;
    let bodies: Vec<Vec<u8>> = made.iter().map(|helper| helper.body.clone()).collect();
    code::edit(module, &edits, &bodies)?;
    if made.is_empty() {
        return Ok(());
    }
    module.append(id::TYPE, &made.iter().flat_map(|helper| helper.types.clone()).collect::<Vec<_>>())?;
    module.append(id::FUNCTION, &made.iter().map(|helper| number(helper.place.helper_type)).collect::<Vec<_>>())?;
    module.name_functions(&made.into_iter().map(|helper| (helper.place.helper, helper.name)).collect::<Vec<_>>())
}

/// The edits of one function; the first ones give it a local for pointers.
fn sites(function: u32, body: &FunctionBody, helpers: &mut Helpers) -> Result<Vec<Edit>> {
    let mut locals = body.get_locals_reader()?;
    let groups = locals.get_count();
    let mut count = helpers.types.params(function)?;
    for _ in 0..groups {
        count += locals.read()?.0;
    }
    let mut reader = body.get_operators_reader()?;
    let start = reader.original_position();
    let mut edits = Vec::new();
    while !reader.eof() {
        let (op, at) = reader.read_with_offset()?;
        let (ty, tail) = match op {
            Operator::CallIndirect { type_index, table_index: 0 } => (type_index, false),
            Operator::ReturnCallIndirect { type_index, table_index: 0 } => (type_index, true),
            _ => continue,
        };
        if let Some(adapted) = helpers.of(ty)? {
            edits.push(Edit { at, remove: reader.original_position() - at, insert: adapted.call(ty, count, tail) });
        }
    }
    if !edits.is_empty() {
        let at = body.range().start;
        let mut before = Vec::new();
        leb(&mut before, groups);
        let mut insert = Vec::new();
        leb_padded(&mut insert, groups + 1, before.len());
        let mut local = vec![1];
        ValType::I32.encode(&mut local);
        let header = [Edit { at, remove: before.len(), insert }, Edit { at: start, remove: 0, insert: local }];
        edits.splice(0..0, header);
    }
    Ok(edits)
}

fn number(value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    leb(&mut bytes, value);
    bytes
}

/// The parts that calls of one type need.
#[derive(Clone, Copy)]
struct Adapted {
    /// The place of the first function that fits, and their number.
    first: u32,
    count: u32,
    /// The helper, which calls functions that do not fit.
    helper: u32,
    /// The type of the helper: the arguments and the pointer, the results.
    helper_type: u32,
    /// The type of a block that takes the arguments and returns them.
    arguments: u32,
}

impl Adapted {
    /// A call of a type, with `pointer` as a local for the pointer.
    fn call(&self, ty: u32, pointer: u32, tail: bool) -> Vec<u8> {
        let mut code = Vec::new();
        let mut sink = InstructionSink::new(&mut code);
        sink.local_set(pointer);
        if !tail {
            sink.block(BlockType::FunctionType(ty));
        }
        sink.block(BlockType::FunctionType(self.arguments));
        sink.local_get(pointer).i32_const(self.first.cast_signed()).i32_sub();
        sink.i32_const(self.count.cast_signed()).i32_ge_u().br_if(0).local_get(pointer);
        if tail {
            sink.return_call_indirect(0, ty).end().local_get(pointer).return_call(self.helper);
        } else {
            sink.call_indirect(0, ty).br(1).end().local_get(pointer).call(self.helper).end();
        }
        code
    }
}

/// A new function, with its types.
struct Helper {
    place: Adapted,
    /// Encoded, in the order of their indices.
    types: [Vec<u8>; 2],
    body: Vec<u8>,
    name: String,
}

struct Helpers<'m> {
    types: &'m Types,
    groups: &'m [Group],
    /// The parts by type of the call; None if it needs none.
    made: BTreeMap<u32, Option<Adapted>>,
    list: Vec<Helper>,
}

impl Helpers<'_> {
    /// The parts that calls of this type need, if there are functions of others.
    fn of(&mut self, type_index: u32) -> Result<Option<Adapted>> {
        if let Some(made) = self.made.get(&type_index) {
            return Ok(*made);
        }
        let made = match self.types.plain_function(type_index).filter(|ty| is_numeric(ty)) {
            Some(ty) => self.make(ty, type_index)?,
            None => None,
        };
        self.made.insert(type_index, made);
        Ok(made)
    }

    fn make(&mut self, ty: &FuncType, type_index: u32) -> Result<Option<Adapted>> {
        let (mut others, mut own) = (Vec::new(), (0, 0));
        for group in self.groups {
            match &group.ty {
                Some(other) if other == ty => own = (group.start, group.count),
                Some(other) if is_numeric(other) => others.push((other, group)),
                _ => {}
            }
        }
        if others.is_empty() {
            return Ok(None);
        }
        let (first, count) = own;
        let helper = u32::try_from(self.types.function_count() + self.list.len()).context("too many functions")?;
        let helper_type = u32::try_from(self.types.count() + 2 * self.list.len()).context("too many types")?;
        let place = Adapted { first, count, helper, helper_type, arguments: helper_type + 1 };
        let body = Body::new(ty, type_index).build(&others)?;
        let name = format!("__lind_call_indirect {ty}");
        self.list.push(Helper { place, types: types_of(ty), body, name });
        Ok(Some(place))
    }
}

/// The types in [`Adapted`], in order.
fn types_of(ty: &FuncType) -> [Vec<u8>; 2] {
    let params: Vec<ValType> = ty.params().iter().map(|ty| encoded(*ty)).collect();
    let results: Vec<ValType> = ty.results().iter().map(|ty| encoded(*ty)).collect();
    let all: Vec<ValType> = params.iter().copied().chain([ValType::I32]).collect();
    [(&all, &results), (&params, &params)].map(|(takes, gives)| {
        const FUNC: u8 = 0x60;
        let mut bytes = vec![FUNC];
        takes.encode(&mut bytes);
        gives.encode(&mut bytes);
        bytes
    })
}

/// A helper's body in the making.
struct Body<'t> {
    ty: &'t FuncType,
    type_index: u32,
    /// The parameter with the pointer; the locals behind it hold results.
    pointer: u32,
    held: Vec<ValType>,
    code: Vec<u8>,
}

impl<'t> Body<'t> {
    /// Begins a helper for calls of type `ty`.
    fn new(ty: &'t FuncType, type_index: u32) -> Self {
        let pointer = u32::try_from(ty.params().len()).unwrap_or(u32::MAX);
        Body { ty, type_index, pointer, held: Vec::new(), code: Vec::new() }
    }

    fn build(mut self, others: &[(&FuncType, &Group)]) -> Result<Vec<u8>> {
        for (other, group) in others {
            self.adapt(other, group)?;
        }
        // The place is empty, or its function is not adapted. The `unreachable` shows the fork pass
        // that the call does not return.
        let mut sink = InstructionSink::new(&mut self.code);
        (0..=self.pointer).for_each(|param| {
            sink.local_get(param);
        });
        sink.call_indirect(0, self.type_index).unreachable().end();

        let mut bytes = Vec::new();
        leb(&mut bytes, u32::try_from(self.held.len())?);
        for local in self.held {
            leb(&mut bytes, 1);
            local.encode(&mut bytes);
        }
        bytes.extend_from_slice(&self.code);
        Ok(bytes)
    }

    /// Calls the function and returns, if it is of this other type.
    fn adapt(&mut self, other: &FuncType, group: &Group) -> Result<()> {
        let mut sink = InstructionSink::new(&mut self.code);
        sink.block(BlockType::Empty);
        sink.local_get(self.pointer).i32_const(group.start.cast_signed()).i32_sub();
        sink.i32_const(group.count.cast_signed()).i32_ge_u().br_if(0);
        registers::pass(&mut sink, self.ty.params(), 0, other.params())?;
        sink.local_get(self.pointer).call_indirect(0, group.index);
        let held = self.pointer + 1 + u32::try_from(self.held.len())?;
        self.held.extend(other.results().iter().map(|ty| encoded(*ty)));
        for local in (held..).take(other.results().len()).collect::<Vec<_>>().into_iter().rev() {
            sink.local_set(local);
        }
        registers::pass(&mut sink, other.results(), held, self.ty.results())?;
        sink.return_().end();
        Ok(())
    }
}
