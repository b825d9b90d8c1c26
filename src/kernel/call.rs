//! Carries a call from its number and six arguments to a kernel function or a grate.
//!
//! A guest's own calls enter by [`syscall`], calls that a cage makes for another by
//! [`make_syscall`]. Both look once into the caller's handler table, and then enter the kernel or a
//! grate.

mod dispatch;
mod grates;
mod user;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::layout::*;
use lind_abi::{Arg, CageId, Call, Errno, Fd, Owners, Result, Word};

use rustix::time::ClockId;

use crate::Kernel;
use crate::authority;
use crate::cage::{Attention, Cage, Thread, signal};
use crate::fd::{FileRef, InUse, Reader};
use crate::host::clock::sleep_until;
use crate::runtime::{Hop, Served};
use crate::threei::HandlerTable;
use dispatch::{dispatch, dispatch_short};
use grates::by_grates;
pub use user::PathBytes;

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

    /// The host descriptor behind a descriptor, for host calls that need nothing else; one at a
    /// time.
    ///
    /// # Errors
    /// EBADF.
    #[inline(always)]
    pub fn host_fd(&self, fd: Fd) -> Result<InUse<'_>> {
        self.owner(fd.cage)?.fds.host(fd.number, self.reader(fd.cage))
    }

    /// The hazard word in which uses of that cage's table are announced. A client waits on this
    /// very stack for the grate that acts for it, and uses nothing meanwhile: its word is free, and
    /// most often it owns the table.
    #[inline(always)]
    pub fn reader(&self, table: CageId) -> &Reader {
        if table == self.thread.cage.id { &self.thread.reader } else { &self.caller.reader }
    }

    /// Runs a host call that may block. An interrupted call is repeated, if the guest should not
    /// see the interruption.
    ///
    /// # Errors
    /// EINTR when the thread has something else to do first; otherwise the host call's errors.
    #[inline(always)]
    pub fn blocking<T>(&self, mut host_call: impl FnMut() -> Result<T>) -> Result<T> {
        self.waiting(|| {
            loop {
                let result = host_call();
                if !self.again(&result) {
                    return result;
                }
            }
        })
    }

    /// Runs `act`, which may wait; meanwhile the thread counts as sleeping when it does not run. A
    /// signal that comes from then on interrupts the wait: a process that sees another one sleep
    /// may rely on that.
    #[inline(always)]
    pub(crate) fn waiting<T>(&self, act: impl FnOnce() -> T) -> T {
        self.thread.waits.store(true, Ordering::Relaxed);
        let result = act();
        self.thread.waits.store(false, Ordering::Relaxed);
        result
    }

    /// Whether an interrupted host call has to be repeated, since the guest should not see the
    /// interruption: the loop of `blocking`, for calls so short that a closure would cost a frame.
    #[inline(always)]
    pub fn again<T>(&self, result: &Result<T>) -> bool {
        // Passed by its parts: a context whose address is not taken is never stored.
        matches!(result, Err(Errno::EINTR)) && goes_on(self.kernel, self.caller, self.thread)
    }

    /// Waits for so many nanoseconds, within a call that waits for an event without a notification.
    ///
    /// # Errors
    /// EINTR.
    pub fn pause(&self, nanos: u32) -> Result<()> {
        const NANOS: i64 = 1_000_000_000;
        let now = rustix::time::clock_gettime(ClockId::Monotonic);
        let nsec = now.tv_nsec + i64::from(nanos);
        let deadline = Timespec { sec: now.tv_sec + nsec / NANOS, nsec: nsec % NANOS };
        self.blocking(|| sleep_until(ClockId::Monotonic, &deadline))
    }

    /// Whether a call that waits inside the kernel has to return first.
    #[inline]
    pub fn has_signals(&self) -> bool {
        (self.thread.attention() | self.caller.attention()) & Attention::INTERRUPTS != 0
    }
}

/// Whether an interrupted call may continue. Stops happen here, so that a wait keeps its deadline;
/// handlers do not run here. Signals of a client are not handled while a grate acts for it: the
/// grate gets EINTR.
#[cold]
fn goes_on(kernel: &Arc<Kernel>, caller: &Thread, thread: &Thread) -> bool {
    let settled = caller.attention() & Attention::INTERRUPTS == 0 || signal::settle(kernel, caller);
    let goes_on = settled && thread.attention() & Attention::INTERRUPTS == 0;
    if !goes_on {
        thread.note_interrupted();
    }
    goes_on
}

