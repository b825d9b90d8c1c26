//! The fork pass: lets a program that was forked go on in two processes. `docs/fork.md` explains
//! how.
//!
//! Wasm code cannot copy its stack, but it can leave it by returning and build it up again. Each
//! function that may have a fork below it gets pads behind its calls, which store its frame in
//! memory, and a second copy, which goes on from there. Nothing else changes: code that is not
//! being left or resumed runs as before.

mod callgraph;
mod emit;
mod first;
mod frames;
mod liveness;
pub mod runtime;
mod second;
mod shape;
mod tail;
mod values;

use std::collections::HashMap;
use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};
use wasmparser::{
    Export, FuncToValidate, FunctionBody, Imports, MemoryType, Name, Parser, Payload, TypeRef, ValidPayload, Validator,
    ValidatorResources, WasmFeatures,
};

use crate::code::{self, Edit};
use crate::module::{Module, id};
use crate::types::Types;

use callgraph::CallGraph;
use emit::Slots;
use first::First;
use frames::Frames;
use runtime::Runtime;
use second::Second;
use shape::Shape;
use values::Encoded;

/// The programs and functions that the fork pass changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fork {
    /// Programs that import `lind.fork`; in them, functions that may have a call of it below them.
    #[default]
    Auto,
    /// Every program, and functions that may have a call of any import below them: for measurements
    /// and tests.
    Always,
    /// None. `lind.fork` is ENOSYS.
    Never,
}

/// Runs the pass.
pub fn let_fork(module: &mut Module, mode: Fork) -> Result<()> {
    if mode == Fork::Never || can_fork(module)? {
        return Ok(());
    }
    let types = Types::read(module)?;
    let Some(graph) = CallGraph::find(module, &types, mode)? else {
        return Ok(());
    };
    check_memory(module)?;
    let bytes = module.finish()?;
    let names = function_names(module);
    let program = Program { types: &types, graph: &graph, names, bytes: &bytes };
    let (edits, runtime, encoded) = program.copies(module)?;
    let bodies = runtime.add_to(module, &types, &encoded, &graph)?;
    code::edit(module, &edits, &bodies)
}

/// Whether the pass has changed this module already.
pub fn can_fork(module: &Module) -> Result<bool> {
    Ok(module.entries::<Export>(id::EXPORT)?.iter().any(|(_, export)| export.name == runtime::RESUME))
}

/// Fails without memory 0, which holds the records.
fn check_memory(module: &Module) -> Result<()> {
    let defined = module.entries::<MemoryType>(id::MEMORY)?;
    ensure!(defined.first().is_some_and(|(_, ty)| !ty.memory64), "a program that forks needs a memory of its own");
    Ok(())
}

/// The number of imported functions.
pub fn imported_functions(module: &Module) -> Result<u32> {
    let mut count = 0;
    for (_, imports) in module.entries::<Imports>(id::IMPORT)? {
        for import in imports {
            count += u32::from(matches!(import?.1.ty, TypeRef::Func(_) | TypeRef::FuncExact(_)));
        }
    }
    Ok(count)
}

fn function_names(module: &Module) -> HashMap<u32, String> {
    let mut names = HashMap::new();
    for name in module.names() {
        if let Name::Function(map) = name {
            names.extend(map.into_iter().map_while(Result::ok).map(|naming| (naming.index, naming.name.to_owned())));
        }
    }
    names
}

/// The program to change.
struct Program<'p> {
    types: &'p Types,
    graph: &'p CallGraph,
    names: HashMap<u32, String>,
    bytes: &'p [u8],
}

