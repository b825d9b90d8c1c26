//! Branch hints: move code that is hardly ever entered away from the code that runs. That is the
//! pads of the fork pass, and calls through pointers of another type.
//!
//! Hints count bytes of function bodies, so they are made after all other passes.

use anyhow::Result;
use wasmparser::{Export, ExternalKind, FunctionBody, Operator};

use crate::code;
use crate::fork::{self, runtime};
use crate::module::{Module, id, leb};

const SECTION: &str = "metadata.code.branch_hint";

/// Adds the hints to a program after the other passes, replacing existing ones.
pub fn hint(module: &mut Module) -> Result<()> {
    let exports = module.entries::<Export>(id::EXPORT)?;
    let pinned = exports.iter().find(|(_, e)| e.name == runtime::PINNED && e.kind == ExternalKind::Global);
    let staying = pinned.map(|(_, e)| e.index + runtime::STAYING);
    let Some(section) = module.body(id::CODE) else { return Ok(()) };
    let imported = fork::imported_functions(module)?;
    let (mut all, mut count) = (Vec::new(), 0);
    for (function, (_, body)) in (imported..).zip(code::functions(section)?) {
        let hints = hints(&body, staying)?;
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
    if count == 0 {
        return Ok(());
    }
    let mut data = Vec::with_capacity(all.len() + 5);
    leb(&mut data, count);
    data.extend(all);
    module.remove_custom(|name| name == SECTION);
    module.put_custom_before(id::CODE, SECTION, &data);
    Ok(())
}

/// The likely and unlikely branches of a function, by their place in its body.
fn hints(body: &FunctionBody, staying: Option<u32>) -> Result<Vec<(u32, bool)>> {
    let start = body.range().start;
    // Whether the last instruction tested that the stack is not left, or that it is; and its place,
    // if it is a branch.
    let (mut reader, mut said, mut hints) = (body.get_operators_reader()?, None, Vec::new());
    let (mut branch, mut pointer) = (None, Pointer::default());
    while !reader.eof() {
        let (op, at) = reader.read_with_offset()?;
        let at = u32::try_from(at - start)?;
        let before = branch.take();
        if pointer.misfits(&op) {
            hints.push((at, false));
            said = None;
            continue;
        }
        said = match (op, said) {
            (Operator::GlobalGet { global_index }, _) if Some(global_index) == staying => {
                // The branch before it is the pass's as well: a program's own branch never follows
                // a call that may be left.
                hints.extend(before.map(|at| (at, true)));
                Some(true)
            }
            (Operator::I32Eqz, Some(stays)) => Some(!stays),
            (Operator::BrIf { .. }, Some(stays)) => {
                hints.push((at, stays));
                None
            }
            (Operator::BrIf { .. }, None) => {
                branch = Some(at);
                None
            }
            _ => None,
        };
    }
    Ok(hints)
}

/// The progress in recognising the test whether a pointer fits, as the function-pointer pass writes
/// it. A compiler adds negative numbers instead, and otherwise a wrong hint would do no harm.
#[derive(Default)]
struct Pointer(usize);

impl Pointer {
    /// Whether this is the branch that is taken if it does not fit.
    fn misfits(&mut self, op: &Operator) -> bool {
        self.0 = match (op, self.0) {
            (Operator::I32Sub, _) => 1,
            (Operator::I32Const { .. }, 1) => 2,
            (Operator::I32GeU, 2) => 3,
            (Operator::BrIf { relative_depth: 0 }, 3) => return true,
            _ => 0,
        };
        false
    }
}