/// A guest that makes a call, as its engine knows it. Calls ask for a fact only when they need it:
/// most need little.
pub trait Caller {
    /// The way into grates.
    type Hop: Hop;
    /// The kernel.
    fn kernel(&self) -> &Arc<Kernel>;
    /// The calling thread.
    fn thread(&self) -> &Thread;
    /// Its cage.
    fn cage(&self) -> &Cage;
    /// The call that it serves, if it is a grate's worker.
    fn served(&self) -> Option<&Served<'_>>;
    /// The way from this thread into grates.
    fn hop(&self) -> &Self::Hop;
}

fn context<C: Caller>(caller: &C) -> Ctx<'_> {
    let (kernel, thread, cage) = (caller.kernel(), caller.thread(), caller.cage());
    Ctx { kernel, caller: thread, thread, cage, served: caller.served(), hop: caller.hop(), others: &[] }
}

/// Makes a call of a cage for itself. Returns the value that the guest sees.
///
/// Inlined into the engine's entry together with the shortest calls (see [`is_short`]), and only
/// those: with all calls in it that function had 30 KB, and a read of one byte took about 8 ns
/// longer. The reason may be the caches, which a host call fills with its own code; that is a
/// guess.
#[inline(always)]
pub fn syscall<C: Caller>(caller: &C, number: u32, values: &[Word; 6]) -> i64 {
    if !caller.cage().handlers.is_kernels(number)
        && let Some(result) = own_by_grates(caller, number, values)
    {
        return result;
    }
    let arg = |at: usize| Arg { value: values[at].value, cage: caller.cage().id };
    let long = || syscall_long(caller, number, values);
    loop {
        let result = dispatch_short(|| context(caller), number, arg, long);
        if !is_interrupted(result) || !repeats(number, caller.kernel(), caller.thread(), caller.thread()) {
            return result;
        }
    }
}

/// Whether a call is carried out in [`syscall`] itself: one that is so short that a further
/// function would cost noticeably, that makes one short host call, or that grates make for most
/// calls that they serve.
const fn is_short(number: u32) -> bool {
    use lind_abi::nr;
    matches!(
        number,
        nr::read
            | nr::write
            | nr::pread64
            | nr::pwrite64
            | nr::lseek
            | nr::close
            | nr::getpid
            | nr::getppid
            | nr::gettid
            | nr::getuid
            | nr::geteuid
            | nr::getgid
            | nr::getegid
            | nr::clock_gettime
            | nr::call_by
            | nr::copy_data_between_cages
    )
}

/// The result of the grates that handle a call which a cage makes for itself; None if the kernel
/// has to make the call.
#[inline(never)]
fn own_by_grates<C: Caller>(caller: &C, number: u32, values: &[Word; 6]) -> Option<i64> {
    let (thread, mut call) = (caller.thread(), own_call(caller, number, values));
    let follow = |to| thread.routes.follow(number, values[0].value, to);
    by_grates(caller.kernel(), caller.hop(), thread, &mut call, caller.cage().handlers.packed(number), true, follow)
}

fn own_call<'a, C: Caller>(caller: &C, number: u32, values: &'a [Word; 6]) -> Call<'a> {
    let id = caller.cage().id;
    Call { nr: number, caller: id, target: id, values, owners: Owners::All(id) }
}

/// A call of [`syscall`] in the kernel that takes longer.
#[inline(never)]
fn syscall_long<C: Caller>(caller: &C, number: u32, values: &[Word; 6]) -> i64 {
    dispatch_long(&context(caller), &own_call(caller, number, values))
}

/// A call of [`syscall`] once more, after an interruption.
#[cold]
#[inline(never)]
pub fn syscall_again<C: Caller>(caller: &C, number: u32, values: [u64; 6]) -> i64 {
    syscall(caller, number, &Word::six(values))
}

/// No cage has this id.
const NOBODY: CageId = CageId(0);

