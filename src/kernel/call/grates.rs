//! The way of a call through the grates that its table names: filters where there are some, handlers, and where those let it go on.

use lind_abi::{CageId, Call, Errno, Word};

use super::{Caller, own_call};
use crate::Kernel;
use crate::cage::Thread;
use crate::engine::{Entered, Filtered, Hop, Served};
use crate::threei::{Handler, Packed};

/// What grates answer to a call of [`super::syscall`]. None if it is the kernel's, by the table or because they let it go on.
///
/// Filters and handlers each in a frame of their own: that of handlers is large, and filters need none of it.
#[inline(always)]
pub(super) fn syscall_by_grates<C: Caller>(caller: &C, number: u32, values: &[Word; 6]) -> Option<i64> {
    let to = caller.thread().routes.follow(number, values[0].value, caller.cage().handlers.packed(number));
    if caller.hop().filters(to, 0) {
        syscall_by_filters(caller, number, values, to)
    } else {
        syscall_by_handlers(caller, number, values, to, 0, None)
    }
}

/// The same, with filters in this very frame: who calls this has none yet.
#[inline(never)]
pub(super) fn transfer_by_grates<C: Caller>(caller: &C, number: u32, values: [u64; 6]) -> Option<i64> {
    let values = &Word::six(values);
    let to = caller.thread().routes.follow(number, values[0].value, caller.cage().handlers.packed(number));
    if caller.hop().filters(to, 0) {
        filters_first(caller, number, values, to)
    } else {
        syscall_by_handlers(caller, number, values, to, 0, None)
    }
}

#[inline(never)]
fn syscall_by_filters<C: Caller>(caller: &C, number: u32, values: &[Word; 6], to: Packed) -> Option<i64> {
    filters_first(caller, number, values, to)
}

#[inline(always)]
fn filters_first<C: Caller>(caller: &C, number: u32, values: &[Word; 6], to: Packed) -> Option<i64> {
    match caller.hop().by_filters(caller.thread(), number, values, to, 0) {
        Filtered::Answered(result) => Some(result),
        Filtered::LeftTo { to, .. } if to.is_kernels() => None,
        Filtered::LeftTo { to, past, last } => syscall_by_handlers(caller, number, values, to, past, last),
    }
}

#[inline(never)]
fn syscall_by_handlers<C: Caller>(
    caller: &C,
    number: u32,
    values: &[Word; 6],
    to: Packed,
    past: usize,
    last: Option<CageId>,
) -> Option<i64> {
    let (thread, mut call) = (caller.thread(), own_call(caller, number, values));
    call.caller = last.unwrap_or(call.caller);
    let follow = |to| thread.routes.follow(number, values[0].value, to);
    by_grates(caller.kernel(), caller.hop(), thread, &mut call, (to, past), true, follow)
}

/// Has a call served by the grate that `to` names, and by those after it as long as they let it go on. None if it is the kernel's then:
/// a call that was let go on is made by who made it before, with no more and no less than that one's authority. `own`: it is one of
/// the client's on itself and on nothing else, which its number and its values say all about, so that filters can decide.
#[inline(always)]
pub(super) fn by_grates<H: Hop + ?Sized>(
    kernel: &Kernel,
    hop: &H,
    client: &Thread,
    call: &mut Call<'_>,
    (mut to, mut past): (Packed, usize),
    own: bool,
    follow: impl Fn(Packed) -> Packed,
) -> Option<i64> {
    loop {
        let Handler::Grate { cage: grate, entry, serialized } = to.handler() else { return None };
        match hop.enter(grate, entry, serialized, past, &Served { call, client }) {
            Entered::Answered(result) => {
                return (!answered_by_nobody(kernel, call.nr, grate, result)).then_some(result);
            }
            Entered::Passed(next) => {
                to = next;
                past += 1;
                call.caller = grate;
            }
        }
        to = follow(to);
        if own && hop.filters(to, past) {
            match further_filters(hop, client, (call.nr, call.values), to, past) {
                Filtered::Answered(result) => return Some(result),
                Filtered::LeftTo { to: rest, past: by_now, last } => {
                    (to, past) = (rest, by_now);
                    call.caller = last.unwrap_or(call.caller);
                }
            }
        }
    }
}

/// Filters that are not the first thing that a call meets.
#[inline(never)]
pub(super) fn further_filters<H: Hop + ?Sized>(
    hop: &H,
    client: &Thread,
    (number, values): (u32, &[Word; 6]),
    to: Packed,
    past: usize,
) -> Filtered {
    hop.by_filters(client, number, values, to, past)
}

/// Whether the grate did not answer a call that must not fail: a dead grate must not keep its clients from ending.
#[inline]
fn answered_by_nobody(kernel: &Kernel, number: u32, grate: CageId, result: i64) -> bool {
    result == Errno::EIO.to_wire() && ends_thread(number) && kernel.cages.get(grate).is_none_or(|g| !g.answers())
}

fn ends_thread(number: u32) -> bool {
    matches!(number, lind_abi::nr::exit | lind_abi::nr::exit_group | lind_abi::nr::rt_sigreturn)
}
