//! Branch hints: the pads are hardly ever entered, so their code need not lie among that which runs.
//!
//! They count bytes of function bodies, so they are made when all other passes are done.

use anyhow::Result;
use wasmparser::{Export, ExternalKind, Operator};

use crate::code;
use crate::module::{Module, id, leb};

use super::runtime;

const SECTION: &str = "metadata.code.branch_hint";

/// Adds the hints to a program that the pass has been over, in place of hints there were.
pub fn hint(module: &mut Module) -> Result<()> {
    let exports = module.entries::<Export>(id::EXPORT)?;
    let pinned = exports.iter().find(|(_, e)| e.name == runtime::PINNED && e.kind == ExternalKind::Global);
    let (Some(staying), Some(section)) = (pinned.map(|(_, e)| e.index + runtime::STAYING), module.body(id::CODE))
    else {
        return Ok(());
    };
    let imported = super::imported_functions(module)?;
    let (mut all, mut count) = (Vec::new(), 0);
    for (function, (_, body)) in (imported..).zip(code::functions(section)?) {
        let start = body.range().start;
        // Whether the last instruction said that the stack is not left, or that it is; where it is, if it is a branch.
        let (mut reader, mut said, mut hints) = (body.get_operators_reader()?, None, Vec::new());
        let mut branch = None;
        while !reader.eof() {
            let (op, at) = reader.read_with_offset()?;
            let before = branch.take();
            said = match (op, said) {
                (Operator::GlobalGet { global_index }, _) if global_index == staying => {
                    // The branch before it is the pass's as well: a program's own is never behind a call that may be left.
                    hints.extend(before.map(|at| (at, true)));
                    Some(true)
                }
                (Operator::I32Eqz, Some(stays)) => Some(!stays),
                (Operator::BrIf { .. }, Some(stays)) => {
                    hints.push((u32::try_from(at - start)?, stays));
                    None
                }
                (Operator::BrIf { .. }, None) => {
                    branch = Some(u32::try_from(at - start)?);
                    None
                }
                _ => None,
            };
        }
        if !hints.is_empty() {
            leb(&mut all, function);
            leb(&mut all, u32::try_from(hints.len())?);
            for (at, likely) in hints {
                leb(&mut all, at);
                all.extend([1, u8::from(likely)]); // one byte
            }
            count += 1;
        }
    }
    let mut data = Vec::with_capacity(all.len() + 5);
    leb(&mut data, count);
    data.extend(all);
    module.remove_custom(|name| name == SECTION);
    module.put_custom_before(id::CODE, SECTION, &data);
    Ok(())
}
