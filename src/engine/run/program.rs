//! Programs: code that may run, and the state that is prepared for its instances.

use anyhow::Result;
use lind_kernel::mem::InitialData;
use wasmtime::{InstancePre, Linker, Module};

use crate::code::loader::CompiledModule;
use crate::code::validate::Facts;
use crate::run::fork::Exports;
use crate::run::guest::Guest;
use crate::signal::context::Code;
use crate::syscall::trampoline;

/// A program ready to run.
pub struct LinkedProgram {
    /// The module, its imports resolved.
    pub module: InstancePre<Guest>,
    /// The facts that the engine found about it.
    pub facts: Facts,
    /// Its data.
    pub initial: InitialData,
    /// Its machine code, for faults.
    pub code: Code,
    /// Its exports for threads and forks.
    pub exports: Exports,
    /// The place in its instances of the way into the kernel.
    pub syscall: Option<trampoline::Import>,
}

impl LinkedProgram {
    /// Resolves the imports of `compiled` by `linker`. With `timed`, all calls go through the
    /// functions of `linker`.
    ///
    /// # Errors
    /// The module imports something that `linker` does not define.
    pub fn ready(compiled: CompiledModule, linker: &Linker<Guest>, timed: bool) -> Result<LinkedProgram> {
        let CompiledModule { module, facts, initial } = compiled;
        Ok(LinkedProgram {
            code: code_of(&module, &facts),
            module: linker.instantiate_pre(&module)?,
            facts,
            initial,
            exports: Exports::of(&module),
            syscall: if timed { None } else { trampoline::Import::of(&module) },
        })
    }
}

fn code_of(module: &Module, facts: &Facts) -> Code {
    let places = &facts.places;
    let text = module.text().as_ptr() as usize;
    let at = |offset: u32| text + offset as usize;
    Code {
        text: text..text + module.text().len(),
        functions: at(places.start)..at(places.end),
        landing: at(places.landing),
        traps: facts.traps.clone(),
        jumps: facts.jumps.clone(),
    }
}
