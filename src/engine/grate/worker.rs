//! Runs a handler on the thread that made the call.
//!
//! A worker is a Store and an instance over the grate's memory, with a stack of its own there; to
//! the grate's libc it is a thread like any other. Workers are kept with the host thread that made
//! them: a call takes an idle one, and a grate that is re-entered gets a second.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::Arc;

use lind_abi::{ASK, CageId, Call, Errno, PASS, Result, Word, nr};
use lind_kernel::Kernel;
use lind_kernel::cage::{Next, Status, Thread};
use lind_kernel::copy_out;
use lind_kernel::mem::Memory;
use lind_kernel::mem::budget::Share;
use lind_kernel::runtime::{CachedCage, Entered, Hop, Served, Start};
use lind_kernel::threei::{Handler, Packed};
use wasmtime::{Func, Global, Instance, Mutability, Store, TypedFunc, Val, ValRaw, ValType};

use crate::Program;
use crate::code::validate::Entry;
use crate::grate::filter::{self, Filter};
use crate::run::guest::{Guest, HostThread, NoRoom, run_guest};
use crate::signal::context;
use crate::signal::handlers;
use crate::signal::host_signals;
use crate::signal::preempt;
use crate::signal::trap;
use crate::space::worker_stack::WorkerStack;
use crate::syscall::trampoline;
use lind_kernel::lock::Locked;

/// A grate's guest thread on this host thread.
pub struct Worker {
    pub(crate) grate: CageId,
    store: Store<Guest>,
    thread: Arc<Thread>,
    /// The grate's memory, one pointer away rather than three.
    memory: Arc<Memory>,
    handle: Handle,
    filter: Cell<Option<Filter>>,
    exit: Option<TypedFunc<(), ()>>,
    stack: WorkerStack,
}

/// The function that the grate is called by.
enum Handle {
    /// `__lind_handle(entry: i32, call: i32) -> i64`
    Lind(Func),
    /// `pass_fptr_to_wt(entry: i64, grate: i64, 6 x (value: i64, cage: i64)) -> i32`
    PassFptr(Func),
}

type PassFptr = (i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64);

impl Hop for HostThread {
    #[inline(always)]
    fn enter(&self, grate: CageId, entry: u32, serialized: bool, past: usize, served: &Served<'_>) -> Entered {
        let depth = match self.take_room(past) {
            Ok(depth) => depth,
            Err(NoRoom::Hops) => return failed(Errno::ELOOP),
            Err(NoRoom::Stack) => return failed(Errno::EAGAIN),
        };
        let entered = if serialized {
            self.enter_alone(depth, grate, entry, served)
        } else {
            self.enter_worker(depth, grate, entry, served)
        };
        self.leave_room(past);
        entered
    }

    #[inline(always)]
    fn ask_filter(&self, client: CageId, nr: u32, values: &[Word; 6], to: Packed, past: usize) -> Option<Entered> {
        if !self.has_filters.get() {
            return None;
        }
        let (worker, filter) = self.filtering(to, past)?;
        if !worker.thread.begin_serving() {
            return None;
        }
        let result = filter.ask(client, nr, values);
        let next = worker.thread.cage.handlers.packed(nr);
        if !worker.thread.end_serving() {
            self.after_filter(past, false, None);
        }
        // A filter cannot answer with data.
        if result > ASK {
            return Some(Entered::Answered(result));
        }
        if result == PASS {
            return Some(Entered::Passed(next));
        }
        if let Some(signal) = filter::left_by() {
            self.after_filter(past, true, Some(signal));
        }
        None
    }

    fn cached_cage(&self) -> &CachedCage {
        &self.cached_cage
    }

    fn lend(&self, _: &Arc<Kernel>, thread: Arc<Thread>, start: Start) -> Result<()> {
        self.keep_back(thread, &start)
    }

    fn run_lent(&self, waits: Option<&Thread>) -> bool {
        HostThread::run_lent(self, waits)
    }
}

#[cold]
fn failed(errno: Errno) -> Entered {
    Entered::Answered(errno.to_wire())
}

impl HostThread {
    /// The worker in which `to` would enter a handler, if it is idle here and has a filter.
    #[inline(always)]
    fn filtering(&self, to: Packed, past: usize) -> Option<(&Worker, Filter)> {
        let Handler::Grate { cage: grate, entry, serialized: false } = to.handler() else { return None };
        let place = self.last.get(self.hops() + past)?;
        // SAFETY: the places are this thread's, and no other code of the host runs on it while the
        // worker is borrowed: a filter calls nothing, and a signal that comes meanwhile makes it
        // return and does no more.
        let worker = unsafe { &*place.as_ptr() }.as_deref().filter(|worker| worker.grate == grate)?;
        Some((worker, worker.filter.get().filter(|filter| filter.entry == entry)?))
    }

