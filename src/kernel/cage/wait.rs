//! Waiting for children, and for the first cage.

use std::sync::{Arc, PoisonError};

use lind_abi::layout::{Rusage, Timeval};
use lind_abi::{CageId, Errno, Result};

use super::{Cage, Status, Thread};
use crate::Kernel;

impl Cage {
    /// Waits until this cage has ended, and says how. For the runner.
    pub fn wait_end(&self) -> Status {
        let mut family = self.family();
        loop {
            match family.ended {
                Some(status) if family.buried => return status,
                _ => family = self.changed.wait(family).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Waits for a child of the thread's cage: `which` or any. None with `no_hang` when none has ended yet.
///
/// # Errors
/// ECHILD without such a child, EINTR when the thread's cage ends.
pub(crate) fn wait_child(
    kernel: &Kernel,
    thread: &Thread,
    cage: &Cage,
    which: Option<CageId>,
    no_hang: bool,
) -> Result<Option<(CageId, Status, Rusage)>> {
    let mut family = cage.family();
    loop {
        let wanted = |id: CageId| which.is_none_or(|w| w == id);
        if let Some(at) = family.zombies.iter().position(|z| wanted(z.id)) {
            let zombie = family.zombies.remove(at).expect("position is within the queue");
            let usage = zombie.usage;
            add_usage(&mut family.children_usage, &usage);
            drop(family);
            kernel.cages.remove(zombie.id);
            return Ok(Some((zombie.id, zombie.status, zombie.usage)));
        }
        if !family.children.iter().any(|&id| wanted(id)) {
            return Err(Errno::ECHILD);
        }
        if no_hang {
            return Ok(None);
        }
        if thread.attention() != 0 || family.ended.is_some() {
            return Err(Errno::EINTR);
        }
        family = cage.changed.wait(family).unwrap_or_else(PoisonError::into_inner);
    }
}

/// What a cage has used. Only wall-clock based CPU accounting of its live thread is at hand: the times are those of
/// the host threads that ran it.
pub(crate) fn usage_of(_cage: &Arc<Cage>) -> Rusage {
    let mut usage = Rusage::default();
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    usage.utime = Timeval { sec: spent.tv_sec, usec: spent.tv_nsec / 1000 };
    usage
}

fn add_usage(total: &mut Rusage, more: &Rusage) {
    let add = |a: &mut Timeval, b: &Timeval| {
        let usec = a.usec + b.usec;
        a.sec += b.sec + usec / 1_000_000;
        a.usec = usec % 1_000_000;
    };
    add(&mut total.utime, &more.utime);
    add(&mut total.stime, &more.stime);
}
