//! Waiting for children, and for the first cage.

use std::sync::PoisonError;

use lind_abi::layout::Rusage;
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
            super::usage::add(&mut family.children_usage, &usage);
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
