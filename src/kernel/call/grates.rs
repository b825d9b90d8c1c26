//! Routes a call through the grates that its table names: through filters, handlers, and further
//! grates if a handler lets the call go on.

use lind_abi::flags::Signals;
use lind_abi::{CageId, Call, Errno};

use crate::Kernel;
use crate::cage::{Thread, signal};
use crate::runtime::{Entered, Hop, Served};
use crate::threei::{Handler, Packed};

/// Has a call served by the grate that `to` names, and by later ones as long as they let it go on.
/// None if the kernel has to make it: a call that was let go on is made by its original caller,
/// with exactly that cage's authority. `own`: the call acts on the client and nothing else, and its
/// number and values describe it completely. Then filters can decide, and routes by descriptor
/// (`follow`) apply.
#[inline(always)]
pub(super) fn by_grates<H: Hop + ?Sized>(
    kernel: &Kernel,
    hop: &H,
    client: &Thread,
    call: &mut Call<'_>,
    mut to: Packed,
    own: bool,
    follow: impl Fn(Packed) -> Packed,
) -> Option<i64> {
    // No handler could learn anything from it: the call that it makes arrives under its own number.
    if call.nr == lind_abi::nr::call_by && call.values[0].value == 0 {
        return None;
    }
    let mut past = 0;
    loop {
        to = follow(to);
        let Handler::Grate { cage: grate, entry, serialized } = to.handler() else { return None };
        if grate == Handler::FORBIDDEN {
            signal::end(kernel, &client.cage, signal::number(Signals::SIGKILL));
            return Some(Errno::EPERM.to_wire());
        }
        let decided = if own { hop.ask_filter(client.cage.id, call.nr, call.values, to, past) } else { None };
        match decided.unwrap_or_else(|| hop.enter(grate, entry, serialized, past, &Served { call, client })) {
            Entered::Answered(result) => {
                return (!answered_by_nobody(kernel, call.nr, grate, result)).then_some(result);
            }
            Entered::Passed(next) => {
                to = next;
                past += 1;
                call.caller = grate;
            }
        }
    }
}

/// Whether a call that must not fail was not answered by the grate: a dead grate must not keep its
/// clients from ending.
#[inline]
fn answered_by_nobody(kernel: &Kernel, number: u32, grate: CageId, result: i64) -> bool {
    result == Errno::EIO.to_wire() && ends_thread(number) && kernel.cages.get(grate).is_none_or(|g| !g.answers())
}

fn ends_thread(number: u32) -> bool {
    matches!(number, lind_abi::nr::exit | lind_abi::nr::exit_group | lind_abi::nr::rt_sigreturn)
}
