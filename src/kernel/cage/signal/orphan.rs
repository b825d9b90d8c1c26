//! Orphaned process groups: groups in which no process has a parent in another group of the same
//! session, so that no shell is there to continue stopped ones.

use lind_abi::flags::Signals as Number;

use super::{Info, number, send, send_to_group};
use crate::Kernel;
use crate::cage::Cage;

/// Whether a process group is orphaned. `ended` does not count any more, either as a member or as a
/// parent.
pub(crate) fn group_is_orphaned(kernel: &Kernel, group: u32, ended: Option<&Cage>) -> bool {
    let counts = |cage: &Cage| !cage.is_dead() && ended.is_none_or(|ended| ended.id != cage.id);
    !kernel.cages.all().iter().filter(|cage| counts(cage) && cage.group() == group).any(|member| {
        let session = member.session();
        if member.is_known_outside() {
            return session == member.id.0;
        }
        member.living_parent(kernel).filter(|parent| counts(parent)).is_some_and(|parent| {
            let parent = parent.settings();
            parent.group != group && parent.session == session
        })
    })
}

/// Handles the effects of the end of `cage` on process groups: SIGHUP and SIGCONT for those that it
/// has orphaned and that have stopped members. `children` are the ids of its children.
pub(crate) fn groups_left_by(kernel: &Kernel, cage: &Cage, children: &[lind_abi::CageId]) {
    let own = cage.group();
    let mut groups = vec![own];
    for child in children.iter().filter_map(|&id| super::send::alive(kernel, id)) {
        let group = child.group();
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for group in groups {
        let of_group =
            |member: &std::sync::Arc<Cage>| member.id != cage.id && !member.is_dead() && member.group() == group;
        let any_stopped = kernel.cages.all().iter().filter(|m| of_group(m)).any(|member| member.is_stopped());
        if any_stopped && group_is_orphaned(kernel, group, Some(cage)) {
            send_to_group(kernel, group, Info::kernel(number(Number::SIGHUP)));
            send_to_group(kernel, group, Info::kernel(number(Number::SIGCONT)));
        }
    }
}

/// Sends the children that asked for it their signal at the end of `cage` (PR_SET_PDEATHSIG).
pub(crate) fn tell_children(kernel: &Kernel, cage: &Cage, children: &[lind_abi::CageId]) {
    const SI_USER: i32 = 0;
    for child in children.iter().filter_map(|&id| super::send::alive(kernel, id)) {
        let signal = child.settings().death_signal;
        if signal != 0 {
            // A child without room for it has many waiting already.
            let _ = send(kernel, &child, Info::from(cage, signal, SI_USER));
        }
    }
}
