//! The parts that a program gets besides the copies of its functions: a tag, globals, a table, and
//! functions that they share.

mod entries;
mod records;

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result, ensure};
use wasm_encoder::{BlockType, Encode, InstructionSink, ValType};
use wasmparser::{Global, Imports, ModuleArity, Table, TagType, TypeRef};

use crate::module::{Module, id, leb};
use crate::types::Types;

use super::callgraph::CallGraph;
use super::values::{self, Encoded};
use records::{Helper, layout};

/// The export that marks a module as changed by the pass.
pub const RESUME: &str = "__lind_resume";
/// The export of the global that counts frames which cannot be left.
pub const PINNED: &str = "__lind_fork_pinned";
/// The distance behind that global of the one that tells whether the stack is left.
pub const STAYING: u32 = 1;
/// The result of `lind.fork` that has the stack unwound.
const UNWIND: i32 = i32::MIN;
/// The last result of a function that is left, if it is an integer. Its caller compares with this,
/// which takes less than a load, and reads the global only when it finds it. Hardly any function
/// returns it otherwise: no error has this number.
pub const LEFT: i8 = -86;
/// In `__lind_fork_pinned`: the program changed a table or a reference in a global.
const CHANGED: i32 = i32::MIN;
const FUNCREF: u8 = 0x70;
const NO_VALUES: &[ValType] = &[];

/// Parameters and results.
type Signature = (Vec<ValType>, Vec<ValType>);

/// A function that is added.
struct New {
    ty: u32,
    body: Vec<u8>,
    name: String,
}

/// The parts that are added to the module.
pub struct Runtime {
    pub tag: u32,
    pub top: u32,
    pub pinned: u32,
    /// The global that is 0 while the stack is left, and else 1.
    staying: u32,
    /// The function that drops frames that are not resumed.
    pub drop_frames: u32,
    /// The number of bits of a record's number that hold the site.
    pub site_bits: u32,
    table: u32,
    first_type: u32,
    types: HashMap<Signature, u32>,
    new_types: Vec<Signature>,
    first_function: u32,
    functions: Vec<New>,
    helpers: BTreeMap<(Helper, Vec<ValType>), u32>,
    /// The function that asks the engine, in place of `lind.fork`.
    pub ask: u32,
    /// The second copies by number. The first one belongs to `ask`.
    second: Vec<u32>,
    /// The results of functions that are called and do not return.
    last: Vec<Vec<ValType>>,
}

impl Runtime {
    pub fn new(module: &Module, types: &Types, encoded: &Encoded, graph: &CallGraph) -> Result<Runtime> {
        let counts = Counts::of(module)?;
        let known = (0..u32::try_from(types.count())?).rev();
        let known = known.filter_map(|index| {
            let ty = types.plain_function(index)?;
            Some(((encoded.all(ty.params()).ok()?, encoded.all(ty.results()).ok()?), index))
        });
        let mut runtime = Runtime {
            tag: counts.tags,
            top: counts.globals,
            pinned: counts.globals + 1,
            staying: counts.globals + 1 + STAYING,
            drop_frames: 0,
            site_bits: usize::BITS - graph.most_calls.leading_zeros(),
            table: counts.tables,
            first_type: u32::try_from(types.count())?,
            types: known.collect(),
            new_types: Vec::new(),
            first_function: u32::try_from(types.function_count())?,
            functions: Vec::new(),
            helpers: BTreeMap::new(),
            ask: 0,
            second: Vec::new(),
            last: Vec::new(),
        };
        for callee in &graph.called_last {
            let ty = types.type_index_of_function(*callee).and_then(|ty| types.function_type(ty));
            let results = encoded.all(ty.context("a function without a type")?.results())?;
            if !runtime.last.contains(&results) {
                runtime.last.push(results);
            }
        }
        runtime.add_ask(graph)?;
        let body = function(&[], |sink| {
            sink.global_get(runtime.staying).i32_eqz().if_(BlockType::Empty).throw(runtime.tag).end().end();
        });
        runtime.drop_frames = runtime.add(&[], &[], "__lind_drop_frames".to_owned(), body)?;
        Ok(runtime)
    }

    /// The index of a function type.
    pub fn function_type(&mut self, params: &[ValType], results: &[ValType]) -> u32 {
        let signature = (params.to_vec(), results.to_vec());
        let next = self.first_type + u32::try_from(self.new_types.len()).unwrap_or(u32::MAX);
        *self.types.entry(signature).or_insert_with_key(|signature| {
            self.new_types.push(signature.clone());
            next
        })
    }

