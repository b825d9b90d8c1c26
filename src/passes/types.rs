//! The numbers of operands and results of a module's instructions, where they depend on its types.

use anyhow::{Context, Result};
use wasmparser::{
    BlockType, CompositeInnerType, ContType, FrameKind, FuncType, Imports, ModuleArity, RecGroup, RefType, SubType,
    TagType, TypeRef,
};

use crate::module::{Module, id};

/// The types of a module's functions and tags.
pub struct Types {
    types: Vec<SubType>,
    /// Whether a type equals any other of the same shape: alone, final, without a supertype.
    plain: Vec<bool>,
    /// The type index of each function, imported ones first.
    functions: Vec<u32>,
    tags: Vec<u32>,
}

impl Types {
    /// Reads the type, import, function and tag sections.
    pub fn read(module: &Module) -> Result<Types> {
        let groups = module.entries::<RecGroup>(id::TYPE)?;
        let (mut types, mut plain) = (Vec::new(), Vec::new());
        for (_, group) in groups {
            let alone = group.types().len() == 1;
            for ty in group.into_types() {
                plain.push(alone && ty.is_final && ty.supertype_idx.is_none() && !ty.composite_type.shared);
                types.push(ty);
            }
        }
        let (mut functions, mut tags) = (Vec::new(), Vec::new());
        for (_, imports) in module.entries::<Imports>(id::IMPORT)? {
            for import in imports {
                match import?.1.ty {
                    TypeRef::Func(ty) | TypeRef::FuncExact(ty) => functions.push(ty),
                    TypeRef::Tag(tag) => tags.push(tag.func_type_idx),
                    _ => {}
                }
            }
        }
        functions.extend(module.entries::<u32>(id::FUNCTION)?.into_iter().map(|(_, ty)| ty));
        tags.extend(module.entries::<TagType>(id::TAG)?.into_iter().map(|(_, tag)| tag.func_type_idx));
        Ok(Types { types, plain, functions, tags })
    }

    /// The number of types.
    pub fn count(&self) -> usize {
        self.types.len()
    }

    /// The number of functions, imported ones included.
    pub fn function_count(&self) -> usize {
        self.functions.len()
    }

    /// The number of a function's parameters.
    pub fn params(&self, function: u32) -> Result<u32> {
        let ty = self.type_index_of_function(function).and_then(|index| self.function_type(index));
        Ok(u32::try_from(ty.context("a function without a type")?.params().len())?)
    }

    /// The function type of this index, if equal types are interchangeable with it.
    pub fn plain_function(&self, index: u32) -> Option<&FuncType> {
        match &self.types.get(index as usize)?.composite_type.inner {
            CompositeInnerType::Func(ty) if self.plain[index as usize] => Some(ty),
            _ => None,
        }
    }

    /// The function type of this index.
    pub fn function_type(&self, index: u32) -> Option<&FuncType> {
        match &self.types.get(index as usize)?.composite_type.inner {
            CompositeInnerType::Func(ty) => Some(ty),
            _ => None,
        }
    }

    /// The type of a tag.
    pub fn tag(&self, index: u32) -> Option<&FuncType> {
        self.function_type(*self.tags.get(index as usize)?)
    }

    /// The numbers of operands and results of a block of this type.
    pub fn block(&self, ty: BlockType) -> (usize, usize) {
        let (params, results) = self.block_type_arity(ty).unwrap_or((0, 0));
        (params as usize, results as usize)
    }
}

impl ModuleArity for Types {
    fn sub_type_at(&self, index: u32) -> Option<&SubType> {
        self.types.get(index as usize)
    }

    fn tag_type_arity(&self, at: u32) -> Option<(u32, u32)> {
        self.sub_type_arity(self.sub_type_at(*self.tags.get(at as usize)?)?)
    }

    fn type_index_of_function(&self, index: u32) -> Option<u32> {
        self.functions.get(index as usize).copied()
    }

    fn func_type_of_cont_type(&self, _: &ContType) -> Option<&FuncType> {
        None // stack switching is not enabled
    }

    fn sub_type_of_ref_type(&self, ty: &RefType) -> Option<&SubType> {
        let index = ty.type_index()?.as_module_index()?;
        let ty = self.sub_type_at(index)?;
        matches!(ty.composite_type.inner, CompositeInnerType::Func(_)).then_some(ty)
    }

    /// Only used for instructions that the callers handle themselves (else, end, branches).
    fn control_stack_height(&self) -> u32 {
        0
    }

    fn label_block(&self, _: u32) -> Option<(BlockType, FrameKind)> {
        None
    }
}
