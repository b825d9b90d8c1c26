//! Runs a guest's signal handlers.
//!
//! When a system call returns, the handler runs at once: in the same Store, on the guest's own
//! stack. When a thread is interrupted while it computes, its Store cannot be entered; the handler
//! runs in a second one over the same memory, with a stack of its own, and then the computation
//! goes on ([`while_computing`]). docs/signals.md describes the effects.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use lind_abi::layout::{Siginfo, Stack};
use lind_abi::{Errno, Word, nr};
use lind_kernel::cage::signal::{Delivery, Info, Step, end};
use lind_kernel::cage::{Attention, Next, Status, Thread};
use lind_kernel::call;
use lind_kernel::course::Course;
use lind_kernel::mem::Memory;
use lind_kernel::mem::budget::Share;
use wasmtime::{
    AsContext, AsContextMut, Error, Extern, Func, Global, Instance, Mutability, Ref, Result, Store, StoreContextMut,
    Table, ThrownException, Val, ValType,
};

use crate::grate::worker::set_stack_pointer;
use crate::run::fork::{self, Fork};
use crate::run::guest::{Guest, run_guest};
use crate::signal::context::{self, Callee, Computing};
use crate::signal::preempt;
use crate::signal::trap;
use crate::syscall::imports::leave;
use crate::syscall::trampoline;

/// The state of a Guest for signal handlers.
#[derive(Default)]
pub struct OfGuest {
    places: OnceCell<Places>,
    /// `__tls_base` of the thread, if the program exports it.
    tls: Cell<Option<u32>>,
    /// The function with which siglongjmp throws.
    longjmp: Cell<Option<Callee>>,
    /// The shape of the handler at an index of the table, as last seen.
    shape: Cell<Option<(u32, Shape)>>,
}

/// The places in an instance that handlers need: their table and their stack.
#[derive(Clone, Copy)]
struct Places {
    instance: Instance,
    functions: Option<Table>,
    stack_pointer: Option<Global>,
    tls_base: Option<Global>,
}

/// The parameters of a handler.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `void h(void)`
    None,
    /// `void h(int)`
    Signal,
    /// `void h(int, siginfo_t *, void *)`
    Info,
    /// Anything else: it gets its arguments as if in registers.
    Other,
}

/// Prepares a new instance for handlers, when its thread-local storage is in place.
pub fn prepare(store: &mut Store<Guest>, instance: &Instance) {
    let mutable = |store: &Store<Guest>, global: &Global| {
        let ty = global.ty(store);
        ty.mutability() == Mutability::Var && matches!(ty.content(), ValType::I32)
    };
    let mut global = |name: &str| {
        let global = instance.get_global(&mut *store, name)?;
        mutable(store, &global).then_some(global)
    };
    let (stack_pointer, tls_base) = (global("__stack_pointer"), global("__tls_base"));
    let functions = match instance.get_export(&mut *store, "__indirect_function_table") {
        Some(Extern::Table(table)) => Some(table),
        _ => None,
    };
    let longjmp = instance.get_func(&mut *store, "__wasm_longjmp");
    let longjmp = longjmp.and_then(|function| Callee::of(&function, store));
    let tls = tls_base.map(|global| get(&mut *store, global));
    let signals = &store.data().signals;
    let _ = signals.places.set(Places { instance: *instance, functions, stack_pointer, tls_base });
    signals.tls.set(tls);
    signals.longjmp.set(longjmp);
}

/// Like `prepare`, for a thread that starts from this block and sets its own `__tls_base`, the
/// first word of it.
pub fn prepare_thread(store: &mut Store<Guest>, instance: &Instance, boot: u32) {
    prepare(store, instance);
    let guest = store.data();
    if guest.signals.tls.get().is_some() {
        guest.signals.tls.set(guest.thread.cage.memory.guest.load(u64::from(boot)).ok());
    }
}

fn get(mut store: impl AsContextMut, global: Global) -> u32 {
    match global.get(&mut store) {
        Val::I32(value) => value.cast_unsigned(),
        _ => 0,
    }
}

fn set(store: impl AsContextMut, global: Global, value: u32) {
    global.set(store, Val::I32(value.cast_signed())).expect("`prepare` keeps globals of this type only");
}

