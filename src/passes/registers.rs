//! Converts values of one function type to those that another function would find in x86-64's
//! registers.
//!
//! Integers and floats are counted separately; surplus ones are dropped, missing ones are 0; a
//! 32-bit integer is extended with zeros, a 64-bit one truncated; a float keeps its low bits.

use anyhow::{Context, Result};
use wasm_encoder::InstructionSink;
use wasmparser::{FuncType, ValType};

/// The registers of x86-64 that a value may be passed in.
#[derive(PartialEq, Clone, Copy)]
enum Class {
    Integer,
    Float,
}

fn class(ty: ValType) -> Option<Class> {
    match ty {
        ValType::I32 | ValType::I64 => Some(Class::Integer),
        ValType::F32 | ValType::F64 => Some(Class::Float),
        _ => None,
    }
}

/// Whether all values of the type go into such registers.
pub fn is_numeric(ty: &FuncType) -> bool {
    ty.params().iter().chain(ty.results()).all(|ty| class(*ty).is_some())
}

/// Pushes values of the types `want`, from locals of the types `have` that start at `first`.
pub fn pass(sink: &mut InstructionSink, have: &[ValType], first: u32, want: &[ValType]) -> Result<()> {
    let (mut integers, mut floats) = (0, 0);
    for wanted in want {
        let class = class(*wanted).context("a type that is not adapted")?;
        let nth = if class == Class::Integer { &mut integers } else { &mut floats };
        let found = (first..).zip(have).filter(|(_, ty)| self::class(**ty) == Some(class)).nth(*nth);
        *nth += 1;
        match found {
            Some((local, ty)) => {
                sink.local_get(local);
                convert(sink, *ty, *wanted);
            }
            None => zero(sink, *wanted),
        }
    }
    Ok(())
}

/// Converts the result on the stack as a register of the same kind would; 0 if it is of another
/// kind.
pub fn convert_result(sink: &mut InstructionSink, from: ValType, to: ValType) {
    if class(from) == class(to) {
        convert(sink, from, to);
    } else {
        sink.drop();
        zero(sink, to);
    }
}

/// The value for a register of another kind: zero.
pub fn zero(sink: &mut InstructionSink, ty: ValType) {
    match ty {
        ValType::I64 => sink.i64_const(0),
        ValType::F32 => sink.f32_const(0.0.into()),
        ValType::F64 => sink.f64_const(0.0.into()),
        _ => sink.i32_const(0),
    };
}

/// Converts the value as a register of the same kind would.
fn convert(sink: &mut InstructionSink, from: ValType, to: ValType) {
    match (from, to) {
        (ValType::I32, ValType::I64) => sink.i64_extend_i32_u(),
        (ValType::I64, ValType::I32) => sink.i32_wrap_i64(),
        (ValType::F32, ValType::F64) => sink.i32_reinterpret_f32().i64_extend_i32_u().f64_reinterpret_i64(),
        (ValType::F64, ValType::F32) => sink.i64_reinterpret_f64().i32_wrap_i64().f32_reinterpret_i32(),
        _ => return,
    };
}

/// Converts a numeric type for the encoder; others do not come here.
pub fn encoded(ty: ValType) -> wasm_encoder::ValType {
    match ty {
        ValType::I64 => wasm_encoder::ValType::I64,
        ValType::F32 => wasm_encoder::ValType::F32,
        ValType::F64 => wasm_encoder::ValType::F64,
        _ => wasm_encoder::ValType::I32,
    }
}
