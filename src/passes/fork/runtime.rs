//! What a program gets besides the copies of its functions: a tag, globals, a table, and helpers that functions share.
//!
//! A record is, from its lowest byte on: function number and site number in one i32, then the values. Records grow
//! downward from `__lind_fork_top`, so that the one who pops finds the number first.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result, ensure};
use wasm_encoder::{BlockType, Catch, Encode, HeapType, InstructionSink, ValType};
use wasmparser::{Export, ExternalKind, Global, Imports, ModuleArity, Table, TagType, TypeRef};

use crate::module::{Module, id, leb, name_bytes};
use crate::types::Types;

use super::callgraph::CallGraph;
use super::values::{self, Encoded};

/// The export by which the pass knows its own work.
pub const RESUME: &str = "__lind_resume";
const TOP: &str = "__lind_fork_top";
/// The export of the global that counts frames which cannot be left.
pub const PINNED: &str = "__lind_fork_pinned";
/// So far behind that global is the one that says whether the stack is left.
pub const LEAVING: u32 = 1;
/// What `lind.fork` returns to have the stack unwound.
const UNWIND: i32 = i32::MIN;
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

/// The helpers there are for a list of types.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Helper {
    /// Writes a record, whose number is the last parameter.
    Save,
    /// Writes values before the record.
    Push,
    /// Pops a record, returns its values.
    Load,
    /// Pops values that were pushed.
    Pull,
    /// Enters the function of the next record, which has these results.
    Next,
}

/// What is added to the module.
pub struct Runtime {
    pub tag: u32,
    pub top: u32,
    pub pinned: u32,
    /// The global that is 1 while the stack is left.
    leaving: u32,
    /// The function that leaves frames that nothing goes on with.
    pub drop_frames: u32,
    /// How many bits of a record's number are the site's.
    pub site_bits: u32,
    table: u32,
    first_type: u32,
    types: HashMap<Signature, u32>,
    new_types: Vec<Signature>,
    first_function: u32,
    functions: Vec<New>,
    helpers: BTreeMap<(Helper, Vec<ValType>), u32>,
    /// The function that asks the engine, which stands for `lind.fork`.
    pub ask: u32,
    /// The second copies by number. The first is that of `ask`.
    second: Vec<u32>,
    /// The results that functions have that are called and do not return.
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
            leaving: counts.globals + 1 + LEAVING,
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
            sink.global_get(runtime.leaving).if_(BlockType::Empty).throw(runtime.tag).end().end();
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

    /// Adds a second copy, and returns its number, which is known before it is made.
    pub fn add_second(&mut self, results: &[ValType], name: String, body: Vec<u8>) -> Result<()> {
        let index = self.add(&[], results, name, body)?;
        self.second.push(index);
        Ok(())
    }

    /// The number in the records of the function whose second copy is added next, at a site.
    pub fn record(&self, site: u32) -> Result<i32> {
        let function = u32::try_from(self.second.len())?;
        ensure!(
            self.site_bits < 32 && function.leading_zeros() >= self.site_bits,
            "too many functions and calls that may come to a fork"
        );
        Ok((function << self.site_bits | site).cast_signed())
    }

    /// `lind.fork` for the program: the first to be left, if the engine wants that. Its own record makes it a callee like others.
    fn add_ask(&mut self, graph: &CallGraph) -> Result<()> {
        // With `--fork=always` there may be none, and nothing calls this.
        let fork = graph.forks.iter().min();
        let record = self.record(0)?;
        let (save, leaving) = (self.save(NO_VALUES)?, self.leaving);
        let body = function(&[ValType::I32], |sink| {
            match fork {
                Some(fork) => sink.call(*fork),
                None => sink.i32_const(0),
            };
            sink.local_tee(0).i32_const(UNWIND).i32_eq().if_(BlockType::Empty);
            sink.i32_const(record).call(save).i32_const(1).global_set(leaving).end().local_get(0).end();
        });
        self.ask = self.add(&[], &[ValType::I32], "__lind_fork".to_owned(), body)?;
        let load = self.load(NO_VALUES)?;
        let ask = self.ask;
        let body = function(&[], |sink| {
            sink.call(load).return_call(ask).end();
        });
        self.add_second(&[ValType::I32], "__lind_fork (resumed)".to_owned(), body)
    }

