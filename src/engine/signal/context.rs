//! Handles those faults of guest code that Wasmtime does not turn into traps.
//!
//! Wasmtime handles SIGSEGV at instructions that it compiled as able to trap. The others are: bulk
//! memory instructions, which run in library routines; short constant copies, which it compiles as
//! unable to trap because all pages are accessible to its knowledge; and SIGBUS. All of these
//! continue at the module's landing pad, an `unreachable` that [`crate::code::validate`] adds to
//! every module, so that the engine unwinds an ordinary trap; the signal is kept here.
//!
//! This leaves the library routines' frames without running anything. It is sound while those
//! frames own nothing, which is to be checked at every upgrade of Wasmtime: in 48, `memory_copy`
//! and `memory_fill` of its `libcalls.rs`. It must not happen in our own host code, so
//! [`enter_host`] and [`enter_guest`] mark on which side a thread is.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{Ordering, compiler_fence};

use lind_kernel::mem::{Fault, install_fault_handler};

use wasmtime::{Func, Store};
use wasmtime_environ::{HostPtr, PtrSize};

use crate::code::engines::{GUARD, SPACE};
use crate::code::jump_table::Jumps;
use crate::code::trap_table::Traps;
use crate::run::guest::Guest;

/// The facts that the handler needs about the guest code on this thread.
struct Running {
    /// Host address of the guest's address 0 while guest code runs, 0 while host code does.
    base: Cell<usize>,
    /// The guest whose code it is; null if none is on this stack.
    guest: Cell<*const Inside>,
    /// The signal of the fault that is being unwound; 0 if none.
    signal: Cell<i32>,
}

/// A guest whose code is on the stack of this thread.
pub struct Inside {
    guest: *const Guest,
}

thread_local! {
    static RUNNING: Running = const {
        Running { base: Cell::new(0), guest: Cell::new(std::ptr::null()), signal: Cell::new(0) }
    };
}

/// The machine code of a program, as far as faults matter.
#[derive(Clone, Debug)]
pub struct Code {
    /// The address range of its machine code.
    pub text: Range<usize>,
    /// The part of it that was compiled from functions, without the trampolines.
    pub functions: Range<usize>,
    /// The address of its `unreachable`.
    pub landing: usize,
    /// The meanings of its instructions that do nothing but trap.
    pub traps: Traps,
    /// The functions that call setjmp.
    pub jumps: Jumps,
}

impl Inside {
    /// A guest whose code the host is about to enter.
    #[inline(always)]
    pub fn new(guest: *const Guest) -> Inside {
        Inside { guest }
    }

    /// Marks that its code runs. The result has to be passed to [`leave`].
    ///
    /// # Safety
    /// Host code calls this, and calls [`leave`] before `self` or the guest is dropped. Meanwhile
    /// only cells of the guest change, and `self` lies on this stack below every call that enters
    /// the guest's code.
    #[inline(always)]
    pub unsafe fn enter(&self) -> Outside {
        // SAFETY: the caller's promise.
        let base = unsafe { (&raw const (*self.guest).base).read() };
        RUNNING.with(|running| {
            debug_assert_eq!(running.base.get(), 0, "guest code is entered by host code");
            let outside = Outside(running.guest.replace(self));
            // A signal may come between the two, and its handler looks for a guest where there is a
            // base.
            compiler_fence(Ordering::SeqCst);
            running.base.set(base);
            outside
        })
    }
}

/// The guest whose code was left for that of another, further down the stack.
pub struct Outside(*const Inside);

/// Marks that the code of the guest that was entered last has been left.
#[inline(always)]
pub fn leave(outside: Outside) {
    RUNNING.with(|running| {
        running.base.set(0);
        compiler_fence(Ordering::SeqCst);
        running.guest.set(outside.0);
    });
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
        let inside = running.guest.get();
        // SAFETY: `base` is not 0, so `inside` is running further up this stack, and its guest and
        // code are alive.
        let code = unsafe { &(&*(*inside).guest).linked.code };
        if !code.text.contains(&fault.pc()) {
            let Some(from) = Called::find(fault.sp(), fault.fp(), &code.text, inside as usize) else { return false };
            // SAFETY: `fp` is a frame of compiled code above on this stack, which is what the
            // unwinder expects there.
            unsafe { fault.set_fp(from.fp) };
        }
        running.signal.set(fault.signal);
        // SAFETY: the landing pad raises a trap, and Wasmtime unwinds that to the entry of this
        // guest's code without looking at other registers. Frames in between are compiled code's,
        // or the routines' named above.
        unsafe { fault.resume_at(code.landing) };
        true
    })
}

