//! The path of system calls from compiled code to the kernel and back, without the engine's
//! trampoline.
//!
//! `lind.syscall` leads to [`enter`] here, which hands the call to the kernel in a few
//! instructions, and the answer back. If the thread has other work (run signal handlers, leave,
//! bring a child to life), that needs a Store that can be unwound: the call then goes on to the
//! trampoline as it came, with its result set aside.
//!
//! That replaces a pointer in an instance, in the array of imported functions that compiled code
//! uses. To check when Wasmtime is upgraded: the calling convention `Tail` (the first six arguments
//! in registers and the rest on the stack, popped by the callee), which no test would survive; and
//! the layout, which [`connect`] checks: if it is not the expected one, calls go through the
//! trampoline.

#![allow(unsafe_code)]

use std::arch::naked_asm;
use std::cell::Cell;
use std::mem::offset_of;
use std::sync::Arc;

use lind_abi::Word;
use lind_kernel::call;
use wasmtime::{ExternType, Instance, Module, Result, Store};
use wasmtime_environ::{FuncIndex, HostPtr, PtrSize, VM_ARRAY_CALL_HOST_FUNC_MAGIC, VMOffsets, VMOffsetsFields};

use crate::run::guest::Guest;
use crate::run::program::LinkedProgram;
use crate::signal::context::{self, Callee};
use crate::space::memory;

/// The offset in an instance of the pointer to its Store's context, and in that of the pointer to
/// the Store's data.
const CONTEXT: usize = 8;
const DATA: usize = 104;

/// The place of `lind.syscall` in the instances of a module.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    code: usize,
    instance: usize,
}

/// The state of a Guest for the calls that go this way.
#[derive(Debug, Default)]
pub struct OfGuest {
    /// The engine's trampoline for `lind.syscall`.
    far: Cell<usize>,
    /// The result of a call that goes on through the trampoline.
    result: Cell<Option<i64>>,
}

impl OfGuest {
    /// The result of the call that has come through the engine's trampoline, if it has been made
    /// before.
    #[inline(always)]
    pub fn take_result(&self) -> Option<i64> {
        self.result.take()
    }
}

impl Import {
    /// None if the module does not import it, or if all calls are to go through the engine's
    /// trampoline.
    pub fn of(module: &Module) -> Option<Import> {
        if !cfg!(feature = "trampoline") {
            return None;
        }
        let mut functions = module.imports().filter(|import| matches!(import.ty(), ExternType::Func(_)));
        let at = functions.position(|import| (import.module(), import.name()) == ("lind", "syscall"))?;
        let index = FuncIndex::from_u32(u32::try_from(at).ok()?);
        // The fields before the functions are known: one memory of its own. The fields behind them
        // do not matter.
        let offsets = VMOffsets::from(VMOffsetsFields {
            ptr: HostPtr,
            num_imported_functions: index.as_u32() + 1,
            num_imported_tables: 0,
            num_imported_memories: 0,
            num_imported_globals: 0,
            num_imported_tags: 0,
            num_defined_tables: 0,
            num_defined_memories: 1,
            num_owned_memories: 1,
            num_defined_globals: 0,
            num_defined_tags: 0,
            num_escaped_funcs: 0,
            num_runtime_data: 0,
            has_startup_func: false,
        });
        Some(Import {
            code: usize::try_from(offsets.vmctx_vmfunction_import_wasm_call(index)).ok()?,
            instance: usize::try_from(offsets.vmctx_vmfunction_import_vmctx(index)).ok()?,
        })
    }
}

/// An instance of the program of a Store, over the memory of its cage.
///
/// # Errors
/// The errors of `InstancePre::instantiate`.
pub fn instantiate(store: &mut Store<Guest>, linked: &LinkedProgram) -> Result<Instance> {
    let memory = Arc::clone(&store.data().thread.cage.memory);
    let instance = memory::adopting(&memory, || linked.module.instantiate(&mut *store))?;
    connect(store, &instance, linked);
    Ok(instance)
}

