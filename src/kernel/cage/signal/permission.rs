//! Permission to send signals.
//!
//! Linux's rule about user ids applies, within walls: a cage with grates reaches only cages that
//! have the same grates, and so never a grate of its own, nor a grate to which a composer shows its
//! calls. The walls do not part a cage from its descendants; the rule about user ids does, except
//! for cages whose grate it is.

use lind_abi::CageId;

use crate::Kernel;
use crate::cage::{Cage, Credentials, capability};

/// The grates of a cage: those in its table, and those in the tables of the cages it descends from,
/// because composers route its calls by these tables.
pub(crate) fn grates_over(kernel: &Kernel, cage: &Cage) -> Vec<CageId> {
    let mut over = cage.handlers.grates();
    if over.is_empty() {
        return over;
    }
    for above in cage.ancestors().iter().filter_map(|&id| kernel.cages.get(id)) {
        over.extend(above.handlers.grates().into_iter().filter(|&grate| cage.descends_from(grate)));
    }
    over.sort_unstable();
    over.dedup();
    over
}

/// Whether a cage is a grate of its descendant: in the descendant's table, or in that of a cage
/// between the two.
pub(crate) fn stands_over(kernel: &Kernel, grate: CageId, cage: &Cage) -> bool {
    let between = cage.ancestors().iter().rev().take_while(|&&id| id != grate);
    cage.handlers.grates().contains(&grate)
        || between.filter_map(|&id| kernel.cages.get(id)).any(|above| above.handlers.grates().contains(&grate))
}

/// Whether credentials permit a process to signal another: the sender's real and effective user,
/// and the receiver's real and saved.
pub(crate) fn ids_allow(own: &Credentials, of: [u32; 3]) -> bool {
    own.can(capability::KILL) || own.uid[..2].iter().any(|id| [of[0], of[2]].contains(id))
}

/// The permission of a cage at the time when it asked for a later signal.
#[derive(Clone, Debug)]
pub(crate) struct Permission {
    cage: CageId,
    own: Credentials,
    over: Vec<CageId>,
}

impl Permission {
    /// The permission of a cage, as it is now.
    pub fn of(kernel: &Kernel, cage: &Cage) -> Permission {
        let own = cage.settings().credentials.clone();
        Permission { cage: cage.id, own, over: grates_over(kernel, cage) }
    }

    /// Whether it reaches a cage.
    pub fn reaches(&self, kernel: &Kernel, to: &Cage) -> bool {
        let below = to.descends_from(self.cage);
        if to.id == self.cage || (below && stands_over(kernel, self.cage, to)) {
            return true;
        }
        if !below && self.over.iter().any(|&grate| !to.descends_from(grate)) {
            return false;
        }
        let of = to.settings().credentials.uid;
        ids_allow(&self.own, of)
    }
}
