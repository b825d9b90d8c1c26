//! Characters typed at a pseudoterminal that mean signals: ^C, ^\ and ^Z, by the terminal's
//! settings.
//!
//! The host's line discipline removes these characters and has no process group to signal. So bytes
//! written to a master are looked through here, with the settings the terminal has then.

use std::sync::Arc;

use lind_abi::CageId;
use lind_abi::flags::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use crate::Kernel;
use crate::cage::{Cage, signal};
use crate::fd::{File, Kind};
use crate::host;

const ISIG: u32 = 1;
const IEXTEN: u32 = 0o100_000;
/// The indices of the characters in c_cc: VINTR, VQUIT, VSUSP, VLNEXT.
const VINTR: usize = 0;
const VQUIT: usize = 1;
const VSUSP: usize = 10;
const VLNEXT: usize = 15;

/// Waits until the host has dealt with what was written to a master. It does that on another
/// thread, and at ^C it drops what the terminal has for its reader: nothing that is written because
/// of the signal may be there by then.
fn settle(master: &File) {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(slave) = host::terminal::peer(master.host(), flags.bits()) else { return };
    // A terminal without input for its reader is only known to have none after that.
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let _ = poll(&mut [PollFd::new(&slave, PollFlags::IN)], Some(&at_once));
}

/// A key that has meant a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// The signal.
    pub number: u8,
    /// The process group that it was sent to; 0 if there was none.
    pub front: u32,
}

/// Whether the leader of a session is a shell with job control, as far as its signals tell. A
/// shell that leads its group already does not have to choose the group in front.
pub(super) fn has_job_control(kernel: &Kernel, session: u32) -> bool {
    let ignored = |leader: &Cage| leader.signals().ignored_and_handled().0;
    kernel
        .cages
        .get(CageId(session))
        .is_some_and(|leader| ignored(&leader) & signal::bit(signal::number(Signals::SIGTTOU)) != 0)
}

/// Sends the signals that bytes written to a master mean. Returns those for the group with which
/// the terminal began: a shell with job control has a group of its own, as its jobs do.
pub(crate) fn typed(kernel: &Kernel, file: &Arc<File>, bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    if !matches!(file.kind, Kind::Master(_)) {
        return keys;
    }
    let Ok(settings) = host::terminal::settings(file.host()) else { return keys };
    if settings.lflag & ISIG == 0 {
        return keys;
    }
    // A character that is switched off is 0.
    let is = |byte: u8, which: usize| byte != 0 && settings.cc[which] == byte;
    let mut quoted = false;
    for &byte in bytes {
        if std::mem::take(&mut quoted) {
            continue;
        }
        let number = match byte {
            byte if is(byte, VINTR) => Signals::SIGINT,
            byte if is(byte, VQUIT) => Signals::SIGQUIT,
            byte if is(byte, VSUSP) => Signals::SIGTSTP,
            byte => {
                quoted = settings.lflag & IEXTEN != 0 && is(byte, VLNEXT);
                continue;
            }
        };
        let number = signal::number(number);
        let (session, front, chosen) = match kernel.terminals.lock().behind(kernel, file) {
            Some(terminal) => (terminal.session, terminal.front, terminal.has_jobs),
            None => (0, 0, false),
        };
        if !chosen && !has_job_control(kernel, session) {
            keys.push(Key { number, front });
        }
        if front != 0 {
            settle(file);
            signal::send_to_group(kernel, front, signal::Info::kernel(number));
        }
    }
    keys
}
