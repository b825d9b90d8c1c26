//! From a number and six arguments to a kernel function or a grate.
//!
//! [`syscall`] is what a guest's own calls go through, [`make_syscall`] what a cage does for another. Both
//! end in [`route`]: one look into the caller's handler table, then the kernel or a grate.

use std::sync::Arc;

use lind_abi::flags::*;
use lind_abi::layout::*;
#[allow(unused_imports, reason = "the table names them as rows gain functions")]
use lind_abi::{
    Addr, Arg, ArgType, CageId, Call, DirFd, Errno, Fd, Gid, In, InOut, Len, Mode, NewFd, NoReturn, Off, Out, Owners,
    Path,
};
#[allow(unused_imports, reason = "the table names them as rows gain functions")]
use lind_abi::{Pid, Result, RetType, Signal, Str, StrArray, Uid};

use crate::Kernel;
use crate::authority;
use crate::cage::{Attention, Cage, Thread, signal};
use crate::engine::{Hop, Served};
use crate::fd::{FileRef, InUse};
use crate::sys;
use crate::threei::{Handler, HandlerTable};

/// Everything a kernel function may know about the call it carries out.
#[derive(Clone, Copy)]
pub struct Ctx<'a> {
    /// The kernel.
    pub kernel: &'a Arc<Kernel>,
    /// The thread that makes the call: the client's, or the grate's worker.
    pub caller: &'a Thread,
    /// The thread whose control flow the call may change: one of `cage` if there is one here.
    pub thread: &'a Thread,
    /// The cage the call acts on.
    pub cage: &'a Cage,
    /// The call that the calling thread serves, if it is a grate's worker.
    pub served: Option<&'a Served<'a>>,
    /// The way into grates, for calls that run handlers.
    pub hop: &'a dyn Hop,
    others: &'a [Arc<Cage>],
}

impl Ctx<'_> {
    /// The cage that an argument belongs to.
    ///
    /// # Errors
    /// EPERM if it is none that the caller may name.
    #[inline(always)]
    pub fn owner(&self, id: CageId) -> Result<&Cage> {
        if id == self.cage.id {
            return Ok(self.cage);
        }
        if id == self.caller.cage.id {
            return Ok(&self.caller.cage);
        }
        self.others.iter().find(|cage| cage.id == id).map(|cage| &**cage).ok_or(Errno::EPERM)
    }

    /// The file behind a descriptor.
    ///
    /// # Errors
    /// EBADF.
    #[inline]
    pub fn file(&self, fd: Fd) -> Result<FileRef> {
        self.owner(fd.cage)?.fds.get(fd.number)
    }

    /// The host descriptor behind a descriptor, for host calls that need nothing else. One at a time.
    ///
    /// # Errors
    /// EBADF.
    #[inline(always)]
    pub fn host_fd(&self, fd: Fd) -> Result<InUse<'_>> {
        self.owner(fd.cage)?.fds.host(fd.number, &self.caller.reader)
    }

    /// Runs a host call that may block. A call that was interrupted for nothing the guest should see is made again.
    ///
    /// # Errors
    /// EINTR when the thread has something else to do first; otherwise what the host call says.
    #[inline(always)]
    pub fn blocking<T>(&self, mut host_call: impl FnMut() -> Result<T>) -> Result<T> {
        loop {
            let result = host_call();
            if !self.again(&result) {
                return result;
            }
        }
    }

    /// Whether a host call was interrupted for nothing the guest should see: the loop of `blocking`, for calls so short that
    /// a closure would cost a frame.
    #[inline(always)]
    pub fn again<T>(&self, result: &Result<T>) -> bool {
        matches!(result, Err(Errno::EINTR)) && self.goes_on()
    }

    /// Whether an interrupted call may go on. Stops happen here, so that a wait with an end keeps it; handlers do not. Signals of a
    /// client that a grate acts for are its own affair: the grate gets EINTR.
    #[cold]
    fn goes_on(&self) -> bool {
        let caller = self.caller.attention() & Attention::INTERRUPTS == 0 || signal::settle(self.kernel, self.caller);
        let goes_on = caller && self.thread.attention() & Attention::INTERRUPTS == 0;
        if !goes_on {
            self.thread.note_interrupted();
        }
        goes_on
    }

    /// Whether a call that waits inside the kernel has to return first.
    #[inline]
    pub fn has_signals(&self) -> bool {
        (self.thread.attention() | self.caller.attention()) & Attention::INTERRUPTS != 0
    }
}

