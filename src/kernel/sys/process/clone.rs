//! clone(2): threads, and children of two kinds.

use std::sync::atomic::Ordering;

use lind_abi::flags::CloneFlags;
use lind_abi::{Addr, Errno, Out, Pid, Result};

use crate::cage::{Cage, How, capability, make_child, parent_of};
use crate::call::Ctx;

/// The state that threads of a cage always share.
const SHARED: u32 = CloneFlags::CLONE_VM
    | CloneFlags::CLONE_FS
    | CloneFlags::CLONE_FILES
    | CloneFlags::CLONE_SIGHAND
    | CloneFlags::CLONE_THREAD;
/// Flags that ask for words to be written, or have no effect here.
const HARMLESS: u32 = CloneFlags::CLONE_SETTLS
    | CloneFlags::CLONE_PARENT_SETTID
    | CloneFlags::CLONE_CHILD_SETTID
    | CloneFlags::CLONE_CHILD_CLEARTID
    | CloneFlags::CLONE_SYSVSEM
    | CloneFlags::CLONE_DETACHED;
const NAMESPACES: u32 = CloneFlags::CLONE_NEWNS
    | CloneFlags::CLONE_NEWUSER
    | CloneFlags::CLONE_NEWPID
    | CloneFlags::CLONE_NEWNET
    | CloneFlags::CLONE_NEWCGROUP;
/// Namespaces that a cage may have of its own.
const APART: u32 = CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWIPC;
/// Flags of a child, not a thread.
const OF_CHILDREN: u32 = CloneFlags::CLONE_PARENT | APART;
/// CLONE_NEWTIME, which only unshare(2) has: in clone(2) it is part of the signal.
const NEWTIME: u32 = 0x80;
/// The signal that the parent gets at the child's end.
const SIGNAL: u32 = 0xff;

