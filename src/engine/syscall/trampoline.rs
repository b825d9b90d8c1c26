//! The way of system calls from compiled code to the kernel and back, without the engine's trampoline.
//!
//! `lind.syscall` leads to [`enter`] here, which hands the call to the kernel in a few instructions, and the answer back. What the thread has to do
//! besides (run signal handlers, leave, bring a child to life) needs a Store that can be unwound: then the call goes on to the trampoline as it
//! came, with a note how far it has come.
//!
//! Calls that move data are made by [`enter`] itself: the host's kernel leaves the processor (of the makes that need it) mispredicting the return from
//! every function that was open across a system call, about 8 ns each. So the kernel says what host call the guest's comes to, and is
//! left before that is made; and the way back to the guest is a jump.
//!
//! That replaces a pointer in an instance, where compiled code has the functions it imports. To check when Wasmtime is upgraded: the calling
//! convention `Tail` (the first six arguments in registers and the rest on the stack, from where who is called takes them), which no test
//! would survive; and the layout, which [`connect`] checks: where it is not as expected, calls go by the trampoline.

use std::arch::naked_asm;
use std::cell::Cell;
use std::mem::offset_of;
use std::sync::Arc;

use lind_abi::{Word, nr};
use lind_kernel::call::{self, Begun, HostCall, Progress};
use wasmtime::{ExternType, Instance, Module, Result, Store};
use wasmtime_environ::{FuncIndex, HostPtr, PtrSize, VM_ARRAY_CALL_HOST_FUNC_MAGIC, VMOffsets, VMOffsetsFields};

use crate::run::guest::Guest;
use crate::run::program::Image;
use crate::signal::context::{self, Callee};
use crate::space::memory;

/// Of an instance: the pointer to its Store's context; and of that: the pointer to the Store's data.
const CONTEXT: usize = 8;
const DATA: usize = 104;

/// A bit for each number.
const NUMBERS: u32 = 1 << nr::read | 1 << nr::write | 1 << nr::pread64 | 1 << nr::pwrite64;
const LAST: u32 = nr::pwrite64;

/// Where the instances of a module have `lind.syscall`.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    code: usize,
    instance: usize,
}

/// What a Guest keeps for the calls that go this way.
#[derive(Debug)]
pub struct OfGuest {
    /// The trampoline for `lind.syscall`.
    far: Cell<usize>,
    /// How far a call has come that goes on by the trampoline.
    progress: Cell<Progress>,
}

impl Default for OfGuest {
    fn default() -> OfGuest {
        OfGuest { far: Cell::new(0), progress: Cell::new(Progress::New) }
    }
}

impl OfGuest {
    /// How far the call has come that has come by the trampoline.
    #[inline(always)]
    pub fn progress(&self) -> Progress {
        let progress = self.progress.get();
        if progress != Progress::New {
            std::hint::cold_path();
            self.progress.set(Progress::New);
        }
        progress
    }
}

