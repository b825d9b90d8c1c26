//! Owners of files, who get signals about them: the commands of fcntl(2) and ioctl(2).

use lind_abi::flags::FcntlCmd;
use lind_abi::layout::Flock;
use lind_abi::{CageId, Errno, Fd, InOut, Result};
use rustix::fs::OFlags;

use crate::async_io::Owner;
use crate::call::Ctx;
use crate::fd::{FileRef, Kind};
use crate::host::errno;
use crate::sys::signal::cage_of;

pub(super) const O_ASYNC: u32 = 0o20000;
const HIGHEST_SIGNAL: u32 = 64;

/// The kinds of owners in struct f_owner_ex.
const TID: i32 = 0;
const PID: i32 = 1;
const PGRP: i32 = 2;

/// F_SETOWN and its kind; None for other commands.
pub(super) fn of_owner(
    cx: &Ctx<'_>,
    file: &FileRef,
    cmd: FcntlCmd,
    arg: InOut<Flock>,
    number: u32,
) -> Option<Result<i32>> {
    let command = || match cmd.0 {
        FcntlCmd::F_SETOWN => set_owner(cx, file, number.cast_signed()),
        FcntlCmd::F_GETOWN => Ok(owner(cx, file)),
        FcntlCmd::F_SETOWN_EX => {
            let [kind, id]: [i32; 2] = cx.load(cx.reading(arg.cast()))?;
            let named = |id| match kind {
                TID => Ok(Owner::Thread(id)),
                PID => Ok(Owner::Process(id)),
                PGRP => Ok(Owner::Group(id)),
                _ => Err(Errno::EINVAL),
            };
            // The kind is looked at before the number.
            named(0)?;
            set(cx, file, id, named(u32::try_from(id).map_err(|_| Errno::ESRCH)?)?)
        }
        FcntlCmd::F_GETOWN_EX => {
            let owner = file.notice().and_then(|notice| notice.owner());
            let (kind, id) = owner.map_or((TID, 0), |owner| match owner {
                Owner::Thread(id) => (TID, id),
                Owner::Process(id) => (PID, id),
                Owner::Group(id) => (PGRP, id),
            });
            let id = if owner.is_some_and(|owner| owner.exists(cx.kernel)) { id.cast_signed() } else { 0 };
            cx.store(cx.writing(arg.cast()), &[kind, id]).map(|()| 0)
        }
        FcntlCmd::F_SETSIG => {
            let signal = u8::try_from(number).ok().filter(|_| number <= HIGHEST_SIGNAL).ok_or(Errno::EINVAL)?;
            file.make_notice().set_signal(cx, signal);
            Ok(0)
        }
        _ => Ok(file.notice().map_or(0, |notice| notice.signal().into())),
    };
    use FcntlCmd as C;
    let ours = [C::F_SETOWN, C::F_GETOWN, C::F_SETOWN_EX, C::F_GETOWN_EX, C::F_SETSIG, C::F_GETSIG].contains(&cmd.0);
    ours.then(|| check_open(file).and_then(|()| command()))
}

/// EBADF for a file that was opened for its path only.
fn check_open(file: &FileRef) -> Result<()> {
    let flags = rustix::fs::fcntl_getfl(file.host()).map_err(errno)?;
    if flags.contains(OFlags::PATH) { Err(Errno::EBADF) } else { Ok(()) }
}

/// F_SETOWN, FIOSETOWN: a process, or a group as a negative number.
pub(super) fn set_owner(cx: &Ctx<'_>, file: &FileRef, id: i32) -> Result<i32> {
    if id == i32::MIN {
        return Err(Errno::EINVAL);
    }
    let magnitude = id.unsigned_abs();
    set(cx, file, id, if id < 0 { Owner::Group(magnitude) } else { Owner::Process(magnitude) })
}

fn set(cx: &Ctx<'_>, file: &FileRef, id: i32, owner: Owner) -> Result<i32> {
    if id == 0 {
        if file.notice().is_some() {
            file.make_notice().set_owner(cx, file, None)?;
        }
        return Ok(0);
    }
    if !is_known(cx, id.unsigned_abs()) {
        return Err(Errno::ESRCH);
    }
    file.make_notice().set_owner(cx, file, Some(owner)).map(|()| 0)
}

/// Whether a process, thread, group or session has this id.
fn is_known(cx: &Ctx<'_>, id: u32) -> bool {
    let of = |cage: &crate::cage::Cage| cage.id == CageId(id) || cage.group() == id || cage.session() == id;
    cage_of(cx, id).is_some() || cx.kernel.cages.all().iter().any(|cage| of(cage))
}

/// F_GETOWN, FIOGETOWN.
pub(super) fn owner(cx: &Ctx<'_>, file: &FileRef) -> i32 {
    let owner = file.notice().and_then(|notice| notice.owner()).filter(|owner| owner.exists(cx.kernel));
    owner.map_or(0, |owner| match owner {
        Owner::Thread(id) | Owner::Process(id) => id.cast_signed(),
        Owner::Group(id) => -id.cast_signed(),
    })
}

/// O_ASYNC as F_GETFL shows it.
pub(super) fn async_flag(cx: &Ctx<'_>, fd: Fd) -> i32 {
    if !cx.kernel.async_io.is_used() {
        return 0;
    }
    let is_on = cx.file(fd).is_ok_and(|file| file.notice().is_some_and(|notice| notice.is_on()));
    if is_on { O_ASYNC.cast_signed() } else { 0 }
}

/// O_ASYNC as F_SETFL sets it; ignored for files without events.
pub(super) fn set_async(cx: &Ctx<'_>, fd: Fd, on: bool) -> Result<()> {
    if !on && !cx.kernel.async_io.is_used() {
        return Ok(());
    }
    let file = cx.file(fd)?;
    if file.notice().is_some_and(|notice| notice.is_on()) == on || !crate::async_io::tells(&file)? {
        return Ok(());
    }
    file.make_notice().set_on(cx, &file, on.then_some(fd.number))
}

/// FIOASYNC, which fails for files without events.
pub(super) fn fioasync(cx: &Ctx<'_>, fd: Fd, file: &FileRef, arg: InOut<u8>) -> Result<i32> {
    let on = cx.load(cx.reading(arg.cast::<i32>()))? != 0;
    if file.notice().is_some_and(|notice| notice.is_on()) != on && !crate::async_io::tells(file)? {
        return Err(Errno::ENOTTY);
    }
    set_async(cx, fd, on).map(|()| 0)
}

/// FIOSETOWN, SIOCSPGRP, FIOGETOWN, SIOCGPGRP, which sockets take. None for any other request.
pub(super) fn of_socket(cx: &Ctx<'_>, file: &FileRef, request: u32, arg: InOut<u8>) -> Option<Result<i32>> {
    const SET: [u32; 2] = [0x8901, 0x8902];
    const GET: [u32; 2] = [0x8903, 0x8904];
    let arg = arg.cast::<i32>();
    if !matches!(file.kind, Kind::Socket(_)) {
        return None;
    }
    if SET.contains(&request) {
        return Some(cx.load(cx.reading(arg)).and_then(|id| set_owner(cx, file, id)));
    }
    GET.contains(&request).then(|| cx.store(cx.writing(arg), &owner(cx, file)).map(|()| 0))
}
