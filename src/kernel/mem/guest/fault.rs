//! The process's SIGSEGV and SIGBUS handler.
//!
//! A fault in a copy routine continues at its error exit; else the engine's hook may move the
//! program counter; else the handler that was installed before runs. Everything here is
//! async-signal-safe and takes no lock.
//!
//! Installed before the engine installs its own, so that the engine sees a guest's ordinary faults
//! first and passes on what it cannot explain. It runs on the alternate stack every Rust thread
//! has.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

use super::copy;

/// A fault as the handler sees it. Changing registers changes where the thread continues.
pub struct Fault {
    /// SIGSEGV or SIGBUS.
    pub signal: c_int,
    /// The address that was touched.
    pub address: usize,
    context: *mut libc::ucontext_t,
}

impl Fault {
    /// The program counter of the fault.
    pub fn pc(&self) -> usize {
        self.register(libc::REG_RIP)
    }

    /// The stack pointer at the fault.
    pub fn sp(&self) -> usize {
        self.register(libc::REG_RSP)
    }

    /// The frame pointer register at the fault.
    pub fn fp(&self) -> usize {
        self.register(libc::REG_RBP)
    }

    /// Continues at `pc` instead of repeating the fault.
    ///
    /// # Safety
    /// Continuing there with the registers and stack as they are is sound; frames that are skipped
    /// own nothing.
    pub unsafe fn resume_at(&mut self, pc: usize) {
        self.set_register(libc::REG_RIP, pc);
    }

    /// Sets the frame pointer register.
    ///
    /// # Safety
    /// As for [`Fault::resume_at`].
    pub unsafe fn set_fp(&mut self, fp: usize) {
        self.set_register(libc::REG_RBP, fp);
    }

    fn register(&self, which: c_int) -> usize {
        // SAFETY: `context` is what the host passed to the handler that made this value, and lives
        // until it returns.
        let value = unsafe { (&(*self.context).uc_mcontext.gregs)[index(which)] };
        #[allow(clippy::cast_possible_truncation, reason = "x86-64 only")]
        {
            value.cast_unsigned() as usize
        }
    }

    fn set_register(&mut self, which: c_int, value: usize) {
        // SAFETY: as in `register`; the handler has exclusive use of the context.
        unsafe { (&mut (*self.context).uc_mcontext.gregs)[index(which)] = (value as u64).cast_signed() };
    }
}

fn index(register: c_int) -> usize {
    usize::try_from(register).unwrap_or(0)
}

/// Sees faults outside the copy routines; true if the thread may continue. Must be
/// async-signal-safe.
pub type Hook = fn(&mut Fault) -> bool;

static HOOK: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static PREVIOUS: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

/// Installs the handler, once per process; a later call only replaces the hook.
///
/// These are statics because the host's signal dispositions are: one handler serves every kernel in
/// the process.
pub fn install_fault_handler(hook: Option<Hook>) {
    if let Some(hook) = hook {
        HOOK.store(hook as *mut c_void, Ordering::Release);
    }
    PREVIOUS.get_or_init(|| {
        // Recorded before ours goes in, since a fault may arrive at once.
        let previous = [current(libc::SIGSEGV), current(libc::SIGBUS)];
        install(libc::SIGSEGV);
        install(libc::SIGBUS);
        previous
    });
}

fn current(signal: c_int) -> libc::sigaction {
    let mut action = MaybeUninit::zeroed();
    // SAFETY: asks for the current action; all zeroes is a valid sigaction should the call fail,
    // which it cannot.
    unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        action.assume_init()
    }
}

fn install(signal: c_int) {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_fault;
    // SAFETY: the action is fully set, and `on_fault` has the signature SA_SIGINFO asks for.
    unsafe {
        let action = action.assume_init_mut();
        action.sa_sigaction = handler as usize;
        // NODEFER: continuing elsewhere must not leave the signal blocked, and a fault in the
        // handler is a crash.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        libc::sigemptyset(&raw mut action.sa_mask);
        let result = libc::sigaction(signal, action, ptr::null_mut());
        assert_eq!(result, 0, "sigaction accepts a handler for SIGSEGV and SIGBUS");
    }
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the host passes a valid siginfo and ucontext to a SA_SIGINFO handler.
    let mut fault =
        unsafe { Fault { signal, address: (*info).si_addr() as usize, context: context.cast::<libc::ucontext_t>() } };
    if let Some(exit) = copy::fixup(fault.pc()) {
        // SAFETY: the routines keep nothing on the stack and have a single error exit.
        unsafe { fault.resume_at(exit) };
        return;
    }
    let hook = HOOK.load(Ordering::Acquire);
    if !hook.is_null() {
        // SAFETY: only `install_fault_handler` stores here, and it stores a Hook.
        let hook = unsafe { core::mem::transmute::<*mut c_void, Hook>(hook) };
        if hook(&mut fault) {
            return;
        }
    }
    // SAFETY: these are the arguments the host gave us.
    unsafe { delegate(signal, info, context) };
}

/// Hands the fault to the action that was installed before ours.
unsafe fn delegate(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let previous = PREVIOUS.get().map(|both| if signal == libc::SIGSEGV { &both[0] } else { &both[1] });
    // SAFETY: the previous action is as the host reported it: a handler of the kind its flags say,
    // or a default, which is put back so that repeating the fault ends the process the ordinary
    // way.
    unsafe {
        match previous {
            Some(action) if action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN => {
                if action.sa_flags & libc::SA_SIGINFO != 0 {
                    let handler = core::mem::transmute::<usize, extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)>(
                        action.sa_sigaction,
                    );
                    handler(signal, info, context);
                } else {
                    core::mem::transmute::<usize, extern "C" fn(c_int)>(action.sa_sigaction)(signal);
                }
            }
            _ => {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
