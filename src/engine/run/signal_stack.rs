//! The stack that a host thread runs the host's signal handlers on.
//!
//! Wasmtime maps such a stack when a thread first enters guest code, and ends the process if that
//! fails; it keeps an existing one that is large enough.

#![allow(unsafe_code)]

use std::ptr::NonNull;

use lind_kernel::{Errno, Result};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// The size that Wasmtime asks for.
const SIZE: usize = 64 * 4096;

/// The size of the guard page below it.
const GUARD: usize = 4096;

/// A stack that is not in use yet.
pub struct SignalStack(NonNull<u8>);

// SAFETY: a mapping of its own, which no thread uses before `install`.
unsafe impl Send for SignalStack {}

impl SignalStack {
    /// Maps a stack.
    ///
    /// # Errors
    /// EAGAIN if the host has no memory: the call comes when a thread is to be started.
    pub fn new() -> Result<SignalStack> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::STACK;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, which nothing else uses.
        let at =
            unsafe { mmap_anonymous(std::ptr::null_mut(), GUARD + SIZE, prot, flags) }.map_err(|_| Errno::EAGAIN)?;
        let stack = SignalStack(NonNull::new(at.cast()).ok_or(Errno::EAGAIN)?);
        // SAFETY: the lowest page of the mapping, which is unused.
        unsafe { mprotect(at, GUARD, MprotectFlags::empty()) }.map_err(|_| Errno::EAGAIN)?;
        Ok(stack)
    }

    /// Makes it the calling thread's, as long as the result lives.
    pub fn install(self) -> Installed {
        // SAFETY: within the mapping.
        let start = unsafe { self.0.as_ptr().add(GUARD) };
        set(&libc::stack_t { ss_sp: start.cast(), ss_flags: 0, ss_size: SIZE });
        Installed { _stack: self, _of_thread: std::marker::PhantomData }
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; `Installed` has disabled it for the thread that used it.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), GUARD + SIZE) };
    }
}

/// A stack that the thread uses.
pub struct Installed {
    _stack: SignalStack,
    /// Belongs to this thread, which has to drop it.
    _of_thread: std::marker::PhantomData<*const ()>,
}

impl Drop for Installed {
    fn drop(&mut self) {
        set(&libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 });
    }
}

fn set(stack: &libc::stack_t) {
    // SAFETY: the host reads `stack`; it names a mapping that nobody else uses, or disables the
    // stack. Not called on a signal's stack.
    unsafe { libc::sigaltstack(stack, std::ptr::null_mut()) };
}
