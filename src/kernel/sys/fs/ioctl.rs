//! ioctl(2): the requests that are known to be harmless, and whose arguments have the same layout
//! for guest and host.

use lind_abi::flags::{IoctlRequest, OpenFlags};
use lind_abi::layout::{Termios, Winsize};
use lind_abi::{Errno, Fd, InOut, Len, Result};

use super::clone;
use super::dup::check_opened;
use crate::call::Ctx;
use crate::fd::{FileRef, Kind};
use crate::host;
use crate::terminal::Change;

/// struct termios2 and struct termio.
const TERMIOS2: usize = 44;
const TERMIO: usize = 18;

/// ioctl(2). A request that is neither in this list nor one about interfaces never reaches the
/// host.
pub(crate) fn ioctl(cx: &Ctx<'_>, fd: Fd, request: IoctlRequest, arg: InOut<u8>) -> Result<i32> {
    use IoctlRequest as R;
    let file = cx.file(fd)?;
    match request.0 {
        R::FIOCLEX | R::FIONCLEX => {
            check_opened(&file)?;
            let close = request.0 == R::FIOCLEX;
            cx.owner(fd.cage)?.fds.set_cloexec(fd.number, close).map(|()| 0)
        }
        R::FIONREAD | R::FIONBIO | R::TIOCOUTQ | R::FIGETBSZ => pass(cx, &file, request, arg, size_of::<i32>()),
        R::FIOQSIZE => pass(cx, &file, request, arg, size_of::<i64>()),
        R::FS_IOC_GETFLAGS | R::FS_IOC_GETVERSION => pass(cx, &file, request, arg, size_of::<i64>()),
        // The same, as spelled by a program whose long has four bytes; the host writes no more for
        // the others, either.
        R::FS_IOC32_GETFLAGS => pass(cx, &file, IoctlRequest(R::FS_IOC_GETFLAGS), arg, size_of::<i32>()),
        R::FS_IOC32_GETVERSION => pass(cx, &file, IoctlRequest(R::FS_IOC_GETVERSION), arg, size_of::<i32>()),
        R::SIOCATMARK if matches!(file.kind, Kind::Socket(_)) => pass(cx, &file, request, arg, size_of::<i32>()),
        R::FICLONE => clone::range(cx, &file, Fd { number: low_word(arg.addr), cage: fd.cage }),
        R::FICLONERANGE => {
            let range: Vec<u64> = cx.load_array(cx.reading(arg.cast()), 4)?;
            clone::range(cx, &file, Fd { number: low_word(range[0]), cage: fd.cage })
        }
        R::FIDEDUPERANGE => clone::same(cx, &file, arg),
        R::FIOASYNC => super::owner::fioasync(cx, fd, &file, arg),
        _ => match super::owner::of_socket(cx, &file, request.0, arg).or_else(|| terminal(cx, fd, &file, request, arg))
        {
            Some(result) => result,
            None => check_opened(&file).and_then(|()| crate::sys::net::interface(cx, &file, request.0, arg)),
        },
    }
}

/// The low half of a word, which alone counts as a descriptor.
fn low_word(value: u64) -> i32 {
    u32::try_from(value & u64::from(u32::MAX)).unwrap_or(u32::MAX).cast_signed()
}

/// Passes a request to the host, whose argument has this size.
fn pass(cx: &Ctx<'_>, file: &FileRef, request: IoctlRequest, arg: InOut<u8>, size: usize) -> Result<i32> {
    let range = cx.output(cx.writing(arg), Len(size as u64))?;
    cx.blocking(|| host::fs::ioctl(file.host(), request.0, range))
}

