//! Leases that cages take: fcntl(F_SETLEASE).
//!
//! The host keeps them, so an open elsewhere, in a cage or outside, waits for the end of the lease.
//! The host's signal to the holder goes to the whole process and does not name the cage. So as long
//! as there are leases, the thread that waits for files asks the host regularly for the state of
//! each, and signals the holder.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use lind_abi::{Errno, Result};

use super::Notice;
use super::owner::{Event, Letter, Owner};
use crate::cage::signal::Permission;
use crate::call::Ctx;
use crate::fd::{FileRef, Kind};
use crate::host::{errno, lease};
use crate::timers::Nanos;

/// How often the host is asked whether an open waits for the end of a lease.
pub(super) const OFTEN: Nanos = 20_000_000;

/// A lease that a cage holds.
#[derive(Debug)]
pub(super) struct Held {
    /// The number by which it is looked at.
    id: u64,
    /// A duplicate of the descriptor, by which the host is asked whether the lease still holds.
    file: OwnedFd,
    kind: i32,
    /// The descriptor by which the file is known to the holder.
    number: i32,
    notified: bool,
}

impl Notice {
    /// F_SETLEASE.
    ///
    /// # Errors
    /// The errors of fcntl(2); EINVAL for a file that no cage has opened by its name; EAGAIN
    /// without a thread that looks at it.
    pub fn set_lease(self: &Arc<Notice>, cx: &Ctx<'_>, file: &FileRef, number: i32, kind: i32) -> Result<()> {
        if !matches!(file.kind, Kind::Named(_)) {
            return Err(Errno::EINVAL);
        }
        let mut state = self.state();
        if kind == libc::F_UNLCK {
            lease::set(file.host(), kind)?;
            state.lease = None;
            return Ok(());
        }
        // First, since a lease without the thread would never be signalled.
        let copy = rustix::io::fcntl_dupfd_cloexec(file.host(), 3).map_err(errno)?;
        let (id, last) = cx.kernel.async_io.watch_lease(cx.kernel, self)?;
        lease::set(file.host(), kind).inspect_err(|_| {
            if let Some(held) = &mut state.lease {
                held.id = id;
            }
        })?;
        state.lease = Some(Held { id, file: copy, kind, number, notified: false });
        last.wake();
        if state.owner.is_none() {
            state.owner = Some((Owner::Process(cx.cage.id.0), Permission::of(cx.kernel, cx.cage)));
        }
        Ok(())
    }

    /// Whether the file has this lease; and the signal, if an open waits for its end.
    fn look_at_lease(&self, id: u64) -> (bool, Option<Letter>) {
        let mut state = self.state();
        let Some(held) = state.lease.as_mut().filter(|held| held.id == id) else { return (false, None) };
        let now = lease::get(held.file.as_fd()).unwrap_or(libc::F_UNLCK);
        if now == held.kind {
            held.notified = false;
            return (true, None);
        }
        let (first, number) = (!std::mem::replace(&mut held.notified, true), held.number);
        let letter = state.owner.clone().filter(|_| first).map(|(owner, right)| Letter {
            owner,
            right,
            signal: state.signal.clone(),
            fd: number,
        });
        (true, letter)
    }
}

impl super::AsyncIo {
    /// Signals the holders of leases that an open waits for. Returns whether there are leases.
    pub(super) fn look_at_leases(&self, kernel: &crate::Kernel) -> bool {
        // A file's lock comes before the state's.
        let all = self.leases();
        let mut gone = Vec::new();
        for (id, notice) in &all {
            let Some(notice) = notice.upgrade() else {
                gone.push(*id);
                continue;
            };
            let (held, letter) = notice.look_at_lease(*id);
            drop(notice);
            if !held {
                gone.push(*id);
            }
            if let Some(letter) = letter {
                letter.send(kernel, Event::Message);
            }
        }
        self.forget_leases(&gone);
        all.len() > gone.len()
    }
}
