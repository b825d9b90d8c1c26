//! Interrupted calls that are repeated after a handler with SA_RESTART: signal(7).

use lind_abi::nr;

use crate::cage::{Cage, Thread};

/// Whether call `number` with these arguments is made again. Without a handler every call is.
pub fn restarts(thread: &Thread, number: u32, values: &[u64]) -> bool {
    let value = |at: usize| values.get(at).copied().unwrap_or(0);
    match number {
        nr::poll
        | nr::ppoll
        | nr::select
        | nr::pselect6
        | nr::epoll_wait
        | nr::epoll_pwait
        | nr::epoll_pwait2
        | nr::nanosleep
        | nr::clock_nanosleep
        | nr::pause
        | nr::rt_sigsuspend
        | nr::rt_sigtimedwait
        | nr::semop
        | nr::semtimedop
        | nr::msgsnd
        | nr::msgrcv => false,
        // The operations that wait; their time is a pointer.
        nr::futex => !matches!(value(1) & 127, 0 | 9) || value(3) & 0xffff_ffff == 0,
        nr::read | nr::readv | nr::recvfrom | nr::recvmsg | nr::recvmmsg | nr::accept | nr::accept4 => {
            !has_timeout(&thread.cage, value(0), Side::Receive)
        }
        nr::write | nr::writev | nr::sendto | nr::sendmsg | nr::sendmmsg | nr::connect => {
            !has_timeout(&thread.cage, value(0), Side::Send)
        }
        _ => true,
    }
}

enum Side {
    Receive,
    Send,
}

/// SO_RCVTIMEO and SO_SNDTIMEO: a call that may have waited for some of its time is not made again.
fn has_timeout(cage: &Cage, fd: u64, side: Side) -> bool {
    use rustix::net::sockopt::{Timeout, socket_timeout};
    let number = i32::try_from(fd & 0xffff_ffff).unwrap_or(-1);
    let Ok(file) = cage.fds.get(number) else { return false };
    let side = match side {
        Side::Receive => Timeout::Recv,
        Side::Send => Timeout::Send,
    };
    // A file that is not a socket has none.
    socket_timeout(file.host(), side).is_ok_and(|timeout| timeout.is_some())
}
