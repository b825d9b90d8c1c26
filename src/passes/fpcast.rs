//! The function-pointer pass: a call through a pointer of another type than the function's reaches the function.
//!
//! In C such a call is undefined, but on x86-64 it works as long as the function only uses what it is given,
//! and programs rely on that (a comparison with two arguments too few, a callback whose result nobody
//! wants, `void *f()` as a thread). In wasm it traps. Each indirect call, of a type T, of a module that puts functions of
//! other types in its tables becomes
//!
//! ```text
//! table.get
//! block $done
//!   block $other
//!     block $null
//!       (br_on_null $null) (br_on_cast_fail $other (ref T))
//!       (call_ref T) (br $done)
//!     end
//!     ref.null func
//!   end
//!   call the helper for T
//! end
//! ```
//!
//! - The function is of type T: it is called. That is what `call_indirect` does as well, look at the type and go on, but for
//!   one more look for null, which `call_indirect` leaves to a fault.
//! - It is of another type: the helper calls it with the arguments that it would find in x86-64's registers.
//!   Integers and floats are counted apart; surplus ones are dropped, missing ones are 0; a 32-bit integer
//!   is extended with zeros, a 64-bit one cut; a float keeps its low bits. Results likewise.
//! - The entry is empty or out of bounds: it traps.
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
use crate::module::{Module, id, leb};
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
            let (ty, table, tail) = match op {
                Operator::CallIndirect { type_index, table_index } => (type_index, table_index, false),
                Operator::ReturnCallIndirect { type_index, table_index } => (type_index, table_index, true),
                _ => continue,
            };
            let wanted = tables.contains(&table).then(|| helpers.of(ty)).transpose()?.flatten();
            if let Some(helper) = wanted {
                let remove = reader.original_position() - at;
                edits.push(Edit { at, remove, insert: helper.call(ty, table, tail) });
            }
        }
    }
    let made = helpers.list;
    if made.is_empty() {
        return Ok(());
    }
    let bodies: Vec<Vec<u8>> = made.iter().map(|helper| helper.body.clone()).collect();
    code::edit(module, &edits, &bodies)?;
    module.append(id::TYPE, &made.iter().flat_map(|helper| helper.types.clone()).collect::<Vec<_>>())?;
    module.append(id::FUNCTION, &made.iter().map(|helper| number(helper.place.helper_type)).collect::<Vec<_>>())?;
    module.name_functions(&made.into_iter().map(|helper| (helper.place.helper, helper.name)).collect::<Vec<_>>())
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

/// What calls of one type need: the function that adapts, and types of blocks.
#[derive(Clone, Copy)]
struct Adapted {
    helper: u32,
    /// From the arguments and the function to the results; also of the helper.
    helper_type: u32,
    /// From the arguments and the function to the same.
    other: u32,
    /// From the arguments and the function to the arguments.
    null: u32,
}

impl Adapted {
    /// A call of a type through a table.
    fn call(&self, ty: u32, table: u32, tail: bool) -> Vec<u8> {
        let mut code = Vec::new();
        let mut sink = InstructionSink::new(&mut code);
        sink.table_get(table);
        if !tail {
            sink.block(BlockType::FunctionType(self.helper_type));
        }
        sink.block(BlockType::FunctionType(self.other)).block(BlockType::FunctionType(self.null));
        sink.br_on_null(0).br_on_cast_fail(1, RefType { nullable: false, ..FUNCREF }, exactly(ty));
        if tail {
            sink.return_call_ref(ty);
        } else {
            sink.call_ref(ty).br(2);
        }
        sink.end().ref_null(HeapType::FUNC).end();
        if tail {
            sink.return_call(self.helper);
        } else {
            sink.call(self.helper).end();
        }
        code
    }
}

/// A new function, and types.
struct Helper {
    place: Adapted,
    /// Encoded, in the order of their indices.
    types: [Vec<u8>; 3],
    body: Vec<u8>,
    name: String,
}

struct Helpers<'m> {
    types: &'m Types,
    targets: &'m Targets,
    /// By type of the call; None where it needs none.
    made: BTreeMap<u32, Option<Adapted>>,
    list: Vec<Helper>,
}

impl Helpers<'_> {
    /// What calls of this type need, if there may be functions of others.
    fn of(&mut self, type_index: u32) -> Result<Option<Adapted>> {
        if let Some(made) = self.made.get(&type_index) {
            return Ok(*made);
        }
        let ty = self.types.plain_function(type_index).filter(|ty| is_numeric(ty));
        let others: Vec<_> = self.targets.0.iter().filter(|(other, _)| Some(other) != ty).collect();
        let made = match ty {
            Some(ty) if !others.is_empty() => {
                let helper =
                    u32::try_from(self.types.function_count() + self.list.len()).context("too many functions")?;
                let first = u32::try_from(self.types.count() + 3 * self.list.len()).context("too many types")?;
                let place = Adapted { helper, helper_type: first, other: first + 1, null: first + 2 };
                self.list.push(Helper {
                    place,
                    types: block_types(ty),
                    body: Body::new(ty).build(type_index, &others)?,
                    name: format!("__lind_call_indirect {ty}"),
                });
                Some(place)
            }
            _ => None,
        };
        self.made.insert(type_index, made);
        Ok(made)
    }
}

/// The types in [`Adapted`], in order.
fn block_types(ty: &FuncType) -> [Vec<u8>; 3] {
    let params: Vec<ValType> = ty.params().iter().map(|ty| encoded(*ty)).collect();
    let results: Vec<ValType> = ty.results().iter().map(|ty| encoded(*ty)).collect();
    let all: Vec<ValType> = params.iter().copied().chain([ValType::Ref(FUNCREF)]).collect();
    [&results, &all, &params].map(|gives| {
        const FUNC: u8 = 0x60;
        let mut bytes = vec![FUNC];
        all.encode(&mut bytes);
        gives.encode(&mut bytes);
        bytes
    })
}

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
    /// The parameter with the function; behind it results that are held.
    function: u32,
    held: Vec<ValType>,
    code: Vec<u8>,
}

impl<'t> Body<'t> {
    /// Of a helper for calls of type `ty`.
    pub fn new(ty: &'t FuncType) -> Self {
        let function = u32::try_from(ty.params().len()).unwrap_or(u32::MAX);
        Body { ty, function, held: Vec::new(), code: Vec::new() }
    }

    /// What was put together so far.
    pub fn into_code(self) -> Vec<u8> {
        self.code
    }

    /// For more instructions.
    pub fn sink(&mut self) -> InstructionSink<'_> {
        InstructionSink::new(&mut self.code)
    }

    fn build(mut self, type_index: u32, others: &[&(FuncType, u32)]) -> Result<Vec<u8>> {
        for (other, index) in others {
            self.adapt(other, *index)?;
        }
        // Null, or of a type that is not adapted: the engine knows these two traps.
        let function = self.function;
        self.arguments();
        self.sink().local_get(function).ref_as_non_null();
        self.sink().ref_cast_non_null(HeapType::Concrete(type_index)).return_call_ref(type_index).end();

        let mut bytes = Vec::new();
        leb(&mut bytes, u32::try_from(self.held.len())?);
        for local in self.held {
            leb(&mut bytes, 1);
            local.encode(&mut bytes);
        }
        bytes.extend_from_slice(&self.code);
        Ok(bytes)
    }

    /// The arguments as they came.
    fn arguments(&mut self) {
        for param in 0..self.function {
            self.sink().local_get(param);
        }
    }

    /// Calls the function and returns, if it is of this other type.
    fn adapt(&mut self, other: &FuncType, index: u32) -> Result<()> {
        let function = self.function;
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
