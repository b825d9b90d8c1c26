//! Describes a file for people: `lind-boot inspect` prints it, and `explain` shows it for each
//! grate of a chain before the chain runs.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::{Context, Result};
use wasmparser::{Parser, Payload};
use wasmtime::Module;

use crate::code::cwasm::{self, Kind, Refused};
use crate::code::engines::COMPILED_FORMAT;
use crate::code::loader::Loader;
use crate::code::manifest::{FILTER, Manifest};
use crate::code::source::{not_a_program, read_source};
use crate::code::validate::{self, Entry};
use crate::code::wasi;

/// Whether compiled code may be run by this user's lind-boot of this version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seal {
    /// It may run.
    Valid,
    /// Another user compiled it, or it was changed since. Nothing in it is trusted, so nothing more
    /// is known.
    Invalid,
    /// Compiled by another version. Nothing more is known.
    OtherVersion,
}

/// The description of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inspection {
    /// Whether compiled code may run; none for a .wasm.
    pub seal: Option<Seal>,
    /// The version and target that this lind-boot compiles for.
    pub engine: &'static str,
    /// The rest, unless the seal hides it.
    pub module: Option<ModuleFacts>,
}

/// The description of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModuleFacts {
    /// How it handles calls: whether it is a program or a grate.
    pub entry: Entry,
    /// Imports, as module.name.
    pub imports: Vec<String>,
    /// The address where the heap begins: the program's data are below.
    pub heap_base: u32,
    /// The calls that it declares to handle.
    pub manifest: Manifest,
    /// Whether it has a filter.
    pub filters: bool,
}

impl ModuleFacts {
    /// Whether it can fork.
    pub fn forks(&self) -> bool {
        self.imports.iter().any(|import| import == "lind.fork")
    }
}

impl<P> Loader<P> {
    /// Describes a .wasm or a .cwasm file.
    ///
    /// # Errors
    /// The file cannot be read, is neither, or is a module that no cage can run; with the reason.
    pub fn inspect(&self, path: &Path) -> Result<Inspection> {
        use std::os::unix::fs::FileExt;
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let mut start = [0; Kind::BYTES];
        let got = file.read_at(&mut start, 0).with_context(|| format!("cannot read {}", path.display()))?;
        match Kind::of(&start[..got]) {
            Kind::Compiled => self.inspect_compiled(&file),
            Kind::Module => inspect_source(&read_source(&file)?),
            other => Err(not_a_program(&other)),
        }
        .with_context(|| path.display().to_string())
    }

    fn inspect_compiled(&self, file: &File) -> Result<Inspection> {
        let sealed = |seal, module| Ok(Inspection { seal: Some(seal), engine: COMPILED_FORMAT, module });
        match cwasm::open(self.checks(), file.as_fd()) {
            Ok(compiled) => {
                let facts = compiled.facts.clone();
                let Ok(module) = self.module(compiled) else { return sealed(Seal::OtherVersion, None) };
                let filters = module.get_export(FILTER).is_some();
                sealed(Seal::Valid, Some(facts_of(facts, imports_of(&module), filters)))
            }
            Err(Refused::Untrusted) => sealed(Seal::Invalid, None),
            Err(Refused::OtherVersion) => sealed(Seal::OtherVersion, None),
            Err(Refused::Unreadable(error)) => Err(error),
        }
    }
}

fn inspect_source(wasm: &[u8]) -> Result<Inspection> {
    let (_, facts, _) = validate::check(&wasi::adapted(wasm)?)?;
    let (mut imports, mut filters) = (Vec::new(), false);
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::ImportSection(reader) => {
                for import in reader.into_imports() {
                    let import = import?;
                    imports.push(format!("{}.{}", import.module, import.name));
                }
            }
            Payload::ExportSection(reader) => {
                for export in reader {
                    filters |= export?.name == FILTER;
                }
            }
            _ => {}
        }
    }
    Ok(Inspection { seal: None, engine: COMPILED_FORMAT, module: Some(facts_of(facts, imports, filters)) })
}

fn imports_of(module: &Module) -> Vec<String> {
    module.imports().map(|import| format!("{}.{}", import.module(), import.name())).collect()
}

fn facts_of(facts: validate::Facts, imports: Vec<String>, filters: bool) -> ModuleFacts {
    ModuleFacts { entry: facts.entry, imports, heap_base: facts.heap_base, manifest: facts.manifest, filters }
}
