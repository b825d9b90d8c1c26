//! signalfd(2): signals that are read from descriptors.

use lind_abi::flags::{SignalfdFlags, Signals};
use lind_abi::layout::Sigset;
use lind_abi::{Errno, Fd, In, Len, NewFd, Out, Result};

use super::{check_size, own_thread};
use crate::cage::parent_of;
use crate::cage::signal::{self, Info, Signalfd, UNBLOCKABLE};
use crate::call::Ctx;
use crate::fd::{File, Kind};

/// The size of struct signalfd_siginfo.
const RECORD: usize = 128;

/// signalfd(2) without flags.
pub(crate) fn signalfd(cx: &Ctx<'_>, fd: Fd, mask: In<Sigset>, size: Len) -> Result<NewFd> {
    signalfd4(cx, fd, mask, size, SignalfdFlags(0))
}

/// signalfd(2)
pub(crate) fn signalfd4(cx: &Ctx<'_>, fd: Fd, mask: In<Sigset>, size: Len, flags: SignalfdFlags) -> Result<NewFd> {
    check_size(size)?;
    if flags.beyond(SignalfdFlags::SFD_NONBLOCK | SignalfdFlags::SFD_CLOEXEC) {
        return Err(Errno::EINVAL);
    }
    let mask = cx.load(mask)?.bits & !UNBLOCKABLE;
    if fd.number != -1 {
        let file = cx.file(fd)?;
        let Kind::Signalfd(listener) = &file.kind else { return Err(Errno::EINVAL) };
        signal::listen_for(listener, mask);
        return Ok(NewFd(fd.number));
    }
    let cage = parent_of(cx.kernel, cx.cage.id)?;
    let file = signal::listen(cx.kernel, &cage, mask, flags.has(SignalfdFlags::SFD_NONBLOCK))?;
    cx.cage.fds.add_from(0, file, flags.has(SignalfdFlags::SFD_CLOEXEC)).map(NewFd)
}

/// read(2): as many signals as there are and fit.
pub(crate) fn read_signals(cx: &Ctx<'_>, file: &File, listener: &Signalfd, buf: Out<u8>, len: Len) -> Result<usize> {
    let room = usize::try_from(len.0).map_err(|_| Errno::EINVAL)? / RECORD;
    if room == 0 {
        return Err(Errno::EINVAL);
    }
    let thread = own_thread(cx)?;
    loop {
        let seen = cx.cage.changed.seen();
        let mut done = 0;
        while done < room
            && let Some(info) = signal::take_waited(thread, listener.mask())
        {
            let to = Out::new(buf.addr.saturating_add((done * RECORD) as u64), buf.cage);
            cx.copy_out(to, &record(&info))?;
            done += 1;
        }
        if done > 0 {
            return Ok(done * RECORD);
        }
        if rustix::fs::fcntl_getfl(file.host()).is_ok_and(|flags| flags.contains(rustix::fs::OFlags::NONBLOCK)) {
            return Err(Errno::EAGAIN);
        }
        if cx.has_signals() && !cx.again(&Err::<(), _>(Errno::EINTR)) {
            return Err(Errno::EINTR);
        }
        // However the wait ends, the question is asked again.
        let _ = cx.waiting(|| cx.cage.changed.wait(seen, None));
    }
}

/// struct signalfd_siginfo.
fn record(info: &Info) -> [u8; RECORD] {
    const PID: usize = 12;
    const UID: usize = 16;
    const TID: usize = 24;
    const OVERRUN: usize = 32;
    const STATUS: usize = 40;
    const INT: usize = 44;
    const PTR: usize = 48;
    const UTIME: usize = 56;
    const STIME: usize = 64;
    const ADDR: usize = 72;
    const FAULTS: [u32; 5] = [Signals::SIGSEGV, Signals::SIGBUS, Signals::SIGILL, Signals::SIGFPE, Signals::SIGTRAP];
    let mut bytes = [0; RECORD];
    let mut put = |at: usize, word: u32| bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    put(0, info.signal.into());
    put(4, info.errno.cast_unsigned());
    put(8, info.code.cast_unsigned());
    let fields = &info.fields;
    let mut fill = |places: &[usize]| {
        for (place, word) in places.iter().zip(fields) {
            put(*place, *word);
        }
    };
    match (u32::from(info.signal), info.code) {
        (_, Info::SI_TIMER) => {
            fill(&[TID, OVERRUN, INT]);
            put(PTR, fields[2]);
        }
        (Signals::SIGCHLD, 1..) => fill(&[PID, UID, STATUS, UTIME, STIME]),
        (signal, 1..) if FAULTS.contains(&signal) && info.code != Info::SI_KERNEL => fill(&[ADDR]),
        (_, Info::SI_USER | Info::SI_TKILL) => fill(&[PID, UID]),
        (_, ..0) => {
            fill(&[PID, UID, INT]);
            put(PTR, fields[2]);
        }
        _ => {}
    }
    bytes
}
