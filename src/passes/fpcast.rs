//! The function-pointer pass, on request: a call through a pointer of another type than the function's
//! reaches the function.
//!
//! In C such a call is undefined, but on x86-64 it works as long as the function only uses what it is given,
//! and programs rely on that (a comparison with two arguments too few, a callback whose result nobody
//! wants). In wasm it traps. The pass sends each indirect call, of a type T, to a helper for T if the module
//! puts functions of other types in its tables:
//!
//! - the function is of type T: it is called, after one comparison of types (2 ns);
//! - it is of another type: it is called with the arguments that it would find in x86-64's registers.
//!   Integers and floats are counted apart; surplus ones are dropped, missing ones are 0; a 32-bit integer
//!   is extended with zeros, a 64-bit one cut; a float keeps its low bits. Results likewise;
//! - the entry is empty or out of bounds: the original call is made, and traps as it did.
//!
//! Not like x86-64: arguments beyond the registers (6 integers, 8 floats) are matched by the same rule;
//! variable arguments are in memory, so a mismatch in `...` passes their address as an integer; functions
//! with vectors or references are not adapted. A helper is as long as there are types in the tables.
//! Functions that reach a table from outside of the module only count if their type occurs in it.
//!
//! The result needs the function references and GC features of the engine, which exceptions need as well.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Context, Result};
use wasm_encoder::{BlockType, Encode, HeapType, InstructionSink, RefType, ValType};
use wasmparser::{ConstExpr, Element, ElementItems, FuncType, Global, Imports, Operator, Table, TableInit, TypeRef};

use crate::code::{self, Edit};
use crate::module::{Module, id, leb, leb_padded};
use crate::types::Types;

/// Runs the pass.
pub fn adapt_calls(module: &mut Module) -> Result<()> {
    let Some(section) = module.body(id::CODE) else {
        return Ok(());
    };
    let types = Types::read(module)?;
    let tables = plain_tables(module)?;
    let targets = Targets::find(module, &types)?;
    let mut helpers = Helpers { types: &types, targets: &targets, made: BTreeMap::new(), list: Vec::new() };
    let mut edits = Vec::new();
    for (_, body) in code::functions(section)? {
        let mut reader = body.get_operators_reader()?;
        while !reader.eof() {
            let (op, at) = reader.read_with_offset()?;
            let (opcode, ty, table) = match op {
                Operator::CallIndirect { type_index, table_index } => (0x10, type_index, table_index),
                Operator::ReturnCallIndirect { type_index, table_index } => (0x12, type_index, table_index),
                _ => continue,
            };
            let wanted = tables.contains(&table).then(|| helpers.of(ty, table)).transpose()?.flatten();
            if let Some(helper) = wanted {
                let remove = reader.original_position() - at;
                edits.push(Edit { at, remove, insert: call(opcode, helper, remove) });
            }
        }
    }
    let made = helpers.list;
    if made.is_empty() {
        return Ok(());
    }
    let bodies: Vec<Vec<u8>> = made.iter().map(|helper| helper.body.clone()).collect();
    code::edit(module, &edits, &bodies)?;
    module.append(id::TYPE, &made.iter().map(|helper| helper.ty.clone()).collect::<Vec<_>>())?;
    module.append(id::FUNCTION, &made.iter().map(|helper| number(helper.type_index)).collect::<Vec<_>>())?;
    module.name_functions(&made.into_iter().map(|helper| (helper.index, helper.name)).collect::<Vec<_>>())
}

/// A call in at least as many bytes as the instruction that it replaces, so that code hardly moves.
fn call(opcode: u8, function: u32, len: usize) -> Vec<u8> {
    const NOP: u8 = 1;
    const LONGEST: usize = 6;
    let mut bytes = vec![NOP; len.saturating_sub(LONGEST)];
    bytes.push(opcode);
    leb_padded(&mut bytes, function, len.min(LONGEST) - 1);
    bytes
}

fn number(value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    leb(&mut bytes, value);
    bytes
}

/// The tables that hold functions of any type.
fn plain_tables(module: &Module) -> Result<HashSet<u32>> {
    let mut tables = Vec::new();
    for (_, imports) in module.entries::<Imports>(id::IMPORT)? {
        for import in imports {
            if let TypeRef::Table(ty) = import?.1.ty {
                tables.push(ty);
            }
        }
    }
    tables.extend(module.entries::<Table>(id::TABLE)?.into_iter().map(|(_, table)| table.ty));
    let plain =
        |ty: &wasmparser::TableType| ty.element_type == wasmparser::RefType::FUNCREF && !ty.table64 && !ty.shared;
    Ok((0..).zip(&tables).filter(|(_, ty)| plain(ty)).map(|(index, _)| index).collect())
}

/// The types of the functions that may be in tables, each with an index for it, the commonest first.
struct Targets(Vec<(FuncType, u32)>);

