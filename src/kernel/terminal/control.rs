//! Job control: the permission to use a terminal, and its owner.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::flags::Signals;
use lind_abi::layout::Winsize;
use lind_abi::{CageId, Errno, Result};

use super::line::has_job_control;
use super::{Terminal, session_and_group};
use crate::Kernel;
use crate::cage::{Cage, signal};
use crate::call::Ctx;
use crate::fd::File;
use crate::host;

/// The access to a terminal that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// Reading.
    Read,
    /// To write to it: a matter of TOSTOP.
    Write,
    /// Changing its settings.
    Settings,
}

/// Lets the caller use its terminal if it is in the foreground, or if that does not matter.
/// Otherwise its process group gets SIGTTIN or SIGTTOU, and the caller waits for the outcome.
///
/// # Errors
/// EINTR; EIO if the signal would have no effect: it is blocked or ignored (reading only), or the
/// group is orphaned.
pub(crate) fn check_front(cx: &Ctx<'_>, file: &Arc<File>, change: Change) -> Result<()> {
    let (number, reads) = match change {
        Change::Read => (signal::number(Signals::SIGTTIN), true),
        _ => (signal::number(Signals::SIGTTOU), false),
    };
    loop {
        let (session, group) = session_and_group(cx);
        let behind = {
            let mut state = cx.kernel.terminals.lock();
            state.look(cx);
            let terminal = state.terminal(cx, file)?;
            let behind = terminal.is_behind(session, group);
            if !behind && change != Change::Write {
                terminal.keys_are_wanted();
            }
            behind
        };
        if !behind || (change == Change::Write && !host::terminal::stops_writers(file.host())) {
            return Ok(());
        }
        if is_inert(cx, number) {
            return if reads { Err(Errno::EIO) } else { Ok(()) };
        }
        if signal::group_is_orphaned(cx.kernel, group, None) {
            return Err(Errno::EIO);
        }
        signal::send_to_group(cx.kernel, group, signal::Info::kernel(number));
        let interrupted: Result<()> = Err(Errno::EINTR);
        if !cx.again(&interrupted) {
            return interrupted;
        }
    }
}

/// Whether a signal would do nothing to the caller: it blocks or ignores it.
fn is_inert(cx: &Ctx<'_>, number: u8) -> bool {
    let blocked = cx.thread.mask.load(Ordering::Acquire) & signal::bit(number) != 0;
    blocked || cx.cage.signals().ignored_and_handled().0 & signal::bit(number) != 0
}

/// TIOCGPGRP: the group in front.
///
/// # Errors
/// ENOTTY unless it is the caller's terminal, or seen from the master's side.
pub(crate) fn group(cx: &Ctx<'_>, file: &Arc<File>) -> Result<u32> {
    let (session, group) = session_and_group(cx);
    let is_shell = has_job_control(cx.kernel, session);
    own(cx, file, |terminal| {
        // Such a shell, if it leads the group in front, does not have to choose one.
        if is_shell && (terminal.session, terminal.front) == (session, group) {
            terminal.keys_are_wanted();
        }
        Ok(terminal.front)
    })
}

/// TIOCGSID: the session.
///
/// # Errors
/// As for `group`; ENOTTY where it belongs to none.
pub(crate) fn session(cx: &Ctx<'_>, file: &Arc<File>) -> Result<u32> {
    own(cx, file, |terminal| if terminal.session == 0 { Err(Errno::ENOTTY) } else { Ok(terminal.session) })
}

fn own<T>(cx: &Ctx<'_>, file: &Arc<File>, act: impl FnOnce(&mut Terminal) -> Result<T>) -> Result<T> {
    let (session, _) = session_and_group(cx);
    let from_master = matches!(file.kind, crate::fd::Kind::Master(_));
    let mut state = cx.kernel.terminals.lock();
    state.look(cx);
    let terminal = state.terminal(cx, file)?;
    if terminal.session == session || from_master { act(terminal) } else { Err(Errno::ENOTTY) }
}

/// TIOCSPGRP: puts a group in the foreground.
///
/// # Errors
/// ENOTTY unless it is the caller's terminal; ESRCH without such a group, EPERM for one of another
/// session; the errors of `check_front`.
pub(crate) fn set_group(cx: &Ctx<'_>, file: &Arc<File>, group: i32) -> Result<()> {
    check_front(cx, file, Change::Settings)?;
    let (session, _) = session_and_group(cx);
    own(cx, file, |terminal| if terminal.session == session { Ok(()) } else { Err(Errno::ENOTTY) })?;
    let group = u32::try_from(group).map_err(|_| Errno::EINVAL)?;
    let members = cx.kernel.cages.all();
    let mut members = members.iter().filter(|cage| cage.group() == group).peekable();
    members.peek().ok_or(Errno::ESRCH)?;
    if !members.any(|member| member.session() == session) {
        return Err(Errno::EPERM);
    }
    own(cx, file, |terminal| {
        (terminal.front, terminal.has_jobs) = (group, true);
        // From now on a key is for that group alone. The caller may have been in the background: a
        // shell's child puts itself in front.
        terminal.keys_are_wanted();
        Ok(())
    })
}

