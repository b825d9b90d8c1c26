//! Takes a module apart into its sections.

use anyhow::{Context, Result, bail, ensure};
use wasmparser::{
    CompositeInnerType, ConstExpr, Data, DataKind, Element, Export, ExternalKind, FuncType, FunctionBody, Global,
    Import, Imports, NameSectionReader, Operator, Parser, Payload, Table, TagType, TypeRef,
};

/// The sections of a module, in their order in it.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub types: Vec<FuncType>,
    pub imports: Vec<Import<'a>>,
    pub functions: Vec<u32>,
    pub tables: Vec<Table<'a>>,
    pub memory: Option<wasmparser::MemoryType>,
    pub tags: Vec<TagType>,
    pub globals: Vec<Global<'a>>,
    pub exports: Vec<Export<'a>>,
    pub start: Option<u32>,
    pub elements: Vec<Element<'a>>,
    pub data: Vec<Data<'a>>,
    pub bodies: Vec<FunctionBody<'a>>,
    pub names: Option<NameSectionReader<'a>>,
}

impl<'a> Parts<'a> {
    /// Takes a valid module apart.
    ///
    /// # Errors
    /// The module uses something that a module of WASI may not use.
    pub fn of(bytes: &'a [u8]) -> Result<Parts<'a>> {
        let mut parts = Parts::default();
        for payload in Parser::new(0).parse_all(bytes) {
            parts.section(payload?)?;
        }
        Ok(parts)
    }

    fn section(&mut self, payload: Payload<'a>) -> Result<()> {
        match payload {
            Payload::TypeSection(reader) => {
                for group in reader {
                    for ty in group?.into_types() {
                        match ty.composite_type.inner {
                            CompositeInnerType::Func(ty) => self.types.push(ty),
                            _ => bail!("types of the garbage collection proposal are not supported"),
                        }
                    }
                }
            }
            Payload::ImportSection(reader) => {
                for imports in reader {
                    match imports? {
                        Imports::Single(_, import) => self.imports.push(import),
                        _ => bail!("the import section is in the compact form, which is not supported"),
                    }
                }
            }
            Payload::FunctionSection(reader) => self.functions = reader.into_iter().collect::<Result<_, _>>()?,
            Payload::TableSection(reader) => self.tables = reader.into_iter().collect::<Result<_, _>>()?,
            Payload::MemorySection(reader) => {
                ensure!(reader.count() <= 1, "the module has {} memories; one is expected", reader.count());
                self.memory = reader.into_iter().next().transpose()?;
            }
            Payload::TagSection(reader) => self.tags = reader.into_iter().collect::<Result<_, _>>()?,
            Payload::GlobalSection(reader) => self.globals = reader.into_iter().collect::<Result<_, _>>()?,
            Payload::ExportSection(reader) => self.exports = reader.into_iter().collect::<Result<_, _>>()?,
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(reader) => self.elements = reader.into_iter().collect::<Result<_, _>>()?,
            Payload::DataSection(reader) => self.data = reader.into_iter().collect::<Result<_, _>>()?,
            Payload::CodeSectionEntry(body) => self.bodies.push(body),
            Payload::CustomSection(section) => {
                if let wasmparser::KnownCustom::Name(names) = section.as_known() {
                    self.names = Some(names);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The number of imported functions.
    pub fn imported(&self) -> Result<u32> {
        let functions = self.imports.iter().filter(|import| matches!(import.ty, TypeRef::Func(_)));
        Ok(u32::try_from(functions.count())?)
    }

    /// The function that is exported under a name.
    pub fn exported(&self, name: &str) -> Option<u32> {
        let named = self.exports.iter().find(|export| export.name == name && export.kind == ExternalKind::Func);
        named.map(|export| export.index)
    }

    /// The type of a function of the module's own.
    pub fn type_of(&self, function: u32) -> Result<&FuncType> {
        let own = function.checked_sub(self.imported()?).context("an import is exported")?;
        let ty = self.functions.get(usize::try_from(own)?).context("no such function")?;
        self.ty(*ty)
    }

    /// A type by its number.
    pub fn ty(&self, index: u32) -> Result<&FuncType> {
        self.types.get(usize::try_from(index)?).context("no such type")
    }

    /// The place of an active segment of data: a number, or the number of a global. None for a
    /// passive one.
    pub fn place(data: &Data<'a>) -> Result<Option<Place>> {
        let DataKind::Active { memory_index, offset_expr } = &data.kind else { return Ok(None) };
        ensure!(*memory_index == 0, "data of a second memory");
        constant(offset_expr).map(Some)
    }
}

/// A constant expression of one instruction.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Number(i32),
    Global(u32),
}

fn constant(expression: &ConstExpr<'_>) -> Result<Place> {
    let mut operators = expression.get_operators_reader();
    let place = match operators.read()? {
        Operator::I32Const { value } => Place::Number(value),
        Operator::GlobalGet { global_index } => Place::Global(global_index),
        _ => bail!("data at a place that is computed are not supported"),
    };
    ensure!(matches!(operators.read()?, Operator::End), "data at a place that is computed are not supported");
    Ok(place)
}