impl Targets {
    fn find(module: &Module, types: &Types) -> Result<Targets> {
        let mut functions = HashSet::new();
        for (_, element) in module.entries::<Element>(id::ELEMENT)? {
            match element.items {
                ElementItems::Functions(list) => {
                    for index in list {
                        functions.insert(index?);
                    }
                }
                ElementItems::Expressions(_, list) => {
                    for expression in list {
                        referred(&expression?, &mut functions)?;
                    }
                }
            }
        }
        for (_, table) in module.entries::<Table>(id::TABLE)? {
            if let TableInit::Expr(expression) = table.init {
                referred(&expression, &mut functions)?;
            }
        }
        for (_, global) in module.entries::<Global>(id::GLOBAL)? {
            referred(&global.init_expr, &mut functions)?;
        }
        let mut found: HashMap<&FuncType, (usize, u32)> = HashMap::new();
        for function in functions {
            let Some(index) = wasmparser::ModuleArity::type_index_of_function(types, function) else {
                continue;
            };
            let Some(ty) = types.plain_function(index).filter(|ty| is_numeric(ty)) else {
                continue;
            };
            let (count, lowest) = found.entry(ty).or_insert((0, index));
            (*count, *lowest) = (*count + 1, index.min(*lowest));
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|(_, (count, index))| (std::cmp::Reverse(*count), *index));
        Ok(Targets(found.into_iter().map(|(ty, (_, index))| (ty.clone(), index)).collect()))
    }
}

/// The functions that a constant expression refers to. Code can only refer to functions that one refers to
/// or that an element segment declares.
fn referred(expression: &ConstExpr, functions: &mut HashSet<u32>) -> Result<()> {
    for op in expression.get_operators_reader() {
        if let Operator::RefFunc { function_index } = op? {
            functions.insert(function_index);
        }
    }
    Ok(())
}

/// The registers of x86-64 that a value may be passed in.
#[derive(PartialEq, Clone, Copy)]
enum Class {
    Integer,
    Float,
}

fn class(ty: wasmparser::ValType) -> Option<Class> {
    match ty {
        wasmparser::ValType::I32 | wasmparser::ValType::I64 => Some(Class::Integer),
        wasmparser::ValType::F32 | wasmparser::ValType::F64 => Some(Class::Float),
        _ => None,
    }
}

pub fn is_numeric(ty: &FuncType) -> bool {
    ty.params().iter().chain(ty.results()).all(|ty| class(*ty).is_some())
}

/// A new function.
struct Helper {
    index: u32,
    type_index: u32,
    /// Its type, encoded.
    ty: Vec<u8>,
    body: Vec<u8>,
    name: String,
}

struct Helpers<'m> {
    types: &'m Types,
    targets: &'m Targets,
    /// By type and table of the call; None where it needs none.
    made: BTreeMap<(u32, u32), Option<u32>>,
    list: Vec<Helper>,
}

impl Helpers<'_> {
    /// The function to call instead of a function of this type in this table, if there may be others.
    fn of(&mut self, type_index: u32, table: u32) -> Result<Option<u32>> {
        if let Some(made) = self.made.get(&(type_index, table)) {
            return Ok(*made);
        }
        let ty = self.types.plain_function(type_index).filter(|ty| is_numeric(ty));
        let others: Vec<_> = self.targets.0.iter().filter(|(other, _)| Some(other) != ty).collect();
        let made = match ty {
            Some(ty) if !others.is_empty() => {
                let index =
                    u32::try_from(self.types.function_count() + self.list.len()).context("too many functions")?;
                self.list.push(Helper {
                    index,
                    type_index: u32::try_from(self.types.count() + self.list.len()).context("too many types")?,
                    ty: helper_type(ty),
                    body: Body::new(ty, type_index, table).build(&others)?,
                    name: format!("__lind_call_indirect {ty}"),
                });
                Some(index)
            }
            _ => None,
        };
        self.made.insert((type_index, table), made);
        Ok(made)
    }
}

/// The type of a helper: the parameters of the call, and the place in the table.
fn helper_type(ty: &FuncType) -> Vec<u8> {
    const FUNC: u8 = 0x60;
    let params: Vec<ValType> = ty.params().iter().map(|ty| encoded(*ty)).chain([ValType::I32]).collect();
    let results: Vec<ValType> = ty.results().iter().map(|ty| encoded(*ty)).collect();
    let mut bytes = vec![FUNC];
    params.encode(&mut bytes);
    results.encode(&mut bytes);
    bytes
}

/// Of the types that are adapted; others do not come here.
fn encoded(ty: wasmparser::ValType) -> ValType {
    match ty {
        wasmparser::ValType::I64 => ValType::I64,
        wasmparser::ValType::F32 => ValType::F32,
        wasmparser::ValType::F64 => ValType::F64,
        _ => ValType::I32,
    }
}

const FUNCREF: RefType = RefType { nullable: true, heap_type: HeapType::FUNC };

/// A helper's body in the making.
pub struct Body<'t> {
    ty: &'t FuncType,
    type_index: u32,
    table: u32,
    /// The local with the place in the table; behind it the function, and results that are held.
    place: u32,
    held: Vec<ValType>,
    code: Vec<u8>,
}

