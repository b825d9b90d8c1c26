//! Authority: decides which cage may name or change which other, in this one place.
//!
//! R is the cage that calls, known from the engine and never from an argument. Its reach is itself,
//! its descendants, and, while it serves a call, the client of that call and the cages its
//! arguments name. Ancestry is fixed at birth and outlives the cages in between.
//!
//! A grate that serves one of the calls decided here and relays it unchanged acts for its client: R
//! is then the [client](asker). Otherwise the caller of a grate that only relays calls could have
//! done whatever that grate may do.

use std::sync::Arc;

use lind_abi::paths::{FILE_USES, FileUse, effect};
use lind_abi::{CageId, Errno, Result, nr};

use crate::Kernel;
use crate::cage::Cage;
use crate::runtime::Served;
use crate::threei::Handler;

/// The cage for which `caller` makes `number`, an interposition call: the client of the call that
/// `caller` serves if it relays that call (`same` compares the values of the two), else `caller`
/// itself. The call that the client itself may serve is not known here: the client's reach is
/// itself and its descendants.
pub fn asker<'a>(
    caller: &'a Cage,
    served: Option<&'a Served<'a>>,
    number: u32,
    same: impl FnOnce([u64; 6]) -> bool,
) -> (&'a Cage, Option<&'a Served<'a>>) {
    match served {
        Some(s) if s.call.nr == number && same(s.call.values.map(|word| word.value)) => (&s.client.cage, None),
        _ => (caller, served),
    }
}

/// Whether R may act for `id`, or touch its memory.
pub fn reaches(caller: &Cage, served: Option<&Served<'_>>, id: CageId) -> bool {
    id == caller.id || serves(served, id)
}

fn serves(served: Option<&Served<'_>>, id: CageId) -> bool {
    served.is_some_and(|s| s.call.target == id || s.call.caller == id || s.call.names(id))
}

/// The cage R names by `id`.
///
/// # Errors
/// ESRCH if there is none, EPERM if R does not reach it.
pub fn named(kernel: &Kernel, caller: &Cage, served: Option<&Served<'_>>, id: CageId) -> Result<Arc<Cage>> {
    let cage = kernel.cages.get(id).ok_or(Errno::ESRCH)?;
    if reaches(caller, served, id) || cage.descends_from(caller.id) { Ok(cage) } else { Err(Errno::EPERM) }
}

/// Whether R may make a call on `target` by the table of `by`, another cage than R itself. R acts
/// as that cage could.
///
/// # Errors
/// EPERM unless `by` is a proper descendant of R and `target` is `by` or its descendant: handlers
/// that an ancestor has installed for R since stay in force for calls on R.
pub fn table(kernel: &Kernel, caller: &Cage, served: Option<&Served<'_>>, by: &Cage, target: CageId) -> Result<()> {
    let its_own = target == by.id
        || match served {
            Some(s) if s.client.cage.id == target => s.client.cage.descends_from(by.id),
            _ => kernel.cages.get(target).is_some_and(|target| target.descends_from(by.id)),
        };
    if by.descends_from(caller.id) && its_own { Ok(()) } else { Err(Errno::EPERM) }
}

/// Whether R may have calls of `target` on itself go by the table of `by`: those that it could send
/// on by it.
///
/// # Errors
/// EPERM unless `target` is a proper descendant of R, and `by` is R or lies between the two.
pub fn way(caller: &Cage, target: &Cage, by: &Cage) -> Result<()> {
    let between = by.id == caller.id || (by.descends_from(caller.id) && target.descends_from(by.id));
    if target.descends_from(caller.id) && between { Ok(()) } else { Err(Errno::EPERM) }
}