/// clone(2), of three kinds: a thread (`CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
/// CLONE_THREAD`), a child on this cage's memory until it runs a program or ends (`CLONE_VM |
/// CLONE_VFORK | SIGCHLD`), and a copy (`SIGCHLD`). Only the import `fork` can ask for a copy, and
/// for a child that continues where its parent is, without a stack. `stack` is the address of the
/// block that libc's `__lind_thread_start` starts from; libc puts the thread pointer there too. A
/// child may be a sibling of the caller, and have names of the machine and System V objects of its
/// own.
pub(crate) fn clone(
    cx: &Ctx<'_>,
    flags: CloneFlags,
    stack: Addr,
    parent_tid: Out<i32>,
    child_tid: Out<i32>,
    _tls: Addr,
) -> Result<Pid> {
    if flags.0 & NAMESPACES != 0 {
        return Err(Errno::EPERM);
    }
    if cx.thread.cage.id != cx.cage.id {
        // No thread of that cage is on this stack, so none can be copied.
        return Err(Errno::ESRCH);
    }
    let kind = flags.0 & !HARMLESS;
    // A sibling's end is told as the caller's own is.
    let signal = if flags.has(CloneFlags::CLONE_PARENT) { CloneFlags::SIGCHLD } else { kind & SIGNAL };
    if (kind & !SIGNAL & !CloneFlags::CLONE_PARENT) == SHARED {
        return thread(cx, flags, stack, parent_tid, child_tid);
    }
    if flags.0 & APART != 0 {
        may_unshare(cx)?;
    }
    if flags.has(CloneFlags::CLONE_NEWIPC) && flags.has(CloneFlags::CLONE_SYSVSEM) {
        // Adjustments of SEM_UNDO cannot be shared with a namespace without these semaphores.
        return Err(Errno::EINVAL);
    }
    match (kind & !SIGNAL & !OF_CHILDREN, signal) {
        (0, CloneFlags::SIGCHLD) => child(cx, flags, How::Fork, parent_tid),
        (vfork, CloneFlags::SIGCHLD | 0) if vfork == CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK => {
            let how = if stack.0 == 0 { How::Borrow } else { How::Vfork { boot: block(stack)? } };
            child(cx, flags, how, parent_tid)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// Before a namespace is left for one of its own.
fn may_unshare(cx: &Ctx<'_>) -> Result<()> {
    if cx.cage.settings().credentials.can(capability::SYS_ADMIN) { Ok(()) } else { Err(Errno::EPERM) }
}

/// Gives a cage the namespaces that are asked for.
fn set_apart(cx: &Ctx<'_>, cage: &Cage, flags: CloneFlags) {
    if flags.has(CloneFlags::CLONE_NEWUTS) {
        cage.names_apart(cx.kernel);
    }
    if flags.has(CloneFlags::CLONE_NEWIPC) {
        cx.kernel.ipc.set_apart(cx.kernel, cage);
    }
}

/// unshare(2). A cage shares descriptors, the working directory and the like with no other cage,
/// and its threads always share them.
pub(crate) fn unshare(cx: &Ctx<'_>, flags: CloneFlags) -> Result<()> {
    const OF_THREADS: u32 = CloneFlags::CLONE_THREAD
        | CloneFlags::CLONE_SIGHAND
        | CloneFlags::CLONE_VM
        | CloneFlags::CLONE_FS
        | CloneFlags::CLONE_FILES;
    if flags.beyond(OF_THREADS | CloneFlags::CLONE_SYSVSEM | APART | NAMESPACES | NEWTIME) {
        return Err(Errno::EINVAL);
    }
    if flags.0 & (NAMESPACES | NEWTIME) != 0 {
        return Err(Errno::EPERM);
    }
    if flags.0 & OF_THREADS != 0 && cx.cage.has_other_threads() {
        return Err(Errno::EINVAL);
    }
    if flags.0 & APART != 0 {
        may_unshare(cx)?;
        set_apart(cx, cx.cage, flags);
    }
    if flags.has(CloneFlags::CLONE_SYSVSEM) {
        cx.kernel.ipc.undo(cx.cage);
    }
    Ok(())
}

fn block(stack: Addr) -> Result<u32> {
    u32::try_from(stack.0).ok().filter(|&at| at != 0).ok_or(Errno::EINVAL)
}

fn thread(cx: &Ctx<'_>, flags: CloneFlags, stack: Addr, parent_tid: Out<i32>, child_tid: Out<i32>) -> Result<Pid> {
    let boot = block(stack)?;
    let cage = parent_of(cx.kernel, cx.cage.id)?;
    let thread = cage.new_own_thread(cx.kernel, cx.thread)?;
    let tid = thread.tid.cast_signed();
    if flags.has(CloneFlags::CLONE_CHILD_CLEARTID) {
        thread.at_end.clear_tid.store(child_tid.addr, Ordering::Release);
    }
    let stored = (|| {
        if flags.has(CloneFlags::CLONE_PARENT_SETTID) {
            cx.store(parent_tid, &tid)?;
        }
        if flags.has(CloneFlags::CLONE_CHILD_SETTID) {
            cx.store(child_tid, &tid)?;
        }
        Ok(())
    })();
    let started = stored.and_then(|()| cx.kernel.engine().start_thread(cx.kernel, &thread, boot));
    if let Err(errno) = started {
        thread.at_end.clear_tid.store(0, Ordering::Release);
        thread.never_ran();
        return Err(errno);
    }
    Ok(Pid(tid))
}

fn child(cx: &Ctx<'_>, flags: CloneFlags, how: How, parent_tid: Out<i32>) -> Result<Pid> {
    if cx.thread.worker || (matches!(how, How::Fork | How::Borrow) && !cx.thread.forking.load(Ordering::Acquire)) {
        // In a handler, or not at a call of `lind.fork`: there is no way to copy its stack.
        return Err(Errno::ENOSYS);
    }
    let parent = parent_of(cx.kernel, cx.cage.id)?;
    let birth = make_child(cx.kernel, cx.thread, &parent, (how, flags.has(CloneFlags::CLONE_PARENT)))?;
    set_apart(cx, &birth.child.cage, flags);
    let pid = birth.child.tid.cast_signed();
    if flags.has(CloneFlags::CLONE_PARENT_SETTID) {
        // Linux makes the child all the same.
        let _ = cx.store(parent_tid, &pid);
    }
    if let Err(birth) = cx.thread.set_birth(birth) {
        birth.undo(cx.kernel, cx.hop);
        return Err(Errno::EAGAIN);
    }
    Ok(Pid(pid))
}
