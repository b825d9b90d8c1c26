//! The run loop of a guest thread: from a program's image to the end of its code.

use std::sync::Arc;

use lind_kernel::Kernel;
use lind_kernel::cage::{Next, Status, Thread};
use lind_kernel::engine::Start;
use lind_kernel::{Errno, Result};

use crate::grate::set_stack_pointer;
use crate::host::{HOST_STACK, HostThread, run_guest};
use crate::image::Image;
use crate::{Shared, memory, stack, trap};

/// Starts the first thread of a cage on a new host thread.
///
/// # Errors
/// E2BIG, ENOMEM; EAGAIN when the host has no thread for it.
pub fn start(shared: &Arc<Shared>, kernel: &Arc<Kernel>, thread: Arc<Thread>, start: Start) -> Result<()> {
    let image = Arc::clone(&start.image).downcast::<Image>().map_err(|_| Errno::ENOEXEC)?;
    // What can fail is done here, while there is a caller to tell.
    thread.cage.memory.load_layout(u64::from(image.facts.heap_base))?;
    let block = stack::write_block(&thread.cage, &start)?;
    let cage = thread.cage.id;
    shared.set_program(cage, &image);
    let (shared, kernel) = (Arc::clone(shared), Arc::clone(kernel));
    let on_failure = Arc::clone(&shared);
    let run = move || {
        let host = HostThread::new(&shared, &kernel);
        shared.interrupts.started(&thread, host.tid);
        let how = run_program(&host, &thread, &image, block);
        host.ended(&thread, how);
        host.retire();
    };
    let spawned = std::thread::Builder::new().name(format!("cage {}", cage.0)).stack_size(HOST_STACK).spawn(run);
    match spawned {
        Ok(_) => Ok(()),
        Err(_) => {
            on_failure.forget_program(cage);
            Err(Errno::EAGAIN)
        }
    }
}

fn run_program(host: &HostThread, thread: &Arc<Thread>, image: &Arc<Image>, block: u32) -> Next {
    let mut store = host.store(thread, image);
    if host.take_room().is_err() {
        // Only if the host gave us less stack than we asked for.
        return Next::Exit(Status::signaled(9));
    }
    let result = run_guest(&mut store, |store| {
        let instance = memory::adopting(&thread.cage.memory, || image.program.instantiate(&mut *store))?;
        set_stack_pointer(store, &instance, block)?;
        instance.get_typed_func::<u32, ()>(&mut *store, "_start")?.call(store, block)
    });
    host.leave_room();
    match result {
        // A program that returns from _start without exiting has nothing more to say.
        Ok(()) => thread.take_next().unwrap_or(Next::Exit(Status::exited(0))),
        Err(error) => trap::outcome(&store, &error),
    }
}
