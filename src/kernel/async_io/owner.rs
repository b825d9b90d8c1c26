//! The receivers of a file's signals, and their contents.

use std::sync::Arc;

use lind_abi::CageId;
use lind_abi::flags::Signals;

use crate::Kernel;
use crate::cage::signal::{self, Info, Permission, number};
use crate::cage::{Cage, Thread};

/// The owner that F_SETOWN_EX names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// A thread, by its id.
    Thread(u32),
    /// A process.
    Process(u32),
    /// A process group.
    Group(u32),
}

/// An event of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The file can be read.
    In,
    /// The file can be written.
    Out,
    /// The file has an error.
    Error,
    /// It has urgent data. With O_ASYNC it is reported twice.
    Priority,
    /// See `Priority`: by SIGURG.
    Urgent,
    /// The other end has been closed.
    Gone,
    /// Something has happened about it: an open waits for the end of its lease, or a directory has
    /// changed.
    Message,
}

/// A signal that is to be sent, without its event.
#[derive(Debug)]
pub(super) struct Letter {
    pub owner: Owner,
    /// The sender's permission to signal the receiver.
    pub right: Permission,
    /// See F_SETSIG; the permission is that of the process that set it.
    pub signal: (u8, Option<Permission>),
    pub fd: i32,
}

impl Owner {
    /// Whether it still exists.
    pub fn exists(self, kernel: &Kernel) -> bool {
        match self {
            Owner::Thread(id) => thread(kernel, id).is_some(),
            Owner::Process(id) => kernel.cages.get(CageId(id)).is_some(),
            Owner::Group(id) => kernel.cages.all().iter().any(|cage| cage.group() == id),
        }
    }
}

fn thread(kernel: &Kernel, id: u32) -> Option<Arc<Thread>> {
    let first = kernel.cages.get(CageId(id)).and_then(|cage| cage.thread(id));
    first.or_else(|| kernel.cages.all().iter().find_map(|cage| cage.thread(id)))
}

impl Event {
    /// si_code, and si_band.
    fn code_and_band(self) -> (i32, u32) {
        match self {
            Event::In => (1, 0x41),
            Event::Out => (2, 0x304),
            Event::Error => (4, 0x8),
            Event::Priority | Event::Urgent => (5, 0x82),
            Event::Gone => (6, 0x18),
            Event::Message => (3, 0x441),
        }
    }
}

impl Letter {
    /// Sends it to all receivers that its permission reaches.
    pub fn send(&self, kernel: &Kernel, event: Event) {
        match self.owner {
            Owner::Thread(id) => {
                if let Some(thread) = thread(kernel, id) {
                    self.send_to(kernel, &thread.cage, event, |info| signal::send_to_thread(kernel, &thread, info));
                }
            }
            Owner::Process(id) => {
                if let Some(cage) = kernel.cages.get(CageId(id)) {
                    self.send_to(kernel, &cage, event, |info| signal::send(kernel, &cage, info));
                }
            }
            Owner::Group(id) => {
                for cage in kernel.cages.all().iter().filter(|cage| cage.group() == id) {
                    self.send_to(kernel, cage, event, |info| signal::send(kernel, cage, info));
                }
            }
        }
    }

    fn send_to(&self, kernel: &Kernel, cage: &Cage, event: Event, send: impl Fn(Info) -> lind_abi::Result<()>) {
        if !self.right.reaches(kernel, cage) {
            return;
        }
        if event == Event::Urgent {
            let _ = send(Info::kernel(number(Signals::SIGURG)));
            return;
        }
        let (wanted, by) = &self.signal;
        let sent = *wanted != 0 && {
            // The file may be shared with another cage, which must not choose a signal
            // for an owner that it may not signal.
            if !by.as_ref().is_some_and(|right| right.reaches(kernel, cage)) {
                return;
            }
            let (code, band) = event.code_and_band();
            let code = if has_codes(*wanted) { Info::SI_SIGIO } else { code };
            send(Info::file(*wanted, code, band, self.fd)).is_ok()
        };
        if !sent {
            // If the queue has no room for the details, SIGIO alone reports that there is
            // something.
            let _ = send(Info::kernel(number(Signals::SIGIO)));
        }
    }
}

/// Whether codes that files have would mean something else with a signal.
fn has_codes(signal: u8) -> bool {
    const OWN: [u32; 7] = [
        Signals::SIGILL,
        Signals::SIGTRAP,
        Signals::SIGBUS,
        Signals::SIGFPE,
        Signals::SIGSEGV,
        Signals::SIGCHLD,
        Signals::SIGSYS,
    ];
    OWN.contains(&u32::from(signal))
}
