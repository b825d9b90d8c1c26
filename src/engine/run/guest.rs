//! The host threads that run guest code, and the state that each Store on them carries.
//!
//! Stores nest on the stack of one host thread: the program's own at the bottom, then one for each
//! grate that a call has reached. [`HostThread`] computes how much of that stack is left, and keeps
//! the idle workers.

#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use lind_abi::CageId;
use lind_kernel::Kernel;
use lind_kernel::cage::{Cage, Next, Thread};
use lind_kernel::call;
use lind_kernel::mem::Memory;
use lind_kernel::mem::budget::Share;
use lind_kernel::runtime::{CachedCage, Served};
use wasmtime::{ResourceLimiter, Store};

use crate::Shared;
use crate::code::engines::SPACE;
use crate::code::engines::{GC_HEAP, WASM_STACK};
use crate::grate::worker::Worker;
use crate::run::fork::Fork;
use crate::run::handoff::Lent;
use crate::run::program::LinkedProgram;
use crate::signal::context;
use crate::signal::handlers;
use crate::signal::preempt;
use crate::syscall::trampoline;

/// The most grates that a call may pass. One more is ELOOP.
pub const MAX_HOPS: usize = 16;

/// The program's own Store is the first.
const MAX_STORES: usize = MAX_HOPS + 1;

/// Host stack that must be left beyond what guest code may use: for the kernel's own frames.
const KERNEL_STACK: usize = 256 << 10;

/// Host stack for the program and [`MAX_HOPS`] grates.
pub const CHAIN_STACK: usize = MAX_STORES * (WASM_STACK + KERNEL_STACK) + KERNEL_STACK;

/// The stack of every host thread that runs guest code. The part above that is used by threads that
/// have lent theirs ([`crate::run::handoff`]).
pub const HOST_STACK: usize = CHAIN_STACK + WASM_STACK;

/// Runs `main` on a stack of [`HOST_STACK`]: the stack of the process's main thread may be small,
/// or grow into a mapping below it.
pub fn on_own_stack<R>(main: impl FnOnce() -> R) -> R {
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
    const GUARD: usize = 64 << 10;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::STACK;
    // SAFETY: a new mapping, which nothing else uses and which is never unmapped; the stack is the
    // part above the guard; and `main` does not unwind, since panics abort.
    unsafe {
        let Ok(all) =
            mmap_anonymous(std::ptr::null_mut(), GUARD + HOST_STACK, ProtFlags::READ | ProtFlags::WRITE, flags)
        else {
            lind_kernel::stdio::say_line("no memory for a stack");
            libc::_exit(125);
        };
        let _ = mprotect(all, GUARD, MprotectFlags::empty());
        psm::on_stack(all.cast::<u8>().add(GUARD), HOST_STACK, main)
    }
}

/// The owner of the guest code in a Store. A Store never leaves its host thread, so nothing here
/// has a lock: the changing fields are cells, written by calls and returns further down the same
/// stack.
pub struct Guest {
    // Fixed while the Store lives. The kernel, the thread and the cage are also others'; they have
    // their own locks.
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// The guest thread.
    pub thread: Arc<Thread>,
    /// Its cage, one pointer away: every call begins with its handler table.
    pub cage: Arc<Cage>,
    /// The host thread it runs on.
    pub host: Rc<HostThread>,
    /// Host address of the guest's address 0.
    pub base: usize,
    /// The program.
    pub linked: Arc<LinkedProgram>,

    /// Written when its code is left, read by the code that entered it.
    pub way_out: WayOut,
    /// The state for running signal handlers.
    pub signals: handlers::OfGuest,
    /// The state for its way to the host.
    pub trampoline: trampoline::OfGuest,
    /// Written by [`Guest::serving`] on the way in, and restored on the way back.
    served: Cell<Option<NonNull<Served<'static>>>>,

    /// Only used by Wasmtime, which then has the Store to itself.
    limits: Limits,
}

/// How guest code was left, and whether its frames are entered again.
#[derive(Default)]
pub struct WayOut {
    /// The next step, when a host function left it.
    pub next: Cell<Option<Next>>,
    /// The state of its fork.
    pub fork: Cell<Fork>,
    /// Whether its outermost frame is that of a signal handler in which the cage was forked.
    pub only_handler: Cell<bool>,
}