    /// The type of a block.
    pub fn block_type(&mut self, params: &[ValType], results: &[ValType]) -> BlockType {
        match (params, results) {
            ([], []) => BlockType::Empty,
            ([], [result]) => BlockType::Result(*result),
            _ => BlockType::FunctionType(self.function_type(params, results)),
        }
    }

    /// Adds a function.
    fn add(&mut self, params: &[ValType], results: &[ValType], name: String, body: Vec<u8>) -> Result<u32> {
        let index = self.first_function + u32::try_from(self.functions.len())?;
        let ty = self.function_type(params, results);
        self.functions.push(New { ty, body, name });
        Ok(index)
    }

    /// Adds a second copy, whose number is known before it is made.
    pub fn add_second(&mut self, results: &[ValType], name: String, body: Vec<u8>) -> Result<()> {
        let index = self.add(&[], results, name, body)?;
        self.second.push(index);
        Ok(())
    }

    /// The number for records of the function whose second copy is added next, at a site.
    pub fn record(&self, site: u32) -> Result<i32> {
        let function = u32::try_from(self.second.len())?;
        ensure!(
            self.site_bits < 32 && function.leading_zeros() >= self.site_bits,
            "too many functions and calls that may come to a fork"
        );
        Ok((function << self.site_bits | site).cast_signed())
    }

    /// Adds the function that the program calls for `lind.fork`: it is the first to be left, if the
    /// engine wants that. Its own record makes it a callee like others.
    fn add_ask(&mut self, graph: &CallGraph) -> Result<()> {
        // With `--fork=always` the import may be missing, and then nothing calls this.
        let fork = graph.forks.iter().min();
        let record = self.record(0)?;
        let (top, staying) = (self.top, self.staying);
        let size = layout(NO_VALUES, true)?.1;
        let body = function(&[ValType::I32], |sink| {
            match fork {
                Some(fork) => sink.call(*fork),
                None => sink.i32_const(0),
            };
            sink.local_tee(0).i32_const(UNWIND).i32_eq().if_(BlockType::Empty);
            sink.global_get(top).i32_const(size).i32_sub().global_set(top);
            sink.global_get(top).i32_const(record);
            values::store(sink, ValType::I32, 0);
            sink.i32_const(0).global_set(staying).i32_const(LEFT.into()).local_set(0).end().local_get(0).end();
        });
        self.ask = self.add(&[], &[ValType::I32], "__lind_fork".to_owned(), body)?;
        let load = self.load(NO_VALUES)?;
        let ask = self.ask;
        let body = function(&[], |sink| {
            sink.call(load).return_call(ask).end();
        });
        self.add_second(&[ValType::I32], "__lind_fork (resumed)".to_owned(), body)
    }

    /// Pushes whether the program goes on as usual.
    pub fn staying<'s, 'b>(&self, sink: &'s mut InstructionSink<'b>) -> &'s mut InstructionSink<'b> {
        sink.global_get(self.staying)
    }

    /// Emits the branch behind a call, within a block that leads on: it is taken unless the callee
    /// was left. `result` is a local for the last result, if that is an integer.
    pub fn go_on(&self, sink: &mut InstructionSink, result: Option<(ValType, u32)>) {
        match result {
            Some((ValType::I32, local)) => {
                sink.local_tee(local).local_get(local).i32_const(LEFT.into()).i32_ne().br_if(0)
            }
            Some((_, local)) => sink.local_tee(local).local_get(local).i64_const(LEFT.into()).i64_ne().br_if(0),
            None => sink,
        };
        self.staying(sink).br_if(0);
    }

    /// Notes that a table or a global reference differs from that of a new instance.
    pub fn note_change(&self, sink: &mut InstructionSink) {
        sink.global_get(self.pinned).i32_const(CHANGED).i32_or().global_set(self.pinned);
    }

    /// Counts a frame that cannot be left (1), or that it has ended (-1).
    pub fn pin(&self, sink: &mut InstructionSink, by: i32) {
        sink.global_get(self.pinned).i32_const(by).i32_add().global_set(self.pinned);
    }