/// TIOCSIG: a signal of the keyboard's for those in front, from the master's side.
///
/// # Errors
/// EINVAL for any other signal.
pub(crate) fn signal_front(cx: &Ctx<'_>, file: &Arc<File>, number: u32) -> Result<()> {
    if ![Signals::SIGINT, Signals::SIGQUIT, Signals::SIGTSTP].contains(&number) {
        return Err(Errno::EINVAL);
    }
    let front = super::front(cx, file);
    if front != 0 {
        signal::send_to_group(cx.kernel, front, signal::Info::kernel(signal::number(number)));
    }
    Ok(())
}

/// TIOCSCTTY: makes it the terminal of the caller's session.
///
/// # Errors
/// EPERM unless the caller leads a session without a terminal, and the terminal is without a
/// session.
pub(crate) fn take(cx: &Ctx<'_>, file: &Arc<File>) -> Result<()> {
    let (session, group) = session_and_group(cx);
    let mut state = cx.kernel.terminals.lock();
    let has = state.controlling(cx).map(|(id, _)| id);
    let id = super::device(file)?;
    state.terminal(cx, file)?;
    if session == cx.cage.id.0 && has == Some(id) {
        return Ok(());
    }
    let terminal = state.terminal(cx, file)?;
    if session != cx.cage.id.0 || has.is_some() || terminal.session != 0 {
        return Err(Errno::EPERM);
    }
    (terminal.session, terminal.front) = (session, group);
    Ok(())
}

/// TIOCNOTTY: the session's leader gives its terminal up.
///
/// # Errors
/// ENOTTY unless it is the caller's; EPERM for other members, who keep their session's terminal.
pub(crate) fn leave(cx: &Ctx<'_>, file: &Arc<File>) -> Result<()> {
    let (session, _) = session_and_group(cx);
    let front = own(cx, file, |terminal| {
        if terminal.session != session {
            return Err(Errno::ENOTTY);
        }
        if session != cx.cage.id.0 {
            return Err(Errno::EPERM);
        }
        terminal.session = 0;
        Ok(std::mem::replace(&mut terminal.front, 0))
    })?;
    tell_group(cx.kernel, front, &[Signals::SIGHUP, Signals::SIGCONT]);
    Ok(())
}

fn tell_group(kernel: &Kernel, group: u32, numbers: &[u32]) {
    for &number in numbers {
        signal::send_to_group(kernel, group, signal::Info::kernel(signal::number(number)));
    }
}

/// Handles the end of a cage. If it led a session, the foreground group of its terminal gets
/// SIGHUP, and the terminal is free. If the terminal had gone before, the former foreground group
/// gets SIGCONT too.
pub(crate) fn leader_ended(kernel: &Kernel, leader: &Cage) {
    if leader.session() != leader.id.0 {
        return;
    }
    let (front, was_in_front) = {
        let mut state = kernel.terminals.lock();
        let was_in_front = state.lost.remove(&leader.id.0);
        let terminal = state.terminals.values_mut().find(|terminal| terminal.session == leader.id.0);
        let front = terminal.map(|terminal| {
            terminal.session = 0;
            std::mem::replace(&mut terminal.front, 0)
        });
        (front, was_in_front)
    };
    match (front, was_in_front) {
        (Some(0), _) | (None, None) => {}
        (Some(front), _) => tell_group(kernel, front, &[Signals::SIGHUP]),
        (None, Some(group)) => tell_group(kernel, group, &[Signals::SIGHUP, Signals::SIGCONT]),
    }
}

/// Signals the leaders of sessions whose terminals have lost their masters; foreground groups get a
/// signal when the leader ends. Called after files have been closed, without any lock.
#[inline]
pub(crate) fn gone(kernel: &Kernel) {
    if kernel.terminals.hung.load(Ordering::Relaxed) {
        tell(kernel);
    }
}

#[cold]
fn tell(kernel: &Kernel) {
    kernel.terminals.hung.store(false, Ordering::Release);
    let lost = {
        let mut state = kernel.terminals.lock();
        let lost = state.forget_closed();
        state.lost.extend(lost.iter().copied().filter(|&(_, front)| front != 0));
        lost
    };
    for (session, _) in lost {
        if let Some(leader) = kernel.cages.get(CageId(session)).filter(|leader| !leader.is_dead()) {
            for number in [Signals::SIGHUP, Signals::SIGCONT] {
                let _ = signal::send(kernel, &leader, signal::Info::kernel(signal::number(number)));
            }
        }
    }
}

/// Called after TIOCSWINSZ: the foreground group gets SIGWINCH if the size has changed.
pub(crate) fn window_changed(cx: &Ctx<'_>, file: &Arc<File>, before: Winsize) -> Result<()> {
    let now = host::terminal::window(file.host())?;
    let same = |a: &Winsize, b: &Winsize| (a.row, a.col, a.xpixel, a.ypixel) == (b.row, b.col, b.xpixel, b.ypixel);
    if !same(&before, &now) {
        let front = cx.kernel.terminals.lock().terminal(cx, file)?.front;
        if front != 0 {
            let info = signal::Info::kernel(signal::number(Signals::SIGWINCH));
            signal::send_to_group(cx.kernel, front, info);
        }
    }
    Ok(())
}
