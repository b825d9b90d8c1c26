//! Checks a module once, before it is compiled: the shape that it must have to run in a cage.
//!
//! The compiler validates the module itself; this checks the shape the engine relies on, and adds
//! the landing pad (see `signal::context`). The facts that are found here are stored with the
//! compiled code.

use std::collections::HashSet;

use crate::code::jump_table::{self, Jumps};
use crate::code::trap_table::Traps;
use anyhow::{Context, Result, bail, ensure};

use wasmparser::{
    CompositeInnerType, DataKind, ExternalKind, FuncType, GlobalType, Operator, Parser, Payload, TypeRef, ValType,
};

use crate::code::data_image::Layout;
use crate::code::engines::PAGES;
use crate::code::filter_verifier;
use crate::code::manifest::{self, Manifest};

/// The export that the landing pad has in every compiled module.
pub const LANDING: &str = "__lind_landing";

/// The way in which a program that handles calls receives them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// The program handles no calls.
    None,
    /// `__lind_handle(entry, call)`.
    Handle,
    /// `pass_fptr_to_wt(entry, grate, 6 x (value, cage))`.
    PassFptr,
}

/// The facts that the engine knows about a module besides its code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The address where the heap begins: `__heap_base`.
    pub heap_base: u32,
    /// The way in which it receives calls.
    pub entry: Entry,
    /// The range of the functions in the machine code (trampolines follow), and the place of the
    /// landing pad. All 0 until the module has been compiled.
    pub places: Places,
    /// The calls that it declares to handle.
    pub manifest: Manifest,
    /// The instructions that do nothing but trap, and their signals; none until the module has been
    /// compiled.
    pub traps: Traps,
    /// The functions that call setjmp; none until the module has been compiled.
    pub jumps: Jumps,
    /// The addresses of its data; nothing until the module has been compiled.
    pub initial: Layout,
}

/// Offsets in a module's machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Places {
    /// The start of the first function.
    pub start: u32,
    /// The end of the last function.
    pub end: u32,
    /// The `ud2` of the landing pad.
    pub landing: u32,
}

/// The heap's address in modules that do not export one: one page of 64 KiB after the unmapped one.
const DEFAULT_HEAP_BASE: u32 = 2 << 16;

/// Checks a module. Returns it with the landing pad added, the facts about it, and the functions
/// that call setjmp.
///
/// # Errors
/// The fault of the module, and what to do about it.
pub fn check(wasm: &[u8]) -> Result<(Vec<u8>, Facts, HashSet<u32>)> {
    let module = Shape::read(wasm)?;
    module.check_memory()?;
    let facts = module.check_exports()?;
    module.check_filter(wasm)?;
    let function = |name: &str| {
        let named = module.exports.iter().find(|(export, kind, _)| export == name && *kind == ExternalKind::Func);
        named.map(|(.., index)| *index)
    };
    let jumping = jump_table::find(wasm, &module.bodies, module.imported_functions, function)?;
    Ok((module.with_landing(wasm)?, facts, jumping))
}

/// The parts of a module that matter here.
#[derive(Default)]
struct Shape {
    types: Vec<Option<FuncType>>,
    imported_functions: u32,
    functions: Vec<u32>,
    memories: Vec<wasmparser::MemoryType>,
    globals: Vec<(GlobalType, Option<i32>)>,
    exports: Vec<(String, ExternalKind, u32)>,
    manifest: Option<Manifest>,
    /// The ranges of the functions' bodies.
    bodies: Vec<std::ops::Range<usize>>,
    /// (id, range of the whole section, range of its contents)
    sections: Vec<(u8, std::ops::Range<usize>)>,
}

impl Shape {
    fn read(wasm: &[u8]) -> Result<Shape> {
        let mut shape = Shape::default();
        for payload in Parser::new(0).parse_all(wasm) {
            let payload = payload.context("not a valid WebAssembly module")?;
            if let Some((id, range)) = payload.as_section() {
                shape.sections.push((id, range));
            }
            shape.section(payload)?;
        }
        Ok(shape)
    }

