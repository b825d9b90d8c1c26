//! The calls that move data, in two halves: what is to be looked at before the host is asked, and what afterwards. An engine that can ask it
//! without a frame of its own goes this way: the host leaves the processor mispredicting the return from every function that was open meanwhile.
//!
//! What the first half declines, and what does not go well, goes the way of all calls.

use std::mem::ManuallyDrop;
use std::os::fd::AsFd;

use lind_abi::{Arg, ArgType, Errno, Fd, Word, nr};

use super::grates::transfer_by_grates;
use super::{Caller, Ctx, context, in_kernel, is_interrupted, repeats, syscall};
use crate::mem::HostRange;
use crate::spin;
use crate::sys::fs::{ATOMIC, write_failed};

/// A call of the host's: its number and arguments.
pub type HostCall = [u64; 5];

/// How far a call has come this way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Nothing has been done, nobody has been asked.
    New,
    /// The grates have let it go on to the kernel.
    LetGoOn,
    /// The host has answered.
    Host(i64),
    /// It is done.
    Answered(i64),
}

/// What comes next, after [`begin_transfer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begun {
    /// This host call, then [`end_transfer`]. Until then the file is in use.
    Host(HostCall),
    /// Nothing is left to do but to look whether the thread has other things to do.
    Answered(i64),
    /// What [`further`] does.
    Further(Progress),
}

/// Asks the grates, and says what host call a call of the guest's comes to, if it is one of those and nothing else is to be done first.
#[inline(always)]
pub fn begin_transfer<C: Caller>(caller: &C, number: u32, values: [u64; 6]) -> Begun {
    let mut progress = Progress::New;
    if !caller.cage().handlers.is_kernels(number) {
        if let Some(result) = transfer_by_grates(caller, number, values) {
            return Begun::Answered(result);
        }
        progress = Progress::LetGoOn;
    }
    match host_call(caller, number, values) {
        Some(call) => Begun::Host(call),
        None => Begun::Further(progress),
    }
}

#[inline(always)]
fn host_call<C: Caller>(caller: &C, number: u32, values: [u64; 6]) -> Option<HostCall> {
    let cx = &context(caller);
    let arg = |at: usize| Arg { value: values[at], cage: cx.cage.id };
    let fd = Fd::from_arg(arg(0));
    let writes = matches!(number, nr::write | nr::pwrite64);
    if number != nr::pread64 && cx.cage.fds.is_watched() {
        return None;
    }
    let waits = number == nr::read && cx.cage.fds.makes_wait(fd.number);
    let in_use = ManuallyDrop::new(cx.host_fd(fd).ok()?);
    let Some(buffer) = range(cx, &arg, writes) else {
        drop(ManuallyDrop::into_inner(in_use));
        return None;
    };
    if waits {
        spin::for_input(cx, in_use.as_fd(), buffer.len());
    }
    if number == nr::write && buffer.len() > ATOMIC {
        cx.kernel.engine().watch();
    }
    let host = in_use.number().cast_unsigned().into();
    Some([number.into(), host, buffer.as_ptr().addr() as u64, buffer.len() as u64, values[3]])
}

#[inline(always)]
fn range<'c>(cx: &'c Ctx<'_>, arg: &impl Fn(usize) -> Arg, writes: bool) -> Option<HostRange<'c>> {
    let len = ArgType::from_arg(arg(2));
    if writes { cx.input(ArgType::from_arg(arg(1)), len).ok() } else { cx.output(ArgType::from_arg(arg(1)), len).ok() }
}

/// The file is not in use any more.
#[inline(always)]
pub fn end_transfer<C: Caller>(caller: &C) {
    caller.thread().reader.uses_no_more();
}

/// The rest of a call that has come so far, and what the guest sees of it.
#[inline(never)]
pub fn further<C: Caller>(caller: &C, number: u32, values: &[Word; 6], progress: Progress) -> i64 {
    match progress {
        Progress::New => syscall(caller, number, values),
        Progress::LetGoOn => in_kernel(caller, number, values),
        Progress::Host(result) => after_host(caller, number, values, result),
        Progress::Answered(result) => result,
    }
}

/// As [`in_kernel`] goes on after the host call.
fn after_host<C: Caller>(caller: &C, number: u32, values: &[Word; 6], result: i64) -> i64 {
    if number == nr::write
        && result < 0
        && let Some(errno) = Errno::from_wire(result)
    {
        let cx = &context(caller);
        let fd = Fd::from_arg(Arg { value: values[0].value, cage: cx.cage.id });
        if let Ok(in_use) = cx.host_fd(fd) {
            write_failed(cx, fd, in_use.as_fd(), errno);
        }
    }
    if is_interrupted(result) && repeats(number, caller.kernel(), caller.thread(), caller.thread()) {
        // The grates have been asked.
        return in_kernel(caller, number, values);
    }
    result
}