    /// Adds everything but the code to the module, and returns the bodies of the functions.
    pub fn add_to(
        mut self,
        module: &mut Module,
        types: &Types,
        encoded: &Encoded,
        graph: &CallGraph,
    ) -> Result<Vec<Vec<u8>>> {
        self.add_exports(module, types, encoded, graph)?;
        let nothing = self.function_type(&[], &[]);
        let new_types: Vec<Vec<u8>> = self.new_types.iter().map(encode).collect();
        module.append(id::TYPE, &new_types)?;
        module.append(id::FUNCTION, &self.functions.iter().map(|new| bytes(&[], new.ty)).collect::<Vec<_>>())?;
        let count = u32::try_from(self.second.len())?;
        let mut table = bytes(&[FUNCREF, 1], count);
        leb(&mut table, count);
        module.append(id::TABLE, &[table])?;
        module.append(id::TAG, &[bytes(&[0], nothing)])?;
        let global = |value| vec![0x7f, 1, 0x41, value, 0x0b]; // i32, mutable
        module.append(id::GLOBAL, &[global(0), global(0), global(1)])?;
        let mut element = bytes(&[2], self.table);
        element.extend([0x41, 0, 0x0b, 0]); // from 0 on, functions
        self.second.encode(&mut element);
        module.append(id::ELEMENT, &[element])?;
        let names: Vec<(u32, String)> =
            (self.first_function..).zip(&self.functions).map(|(index, new)| (index, new.name.clone())).collect();
        module.name_functions(&names)?;
        Ok(self.functions.into_iter().map(|new| new.body).collect())
    }
}

/// A function's body: its locals, and the code that `emit` writes, with its end.
pub fn function(locals: &[ValType], emit: impl FnOnce(&mut InstructionSink)) -> Vec<u8> {
    let mut body = Vec::new();
    groups(locals).encode(&mut body);
    emit(&mut InstructionSink::new(&mut body));
    body
}

/// Declarations of locals: how many of a type follow each other.
pub struct Groups(pub Vec<(u32, ValType)>);

/// Declares locals of these types.
pub fn groups(locals: &[ValType]) -> Groups {
    let mut groups: Vec<(u32, ValType)> = Vec::new();
    for ty in locals {
        match groups.last_mut() {
            Some((count, last)) if last == ty => *count += 1,
            _ => groups.push((1, *ty)),
        }
    }
    Groups(groups)
}

impl Groups {
    /// The declarations as a function's body starts with them.
    pub fn encode(&self, out: &mut Vec<u8>) {
        leb(out, u32::try_from(self.0.len()).unwrap_or(u32::MAX));
        self.encode_list(out);
    }

    /// The declarations without their number.
    pub fn encode_list(&self, out: &mut Vec<u8>) {
        for (count, ty) in &self.0 {
            leb(out, *count);
            ty.encode(out);
        }
    }
}

/// The results of a function that is left.
pub fn left(sink: &mut InstructionSink, results: &[ValType]) {
    let Some((last, rest)) = results.split_last() else { return };
    rest.iter().for_each(|ty| zero(sink, *ty));
    match last {
        ValType::I32 => {
            sink.i32_const(LEFT.into());
        }
        ValType::I64 => {
            sink.i64_const(LEFT.into());
        }
        ty => zero(sink, *ty),
    }
}

/// A value to return where nobody reads it.
pub fn zero(sink: &mut InstructionSink, ty: ValType) {
    match ty {
        ValType::I32 => sink.i32_const(0),
        ValType::I64 => sink.i64_const(0),
        ValType::F32 => sink.f32_const(0.0.into()),
        ValType::F64 => sink.f64_const(0.0.into()),
        ValType::V128 => sink.v128_const(0),
        ValType::Ref(_) => sink.unreachable(),
    };
}

fn encode((params, results): &Signature) -> Vec<u8> {
    let mut bytes = vec![0x60];
    params.encode(&mut bytes);
    results.encode(&mut bytes);
    bytes
}

fn bytes(first: &[u8], number: u32) -> Vec<u8> {
    let mut bytes = first.to_vec();
    leb(&mut bytes, number);
    bytes
}

/// The numbers of tables, globals and tags, with imported ones.
#[derive(Default)]
struct Counts {
    tables: u32,
    globals: u32,
    tags: u32,
}

impl Counts {
    fn of(module: &Module) -> Result<Counts> {
        let mut counts = Counts::default();
        for (_, imports) in module.entries::<Imports>(id::IMPORT)? {
            for import in imports {
                match import?.1.ty {
                    TypeRef::Table(_) => counts.tables += 1,
                    TypeRef::Global(_) => counts.globals += 1,
                    TypeRef::Tag(_) => counts.tags += 1,
                    _ => {}
                }
            }
        }
        counts.tables += u32::try_from(module.entries::<Table>(id::TABLE)?.len())?;
        counts.globals += u32::try_from(module.entries::<Global>(id::GLOBAL)?.len())?;
        counts.tags += u32::try_from(module.entries::<TagType>(id::TAG)?.len())?;
        Ok(counts)
    }
}
