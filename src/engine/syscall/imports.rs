//! The three functions a guest can call, and the only place where control crosses between guest and
//! kernel.
//!
//! The sign of an errno has flipped before it gets here: the guest sees the kernel's result
//! unchanged. The Store identifies the caller, never an argument.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::sync::Arc;

use lind_abi::Word;
use lind_kernel::cage::signal::restarts as is_restarted;
use lind_kernel::cage::{Birth, How, Next};
use lind_kernel::call;
use wasmtime::{
    AsContextMut, Caller, Error, FuncType, Linker, Result, Store, StoreContextMut, ValRaw, ValType, WasmBacktrace,
};

use crate::run::fork;
use crate::run::guest::Guest;
use crate::run::thread;
use crate::signal::context;
use crate::signal::handlers;
use crate::syscall::perf::Perf;

/// The error with which guest code is left; [`Guest::next`] has the reason.
#[derive(Debug)]
pub struct Leave;

impl std::fmt::Display for Leave {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("guest code was left by a system call")
    }
}

impl std::error::Error for Leave {}

/// Defines `lind.syscall`, `lind.call` and `lind.fork`; with counters, their calls are timed.
///
/// The first two take their arguments as the guest left them on its stack: typed functions would
/// copy them, and enter and leave a scope of the garbage collector twice, on every call.
///
/// # Errors
/// None in practice: the names are distinct.
pub fn define(linker: &mut Linker<Guest>, perf: Option<&Arc<Perf>>) -> Result<()> {
    match perf {
        None => {
            define_raw(linker, "syscall", syscall)?;
            define_raw(linker, "call", make_syscall)?;
        }
        Some(perf) => {
            define_raw(linker, "syscall", timed(perf, syscall))?;
            define_raw(linker, "call", timed(perf, make_syscall))?;
        }
    }
    linker.func_wrap("lind", "fork", fork::fork)?;
    Ok(())
}

/// Defines a function that takes a number and `N - 1` words and returns one.
fn define_raw<const N: usize>(
    linker: &mut Linker<Guest>,
    name: &str,
    function: impl Fn(Caller<'_, Guest>, &Words<N>) -> Result<i64> + Send + Sync + 'static,
) -> Result<()> {
    let params = std::iter::once(ValType::I32).chain(std::iter::repeat_n(ValType::I64, N - 1));
    let ty = FuncType::new(linker.engine(), params, [ValType::I64]);
    // SAFETY: a caller of this type passes `N` values; the first is read as an i32 and the others
    // as i64s, and the one result is an i64.
    unsafe {
        #[rustfmt::skip]
        linker.func_new_unchecked("lind", name, ty, #[inline(always)] move |caller, values| {
            let words = values.first_chunk::<N>().expect("a call has as many values as its type");
            let result = function(caller, &Words(words))?;
            values[0].write(ValRaw::i64(result));
            Ok(())
        })?;
    }
    Ok(())
}

/// A number and words, as a guest passed them.
struct Words<'a, const N: usize>(&'a [MaybeUninit<ValRaw>; N]);

impl<const N: usize> Words<'_, N> {
    #[inline(always)]
    fn number(&self) -> u32 {
        // SAFETY: by the type that `define_raw` gives the function, this is an i32.
        unsafe { self.0[0].assume_init_ref() }.get_u32()
    }

    /// Word `at` after the number.
    #[inline(always)]
    fn at(&self, at: usize) -> u64 {
        // SAFETY: as above, an i64.
        unsafe { self.0[at + 1].assume_init_ref() }.get_u64()
    }
}

impl Words<'_, 7> {
    /// The values after the number.
    #[inline(always)]
    fn values(&self) -> &[Word; 6] {
        const { assert!(size_of::<Word>() == size_of::<ValRaw>() && align_of::<Word>() == align_of::<ValRaw>()) };
        let values: *const MaybeUninit<ValRaw> = &raw const self.0[1];
        // SAFETY: six i64s follow the number. Only the value of a `Word` has to be initialised,
        // which is where the i64 is: this machine has the byte order of a `ValRaw`.
        unsafe { &*values.cast() }
    }
}

