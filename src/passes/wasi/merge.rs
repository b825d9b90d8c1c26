//! Merges a program and the adapter into one module.
//!
//! The order is: the one import; the program's functions; the adapter's; three that are made here.
//! Types and globals of the adapter follow the program's in the same way. Tables, elements and data
//! come from the program alone.

use std::convert::Infallible;

use anyhow::{Context, Result, bail, ensure};
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    CodeSection, ConstExpr, DataCountSection, DataSection, ElementSection, EntityType, ExportKind, ExportSection,
    Function, FunctionSection, GlobalSection, GlobalType, ImportSection, Instruction, MemorySection, MemoryType,
    Module, NameSection, TableSection, TagSection, TypeSection, ValType,
};
use wasmparser::{FunctionBody, Operator, TypeRef};

use super::PREVIEW1;
use super::parts::{Parts, Place};

/// The size of every cage's memory, in pages.
const PAGES: u32 = 65536;

/// The import of both modules: it becomes number 0.
const SYSCALL: u32 = 0;

/// The functions that the adapter imports from the program. All but the first are made here.
const OF_PROGRAM: [&str; 4] = ["start", "load", "pages", "most"];

/// The new numbers of one module's parts.
struct Renumbered {
    types: u32,
    globals: u32,
    /// The numbers of imported functions one by one, and of the first of the module's own.
    imports: Vec<u32>,
    functions: u32,
    /// The functions that return the size of memory and that grow it.
    memory: Option<(u32, u32)>,
}

impl Reencode for Renumbered {
    type Error = Infallible;

    fn type_index(&mut self, index: u32) -> Result<u32, Error> {
        Ok(self.types + index)
    }

    fn global_index(&mut self, index: u32) -> Result<u32, Error> {
        Ok(self.globals + index)
    }

    fn function_index(&mut self, index: u32) -> Result<u32, Error> {
        let imports = u32::try_from(self.imports.len()).unwrap_or(u32::MAX);
        let imported = usize::try_from(index).ok().and_then(|at| self.imports.get(at));
        Ok(imported.copied().unwrap_or_else(|| self.functions + (index - imports)))
    }

    fn instruction<'a>(&mut self, operator: Operator<'a>) -> Result<Instruction<'a>, Error> {
        match (self.memory, &operator) {
            (Some((size, _)), Operator::MemorySize { .. }) => Ok(Instruction::Call(size)),
            (Some((_, grow)), Operator::MemoryGrow { .. }) => Ok(Instruction::Call(grow)),
            _ => utils::instruction(self, operator),
        }
    }
}

/// The places in the merged module.
struct Plan {
    /// The first numbers of the program's functions, the adapter's, and those that are made here.
    program: u32,
    adapter: u32,
    made: u32,
    /// The pages that the program has at the start, and the most that it may have.
    pages: u32,
    most: u32,
}

impl Plan {
    fn of(program: &Parts<'_>, adapter: &Parts<'_>) -> Result<Plan> {
        let memory = program.memory.context("the module has no memory of its own")?;
        ensure!(!memory.memory64, "the memory has 64-bit addresses; compile for wasm32");
        ensure!(!memory.shared, "the memory is shared: threads of WASI are not supported");
        ensure!(memory.page_size_log2.is_none_or(|log| log == 16), "the memory has pages of an unusual size");
        let limit = u64::from(PAGES);
        let pages = u32::try_from(memory.initial.min(limit))?;
        let most = u32::try_from(memory.maximum.unwrap_or(limit).min(limit))?;
        // The heap begins behind these pages, and the stack is at the other end.
        ensure!(pages < 0xf000, "{pages} pages of memory at the start, where at most 61439 are possible");
        let adapter_at = 1 + u32::try_from(program.functions.len())?;
        let made = adapter_at + u32::try_from(adapter.functions.len())?;
        Ok(Plan { program: 1, adapter: adapter_at, made, pages, most })
    }

    /// The number of an exported function of the adapter.
    fn of_adapter(&self, adapter: &Parts<'_>, name: &str) -> Result<u32> {
        let index = adapter.exported(name).with_context(|| format!("the adapter has no {name}"))?;
        Ok(self.adapter + (index - adapter.imported()?))
    }
}