    /// The grate ended while its filter was asked, or a signal ended the filter.
    #[cold]
    fn after_filter(&self, past: usize, stays: bool, left_by: Option<i32>) {
        let depth = self.hops() + past;
        let Some(worker) = self.last[depth].take() else { return };
        if let Some(signal) = left_by.filter(|signal| *signal != preempt::signal()) {
            worker.filter.set(None);
            let name = trap::name_of(signal);
            trap::say(worker.store.data(), &format!("{name} in its filter; from now on its handlers decide alone"));
        }
        if stays {
            self.keep(depth, worker);
        } else {
            self.lose(worker.grate, worker, Next::ExitThread(0));
        }
    }

    #[inline(always)]
    fn enter_worker(&self, depth: usize, grate: CageId, entry: u32, served: &Served<'_>) -> Entered {
        let mut worker = match self.take_idle(depth, grate) {
            Some(worker) => worker,
            None => match self.make_worker(grate) {
                Ok(worker) => worker,
                Err(errno) => return failed(errno),
            },
        };
        // Set on all threads of a cage when its end begins, or when it runs another program.
        if !worker.thread.begin_serving() {
            self.lose(grate, worker, Next::ExitThread(0));
            return failed(Errno::EIO);
        }
        match worker.call(grate, entry, served) {
            Ok(result) => {
                let entered = if result > PASS {
                    Entered::Answered(result)
                } else if result == PASS {
                    Entered::Passed(worker.thread.cage.handlers.packed(served.call.nr))
                } else {
                    // ANSWER, the only smaller number.
                    let at = u64::from(worker.stack.answer);
                    let grate = (&*worker.thread, &worker.memory.guest);
                    Entered::Answered(copy_out::give(&self.kernel, grate, served, self, at))
                };
                if worker.thread.end_serving() {
                    self.keep(depth, worker);
                } else {
                    self.lose(grate, worker, Next::ExitThread(0));
                }
                entered
            }
            Err(error) => {
                let next = trap::outcome(&worker.store, &error);
                self.lose(grate, worker, next);
                failed(Errno::EIO)
            }
        }
    }

    /// Enters while no other thread makes a serialized call of this grate. A nested call does not
    /// wait.
    #[cold]
    fn enter_alone(&self, depth: usize, grate: CageId, entry: u32, served: &Served<'_>) -> Entered {
        let Some(program) = self.shared.program(grate) else { return failed(Errno::EIO) };
        let turn = self.turn_of(grate).then(|| program.turn.locked());
        let entered = self.enter_worker(depth, grate, entry, served);
        if turn.is_some() {
            self.turn_over(grate);
        }
        entered
    }

    /// A grate has ended, through its handler or otherwise, or runs another program: drops its
    /// workers on this thread.
    #[cold]
    fn lose(&self, grate: CageId, worker: Box<Worker>, how: Next) {
        let how = match how {
            // A handler that ends its thread would leave its client without an answer: the grate
            // ends.
            Next::ExitThread(code) if !worker.thread.must_leave() => Next::Exit(Status::exited(code)),
            how => how,
        };
        self.ended(&worker.thread, how);
        drop(worker);
        self.lose_idle(grate);
    }

    /// Drops the idle workers of a grate.
    pub fn lose_idle(&self, grate: CageId) {
        for idle in self.forget(grate) {
            idle.abandon(self);
        }
    }

    #[cold]
    fn make_worker(&self, grate: CageId) -> Result<Box<Worker>> {
        // For any reason why there cannot be a worker, the client gets EIO: the grate is out of
        // order.
        let cage = self.kernel.cages.get(grate).filter(|cage| cage.answers()).ok_or(Errno::EIO)?;
        let program = self.shared.program(grate).ok_or(Errno::EIO)?;
        let thread = cage.new_thread(&self.kernel).map_err(|_| Errno::EIO)?;
        self.shared.interrupts.started(&thread, self.tid);
        let worker = Worker::make(self, &thread, &program).inspect(|worker| {
            self.has_filters.set(self.has_filters.get() || worker.filter.get().is_some());
        });
        worker.map_err(|(errno, next)| {
            self.ended(&thread, next);
            errno
        })
    }

    /// A guest thread does not run on this host thread any more.
    pub fn ended(&self, thread: &Arc<Thread>, how: Next) {
        self.shared.interrupts.ended(thread);
        thread.ended(&self.kernel, how, self);
        if thread.cage.is_dead() {
            self.shared.forget_program(thread.cage.id);
            host_signals::thread_ended(thread);
        }
    }
}

