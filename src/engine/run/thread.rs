//! The life of a guest thread: from where it begins to the end of its code, through forks and further programs.

use std::sync::Arc;

use lind_kernel::Kernel;
use lind_kernel::cage::{Next, Status, Thread, commit_exec};
use lind_kernel::engine::Start;
use lind_kernel::{Errno, Result};
use wasmtime::{Instance, Store};

use crate::Shared;
use crate::code::data_image::TLS_BASE;
use crate::grate::worker::{set_stack_pointer, set_variable};
use crate::run::fork::{self, Fork, Frozen};
use crate::run::guest::{Guest, HostThread, run_guest};
use crate::run::program::Image;
use crate::signal::handlers;
use crate::signal::trap;
use crate::space::startup_block;
use crate::syscall::trampoline;

/// Where a thread begins.
pub enum Begin {
    /// At `_start`, with this block on its stack.
    Program(u32),
    /// At `__lind_thread_start`, with this block on its stack.
    Thread(u32),
    /// Where its parent forked.
    Fork(Frozen),
}

/// Starts the first thread of a cage on a host thread of its own.
///
/// # Errors
/// E2BIG, ENOMEM; EAGAIN when the host has no thread for it.
pub fn start(shared: &Arc<Shared>, kernel: &Arc<Kernel>, thread: Arc<Thread>, start: &Start) -> Result<()> {
    // What can fail is done here, while there is a caller to tell.
    let (image, block) = lay_out(&thread, start)?;
    let cage = thread.cage.id;
    shared.set_program(cage, &image);
    launch(shared, kernel, thread, image, Begin::Program(block)).inspect_err(|_| shared.forget_program(cage))
}

/// Starts a further thread of a cage.
///
/// # Errors
/// ENOSYS if its program has no entry for threads; EAGAIN.
pub fn start_thread(shared: &Arc<Shared>, kernel: &Arc<Kernel>, thread: Arc<Thread>, boot: u32) -> Result<()> {
    let program = shared.program(thread.cage.id).ok_or(Errno::ENOSYS)?;
    if !program.image.exports.thread_start {
        return Err(Errno::ENOSYS);
    }
    launch(shared, kernel, thread, Arc::clone(&program.image), Begin::Thread(boot))
}

/// Runs a guest thread on a host thread of its own.
///
/// # Errors
/// EAGAIN.
pub fn launch(
    shared: &Arc<Shared>,
    kernel: &Arc<Kernel>,
    thread: Arc<Thread>,
    image: Arc<Image>,
    begin: Begin,
) -> Result<()> {
    let (of_job, kernel) = (Arc::clone(shared), Arc::clone(kernel));
    let cage = Arc::clone(&thread.cage);
    shared.pool.run(
        &cage,
        Box::new(move |kept| {
            let host = kept.take().unwrap_or_else(|| HostThread::new(&of_job, &kernel));
            begin_to_end(&host, thread, image, begin);
            *kept = Some(host);
        }),
    )
}

/// Runs a guest thread on the calling host thread, from beginning to end.
pub fn begin_to_end(host: &HostThread, thread: Arc<Thread>, image: Arc<Image>, begin: Begin) {
    thread.begins_here();
    host.shared.interrupts.started(&thread, host.tid);
    thread.takes_processors(&host.kernel);
    let (thread, how) = live(host, thread, image, begin);
    host.run_lent(None);
    host.ended(&thread, how);
}

/// Runs one program after the other. Returns the thread that ends, which is another one if a thread that was not the
/// first of its cage ran a new program.
fn live(host: &HostThread, mut thread: Arc<Thread>, mut image: Arc<Image>, mut begin: Begin) -> (Arc<Thread>, Next) {
    loop {
        match run(host, &thread, &image, begin) {
            Next::Exec => {}
            next => return (thread, next),
        }
        match next_program(host, &thread) {
            Ok((leader, next, block)) => (thread, image, begin) = (leader, next, Begin::Program(block)),
            Err(status) => return (thread, Next::Exit(status)),
        }
    }
}

fn next_program(
    host: &HostThread,
    thread: &Arc<Thread>,
) -> core::result::Result<(Arc<Thread>, Arc<Image>, u32), Status> {
    let (leader, start) = commit_exec(&host.kernel, thread)?;
    if !Arc::ptr_eq(&leader, thread) {
        host.shared.interrupts.ended(thread);
        host.shared.interrupts.started(&leader, host.tid);
    }
    // The old program is gone, as Linux has it when a new one fails this late.
    let (image, block) = lay_out(&leader, &start).map_err(|_| Status::signaled(9))?;
    host.shared.set_program(leader.cage.id, &image);
    Ok((leader, image, block))
}

/// Makes the memory of a thread's cage that of a fresh program.
pub fn lay_out(thread: &Thread, start: &Start) -> Result<(Arc<Image>, u32)> {
    let image = Arc::clone(&start.image).downcast::<Image>().map_err(|_| Errno::ENOEXEC)?;
    thread.cage.memory.load_layout(u64::from(image.facts.heap_base), &image.initial)?;
    let block = startup_block::write_block(&thread.cage, start)?;
    Ok((image, block))
}

/// Runs guest code until it is left for good.
fn run(host: &HostThread, thread: &Arc<Thread>, image: &Arc<Image>, begin: Begin) -> Next {
    // A program that returns from _start without exiting has nothing more to say; nor has a thread, but for itself.
    let end = match begin {
        Begin::Thread(_) => Next::ExitThread(0),
        Begin::Program(_) | Begin::Fork(_) => Next::Exit(Status::exited(0)),
    };
    let mut store = host.store(thread, image);
    if host.take_room(0).is_err() {
        // Only if the host gave us less stack than we asked for.
        return Next::Exit(Status::signaled(9));
    }
    if image.exports.resume {
        store.data().fork.set(Fork::Ready);
    }
    let result = run_guest(&mut store, |store| {
        let instance = trampoline::instantiate(store, image)?;
        enter(store, &instance, begin)?;
        fork::go_on(store, &instance)
    });
    host.leave_room(0);
    host.nested.borrow_mut().retain(|nested| !nested.is_of(thread));
    fork::give_up(store.data());
    let next = match result {
        Ok(()) if store.data().only_handler.get() => {
            thread.take_next().unwrap_or_else(|| fork::nothing_below(store.data()))
        }
        Ok(()) => thread.take_next().unwrap_or(end),
        Err(error) => trap::outcome(&store, &error),
    };
    if let Next::ExitThread(code) = next {
        // Whoever waits for it need not wait until the Store is gone.
        thread.leaves(code);
    }
    next
}

fn enter(store: &mut Store<Guest>, instance: &Instance, begin: Begin) -> wasmtime::Result<()> {
    match begin {
        Begin::Program(block) => {
            set_stack_pointer(store, instance, block)?;
            if let Some(tls_base) = store.data().image.facts.initial.tls_base {
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
