//! prctl(2).

use lind_abi::flags::PrctlOp;
use lind_abi::{Errno, In, Out, Result, nr};

use crate::cage::signal::LAST;
use crate::call::Ctx;
use crate::lock::Locked;

/// prctl(2). Other options are EINVAL, as on a kernel that does not know them.
pub(crate) fn prctl(cx: &Ctx<'_>, op: PrctlOp, a: u64, b: u64, c: u64, d: u64) -> Result<i32> {
    let unused = |values: &[u64]| if values.iter().all(|&v| v == 0) { Ok(()) } else { Err(Errno::EINVAL) };
    match op.0 {
        PrctlOp::PR_SET_NAME => set_name(cx, a),
        PrctlOp::PR_GET_NAME => {
            let name = *cx.thread.name.locked();
            cx.copy_out(Out::new(a, cx.cage.id), &name)?;
            Ok(0)
        }
        PrctlOp::PR_SET_PDEATHSIG => {
            let signal = u8::try_from(a).ok().filter(|signal| *signal <= LAST).ok_or(Errno::EINVAL)?;
            cx.cage.settings().death_signal = signal;
            Ok(0)
        }
        PrctlOp::PR_GET_PDEATHSIG => {
            let signal = i32::from(cx.cage.settings().death_signal);
            cx.store(Out::new(a, cx.cage.id), &signal).map(|()| 0)
        }
        PrctlOp::PR_SET_CHILD_SUBREAPER => {
            cx.cage.take_orphans(a != 0);
            Ok(0)
        }
        PrctlOp::PR_GET_CHILD_SUBREAPER => {
            cx.store(Out::new(a, cx.cage.id), &i32::from(cx.cage.takes_orphans())).map(|()| 0)
        }
        PrctlOp::PR_GET_DUMPABLE => Ok(cx.cage.settings().dumpable.into()),
        PrctlOp::PR_SET_DUMPABLE if a <= 1 => {
            cx.cage.settings().dumpable = a == 1;
            Ok(0)
        }
        PrctlOp::PR_GET_NO_NEW_PRIVS => {
            unused(&[a, b, c, d])?;
            Ok(cx.cage.settings().no_new_privs.into())
        }
        PrctlOp::PR_SET_NO_NEW_PRIVS if a == 1 => {
            unused(&[b, c, d])?;
            cx.cage.settings().no_new_privs = true;
            Ok(0)
        }
        PrctlOp::PR_SET_SECCOMP => strict(cx, a),
        // A confined process cannot ask.
        PrctlOp::PR_GET_SECCOMP => Ok(0),
        PrctlOp::PR_CAPBSET_READ
        | PrctlOp::PR_CAPBSET_DROP
        | PrctlOp::PR_GET_KEEPCAPS
        | PrctlOp::PR_SET_KEEPCAPS
        | PrctlOp::PR_GET_SECUREBITS
        | PrctlOp::PR_SET_SECUREBITS
        | PrctlOp::PR_CAP_AMBIENT => super::about_capabilities(cx, op, [a, b, c, d]),
        PrctlOp::PR_GET_TIMERSLACK => Ok(i32::try_from(cx.cage.settings().timer_slack).unwrap_or(i32::MAX)),
        PrctlOp::PR_SET_TIMERSLACK => {
            cx.cage.settings().set_timer_slack(a);
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// prctl(PR_SET_SECCOMP) with SECCOMP_MODE_STRICT: the cage may read, write and exit, and any other
/// call ends it. Filters are EINVAL: the seccomp grate applies only those that it was started with.
fn strict(cx: &Ctx<'_>, mode: u64) -> Result<i32> {
    const SECCOMP_MODE_STRICT: u64 = 1;
    if mode != SECCOMP_MODE_STRICT || cx.thread.worker || cx.thread.cage.id != cx.cage.id {
        return Err(Errno::EINVAL);
    }
    cx.cage.handlers.confine(&[nr::read, nr::write, nr::exit, nr::rt_sigreturn]);
    Ok(0)
}

/// Sets the name: the bytes before the NUL, and at most 15 of them.
fn set_name(cx: &Ctx<'_>, addr: u64) -> Result<i32> {
    let mut name = [0; 16];
    for (at, byte) in (addr..).zip(&mut name[..15]) {
        *byte = cx.load(In::new(at, cx.cage.id))?;
        if *byte == 0 {
            break;
        }
    }
    *cx.thread.name.locked() = name;
    Ok(0)
}
