//! execve(2) and execveat(2).

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::flags::AtFlags;
use lind_abi::{CageId, DirFd, Errno, NoReturn, Path, Result, StrArray};
use rustix::fs::{FileType, OFlags};

use super::args::{Room, strings};
use crate::cage::{Named, Where, find_program, prepare_exec};
use crate::call::{Ctx, PathBytes};
use crate::host::errno;
use crate::procfs::Reached;
use crate::root::Last;
use crate::root::table::Dir;

/// execve(2). The old program ends when control is back at its own call, so a grate that forwards
/// the call can finish its bookkeeping; for the grate the call returns 0.
pub(crate) fn execve(cx: &Ctx<'_>, path: Path, argv: StrArray, envp: StrArray) -> Result<NoReturn> {
    execveat(cx, cx.here(), path, argv, envp, AtFlags(0))
}

/// execveat(2)
pub(crate) fn execveat(
    cx: &Ctx<'_>,
    dir: DirFd,
    path: Path,
    argv: StrArray,
    envp: StrArray,
    flags: AtFlags,
) -> Result<NoReturn> {
    if flags.beyond(AtFlags::AT_EMPTY_PATH | AtFlags::AT_SYMLINK_NOFOLLOW) {
        return Err(Errno::EINVAL);
    }
    if cx.thread.cage.id != cx.cage.id {
        return Err(Errno::ESRCH);
    }
    if cx.thread.worker {
        // A handler runs on its client's thread.
        return Err(Errno::EBUSY);
    }
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    let mut room = Room::of(cx.cage);
    let argv = strings(cx, argv, &mut room)?;
    let envp = strings(cx, envp, &mut room)?;
    let last = if flags.has(AtFlags::AT_SYMLINK_NOFOLLOW) { Last::NoFollow } else { Last::Follow };
    let (name, leads_nowhere) = known_as(cx, dir, path)?;
    let prepare = |at: Where<'_>| {
        let named = Named { at, name: &name, leads_nowhere };
        prepare_exec(cx.kernel, cx.cage, named, (argv.clone(), envp.clone()), &|interpreter, find| {
            program_at(cx, (cx.here(), interpreter), Last::Follow, find)
        })
    };
    let start = if path.is_empty() && flags.has(AtFlags::AT_EMPTY_PATH) {
        prepare(Where::File(opened(cx, cx.itself(dir)?.as_fd())?))?
    } else {
        program_at(cx, (dir, path), last, prepare)?
    };
    cx.thread.exec_to(Box::new(start));
    Ok(NoReturn)
}

/// The program that a path leads to through our trees, as `/dev/fd/3` does, or from a root of the
/// cage's own; an absolute path is that of the cage `whose`. None for one that leads to the host's
/// files, or is a name to look for.
///
/// # Errors
/// EACCES if it is not a regular file, and the errors of following the path.
pub(in crate::sys) fn spawned_file(cx: &Ctx<'_>, path: &CStr, whose: CageId) -> Result<Option<OwnedFd>> {
    let absolute = path.to_bytes().starts_with(b"/");
    let here = DirFd { cage: if absolute { whose } else { cx.cage.id }, ..cx.here() };
    let own_root = cx.owner(here.cage)?.root.get().is_some();
    if !own_root && !path.to_bytes().starts_with(b"/dev/") && !path.to_bytes().starts_with(b"/proc/") {
        return Ok(None);
    }
    program_at(cx, (here, path), Last::Follow, |at| match at {
        Where::File(file) => {
            let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).map_err(errno)?.st_mode);
            if kind == FileType::RegularFile { Ok(Some(file)) } else { Err(Errno::EACCES) }
        }
        Where::Path(from, path, last) if own_root => {
            find_program(cx.kernel, from, path, false, last).map(|found| Some(found.file))
        }
        Where::Path(..) => Ok(None),
    })
}

/// Acts on the program that a path leads to, be it through our trees.
fn program_at<T>(
    cx: &Ctx<'_>,
    (dir, path): (DirFd, &CStr),
    last: Last,
    act: impl Fn(Where<'_>) -> Result<T>,
) -> Result<T> {
    let on_host = |from: Dir<'_>, path: &CStr| act(Where::Path(from, path, last));
    cx.act(dir, path, last, on_host, |reached| {
        let file = match reached {
            Reached::Place(place) if place.is_link() => return Err(Errno::ELOOP),
            Reached::Place(place) => opened(cx, place.memory(cx).ok_or(Errno::EACCES)?.1.host())?,
            Reached::File(file) => opened(cx, file.host())?,
            _ => return Err(Errno::ENOENT),
        };
        act(Where::File(file))
    })
}

/// A descriptor of our own for a program that is an open file.
fn opened(cx: &Ctx<'_>, file: BorrowedFd<'_>) -> Result<OwnedFd> {
    let flags = rustix::fs::fcntl_getfl(file).map_err(errno)?;
    if flags.contains(OFlags::PATH) {
        // Not a fifo, to wait for.
        return cx.kernel.root.open_again(file, OFlags::NONBLOCK.bits());
    }
    file.try_clone_to_owned().map_err(|_| Errno::EMFILE)
}

/// The name of a program that was named relative to a descriptor begins there: `/dev/fd/3/program`.
/// Also returns whether that leads nowhere once it runs.
fn known_as(cx: &Ctx<'_>, dir: DirFd, path: &CStr) -> Result<(CString, bool)> {
    if dir.number == libc::AT_FDCWD || path.to_bytes().starts_with(b"/") {
        return Ok((path.to_owned(), false));
    }
    if path.is_empty() && dir.cage != cx.cage.id {
        // A grate's descriptor number, which means nothing here: the grate has found the program
        // for its client in its own way.
        let name = cx.kernel.root.certain_name_of(cx.itself(dir)?.as_fd()).unwrap_or_default();
        let base = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        if !base.is_empty() {
            return Ok((CString::new(base).map_err(|_| Errno::EINVAL)?, false));
        }
    }
    let closes = dir.cage == cx.cage.id && cx.cage.fds.cloexec(dir.number).unwrap_or(false);
    let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
    let name = [format!("/dev/fd/{}", dir.number).as_bytes(), slash, path.to_bytes()].concat();
    Ok((CString::new(name).map_err(|_| Errno::EINVAL)?, closes))
}