impl Guest {
    /// The call that this worker is serving.
    #[inline]
    pub fn served(&self) -> Option<&Served<'_>> {
        // SAFETY: `serving` sets the pointer for the time of a call further up this very stack, and
        // restores it before the call returns; Guest never leaves its host thread. The lifetime
        // given out is shorter than that call.
        self.served.get().map(|served| unsafe { served.cast::<Served<'_>>().as_ref() })
    }

    /// Notes the call that is being served, until [`Guest::serves_no_more`].
    #[inline]
    pub fn serving(&self, served: &Served<'_>) {
        self.served.set(Some(NonNull::from(served).cast()));
    }

    /// Serves the same call as `other`, whose code is further up this stack until this Store's code
    /// is left.
    pub fn serving_with(&self, other: &Guest) {
        self.served.set(other.served.get());
    }

    /// Undoes [`Guest::serving`].
    #[inline]
    pub fn serves_no_more(&self) {
        self.served.set(None);
    }
}

impl call::Caller for Guest {
    type Hop = HostThread;
    #[inline(always)]
    fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }
    #[inline(always)]
    fn thread(&self) -> &Thread {
        &self.thread
    }
    #[inline(always)]
    fn cage(&self) -> &Cage {
        &self.cage
    }
    #[inline(always)]
    fn served(&self) -> Option<&Served<'_>> {
        Guest::served(self)
    }
    #[inline(always)]
    fn hop(&self) -> &HostThread {
        &self.host
    }
}

/// Limits the growth of an instance, and holds its share of the host's memory. Its tables count as
/// memory of the cage until it is dropped.
struct Limits {
    memory: Arc<Memory>,
    charged: u64,
    /// The number of bytes charged for the growing table that it has not got yet.
    last: u64,
    _share: Share,
}

impl Drop for Limits {
    fn drop(&mut self) {
        self.memory.map().release(self.charged);
    }
}

impl ResourceLimiter for Limits {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        // The cage's memory is made once, whole. Anything else is the heap for exceptions.
        Ok((current == 0 && desired as u64 == SPACE) || desired as u64 <= GC_HEAP)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        /// A function table is as large as its program has functions whose address is taken.
        const MOST: usize = 1 << 20;
        let bytes = (desired.saturating_sub(current) * size_of::<usize>()) as u64;
        if desired > MOST || self.memory.map().charge(bytes).is_err() {
            return Ok(false);
        }
        self.charged += bytes;
        self.last = bytes;
        Ok(true)
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        let bytes = std::mem::take(&mut self.last);
        self.charged -= bytes;
        self.memory.map().release(bytes);
        Ok(())
    }
}

/// A host thread and its workers. It is in an `Rc`, so that no other thread reaches it: nothing
/// here has a lock.
pub struct HostThread {
    // Fixed while the thread lives.
    pub(crate) shared: Arc<Shared>,
    pub(crate) kernel: Arc<Kernel>,
    me: Weak<HostThread>,
    /// Its thread id at the host.
    pub(crate) tid: u32,
    /// The lowest address of the stack that may be used.
    stack_end: usize,

    // How deep it is in calls of grates.
    /// Grates whose turn (see [`crate::Program`]) this thread has.
    turns: RefCell<Vec<CageId>>,
    pub(crate) hops: Cell<usize>,
    /// A child that has not begun yet, since its parent is going to wait for it.
    pub(crate) lent: Cell<Option<Box<Lent>>>,

    // The workers that it keeps for the next call: for each depth of hops the one that was kept
    /// last, where the next call finds it at once. A chain of grates uses one at each depth.
    pub(crate) last: [Cell<Option<Box<Worker>>>; MAX_STORES],
    /// Whether a worker was made here that has a filter.
    pub(crate) has_filters: Cell<bool>,
    /// See [`lind_kernel::runtime::Hop::cached_cage`].
    pub(crate) cached_cage: CachedCage,
    /// The other idle workers.
    idle: RefCell<Vec<(CageId, Vec<Box<Worker>>)>>,
    /// The Stores that run signal handlers while guest code computes.
    pub(crate) nested: RefCell<Vec<Box<handlers::Nested>>>,
}

