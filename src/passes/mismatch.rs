//! Mends direct calls with a wrong type: to a function that is declared without its parameters, or
//! with others, in one file and defined in another.
//!
//! The linker warns ("function signature mismatch") and sends such calls to a stub of the type that
//! the caller assumes, which traps; only its name tells which function was meant. Here the stub
//! gets a call of that function, with the arguments that it would find in x86-64's registers (see
//! [`crate::registers`]).

use std::collections::HashMap;

use anyhow::Result;
use wasm_encoder::InstructionSink;
use wasmparser::{Export, ExternalKind, FuncType, ModuleArity, Operator};

use crate::code::{self, Edit};
use crate::module::{Module, id};
use crate::registers::{self, is_numeric};
use crate::types::Types;

/// The beginning of the linker's name for a stub; the function's name follows.
const STUB: &str = "signature_mismatch:";

/// Makes the stubs call the functions that were meant. A stub whose function is not among the names
/// still traps.
pub fn mend_stubs(module: &mut Module) -> Result<()> {
    let Some(section) = module.body(id::CODE) else {
        return Ok(());
    };
    let names = function_names(module);
    // A library's function has the library's name behind its own there, and is exported by its own.
    let exported = exported_functions(module)?;
    let meant: HashMap<u32, u32> = names
        .iter()
        .filter_map(|(stub, name)| {
            let wanted = name.strip_prefix(STUB)?;
            let mut named = names.iter().chain(&exported);
            named.find(|(_, name)| name == wanted).map(|(function, _)| (*stub, *function))
        })
        .collect();
    if meant.is_empty() {
        return Ok(());
    }
    let types = Types::read(module)?;
    let functions = code::functions(section)?;
    let imported = u32::try_from(types.function_count() - functions.len())?;
    let mut edits = Vec::new();
    for (stub, (_, body)) in (imported..).zip(functions) {
        let Some(&function) = meant.get(&stub) else { continue };
        let mut reader = body.get_operators_reader()?;
        let (op, at) = reader.read_with_offset()?;
        let both = type_of(&types, stub).zip(type_of(&types, function));
        if let (Operator::Unreachable, Some((have, want))) = (op, both) {
            edits.push(Edit { at, remove: reader.original_position() - at, insert: call(have, want, function)? });
        }
    }
    code::edit(module, &edits, &[])
}

/// Calls `function`, of type `want`, from a function of type `have`, and leaves that type's
/// results.
fn call(have: &FuncType, want: &FuncType, function: u32) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut sink = InstructionSink::new(&mut bytes);
    registers::pass(&mut sink, have.params(), 0, want.params())?;
    sink.call(function);
    match (want.results(), have.results()) {
        ([], [result]) => registers::zero(&mut sink, *result),
        ([_], []) => {
            sink.drop();
        }
        ([from], [to]) => registers::convert_result(&mut sink, *from, *to),
        _ => {}
    }
    // The body must not be shorter than the trap it replaces.
    sink.nop();
    Ok(bytes)
}

/// A function's type, if it can be adapted and has at most one result.
fn type_of(types: &Types, function: u32) -> Option<&FuncType> {
    let ty = types.plain_function(ModuleArity::type_index_of_function(types, function)?)?;
    (is_numeric(ty) && ty.results().len() <= 1).then_some(ty)
}

fn exported_functions(module: &Module) -> Result<Vec<(u32, String)>> {
    let exports = module.entries::<Export>(id::EXPORT)?.into_iter().map(|(_, export)| export);
    let functions = exports.filter(|export| export.kind == ExternalKind::Func);
    Ok(functions.map(|export| (export.index, export.name.to_owned())).collect())
}

fn function_names(module: &Module) -> Vec<(u32, String)> {
    let mut names = Vec::new();
    for name in module.names() {
        if let wasmparser::Name::Function(map) = name {
            names.extend(map.into_iter().map_while(Result::ok).map(|naming| (naming.index, naming.name.to_owned())));
        }
    }
    names
}
