//! Branch hints: the ways to the pads are hardly ever taken, so their code need not lie among that which runs.
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
    let (Some(leaving), Some(section)) = (pinned.map(|(_, e)| e.index + runtime::LEAVING), module.body(id::CODE))
    else {
        return Ok(());
    };
    let imported = super::imported_functions(module)?;
    let (mut all, mut count) = (Vec::new(), 0);
    for (function, (_, body)) in (imported..).zip(code::functions(section)?) {
        let start = body.range().start;
        let (mut reader, mut after, mut hints) = (body.get_operators_reader()?, false, Vec::new());
        while !reader.eof() {
            let (op, at) = reader.read_with_offset()?;
            if after && matches!(op, Operator::BrIf { .. }) {
                hints.push(u32::try_from(at - start)?);
            }
            after = matches!(op, Operator::GlobalGet { global_index } if global_index == leaving);
        }
        if !hints.is_empty() {
            leb(&mut all, function);
            leb(&mut all, u32::try_from(hints.len())?);
            for at in hints {
                leb(&mut all, at);
                all.extend([1, 0]); // one byte: not likely
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