    fn section(&mut self, payload: Payload<'_>) -> Result<()> {
        match payload {
            Payload::Version { encoding: wasmparser::Encoding::Component, .. } => {
                bail!("this is a component, not a module; build with lind_compile")
            }
            Payload::TypeSection(reader) => {
                for group in reader {
                    for ty in group?.into_types() {
                        ensure!(!ty.composite_type.shared, "shared types are not supported");
                        self.types.push(match ty.composite_type.inner {
                            CompositeInnerType::Func(ty) => Some(ty),
                            _ => bail!("types of the garbage collection proposal are not supported"),
                        });
                    }
                }
            }
            Payload::ImportSection(reader) => {
                for import in reader.into_imports() {
                    let import = import?;
                    self.check_import(import.module, import.name, import.ty)?;
                }
            }
            Payload::FunctionSection(reader) => self.functions = reader.into_iter().collect::<Result<_, _>>()?,
            Payload::MemorySection(reader) => self.memories = reader.into_iter().collect::<Result<_, _>>()?,
            Payload::GlobalSection(reader) => {
                for global in reader {
                    let global = global?;
                    let mut operators = global.init_expr.get_operators_reader();
                    let value = match operators.read()? {
                        Operator::I32Const { value } => Some(value),
                        _ => None,
                    };
                    self.globals.push((global.ty, value));
                }
            }
            Payload::ExportSection(reader) => {
                for export in reader {
                    let export = export?;
                    self.exports.push((export.name.to_owned(), export.kind, export.index));
                }
            }
            Payload::DataSection(reader) => {
                for (number, data) in reader.into_iter().enumerate() {
                    if !matches!(data?.kind, DataKind::Passive) {
                        bail!(
                            "data segment {number} is active: it would overwrite live data when a second thread starts; \
                             link with --shared-memory and run lind-passes (lind_compile does)"
                        );
                    }
                }
            }
            Payload::CodeSectionEntry(body) => self.bodies.push(body.range()),
            Payload::CustomSection(section) if section.name() == manifest::SECTION => {
                ensure!(self.manifest.is_none(), "the module has two manifests");
                self.manifest = Some(Manifest::parse(section.data())?);
            }
            _ => {}
        }
        Ok(())
    }

    fn check_import(&mut self, module: &str, name: &str, ty: TypeRef) -> Result<()> {
        use ValType::{I32, I64};
        let mut call = vec![I32, I64];
        call.extend([I64; 12]);
        let expected: (&[ValType], &[ValType]) = match (module, name) {
            ("lind", "syscall") => (&[I32, I64, I64, I64, I64, I64, I64], &[I64]),
            ("lind", "call") => (&call, &[I64]),
            ("lind", "fork") => (&[], &[I32]),
            _ => bail!(
                "unknown import {module}.{name}: cages import lind.syscall, lind.call and lind.fork only; \
                 was the program linked against another libc?"
            ),
        };
        let TypeRef::Func(index) = ty else { bail!("import {module}.{name} must be a function") };
        let ty = self.function_type(index).with_context(|| format!("import {module}.{name}"))?;
        ensure!(
            (ty.params(), ty.results()) == expected,
            "import {module}.{name} has type {ty}, expected {}",
            FuncType::new(expected.0.iter().copied(), expected.1.iter().copied()),
        );
        self.imported_functions += 1;
        Ok(())
    }

    fn function_type(&self, index: u32) -> Result<&FuncType> {
        let ty = self.types.get(usize::try_from(index)?).and_then(Option::as_ref);
        ty.with_context(|| format!("type {index} does not exist"))
    }

    fn check_memory(&self) -> Result<()> {
        let [memory] = &self.memories[..] else {
            bail!(
                "the module must define exactly one memory, and defines {}; build with lind_compile",
                self.memories.len()
            );
        };
        ensure!(!memory.shared, "the memory is shared; run lind-passes over the module (lind_compile does)");
        ensure!(!memory.memory64, "64-bit memories are not supported");
        ensure!(
            memory.initial == PAGES && memory.maximum == Some(PAGES) && memory.page_size_log2.is_none(),
            "the memory must have exactly {PAGES} pages; run lind-passes over the module (lind_compile does)"
        );
        let exported = self.exports.iter().any(|(name, kind, _)| name == "memory" && *kind == ExternalKind::Memory);
        ensure!(exported, "the module does not export its memory as \"memory\"");
        Ok(())
    }

    fn check_exports(&self) -> Result<Facts> {
        use ValType::{I32, I64};
        ensure!(self.exported("_start")?.is_some(), "the module exports no _start: it is a library, not a program");
        self.expect("_start", &[I32], &[])?;
        self.expect("__lind_handle", &[I32, I32], &[I64])?;
        self.expect("__lind_worker_init", &[I32, I32, I32], &[])?;
        self.expect("__lind_worker_exit", &[], &[])?;
        self.expect("pass_fptr_to_wt", &[I64; 14], &[I32])?;
        let entry = if self.exported("__lind_handle")?.is_some() {
            Entry::Handle
        } else if self.exported("pass_fptr_to_wt")?.is_some() {
            Entry::PassFptr
        } else {
            Entry::None
        };
        ensure!(self.exported(LANDING)?.is_none(), "the name {LANDING} is the engine's own");
        let manifest = self.manifest.clone().unwrap_or_default();
        Ok(Facts {
            heap_base: self.heap_base()?,
            entry,
            places: Places::default(),
            manifest,
            traps: Traps::default(),
            jumps: Jumps::default(),
            initial: Layout::default(),
        })
    }

