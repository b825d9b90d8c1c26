//! The engine's entries into a program that forks: `__lind_resume`, wrappers of the exported
//! functions, and further exports.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use anyhow::{Context, Result, ensure};
use wasm_encoder::{BlockType, Catch, HeapType, ValType};
use wasmparser::{Export, ExternalKind, Global, ModuleArity};

use crate::module::{Module, id, leb, name_bytes};
use crate::types::Types;

use super::super::callgraph::CallGraph;
use super::super::values::{self, Encoded};
use super::{Counts, NO_VALUES, PINNED, RESUME, Runtime, function, zero};

const TOP: &str = "__lind_fork_top";

impl Runtime {
    /// Adds an entry from the engine: it calls the function, and catches the exception that drops
    /// frames.
    fn add_entry(&mut self, callee: u32, params: &[ValType], results: &[ValType], name: &str) -> Result<u32> {
        let block = self.block_type(&[], results);
        let arguments = 0..u32::try_from(params.len())?;
        // A reference to return cannot be made up, so nothing below may be unwound.
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

    /// Adds `__lind_resume`, which takes the place of the entry whose frames were left. `entries`
    /// are the lists of results of the entries.
    fn add_resume(&mut self, entries: &[Vec<ValType>]) -> Result<u32> {
        let mut ways = Vec::new();
        for results in entries.iter().filter(|results| !results.is_empty()) {
            ways.push((self.function_type(NO_VALUES, results), self.next(results)?, results.len()));
        }
        let plain = self.next(NO_VALUES)?;
        let body = function(&[], |sink| {
            sink.i32_const(1).global_set(self.staying);
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

    /// Exports the engine's entries and the globals.
    pub(super) fn add_exports(
        &mut self,
        module: &mut Module,
        types: &Types,
        encoded: &Encoded,
        graph: &CallGraph,
    ) -> Result<()> {
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

fn export_of(name: &str, kind: ExternalKind, index: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    name_bytes(&mut bytes, name);
    bytes.push(if kind == ExternalKind::Func { 0 } else { 3 });
    leb(&mut bytes, index);
    bytes
}

/// The globals that an instance made for a child needs from its parent's.
fn mutable_globals(module: &Module) -> Result<Vec<u32>> {
    let defined = module.entries::<Global>(id::GLOBAL)?;
    let first = Counts::of(module)?.globals - u32::try_from(defined.len())?;
    let wanted = |ty: &wasmparser::GlobalType| ty.mutable && !ty.shared && !ty.content_type.is_reference_type();
    Ok((first..).zip(&defined).filter(|(_, (_, global))| wanted(&global.ty)).map(|(index, _)| index).collect())
}
