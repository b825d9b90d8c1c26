//! The table with its functions in order of their types, so that a pointer tells the type of its
//! function.
//!
//! A pointer to a function is its place in the table, and the linker assigns places in the order in
//! which it meets functions. This pass assigns new places. Pointers are constants in code and data;
//! the linker lists them if asked to (`--emit-relocs`). No other part of a program depends on a
//! place.

use std::cmp::Reverse;
use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};
use wasm_encoder::{ConstExpr, ElementSection, Elements};
use wasmparser::{
    BinaryReader, Element, ElementItems, ElementKind, FuncType, Imports, Linking, LinkingSectionReader, ModuleArity,
    Operator, RelocationEntry, RelocationType, SymbolInfo, Table, TableInit, TypeRef,
};

use crate::code;
use crate::memory::body_of;
use crate::module::{Module, id};
use crate::types::Types;

/// The linker's section that shows that the module still has relocations, which distinguish
/// addresses of code and data from numbers.
pub const LINKING: &str = "linking";

/// The functions of one type, which lie side by side in the table.
pub struct Group {
    /// The type, if equal types are interchangeable with it.
    pub ty: Option<FuncType>,
    /// An index of the type.
    pub index: u32,
    /// The place of the first function.
    pub start: u32,
    /// The number of functions.
    pub count: u32,
}

/// Sorts the functions of table 0 by type: the commonest types first. None if the linker did not
/// list the pointers, or if the contents of the table are not all known.
pub fn group(module: &mut Module, types: &Types) -> Result<Option<Vec<Group>>> {
    if module.custom(LINKING).is_none() || !is_plain(module)? || changes(module)? {
        return Ok(None);
    }
    let Some((start, functions)) = segment(module)? else { return Ok(None) };
    let (order, groups) = sort(&functions, start, types)?;
    if !order.iter().copied().eq(0..order.len()) {
        let mut moved = vec![0; order.len()];
        for (new, &old) in (start..).zip(&order) {
            moved[old] = new;
        }
        rewrite(module, start, &moved)?;
        let mut elements = ElementSection::new();
        let functions: Vec<u32> = order.iter().map(|&old| functions[old]).collect();
        let offset = ConstExpr::i32_const(start.cast_signed());
        elements.active(None, &offset, Elements::Functions(functions.into()));
        module.set(id::ELEMENT, body_of(&elements));
    }
    Ok(Some(groups))
}

/// Whether table 0 is the module's own, for functions of any type, and empty at first.
fn is_plain(module: &Module) -> Result<bool> {
    for (_, imports) in module.entries::<Imports>(id::IMPORT)? {
        for import in imports {
            if matches!(import?.1.ty, TypeRef::Table(_)) {
                return Ok(false);
            }
        }
    }
    let tables = module.entries::<Table>(id::TABLE)?;
    Ok(tables.first().is_some_and(|(_, table)| {
        let ty = &table.ty;
        let plain = ty.element_type == wasmparser::RefType::FUNCREF && !ty.table64 && !ty.shared;
        plain && matches!(table.init, TableInit::RefNull)
    }))
}

