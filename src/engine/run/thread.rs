//! The life of a guest thread: from its first instruction to the end of its code, through forks and
//! further programs.

use std::sync::Arc;

use lind_kernel::Kernel;
use lind_kernel::cage::{Cage, Next, Status, Thread, commit_exec};
use lind_kernel::mem::budget::{self, Share};
use lind_kernel::runtime::Start;
use lind_kernel::{Errno, Result};
use wasmtime::{Instance, Store};

use crate::Shared;
use crate::code::data_image::TLS_BASE;
use crate::grate::worker::{set_stack_pointer, set_variable};
use crate::run::answer::{self, Answer};
use crate::run::fork::{self, Fork, Frozen};
use crate::run::guest::{Guest, HostThread, run_guest};
use crate::run::pool::Started;
use crate::run::program::LinkedProgram;
use crate::signal::handlers;
use crate::signal::trap;
use crate::space::startup_block;
use crate::syscall::trampoline;

/// The place where a thread begins.
pub enum Begin {
    /// At `_start`, with this block on its stack.
    Program(u32),
    /// At `__lind_thread_start`, with this block on its stack.
    Thread(u32),
    /// Where its parent forked, with the parent's globals.
    Fork(Frozen),
}

/// Starts the first thread of a cage on a host thread of its own.
///
/// # Errors
/// E2BIG, ENOMEM; EAGAIN if the host has no thread for it.
pub fn start(shared: &Arc<Shared>, kernel: &Arc<Kernel>, thread: Arc<Thread>, start: &Start) -> Result<()> {
    // All steps that can fail come here, while the caller can still get the error.
    let (linked, block) = lay_out(&thread, start)?;
    let cage = thread.cage.id;
    shared.set_program(cage, &linked);
    launch(shared, kernel, thread, linked, Begin::Program(block)).inspect_err(|_| shared.forget_program(cage))
}

/// Starts a further thread of a cage.
///
/// # Errors
/// ENOSYS if its program has no entry for threads; EAGAIN.
pub fn start_thread(shared: &Arc<Shared>, kernel: &Arc<Kernel>, thread: Arc<Thread>, boot: u32) -> Result<()> {
    let program = shared.program(thread.cage.id).ok_or(Errno::ENOSYS)?;
    if !program.linked.exports.thread_start {
        return Err(Errno::ENOSYS);
    }
    launch(shared, kernel, thread, Arc::clone(&program.linked), Begin::Thread(boot))
}

/// Runs a guest thread on a host thread of its own.
///
/// # Errors
/// EAGAIN if the host has no thread for it.
pub fn launch(
    shared: &Arc<Shared>,
    kernel: &Arc<Kernel>,
    thread: Arc<Thread>,
    linked: Arc<LinkedProgram>,
    begin: Begin,
) -> Result<()> {
    let (of_job, kernel) = (Arc::clone(shared), Arc::clone(kernel));
    let cage = Arc::clone(&thread.cage);
    let (answer, asked) = answer::pair();
    let started = shared.pool.run(
        &cage,
        Box::new(move |kept| {
            let host = kept.take().unwrap_or_else(|| HostThread::new(&of_job, &kernel));
            begin_to_end(&host, thread, linked, begin, Some(answer));
            *kept = Some(host);
        }),
    )?;
    // Waiting costs as much as starting the thread does.
    if started == Started::Now && may_lack_room(&cage) { asked.wait() } else { Ok(()) }
}

/// Whether memory may be short for one more instance.
fn may_lack_room(cage: &Cage) -> bool {
    const INSTANCE: u64 = 64 << 20;
    let map = cage.memory.map();
    budget::is_short() || map.limit().saturating_sub(map.mapped()).saturating_sub(map.charged()) < INSTANCE
}

/// Runs a guest thread on the calling host thread, from beginning to end. If a resource is missing
/// and somebody waits for the answer, the thread never ran; if nobody waits, its cage ends.
pub fn begin_to_end(
    host: &HostThread,
    thread: Arc<Thread>,
    linked: Arc<LinkedProgram>,
    begin: Begin,
    answer: Option<Answer>,
) {
    begins(host, &thread);
    let apart = answer.is_some();
    let ready = share_for(apart).and_then(|share| ready(host, &thread, &linked, share));
    match answer {
        Some(answer) if matches!(ready, Err(Left::NoRoom)) => {
            // The thread that gets the answer removes the guest thread.
            host.shared.interrupts.ended(&thread);
            thread.begins_nowhere();
            if answer.no() {
                return;
            }
            begins(host, &thread);
        }
        Some(answer) => answer.yes(),
        None => {}
    }
    let (thread, how) = live(host, thread, begin, ready);
    host.run_lent(None);
    host.ended(&thread, how);
}

fn begins(host: &HostThread, thread: &Arc<Thread>) {
    thread.begins_here();
    host.shared.interrupts.started(thread, host.tid);
    thread.takes_processors(&host.kernel);
}

/// A host thread of its own includes the share of its first instance.
fn share_for(apart: bool) -> core::result::Result<Share, Left> {
    if apart { Ok(Share::default()) } else { Share::of_instance().map_err(|_| Left::NoRoom) }
}