/// Guest code that a host signal has interrupted in the middle of a function.
pub struct Computing<'a> {
    /// The guest whose code it is.
    pub guest: &'a Guest,
    registers: &'a mut [i64],
    landing: usize,
    /// The call of the routine that executes the instruction, if it is in one.
    routine: Option<Called>,
}

/// A function of an instance, as compiled code calls it.
#[derive(Clone, Copy, Debug)]
pub struct Callee {
    /// Its machine code.
    pub code: usize,
    /// The instance.
    pub instance: usize,
}

impl<'a> Computing<'a> {
    /// In a signal handler: the code of the thread, if it was computing in a function of a guest.
    /// Elsewhere (host code, library routines, trampolines) nothing may be done: locks may be held,
    /// frames may be incomplete.
    ///
    /// # Safety
    /// `context` is the handler's, and the result lives no longer than it.
    pub unsafe fn find(context: *mut libc::ucontext_t) -> Option<Computing<'a>> {
        // SAFETY: the caller's promise.
        let found = unsafe { Computing::any(context) }?;
        found.guest.linked.code.functions.contains(&found.pc()).then_some(found)
    }

    /// In a signal handler after a fault at an address of the guest's: like `find`, for a fault in
    /// a library routine that copies or fills memory for the guest. The routine holds nothing, like
    /// a host function that has called back.
    ///
    /// # Safety
    /// See `find`.
    pub unsafe fn find_in_routine(context: *mut libc::ucontext_t) -> Option<Computing<'a>> {
        // SAFETY: the caller's promise.
        let mut found = unsafe { Computing::any(context) }?;
        let text = &found.guest.linked.code.text;
        if text.contains(&found.pc()) {
            return None;
        }
        let above = RUNNING.with(|running| running.guest.get() as usize);
        let from = Called::find(found.get(libc::REG_RSP), found.get(libc::REG_RBP), text, above)?;
        found.routine = Some(from);
        Some(found)
    }

    /// The guest that the thread is in, at whatever instruction.
    ///
    /// # Safety
    /// See `find`.
    unsafe fn any(context: *mut libc::ucontext_t) -> Option<Computing<'a>> {
        RUNNING.with(|running| {
            if running.base.get() == 0 {
                return None;
            }
            // SAFETY: `base` is not 0, so `inside` is running further up this stack, and with it
            // the guest and its code, which no one else borrows while guest code runs. The context
            // is the caller's to give.
            unsafe {
                let inside = &*running.guest.get();
                let guest = &*inside.guest;
                let code = &guest.linked.code;
                let registers = &mut (&mut (*context).uc_mcontext.gregs)[..];
                Some(Computing { guest, registers, landing: code.landing, routine: None })
            }
        })
    }

    /// The offset of the instruction in the program's code.
    pub fn offset(&self) -> Option<u32> {
        u32::try_from(self.pc() - self.guest.linked.code.text.start).ok()
    }

    /// The signal of the instruction, if it does nothing but trap.
    pub fn trap(&self) -> Option<u8> {
        self.guest.linked.code.traps.signal(self.offset()?)
    }

    fn pc(&self) -> usize {
        self.get(libc::REG_RIP)
    }

    #[allow(clippy::cast_possible_truncation, reason = "x86-64 only")]
    fn get(&self, register: i32) -> usize {
        self.registers[register.unsigned_abs() as usize].cast_unsigned() as usize
    }

    fn set(&mut self, register: i32, value: usize) {
        self.registers[register.unsigned_abs() as usize] = (value as u64).cast_signed();
    }

    /// Whether its function catches nothing at this place, and soon comes to a call where it does.
    pub fn catches_soon(&self) -> bool {
        self.routine.is_none() && self.offset().is_some_and(|at| self.guest.linked.code.jumps.contain(at))
    }

    /// Makes the code continue at its landing pad: a trap leaves it.
    pub fn leave(mut self) {
        if let Some(from) = self.routine {
            self.set(libc::REG_RBP, from.fp);
        }
        self.set(libc::REG_RIP, self.landing);
    }

    /// Whether the function has its frame: it is neither just entered nor about to return.
    pub fn has_frame(&self) -> bool {
        if self.routine.is_some() {
            return true;
        }
        const PUSH_FP: &[u8] = &[0x55];
        const SET_FP: &[u8] = &[0x48, 0x89, 0xe5];
        const POP_FP: &[u8] = &[0x5d];
        const RETURN: &[u8] = &[0xc3];
        // A return that takes the arguments off the stack.
        const RETURN_FROM: &[u8] = &[0xc2];
        // SAFETY: machine code is readable, and no function of a module ends within three bytes of
        // the code's end: the landing pad is behind all others, and longer.
        let next = unsafe { std::slice::from_raw_parts(self.pc() as *const u8, 3) };
        ![PUSH_FP, SET_FP, POP_FP, RETURN, RETURN_FROM].iter().any(|start| next.starts_with(start))
    }

    /// Makes the code continue as if it had just called a function with two numbers. The function
    /// must not return, since the code was not at a call and its registers are lost. It may throw.
    pub fn call(mut self, callee: Callee, arguments: [u32; 2]) {
        const RED_ZONE: usize = 128;
        // The stack of a callee: aligned to 16 but for the return address.
        let stack = ((self.get(libc::REG_RSP) - RED_ZONE) & !15) - 8;
        let mut return_to = self.pc();
        if let Some(from) = self.routine {
            // The routine's frames are left, as at the landing pad.
            self.set(libc::REG_RBP, from.fp);
            return_to = from.return_to;
        }
        // SAFETY: it is free stack below a frame of compiled code, which keeps at least the
        // kernel's share of the stack free below it.
        unsafe { *(stack as *mut usize) = return_to };
        self.set(libc::REG_RSP, stack);
        self.set(libc::REG_RIP, callee.code);
        // Compiled code takes its own instance, the caller's, and then the arguments, in the order
        // of the System V ABI.
        self.set(libc::REG_RDI, callee.instance);
        self.set(libc::REG_RSI, callee.instance);
        self.set(libc::REG_RDX, arguments[0] as usize);
        self.set(libc::REG_RCX, arguments[1] as usize);
    }
}

