//! Types of values, as the pass needs them: to declare locals, and to write and read records.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use wasm_encoder::{AbstractHeapType, HeapType, InstructionSink, MemArg, RefType, ValType};
use wasmparser::{FuncToValidate, UnpackedIndex, ValidatorResources, WasmModuleResources};

/// The number of bytes of a value in a record; None for references, which cannot be written to
/// memory.
pub fn size(ty: ValType) -> Option<i32> {
    match ty {
        ValType::I32 | ValType::F32 => Some(4),
        ValType::I64 | ValType::F64 => Some(8),
        ValType::V128 => Some(16),
        ValType::Ref(_) => None,
    }
}

/// Whether values of all these types can be in records.
pub fn writable(types: &[ValType]) -> bool {
    types.iter().all(|ty| size(*ty).is_some())
}

/// Whether a local of this type needs no initial value.
pub fn defaultable(ty: ValType) -> bool {
    !matches!(ty, ValType::Ref(RefType { nullable: false, .. }))
}

/// The type of a local that can hold the value and needs no initial value.
pub fn nullable(ty: ValType) -> ValType {
    match ty {
        ValType::Ref(RefType { heap_type, .. }) => ValType::Ref(RefType { nullable: true, heap_type }),
        other => other,
    }
}

/// A letter for each type, to name helpers.
pub fn letter(ty: ValType) -> char {
    match ty {
        ValType::I32 => 'i',
        ValType::I64 => 'l',
        ValType::F32 => 'f',
        ValType::F64 => 'd',
        ValType::V128 => 'v',
        ValType::Ref(_) => 'r',
    }
}

/// Stores a value: address and value are on the stack.
pub fn store(sink: &mut InstructionSink, ty: ValType, offset: u64) {
    let at = MemArg { offset, align: 0, memory_index: 0 };
    match ty {
        ValType::I32 => sink.i32_store(at),
        ValType::I64 => sink.i64_store(at),
        ValType::F32 => sink.f32_store(at),
        ValType::F64 => sink.f64_store(at),
        ValType::V128 => sink.v128_store(at),
        ValType::Ref(_) => sink.unreachable(), // not in records
    };
}

/// Loads a value: the address is on the stack.
pub fn load(sink: &mut InstructionSink, ty: ValType, offset: u64) {
    let at = MemArg { offset, align: 0, memory_index: 0 };
    match ty {
        ValType::I32 => sink.i32_load(at),
        ValType::I64 => sink.i64_load(at),
        ValType::F32 => sink.f32_load(at),
        ValType::F64 => sink.f64_load(at),
        ValType::V128 => sink.v128_load(at),
        ValType::Ref(_) => sink.unreachable(), // not in records
    };
}

/// Converts types as read, or as the validator found them, to types as written.
pub struct Encoded {
    /// The validator's own numbers of the module's types. Of equal types, the lowest index is used.
    indices: HashMap<UnpackedIndex, u32>,
}

impl Encoded {
    /// Makes the table for a module with so many types.
    pub fn new(function: &FuncToValidate<ValidatorResources>, types: usize) -> Encoded {
        let mut indices = HashMap::new();
        for index in 0..u32::try_from(types).unwrap_or(u32::MAX) {
            let ty = wasmparser::HeapType::Concrete(UnpackedIndex::Module(index));
            let Some(mut ty) = wasmparser::RefType::new(true, ty) else { continue };
            if function.resources.check_ref_type(&mut ty, 0).is_ok()
                && let wasmparser::HeapType::Concrete(found) = ty.heap_type()
            {
                indices.entry(found).or_insert(index);
            }
        }
        Encoded { indices }
    }

    /// Converts one type.
    pub fn one(&self, ty: wasmparser::ValType) -> Result<ValType> {
        Ok(match ty {
            wasmparser::ValType::I32 => ValType::I32,
            wasmparser::ValType::I64 => ValType::I64,
            wasmparser::ValType::F32 => ValType::F32,
            wasmparser::ValType::F64 => ValType::F64,
            wasmparser::ValType::V128 => ValType::V128,
            wasmparser::ValType::Ref(ty) => {
                ValType::Ref(RefType { nullable: ty.is_nullable(), heap_type: self.heap(ty.heap_type())? })
            }
        })
    }

    /// Converts several types.
    pub fn all(&self, types: &[wasmparser::ValType]) -> Result<Vec<ValType>> {
        types.iter().map(|ty| self.one(*ty)).collect()
    }

    fn heap(&self, ty: wasmparser::HeapType) -> Result<HeapType> {
        match ty {
            wasmparser::HeapType::Abstract { shared, ty } => Ok(HeapType::Abstract { shared, ty: kind(ty) }),
            wasmparser::HeapType::Concrete(UnpackedIndex::Module(index)) => Ok(HeapType::Concrete(index)),
            wasmparser::HeapType::Concrete(found) => {
                Ok(HeapType::Concrete(*self.indices.get(&found).context("a type without an index")?))
            }
            wasmparser::HeapType::Exact(_) => bail!("exact types are not supported"),
        }
    }
}

fn kind(ty: wasmparser::AbstractHeapType) -> AbstractHeapType {
    use wasmparser::AbstractHeapType as From;
    match ty {
        From::Func => AbstractHeapType::Func,
        From::Extern => AbstractHeapType::Extern,
        From::Any => AbstractHeapType::Any,
        From::None => AbstractHeapType::None,
        From::NoExtern => AbstractHeapType::NoExtern,
        From::NoFunc => AbstractHeapType::NoFunc,
        From::Eq => AbstractHeapType::Eq,
        From::Struct => AbstractHeapType::Struct,
        From::Array => AbstractHeapType::Array,
        From::I31 => AbstractHeapType::I31,
        From::Exn => AbstractHeapType::Exn,
        From::NoExn => AbstractHeapType::NoExn,
        From::Cont => AbstractHeapType::Cont,
        From::NoCont => AbstractHeapType::NoCont,
    }
}
