//! ioctl(2): the requests that are known to be harmless, and whose arguments have the same layout for guest and host.

use lind_abi::flags::IoctlRequest;
use lind_abi::layout::{Termios, Winsize};
use lind_abi::{Errno, Fd, InOut, Len, Result};

use crate::call::Ctx;
use crate::host;

/// ioctl(2). A request that is neither in this list nor one about interfaces never reaches the host.
pub(crate) fn ioctl(cx: &Ctx<'_>, fd: Fd, request: IoctlRequest, arg: InOut<u8>) -> Result<i32> {
    use IoctlRequest as R;
    let file = cx.file(fd)?;
    let struct_of = |size: usize| {
        let range = cx.output(cx.writing(arg), Len(size as u64))?;
        cx.blocking(|| host::fs::ioctl(file.host(), request.0, range))
    };
    match request.0 {
        R::FIOCLEX | R::FIONCLEX => {
            let close = request.0 == R::FIOCLEX;
            cx.owner(fd.cage)?.fds.set_cloexec(fd.number, close).map(|()| 0)
        }
        R::FIONREAD | R::FIONBIO | R::TIOCOUTQ | R::TIOCGPTN | R::TIOCSPTLCK => struct_of(size_of::<i32>()),
        R::TCGETS | R::TCSETS | R::TCSETSW | R::TCSETSF => struct_of(size_of::<Termios>()),
        R::TIOCGWINSZ | R::TIOCSWINSZ => struct_of(size_of::<Winsize>()),
        R::TCSBRK | R::TCXONC | R::TCFLSH => {
            let number = u32::try_from(arg.addr & u64::from(u32::MAX)).unwrap_or(0);
            cx.blocking(|| host::fs::ioctl_number(file.host(), request.0, number))
        }
        R::TIOCGPGRP | R::TIOCGSID => terminal_group(cx, fd, arg),
        R::TIOCSPGRP => {
            // There is one process group: whatever is in front stays there.
            terminal(cx, fd)?;
            cx.load(cx.reading(arg.cast::<i32>())).map(|_| 0)
        }
        other => crate::sys::net::interface(cx, &file, other, arg),
    }
}

/// Sessions and process groups are those of the first cage.
fn terminal_group(cx: &Ctx<'_>, fd: Fd, arg: InOut<u8>) -> Result<i32> {
    terminal(cx, fd)?;
    let leader = cx.cage.ancestors().first().copied().unwrap_or(cx.cage.id);
    cx.store(cx.writing(arg.cast::<i32>()), &leader.0.cast_signed()).map(|()| 0)
}

fn terminal(cx: &Ctx<'_>, fd: Fd) -> Result<()> {
    if rustix::termios::isatty(cx.file(fd)?.host()) { Ok(()) } else { Err(Errno::ENOTTY) }
}