    /// Writes a record with these values.
    pub fn save(&mut self, types: &[ValType]) -> Result<u32> {
        self.helper(Helper::Save, types)
    }

    /// Writes values before the record.
    pub fn push(&mut self, types: &[ValType]) -> Result<u32> {
        self.helper(Helper::Push, types)
    }

    /// Pops a record.
    pub fn load(&mut self, types: &[ValType]) -> Result<u32> {
        self.helper(Helper::Load, types)
    }

    /// Pops values that were pushed.
    pub fn pull(&mut self, types: &[ValType]) -> Result<u32> {
        self.helper(Helper::Pull, types)
    }

    /// Enters the function of the next record, which has these results.
    pub fn next(&mut self, results: &[ValType]) -> Result<u32> {
        self.helper(Helper::Next, results)
    }

    fn helper(&mut self, helper: Helper, types: &[ValType]) -> Result<u32> {
        let key = (helper, types.to_vec());
        if let Some(index) = self.helpers.get(&key) {
            return Ok(*index);
        }
        let mut params = types.to_vec();
        let letters: String = types.iter().map(|ty| values::letter(*ty)).collect();
        let (name, params, results, body) = match helper {
            Helper::Save => {
                params.push(ValType::I32);
                ("save", &params[..], NO_VALUES, self.writer(types, true)?)
            }
            Helper::Push => ("push", types, NO_VALUES, self.writer(types, false)?),
            Helper::Load => ("load", NO_VALUES, types, self.reader(types, true)?),
            Helper::Pull => ("pull", NO_VALUES, types, self.reader(types, false)?),
            Helper::Next => ("next", NO_VALUES, types, self.enter(types)),
        };
        let index = self.add(params, results, format!("__lind_{name} {letters}").trim_end().to_owned(), body)?;
        self.helpers.insert(key, index);
        Ok(index)
    }

    fn writer(&self, types: &[ValType], record: bool) -> Result<Vec<u8>> {
        let (top, number) = (self.top, u32::try_from(types.len())?);
        let place = number + u32::from(record);
        let (offsets, size) = layout(types, record)?;
        Ok(function(&[ValType::I32], |sink| {
            sink.global_get(top).i32_const(size).i32_sub().local_tee(place).global_set(top);
            if record {
                sink.local_get(place).local_get(number);
                values::store(sink, ValType::I32, 0);
            }
            for ((value, ty), offset) in (0..).zip(types).zip(offsets) {
                sink.local_get(place).local_get(value);
                values::store(sink, *ty, offset);
            }
            sink.end();
        }))
    }

    fn reader(&self, types: &[ValType], record: bool) -> Result<Vec<u8>> {
        let top = self.top;
        let (offsets, size) = layout(types, record)?;
        Ok(function(&[ValType::I32], |sink| {
            sink.global_get(top).local_tee(0).i32_const(size).i32_add().global_set(top);
            for (ty, offset) in types.iter().zip(offsets) {
                sink.local_get(0);
                values::load(sink, *ty, offset);
            }
            sink.end();
        }))
    }

    fn enter(&mut self, results: &[ValType]) -> Vec<u8> {
        let ty = self.function_type(NO_VALUES, results);
        let others: Vec<u32> = self
            .last
            .clone()
            .iter()
            .filter(|last| *last != results)
            .map(|last| self.function_type(NO_VALUES, last))
            .collect();
        function(&[], |sink| {
            // Frames between who waits for these results and one that does not return were not kept.
            for other in others {
                self.next_function(sink);
                sink.table_get(self.table).ref_test_non_null(HeapType::Concrete(other)).if_(BlockType::Empty);
                self.next_function(sink);
                sink.call_indirect(self.table, other).call(self.drop_frames).unreachable().end();
            }
            self.next_function(sink);
            sink.return_call_indirect(self.table, ty).end();
        })
    }

