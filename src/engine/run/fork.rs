//! fork(2): leaving a program's frames and entering them again, in two instances (docs/fork.md has
//! the contract).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::{Word, nr};
use lind_kernel::Errno;
use lind_kernel::cage::{Birth, How, Next, Status};
use lind_kernel::call;
use wasmtime::{
    AsContextMut, Caller, Extern, Global, Instance, Mutability, Result, Store, StoreContextMut, ThrownException, Val,
};

use crate::run::guest::Guest;
use crate::run::thread::{self, Begin};
use crate::signal::context;
use crate::signal::trap;
use crate::syscall::imports;

const TOP: &str = "__lind_fork_top";
const PINNED: &str = "__lind_fork_pinned";
const GLOBAL: &str = "__lind_global_";
/// If not 0, flags for the next fork; 1 is vfork(2). See `takes_wish`.
const WISHES: &str = "__lind_vfork";
const STACK: &str = "__stack_pointer";
/// The number that makes the program leave its frames.
const UNWIND: i32 = i32::MIN;
/// The bytes below its stack pointer that code may use.
const RED_ZONE: u32 = 128;

/// The state of a fork in the guest code that a host call has entered.
#[derive(Default)]
pub enum Fork {
    /// It cannot fork: a program that was not prepared, a handler of a type that no handler has, or
    /// it is forking.
    #[default]
    Unable,
    /// It can fork.
    Ready,
    /// Its frames are being left. Then the child comes to life.
    Unwinding {
        /// The child.
        child: Birth,
        /// The result of the parent's `lind.fork`: a grate may have answered otherwise than the
        /// kernel.
        number: i32,
    },
    /// Its frames are being entered again; `lind.fork` returns this.
    Resuming(i32),
}

/// Implements the import `lind.fork`. The call travels as clone(2) with SIGCHLD alone, or as
/// posix_spawn's for vfork(2), so that a grate sees every birth under one number.
///
/// # Errors
/// Guest code is to be left.
pub fn fork(mut caller: Caller<'_, Guest>) -> Result<i32> {
    let state = match caller.data().way_out.fork.take() {
        Fork::Ready => return begin_fork(&mut caller),
        Fork::Resuming(number) => {
            caller.data().way_out.fork.set(Fork::Ready);
            // The records are not needed any more.
            imports::run_waiting_handlers(&mut caller.as_context_mut())?;
            return Ok(number);
        }
        state => state,
    };
    caller.data().way_out.fork.set(state);
    Ok(-Errno::ENOSYS.raw())
}

fn begin_fork(caller: &mut Caller<'_, Guest>) -> Result<i32> {
    let (state, result) = match make_child(caller)? {
        Ok((child, number)) => (Fork::Unwinding { child, number }, UNWIND),
        Err(result) => (Fork::Ready, result),
    };
    caller.data().way_out.fork.set(state);
    Ok(result)
}

/// The child and its number, or the call's result without a child.
fn make_child(caller: &mut Caller<'_, Guest>) -> Result<core::result::Result<(Birth, i32), i32>> {
    let refused = -Errno::ENOSYS.raw();
    if global(caller, PINNED).is_some_and(|pinned| !matches!(pinned.get(&mut *caller), Val::I32(0))) {
        trap::say(caller.data(), "fork while an exception is being handled is not supported");
        return Ok(Err(refused));
    }
    let flags = takes_wish(caller);
    let thread = Arc::clone(&caller.data().thread);
    thread.forking.store(true, Ordering::Release);
    let result =
        imports::without_handlers(caller, |guest| call::syscall(guest, nr::clone, &Word::six([flags, 0, 0, 0, 0, 0])));
    thread.forking.store(false, Ordering::Release);
    let guest = caller.data();
    let (number, child) = match (result, thread.take_birth()) {
        (Ok(number), Some(child)) => (number, child),
        (Ok(number), None) => return Ok(Err(i32::try_from(number).unwrap_or(refused))),
        (Err(error), child) => {
            if let Some(child) = child {
                child.abandon(&guest.kernel, &*guest.host);
            }
            return Err(error);
        }
    };
    let number = i32::try_from(number).unwrap_or(refused);
    let top = global(caller, TOP).zip(global(caller, STACK));
    let top = top.map(|(top, stack)| (top, stack.get(&mut *caller)));
    // If a grate has answered with an error after all, the child is undone; so too if the module
    // lacks the code that leaves its frames.
    let (Some((top, Val::I32(stack))), 0..) = (top, number) else {
        let guest = caller.data();
        child.undo(&guest.kernel, &*guest.host);
        return Ok(Err(if number < 0 { number } else { refused }));
    };
    top.set(&mut *caller, Val::I32(end_of_records(stack).cast_signed()))?;
    Ok(Ok((child, number)))
}

