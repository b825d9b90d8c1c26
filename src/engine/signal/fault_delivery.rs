//! Delivers faults for which the program has a handler: SIGSEGV, SIGBUS, SIGFPE and SIGILL in a
//! function of its own.
//!
//! The handler must run before the engine turns the fault into a trap, since that leaves the
//! program's frames; and not on the host's alternate stack, on which such signals arrive. So the
//! fault is noted, the signal that interrupts computation is sent to this very thread, and the
//! handler of the fault returns: the interruption comes at the instruction that faulted, before it
//! is tried again. The instruction may also be one of a library routine that copies memory for the
//! program: the routine goes on, or siglongjmp leaves it.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use lind_kernel::cage::signal::Info;

use crate::code::engines::SPACE;
use crate::grate::filter;
use crate::signal::context::Computing;
use crate::signal::preempt;

const HANDLED: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// The previous handlers of these signals.
static BEFORE: OnceLock<[libc::sigaction; HANDLED.len()]> = OnceLock::new();

thread_local! {
    /// The fault of the guest code that is about to be interrupted.
    static NOTED: Cell<Option<Info>> = const { Cell::new(None) };
}

/// Installs itself before the existing handlers: Wasmtime's, and below them those of `fault`.
pub fn install() {
    BEFORE.get_or_init(|| {
        HANDLED.map(|signal| {
            let mut before = MaybeUninit::<libc::sigaction>::zeroed();
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
            // SAFETY: the actions are fully set, and the handler has the signature SA_SIGINFO asks
            // for.
            unsafe {
                libc::sigaction(signal, std::ptr::null(), before.as_mut_ptr());
                let before = before.assume_init();
                let mut action = before;
                action.sa_sigaction = handler as usize;
                action.sa_flags |= libc::SA_SIGINFO | libc::SA_ONSTACK;
                // The interruption waits until this handler has returned.
                libc::sigaddset(&raw mut action.sa_mask, preempt::signal());
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
                before
            }
        })
    });
}

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the host passes a valid ucontext to a SA_SIGINFO handler.
    if unsafe { filter::leave(context.cast(), signal) } {
        return;
    }
    // SAFETY: the host passes a valid siginfo and ucontext to a SA_SIGINFO handler.
    let noted = unsafe { note(signal, &*info, context.cast()) };
    if noted {
        preempt::this_thread();
        return;
    }
    let Some(before) = BEFORE.get().zip(HANDLED.iter().position(|&handled| handled == signal)) else { return };
    let before = before.0[before.1];
    if before.sa_sigaction > libc::SIG_IGN && before.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: this flag tells the type of the handler.
        let handler = unsafe {
            std::mem::transmute::<usize, extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void)>(
                before.sa_sigaction,
            )
        };
        handler(signal, info, context);
    } else {
        // SAFETY: the default action, when the instruction is tried again.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Notes a fault that the program handles.
///
/// # Safety
/// `context` is the handler's.
unsafe fn note(signal: i32, info: &libc::siginfo_t, context: *mut libc::ucontext_t) -> bool {
    // SAFETY: these signals have an address.
    let address = unsafe { info.si_addr() } as usize;
    // SAFETY: the caller's promise.
    let computing = unsafe { Computing::find(context).or_else(|| in_routine(context, signal, address)) };
    let Some(computing) = computing else { return false };
    let Some(fault) = what_happened(&computing, signal, info.si_code, address) else { return false };
    // Guest code was running: the thread holds no lock.
    if !computing.guest.thread.handles(fault.signal) {
        return false;
    }
    NOTED.set(Some(fault));
    true
}

/// A fault at an address of the guest's in a routine that was called for it.
///
/// # Safety
/// `context` is the handler's.
unsafe fn in_routine<'a>(context: *mut libc::ucontext_t, signal: i32, address: usize) -> Option<Computing<'a>> {
    if !matches!(signal, libc::SIGSEGV | libc::SIGBUS) {
        return None;
    }
    // SAFETY: the caller's promise.
    let found = unsafe { Computing::find_in_routine(context) }?;
    let offset = (address as u64).wrapping_sub(found.guest.base as u64);
    (offset < SPACE).then_some(found)
}

/// The fault, in the program's terms.
fn what_happened(computing: &Computing<'_>, signal: i32, code: i32, address: usize) -> Option<Info> {
    /// The host never maps anything there: a call of a function that does not exist reads this
    /// address.
    const NOWHERE: usize = 4096;
    const SEGV_MAPERR: i32 = 1;
    const FPE_INTDIV: i32 = 1;
    const ILL_ILLOPN: i32 = 2;
    // Programs have no addresses of code: an instruction's address is its offset in the program's
    // own code.
    let here = || computing.offset();
    match signal {
        libc::SIGFPE => Some(Info::fault(number(signal)?, FPE_INTDIV, here()?)),
        libc::SIGILL => {
            let meant = computing.trap()?;
            Some(match i32::from(meant) {
                libc::SIGFPE => Info::fault(meant, FPE_INTDIV, here()?),
                libc::SIGSEGV => Info::fault(meant, SEGV_MAPERR, 0),
                _ => Info::fault(meant, ILL_ILLOPN, here()?),
            })
        }
        _ if address < NOWHERE => Some(Info::fault(number(signal)?, SEGV_MAPERR, 0)),
        _ => {
            let offset = (address as u64).wrapping_sub(computing.guest.base as u64);
            let offset = u32::try_from(offset).ok().filter(|&at| u64::from(at) < SPACE)?;
            Some(Info::fault(number(signal)?, code, offset))
        }
    }
}

fn number(signal: i32) -> Option<u8> {
    u8::try_from(signal).ok()
}

/// The code that was interrupted, if its own fault is the reason, and the fault.
///
/// # Safety
/// `context` is the handler's.
pub unsafe fn take<'a>(context: *mut libc::ucontext_t) -> Option<(Computing<'a>, Info)> {
    let fault = NOTED.take()?;
    // SAFETY: the caller's promise.
    let computing = unsafe { Computing::find(context).or_else(|| Computing::find_in_routine(context)) };
    Some((computing?, fault))
}