/// Makes a call of a cage on `target`; its arguments belong to the cages named with them. The
/// caller's own table routes it, so that a forwarded call reaches the grate that handles the
/// forwarder's calls.
///
/// Cage ids that name nothing are tolerated until the argument is used: callers leave unused slots
/// as they are.
pub fn make_syscall(
    kernel: &Arc<Kernel>,
    thread: &Thread,
    served: Option<&Served<'_>>,
    hop: &dyn Hop,
    number: u32,
    target: u64,
    args: [(u64, u64); 6],
) -> i64 {
    let Some(target) = CageId::from_wire(target) else { return Errno::ESRCH.to_wire() };
    let owners = Owners::Each(args.map(|(_, cage)| CageId::from_wire(cage).unwrap_or(NOBODY)));
    let values = &Word::six(args.map(|(value, _)| value));
    let call = Call { nr: number, caller: thread.cage.id, target, values, owners };
    pass_on(kernel, thread, served, hop, &thread.cage.handlers, &call).unwrap_or_else(Errno::to_wire)
}

/// Makes the call described by `wire`, routed by the handler table of `by`. If `by` is 0, the table
/// of `wire.caller` is used. Handlers see the calling cage as the caller. If a grate relays this
/// call for a client (`asker`), the client's reach applies, and the grate's own table replaces the
/// client's. Fails with ELOOP if `wire` describes another `call_by`, because such calls could nest
/// without end.
pub(crate) fn call_by(cx: &Ctx<'_>, asker: &Cage, wire: &LindCall, by: u64) -> Result<i64> {
    if wire.nr == lind_abi::nr::call_by {
        return Err(Errno::ELOOP);
    }
    let caller = &*cx.caller.cage;
    let target = CageId::from_wire(wire.target).ok_or(Errno::ESRCH)?;
    let mut owners = match wire.args.iter().all(|arg| arg.cage == wire.target) {
        true => Owners::All(target),
        false => Owners::Each(wire.args.map(|arg| CageId::from_wire(arg.cage).unwrap_or(NOBODY))),
    };
    let mut by = if by == 0 { wire.caller } else { by };
    if asker.id != caller.id {
        authority::named(cx.kernel, asker, None, target)?;
        if let Owners::Each(owners) = &mut owners {
            for owner in owners {
                *owner = authority::named(cx.kernel, asker, None, *owner).map_or(NOBODY, |cage| cage.id);
            }
        }
        if by == u64::from(asker.id.0) {
            by = u64::from(caller.id.0);
        } else {
            let by = CageId::from_wire(by).and_then(|by| cx.kernel.cages.get(by)).ok_or(Errno::ESRCH)?;
            authority::table(cx.kernel, asker, None, &by, target)?;
        }
    }
    let values = &Word::six(wire.args.map(|arg| arg.value));
    let call = Call { nr: wire.nr, caller: caller.id, target, values, owners };
    by_table(cx, by, &call)
}

/// Routes a call by the table of cage `by`: the calling one, or one below it.
#[inline]
fn by_table(cx: &Ctx<'_>, by: u64, call: &Call<'_>) -> Result<i64> {
    let caller = &*cx.caller.cage;
    let by = CageId::from_wire(by).ok_or(Errno::ESRCH)?;
    if by == caller.id {
        return pass_on(cx.kernel, cx.caller, cx.served, cx.hop, &caller.handlers, call);
    }
    // Out of its place while the call lasts, which may make others: no count of users changes.
    let by = match cx.hop.cached_cage().take(by) {
        Some(cage) => cage,
        None => cx.kernel.cages.get(by).ok_or(Errno::ESRCH)?,
    };
    let result = authority::table(cx.kernel, caller, cx.served, &by, call.target)
        .and_then(|()| pass_on(cx.kernel, cx.caller, cx.served, cx.hop, &by.handlers, call));
    cx.hop.cached_cage().keep(by);
    result
}

/// Forwards the call that the calling thread is serving, unchanged, by its own table or by that of
/// cage `by`. This cannot recur without end: a call that is forwarded here never enters a handler
/// of forwarding ([`by_grates`]).
#[inline]
pub(crate) fn forward(cx: &Ctx<'_>, by: u64) -> Result<i64> {
    let served = cx.served.ok_or(Errno::EINVAL)?;
    if by != 0 {
        return by_table(cx, by, served.call);
    }
    pass_on(cx.kernel, cx.caller, cx.served, cx.hop, &cx.caller.cage.handlers, served.call)
}