/// Runs the handlers of the signals that wait for the thread of `caller`, which has made a call.
/// Returns whether the first one that ran allows calls to be restarted, and no other forbids it;
/// None if none ran.
///
/// # Errors
/// The reason why guest code is left: an exception thrown by a handler, a trap, the end of the
/// thread.
pub fn run_handlers(caller: &mut StoreContextMut<'_, Guest>) -> Result<Option<bool>> {
    let ran = run_all(caller, 0)?;
    Ok(ran.first.map(|restarts| restarts && !ran.interrupts))
}

/// The handlers that have run.
#[derive(Default)]
struct Ran {
    /// Whether the first one allows calls to be restarted.
    first: Option<bool>,
    /// Whether one of them forbids it.
    interrupts: bool,
}

/// The most handlers that may be about to start at once, each interrupted by the next before its
/// first instruction.
const DEEPEST: usize = 64;

fn run_all(store: &mut impl AsContextMut<Data = Guest>, depth: usize) -> Result<Ran> {
    let mut ran = Ran::default();
    loop {
        let context = store.as_context();
        let guest = context.data();
        match guest.thread.next_step(&guest.kernel) {
            Step::Go => return Ok(ran),
            Step::Leave(next) => return Err(leave(guest, next)),
            Step::Handle(delivery) => {
                if guest.kernel.course() == Course::Recorded {
                    note(guest, &delivery);
                }
                ran.first.get_or_insert(delivery.restart);
                ran.interrupts |= run(store, &delivery, depth)?;
            }
        }
    }
}

/// Tells the grate that records this run that a handler begins.
#[cold]
fn note(guest: &Guest, delivery: &Delivery) {
    let Info { signal, code, fields, .. } = delivery.info;
    let signal = u64::from(signal) | u64::from(code.cast_unsigned()) << 32;
    let pair = |at: usize| u64::from(fields[at]) | u64::from(fields[at + 1]) << 32;
    let values = [signal, delivery.returns, delivery.before, pair(0), pair(2), pair(4)];
    // The kernel's part of the call does nothing.
    let _ = call::syscall(guest, nr::signalled, &Word::six(values));
}

/// Runs one handler, and those that interrupt it before it starts. Returns whether one of them ends
/// the interrupted call.
fn run(store: &mut impl AsContextMut<Data = Guest>, delivery: &Delivery, depth: usize) -> Result<bool> {
    let places = store.as_context().data().signals.places.get().copied();
    let found = places.and_then(|places| find(store, places, delivery.handler).map(|found| (places, found)));
    let Some((places, (function, shape))) = found else {
        // The program has no function where Linux would jump to.
        return Err(fail(store));
    };
    let before = places.stack_pointer.map(|global| get(&mut *store, global));
    let info = matches!(shape, Shape::Info | Shape::Other);
    let frame = match before.map(|sp| Frame::push(store.as_context().data(), sp, delivery, info)) {
        None => Frame::default(),
        Some(Ok(frame)) => frame,
        Some(Err(_)) => return Err(fail(store)),
    };
    if let Some(global) = places.stack_pointer {
        set(&mut *store, global, frame.stack_pointer);
    }
    let thread = Arc::clone(&store.as_context().data().thread);
    // The frames of the call that is being left are not those of a fork, but the handler's may be.
    let can_fork = shape != Shape::Other && store.as_context().data().linked.exports.resume;
    let fork = store.as_context().data().way_out.fork.replace(Fork::Unable);
    let on_alt = thread.set_on_alt_stack(thread.on_alt_stack() || delivery.stack.is_some());
    // Linux lays out the frames of all signals that wait before the first handler starts: the last
    // one laid out runs first.
    let nested = if depth < DEEPEST { run_all(store, depth + 1) } else { Ok(Ran::default()) };
    let result = nested.and_then(|ran| {
        let guest = store.as_context().data();
        guest.way_out.fork.set(if can_fork { Fork::Ready } else { Fork::Unable });
        context::enter_guest(guest.base);
        let result = call(store, function, shape, delivery, &frame);
        let result = fork::go_on_with_handler(store, &places.instance, result);
        context::enter_host();
        result.map(|()| ran.interrupts || delivery.interrupt)
    });
    thread.set_on_alt_stack(on_alt);
    store.as_context().data().way_out.fork.set(fork);
    // A handler that is left by an exception leaves its mask, which siglongjmp sets, and its stack,
    // which the catcher sets.
    let interrupts = result?;
    if let (Some(global), Some(before)) = (places.stack_pointer, before) {
        set(&mut *store, global, before);
    }
    let context = store.as_context();
    let guest = context.data();
    let mask = frame.mask(guest).unwrap_or(delivery.mask);
    delivery.done(&guest.kernel, &guest.thread, mask);
    if delivery.stack.is_some() {
        guest.thread.rearm_alt_stack(&delivery.alt_stack);
    }
    Ok(interrupts)
}