    /// The function number of the next record.
    fn next_function(&self, sink: &mut InstructionSink) {
        sink.global_get(self.top);
        values::load(sink, ValType::I32, 0);
        sink.i32_const(self.site_bits.cast_signed()).i32_shr_u();
    }

    /// The site number of the next record.
    pub fn next_site(&self, sink: &mut InstructionSink) {
        sink.global_get(self.top);
        values::load(sink, ValType::I32, 0);
        sink.i32_const((1i32 << self.site_bits) - 1).i32_and();
    }

    /// Behind a call: to the pad, if the callee was left.
    pub fn leave(&self, sink: &mut InstructionSink, pad: u32) {
        sink.global_get(self.leaving).br_if(pad);
    }

    /// Notes that a table or a global reference is not what a new instance would have.
    pub fn note_change(&self, sink: &mut InstructionSink) {
        sink.global_get(self.pinned).i32_const(CHANGED).i32_or().global_set(self.pinned);
    }

    /// Counts a frame that cannot be left, or that it is gone.
    pub fn pin(&self, sink: &mut InstructionSink, by: i32) {
        sink.global_get(self.pinned).i32_const(by).i32_add().global_set(self.pinned);
    }

    /// An entry from the engine: the function, and what catches the exception below it.
    fn add_entry(&mut self, callee: u32, params: &[ValType], results: &[ValType], name: &str) -> Result<u32> {
        let block = self.block_type(&[], results);
        let arguments = 0..u32::try_from(params.len())?;
        // A reference cannot be made up to be returned, so nothing may come to be unwound.
        let pinned = !values::writable(results);
        let body = function(&[], |sink| {
            sink.block(BlockType::Empty);
            if pinned {
                self.pin(sink, 1);
            }
            sink.try_table(block, [Catch::One { tag: self.tag, label: 0 }]);
            arguments.for_each(|argument| {
                sink.local_get(argument);
            });
            sink.call(callee).end();
            if pinned {
                self.pin(sink, -1);
            }
            sink.return_().end();
            if pinned {
                sink.unreachable();
            } else {
                results.iter().for_each(|ty| zero(sink, *ty));
            }
            sink.end();
        });
        self.add(params, results, format!("{name} (entry)"), body)
    }

    /// `__lind_resume`: stands for the entry whose frames were left. `entries` are the results that entries have.
    fn add_resume(&mut self, entries: &[Vec<ValType>]) -> Result<u32> {
        let mut ways = Vec::new();
        for results in entries.iter().filter(|results| !results.is_empty()) {
            ways.push((self.function_type(NO_VALUES, results), self.next(results)?, results.len()));
        }
        let plain = self.next(NO_VALUES)?;
        let body = function(&[], |sink| {
            sink.i32_const(0).global_set(self.leaving);
            sink.block(BlockType::Empty).try_table(BlockType::Empty, [Catch::One { tag: self.tag, label: 0 }]);
            for (ty, next, results) in ways {
                self.next_function(sink);
                sink.table_get(self.table).ref_test_non_null(HeapType::Concrete(ty)).if_(BlockType::Empty).call(next);
                (0..results).for_each(|_| {
                    sink.drop();
                });
                sink.return_().end();
            }
            sink.call(plain).end().end().end();
        });
        self.add(&[], &[], RESUME.to_owned(), body)
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
        let global = vec![0x7f, 1, 0x41, 0, 0x0b]; // i32, mutable, 0
        module.append(id::GLOBAL, &[global.clone(), global.clone(), global])?;
        let mut element = bytes(&[2], self.table);
        element.extend([0x41, 0, 0x0b, 0]); // from 0 on, functions
        self.second.encode(&mut element);
        module.append(id::ELEMENT, &[element])?;
        let names: Vec<(u32, String)> =
            (self.first_function..).zip(&self.functions).map(|(index, new)| (index, new.name.clone())).collect();
        module.name_functions(&names)?;
        Ok(self.functions.into_iter().map(|new| new.body).collect())
    }

