//! The three functions a guest can call, and the only place where control crosses between guest and kernel.
//!
//! The sign of an errno has flipped before it gets here: what the kernel returns is what the guest sees. Who calls is
//! what the Store says, never an argument.

use std::sync::Arc;

use lind_kernel::cage::signal::restarts;
use lind_kernel::cage::{Birth, How, Next};
use lind_kernel::call;
use wasmtime::{Caller, Error, Linker, Result, Store, WasmBacktrace};

use crate::host::Guest;
use crate::perf::Perf;
use crate::{fault, fork, signal, thread};

/// Leaves guest code; [`Guest::next`] says for what.
#[derive(Debug)]
pub struct Leave;

impl std::fmt::Display for Leave {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("guest code was left by a system call")
    }
}

impl std::error::Error for Leave {}

/// Defines `lind.syscall`, `lind.call` and `lind.fork`, timed if there are counters.
///
/// # Errors
/// None in practice: the names are distinct.
pub fn define(linker: &mut Linker<Guest>, perf: Option<&Arc<Perf>>) -> Result<()> {
    match perf {
        None => {
            linker.func_wrap("lind", "syscall", syscall)?;
            linker.func_wrap("lind", "call", make_syscall)?;
        }
        Some(perf) => define_timed(linker, perf)?,
    }
    linker.func_wrap("lind", "fork", fork::fork)?;
    Ok(())
}

#[allow(clippy::type_complexity, clippy::too_many_arguments, reason = "the arguments are the ABI's")]
fn define_timed(linker: &mut Linker<Guest>, perf: &Arc<Perf>) -> Result<()> {
    let of_syscall = Arc::clone(perf);
    linker.func_wrap(
        "lind",
        "syscall",
        move |caller: Caller<'_, Guest>, nr: i32, a0: i64, a1: i64, a2: i64, a3: i64, a4: i64, a5: i64| {
            let timing = of_syscall.begin(caller.data(), nr.cast_unsigned());
            let result = syscall(caller, nr, a0, a1, a2, a3, a4, a5);
            of_syscall.end(&timing);
            result
        },
    )?;
    let of_call = Arc::clone(perf);
    linker.func_wrap(
        "lind",
        "call",
        move |caller: Caller<'_, Guest>,
              nr: i32,
              target: i64,
              v0: i64,
              c0: i64,
              v1: i64,
              c1: i64,
              v2: i64,
              c2: i64,
              v3: i64,
              c3: i64,
              v4: i64,
              c4: i64,
              v5: i64,
              c5: i64| {
            let timing = of_call.begin(caller.data(), nr.cast_unsigned());
            let result = make_syscall(caller, nr, target, v0, c0, v1, c1, v2, c2, v3, c3, v4, c4, v5, c5);
            of_call.end(&timing);
            result
        },
    )?;
    Ok(())
}

#[allow(clippy::cast_sign_loss, clippy::too_many_arguments, reason = "the arguments are the ABI's, as bits")]
fn syscall(caller: Caller<'_, Guest>, nr: i32, a0: i64, a1: i64, a2: i64, a3: i64, a4: i64, a5: i64) -> Result<i64> {
    // Not `map`, here and below: what the compiler makes of it costs more than the rest of this function.
    let values = [a0 as u64, a1 as u64, a2 as u64, a3 as u64, a4 as u64, a5 as u64];
    kernel(caller, nr.cast_unsigned(), values, |guest, values| {
        let (kernel, thread, cage) = (&guest.kernel, &guest.thread, &guest.cage);
        call::syscall(kernel, thread, cage, guest.served(), &*guest.host, nr.cast_unsigned(), values)
    })
}

