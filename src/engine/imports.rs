//! The three functions a guest can call, and the only place where control crosses between guest and kernel.
//!
//! The sign of an errno has flipped before it gets here: what the kernel returns is what the guest sees. Who calls is
//! what the Store says, never an argument.

use std::sync::Arc;

use lind_abi::nr;
use lind_kernel::call;
use wasmtime::{Caller, Error, Linker, Result, Store, WasmBacktrace};

use crate::fault;
use crate::host::Guest;
use crate::perf::Perf;

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
    linker.func_wrap("lind", "fork", fork)?;
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
    kernel(&caller, |guest| {
        call::syscall(&guest.kernel, &guest.thread, guest.served(), &*guest.host, nr.cast_unsigned(), values)
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
    kernel(&caller, |guest| {
        let (nr, target) = (nr.cast_unsigned(), target.cast_unsigned());
        call::make_syscall(&guest.kernel, &guest.thread, guest.served(), &*guest.host, nr, target, args)
    })
}

/// fork(2) travels as clone(2) with SIGCHLD alone, so that a grate sees every birth under one number.
fn fork(caller: Caller<'_, Guest>) -> Result<i32> {
    const SIGCHLD: u64 = 17;
    let values = [SIGCHLD, 0, 0, 0, 0, 0];
    let result = kernel(&caller, |guest| {
        call::syscall(&guest.kernel, &guest.thread, guest.served(), &*guest.host, nr::clone, values)
    })?;
    Ok(i32::try_from(result).unwrap_or(-lind_abi::Errno::ENOSYS.raw()))
}

/// Crosses into the kernel and back. Control returns to the guest unless its thread has something else to do.
#[inline(always)]
fn kernel(caller: &Caller<'_, Guest>, call: impl FnOnce(&Guest) -> i64) -> Result<i64> {
    let guest = caller.data();
    fault::enter_host();
    let result = call(guest);
    if guest.thread.attention() != 0 {
        leave(guest)?;
    }
    fault::enter_guest(guest.base);
    Ok(result)
}

#[cold]
fn leave(guest: &Guest) -> Result<()> {
    match guest.thread.take_next() {
        Some(next) => {
            guest.next.set(Some(next));
            // Wasmtime captures a backtrace, down to lines of source, for every error that has none yet. One of a Store
            // that runs nothing is empty and costs a microsecond.
            let none = WasmBacktrace::capture(Store::new(&guest.host.shared.engines.runtime, ()));
            Err(Error::from(Leave).context(none))
        }
        None => Ok(()),
    }
}