/// Puts [`enter`] before the trampoline of `lind.syscall`, if the layout is the expected one.
fn connect(store: &mut Store<Guest>, instance: &Instance, linked: &LinkedProgram) {
    let Some(import) = linked.syscall else { return };
    let Some(start) = instance.get_func(&mut *store, "_start") else { return };
    let Some(Callee { instance, .. }) = Callee::raw(&start, store) else { return };
    let guest = store.data();
    let word = |at: usize| at as *mut usize;
    // SAFETY: the address is that of an instance, which starts with fixed fields, and has an entry
    // for each imported function at the offset of its layout; all of it belongs to the Store, whose
    // code does not run.
    unsafe {
        let (code, of) = (word(instance + import.code), word(instance + import.instance).read());
        let expected = usize::from(HostPtr.vmctx_store_context()) == CONTEXT
            && usize::from(HostPtr.vm_store_context().store_data()) == DATA
            && word(*word(instance + CONTEXT) + DATA).read() == std::ptr::from_ref(guest) as usize
            && linked.code.text.contains(&code.read())
            && (of as *const u32).read() == VM_ARRAY_CALL_HOST_FUNC_MAGIC;
        debug_assert!(expected, "instances are laid out otherwise");
        if expected {
            guest.trampoline.far.set(code.read());
            code.write(enter as *const () as usize);
        }
    }
}

/// The values that [`enter`] leaves on the stack.
#[repr(C)]
struct Frame {
    values: [Word; 6],
    callee: usize,
    caller: usize,
    number: u64,
}

const _: () = assert!(size_of::<Word>() == 16 && offset_of!(Frame, number) == 112);

/// The target of `lind.syscall` in compiled code: (its own instance, the caller's, number, six
/// values).
///
/// # Safety
/// Only called by compiled code of a Guest's Store.
#[unsafe(naked)]
unsafe extern "C" fn enter() {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "sub rsp, 128",
        "mov [rsp], rcx",
        "mov [rsp + 16], r8",
        "mov [rsp + 32], r9",
        "mov rax, [rbp + 16]",
        "mov rcx, [rbp + 24]",
        "mov r8, [rbp + 32]",
        "mov [rsp + 48], rax",
        "mov [rsp + 64], rcx",
        "mov [rsp + 80], r8",
        "mov [rsp + 96], rdi",
        "mov [rsp + 104], rsi",
        "mov [rsp + 112], rdx",
        "mov rdi, rsp",
        "call {make}",
        "test rdx, rdx",
        "jne 2f",
        "leave",
        "ret 32",
        // Goes on to the trampoline, with the arguments unchanged.
        "2:",
        "mov rcx, [rsp]",
        "mov r8, [rsp + 16]",
        "mov r9, [rsp + 32]",
        "mov rdi, [rsp + 96]",
        "mov rsi, [rsp + 104]",
        "mov rdx, [rsp + 112]",
        "leave",
        "jmp rax",
        make = sym make,
    )
}

/// The guest of an instance whose code has made a call.
///
/// # Safety
/// It stays at that call for as long as the result lives.
unsafe fn guest_of<'g>(instance: usize) -> &'g Guest {
    // SAFETY: `connect` has found the Store's data there, which no one borrows mutably while its
    // code runs.
    unsafe { &**((*((instance + CONTEXT) as *const usize) + DATA) as *const *const Guest) }
}

/// The guest's result, or the address where it goes on if `far` is not 0.
#[repr(C)]
struct Back {
    answer: u64,
    far: u64,
}

/// Makes a call. If the thread has other work afterwards, the call goes on through the trampoline.
extern "C" fn make(frame: &Frame) -> Back {
    // SAFETY: `enter` has made the frame.
    let guest = unsafe { guest_of(frame.caller) };
    context::enter_host();
    #[allow(
        clippy::cast_possible_truncation,
        reason = "compiled code passes 32 bits, and leaves the others as they were"
    )]
    let result = call::syscall(guest, frame.number as u32, &frame.values);
    if guest.thread.attention() != 0 {
        std::hint::cold_path();
        guest.trampoline.result.set(Some(result));
        return Back { answer: guest.trampoline.far.get() as u64, far: 1 };
    }
    context::enter_guest(guest.base);
    Back { answer: result.cast_unsigned(), far: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_have_their_store_where_it_is_looked_for() {
        assert_eq!(usize::from(HostPtr.vmctx_store_context()), CONTEXT);
        assert_eq!(usize::from(HostPtr.vm_store_context().store_data()), DATA);
    }
}
