//! Filters: functions of grates that decide calls by computing alone, and are asked before a
//! handler is entered.
//!
//! `__lind_filter(client, nr, 6 values)` is called with the client's id and the unchanged call. It
//! returns what the handler of entry `__lind_filtered()` would return: a result,
//! [`PASS`](lind_abi::PASS), or [`ASK`](lind_abi::ASK) to have that handler entered after all. A
//! module is refused unless its filter and all functions that it calls only compute and load
//! ([`crate::code::filter_verifier`]).
//!
//! Entering a Store costs a hundred instructions, which prepare for traps, exceptions and calls of
//! the host. A filter has none of these but traps, and a trap is a signal: so its code is called
//! like any other, and any signal that comes while it runs (a fault, or one that is to interrupt
//! the thread) continues behind that call, with the stack as it was before. The filter holds
//! nothing and has changed nothing, so nothing is lost: the handler decides.
//!
//! To check when Wasmtime is upgraded: Cranelift's calling convention `Tail` (the tests fail if it
//! is another one), and that compiled code of this kind reads nothing of its Store but the limit of
//! the stack.

#![allow(unsafe_code)]

use std::arch::naked_asm;
use std::cell::Cell;
use std::ptr::NonNull;

use lind_abi::{ASK, CageId, Word};
use wasmtime::{Func, Instance, Store};
use wasmtime_environ::{HostPtr, PtrSize};

use crate::code::manifest::{FILTER, FILTERED};
use crate::run::guest::Guest;
use crate::signal::context::Callee;

/// Host stack that a filter may use; it is part of the stack that the host reserves for itself
/// below guest code.
const STACK: usize = 64 << 10;

/// A worker's filter. Its Store must not be entered while it runs.
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    /// The entry of the handler in whose place it decides.
    pub entry: u32,
    code: usize,
    instance: NonNull<u8>,
    /// The Store's word for the lowest address that its code may push to; `usize::MAX` while it has
    /// no code on the stack.
    limit: NonNull<usize>,
}

/// The filter that runs on a thread.
struct Running {
    /// The stack pointer for leaving the filter; 0 while none runs.
    stack: Cell<usize>,
    /// The signal that ended the last filter.
    signal: Cell<i32>,
}

thread_local! {
    static RUNNING: Running = const { Running { stack: Cell::new(0), signal: Cell::new(0) } };
}

impl Filter {
    /// The filter of a worker's instance, if its program has one.
    ///
    /// # Errors
    /// A trap of the function that returns the filter's entry.
    pub fn find(store: &mut Store<Guest>, instance: &Instance) -> wasmtime::Result<Option<Filter>> {
        let Some(function) = instance.get_func(&mut *store, FILTER) else { return Ok(None) };
        let entry = instance.get_typed_func::<(), u32>(&mut *store, FILTERED)?.call(&mut *store, ())?;
        Ok(Filter::of(store, &function, entry))
    }

    fn of(store: &mut Store<Guest>, function: &Func, entry: u32) -> Option<Filter> {
        let Callee { code, instance } = Callee::raw(function, store)?;
        let instance = NonNull::new(instance as *mut u8)?;
        // SAFETY: an instance has a pointer to its Store's context at this offset, and the context
        // a word for the limit.
        let limit = unsafe {
            let context = instance.add(HostPtr.vmcontext_store_context().into()).cast::<NonNull<u8>>().read();
            context.add(HostPtr.vm_store_context().stack_limit().into()).cast::<usize>()
        };
        // SAFETY: as above.
        (unsafe { limit.read() } == usize::MAX).then_some(Filter { entry, code, instance, limit })
    }

    /// The filter's decision about a call that `client` makes on itself. [`ASK`] also if a signal
    /// ended the filter: [`left_by`] then returns the signal.
    #[inline(always)]
    pub fn ask(&self, client: CageId, nr: u32, values: &[Word; 6]) -> i64 {
        let here = 0_u8;
        let bottom = (&raw const here as usize).saturating_sub(STACK);
        RUNNING.with(|running| {
            // SAFETY: the type of the function was checked when it was compiled, and `find` has
            // found it; the Store is not entered, since its worker is idle and owned by this thread
            // alone. The limit gets the value that Wasmtime would store, and the host's own part of
            // the stack is below it.
            unsafe {
                self.limit.write(bottom);
                let result = enter(self.code, self.instance, client.0, nr, values, running.stack.as_ptr());
                self.limit.write(usize::MAX);
                result
            }
        })
    }
}

/// The signal that ended the filter that was asked last on this thread.
pub fn left_by() -> Option<i32> {
    RUNNING.with(|running| Some(running.signal.take()).filter(|signal| *signal != 0))
}

/// In a signal handler: makes the filter that runs on this thread return at once, if one does.
///
/// # Safety
/// `context` is the handler's.
pub unsafe fn leave(context: *mut libc::ucontext_t, signal: i32) -> bool {
    RUNNING.with(|running| {
        let stack = running.stack.get();
        if stack == 0 {
            return false;
        }
        running.signal.set(signal);
        // SAFETY: the caller vouches for the context. The stack pointer is that of `enter` on this
        // stack, which waits for the filter.
        let registers = unsafe { &mut (*context).uc_mcontext.gregs };
        let mut set = |register: i32, value: i64| registers[register.unsigned_abs() as usize] = value;
        set(libc::REG_RAX, ASK);
        set(libc::REG_RSP, (stack as u64).cast_signed());
        set(libc::REG_RIP, (finish as *const () as u64).cast_signed());
        true
    })
}

// The layout that `enter` reads.
const _: () = assert!(size_of::<Word>() == 16 && std::mem::offset_of!(Word, value) == 0);

/// Calls compiled code as compiled code does: the instance (also as the caller's), and then the
/// arguments, in the order of the System V ABI, except that the callee pops those on the stack.
/// Until it has returned, `stack` holds the stack pointer for leaving it.
///
/// # Safety
/// `code` may be called in this way, and holds nothing at any instruction.
#[unsafe(naked)]
unsafe extern "C" fn enter(
    code: usize,
    instance: NonNull<u8>,
    client: u32,
    nr: u32,
    values: &[Word; 6],
    stack: *mut usize,
) -> i64 {
    // All registers that a function has to keep for its caller are on the stack before `stack` is
    // set, and the address of `stack` itself above them.
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "push r9",
        "mov [r9], rsp",
        "push [r8 + 80]",
        "push [r8 + 64]",
        "push [r8 + 48]",
        "push [r8 + 32]",
        "mov r9, [r8 + 16]",
        "mov r8, [r8]",
        "mov rax, rdi",
        "mov rdi, rsi",
        "call rax",
        "jmp {finish}",
        finish = sym finish,
    )
}

/// The end of `enter`, with the stack as it was when `stack` was set: a filter that is left goes on
/// here as well.
///
/// # Safety
/// Reached by jumps only.
#[unsafe(naked)]
unsafe extern "C" fn finish() {
    naked_asm!(
        "pop rbx",
        "mov qword ptr [rbx], 0",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}
