//! Details of a signal: siginfo_t as the kernel keeps it.

use lind_abi::flags::Signals;
use lind_abi::layout::{Siginfo, Zero};

use crate::cage::{Cage, Status};

/// Words of siginfo_t's union that are kept; no kind of signal fills more.
const WORDS: usize = 7;

/// A signal and where it comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// The signal, 1 to 64.
    pub signal: u8,
    /// si_errno.
    pub errno: i32,
    /// si_code.
    pub code: i32,
    /// The union, from si_pid (or si_addr, si_timerid) on.
    pub fields: [u32; WORDS],
}

impl Info {
    /// The signal that nothing holds back.
    pub const KILL: u8 = super::number(Signals::SIGKILL);
    /// si_code of kill(2).
    pub const SI_USER: i32 = 0;
    /// si_code of the kernel's signals.
    pub const SI_KERNEL: i32 = 0x80;
    /// si_code of sigqueue(3).
    pub const SI_QUEUE: i32 = -1;
    /// si_code of timer_create(2).
    pub const SI_TIMER: i32 = -2;
    /// si_code for a file whose signal has codes of its own.
    pub const SI_SIGIO: i32 = -5;
    /// si_code of tgkill(2).
    pub const SI_TKILL: i32 = -6;

    /// From the kernel, for no more reason than the signal itself gives.
    pub fn kernel(signal: u8) -> Info {
        Info { signal, errno: 0, code: Info::SI_KERNEL, fields: [0; WORDS] }
    }

    /// The info of a signal that came when there was no room for its info.
    pub fn lost(signal: u8) -> Info {
        Info { code: Info::SI_USER, ..Info::kernel(signal) }
    }

    /// From a cage, by kill(2) (SI_USER) or tgkill(2) (SI_TKILL).
    pub fn from(cage: &Cage, signal: u8, code: i32) -> Info {
        let uid = cage.settings().credentials.uid[0];
        Info { code, ..Info::kernel(signal) }.with(&[cage.id.0, uid])
    }

    /// The info of a fault at `address`, of the kind `code`.
    pub fn fault(signal: u8, code: i32, address: u32) -> Info {
        Info { code, ..Info::kernel(signal) }.with(&[address])
    }

    /// The address of the fault.
    pub(crate) fn address(&self) -> u32 {
        self.fields[0]
    }

    /// The info of a timer that has run out `overrun` times beyond the first.
    pub fn timer(signal: u8, id: u32, overrun: u32, value: u32) -> Info {
        Info { code: Info::SI_TIMER, ..Info::kernel(signal) }.with(&[id, overrun, value])
    }

    /// The info about a child that has ended, stopped or continued. Times are in hundredths of a
    /// second.
    pub fn child(child: &Cage, change: Change, utime: u32, stime: u32) -> Info {
        let (code, status) = change.code_and_status();
        let uid = child.settings().credentials.uid[0];
        Info { code, ..Info::kernel(CHILD) }.with(&[child.id.0, uid, status, utime, stime])
    }

    /// The info about an event of a file, with its descriptor.
    pub fn file(signal: u8, code: i32, band: u32, fd: i32) -> Info {
        Info { code, ..Info::kernel(signal) }.with(&[band, fd.cast_unsigned()])
    }

    /// The info given to rt_sigqueueinfo(2).
    pub fn queued(signal: u8, given: &Siginfo) -> Info {
        Info { signal, errno: given.errno, code: given.code, fields: [0; WORDS] }.with(&given.fields[..WORDS])
    }

    /// The struct for a guest.
    pub fn to_guest(&self) -> Siginfo {
        let mut info = Siginfo { signo: i32::from(self.signal), errno: self.errno, code: self.code, ..Siginfo::ZERO };
        info.fields[..WORDS].copy_from_slice(&self.fields);
        info
    }

    fn with(mut self, fields: &[u32]) -> Info {
        self.fields[..fields.len()].copy_from_slice(fields);
        self
    }
}

#[allow(clippy::cast_possible_truncation, reason = "17")]
const CHILD: u8 = Signals::SIGCHLD as u8;

/// A change of a child's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// It has ended.
    Ended(Status),
    /// It was stopped by this signal.
    Stopped(u8),
    /// It continues.
    Continued,
}

impl Change {
    /// si_code and si_status.
    pub fn code_and_status(self) -> (i32, u32) {
        const CLD_EXITED: i32 = 1;
        const CLD_KILLED: i32 = 2;
        const CLD_STOPPED: i32 = 5;
        const CLD_CONTINUED: i32 = 6;
        match self {
            Change::Ended(Status::Exited(code)) => (CLD_EXITED, u32::from(code)),
            Change::Ended(Status::Signaled { signal }) => (CLD_KILLED, u32::from(signal)),
            Change::Stopped(signal) => (CLD_STOPPED, u32::from(signal)),
            Change::Continued => (CLD_CONTINUED, Signals::SIGCONT),
        }
    }

    /// The status word of wait4(2).
    pub fn wait_word(self) -> i32 {
        match self {
            Change::Ended(status) => status.wait_word(),
            Change::Stopped(signal) => i32::from(signal) << 8 | 0x7f,
            Change::Continued => 0xffff,
        }
    }
}