#[allow(clippy::cast_sign_loss, clippy::too_many_arguments, reason = "the arguments are the ABI's, as bits")]
fn make_syscall(
    caller: Caller<'_, Guest>,
    nr: i32,
    target: i64,
    v0: i64,
    c0: i64,
    v1: i64,
    c1: i64,
    v2: i64,
    c2: i64,
    v3: i64,
    c3: i64,
    v4: i64,
    c4: i64,
    v5: i64,
    c5: i64,
) -> Result<i64> {
    let args = [
        (v0 as u64, c0 as u64),
        (v1 as u64, c1 as u64),
        (v2 as u64, c2 as u64),
        (v3 as u64, c3 as u64),
        (v4 as u64, c4 as u64),
        (v5 as u64, c5 as u64),
    ];
    let values = [args[0].0, args[1].0, args[2].0, args[3].0, args[4].0, args[5].0];
    kernel(caller, nr.cast_unsigned(), values, |guest, _| {
        let (nr, target) = (nr.cast_unsigned(), target.cast_unsigned());
        call::make_syscall(&guest.kernel, &guest.thread, guest.served(), &*guest.host, nr, target, args)
    })
}

/// Crosses into the kernel and back. Control returns to the guest unless its thread has something else to do.
#[inline(always)]
fn kernel(caller: Caller<'_, Guest>, nr: u32, values: [u64; 6], call: impl Fn(&Guest, [u64; 6]) -> i64) -> Result<i64> {
    let guest = caller.data();
    fault::enter_host();
    let result = call(guest, values);
    if guest.thread.attention() != 0 {
        return attend(caller, nr, values, result, call);
    }
    fault::enter_guest(guest.base);
    Ok(result)
}

/// Crosses into the kernel and back for the import `fork`: handlers wait until the program's frames are back.
///
/// # Errors
/// Guest code is to be left.
pub fn without_handlers(caller: &Caller<'_, Guest>, call: impl FnOnce(&Guest) -> i64) -> Result<i64> {
    let guest = caller.data();
    fault::enter_host();
    let mut result = call(guest);
    if guest.thread.attention() != 0 {
        result = after_birth(guest, result);
        if let Some(next) = guest.thread.take_next() {
            return Err(leave(guest, next));
        }
    }
    fault::enter_guest(guest.base);
    Ok(result)
}

/// What else there is to do after a call: children, signal handlers, and the call again if they interrupted it.
#[cold]
#[inline(never)]
fn attend(
    mut caller: Caller<'_, Guest>,
    nr: u32,
    values: [u64; 6],
    mut result: i64,
    call: impl Fn(&Guest, [u64; 6]) -> i64,
) -> Result<i64> {
    loop {
        result = after_birth(caller.data(), result);
        let interrupted = caller.data().thread.take_interrupted() && result == lind_abi::Errno::EINTR.to_wire();
        let ran = signal::run_handlers(&mut caller);
        let guest = caller.data();
        // What an exception reaches is guest code again.
        let restart = ran.inspect_err(|_| fault::enter_guest(guest.base))?;
        let again = interrupted && restart.is_none_or(|restart| restart && restarts(&guest.thread, nr, &values));
        if again {
            result = call(guest, values);
        }
        if !again || guest.thread.attention() == 0 {
            fault::enter_guest(guest.base);
            return Ok(result);
        }
    }
}

/// The error that leaves guest code for `next`.
pub fn leave(guest: &Guest, next: Next) -> Error {
    guest.next.set(Some(next));
    // Wasmtime captures a backtrace, down to lines of source, for every error that has none yet. One of a Store
    // that runs nothing is empty and costs a microsecond.
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

/// A call has made a child. Where a grate has answered the call with an error after all, there is none.
fn give_birth(guest: &Guest, birth: Birth, result: i64) -> i64 {
    if result < 0 {
        birth.undo(&guest.kernel, &*guest.host);
        return result;
    }
    let How::Vfork { boot } = birth.how else {
        // Its memory is copied when this program's frames are left.
        guest.unborn.set(Some(birth));
        return result;
    };
    let shared = &guest.host.shared;
    let child = Arc::clone(&birth.child);
    shared.set_program(child.cage.id, &guest.image);
    match thread::start_thread(shared, &guest.kernel, Arc::clone(&child), boot) {
        Ok(()) => {
            guest.thread.cage.wait_for_memory(&child.cage);
            result
        }
        Err(errno) => {
            shared.forget_program(child.cage.id);
            birth.undo(&guest.kernel, &*guest.host);
            errno.to_wire()
        }
    }
}