/// The worker in this place, if it belongs to `grate`.
#[inline]
fn take_of(kept: &Cell<Option<Box<Worker>>>, grate: CageId) -> Option<Box<Worker>> {
    match kept.take() {
        Some(worker) if worker.grate == grate => Some(worker),
        other => {
            kept.set(other);
            None
        }
    }
}

/// The reason why a grate cannot be entered now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoRoom {
    /// Too many grates deep.
    Hops,
    /// Too little of the host stack is left.
    Stack,
}

impl HostThread {
    /// Describes the calling thread, which was started with [`HOST_STACK`] bytes of stack.
    pub fn new(shared: &Arc<Shared>, kernel: &Arc<Kernel>) -> Rc<HostThread> {
        /// The stack above us that the host's start-up of a thread has used, generously.
        const USED: usize = 64 << 10;
        let here = 0_u8;
        let stack_end = (&raw const here as usize).saturating_sub(HOST_STACK - USED);
        let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        preempt::this_thread_is(tid);
        Rc::new_cyclic(|me| HostThread {
            shared: Arc::clone(shared),
            kernel: Arc::clone(kernel),
            me: Weak::clone(me),
            tid,
            stack_end,
            turns: RefCell::default(),
            hops: Cell::new(0),
            lent: Cell::new(None),
            last: [const { Cell::new(None) }; MAX_STORES],
            has_filters: Cell::new(false),
            cached_cage: CachedCage::default(),
            idle: RefCell::default(),
            nested: RefCell::default(),
        })
    }

    /// A Store for code of `linked` run by `thread`. `share` covers the memory that it needs beyond
    /// the host thread's.
    pub fn store(&self, thread: &Arc<Thread>, linked: &Arc<LinkedProgram>, share: Share) -> Store<Guest> {
        let guest = Guest {
            kernel: Arc::clone(&self.kernel),
            thread: Arc::clone(thread),
            cage: Arc::clone(&thread.cage),
            host: self.me.upgrade().expect("self is in an Rc, as `new` made it"),
            base: thread.cage.memory.guest.base() as usize,
            linked: Arc::clone(linked),
            way_out: WayOut::default(),
            signals: handlers::OfGuest::default(),
            trampoline: trampoline::OfGuest::default(),
            served: Cell::new(None),
            limits: Limits { memory: Arc::clone(&thread.cage.memory), charged: 0, last: 0, _share: share },
        };
        let mut store = Store::new(&self.shared.engines.runtime, guest);
        store.limiter(|guest| &mut guest.limits);
        store
    }

    /// Reserves stack for the code of one more Store, to be released by [`HostThread::leave_room`].
    /// Returns how many there were before, including the `past` ones that have passed on the call
    /// that is about to be served: their workers keep their places.
    #[inline]
    pub fn take_room(&self, past: usize) -> Result<usize, NoRoom> {
        let here = 0_u8;
        let left = (&raw const here as usize).saturating_sub(self.stack_end);
        if left < WASM_STACK + KERNEL_STACK {
            return Err(NoRoom::Stack);
        }
        let depth = self.hops.get() + past;
        if depth >= MAX_STORES {
            return Err(NoRoom::Hops);
        }
        self.hops.set(depth + 1);
        Ok(depth)
    }

    /// The bytes of its stack that are left.
    pub fn stack_left(&self) -> usize {
        let here = 0_u8;
        (&raw const here as usize).saturating_sub(self.stack_end)
    }

    /// The number of Stores that have code on this thread's stack.
    #[inline]
    pub fn hops(&self) -> usize {
        self.hops.get()
    }

    /// Releases the reservation of `take_room`.
    #[inline]
    pub fn leave_room(&self, past: usize) {
        self.hops.set(self.hops.get() - 1 - past);
    }

    /// An idle worker of a grate, for a hop at this depth.
    #[inline]
    pub fn take_idle(&self, depth: usize, grate: CageId) -> Option<Box<Worker>> {
        take_of(&self.last[depth], grate).or_else(|| self.take_from_afar(grate))
    }