/// Requests about terminals; None for any other. Those that change something are for the foreground
/// group.
fn terminal(cx: &Ctx<'_>, fd: Fd, file: &FileRef, request: IoctlRequest, arg: InOut<u8>) -> Option<Result<i32>> {
    use IoctlRequest as R;
    let pass = |size| pass(cx, file, request, arg, size);
    let number = u32::try_from(arg.addr & u64::from(u32::MAX)).unwrap_or(0);
    let is_terminal = matches!(file.kind, Kind::Terminal | Kind::Master(_));
    let result = match request.0 {
        R::TCGETS => pass(size_of::<Termios>()),
        R::TCGETS2 => pass(TERMIOS2),
        R::TCGETA => pass(TERMIO),
        R::TIOCGLCKTRMIOS => pass(size_of::<Termios>()),
        R::TCSETS2 | R::TCSETSW2 | R::TCSETSF2 => in_front(cx, file).and_then(|()| pass(TERMIOS2)),
        R::TCSETA | R::TCSETAW | R::TCSETAF => in_front(cx, file).and_then(|()| pass(TERMIO)),
        R::TIOCGETD | R::TIOCGEXCL | R::TIOCGDEV | R::TIOCGSOFTCAR | R::TIOCSSOFTCAR => pass(size_of::<i32>()),
        R::TIOCEXCL | R::TIOCNXCL => host::fs::ioctl_number(file.host(), request.0, 0),
        R::TIOCSETD => discipline(cx, file, arg),
        R::TIOCSIG => match &file.kind {
            Kind::Master(_) => crate::terminal::signal_front(cx, &file.share(), number).map(|()| 0),
            _ => Err(Errno::ENOTTY),
        },
        R::TIOCGWINSZ => pass(size_of::<Winsize>()),
        R::TCSETS | R::TCSETSW | R::TCSETSF => in_front(cx, file).and_then(|()| pass(size_of::<Termios>())),
        R::TIOCSWINSZ => resize(cx, file, || pass(size_of::<Winsize>())),
        R::TCSBRK | R::TCSBRKP | R::TIOCSBRK | R::TIOCCBRK | R::TCXONC | R::TCFLSH => {
            in_front(cx, file).and_then(|()| cx.blocking(|| host::fs::ioctl_number(file.host(), request.0, number)))
        }
        R::TIOCGPTN => match &file.kind {
            Kind::Master(pty) => store(cx, arg, pty.number.cast_signed()),
            _ => Err(Errno::ENOTTY),
        },
        R::TIOCSPTLCK | R::TIOCGPTLCK | R::TIOCPKT | R::TIOCGPKT => match &file.kind {
            Kind::Master(_) => pass(size_of::<i32>()),
            _ => Err(Errno::ENOTTY),
        },
        R::TIOCGPTPEER => match &file.kind {
            Kind::Master(pty) => open_slave(cx, fd, pty.number, number),
            _ => Err(Errno::ENOTTY),
        },
        R::TIOCGPGRP | R::TIOCGSID | R::TIOCSPGRP | R::TIOCSCTTY | R::TIOCNOTTY if !is_terminal => Err(Errno::ENOTTY),
        R::TIOCGPGRP => crate::terminal::group(cx, &file.share()).and_then(|group| store(cx, arg, group.cast_signed())),
        R::TIOCGSID => {
            crate::terminal::session(cx, &file.share()).and_then(|session| store(cx, arg, session.cast_signed()))
        }
        R::TIOCSPGRP => cx
            .load(cx.reading(arg.cast::<i32>()))
            .and_then(|group| crate::terminal::set_group(cx, &file.share(), group))
            .map(|()| 0),
        R::TIOCSCTTY => crate::terminal::take(cx, &file.share()).map(|()| 0),
        R::TIOCNOTTY => crate::terminal::leave(cx, &file.share()).map(|()| 0),
        // Typing for others.
        R::TIOCSTI => Err(Errno::EPERM),
        _ => return None,
    };
    Some(result)
}

/// TIOCSETD. All terminals begin with N_TTY; others are drivers of the host's, which a guest must
/// not make it load.
fn discipline(cx: &Ctx<'_>, file: &FileRef, arg: InOut<u8>) -> Result<i32> {
    const N_TTY: i32 = 0;
    if !matches!(file.kind, Kind::Terminal | Kind::Master(_)) {
        return Err(Errno::ENOTTY);
    }
    let wanted = cx.load(cx.reading(arg.cast::<i32>()))?;
    in_front(cx, file)?;
    if wanted != N_TTY {
        return Err(Errno::EINVAL);
    }
    // The host has no other, so nothing needs to be set.
    Ok(0)
}

fn store(cx: &Ctx<'_>, arg: InOut<u8>, value: i32) -> Result<i32> {
    cx.store(cx.writing(arg.cast::<i32>()), &value).map(|()| 0)
}

fn in_front(cx: &Ctx<'_>, file: &FileRef) -> Result<()> {
    match file.kind {
        Kind::Terminal => crate::terminal::check_front(cx, &file.share(), Change::Settings),
        _ => Ok(()),
    }
}

fn resize(cx: &Ctx<'_>, file: &FileRef, set: impl FnOnce() -> Result<i32>) -> Result<i32> {
    if !matches!(file.kind, Kind::Terminal | Kind::Master(_)) {
        return set();
    }
    let before = host::terminal::window(file.host())?;
    set()?;
    crate::terminal::window_changed(cx, &file.share(), before).map(|()| 0)
}

fn open_slave(cx: &Ctx<'_>, master: Fd, number: u32, flags: u32) -> Result<i32> {
    let slave = crate::terminal::open_slave(cx, number, flags)?;
    let cloexec = flags & OpenFlags::O_CLOEXEC != 0;
    cx.owner(master.cage)?.fds.add_from(0, slave, cloexec)
}
