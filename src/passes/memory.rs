//! The memory pass: the module defines its one memory, 65536 pages and not shared, and exports it.
//!
//! The linker is asked for shared memory because only then it emits passive data and per-thread
//! storage, but an engine compiles the best code for a memory that the module defines, that is not
//! shared, and whose size is fixed. Atomic instructions are valid on it all the same, and the
//! runtime maps the same memory for every thread's instance. Removing the import shifts no index:
//! it was the only memory, number 0.

use anyhow::{Result, bail, ensure};
use wasm_encoder::{ExportKind, ExportSection, MemorySection, MemoryType};
use wasmparser::{Data, DataKind, Export, ExternalKind, Imports, Name, TypeRef};

use crate::module::{Module, entries, id, leb, name_bytes};

const PAGES: u64 = 65536;
const EXPORT: &str = "memory";

/// Runs the pass.
pub fn define(module: &mut Module) -> Result<()> {
    let old = take_memory(module)?;
    ensure!(!old.memory64, "the memory has 64-bit addresses; compile for wasm32");
    ensure!(
        old.page_size_log2.is_none_or(|log| log == 16),
        "the memory has pages of an unusual size; link without custom page sizes"
    );
    ensure!(old.shared || is_ours(&old), "the memory is not shared; link with --shared-memory");
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: PAGES,
        maximum: Some(PAGES),
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    if !is_ours(&old) || module.body(id::MEMORY).is_none() {
        module.set(id::MEMORY, body_of(&memories));
    }
    export(module)?;
    passive(module)?;
    forget_shared(module);
    Ok(())
}

fn is_ours(memory: &wasmparser::MemoryType) -> bool {
    !memory.shared && memory.initial == PAGES && memory.maximum == Some(PAGES)
}

/// The type of the only memory; an import of it is removed.
fn take_memory(module: &mut Module) -> Result<wasmparser::MemoryType> {
    let mut found: Vec<wasmparser::MemoryType> = Vec::new();
    let (mut kept, mut count) = (Vec::new(), 0u32);
    if let Some(body) = module.body(id::IMPORT) {
        for (range, import) in entries::<Imports>(body)? {
            match import {
                Imports::Single(_, import) => match import.ty {
                    TypeRef::Memory(ty) => {
                        found.push(ty);
                        continue;
                    }
                    _ => count += 1,
                },
                _ => bail!("the import section is in the compact form, which is not supported"),
            }
            kept.extend_from_slice(&body[range]);
        }
    }
    let imported = !found.is_empty();
    found.extend(module.entries::<wasmparser::MemoryType>(id::MEMORY)?.into_iter().map(|(_, ty)| ty));
    let memory = match found[..] {
        [memory] => memory,
        [] => bail!("the module has no memory; link with --shared-memory"),
        _ => bail!("the module has {} memories; one is expected", found.len()),
    };
    if imported && count == 0 {
        module.remove(id::IMPORT);
    } else if imported {
        let mut body = Vec::with_capacity(kept.len() + 5);
        leb(&mut body, count);
        body.extend_from_slice(&kept);
        module.set(id::IMPORT, body);
    }
    Ok(memory)
}

/// Makes sure that the memory is exported under the name that the runtime looks for.
fn export(module: &mut Module) -> Result<()> {
    let Some(body) = module.body(id::EXPORT) else {
        let mut exports = ExportSection::new();
        exports.export(EXPORT, ExportKind::Memory, 0);
        module.set(id::EXPORT, body_of(&exports));
        return Ok(());
    };
    let exports = entries::<Export>(body)?;
    match exports.iter().find(|(_, export)| export.name == EXPORT) {
        Some((_, export)) if export.kind == ExternalKind::Memory => return Ok(()),
        Some(_) => bail!("the export \"{EXPORT}\" is not the memory; rename it"),
        None => {}
    }
    let mut new = Vec::with_capacity(body.len() + 16);
    leb(&mut new, u32::try_from(exports.len() + 1)?);
    new.extend_from_slice(exports.first().map_or(&[], |(first, _)| &body[first.start..]));
    name_bytes(&mut new, EXPORT);
    new.push(ExportKind::Memory as u8);
    leb(&mut new, 0);
    module.set(id::EXPORT, new);
    Ok(())
}

/// Refuses active data. An empty active segment, which the linker may leave behind, becomes a
/// passive one: it initialises nothing, but removing it would renumber the others.
fn passive(module: &mut Module) -> Result<()> {
    let Some(body) = module.body(id::DATA) else {
        return Ok(());
    };
    let segments = entries::<Data>(body)?;
    let mut new = Vec::with_capacity(body.len());
    leb(&mut new, u32::try_from(segments.len())?);
    let mut changed = false;
    for (index, (range, data)) in segments.iter().enumerate() {
        match data.kind {
            DataKind::Passive => new.extend_from_slice(&body[range.clone()]),
            DataKind::Active { .. } if data.data.is_empty() => {
                changed = true;
                new.extend_from_slice(&[1, 0]); // passive, no bytes
            }
            DataKind::Active { .. } => bail!(
                "data segment {index}{} of {} bytes is active: each new thread would overwrite it; link with --shared-memory",
                segment_name(module, index).map(|name| format!(" ({name})")).unwrap_or_default(),
                data.data.len()
            ),
        }
    }
    if changed {
        module.set(id::DATA, new);
    }
    Ok(())
}

fn segment_name(module: &Module, index: usize) -> Option<String> {
    let index = u32::try_from(index).ok()?;
    module.names().into_iter().find_map(|name| match name {
        Name::Data(map) => map
            .into_iter()
            .map_while(Result::ok)
            .find(|naming| naming.index == index)
            .map(|naming| naming.name.to_owned()),
        _ => None,
    })
}

/// Drops "shared-mem" from the list of features the module was compiled with; it no longer holds.
fn forget_shared(module: &mut Module) {
    const SECTION: &str = "target_features";
    let Some(data) = module.custom(SECTION) else {
        return;
    };
    let Ok(features) = entries::<Feature>(data) else {
        return;
    };
    if !features.iter().any(|(_, feature)| feature.0 == "shared-mem") {
        return;
    }
    let kept: Vec<_> = features.iter().filter(|(_, feature)| feature.0 != "shared-mem").collect();
    let mut new = Vec::with_capacity(data.len());
    leb(&mut new, u32::try_from(kept.len()).unwrap_or(0));
    kept.iter().for_each(|(range, _)| new.extend_from_slice(&data[range.clone()]));
    module.set_custom(SECTION, &new);
}

/// An entry of target_features: '+' or '-', then a name.
struct Feature<'a>(&'a str);

impl<'a> wasmparser::FromReader<'a> for Feature<'a> {
    fn from_reader(reader: &mut wasmparser::BinaryReader<'a>) -> wasmparser::Result<Self> {
        reader.read_u8()?;
        Ok(Feature(reader.read_string()?))
    }
}

/// A section's bytes without number and length, from the encoder that writes both.
pub fn body_of(section: &impl wasm_encoder::Encode) -> Vec<u8> {
    let mut whole = Vec::new();
    section.encode(&mut whole);
    let mut reader = wasmparser::BinaryReader::new(&whole, 0);
    let skipped = reader.read_var_u32().map(|_| reader.original_position());
    whole.split_off(skipped.expect("an encoded section starts with its length"))
}