/// Runs one program after another. Returns the thread that ends, which is another one if a thread
/// that was not the first of its cage ran a new program.
fn live(
    host: &HostThread,
    mut thread: Arc<Thread>,
    mut begin: Begin,
    mut ready: core::result::Result<Ready, Left>,
) -> (Arc<Thread>, Next) {
    loop {
        let next = match ready {
            Ok(ready) => run(host, &thread, begin, ready),
            Err(Left::NoRoom) => {
                // The caller has gone on, so only a message can report it.
                trap::say_of(&thread.cage, "SIGKILL: the host has no room for its program");
                Next::Exit(Status::signaled(9))
            }
            Err(Left::For(next)) => next,
        };
        if next != Next::Exec {
            return (thread, next);
        }
        let (leader, linked, block) = match next_program(host, &thread) {
            Ok(next) => next,
            Err(status) => return (thread, Next::Exit(status)),
        };
        (thread, begin) = (leader, Begin::Program(block));
        ready = self::ready(host, &thread, &linked, Share::default());
    }
}

/// A Store and an instance, of whose code only the start function has been entered. The stack
/// suffices for it.
struct Ready {
    store: Store<Guest>,
    instance: Instance,
}

/// The reason why the instance could not be made.
enum Left {
    /// The host or the cage lacks the memory for it.
    NoRoom,
    /// The program's start function was left in this way.
    For(Next),
}

/// Makes the instance in which a thread runs `linked`.
fn ready(
    host: &HostThread,
    thread: &Arc<Thread>,
    linked: &Arc<LinkedProgram>,
    share: Share,
) -> core::result::Result<Ready, Left> {
    let mut store = host.store(thread, linked, share);
    // This fails only if the host gave us less stack than we asked for.
    host.take_room(0).map_err(|_| Left::NoRoom)?;
    if linked.exports.resume {
        store.data().way_out.fork.set(Fork::Ready);
    }
    match run_guest(&mut store, |store| trampoline::instantiate(store, linked)) {
        Ok(instance) => Ok(Ready { store, instance }),
        Err(error) => {
            host.leave_room(0);
            if trap::is_of_guest(&store, &error) {
                return Err(Left::For(trap::outcome(&store, &error)));
            }
            Err(Left::NoRoom)
        }
    }
}

fn next_program(
    host: &HostThread,
    thread: &Arc<Thread>,
) -> core::result::Result<(Arc<Thread>, Arc<LinkedProgram>, u32), Status> {
    let (leader, start) = commit_exec(&host.kernel, thread)?;
    if !Arc::ptr_eq(&leader, thread) {
        host.shared.interrupts.ended(thread);
        host.shared.interrupts.started(&leader, host.tid);
    }
    // The old program is gone, as on Linux when a new one fails this late.
    let (linked, block) = lay_out(&leader, &start).map_err(|_| Status::signaled(9))?;
    host.shared.set_program(leader.cage.id, &linked);
    Ok((leader, linked, block))
}

/// Replaces the memory of a thread's cage by that of a fresh program.
pub fn lay_out(thread: &Thread, start: &Start) -> Result<(Arc<LinkedProgram>, u32)> {
    let linked = Arc::clone(&start.executable).downcast::<LinkedProgram>().map_err(|_| Errno::ENOEXEC)?;
    thread.cage.memory.load_layout(u64::from(linked.facts.heap_base), &linked.initial)?;
    let block = startup_block::write_block(&thread.cage, start)?;
    Ok((linked, block))
}

/// Runs guest code until it is left for good.
fn run(host: &HostThread, thread: &Arc<Thread>, begin: Begin, ready: Ready) -> Next {
    // A program that returns from _start without exiting has ended with status 0; a thread ends
    // alone.
    let end = match begin {
        Begin::Thread(_) => Next::ExitThread(0),
        Begin::Program(_) | Begin::Fork(_) => Next::Exit(Status::exited(0)),
    };
    let Ready { mut store, instance } = ready;
    let result = run_guest(&mut store, |store| {
        enter(store, &instance, begin)?;
        fork::go_on(store, &instance)
    });
    host.leave_room(0);
    host.nested.borrow_mut().retain(|nested| !nested.is_of(thread));
    fork::give_up(store.data());
    let next = match result {
        Ok(()) if store.data().way_out.only_handler.get() => {
            thread.take_next().unwrap_or_else(|| fork::nothing_below(store.data()))
        }
        Ok(()) => thread.take_next().unwrap_or(end),
        Err(error) => trap::outcome(&store, &error),
    };
    if let Next::ExitThread(code) = next {
        // A waiting thread need not wait until the Store is gone.
        thread.leaves(code);
    }
    next
}

fn enter(store: &mut Store<Guest>, instance: &Instance, begin: Begin) -> wasmtime::Result<()> {
    match begin {
        Begin::Program(block) => {
            set_stack_pointer(store, instance, block)?;
            if let Some(tls_base) = store.data().linked.facts.initial.tls_base {
                set_variable(store, instance, TLS_BASE, tls_base.get())?;
            }
            handlers::prepare(store, instance);
            instance.get_typed_func::<u32, ()>(&mut *store, "_start")?.call(store, block)
        }
        Begin::Thread(boot) => {
            handlers::prepare_thread(store, instance, boot);
            instance.get_typed_func::<u32, ()>(&mut *store, "__lind_thread_start")?.call(store, boot)
        }
        Begin::Fork(frozen) => {
            frozen.thaw(store, instance)?;
            handlers::prepare(store, instance);
            fork::begin(store, instance)
        }
    }
}