/// The address behind the highest byte of the records.
fn end_of_records(stack: i32) -> u32 {
    stack.cast_unsigned().wrapping_sub(RED_ZONE) & !15
}

/// The flags of clone(2) that the program asks for; for this fork only. A wish of 1 is vfork(2).
fn takes_wish(caller: &mut Caller<'_, Guest>) -> u64 {
    const SIGCHLD: u64 = 17;
    /// CLONE_VM, CLONE_VFORK
    const BORROWS: u64 = 0x100 | 0x4000;
    /// CLONE_PARENT, CLONE_NEWUTS, CLONE_NEWIPC
    const MAY: u32 = 0x8000 | 0x400_0000 | 0x800_0000;
    let Some(wishes) = global(caller, WISHES) else { return SIGCHLD };
    let Val::I32(wish) = wishes.get(&mut *caller) else { return SIGCHLD };
    // A wish that cannot be cleared does not count.
    if wish == 0 || wishes.set(&mut *caller, Val::I32(0)).is_err() {
        return SIGCHLD;
    }
    SIGCHLD | if wish == 1 { BORROWS } else { u64::from(wish.cast_unsigned() & MAY) }
}

fn global(caller: &mut Caller<'_, Guest>, name: &str) -> Option<Global> {
    caller.get_export(name).and_then(Extern::into_global)
}

/// Goes on with the code that the host had entered and that was left for a fork, as often as
/// needed: brings the child to life, and enters the frames again.
///
/// # Errors
/// The reason why guest code was left.
pub fn go_on(store: &mut Store<Guest>, instance: &Instance) -> Result<()> {
    let outermost = if store.data().way_out.only_handler.get() { Outermost::Handler } else { Outermost::Entry };
    while let Some((child, number)) = left_for_a_child(store.data()) {
        let number = split(&mut store.as_context_mut(), instance, (child, number), outermost)?;
        resume(&mut store.as_context_mut(), instance, number)?;
    }
    Ok(())
}

/// Does the same for a signal handler, which was left with `result`. A child of the handler has no
/// frames below it.
///
/// # Errors
/// The reason why the handler was left.
pub fn go_on_with_handler(
    store: &mut impl AsContextMut<Data = Guest>,
    instance: &Instance,
    mut result: Result<()>,
) -> Result<()> {
    let mut store = store.as_context_mut();
    loop {
        let Some((child, number)) = left_for_a_child(store.data()) else { return result };
        // A child that has no frames to go on with ends in an exception, which an exported function
        // would have caught.
        if result.as_ref().is_err_and(|error| error.is::<ThrownException>()) {
            store.take_pending_exception();
            result = Ok(());
        }
        if result.is_err() {
            child.abandon(&store.data().kernel, &*store.data().host);
            return result;
        }
        let number = split(&mut store, instance, (child, number), Outermost::Handler)?;
        result = resume(&mut store, instance, number);
    }
}

/// The child for which the frames were left, and its number.
fn left_for_a_child(guest: &Guest) -> Option<(Birth, i32)> {
    match guest.way_out.fork.take() {
        Fork::Unwinding { child, number } => Some((child, number)),
        state => {
            guest.way_out.fork.set(state);
            None
        }
    }
}