    /// The engine's way in, entries, and globals.
    fn add_exports(&mut self, module: &mut Module, types: &Types, encoded: &Encoded, graph: &CallGraph) -> Result<()> {
        let body = module.body(id::EXPORT).context("the module exports nothing")?.to_vec();
        let (mut list, mut entries, mut results) = (Vec::new(), HashMap::new(), Vec::new());
        for (range, export) in crate::module::entries::<Export>(&body)? {
            ensure!(
                ![TOP, PINNED].contains(&export.name) && !export.name.starts_with("__lind_global_"),
                "the name {} is taken by the fork pass",
                export.name
            );
            let wrapped = export.kind == ExternalKind::Func && graph.may_fork(export.index);
            if !wrapped || graph.is_import(export.index) {
                list.push(body[range].to_vec());
                continue;
            }
            let entry = match entries.entry(export.index) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let ty = types.type_index_of_function(export.index).and_then(|ty| types.function_type(ty));
                    let ty = ty.context("a function without a type")?;
                    let of_entry = encoded.all(ty.results())?;
                    let entry = self.add_entry(export.index, &encoded.all(ty.params())?, &of_entry, export.name)?;
                    if values::writable(&of_entry) && !results.contains(&of_entry) {
                        results.push(of_entry);
                    }
                    *new.insert(entry)
                }
            };
            list.push(export_of(export.name, ExternalKind::Func, entry));
        }
        let resume = self.add_resume(&results)?;
        list.push(export_of(RESUME, ExternalKind::Func, resume));
        list.push(export_of(TOP, ExternalKind::Global, self.top));
        list.push(export_of(PINNED, ExternalKind::Global, self.pinned));
        for (number, global) in mutable_globals(module)?.into_iter().enumerate() {
            list.push(export_of(&format!("__lind_global_{number}"), ExternalKind::Global, global));
        }
        let mut out = Vec::with_capacity(body.len() + 64);
        leb(&mut out, u32::try_from(list.len())?);
        list.iter().for_each(|export| out.extend_from_slice(export));
        module.set(id::EXPORT, out);
        Ok(())
    }
}

/// Where values are in a record, and its size.
fn layout(types: &[ValType], record: bool) -> Result<(Vec<u64>, i32)> {
    let mut size = if record { 4 } else { 0 };
    let mut offsets = Vec::with_capacity(types.len());
    for ty in types {
        offsets.push(u64::try_from(size)?);
        size += values::size(*ty).context("a reference in a record")?;
    }
    Ok((offsets, size))
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

/// A value to return where nobody looks at it.
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

fn export_of(name: &str, kind: ExternalKind, index: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    name_bytes(&mut bytes, name);
    bytes.push(if kind == ExternalKind::Func { 0 } else { 3 });
    leb(&mut bytes, index);
    bytes
}

/// How many tables, globals and tags there are, with imported ones.
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

/// The globals that an instance made for a child needs from its parent's.
fn mutable_globals(module: &Module) -> Result<Vec<u32>> {
    let defined = module.entries::<Global>(id::GLOBAL)?;
    let first = Counts::of(module)?.globals - u32::try_from(defined.len())?;
    let wanted = |ty: &wasmparser::GlobalType| ty.mutable && !ty.shared && !ty.content_type.is_reference_type();
    Ok((first..).zip(&defined).filter(|(_, (_, global))| wanted(&global.ty)).map(|(index, _)| index).collect())
}