/// Whether all grates that follow paths for a cage handle chroot(2), too, and so know of its root.
/// From others the cage would get files of another tree than from the kernel. Calls that run
/// programs do not count: every grate that knows its clients handles them.
pub fn follow_root(kernel: &Kernel, cage: &Cage) -> bool {
    let grate_of = |cage: &Cage, number: u32| match cage.handlers.get(number) {
        Handler::Grate { cage, .. } => kernel.cages.get(cage),
        Handler::Kernel => None,
    };
    let mut asked = Vec::new();
    let mut next = grate_of(cage, nr::chroot);
    while let Some(grate) = next.filter(|grate| !asked.contains(&grate.id)) {
        asked.push(grate.id);
        next = grate_of(&grate, nr::chroot);
    }
    let mut seen = Vec::new();
    let mut tables: Vec<Arc<Cage>> = kernel.cages.get(cage.id).into_iter().collect();
    while let Some(table) = tables.pop() {
        let follows = |used: &&FileUse| used.paths.iter().any(|path| path.effect != effect::EXEC);
        let with_paths = FILE_USES.iter().filter(follows);
        for grate in with_paths.filter_map(|used| grate_of(&table, used.row().nr)) {
            if !asked.contains(&grate.id) {
                return false;
            }
            if !seen.contains(&grate.id) {
                seen.push(grate.id);
                tables.push(grate);
            }
        }
    }
    true
}

/// Whether R may send `target`'s calls to a handler in `grate`.
///
/// # Errors
/// EPERM. Three cases are allowed: R's own handler on a proper descendant or on the client it
/// serves; a cage that was forked and has not exec'd, registering its parent's handler on itself;
/// and a handler of the registration call changing the registration it serves, to one that its
/// client could have made, or to functions that the client may register, on itself.
pub fn register(caller: &Cage, served: Option<&Served<'_>>, target: &Cage, grate: CageId) -> Result<()> {
    let changed = served.is_some_and(|s| {
        let names = |index: usize, id: CageId| CageId::from_wire(s.call.values[index].value) == Some(id);
        let client = &s.client.cage;
        let may = if target.id == caller.id {
            has_functions_of(client, grate)
        } else {
            names(0, target.id) && registers(client, None, target, grate)
        };
        s.call.nr == nr::register_handler && names(2, grate) && may
    });
    if changed || registers(caller, served, target, grate) { Ok(()) } else { Err(Errno::EPERM) }
}

/// The first two cases of [`register`].
fn registers(caller: &Cage, served: Option<&Served<'_>>, target: &Cage, grate: CageId) -> bool {
    let client = served.is_some_and(|s| s.call.target == target.id && s.client.cage.id == target.id);
    match target.id == caller.id {
        true => grate != caller.id && has_functions_of(caller, grate),
        false => grate == caller.id && (target.descends_from(caller.id) || client),
    }
}

/// Whether R speaks of functions of `grate`: it is that, or still a copy of it.
fn has_functions_of(caller: &Cage, grate: CageId) -> bool {
    grate == caller.id || (caller.maker() == Some(grate) && caller.is_fresh_fork())
}

/// Whether `old` may be replaced as the handler of `number` by one of `grate`.
///
/// # Errors
/// EPERM unless the entry is free of other cages' making, or the grate's own calls of that number
/// go to the entry that it replaces, so that what it forwards still reaches it.
pub fn replace(grate: &Cage, number: u64, old: Handler) -> Result<()> {
    match old {
        Handler::Grate { cage, .. } if cage != grate.id && grate.handlers.get_wide(number) != old => Err(Errno::EPERM),
        _ => Ok(()),
    }
}

/// Whether R may take away `old` from another cage's table.
///
/// # Errors
/// EPERM unless R registered it.
pub fn deregister(caller: &Cage, old: Handler) -> Result<()> {
    match old {
        Handler::Grate { cage, .. } if cage == caller.id => Ok(()),
        _ => Err(Errno::EPERM),
    }
}

/// Whether R may make the table of `target`, some of whose calls go to a grate or none, equal to
/// that of `source`.
///
/// # Errors
/// EPERM unless `target` is a proper descendant of R, or R itself while none of its calls goes to a
/// grate; and `source` is R or a descendant of R.
pub fn copy_table(caller: &Cage, source: &Cage, target: &Cage, has_grate: bool) -> Result<()> {
    let of_caller = |cage: &Cage| cage.id == caller.id || cage.descends_from(caller.id);
    let target_ok = target.descends_from(caller.id) || (target.id == caller.id && !has_grate);
    if target_ok && of_caller(source) { Ok(()) } else { Err(Errno::EPERM) }
}