/// Whether code may write to table 0.
fn changes(module: &Module) -> Result<bool> {
    let Some(section) = module.body(id::CODE) else { return Ok(false) };
    for (_, body) in code::functions(section)? {
        for op in body.get_operators_reader()? {
            let table = match op? {
                Operator::TableSet { table }
                | Operator::TableGrow { table }
                | Operator::TableFill { table }
                | Operator::TableInit { table, .. }
                | Operator::TableCopy { dst_table: table, .. } => table,
                _ => continue,
            };
            if table == 0 {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The only segment, if it fills table 0 from a known place on: that place, and the functions.
fn segment(module: &Module) -> Result<Option<(u32, Vec<u32>)>> {
    let elements = module.entries::<Element>(id::ELEMENT)?;
    let [(_, element)] = &elements[..] else { return Ok(None) };
    let ElementKind::Active { table_index: None | Some(0), offset_expr } = &element.kind else { return Ok(None) };
    let ElementItems::Functions(list) = &element.items else { return Ok(None) };
    let Operator::I32Const { value } = offset_expr.get_operators_reader().read()? else { return Ok(None) };
    let functions = list.clone().into_iter().collect::<wasmparser::Result<Vec<u32>>>()?;
    let end = value.checked_add(i32::try_from(functions.len())?);
    ensure!(value >= 0 && end.is_some(), "the table is filled beyond its end");
    Ok(Some((value.cast_unsigned(), functions)))
}

/// The key by which functions are grouped.
#[derive(PartialEq, Eq, Hash)]
enum Kind<'t> {
    /// All types of this shape.
    Plain(&'t FuncType),
    /// This type alone.
    Other(u32),
}

/// The functions' indices in the list in their new order, and the groups that they form.
fn sort(functions: &[u32], start: u32, types: &Types) -> Result<(Vec<usize>, Vec<Group>)> {
    let mut members: HashMap<Kind, (u32, Vec<usize>)> = HashMap::new();
    for (at, &function) in functions.iter().enumerate() {
        let index = types.type_index_of_function(function).context("a function without a type")?;
        let kind = types.plain_function(index).map_or(Kind::Other(index), Kind::Plain);
        let (lowest, list) = members.entry(kind).or_insert((index, Vec::new()));
        *lowest = index.min(*lowest);
        list.push(at);
    }
    let mut members: Vec<_> = members.into_iter().collect();
    members.sort_by_key(|(_, (index, list))| (Reverse(list.len()), *index));
    let (mut order, mut groups) = (Vec::with_capacity(functions.len()), Vec::with_capacity(members.len()));
    for (kind, (index, list)) in members {
        let ty = match kind {
            Kind::Plain(ty) => Some(ty.clone()),
            Kind::Other(_) => None,
        };
        let start = start + u32::try_from(order.len())?;
        groups.push(Group { ty, index, start, count: u32::try_from(list.len())? });
        order.extend(list);
    }
    Ok((order, groups))
}

/// Changes pointers to the functions from `start` on to the places that these have `moved` to.
fn rewrite(module: &mut Module, start: u32, moved: &[u32]) -> Result<()> {
    let addressed = addressed_by_globals(module)?;
    for (section, relocations) in [(id::CODE, "reloc.CODE"), (id::DATA, "reloc.DATA")] {
        let Some(data) = module.custom(relocations) else { continue };
        let mut bytes = module.body(section).context("relocations of a section that is not there")?.to_vec();
        for entry in relocation_entries(data)? {
            let at = usize::try_from(entry.offset)?;
            match entry.ty {
                RelocationType::TableIndexSleb => patch::<5>(&mut bytes, at, from_leb, to_leb, start, moved)?,
                RelocationType::TableIndexI32 => {
                    patch::<4>(&mut bytes, at, |le| Some(u32::from_le_bytes(le)), u32::to_le_bytes, start, moved)?;
                }
                RelocationType::TableIndexRelSleb => bail!("position-independent code; compile without -fPIC"),
                RelocationType::GlobalIndexLeb if addressed.get(entry.index as usize) == Some(&true) => {
                    bail!("position-independent code; compile without -fPIC")
                }
                _ => {}
            }
        }
        module.set(section, bytes);
    }
    Ok(())
}

/// The relocations of a section. The linker counts those too that it leaves out, which are those of
/// weak functions that are not there, so its number of them says nothing.
fn relocation_entries(data: &[u8]) -> Result<Vec<RelocationEntry>> {
    let mut reader = BinaryReader::new(data, 0);
    let (_section, _count) = (reader.read_var_u32()?, reader.read_var_u32()?);
    let mut entries = Vec::new();
    while !reader.eof() {
        entries.push(reader.read()?);
    }
    Ok(entries)
}

/// Of the linker's symbols, the functions: position-independent code finds their pointers in
/// globals.
fn addressed_by_globals(module: &Module) -> Result<Vec<bool>> {
    let data = module.custom(LINKING).unwrap_or_default();
    for part in LinkingSectionReader::new(BinaryReader::new(data, 0))?.subsections() {
        if let Linking::SymbolTable(symbols) = part? {
            let symbols = symbols.into_iter().map(|symbol| Ok(matches!(symbol?, SymbolInfo::Func { .. })));
            return symbols.collect();
        }
    }
    Ok(Vec::new())
}

/// Replaces one pointer. A number outside the table, such as a null pointer, stays.
fn patch<const N: usize>(
    bytes: &mut [u8],
    at: usize,
    read: fn([u8; N]) -> Option<u32>,
    write: fn(u32) -> [u8; N],
    start: u32,
    moved: &[u32],
) -> Result<()> {
    let place = bytes.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut::<N>());
    let place = place.context("a relocation beyond its section")?;
    let old = read(*place).context("a relocation of a place without a pointer")?;
    let new = old.checked_sub(start).and_then(|old| moved.get(old as usize));
    if let Some(new) = new {
        *place = write(*new);
    }
    Ok(())
}

/// A number in the five bytes that linkers write; none of these has its sign bit set.
fn from_leb(bytes: [u8; 5]) -> Option<u32> {
    let padded = bytes[..4].iter().all(|byte| byte & 0x80 != 0) && bytes[4] < 8;
    let value = bytes.iter().rev().fold(0, |value, byte| value << 7 | u32::from(byte & 0x7f));
    padded.then_some(value)
}

fn to_leb(value: u32) -> [u8; 5] {
    std::array::from_fn(|at| (value >> (7 * at)).to_le_bytes()[0] & 0x7f | if at < 4 { 0x80 } else { 0 })
}