/// Routes a call that `thread` makes, whoever made it before, by `table`, which `thread`'s cage may
/// use.
#[inline]
fn pass_on(
    kernel: &Arc<Kernel>,
    thread: &Thread,
    served: Option<&Served<'_>>,
    hop: &dyn Hop,
    table: &HandlerTable,
    call: &Call<'_>,
) -> Result<i64> {
    // Most often this is a client's own call, on its way to the kernel or to the next grate, and
    // the cage that it acts on is known.
    if let Some(served) = served
        && let Owners::All(owner) = call.owners
        && owner == served.client.cage.id
        && owner == call.target
    {
        return Ok(pass_own(kernel, thread, served, hop, table, (call.nr, call.values)));
    }
    pass_any(kernel, thread, served, hop, table, Call { caller: thread.cage.id, ..*call })
}

/// Routes what is a call of the client's on itself and on nothing else.
fn pass_own(
    kernel: &Arc<Kernel>,
    thread: &Thread,
    served: &Served<'_>,
    hop: &dyn Hop,
    table: &HandlerTable,
    (number, values): (u32, &[Word; 6]),
) -> i64 {
    let client = served.client;
    // The call is built from its parts: a copy would read in wide pieces what was written in narrow
    // ones a moment ago, which stalls.
    let id = client.cage.id;
    let mut call = Call { nr: number, caller: thread.cage.id, target: id, values, owners: Owners::All(id) };
    let follow = |to| client.routes.follow(number, values[0].value, to);
    if let Some(result) = by_grates(kernel, hop, client, &mut call, table.packed(number), true, follow) {
        return result;
    }
    let context =
        || Ctx { kernel, caller: thread, thread: client, cage: &client.cage, served: Some(served), hop, others: &[] };
    let in_kernel = || dispatch_long(&context(), &call);
    let arg = |at: usize| Arg { value: values[at].value, cage: id };
    loop {
        let result = dispatch_short(context, number, arg, in_kernel);
        if !is_interrupted(result) || !repeats(number, kernel, thread, client) {
            return result;
        }
    }
}

/// Checks the cages that a call's arguments refer to, and routes it by `table`.
fn pass_any(
    kernel: &Arc<Kernel>,
    thread: &Thread,
    served: Option<&Served<'_>>,
    hop: &dyn Hop,
    table: &HandlerTable,
    mut call: Call<'_>,
) -> Result<i64> {
    let (number, target) = (call.nr, call.target);
    let caller = &*thread.cage;
    let client = served.map_or(NOBODY, |s| s.client.cage.id);
    let known = |id: CageId| id == NOBODY || id == caller.id || id == client;

    // A grate that forwards its client's call with arguments of its own needs no look-up: both
    // cages are known.
    let mut others = Vec::new();
    let mut check = |owner: &mut CageId| {
        if !known(*owner) && *owner != target && !others.iter().any(|cage: &Arc<Cage>| cage.id == *owner) {
            // A grate has authority over all its clients: it must not learn that an argument
            // belongs to one that the caller may not name.
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
    if let Some(result) = by_grates(kernel, hop, on, &mut call, table.packed(number), false, |to| to) {
        return Ok(result);
    }
    if let Some(s) = served
        && s.client.cage.id != target
        && known(s.client.cage.id)
    {
        // The client's cage may be named by an argument without being the target.
        others.extend(kernel.cages.get(s.client.cage.id));
    }
    let cx = Ctx { kernel, caller: thread, thread: on, cage, served, hop, others: &others };
    Ok(dispatch_long(&cx, &call))
}

/// `dispatch` in a frame of its own.
#[inline(never)]
fn dispatch_long(cx: &Ctx<'_>, call: &Call<'_>) -> i64 {
    loop {
        let result = dispatch(cx, call);
        if !is_interrupted(result) || !repeats(call.nr, cx.kernel, cx.caller, cx.thread) {
            return result;
        }
    }
}

#[inline(always)]
fn is_interrupted(result: i64) -> bool {
    let interrupted = result == Errno::EINTR.to_wire();
    if interrupted {
        std::hint::cold_path();
    }
    interrupted
}

/// Whether an interrupted call has to be repeated: one that makes a single host call, and whose
/// interruption the guest should not see. Its arguments are still in place, so that no state has to
/// be kept for this while the host call runs.
#[cold]
fn repeats(number: u32, kernel: &Arc<Kernel>, caller: &Thread, thread: &Thread) -> bool {
    use lind_abi::nr;
    matches!(number, nr::read | nr::write | nr::pread64 | nr::pwrite64) && goes_on(kernel, caller, thread)
}