impl Callee {
    /// A function that the program itself defines, of type (i32, i32) -> (): for
    /// [`Computing::call`].
    pub fn of(function: &Func, store: &mut Store<Guest>) -> Option<Callee> {
        function.typed::<(u32, u32), ()>(&*store).ok()?;
        Callee::raw(function, store)
    }

    /// A function of any type that the program itself defines.
    pub fn raw(function: &Func, store: &mut Store<Guest>) -> Option<Callee> {
        let raw = function.to_raw(&mut *store).cast::<u8>();
        let of = HostPtr.vm_func_ref();
        let word = |at: u8| {
            // SAFETY: a function's raw form is a pointer to its VMFuncRef, which lives as long as
            // the Store and has words there.
            unsafe { raw.add(at.into()).cast::<usize>().read() }
        };
        let callee = Callee { code: word(of.wasm_call()), instance: word(of.vmctx()) };
        // A Wasmtime with another layout would give an address outside the program's own functions.
        store.data().linked.code.functions.contains(&callee.code).then_some(callee)
    }
}

/// The place where compiled code called a routine.
#[derive(Clone, Copy, Debug)]
struct Called {
    /// The frame of the code.
    fp: usize,
    /// The address where it goes on.
    return_to: usize,
}

impl Called {
    /// Finds the call of the routine in which a thread is.
    ///
    /// Host code need not keep frame pointers, so the register may hold anything. But the routine
    /// was called through a trampoline, whose frame (its caller's frame pointer and a return
    /// address in compiled code) lies not far above the stack pointer. A value that looks like one
    /// is accepted if all frames from there up to the entry into guest code are consistent.
    fn find(sp: usize, fp: usize, text: &Range<usize>, entered_above: usize) -> Option<Called> {
        /// The routines are shallow, even in a build without optimization.
        const REACH: usize = 16 << 10;
        let stack = Stack { low: sp.next_multiple_of(8), high: entered_above };
        let near = (stack.low..stack.high.min(stack.low + REACH)).step_by(8);
        std::iter::once(fp).chain(near).find_map(|frame| {
            let (older, return_to) = stack.frame(frame)?;
            let holds = text.contains(&return_to) && stack.reaches_entry(older, text);
            holds.then_some(Called { fp: older, return_to })
        })
    }
}

/// The part of this thread's stack from the fault up to where guest code was entered.
struct Stack {
    low: usize,
    high: usize,
}

impl Stack {
    /// The two words of a frame: the older frame's pointer, and the return address.
    fn frame(&self, fp: usize) -> Option<(usize, usize)> {
        if fp < self.low || fp.checked_add(16)? > self.high || !fp.is_multiple_of(8) {
            return None;
        }
        // SAFETY: between the stack pointer and the frame of `inside`, all of it is this thread's
        // mapped stack.
        unsafe { Some((*(fp as *const usize), *((fp + 8) as *const usize))) }
    }

    /// Whether the frames from `fp` on are compiled code's up to the one that host code called.
    fn reaches_entry(&self, mut fp: usize, text: &Range<usize>) -> bool {
        while let Some((older, return_to)) = self.frame(fp).filter(|_| fp.is_multiple_of(16)) {
            if !text.contains(&return_to) {
                return true;
            }
            if older <= fp {
                return false;
            }
            fp = older;
        }
        false
    }
}

#[cfg(test)]
mod tests;