/// Ends the cage by SIGSEGV, because a handler cannot run.
fn fail(store: &impl AsContext<Data = Guest>) -> Error {
    const SIGSEGV: u8 = 11;
    let context = store.as_context();
    let guest = context.data();
    end(&guest.kernel, &guest.thread.cage, SIGSEGV);
    leave(guest, Next::Exit(Status::signaled(SIGSEGV)))
}

/// The function at an index of the table, and its shape.
fn find(store: &mut impl AsContextMut<Data = Guest>, places: Places, index: u32) -> Option<(Func, Shape)> {
    let Some(Ref::Func(Some(function))) = places.functions?.get(&mut *store, u64::from(index)) else { return None };
    let known = store.as_context().data().signals.shape.get().filter(|(at, _)| *at == index);
    let shape = match known {
        Some((_, shape)) => shape,
        None => {
            let ty = function.ty(&*store);
            let words = ty.params().all(|param| matches!(param, ValType::I32)) && ty.results().len() == 0;
            let shape = match ty.params().len() {
                0 if words => Shape::None,
                1 if words => Shape::Signal,
                3 if words => Shape::Info,
                _ => Shape::Other,
            };
            store.as_context().data().signals.shape.set(Some((index, shape)));
            shape
        }
    };
    Some((function, shape))
}

fn call(
    store: &mut impl AsContextMut<Data = Guest>,
    function: Func,
    shape: Shape,
    delivery: &Delivery,
    frame: &Frame,
) -> Result<()> {
    let signal = u32::from(delivery.info.signal);
    // A program may have put another function in its table since the shape was noted; then the
    // types do not agree.
    match shape {
        Shape::None => function.typed::<(), ()>(&mut *store)?.call(store, ()),
        Shape::Signal => function.typed::<u32, ()>(&mut *store)?.call(store, signal),
        Shape::Info => {
            let info = function.typed::<(u32, u32, u32), ()>(&mut *store)?;
            info.call(store, (signal, frame.info, frame.context))
        }
        Shape::Other => {
            let ty = function.ty(&*store);
            let mut integers = [signal, frame.info, frame.context].into_iter();
            let mut next = || integers.next().unwrap_or(0);
            let arguments: Vec<Val> = ty
                .params()
                .map(|param| match param {
                    ValType::I32 => Val::I32(next().cast_signed()),
                    ValType::I64 => Val::I64(i64::from(next())),
                    other => Val::default_for_ty(&other).unwrap_or(Val::I32(0)),
                })
                .collect();
            let mut results = vec![Val::I32(0); ty.results().len()];
            function.call(store, &arguments, &mut results)
        }
    }
}

/// The arguments of a handler on its stack.
#[derive(Default)]
struct Frame {
    /// The address of siginfo_t; 0 if the handler does not ask for it.
    info: u32,
    /// The address of ucontext_t; 0 in the same case.
    context: u32,
    /// The stack pointer to start with.
    stack_pointer: u32,
}

/// Offsets in ucontext_t: uc_stack, uc_sigmask, and its size.
const UC_STACK: usize = 8;
const UC_SIGMASK: usize = 280;
const UC_SIZE: u32 = 408;
#[allow(clippy::cast_possible_truncation, reason = "128")]
const INFO_SIZE: u32 = size_of::<Siginfo>() as u32;