/// A call that a cage, which is `thread`'s, makes for itself. Returns what the guest sees.
///
/// Inlined into the engine's import together with `dispatch` and the shortest calls: a host call leaves the processor
/// without predictions for returns, so frames between it and the guest are suspected to cost more than they look. Not measured one by one.
#[inline(always)]
pub fn syscall(
    kernel: &Arc<Kernel>,
    thread: &Thread,
    cage: &Cage,
    served: Option<&Served<'_>>,
    hop: &dyn Hop,
    number: u32,
    value: impl Fn(usize) -> u64,
) -> i64 {
    // Made from values where they are used: most calls use few, and a call that the kernel carries out needs no `Call`.
    let arg = |at: usize| Arg { value: value(at), cage: cage.id };
    match cage.handlers.get(number) {
        Handler::Kernel => {
            dispatch(|| Ctx { kernel, caller: thread, thread, cage, served, hop, others: &[] }, number, arg)
        }
        to => {
            // Put together where it is used from: copying it in wide pieces would wait for the narrow stores that made it.
            let values = [value(0), value(1), value(2), value(3), value(4), value(5)];
            let call = Call { nr: number, caller: cage.id, target: cage.id, values, owners: Owners::All(cage.id) };
            let in_kernel = || {
                let cx = Ctx { kernel, caller: thread, thread, cage, served, hop, others: &[] };
                dispatch_far(&cx, number, &call)
            };
            match cage.routes.follow(number, value(0), to) {
                Handler::Kernel => in_kernel(),
                Handler::Grate { cage: grate, entry, serialized } => {
                    let result = hop.enter(grate, entry, serialized, &Served { call: &call, client: thread });
                    if answered_by_nobody(kernel, number, grate, result) { in_kernel() } else { result }
                }
            }
        }
    }
}

/// A call of [`syscall`] once more, after an interruption.
#[cold]
#[inline(never)]
pub fn syscall_again(
    kernel: &Arc<Kernel>,
    thread: &Thread,
    served: Option<&Served<'_>>,
    hop: &dyn Hop,
    number: u32,
    values: [u64; 6],
) -> i64 {
    syscall(kernel, thread, &thread.cage, served, hop, number, |at| values[at])
}

/// No cage has this id.
const NOBODY: CageId = CageId(0);

/// A call that a cage makes on `target`, its arguments belonging to the cages named with them. The caller's own
/// table says where it goes, so that what a grate forwards reaches the grate it was started by.
///
/// Cage ids that name nothing are tolerated until the argument is used: callers leave unused slots as they are.
pub fn make_syscall(
    kernel: &Arc<Kernel>,
    thread: &Thread,
    served: Option<&Served<'_>>,
    hop: &dyn Hop,
    number: u32,
    target: u64,
    args: [(u64, u64); 6],
) -> i64 {
    match try_make_syscall(kernel, thread, served, hop, number, target, args) {
        Ok(result) => result,
        Err(errno) => errno.to_wire(),
    }
}

fn try_make_syscall(
    kernel: &Arc<Kernel>,
    thread: &Thread,
    served: Option<&Served<'_>>,
    hop: &dyn Hop,
    number: u32,
    target: u64,
    args: [(u64, u64); 6],
) -> Result<i64> {
    let target = CageId::from_wire(target).ok_or(Errno::ESRCH)?;
    let owners = Owners::Each(args.map(|(_, cage)| CageId::from_wire(cage).unwrap_or(NOBODY)));
    let call = Call { nr: number, caller: thread.cage.id, target, values: args.map(|(value, _)| value), owners };
    pass_on(kernel, thread, served, hop, &thread.cage.handlers, call)
}

