//! Faults of guest code that Wasmtime does not turn into traps by itself.
//!
//! Wasmtime handles SIGSEGV at instructions it compiled as able to trap. Left over are: bulk memory instructions, which
//! run in library routines; short constant copies, which it compiles as unable to trap because it knows no pages
//! but accessible ones; and SIGBUS. All of these continue at the module's landing pad, an `unreachable` that
//! [`crate::validate`] adds to every module, so that the engine unwinds an ordinary trap; the signal is kept here.
//!
//! This leaves the library routines' frames without running anything. Sound while those frames own nothing, which
//! is to be checked at every upgrade of Wasmtime: in 48, `memory_copy` and `memory_fill` of its `libcalls.rs`.
//! It must not happen in our own host code, so [`enter_host`] and [`enter_guest`] mark on which side a thread is.

use std::cell::Cell;
use std::ops::Range;

use lind_kernel::cage::{Attention, Thread};
use lind_kernel::mem::{Fault, install_fault_handler};

use crate::memory::{GUARD, SPACE};

/// What the handler has to know about the guest code on this thread.
struct Running {
    /// Host address of the guest's address 0 while guest code runs, 0 while host code does.
    base: Cell<usize>,
    /// The guest whose code it is; null if none is on this stack.
    guest: Cell<*const Inside>,
    /// The signal of the fault that is being unwound; 0 if none.
    signal: Cell<i32>,
}

/// A guest whose code is on the stack of this thread.
struct Inside {
    code: *const Code,
    thread: *const Thread,
}

thread_local! {
    static RUNNING: Running = const {
        Running { base: Cell::new(0), guest: Cell::new(std::ptr::null()), signal: Cell::new(0) }
    };
}

/// The machine code of a program, as far as faults matter.
#[derive(Clone, Debug)]
pub struct Code {
    /// Where its machine code is.
    pub text: Range<usize>,
    /// The part of it that was compiled from functions, without the trampolines.
    pub functions: Range<usize>,
    /// The address of its `unreachable`.
    pub landing: usize,
}

/// Runs `run`, which enters code of the guest at `base`, and knows whose code it is meanwhile.
///
/// # Safety
/// `code` and `thread` are valid until `run` returns.
#[inline]
pub unsafe fn inside<R>(base: usize, code: *const Code, thread: *const Thread, run: impl FnOnce() -> R) -> R {
    // Lives on this stack below everything that can look at it, and is forgotten before it goes.
    let inside = Inside { code, thread };
    let (outer_base, outer) = RUNNING.with(|running| (running.base.replace(base), running.guest.replace(&raw const inside)));
    let result = run();
    RUNNING.with(|running| {
        running.base.set(outer_base);
        running.guest.set(outer);
    });
    result
}

/// Marks that host code runs: a fault from here on is a bug of ours.
#[inline]
pub fn enter_host() {
    RUNNING.with(|running| running.base.set(0));
}

/// Marks that guest code goes on.
#[inline]
pub fn enter_guest(base: usize) {
    RUNNING.with(|running| running.base.set(base));
}

/// The signal behind the trap that was just unwound, if it came by way of the landing pad.
pub fn take_signal() -> Option<i32> {
    let signal = RUNNING.with(|running| running.signal.replace(0));
    (signal != 0).then_some(signal)
}

/// Installs the process's handlers.
pub fn install() {
    install_fault_handler(Some(on_fault));
}

fn on_fault(fault: &mut Fault) -> bool {
    RUNNING.with(|running| {
        let base = running.base.get();
        let start = (base as u64).wrapping_sub(GUARD);
        if base == 0 || (fault.address as u64).wrapping_sub(start) >= SPACE + 2 * GUARD {
            return false;
        }
        // SAFETY: `base` is not 0, so `inside` is running further up this stack and its guest and code are alive.
        let code = unsafe { &*(*running.guest.get()).code };
        if !code.text.contains(&fault.pc()) {
            let Some(fp) = guest_frame(fault, &code.text) else { return false };
            // SAFETY: `fp` is a frame of compiled code further down this stack, which is what the unwinder expects there.
            unsafe { fault.set_fp(fp) };
        }
        running.signal.set(fault.signal);
        // SAFETY: the landing pad raises a trap, and Wasmtime unwinds that to the entry of this guest's code without
        // looking at other registers. Frames in between are compiled code's, or the routines' named above.
        unsafe { fault.resume_at(code.landing) };
        true
    })
}

/// In a signal handler: if the thread runs a function of a guest whose cage has ended, makes it leave by a trap.
///
/// # Safety
/// `context` is the handler's.
pub unsafe fn leave_ended_guest(context: *mut libc::ucontext_t) {
    RUNNING.with(|running| {
        if running.base.get() == 0 {
            return;
        }
        // SAFETY: as in `on_fault`; the thread is alive as long as its code is on the stack. The context is the caller's
        // to give.
        unsafe {
            let inside = &*running.guest.get();
            let pc = &mut (&mut (*context).uc_mcontext.gregs)[libc::REG_RIP as usize];
            let in_function = (*inside.code).functions.contains(&(pc.cast_unsigned() as usize));
            // Trampolines are left alone: what the unwinder goes back to may not be in place there yet.
            if in_function && (*inside.thread).attention() & Attention::ENDING != 0 {
                *pc = ((*inside.code).landing as u64).cast_signed();
            }
        }
    });
}

/// The frame of the compiled code that called the routine in which the fault happened.
fn guest_frame(fault: &Fault, text: &Range<usize>) -> Option<usize> {
    /// The routines are shallow; what is further away is not theirs.
    const REACH: usize = 64 << 10;
    let mut fp = fault.fp();
    for _ in 0..16 {
        let near = fp >= fault.sp() && fp - fault.sp() < REACH && fp.is_multiple_of(8);
        if !near {
            return None;
        }
        // SAFETY: `fp` is at most 64 KiB above the stack pointer, and every entry into guest code leaves more than that of
        // the host stack below itself, so both words are in this thread's stack.
        let (older, ret) = unsafe { (*(fp as *const usize), *((fp + 8) as *const usize)) };
        if text.contains(&ret) {
            return Some(older);
        }
        fp = older;
    }
    None
}