fn timed<const N: usize>(
    perf: &Arc<Perf>,
    function: impl Fn(Caller<'_, Guest>, &Words<N>) -> Result<i64> + Send + Sync + 'static,
) -> impl Fn(Caller<'_, Guest>, &Words<N>) -> Result<i64> + Send + Sync + 'static {
    let perf = Arc::clone(perf);
    move |caller, words| {
        let timing = perf.begin(caller.data(), words.number());
        let result = function(caller, words);
        perf.end(&timing);
        result
    }
}

/// Most calls come through [`crate::syscall::trampoline`], and reach this function only if the
/// thread has other work afterwards.
fn syscall(mut caller: Caller<'_, Guest>, words: &Words<7>) -> Result<i64> {
    let number = words.number();
    let guest = caller.data();
    context::enter_host();
    let result = match guest.trampoline.take_result() {
        Some(result) => result,
        None => call::syscall(guest, number, words.values()),
    };
    if guest.thread.attention() != 0 {
        std::hint::cold_path();
        let values = words.values().map(|word| word.value);
        return attend(caller.as_context_mut(), number, values, result, |guest, values| {
            call::syscall_again(guest, number, *values)
        });
    }
    context::enter_guest(guest.base);
    Ok(result)
}

fn make_syscall(mut caller: Caller<'_, Guest>, words: &Words<14>) -> Result<i64> {
    let (number, target) = (words.number(), words.at(0));
    let (value, owner) = (|at: usize| words.at(1 + 2 * at), |at: usize| words.at(2 + 2 * at));
    let guest = caller.data();
    context::enter_host();
    let arg = |at: usize| (value(at), owner(at));
    let args = [arg(0), arg(1), arg(2), arg(3), arg(4), arg(5)];
    let (kernel, thread) = (&guest.kernel, &guest.thread);
    let result = call::make_syscall(kernel, thread, guest.served(), &*guest.host, number, target, args);
    if guest.thread.attention() != 0 {
        std::hint::cold_path();
        return attend(caller.as_context_mut(), number, std::array::from_fn(value), result, |guest, values| {
            let args = std::array::from_fn(|at| (values[at], owner(at)));
            let (kernel, thread) = (&guest.kernel, &guest.thread);
            call::make_syscall(kernel, thread, guest.served(), &*guest.host, number, target, args)
        });
    }
    context::enter_guest(guest.base);
    Ok(result)
}

/// Crosses into the kernel and back for the import `fork`: handlers wait until the program's frames
/// are back.
///
/// # Errors
/// Guest code is to be left.
pub fn without_handlers(caller: &Caller<'_, Guest>, call: impl FnOnce(&Guest) -> i64) -> Result<i64> {
    let guest = caller.data();
    context::enter_host();
    let result = call(guest);
    if guest.thread.attention() != 0
        && let Some(next) = guest.thread.take_next()
    {
        return Err(leave(guest, next));
    }
    context::enter_guest(guest.base);
    Ok(result)
}

/// Runs the handlers of signals that have come during a fork. On Linux they have run when fork
/// returns, so they do not interrupt the next call that waits.
///
/// # Errors
/// Guest code is to be left.
pub fn run_waiting_handlers(caller: &mut StoreContextMut<'_, Guest>) -> Result<()> {
    if caller.data().thread.attention() == 0 {
        return Ok(());
    }
    context::enter_host();
    let ran = handlers::run_handlers(caller);
    context::enter_guest(caller.data().base);
    ran.map(drop)
}

/// Does the rest of the work after a call with these values: children, signal handlers, and the
/// call again if they interrupted it.
#[cold]
#[inline(never)]
fn attend(
    mut caller: StoreContextMut<'_, Guest>,
    nr: u32,
    values: [u64; 6],
    mut result: i64,
    again: impl Fn(&Guest, &[u64; 6]) -> i64,
) -> Result<i64> {
    loop {
        result = after_birth(caller.data(), result);
        let interrupted = caller.data().thread.take_interrupted() && result == lind_abi::Errno::EINTR.to_wire();
        let ran = handlers::run_handlers(&mut caller);
        let guest = caller.data();
        // The code that an exception reaches is guest code again.
        let restart = ran.inspect_err(|_| context::enter_guest(guest.base))?;
        let restarts = interrupted && restart.is_none_or(|restart| restart && is_restarted(&guest.thread, nr, &values));
        if restarts {
            result = again(guest, &values);
        }
        if !restarts || guest.thread.attention() == 0 {
            context::enter_guest(guest.base);
            return Ok(result);
        }
    }
}

/// The error that leaves guest code for `next`.
pub fn leave(guest: &Guest, next: Next) -> Error {
    guest.way_out.next.set(Some(next));
    // Wasmtime captures a backtrace, down to lines of source, for every error without one. A
    // backtrace of an idle Store is empty and costs a microsecond.
    let none = WasmBacktrace::capture(Store::new(&guest.host.shared.engines.runtime, ()));
    Error::from(Leave).context(none)
}

/// The result of a call that may have made a child.
fn after_birth(guest: &Guest, result: i64) -> i64 {
    match guest.thread.take_birth() {
        Some(birth) => give_birth(guest, birth, result),
        None => result,
    }
}

/// A call has made a child that shares the memory. If a grate has answered the call with an error
/// after all, the child is undone.
fn give_birth(guest: &Guest, birth: Birth, result: i64) -> i64 {
    if result < 0 {
        birth.undo(&guest.kernel, &*guest.host);
        return result;
    }
    let How::Vfork { boot } = birth.how else {
        // Only `lind.fork` makes other children, and takes them itself.
        birth.undo(&guest.kernel, &*guest.host);
        return lind_abi::Errno::ENOSYS.to_wire();
    };
    let shared = &guest.host.shared;
    let child = Arc::clone(&birth.child);
    shared.set_program(child.cage.id, &guest.linked);
    match thread::start_thread(shared, &guest.kernel, Arc::clone(&child), boot) {
        Ok(()) => {
            // If the thread is to leave first, it does so when it looks for its other work.
            let _ = guest.thread.cage.wait_for_memory(&child.cage);
            result
        }
        Err(errno) => {
            shared.forget_program(child.cage.id);
            birth.undo(&guest.kernel, &*guest.host);
            errno.to_wire()
        }
    }
}
