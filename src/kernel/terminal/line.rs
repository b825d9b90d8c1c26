//! Characters typed at a pseudoterminal that mean signals: ^C, ^\ and ^Z, by the terminal's
//! settings.
//!
//! The host's line discipline removes these characters and has no process group to signal. So bytes
//! written to a master are looked through here, with the settings the terminal has then.

use std::sync::Arc;

use lind_abi::flags::Signals;

use crate::Kernel;
use crate::cage::signal;
use crate::fd::{File, Kind};
use crate::host;

const ISIG: u32 = 1;
const IEXTEN: u32 = 0o100_000;
/// The indices of the characters in c_cc: VINTR, VQUIT, VSUSP, VLNEXT.
const VINTR: usize = 0;
const VQUIT: usize = 1;
const VSUSP: usize = 10;
const VLNEXT: usize = 15;

/// Sends the signals that bytes written to a master mean.
pub(crate) fn typed(kernel: &Kernel, file: &Arc<File>, bytes: &[u8]) {
    if !matches!(file.kind, Kind::Master(_)) {
        return;
    }
    let Ok(settings) = host::terminal::settings(file.host()) else { return };
    if settings.lflag & ISIG == 0 {
        return;
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
        let front = kernel.terminals.lock().front_behind(kernel, file);
        if front != 0 {
            signal::send_to_group(kernel, front, signal::Info::kernel(signal::number(number)));
        }
    }
}