impl<'t> Body<'t> {
    /// Of a helper for calls of type `ty` in `table`.
    pub fn new(ty: &'t FuncType, type_index: u32, table: u32) -> Self {
        let place = u32::try_from(ty.params().len()).unwrap_or(u32::MAX);
        Body { ty, type_index, table, place, held: Vec::new(), code: Vec::new() }
    }

    /// What was put together so far.
    pub fn into_code(self) -> Vec<u8> {
        self.code
    }

    /// For more instructions.
    pub fn sink(&mut self) -> InstructionSink<'_> {
        InstructionSink::new(&mut self.code)
    }

    fn function(&self) -> u32 {
        self.place + 1
    }

    fn build(mut self, others: &[&(FuncType, u32)]) -> Result<Vec<u8>> {
        let (place, table, function, ty) = (self.place, self.table, self.function(), self.type_index);
        self.sink().block(BlockType::Result(ValType::Ref(FUNCREF)));
        self.arguments();
        self.sink()
            .local_get(place)
            .table_get(table)
            .br_on_cast_fail(0, FUNCREF, exactly(ty))
            .return_call_ref(ty)
            .end();
        self.sink().local_set(function);
        for (other, index) in others {
            self.adapt(other, *index)?;
        }
        // Empty, or of a type that is not adapted.
        self.arguments();
        self.sink().local_get(place).call_indirect(table, ty).end();

        let locals: Vec<ValType> = [ValType::Ref(FUNCREF)].into_iter().chain(self.held).collect();
        let mut bytes = Vec::new();
        leb(&mut bytes, u32::try_from(locals.len())?);
        for local in locals {
            leb(&mut bytes, 1);
            local.encode(&mut bytes);
        }
        bytes.extend_from_slice(&self.code);
        Ok(bytes)
    }

    /// The arguments as they came.
    fn arguments(&mut self) {
        for param in 0..self.place {
            self.sink().local_get(param);
        }
    }

    /// Calls the function and returns, if it is of this other type.
    fn adapt(&mut self, other: &FuncType, index: u32) -> Result<()> {
        let function = self.function();
        self.sink().block(BlockType::Result(ValType::Ref(FUNCREF)));
        self.registers(self.ty.params(), 0, other.params())?;
        self.sink().local_get(function).br_on_cast_fail(0, FUNCREF, exactly(index)).call_ref(index);
        let held = function + 1 + u32::try_from(self.held.len())?;
        self.held.extend(other.results().iter().map(|ty| encoded(*ty)));
        for local in (held..).take(other.results().len()).collect::<Vec<_>>().into_iter().rev() {
            self.sink().local_set(local);
        }
        self.registers(other.results(), held, self.ty.results())?;
        self.sink().return_().end().drop();
        Ok(())
    }

    /// Puts values of the types `want` on the stack, from locals of the types `have` that start at `first`.
    pub fn registers(&mut self, have: &[wasmparser::ValType], first: u32, want: &[wasmparser::ValType]) -> Result<()> {
        let (mut integers, mut floats) = (0, 0);
        for wanted in want {
            let class = class(*wanted).context("a type that is not adapted")?;
            let nth = if class == Class::Integer { &mut integers } else { &mut floats };
            let of_class = (first..).zip(have).filter(|(_, ty)| self::class(**ty) == Some(class));
            let found = of_class.map(|(local, ty)| (local, encoded(*ty))).nth(*nth);
            *nth += 1;
            match found {
                Some((local, ty)) => {
                    self.sink().local_get(local);
                    self.convert(ty, encoded(*wanted));
                }
                None => self.zero(*wanted),
            }
        }
        Ok(())
    }

    /// The value as a register of the same kind would give it.
    fn convert(&mut self, from: ValType, to: ValType) {
        match (from, to) {
            (ValType::I32, ValType::I64) => self.sink().i64_extend_i32_u(),
            (ValType::I64, ValType::I32) => self.sink().i32_wrap_i64(),
            (ValType::F32, ValType::F64) => self.sink().i32_reinterpret_f32().i64_extend_i32_u().f64_reinterpret_i64(),
            (ValType::F64, ValType::F32) => self.sink().i64_reinterpret_f64().i32_wrap_i64().f32_reinterpret_i32(),
            _ => return,
        };
    }

    /// The result on the stack, as a register of the same kind would give it; 0 if it is of another kind.
    pub fn convert_result(&mut self, from: wasmparser::ValType, to: wasmparser::ValType) {
        if class(from) == class(to) {
            self.convert(encoded(from), encoded(to));
        } else {
            self.sink().drop();
            self.zero(to);
        }
    }

    /// What is missing.
    pub fn zero(&mut self, ty: wasmparser::ValType) {
        match encoded(ty) {
            ValType::I64 => self.sink().i64_const(0),
            ValType::F32 => self.sink().f32_const(0.0.into()),
            ValType::F64 => self.sink().f64_const(0.0.into()),
            _ => self.sink().i32_const(0),
        };
    }
}

/// A function of this type, not null.
fn exactly(ty: u32) -> RefType {
    RefType { nullable: false, heap_type: HeapType::Concrete(ty) }
}