impl Frame {
    /// Writes the frame below `sp`, or to the top of the alternate stack.
    fn push(guest: &Guest, sp: u32, delivery: &Delivery, info: bool) -> Result<Frame, Errno> {
        /// The bytes below its stack pointer that a leaf function may use.
        const RED_ZONE: u32 = 128;
        const SIZE: u32 = (INFO_SIZE + UC_SIZE).next_multiple_of(16);
        let top = delivery.stack.map_or(sp.wrapping_sub(RED_ZONE), |stack: Stack| stack.sp.wrapping_add(stack.size));
        let stack_pointer = top & !15;
        if !info {
            return Ok(Frame { stack_pointer, ..Frame::default() });
        }
        let at = stack_pointer.checked_sub(SIZE).ok_or(Errno::EFAULT)?;
        let mut bytes = [0; (INFO_SIZE + UC_SIZE) as usize];
        let siginfo = delivery.info.to_guest();
        let words = [siginfo.signo, siginfo.errno, siginfo.code].map(i32::cast_unsigned);
        for (to, word) in bytes.chunks_exact_mut(4).zip(words.iter().chain(&siginfo.fields)) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let context = &mut bytes[INFO_SIZE as usize..];
        let stack = delivery.alt_stack;
        for (to, word) in
            context[UC_STACK..].chunks_exact_mut(4).zip([stack.sp, stack.flags.cast_unsigned(), stack.size])
        {
            to.copy_from_slice(&word.to_le_bytes());
        }
        context[UC_SIGMASK..UC_SIGMASK + 8].copy_from_slice(&delivery.mask.to_le_bytes());
        guest.thread.cage.memory.guest.write(u64::from(at), &bytes)?;
        Ok(Frame { info: at, context: at + INFO_SIZE, stack_pointer: at })
    }

    /// The signal mask in the frame when the handler has returned.
    fn mask(&self, guest: &Guest) -> Option<u64> {
        if self.context == 0 {
            return None;
        }
        guest.thread.cage.memory.guest.load(u64::from(self.context) + UC_SIGMASK as u64).ok()
    }
}

/// A Store to run handlers in while another Store of the same thread computes.
pub struct Nested {
    store: Store<Guest>,
    memory: Arc<Memory>,
    /// The end of its stack.
    stack: u64,
}

/// Stack of a handler that interrupts computation.
const STACK: u64 = 512 << 10;

/// The reason why a computation does not go on.
enum Left {
    /// The thread leaves guest code.
    Leave(Next),
    /// A handler called longjmp(3).
    Jump { env: u32, value: u32 },
}

/// Does the pending work of an interrupted thread: its handlers run, it stops, or it leaves. Called
/// by the host's signal handler. `fault`: its own instruction is the reason, and cannot wait.
pub fn while_computing(computing: Computing<'_>, fault: bool) {
    let guest = computing.guest;
    if !computing.has_frame() && !guest.thread.must_leave() {
        // An exception would miss the function that called this one. The signal comes again.
        return;
    }
    context::enter_host();
    let waits = computing.catches_soon() || guest.kernel.course() != Course::Free;
    if !fault && waits && !guest.thread.must_leave() {
        // A handler may jump into this very function. It runs when the signal comes again,
        // elsewhere. Where calls are all that a record knows of, it runs when the next one returns.
        guest.thread.settle(&guest.kernel);
        if !guest.thread.must_leave() && guest.thread.attention() & Attention::NEXT == 0 {
            context::enter_guest(guest.base);
            return;
        }
    }
    let done = interrupted(guest);
    context::enter_guest(guest.base);
    match (done, guest.signals.longjmp.get()) {
        (Ok(()), _) => {}
        (Err(Left::Jump { env, value }), Some(longjmp)) => computing.call(longjmp, [env, value]),
        (Err(Left::Jump { .. }), None) => {
            let what = "a signal handler was left by siglongjmp, which this program does not export (docs/signals.md)";
            trap::say(guest, what);
            guest.way_out.next.set(Some(Next::Exit(Status::signaled(6))));
            computing.leave();
        }
        (Err(Left::Leave(next)), _) => {
            guest.way_out.next.set(Some(next));
            computing.leave();
        }
    }
}

