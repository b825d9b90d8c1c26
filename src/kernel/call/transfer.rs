//! The calls that move data, in two halves: what is to be looked at before the host is asked, and what afterwards. An engine that can ask it
//! without a frame of its own goes this way: the host leaves the processor mispredicting the return from every function that was open meanwhile.
//!
//! What the first half declines, and what does not go well, goes the way of all calls.

use std::mem::ManuallyDrop;
use std::os::fd::AsFd;

use lind_abi::{Arg, ArgType, Errno, Fd, Word, nr};

use super::{Caller, Ctx, context, is_interrupted, repeats, syscall};
use crate::engine::{Filtered, Hop};
use crate::mem::HostRange;
use crate::patience;
use crate::sys::fs::{ATOMIC, write_failed};

/// A call of the host's: its number and arguments.
pub type HostCall = [u64; 5];

/// The host call that a call of the guest's comes to, if it is one of those and nothing else is to be done first. Then the file is
/// in use until [`end_transfer`].
#[inline(always)]
pub fn begin_transfer<C: Caller>(caller: &C, number: u32, values: [u64; 6]) -> Option<HostCall> {
    if !caller.cage().handlers.is_kernels(number) && !is_left_to_the_kernel(caller, number, values) {
        return None;
    }
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
        patience::for_input(cx, in_use.as_fd(), buffer.len());
    }
    if number == nr::write && buffer.len() > ATOMIC {
        cx.kernel.engine().watch();
    }
    let host = in_use.number().cast_unsigned().into();
    Some([number.into(), host, buffer.as_ptr().addr() as u64, buffer.len() as u64, values[3]])
}

/// Whether the grates that the table names let it go on, by the descriptor or by filters. Those are asked again if it goes the other way.
#[inline(never)]
fn is_left_to_the_kernel<C: Caller>(caller: &C, number: u32, values: [u64; 6]) -> bool {
    let to = caller.thread().routes.follow(number, values[0], caller.cage().handlers.packed(number));
    if to.is_kernels() || !caller.hop().filters(to, 0) {
        return to.is_kernels();
    }
    let left = caller.hop().by_filters(caller.thread(), number, &Word::six(values), to, 0);
    matches!(left, Filtered::LeftTo { to, .. } if to.is_kernels())
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

/// What the guest sees of a transfer, if the host has answered it so: as [`syscall`] goes on after the host call.
#[cold]
pub fn after_transfer<C: Caller>(caller: &C, number: u32, values: &[Word; 6], result: i64) -> i64 {
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
        return syscall(caller, number, values);
    }
    result
}