/// The thread ends. If its frames were being left for a child, the child is dropped.
pub fn give_up(guest: &Guest) {
    if let Some((child, _)) = left_for_a_child(guest) {
        child.abandon(&guest.kernel, &*guest.host);
    }
}

/// The code that the host had entered and that came to a fork.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outermost {
    /// An entry of the program or of a thread.
    Entry,
    /// A signal handler.
    Handler,
}

/// The parent's frames are left: brings the child to life. Returns the result of the parent's
/// `lind.fork`.
///
/// # Errors
/// Guest code is to be left: the parent has ended while its child borrowed its memory.
fn split(
    store: &mut StoreContextMut<'_, Guest>,
    instance: &Instance,
    (child, number): (Birth, i32),
    outermost: Outermost,
) -> Result<i32> {
    context::enter_host();
    let number = match bring_to_life(store, instance, &child, outermost) {
        Ok(Parent::GoesOn) => number,
        Ok(Parent::Ends) => {
            let guest = store.data();
            let killed = || Next::Exit(Status::signaled(9));
            return Err(imports::leave(guest, guest.thread.take_next().unwrap_or_else(killed)));
        }
        Err(errno) => {
            let guest = store.data();
            child.undo(&guest.kernel, &*guest.host);
            -errno.raw()
        }
    };
    context::enter_guest(store.data().base);
    Ok(number)
}

/// The fate of a parent.
enum Parent {
    GoesOn,
    /// Its frames are gone.
    Ends,
}

fn bring_to_life(
    store: &mut StoreContextMut<'_, Guest>,
    instance: &Instance,
    birth: &Birth,
    outermost: Outermost,
) -> core::result::Result<Parent, Errno> {
    let frozen = Frozen::of(store, instance, outermost);
    let borrows = birth.how == How::Borrow;
    let records = if borrows { Some(Records::of(store, instance)?) } else { None };
    let guest = store.data();
    if !borrows {
        birth.copy_memory(&guest.kernel, &guest.thread.cage)?;
    }
    let shared = &guest.host.shared;
    let child = birth.child.cage.id;
    shared.set_program(child, &guest.linked);
    let (thread, linked) = (Arc::clone(&birth.child), Arc::clone(&guest.linked));
    thread::launch(shared, &guest.kernel, thread, linked, Begin::Fork(frozen))
        .inspect_err(|_| shared.forget_program(child))?;
    let Some(records) = records else { return Ok(Parent::GoesOn) };
    if !guest.thread.cage.wait_for_memory(&birth.child.cage) {
        return Ok(Parent::Ends);
    }
    records.put_back(guest);
    Ok(Parent::GoesOn)
}

/// The records of a parent whose child borrows its memory, and puts its own stack where they are.
struct Records {
    at: u64,
    bytes: Vec<u8>,
}

impl Records {
    /// A limit that no frames reach.
    const MOST: u32 = 16 << 20;

    /// Takes a copy.
    ///
    /// # Errors
    /// ENOMEM, also for a range that cannot be the records.
    fn of(store: &mut StoreContextMut<'_, Guest>, instance: &Instance) -> core::result::Result<Records, Errno> {
        let mut number = |name| match instance.get_global(&mut *store, name).map(|global| global.get(&mut *store)) {
            Some(Val::I32(number)) => Ok(number),
            _ => Err(Errno::ENOSYS),
        };
        let (top, stack) = (number(TOP)?.cast_unsigned(), number(STACK)?);
        let len = end_of_records(stack).checked_sub(top).filter(|&len| len <= Records::MOST).ok_or(Errno::ENOMEM)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len as usize).map_err(|_| Errno::ENOMEM)?;
        bytes.resize(len as usize, 0);
        let memory = &store.data().thread.cage.memory;
        memory.guest.read(top.into(), &mut bytes).map_err(|_| Errno::ENOMEM)?;
        Ok(Records { at: top.into(), bytes })
    }

    /// Writes the records back. If their memory is unmapped, entering the frames again faults.
    fn put_back(&self, guest: &Guest) {
        let _ = guest.thread.cage.memory.guest.write(self.at, &self.bytes);
    }
}