impl Worker {
    fn make(
        host: &HostThread,
        thread: &Arc<Thread>,
        program: &Program,
    ) -> core::result::Result<Box<Worker>, (Errno, Next)> {
        let quiet = |errno: Errno| (errno, Next::ExitThread(0));
        let memory = &thread.cage.memory;
        let share = Share::of_instance().map_err(quiet)?;
        let stack = WorkerStack::map(memory).map_err(quiet)?;
        let linked = &program.linked;
        let mut store = host.store(thread, linked, share);
        let made = run_guest(&mut store, |store| {
            let instance = trampoline::instantiate(store, linked)?;
            set_stack_pointer(store, &instance, stack.call)?;
            if let Ok(init) = instance.get_typed_func::<(u32, u32, u32), ()>(&mut *store, "__lind_worker_init") {
                init.call(&mut *store, (stack.block, stack.block_len, thread.tid))?;
            }
            handlers::prepare(store, &instance);
            let filter = Filter::find(store, &instance)?;
            Ok((Handle::find(store, &instance, linked.facts.entry)?, filter, instance))
        });
        let (handle, filter, instance) = match made {
            Ok(made) => made,
            Err(error) => {
                // If memory for it is short, that is not the grate's fault: the maker of the call
                // has asked for too much.
                let of_guest = trap::is_of_guest(&store, &error);
                let next = if of_guest { trap::outcome(&store, &error) } else { Next::ExitThread(0) };
                stack.unmap(memory);
                return Err((Errno::EIO, next));
            }
        };
        let exit = instance.get_typed_func(&mut store, "__lind_worker_exit").ok();
        let (grate, thread, memory) = (thread.cage.id, Arc::clone(thread), Arc::clone(memory));
        Ok(Box::new(Worker { grate, store, thread, memory, handle, filter: Cell::new(filter), exit, stack }))
    }

    /// Runs handler `entry`. On an error, the grate's thread, and mostly the grate, has ended
    /// meanwhile ([`trap::outcome`]).
    ///
    /// Without closures, which the compiler would turn into functions with arguments in memory.
    #[inline(always)]
    fn call(&mut self, grate: CageId, entry: u32, served: &Served<'_>) -> wasmtime::Result<i64> {
        let Worker { store, handle, stack, memory, .. } = self;
        let Handle::Lind(handle) = handle else { return self.call_by_fptr(grate, entry, served) };
        // The grate may have unmapped its worker's stack: then the grate faults, not the client.
        if memory.guest.store_call(u64::from(stack.call), served.call).is_err() {
            return Err(wasmtime::Trap::MemoryOutOfBounds.into());
        }
        store.data().serving(served);
        let mut values = [ValRaw::u32(entry), ValRaw::u32(stack.call)];
        let inside = context::Inside::new(store.data());
        // SAFETY: as in `run_guest`.
        let outside = unsafe { inside.enter() };
        // SAFETY: `find` has checked the type, and the function is this Store's.
        let result = unsafe { handle.call_unchecked(&mut *store, &raw mut values) };
        context::leave(outside);
        store.data().serves_no_more();
        result.map(|()| values[0].get_i64())
    }

    /// Runs a handler of a grate with Lind's entry.
    #[inline(never)]
    fn call_by_fptr(&mut self, grate: CageId, entry: u32, served: &Served<'_>) -> wasmtime::Result<i64> {
        let Worker { store, handle: Handle::Lind(entry_point) | Handle::PassFptr(entry_point), .. } = self;
        store.data().serving(served);
        let mut values = in_lind_words(grate, entry, served.call).map(ValRaw::i64);
        // SAFETY: `find` has checked the type, and the function is this Store's.
        let result = run_guest(store, |store| unsafe { entry_point.call_unchecked(store, &raw mut values) });
        store.data().serves_no_more();
        result.map(|()| lind_result(served.call.nr, values[0].get_i32()))
    }

    /// Whether the grate's program has ended.
    pub fn is_over(&self) -> bool {
        self.thread.must_leave()
    }

    /// Drops the worker: its program is not told.
    pub fn abandon(self: Box<Self>, host: &HostThread) {
        host.ended(&self.thread, Next::ExitThread(0));
    }

