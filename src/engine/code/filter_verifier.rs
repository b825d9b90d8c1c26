//! Checks that a function only computes: it and all functions that it calls load from memory and
//! change nothing but their own locals.
//!
//! Such a function may be called without the care that other guest code takes (see
//! `grate::filter`): it cannot reach the host, may be left at any instruction, and may be called
//! again. So all instructions that the compiler may turn into calls are forbidden: imports,
//! floating point (rounding may be a routine of the host's), references (the collector may want to
//! know of them), bulk memory, tables, exceptions.

use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};
use wasmparser::{BinaryReader, FunctionBody, Operator, ValType};

/// Checks the function with this index. `bodies` are the functions that the module defines, after
/// the imported ones, and `global` returns the type of a global variable.
///
/// # Errors
/// The function that does more than compute, and the instruction.
pub fn check(
    wasm: &[u8],
    bodies: &[Range<usize>],
    imported: u32,
    function: u32,
    global: impl Fn(u32) -> Option<ValType>,
) -> Result<()> {
    let mut seen = vec![false; bodies.len()];
    let mut next = vec![function];
    while let Some(function) = next.pop() {
        let Some(defined) = function.checked_sub(imported) else {
            bail!("a filter only computes, and this one calls an import");
        };
        let at = usize::try_from(defined)?;
        let body = bodies.get(at).context("a filter calls a function that does not exist")?;
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let body = FunctionBody::new(BinaryReader::new(&wasm[body.clone()], body.start));
        for local in body.get_locals_reader()? {
            let (_, ty) = local?;
            ensure!(
                is_integer(ty),
                "a filter computes with integers, and function {function} of this one has a variable of type {ty}"
            );
        }
        for operator in body.get_operators_reader()? {
            match operator? {
                Operator::Call { function_index } => next.push(function_index),
                Operator::GlobalGet { global_index } if global(global_index).is_some_and(is_integer) => {}
                operator if computes(&operator) => {}
                operator => {
                    let text = format!("{operator:?}");
                    let name = text.split([' ', '{']).next().unwrap_or_default();
                    bail!("a filter only computes and loads, and function {function} of this one has {name}");
                }
            }
        }
    }
    Ok(())
}

fn is_integer(ty: ValType) -> bool {
    matches!(ty, ValType::I32 | ValType::I64)
}

/// Whether an instruction (other than a call or an access to a global variable) is compiled to a
/// few instructions of the host, which at most trap.
#[rustfmt::skip]
fn computes(operator: &Operator<'_>) -> bool {
    use Operator::*;
    matches!(
        operator,
        // Control.
        Unreachable | Nop | Block { .. } | Loop { .. } | If { .. } | Else | End | Br { .. } | BrIf { .. } | BrTable { .. } | Return
        | Drop | Select | LocalGet { .. } | LocalSet { .. } | LocalTee { .. }
        // Reads of memory.
        | I32Load { .. } | I32Load8S { .. } | I32Load8U { .. } | I32Load16S { .. } | I32Load16U { .. }
        | I64Load { .. } | I64Load8S { .. } | I64Load8U { .. } | I64Load16S { .. } | I64Load16U { .. }
        | I64Load32S { .. } | I64Load32U { .. }
        | I32AtomicLoad { .. } | I32AtomicLoad8U { .. } | I32AtomicLoad16U { .. }
        | I64AtomicLoad { .. } | I64AtomicLoad8U { .. } | I64AtomicLoad16U { .. } | I64AtomicLoad32U { .. } | AtomicFence
        // 32 bits.
        | I32Const { .. } | I32Eqz | I32Eq | I32Ne | I32LtS | I32LtU | I32GtS | I32GtU | I32LeS | I32LeU | I32GeS | I32GeU
        | I32Clz | I32Ctz | I32Popcnt | I32Add | I32Sub | I32Mul | I32DivS | I32DivU | I32RemS | I32RemU
        | I32And | I32Or | I32Xor | I32Shl | I32ShrS | I32ShrU | I32Rotl | I32Rotr | I32WrapI64 | I32Extend8S | I32Extend16S
        // 64 bits.
        | I64Const { .. } | I64Eqz | I64Eq | I64Ne | I64LtS | I64LtU | I64GtS | I64GtU | I64LeS | I64LeU | I64GeS | I64GeU
        | I64Clz | I64Ctz | I64Popcnt | I64Add | I64Sub | I64Mul | I64DivS | I64DivU | I64RemS | I64RemU
        | I64And | I64Or | I64Xor | I64Shl | I64ShrS | I64ShrU | I64Rotl | I64Rotr
        | I64ExtendI32S | I64ExtendI32U | I64Extend8S | I64Extend16S | I64Extend32S
    )
}