/// Enters the frames again; `lind.fork` returns `number`.
fn resume(store: &mut StoreContextMut<'_, Guest>, instance: &Instance, number: i32) -> Result<()> {
    store.data().way_out.fork.set(Fork::Resuming(number));
    instance.get_typed_func::<(), ()>(&mut *store, "__lind_resume")?.call(store, ())
}

/// Begins the life of a child, whose `lind.fork` returns 0.
///
/// # Errors
/// The reason why guest code was left.
pub fn begin(store: &mut Store<Guest>, instance: &Instance) -> Result<()> {
    resume(&mut store.as_context_mut(), instance, 0)
}

/// The end of a child that was forked in a handler and has left it: the interrupted frames do not
/// exist in it.
pub fn nothing_below(guest: &Guest) -> Next {
    const SIGABRT: u8 = 6;
    trap::say(guest, "SIGABRT: the child of a fork in a signal handler left the handler (docs/fork.md)");
    Next::Exit(Status::signaled(SIGABRT))
}

/// The values of an instance's globals that a child must find.
pub struct Frozen {
    globals: Vec<(String, Value)>,
    outermost: Outermost,
}

/// A number in a global.
enum Value {
    I32(i32),
    I64(i64),
    F32(u32),
    F64(u64),
    V128(u128),
}

impl Frozen {
    fn of(store: &mut StoreContextMut<'_, Guest>, instance: &Instance, outermost: Outermost) -> Frozen {
        let exports = Arc::clone(&store.data().linked);
        let value = |name: &String| {
            let value = match instance.get_global(&mut *store, name)?.get(&mut *store) {
                Val::I32(value) => Value::I32(value),
                Val::I64(value) => Value::I64(value),
                Val::F32(value) => Value::F32(value),
                Val::F64(value) => Value::F64(value),
                Val::V128(value) => Value::V128(value.as_u128()),
                _ => return None,
            };
            Some((name.clone(), value))
        };
        Frozen { globals: exports.exports.globals.iter().filter_map(value).collect(), outermost }
    }

    /// Gives another instance of the module the state of the parent's.
    ///
    /// # Errors
    /// None in practice: the globals have the same types.
    pub fn thaw(self, store: &mut Store<Guest>, instance: &Instance) -> Result<()> {
        store.data().way_out.only_handler.set(self.outermost == Outermost::Handler);
        for (name, value) in self.globals {
            let Some(global) = instance.get_global(&mut *store, &name) else { continue };
            let value = match value {
                Value::I32(value) => Val::I32(value),
                Value::I64(value) => Val::I64(value),
                Value::F32(value) => Val::F32(value),
                Value::F64(value) => Val::F64(value),
                Value::V128(value) => Val::V128(value.into()),
            };
            global.set(&mut *store, value)?;
        }
        Ok(())
    }
}

/// The exports of a module for threads and forks.
#[derive(Debug, Default)]
pub struct Exports {
    /// `__lind_thread_start`.
    pub thread_start: bool,
    /// `__lind_resume`: the program can fork.
    pub resume: bool,
    /// The globals that a fork copies.
    globals: Vec<String>,
}

impl Exports {
    /// The exports of a module.
    pub fn of(module: &wasmtime::Module) -> Exports {
        use wasmtime::ExternType;
        let function = |name: &str, params: usize| match module.get_export(name) {
            Some(ExternType::Func(ty)) => ty.params().len() == params && ty.results().len() == 0,
            _ => false,
        };
        let resume = function("__lind_resume", 0);
        let copied =
            |name: &str| name == TOP || name == PINNED || name == "__stack_pointer" || name.starts_with(GLOBAL);
        let globals = module.exports().filter_map(|export| match export.ty() {
            ExternType::Global(ty) if ty.mutability() == Mutability::Var && copied(export.name()) => {
                Some(export.name().to_owned())
            }
            _ => None,
        });
        let globals = if resume { globals.collect() } else { Vec::new() };
        Exports { thread_start: function("__lind_thread_start", 1), resume, globals }
    }
}