impl Import {
    /// None if the module does not import it.
    pub fn of(module: &Module) -> Option<Import> {
        let mut functions = module.imports().filter(|import| matches!(import.ty(), ExternType::Func(_)));
        let at = functions.position(|import| (import.module(), import.name()) == ("lind", "syscall"))?;
        let index = FuncIndex::from_u32(u32::try_from(at).ok()?);
        // What lies before the functions is known: one memory of its own. What comes behind them does not matter.
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
/// As `InstancePre::instantiate`.
pub fn instantiate(store: &mut Store<Guest>, image: &Image) -> Result<Instance> {
    let memory = Arc::clone(&store.data().thread.cage.memory);
    let instance = memory::adopting(&memory, || image.program.instantiate(&mut *store))?;
    connect(store, &instance, image);
    Ok(instance)
}

/// Puts [`enter`] before the trampoline of `lind.syscall`, if all is where it is expected.
fn connect(store: &mut Store<Guest>, instance: &Instance, image: &Image) {
    let Some(import) = image.near else { return };
    let Some(start) = instance.get_func(&mut *store, "_start") else { return };
    let Some(Callee { instance, .. }) = Callee::raw(&start, store) else { return };
    let guest = store.data();
    let word = |at: usize| at as *mut usize;
    // SAFETY: the address is that of an instance, which starts with fixed fields, and has an entry for each function that it imports where
    // its layout says; all of it is the Store's, whose code does not run.
    unsafe {
        let (code, of) = (word(instance + import.code), word(instance + import.instance).read());
        let expected = usize::from(HostPtr.vmctx_store_context()) == CONTEXT
            && usize::from(HostPtr.vm_store_context().store_data()) == DATA
            && word(*word(instance + CONTEXT) + DATA).read() == std::ptr::from_ref(guest) as usize
            && image.code.text.contains(&code.read())
            && (of as *const u32).read() == VM_ARRAY_CALL_HOST_FUNC_MAGIC;
        debug_assert!(expected, "instances are laid out otherwise");
        if expected {
            guest.near.far.set(code.read());
            code.write(enter as *const () as usize);
        }
    }
}

/// What [`enter`] leaves on the stack.
#[repr(C)]
struct Frame {
    host: HostCall,
    callee: usize,
    caller: usize,
    number: u64,
    first: [u64; 3],
    far: usize,
    fp: usize,
    return_to: usize,
    /// What the caller has left there.
    rest: [u64; 3],
}

const _: () = assert!(offset_of!(Frame, fp) == 96 && size_of::<HostCall>() == 40);

/// Where compiled code goes for `lind.syscall`: (its own instance, the caller's, number, six values).
///
/// # Safety
/// Only called by compiled code of a Guest's Store.
#[unsafe(naked)]
unsafe extern "C" fn enter() {
    naked_asm!(
        "cmp edx, {last}",
        "ja 2f",
        "mov eax, {numbers}",
        "bt eax, edx",
        "jnc 2f",
        "push rbp",
        "mov rbp, rsp",
        "sub rsp, 96",
        "mov [rsp + 40], rdi",
        "mov [rsp + 48], rsi",
        "mov [rsp + 56], rdx",
        "mov [rsp + 64], rcx",
        "mov [rsp + 72], r8",
        "mov [rsp + 80], r9",
        "mov rdi, rsp",
        "call {begin}",
        "cmp al, {host}",
        "jb 3f",
        "ja 4f",
        "mov rax, [rsp]",
        "mov rdi, [rsp + 8]",
        "mov rsi, [rsp + 16]",
        "mov rdx, [rsp + 24]",
        "mov r10, [rsp + 32]",
        "syscall",
        "mov [rsp], rax",
        "mov rdi, rsp",
        "call {end}",
        "test al, al",
        "je 3f",
        "mov rax, [rsp]",
        "leave",
        // What a return would be, but for the processor's list of where returns lead.
        "pop rcx",
        "add rsp, 32",
        "jmp rcx",
        // No host call lies behind it: the processor knows where this return leads.
        "4:",
        "mov rax, [rsp]",
        "leave",
        "ret 32",
        // All others.
        "2:",
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
        "call {other}",
        "test rdx, rdx",
        "jne 5f",
        "leave",
        "ret 32",
        "5:",
        "mov rcx, [rsp]",
        "mov r8, [rsp + 16]",
        "mov r9, [rsp + 32]",
        "mov rdi, [rsp + 96]",
        "mov rsi, [rsp + 104]",
        "mov rdx, [rsp + 112]",
        "leave",
        "jmp rax",
        // As it came.
        "3:",
        "mov rdi, [rsp + 40]",
        "mov rsi, [rsp + 48]",
        "mov rdx, [rsp + 56]",
        "mov rcx, [rsp + 64]",
        "mov r8, [rsp + 72]",
        "mov r9, [rsp + 80]",
        "mov rax, [rsp + 88]",
        "leave",
        "jmp rax",
        last = const LAST,
        numbers = const NUMBERS,
        host = const Way::Host as u8,
        begin = sym begin,
        end = sym end,
        other = sym other,
    )
}

/// The guest of an instance whose code has made a call.
///
/// # Safety
/// It is at that call for as long as what is returned lives.
unsafe fn guest_of<'g>(instance: usize) -> &'g Guest {
    // SAFETY: `connect` has found the Store's data there, which no one borrows mutably while its code runs.
    unsafe { &**((*((instance + CONTEXT) as *const usize) + DATA) as *const *const Guest) }
}

/// What [`enter`] leaves on the stack for a call that is not to go by host calls of its own.
#[repr(C)]
struct Other {
    values: [Word; 6],
    callee: usize,
    caller: usize,
    number: u64,
}

const _: () = assert!(size_of::<Word>() == 16 && offset_of!(Other, number) == 112);

/// What the guest sees, or where it goes on if `far` is not 0.
#[repr(C)]
struct Back {
    answer: u64,
    far: u64,
}

/// Makes a call. It goes by the trampoline then if the thread has other things to do.
extern "C" fn other(frame: &Other) -> Back {
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
        guest.near.progress.set(Progress::Answered(result));
        return Back { answer: guest.near.far.get() as u64, far: 1 };
    }
    context::enter_guest(guest.base);
    Back { answer: result.cast_unsigned(), far: 0 }
}

/// How [`enter`] goes on.
#[repr(u8)]
enum Way {
    /// By the trampoline.
    Far,
    /// With the host call that stands in the frame.
    Host,
    /// Back to the guest, with the answer that stands in the frame.
    Back,
}

extern "C" fn begin(frame: &mut Frame) -> Way {
    // SAFETY: `enter` has made the frame.
    let guest = unsafe { guest_of(frame.caller) };
    context::enter_host();
    frame.far = guest.near.far.get();
    let ([a, b, c], [d, e, f]) = (frame.first, frame.rest);
    #[allow(clippy::cast_possible_truncation, reason = "`enter` has compared it")]
    match call::begin_transfer(guest, frame.number as u32, [a, b, c, d, e, f]) {
        Begun::Host(host) => {
            frame.host = host;
            Way::Host
        }
        Begun::Answered(result) => {
            frame.host[0] = result.cast_unsigned();
            if guest.thread.attention() != 0 {
                std::hint::cold_path();
                guest.near.progress.set(Progress::Answered(result));
                return Way::Far;
            }
            context::enter_guest(guest.base);
            Way::Back
        }
        Begun::Further(progress) => {
            guest.near.progress.set(progress);
            Way::Far
        }
    }
}

/// Whether that is all. Where the host's answer is an error, or the thread has other things to do first, it goes by the trampoline.
extern "C" fn end(frame: &mut Frame) -> bool {
    // SAFETY: `enter` has made the frame.
    let guest = unsafe { guest_of(frame.caller) };
    call::end_transfer(guest);
    let answer = frame.host[0].cast_signed();
    if answer < 0 || guest.thread.attention() != 0 {
        std::hint::cold_path();
        guest.near.progress.set(Progress::Host(answer));
        return false;
    }
    context::enter_guest(guest.base);
    true
}