    /// Ends the worker in an orderly way, as its host thread is about to end.
    pub fn retire(mut self: Box<Self>, host: &HostThread) {
        let mut next = Next::ExitThread(0);
        let cage = Arc::clone(&self.thread.cage);
        let exit = self.exit.take();
        if self.thread.begin_serving()
            && let Some(exit) = exit
        {
            let exited = run_guest(&mut self.store, |store| exit.call(store, ()));
            if let Err(error) = exited {
                next = trap::outcome(&self.store, &error);
            }
            self.stack.unmap(&cage.memory);
        }
        host.ended(&self.thread, next);
    }
}

impl Handle {
    fn find(store: &mut Store<Guest>, instance: &Instance, entry: Entry) -> wasmtime::Result<Handle> {
        match entry {
            Entry::Handle => {
                let handle = instance.get_typed_func::<(u32, u32), i64>(store, "__lind_handle")?;
                Ok(Handle::Lind(*handle.func()))
            }
            Entry::PassFptr => {
                let pass = instance.get_typed_func::<PassFptr, i32>(store, "pass_fptr_to_wt")?;
                Ok(Handle::PassFptr(*pass.func()))
            }
            Entry::None => Err(wasmtime::Error::msg("the program handles no calls")),
        }
    }
}

/// Sets the stack pointer of a new instance, if it has one: modules written by hand may not.
pub fn set_stack_pointer(store: &mut Store<Guest>, instance: &Instance, top: u32) -> wasmtime::Result<()> {
    set_variable(store, instance, "__stack_pointer", top)
}

/// Sets the variable of that name, if the program exports one that holds addresses.
pub fn set_variable(store: &mut Store<Guest>, instance: &Instance, name: &str, value: u32) -> wasmtime::Result<()> {
    let global: Option<Global> = instance.get_global(&mut *store, name);
    let Some(global) = global else { return Ok(()) };
    let ty = global.ty(&*store);
    if ty.mutability() == Mutability::Var && matches!(ty.content(), ValType::I32) {
        global.set(store, Val::I32(value.cast_signed()))?;
    }
    Ok(())
}

fn in_lind_words(grate: CageId, entry: u32, call: &Call<'_>) -> [i64; 14] {
    let pair = |at: usize| (call.values[at].value.cast_signed(), i64::from(call.owner(at).0));
    let [a, b, c, d, e, f] = match call.nr {
        nr::register_handler..=nr::copy_handler_table_to_cage => as_lind_has_it(call),
        _ => [pair(0), pair(1), pair(2), pair(3), pair(4), pair(5)],
    };
    let (entry, grate) = (i64::from(entry), i64::from(grate.0));
    [entry, grate, a.0, a.1, b.0, b.1, c.0, c.1, d.0, d.1, e.0, e.1, f.0, f.1]
}

/// The arguments of the three calls that are Lind's own, which have another order there. libc's
/// `make_threei_call` undoes this.
#[cold]
fn as_lind_has_it(call: &Call<'_>) -> [(i64, i64); 6] {
    const NOT_USED: i64 = 0xdead_beef_dead_beef_u64.cast_signed();
    /// The grate's place holds this value in a registration that is to be undone.
    const UNDO: i64 = 500;
    const FLAG_UNDO: i64 = 2;
    let value = |at: usize| call.values[at].value.cast_signed();
    let owner = |at: usize, named: i64| if named == 0 { i64::from(call.owner(at).0) } else { named };
    let none = (NOT_USED, NOT_USED);
    match call.nr {
        nr::register_handler => {
            let grate = if value(4) & FLAG_UNDO == 0 { value(2) } else { UNDO };
            [(value(0), value(1)), (NOT_USED, grate), (value(3), NOT_USED), none, none, none]
        }
        nr::copy_data_between_cages => {
            let (from, to) = ((value(1), owner(1, value(5))), (value(0), owner(0, value(4))));
            [from, to, (value(2), NOT_USED), (value(3), NOT_USED), none, none]
        }
        _ => [(value(0), value(1)), none, none, none, none, none],
    }
}

/// The result of a handler of Lind, which has 32 bits: an errno keeps its sign, anything else is an
/// unsigned number. Lind's own calls have two errors of their own.
fn lind_result(nr: u32, result: i32) -> i64 {
    const ABORTED: u32 = 0xe001_0001;
    const NO_SUCH_CAGE: u32 = 0xe001_0002;
    if matches!(nr, nr::register_handler..=nr::copy_handler_table_to_cage) {
        match result.cast_unsigned() {
            ABORTED => return Errno::EFAULT.to_wire(),
            NO_SUCH_CAGE => return Errno::ESRCH.to_wire(),
            _ => {}
        }
    }
    if (-Errno::MAX..0).contains(&result) { i64::from(result) } else { i64::from(result.cast_unsigned()) }
}
