//! Pipes.

use lind_abi::flags::FdFlags;
use lind_abi::{Errno, Out, Result};
use rustix::pipe::PipeFlags;

use crate::call::Ctx;
use crate::fd::{File, Kind};
use crate::host;

/// pipe(2)
pub(crate) fn pipe(cx: &Ctx<'_>, fds: Out<[i32; 2]>) -> Result<()> {
    pipe2(cx, fds, FdFlags(0))
}

/// pipe2(2)
pub(crate) fn pipe2(cx: &Ctx<'_>, fds: Out<[i32; 2]>, flags: FdFlags) -> Result<()> {
    if flags.beyond(FdFlags::O_NONBLOCK | FdFlags::O_DIRECT | FdFlags::O_CLOEXEC) {
        return Err(Errno::EINVAL);
    }
    let cloexec = flags.has(FdFlags::O_CLOEXEC);
    let (read, write) =
        rustix::pipe::pipe_with(PipeFlags::from_bits_retain(flags.0) | PipeFlags::CLOEXEC).map_err(host::errno)?;
    let table = &cx.cage.fds;
    let read = table.add(File::new(read, Kind::Pipe), cloexec)?;
    let numbers = table.add(File::new(write, Kind::Pipe), cloexec).map(|write| [read, write]);
    let stored = numbers.and_then(|numbers| cx.store(fds, &numbers));
    if stored.is_err() {
        for number in [Ok(read), numbers.map(|[_, write]| write)].into_iter().flatten() {
            let _ = table.remove(number, cx.reader(cx.cage.id));
        }
    }
    stored
}