    /// A filter is entered in the way of functions that only compute, so it has to be one.
    fn check_filter(&self, wasm: &[u8]) -> Result<()> {
        use ValType::{I32, I64};
        self.expect(manifest::FILTER, &[I32, I32, I64, I64, I64, I64, I64, I64], &[I64])?;
        self.expect(manifest::FILTERED, &[], &[I32])?;
        let Some((.., function)) = self.exports.iter().find(|(name, ..)| name == manifest::FILTER) else {
            return Ok(());
        };
        ensure!(
            self.exported(manifest::FILTERED)?.is_some(),
            "a filter without {} to say whose it is",
            manifest::FILTERED
        );
        let global = |at: u32| self.globals.get(usize::try_from(at).ok()?).map(|(ty, _)| ty.content_type);
        filter_verifier::check(wasm, &self.bodies, self.imported_functions, *function, global)
    }

    /// The type of an exported function.
    fn exported(&self, name: &str) -> Result<Option<&FuncType>> {
        let Some((_, kind, index)) = self.exports.iter().find(|(export, ..)| export == name) else { return Ok(None) };
        ensure!(*kind == ExternalKind::Func, "the export {name} must be a function");
        let defined = index.checked_sub(self.imported_functions).with_context(|| format!("{name} is an import"))?;
        let ty = self.functions.get(usize::try_from(defined)?).context("an export names no function")?;
        self.function_type(*ty).map(Some)
    }

    fn expect(&self, name: &str, params: &[ValType], results: &[ValType]) -> Result<()> {
        let Some(ty) = self.exported(name)? else { return Ok(()) };
        ensure!(
            ty.params() == params && ty.results() == results,
            "the export {name} has type {ty}, expected {}",
            FuncType::new(params.iter().copied(), results.iter().copied()),
        );
        Ok(())
    }

    fn heap_base(&self) -> Result<u32> {
        let export = self.exports.iter().find(|(name, kind, _)| name == "__heap_base" && *kind == ExternalKind::Global);
        let Some((.., index)) = export else { return Ok(DEFAULT_HEAP_BASE) };
        let value = self.globals.get(usize::try_from(*index)?).and_then(|(_, value)| *value);
        let base = value.context("__heap_base is not a constant")?.cast_unsigned();
        // The main stack is at the top, and something must fit in between.
        ensure!((1 << 16..0xf000_0000).contains(&base), "__heap_base is {base:#x}, outside 0x10000..0xf0000000");
        Ok(base)
    }

    /// The module with one more function, `(func (export LANDING) unreachable)`, after all others.
    fn with_landing(&self, wasm: &[u8]) -> Result<Vec<u8>> {
        const TYPE: u8 = 1;
        const FUNCTION: u8 = 3;
        const EXPORT: u8 = 7;
        const CODE: u8 = 10;
        let type_index = u32::try_from(self.types.len())?;
        let function = self.imported_functions + u32::try_from(self.functions.len())?;
        let mut export = Vec::new();
        leb(&mut export, u32::try_from(LANDING.len())?);
        export.extend(LANDING.as_bytes());
        export.push(0);
        leb(&mut export, function);
        let mut index = Vec::new();
        leb(&mut index, type_index);

        let mut out = wasm[..8].to_vec();
        for (id, contents) in &self.sections {
            let bytes = &wasm[contents.clone()];
            out.push(*id);
            match *id {
                TYPE => extended(&mut out, bytes, &[0x60, 0, 0])?,
                FUNCTION => extended(&mut out, bytes, &index)?,
                EXPORT => extended(&mut out, bytes, &export)?,
                CODE => extended(&mut out, bytes, &[3, 0, 0x00, 0x0b])?,
                _ => {
                    leb(&mut out, u32::try_from(bytes.len())?);
                    out.extend(bytes);
                }
            }
        }
        Ok(out)
    }
}

/// Appends a section whose vector has one element more.
fn extended(out: &mut Vec<u8>, contents: &[u8], element: &[u8]) -> Result<()> {
    let mut reader = wasmparser::BinaryReader::new(contents, 0);
    let count = reader.read_var_u32()?;
    let rest = &contents[reader.current_position()..];
    let mut body = Vec::with_capacity(contents.len() + element.len() + 8);
    leb(&mut body, count.checked_add(1).context("too many elements")?);
    body.extend(rest);
    body.extend(element);
    leb(out, u32::try_from(body.len())?);
    out.extend(body);
    Ok(())
}

/// Unsigned LEB128.
fn leb(out: &mut Vec<u8>, mut value: u32) {
    loop {
        let byte = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}