fn interrupted(guest: &Guest) -> Result<(), Left> {
    let ready =
        guest.signals.places.get().is_some_and(|places| places.tls_base.is_none() == guest.signals.tls.get().is_none());
    if !ready {
        // The instance's libc has not started yet: a signal waits for its next call; its end does
        // not.
        return guest.thread.take_next().map_or(Ok(()), |next| Err(Left::Leave(next)));
    }
    loop {
        match guest.thread.next_step(&guest.kernel) {
            Step::Go => return Ok(()),
            Step::Leave(next) => return Err(Left::Leave(next)),
            Step::Handle(delivery) => run_nested(guest, &delivery)?,
        }
    }
}

fn run_nested(guest: &Guest, delivery: &Delivery) -> Result<(), Left> {
    const SIGSEGV: u8 = 11;
    let failed = || Left::Leave(Next::Exit(Status::signaled(SIGSEGV)));
    if guest.host.take_room(0).is_err() {
        return Err(failed());
    }
    let result = Nested::take(guest).map_err(|_| failed()).and_then(|mut nested| {
        nested.store.data().serving_with(guest);
        preempt::again(true);
        let done = run_guest(&mut nested.store, |store| {
            context::enter_host();
            if guest.kernel.course() == Course::Recorded {
                note(store.data(), delivery);
            }
            run(store, delivery, 0).map(drop)
        });
        preempt::again(false);
        match done {
            Ok(()) => {
                guest.host.nested.borrow_mut().push(nested);
                Ok(())
            }
            Err(error) => Err(nested.left(&error)),
        }
    });
    guest.host.leave_room(0);
    result
}

impl Nested {
    /// Whether it belongs to this thread.
    pub fn is_of(&self, thread: &Arc<Thread>) -> bool {
        Arc::ptr_eq(&self.store.data().thread, thread)
    }

    /// A Store for the thread of `guest`, whose own Store is busy.
    fn take(guest: &Guest) -> Result<Box<Nested>> {
        let fits = |nested: &Nested| {
            let other = nested.store.data();
            Arc::ptr_eq(&other.thread, &guest.thread)
                && Arc::ptr_eq(&other.linked, &guest.linked)
                && other.base == guest.base
        };
        let found = {
            let mut idle = guest.host.nested.borrow_mut();
            let at = idle.iter().position(|nested| fits(nested));
            at.map(|at| idle.swap_remove(at))
        };
        if let Some(nested) = found {
            return Ok(nested);
        }
        let memory: Arc<Memory> = Arc::clone(&guest.thread.cage.memory);
        let no_room = |errno: Errno| Error::msg(errno.to_string());
        let share = Share::of_instance().map_err(no_room)?;
        let stack = memory.map_stack(STACK).map_err(no_room)?;
        let mut nested =
            Box::new(Nested { store: guest.host.store(&guest.thread, &guest.linked, share), memory, stack });
        let Nested { store, .. } = &mut *nested;
        let instance = trampoline::instantiate(store, &guest.linked)?;
        set_stack_pointer(store, &instance, u32::try_from(stack)?)?;
        prepare(store, &instance);
        let tls_base = store.data().signals.places.get().and_then(|places| places.tls_base);
        if let (Some(global), Some(tls)) = (tls_base, guest.signals.tls.get()) {
            set(&mut *store, global, tls);
            store.data().signals.tls.set(Some(tls));
        }
        Ok(nested)
    }

    /// The way on for the thread when a handler was left by an error.
    fn left(mut self: Box<Self>, error: &Error) -> Left {
        if error.is::<ThrownException>()
            && let Some((env, value)) = self.jump()
        {
            return Left::Jump { env, value };
        }
        Left::Leave(trap::outcome(&self.store, error))
    }

    /// The arguments of the longjmp(3) that threw the exception, if it was one: the exception
    /// carries the address of these two words, which libc keeps in the jmp_buf itself
    /// (src/sysroot/src/setjmp).
    fn jump(&mut self) -> Option<(u32, u32)> {
        const THROWN: u32 = 8;
        let exception = self.store.as_context_mut().take_pending_exception()?;
        let Ok(Val::I32(at)) = exception.field(&mut self.store, 0) else { return None };
        let at = at.cast_unsigned();
        let words: [u32; 2] = self.memory.guest.load(u64::from(at)).ok()?;
        (words[0].checked_add(THROWN) == Some(at)).then_some((words[0], words[1]))
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        self.memory.unmap_stack(self.stack, STACK);
    }
}