impl<'p> Program<'p> {
    /// Makes the edits for the first copies, and the second copies.
    fn copies(&self, module: &Module) -> Result<(Vec<Edit>, Runtime, Encoded)> {
        let mut validator = Validator::new_with_features(WasmFeatures::default());
        let (mut edits, mut section, mut made) = (Vec::new(), 0, None);
        for payload in Parser::new(0).parse_all(self.bytes) {
            let payload = payload?;
            if let Payload::CodeSectionStart { range, count, .. } = &payload {
                section = contents(self.bytes, range, *count)?;
            }
            let ValidPayload::Func(function, body) = validator.payload(&payload)? else { continue };
            let (encoded, runtime) = match &mut made {
                Some(made) => made,
                None => {
                    let encoded = Encoded::new(&function, self.types.count());
                    let runtime = Runtime::new(module, self.types, &encoded, self.graph)?;
                    made.insert((encoded, runtime))
                }
            };
            self.function(function, &body, section, encoded, runtime, &mut edits)?;
        }
        let (encoded, runtime) = made.context("a program without functions")?;
        let changes = self.graph.changes.iter().map(|at| {
            let mut insert = Vec::new();
            runtime.note_change(&mut wasm_encoder::InstructionSink::new(&mut insert));
            Edit { at: *at, remove: 0, insert }
        });
        edits.extend(changes);
        // The code that a site adds behind a call comes before the code that is added for the next
        // instruction.
        edits.sort_by_key(|edit| edit.at);
        Ok((edits, runtime, encoded))
    }

    fn function(
        &self,
        function: FuncToValidate<ValidatorResources>,
        body: &FunctionBody<'p>,
        section: usize,
        encoded: &Encoded,
        runtime: &mut Runtime,
        edits: &mut Vec<Edit>,
    ) -> Result<()> {
        let index = function.index;
        let results = self.types.function_type(function.ty).context("a function without a type")?.results();
        // A call that returns a reference pins its caller.
        if !self.graph.has_sites(index) || !values::writable(&encoded.all(results)?) {
            if self.graph.may_fork(index) {
                edits.extend(self.replaced(body, section, runtime)?);
            }
            return Ok(());
        }
        let mut shape = Shape::read(function, body, self.types, encoded, (self.graph, section))?;
        liveness::find(&mut shape);
        shape.number_sites();
        let mut slots = Slots::new(&shape)?;
        let (shape, graph) = (&shape, self.graph);
        let frames = &Frames::of(shape, &mut slots, |site| graph.is_tried(site.at - section));
        let first = First { shape, frames, graph, runtime, bytes: self.bytes, section, slots: slots.clone() };
        edits.extend(first.edits()?);
        if !frames.is_empty() {
            let second = Second::new(shape, frames, graph, runtime, (self.bytes, section), slots).body()?;
            let name = self.names.get(&index).cloned().unwrap_or_else(|| format!("function {index}"));
            ensure!(
                second.len() <= LARGEST && shape.locals.len() + 64 < MOST_LOCALS,
                "{name} is too large to be resumed after a fork; split it, or link with --fork=never"
            );
            runtime.add_second(&shape.results, format!("{name} (resumed)"), second)?;
        }
        Ok(())
    }

    /// The edits of a function without sites.
    fn replaced(&self, body: &FunctionBody, section: usize, runtime: &Runtime) -> Result<Vec<Edit>> {
        let (mut reader, mut edits) = (body.get_operators_reader()?, Vec::new());
        while !reader.eof() {
            let (op, at) = reader.read_with_offset()?;
            let range = at..reader.original_position();
            edits.extend(first::replaced(&op, &range, section, self.graph, runtime));
        }
        Ok(edits)
    }
}

/// The engine's limits for one function.
const LARGEST: usize = 7_654_321;
const MOST_LOCALS: usize = 50_000;

/// The offset of the contents of the code section; the parser gives the range and the number of
/// functions.
fn contents(bytes: &[u8], range: &Range<usize>, count: u32) -> Result<usize> {
    let mut reader = wasmparser::BinaryReader::new(&bytes[range.clone()], 0);
    if reader.read_var_u32()? == count {
        return Ok(range.start);
    }
    bail!("the code section is not where it should be")
}