/// The call that `wire` describes, by the table of the cage that it names as its caller. To handlers, the calling cage is
/// the caller as ever.
pub(crate) fn call_by(cx: &Ctx<'_>, wire: &LindCall) -> Result<i64> {
    not_again(wire.nr)?;
    let caller = &*cx.caller.cage;
    let target = CageId::from_wire(wire.target).ok_or(Errno::ESRCH)?;
    let owners = match wire.args.iter().all(|arg| arg.cage == wire.target) {
        true => Owners::All(target),
        false => Owners::Each(wire.args.map(|arg| CageId::from_wire(arg.cage).unwrap_or(NOBODY))),
    };
    let call = Call { nr: wire.nr, caller: caller.id, target, values: wire.args.map(|arg| arg.value), owners };
    by_table(cx, wire.caller, call)
}

/// Routes a call by the table of cage `by`: the calling one, or one below it.
#[inline]
fn by_table(cx: &Ctx<'_>, by: u64, call: Call) -> Result<i64> {
    let caller = &*cx.caller.cage;
    let by = CageId::from_wire(by).ok_or(Errno::ESRCH)?;
    if by == caller.id {
        return pass_on(cx.kernel, cx.caller, cx.served, cx.hop, &caller.handlers, call);
    }
    // Out of its place while the call lasts, which may make others: no count of users changes.
    let by = match cx.hop.by().take(by) {
        Some(cage) => cage,
        None => cx.kernel.cages.get(by).ok_or(Errno::ESRCH)?,
    };
    let result = authority::table(cx.kernel, caller, cx.served, &by, call.target)
        .and_then(|()| pass_on(cx.kernel, cx.caller, cx.served, cx.hop, &by.handlers, call));
    cx.hop.by().keep(by);
    result
}

/// A call that makes a call may not make one that does: it could describe itself, without end.
fn not_again(number: u32) -> Result<()> {
    if matches!(number, lind_abi::nr::forward | lind_abi::nr::call_by) { Err(Errno::ELOOP) } else { Ok(()) }
}

/// The call that the calling thread is serving, as it came, by its own table or by that of cage `by`. A grate that serves
/// `forward` itself cannot pass that on: what the client would make by it comes to that grate under its own number.
pub(crate) fn forward(cx: &Ctx<'_>, by: u64) -> Result<i64> {
    let served = cx.served.ok_or(Errno::EINVAL)?;
    if served.call.nr == lind_abi::nr::forward {
        return Err(Errno::ELOOP);
    }
    let call = Call { caller: cx.caller.cage.id, ..*served.call };
    if by != 0 {
        return by_table(cx, by, call);
    }
    pass_on(cx.kernel, cx.caller, cx.served, cx.hop, &cx.caller.cage.handlers, call)
}

/// Routes a call by `table`, which `thread`'s cage may use.
#[inline]
fn pass_on(
    kernel: &Arc<Kernel>,
    thread: &Thread,
    served: Option<&Served<'_>>,
    hop: &dyn Hop,
    table: &HandlerTable,
    call: Call,
) -> Result<i64> {
    // Most often a client's own call, on its way to the kernel or to the next grate: whose things it is about is known.
    if let Some(served) = served
        && let Owners::All(owner) = call.owners
        && owner == served.client.cage.id
        && owner == call.target
    {
        return Ok(pass_own(kernel, thread, served, hop, table, &call));
    }
    pass_any(kernel, thread, served, hop, table, call)
}

/// Routes what is a call of the client's on itself and on nothing else.
fn pass_own(
    kernel: &Arc<Kernel>,
    thread: &Thread,
    served: &Served<'_>,
    hop: &dyn Hop,
    table: &HandlerTable,
    call: &Call,
) -> i64 {
    let client = served.client;
    let in_kernel = || {
        let cx =
            Ctx { kernel, caller: thread, thread: client, cage: &client.cage, served: Some(served), hop, others: &[] };
        dispatch_far(&cx, call.nr, call)
    };
    match client.cage.routes.follow(call.nr, call.values[0], table.get(call.nr)) {
        Handler::Kernel => in_kernel(),
        Handler::Grate { cage: grate, entry, serialized } => {
            let result = hop.enter(grate, entry, serialized, &Served { call, client });
            if answered_by_nobody(kernel, call.nr, grate, result) { in_kernel() } else { result }
        }
    }
}