/// Merges the program and the adapter.
///
/// # Errors
/// The program imports something that the adapter does not provide.
pub(super) fn merged(program: &Parts<'_>, adapter: &Parts<'_>) -> Result<Vec<u8>> {
    let plan = Plan::of(program, adapter)?;
    let types = u32::try_from(program.types.len())?;
    let globals = u32::try_from(program.globals.len())?;
    let memory = (plan.of_adapter(adapter, "memory_size")?, plan.of_adapter(adapter, "memory_grow")?);
    let imports = imports_of_program(program, adapter, &plan)?;
    let mut of_program = Renumbered { types: 0, globals: 0, imports, functions: plan.program, memory: Some(memory) };
    let start = program
        .exported("_start")
        .context("the module exports no _start: it is a library (a reactor of WASI), not a program")?;
    let plain = program.type_of(start)?;
    ensure!(
        plain.params().is_empty() && plain.results().is_empty(),
        "the export _start has type {plain}, expected [] -> []"
    );
    let imports = imports_of_adapter(adapter, &plan, of_program.function_index(start)?)?;
    let mut of_adapter = Renumbered { types, globals, imports, functions: plan.adapter, memory: None };

    let mut module = Module::new();
    module.section(&types_of(program, adapter, &mut of_program)?);
    let syscall = adapter.imports.iter().find_map(|import| match import.ty {
        TypeRef::Func(ty) if import.module == "lind" => Some(ty),
        _ => None,
    });
    let mut imported = ImportSection::new();
    imported.import("lind", "syscall", EntityType::Function(types + syscall.context("the adapter makes no calls")?));
    module.section(&imported);
    module.section(&functions_of(program, adapter)?);
    if !program.tables.is_empty() {
        let mut tables = TableSection::new();
        for table in &program.tables {
            of_program.parse_table(&mut tables, table.clone())?;
        }
        module.section(&tables);
    }
    let mut memories = MemorySection::new();
    let size = Some(u64::from(PAGES));
    memories.memory(MemoryType {
        minimum: PAGES.into(),
        maximum: size,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    module.section(&memories);
    if !program.tags.is_empty() {
        let mut tags = TagSection::new();
        for tag in &program.tags {
            tags.tag(of_program.tag_type(*tag)?);
        }
        module.section(&tags);
    }
    module.section(&globals_of(program, adapter, (&mut of_program, &mut of_adapter), &plan)?);
    module.section(&exports(&plan, program, adapter)?);
    rest(&mut module, program, adapter, (&mut of_program, &mut of_adapter), &plan)?;
    Ok(module.finish())
}

fn exports(plan: &Plan, program: &Parts<'_>, adapter: &Parts<'_>) -> Result<ExportSection> {
    let mut exports = ExportSection::new();
    exports.export("memory", ExportKind::Memory, 0);
    exports.export("_start", ExportKind::Func, plan.of_adapter(adapter, "_start")?);
    let globals = u32::try_from(program.globals.len() + adapter.globals.len())?;
    exports.export("__heap_base", ExportKind::Global, globals);
    Ok(exports)
}

/// Writes elements, code, data and names.
fn rest(
    module: &mut Module,
    program: &Parts<'_>,
    adapter: &Parts<'_>,
    (of_program, of_adapter): (&mut Renumbered, &mut Renumbered),
    plan: &Plan,
) -> Result<()> {
    if !program.elements.is_empty() {
        let mut elements = ElementSection::new();
        for element in &program.elements {
            of_program.parse_element(&mut elements, element.clone())?;
        }
        module.section(&elements);
    }
    module.section(&DataCountSection { count: u32::try_from(program.data.len())? });
    let mut code = CodeSection::new();
    for body in &program.bodies {
        code.function(&function(of_program, body)?);
    }
    for body in &adapter.bodies {
        code.function(&function(of_adapter, body)?);
    }
    code.function(&load(program, of_program)?);
    for number in [plan.pages, plan.most] {
        let mut constant = Function::new([]);
        constant.instruction(&Instruction::I32Const(number.cast_signed())).instruction(&Instruction::End);
        code.function(&constant);
    }
    module.section(&code);
    let mut data = DataSection::new();
    for segment in &program.data {
        data.passive(segment.data.iter().copied());
    }
    module.section(&data);
    if let Some(names) = &program.names {
        // A program with wrong names still has to run.
        let mut section = NameSection::new();
        if names
            .clone()
            .into_iter()
            .try_for_each(|name| of_program.parse_custom_name_subsection(&mut section, name?))
            .is_ok()
        {
            module.section(&section);
        }
    }
    Ok(())
}

fn imports_of_program(program: &Parts<'_>, adapter: &Parts<'_>, plan: &Plan) -> Result<Vec<u32>> {
    let mut functions = Vec::new();
    for import in &program.imports {
        let (from, name) = (import.module, import.name);
        let TypeRef::Func(ty) = import.ty else {
            bail!("import {from}.{name}: of WASI only functions can be imported")
        };
        ensure!(from == PREVIEW1, "import {from}.{name}: a program of WASI preview 1 imports {PREVIEW1} alone");
        let there = adapter.exported(name).filter(|_| !matches!(name, "_start" | "memory_size" | "memory_grow"));
        let there = there.with_context(|| format!("import {from}.{name}: WASI preview 1 has no such function"))?;
        let (wanted, has) = (program.ty(ty)?, adapter.type_of(there)?);
        ensure!(wanted == has, "import {from}.{name} has type {wanted}, expected {has}");
        functions.push(plan.of_adapter(adapter, name)?);
    }
    Ok(functions)
}

fn imports_of_adapter(adapter: &Parts<'_>, plan: &Plan, start: u32) -> Result<Vec<u32>> {
    let functions = adapter.imports.iter().filter(|import| matches!(import.ty, TypeRef::Func(_)));
    functions
        .map(|import| match OF_PROGRAM.iter().position(|name| import.module == "program" && *name == import.name) {
            Some(0) => Ok(start),
            Some(made) => Ok(plan.made + u32::try_from(made)? - 1),
            None if import.module == "lind" => Ok(SYSCALL),
            None => bail!("the adapter imports {}.{}", import.module, import.name),
        })
        .collect()
}

/// The program's types, the adapter's, and those of the functions that are made here.
fn types_of(program: &Parts<'_>, adapter: &Parts<'_>, any: &mut Renumbered) -> Result<TypeSection> {
    let mut types = TypeSection::new();
    for ty in program.types.iter().chain(&adapter.types) {
        types.ty().func_type(&any.func_type(ty.clone())?);
    }
    types.ty().function([], []);
    types.ty().function([], [ValType::I32]);
    Ok(types)
}

fn functions_of(program: &Parts<'_>, adapter: &Parts<'_>) -> Result<FunctionSection> {
    let mut functions = FunctionSection::new();
    let types = u32::try_from(program.types.len())?;
    program.functions.iter().for_each(|ty| _ = functions.function(*ty));
    adapter.functions.iter().for_each(|ty| _ = functions.function(types + ty));
    let made = types + u32::try_from(adapter.types.len())?;
    functions.function(made).function(made + 1).function(made + 1);
    Ok(functions)
}

fn globals_of(
    program: &Parts<'_>,
    adapter: &Parts<'_>,
    (of_program, of_adapter): (&mut Renumbered, &mut Renumbered),
    plan: &Plan,
) -> Result<GlobalSection> {
    let mut globals = GlobalSection::new();
    for global in &program.globals {
        of_program.parse_global(&mut globals, global.clone())?;
    }
    for global in &adapter.globals {
        of_adapter.parse_global(&mut globals, global.clone())?;
    }
    let heap_base = GlobalType { val_type: ValType::I32, mutable: false, shared: false };
    // The kernel's share of the memory begins with the second page, even if the program has not
    // even the first.
    globals.global(heap_base, &ConstExpr::i32_const((plan.pages.max(1) << 16).cast_signed()));
    Ok(globals)
}

fn function(renumbered: &mut Renumbered, body: &FunctionBody<'_>) -> Result<Function> {
    let mut function = renumbered.new_function_with_parsed_locals(body)?;
    let mut operators = body.get_operators_reader()?;
    while !operators.eof() {
        function.instruction(&renumbered.parse_instruction(&mut operators)?);
    }
    Ok(function)
}

/// The work of an engine before a start: active data, then the module's start function.
fn load(program: &Parts<'_>, renumbered: &mut Renumbered) -> Result<Function> {
    let mut function = Function::new([]);
    for (index, data) in program.data.iter().enumerate() {
        let (index, length) = (u32::try_from(index)?, u32::try_from(data.data.len())?);
        match Parts::place(data)? {
            None => continue,
            Some(Place::Number(at)) => function.instruction(&Instruction::I32Const(at)),
            Some(Place::Global(global)) => function.instruction(&Instruction::GlobalGet(global)),
        };
        function.instruction(&Instruction::I32Const(0));
        function.instruction(&Instruction::I32Const(length.cast_signed()));
        function.instruction(&Instruction::MemoryInit { mem: 0, data_index: index });
        function.instruction(&Instruction::DataDrop(index));
    }
    if let Some(start) = program.start {
        function.instruction(&Instruction::Call(renumbered.function_index(start)?));
    }
    function.instruction(&Instruction::End);
    Ok(function)
}