    #[cold]
    fn take_from_afar(&self, grate: CageId) -> Option<Box<Worker>> {
        let apart = self.idle.borrow_mut().iter_mut().find(|(id, _)| *id == grate).and_then(|(_, idle)| idle.pop());
        apart.or_else(|| self.last.iter().find_map(|kept| take_of(kept, grate)))
    }

    /// Keeps a worker for the next call at this depth.
    #[inline]
    pub fn keep(&self, depth: usize, worker: Box<Worker>) {
        if let Some(kept) = self.last[depth].replace(Some(worker)) {
            self.keep_apart(kept);
        }
    }

    /// Moves the workers that are kept by depth to the list that is searched as a whole, or drops
    /// them.
    fn keep_all_apart(&self) {
        self.cached_cage.forget();
        self.last.iter().filter_map(Cell::take).for_each(|worker| self.keep_apart(worker));
    }

    #[cold]
    fn keep_apart(&self, worker: Box<Worker>) {
        let grate = worker.grate;
        let mut idle = self.idle.borrow_mut();
        match idle.iter_mut().find(|(id, _)| *id == grate) {
            Some((_, workers)) => workers.push(worker),
            None => idle.push((grate, vec![worker])),
        }
    }

    /// Notes that this thread takes the turn of a grate; false if it already holds it.
    pub fn turn_of(&self, grate: CageId) -> bool {
        let mut turns = self.turns.borrow_mut();
        let new = !turns.contains(&grate);
        if new {
            turns.push(grate);
        }
        new
    }

    /// Undoes [`HostThread::turn_of`].
    pub fn turn_over(&self, grate: CageId) {
        self.turns.borrow_mut().retain(|id| *id != grate);
    }

    /// Removes the idle workers of a grate that has ended, and returns them.
    pub fn forget(&self, grate: CageId) -> Vec<Box<Worker>> {
        self.keep_all_apart();
        let mut idle = self.idle.borrow_mut();
        let at = idle.iter().position(|(id, _)| *id == grate);
        at.map(|at| idle.swap_remove(at).1).unwrap_or_default()
    }

    /// Whether an idle worker belongs to a grate that has ended or runs another program.
    pub fn has_to_sweep(&self) -> bool {
        self.keep_all_apart();
        self.idle.borrow().iter().any(|(_, idle)| idle.iter().any(|worker| worker.is_over()))
    }

    /// Drops such workers. Returns whether others are left.
    pub fn sweep(&self) -> bool {
        self.keep_all_apart();
        let over = |(id, idle): &(CageId, Vec<Box<Worker>>)| idle.iter().any(|worker| worker.is_over()).then_some(*id);
        let over: Vec<CageId> = self.idle.borrow().iter().filter_map(over).collect();
        for grate in over {
            self.lose_idle(grate);
        }
        self.idle.borrow_mut().retain(|(_, idle)| !idle.is_empty());
        !self.idle.borrow().is_empty()
    }

    /// Ends all workers, as this thread is about to end. The end of one may make calls that other
    /// grates serve, whose workers are then made again: those end too. After too many rounds they
    /// end without a last call.
    pub fn retire(&self) {
        for round in 0.. {
            self.keep_all_apart();
            let all = self.idle.take();
            if all.is_empty() {
                return;
            }
            for worker in all.into_iter().flat_map(|(_, workers)| workers) {
                match round {
                    0..=MAX_HOPS => worker.retire(self),
                    _ => worker.abandon(self),
                }
            }
        }
    }
}

/// Runs guest code of a Store: sets its owner for the fault handler while `run` enters it.
#[inline]
pub fn run_guest<R>(store: &mut Store<Guest>, run: impl FnOnce(&mut Store<Guest>) -> R) -> R {
    let inside = context::Inside::new(store.data());
    // SAFETY: the Store keeps its data in one place and is borrowed until `run` returns; nobody
    // replaces the data or changes more than its cells.
    let outside = unsafe { inside.enter() };
    let result = run(store);
    context::leave(outside);
    result
}