/// Checks whose a call's arguments are, and routes it by `table`.
fn pass_any(
    kernel: &Arc<Kernel>,
    thread: &Thread,
    served: Option<&Served<'_>>,
    hop: &dyn Hop,
    table: &HandlerTable,
    mut call: Call,
) -> Result<i64> {
    let (number, target) = (call.nr, call.target);
    let caller = &*thread.cage;
    let client = served.map_or(NOBODY, |s| s.client.cage.id);
    let known = |id: CageId| id == NOBODY || id == caller.id || id == client;

    // A grate that forwards its client's call with arguments of its own needs no look-up: both cages are at hand.
    let mut others = Vec::new();
    let mut check = |owner: &mut CageId| {
        if !known(*owner) && *owner != target && !others.iter().any(|cage: &Arc<Cage>| cage.id == *owner) {
            // A grate has authority over all its clients: it must not be told that an argument belongs to one that
            // the caller may not name.
            match authority::named(kernel, caller, served, *owner) {
                Ok(cage) => others.push(cage),
                Err(_) => *owner = NOBODY,
            }
        }
    };
    match &mut call.owners {
        Owners::All(owner) => check(owner),
        Owners::Each(owners) => owners.iter_mut().for_each(check),
    }
    let looked_up;
    let (on, cage): (&Thread, &Cage) = match served {
        Some(s) if s.client.cage.id == target => (s.client, &s.client.cage),
        _ if target == caller.id => (thread, caller),
        _ => {
            looked_up = authority::named(kernel, caller, served, target)?;
            (thread, &looked_up)
        }
    };
    let in_kernel = |others: &[Arc<Cage>], call: &Call| {
        let cx = Ctx { kernel, caller: thread, thread: on, cage, served, hop, others };
        dispatch_far(&cx, number, call)
    };
    Ok(match table.get(number) {
        Handler::Kernel => {
            if let Some(s) = served
                && s.client.cage.id != target
                && known(s.client.cage.id)
            {
                // The client's cage may be named by an argument without being the target.
                others.extend(kernel.cages.get(s.client.cage.id));
            }
            in_kernel(&others, &call)
        }
        Handler::Grate { cage: grate, entry, serialized } => {
            let result = hop.enter(grate, entry, serialized, &Served { call: &call, client: on });
            if answered_by_nobody(kernel, number, grate, result) { in_kernel(&others, &call) } else { result }
        }
    })
}

/// Whether the grate did not answer a call that must not fail: a dead grate must not keep its clients from ending.
#[inline]
fn answered_by_nobody(kernel: &Kernel, number: u32, grate: CageId, result: i64) -> bool {
    result == Errno::EIO.to_wire() && ends_thread(number) && kernel.cages.get(grate).is_none_or(|g| !g.answers())
}

/// `dispatch` in a frame of its own.
#[inline(never)]
fn dispatch_far(cx: &Ctx<'_>, number: u32, call: &Call) -> i64 {
    dispatch(|| *cx, number, |at| call.arg(at))
}

fn ends_thread(number: u32) -> bool {
    matches!(number, lind_abi::nr::exit | lind_abi::nr::exit_group | lind_abi::nr::rt_sigreturn)
}

#[inline]
fn wire<T: RetType>(result: Result<T>) -> i64 {
    match result {
        Ok(value) => value.into_wire(),
        Err(errno) => errno.to_wire(),
    }
}

macro_rules! dispatch {
    (
        implemented { $($(#[doc = $note:literal])* $nr:literal $area:ident $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)* }
        missing { $($missing:tt)* }
    ) => {
        /// Carries out a call in the kernel. Each row of the table is one arm, and the path is the name. The context is made in each:
        /// where a call is short enough to become part of its arm it is never written down.
        #[inline(always)]
        fn dispatch<'a>(context: impl Fn() -> Ctx<'a>, number: u32, arg_at: impl Fn(usize) -> Arg) -> i64 {
            match number {
                $($nr => {
                    let cx = context();
                    #[allow(unused_mut)]
                    let mut at = 0..6;
                    $(let $arg = <$ty as ArgType>::from_arg(arg_at(at.next().expect("no row has more than six arguments")));)*
                    let _ = at;
                    wire::<$ret>(sys::$area::$name(&cx, $($arg),*))
                })*
                _ => Errno::ENOSYS.to_wire(),
            }
        }
    };
}
lind_abi::for_each_syscall!(dispatch);
