//! The interposition calls: handler tables, data of other cages, new cages with handlers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::flags::{CopyKind, FcntlCmd, FdFlags, SpawnFlags, Steer};
use lind_abi::layout::{LindCall, LindFdRoutes, Siginfo, SpawnHandler};
use lind_abi::{CageId, Errno, Fd, In, Len, NR_ANY, NewFd, Out, Path, Pid, Result, StrArray, nr};

use crate::authority;
use crate::cage::signal::{Info, LAST, Planned};
use crate::cage::{self, Cage, Program};
use crate::call::{self, Ctx, PathBytes};
use crate::course::Course;
use crate::fd::{File, Kind};
use crate::fd_routes::Way;
use crate::host;
use crate::mem::GuestMemory;
use crate::sys::process::{Room, spawned_file, strings};
use crate::threei::{AS_BEFORE, Change, Handler, MAX_ENTRY};

/// Flag of register_handler: one call of the grate at a time.
const SERIALIZED: u32 = 1;
/// Flag of register_handler: restore what the target inherited.
const DEREGISTER: u32 = 2;
/// Flag of denied: the call may wait for an answer.
const MAY_WAIT: u32 = 1;
/// The most handlers one spawn may set: every direct number, the default, and room for alternates.
const MAX_SPAWN_HANDLERS: u64 = 4096;

/// See the table. ESRCH for cages that do not exist, EINVAL for invalid flags or entries, ENOEXEC
/// for a grate that exports no way in, EPERM by [`authority`] or if the grate does not declare the
/// number.
pub(crate) fn register_handler(
    cx: &Ctx<'_>,
    target: u64,
    number: u64,
    grate: u64,
    entry: u64,
    flags: u32,
) -> Result<()> {
    if flags & !(SERIALIZED | DEREGISTER) != 0 {
        return Err(Errno::EINVAL);
    }
    // Without the flag that Lind's calls have no room for, and without what the others leave out.
    let same = |values: [u64; 6]| {
        let ends = |flags: u64| flags & u64::from(DEREGISTER) != 0;
        values[..2] == [target, number]
            && ends(values[4]) == ends(flags.into())
            && (ends(values[4]) || values[2..4] == [grate, entry])
    };
    let (caller, served) = authority::asker(&cx.caller.cage, cx.served, nr::register_handler, same);
    let target = lookup(cx, target)?;
    if flags & DEREGISTER != 0 {
        return deregister(caller, &target, number);
    }
    let grate = lookup(cx, grate)?;
    let entry = u32::try_from(entry).ok().filter(|&e| e <= MAX_ENTRY).ok_or(Errno::EINVAL)?;
    authority::register(caller, served, &target, grate.id)?;
    if target.is_dead() {
        return Err(Errno::ESRCH);
    }
    if !cx.kernel.engine().serves(&grate) {
        return Err(if grate.is_dead() { Errno::ESRCH } else { Errno::ENOEXEC });
    }
    if !cx.kernel.engine().may_handle(&grate, number) {
        return Err(Errno::EPERM);
    }
    // A child speaks of the program that it is a copy of.
    grate.serve(caller.is_fresh_fork().then_some(caller.forked_under).filter(|_| grate.id != caller.id))?;
    let to = Handler::Grate { cage: grate.id, entry, serialized: flags & SERIALIZED != 0 };
    let replaces = |old| authority::replace(&grate, number, old);
    if number == u64::from(NR_ANY) {
        let covers = |number, old| authority::replace(&grate, number, old).is_ok();
        return target.handlers.set_default(Change::To(to), replaces, covers);
    }
    target.handlers.set(number, Change::To(to), replaces)
}

fn deregister(caller: &Cage, target: &Cage, number: u64) -> Result<()> {
    let own = |old| authority::deregister(caller, old);
    if number == u64::from(NR_ANY) {
        return target.handlers.set_default(Change::Inherited, own, |_, _| false);
    }
    target.handlers.set(number, Change::Inherited, own)
}

fn lookup(cx: &Ctx<'_>, id: u64) -> Result<std::sync::Arc<cage::Cage>> {
    CageId::from_wire(id).and_then(|id| cx.kernel.cages.get(id)).ok_or(Errno::ESRCH)
}

/// See the table. EPERM for a cage the caller does not reach, EFAULT for memory that is not there.
#[inline]
pub(crate) fn copy_data_between_cages(
    cx: &Ctx<'_>,
    dst: Out<u8>,
    src: In<u8>,
    len: Len,
    kind: CopyKind,
    dst_cage: u64,
    src_cage: u64,
) -> Result<usize> {
    let (mut held, mut held_too) = (None, None);
    let same = |values: [u64; 6]| values[..3] == [dst.addr, src.addr, len.0];
    let to = memory_of(cx, dst.cage, dst_cage, same, &mut held)?;
    let from = memory_of(cx, src.cage, src_cage, same, &mut held_too)?;
    match kind.0 {
        CopyKind::COPY_BYTES => {
            GuestMemory::copy_between(to, dst.addr, from, src.addr, len.0)?;
            usize::try_from(len.0).map_err(|_| Errno::EFAULT)
        }
        CopyKind::COPY_TIMED => {
            GuestMemory::copy_between(to, dst.addr, from, src.addr, len.0)?;
            let now = host::clock::gettime(libc::CLOCK_REALTIME_COARSE)?;
            let since_1970 = now.sec.saturating_mul(1_000_000_000).saturating_add(now.nsec).max(0);
            usize::try_from(since_1970).map_err(|_| Errno::EOVERFLOW)
        }
        CopyKind::COPY_STRING => copy_string(to, dst.addr, from, src.addr, len.0),
        _ => Err(Errno::EINVAL),
    }
}

fn copy_string(to: &GuestMemory, dst: u64, from: &GuestMemory, src: u64, len: u64) -> Result<usize> {
    let mut buf = PathBytes::default();
    let room = usize::try_from(len).unwrap_or(usize::MAX).min(buf.0.len());
    match from.read_cstr(src, &mut buf.0[..room]) {
        Ok(string) => {
            to.write(dst, string.to_bytes_with_nul())?;
            Ok(string.to_bytes_with_nul().len())
        }
        Err(Errno::ENAMETOOLONG) if len > room as u64 => copy_long_string(to, dst, from, src, len, &mut buf),
        Err(errno) => Err(errno),
    }
}

/// Looks for the NUL piece by piece, then copies all at once.
#[cold]
fn copy_long_string(
    to: &GuestMemory,
    dst: u64,
    from: &GuestMemory,
    src: u64,
    len: u64,
    buf: &mut PathBytes,
) -> Result<usize> {
    let mut done = 0;
    while done < len {
        let room = usize::try_from(len - done).unwrap_or(usize::MAX).min(buf.0.len());
        let at = src.checked_add(done).ok_or(Errno::EFAULT)?;
        match from.read_cstr(at, &mut buf.0[..room]) {
            Ok(end) => {
                let whole = done + end.to_bytes_with_nul().len() as u64;
                GuestMemory::copy_between(to, dst, from, src, whole)?;
                return usize::try_from(whole).map_err(|_| Errno::EFAULT);
            }
            Err(Errno::ENAMETOOLONG) => done += room as u64,
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::ENAMETOOLONG)
}

/// The memory of the cage that is named, or with 0 of the one that an address belongs to.
#[inline(always)]
fn memory_of<'a>(
    cx: &'a Ctx<'_>,
    owner: CageId,
    named: u64,
    same: impl FnOnce([u64; 6]) -> bool,
    held: &'a mut Option<Arc<Cage>>,
) -> Result<&'a GuestMemory> {
    // Copies between a grate and its client, which are the most frequent, need no look-up.
    match cx.served {
        Some(s) if s.call.nr == nr::copy_data_between_cages => memory_of_another(cx, owner, named, same, held),
        _ if named == u64::from(cx.cage.id.0) => Ok(&cx.cage.memory.guest),
        Some(s) if u64::from(s.client.cage.id.0) == named => Ok(&s.client.cage.memory.guest),
        _ => memory_of_another(cx, owner, named, same, held),
    }
}

#[inline(never)]
fn memory_of_another<'a>(
    cx: &'a Ctx<'_>,
    owner: CageId,
    named: u64,
    same: impl FnOnce([u64; 6]) -> bool,
    held: &'a mut Option<Arc<Cage>>,
) -> Result<&'a GuestMemory> {
    if named == 0 {
        return cx.memory(owner);
    }
    let id = CageId::from_wire(named).ok_or(Errno::ESRCH)?;
    let (caller, served) = authority::asker(&cx.caller.cage, cx.served, nr::copy_data_between_cages, same);
    if id == caller.id {
        return Ok(&caller.memory.guest);
    }
    Ok(&held.insert(authority::named(cx.kernel, caller, served, id)?).memory.guest)
}

/// See the table. ESRCH, and EPERM by [`authority`].
pub(crate) fn copy_handler_table_to_cage(cx: &Ctx<'_>, source: u64, target: u64) -> Result<()> {
    let same = |values: [u64; 6]| values[..2] == [source, target];
    let (caller, _) = authority::asker(&cx.caller.cage, cx.served, nr::copy_handler_table_to_cage, same);
    let (source, target) = (lookup(cx, source)?, lookup(cx, target)?);
    let allowed = |has_grate| authority::copy_table(caller, &source, &target, has_grate);
    if source.id == target.id {
        return allowed(target.handlers.has_grate());
    }
    target.handlers.replace(&source.handlers, allowed)
}

/// See the table. E2BIG for too many or too long strings or handlers, EFAULT, and the errors of
/// starting the program.
pub(crate) fn spawn(
    cx: &Ctx<'_>,
    path: Path,
    argv: StrArray,
    envp: StrArray,
    handlers: In<SpawnHandler>,
    count: Len,
    flags: SpawnFlags,
) -> Result<Pid> {
    if flags.beyond(SpawnFlags::LIND_SPAWN_WAITS) {
        return Err(Errno::EINVAL);
    }
    if count.0 > MAX_SPAWN_HANDLERS {
        return Err(Errno::E2BIG);
    }
    let mut buf = PathBytes::default();
    let name = cx.path(path, &mut buf)?.to_owned();
    let file = spawned_file(cx, &name, path.cage)?;
    let mut room = Room::of(cx.cage);
    let argv = strings(cx, argv, &mut room)?;
    let envp = strings(cx, envp, &mut room)?;
    let count = usize::try_from(count.0).map_err(|_| Errno::E2BIG)?;
    let handlers: Vec<_> = cx.load_array(handlers, count)?.iter().map(|h: &SpawnHandler| (h.nr, h.entry)).collect();
    if handlers.iter().any(|&(_, entry)| entry > MAX_ENTRY && entry != AS_BEFORE) {
        return Err(Errno::EINVAL);
    }
    let parent = cx.kernel.cages.get(cx.cage.id).ok_or(Errno::ESRCH)?;
    let lender = flags.has(SpawnFlags::LIND_SPAWN_WAITS).then_some(cx.hop);
    let program = Program { name, argv, envp, ignored: 0, umask: 0, preserved: 0 };
    let child = cage::spawn(cx.kernel, &parent, (program, file), &handlers, lender)?;
    Ok(Pid(child.0.cast_signed()))
}

/// See the table. EFAULT, ESRCH for a table or target that is not there.
#[inline]
pub(crate) fn call_by(cx: &Ctx<'_>, wire: In<LindCall>, by: u64) -> Result<i64> {
    if wire.addr == 0 { call::forward(cx, by) } else { described(cx, wire, by) }
}

#[inline(never)]
fn described(cx: &Ctx<'_>, wire: In<LindCall>, by: u64) -> Result<i64> {
    let same = |values: [u64; 6]| values[..2] == [wire.addr, by];
    let (asker, _) = authority::asker(&cx.caller.cage, cx.served, nr::call_by, same);
    call::call_by(cx, asker, &cx.load(wire)?, by)
}

/// Checks that a call about the caller's memory or descriptors was not relayed by another cage: it
/// would act on that cage's, in its name, with numbers of another.
fn only_own(cx: &Ctx<'_>, owner: CageId) -> Result<()> {
    if cx.cage.id == cx.caller.cage.id && owner == cx.cage.id { Ok(()) } else { Err(Errno::EPERM) }
}

/// See the table. ESRCH for cages that do not exist, EINVAL for invalid words, EPERM by
/// [`authority`] and for a relayed call.
pub(crate) fn route_fds(cx: &Ctx<'_>, target: u64, routes: In<LindFdRoutes>) -> Result<()> {
    only_own(cx, routes.cage)?;
    let wire: LindFdRoutes = cx.load(routes)?;
    let (grate, target) = (&cx.caller.cage, lookup(cx, target)?);
    let way = |by: u64| match by {
        0 => Ok(Way::Handler),
        by => {
            let by = lookup(cx, by)?;
            authority::way(grate, &target, &by).map(|()| Way::Table(by))
        }
    };
    let (unset, set) = (way(wire.unset)?, way(wire.set)?);
    authority::way(grate, &target, grate)?;
    target.routes.add(grate, &wire, unset, set)
}

/// in_flight, as described in the table of calls.
pub(crate) fn in_flight(cx: &Ctx<'_>) -> Result<u64> {
    Ok(cx.kernel.in_flight.of(cx.cage.id).into())
}

/// See the table. EPERM for other cages, E2BIG for more than 16 KiB, EINVAL for less than three
/// texts.
pub(crate) fn denied(
    cx: &Ctx<'_>,
    client: u64,
    number: u64,
    error: u64,
    text: In<u8>,
    len: Len,
    flags: u32,
) -> Result<u64> {
    let length = usize::try_from(len.0).map_err(|_| Errno::E2BIG)?;
    cx.kernel.takes_denial(length)?;
    if flags & !MAY_WAIT != 0 {
        return Err(Errno::EINVAL);
    }
    let client = lookup(cx, client)?;
    let grate = &cx.caller.cage;
    if client.id != grate.id && !client.descends_from(grate.id) {
        return Err(Errno::EPERM);
    }
    let mut bytes = vec![0; length];
    cx.copy_in(text, &mut bytes)?;
    let denial = cx.kernel.denial(grate, &client, number, error, &bytes)?;
    // A program that handles calls of its own children could ask about one thing and do another.
    let may_wait = flags & MAY_WAIT != 0 && cage::searches(cx.kernel, grate);
    let allowed = cx.kernel.denied(cx, &denial, may_wait)?;
    Ok(allowed.into())
}

/// follow_rules, as described in the table of calls.
pub(crate) fn follow_rules(cx: &Ctx<'_>, name: In<u8>, len: Len) -> Result<()> {
    cx.kernel.rules.take_name(ruled(cx)?, &bytes(cx, name, len)?)
}

/// next_rules, as described in the table of calls. E2BIG where there is no room for the rules.
pub(crate) fn next_rules(cx: &Ctx<'_>, answer: In<u8>, len: Len, to: Out<u8>, room: Len) -> Result<u64> {
    let cage = ruled(cx)?;
    let answer = bytes(cx, answer, len)?;
    let rules = cx.kernel.rules.next(cx, cage, &answer)?;
    if rules.len() as u64 > room.0 {
        return Err(Errno::E2BIG);
    }
    cx.copy_out(to, &rules)?;
    Ok(rules.len() as u64)
}

/// use_once, as described in the table of calls.
pub(crate) fn use_once(cx: &Ctx<'_>, number: u64) -> Result<()> {
    cx.kernel.rules.use_once(cx.caller.cage.id, number)
}

/// The caller, if it is a grate of the command line and calls for itself.
fn ruled(cx: &Ctx<'_>) -> Result<CageId> {
    let is_grate = cx.cage.id == cx.caller.cage.id && cage::searches(cx.kernel, cx.cage);
    if is_grate { Ok(cx.cage.id) } else { Err(Errno::EPERM) }
}

/// A short text of the caller's.
fn bytes(cx: &Ctx<'_>, from: In<u8>, len: Len) -> Result<Vec<u8>> {
    const MOST: u64 = 4 << 10;
    let length = usize::try_from(len.0.min(MOST)).map_err(|_| Errno::E2BIG)?;
    let mut bytes = vec![0; length];
    cx.copy_in(from, &mut bytes)?;
    Ok(bytes)
}

/// See the table. EBADF, EMFILE, EPERM for a relayed call.
pub(crate) fn give_fd(cx: &Ctx<'_>, fd: Fd, flags: FdFlags) -> Result<NewFd> {
    only_own(cx, fd.cage)?;
    let served = cx.served.ok_or(Errno::EINVAL)?;
    if flags.beyond(FdFlags::O_CLOEXEC) {
        return Err(Errno::EINVAL);
    }
    let (grate, client, cloexec) = (&cx.caller.cage, &served.client.cage, flags.has(FdFlags::O_CLOEXEC));
    let number = if cloexec { nr::fcntl } else { nr::dup };
    if client.id == served.call.target && matches!(grate.handlers.get(number), Handler::Kernel) {
        let file = grate.fds.get(fd.number)?;
        cx.permit_given(client, &file)?;
        let file = file.into_share();
        return client.fds.add_from(0, file, cloexec).map(NewFd);
    }
    let target = u64::from(served.call.target.0);
    let (own, how) = (u64::from(grate.id.0), FcntlCmd::F_DUPFD_CLOEXEC as u64);
    let none = (0, target);
    let args =
        [(u64::from(fd.number.cast_unsigned()), own), (if cloexec { how } else { 0 }, target), none, none, none, none];
    let made = call::make_syscall(cx.kernel, cx.caller, cx.served, cx.hop, number, target, args);
    match Errno::from_wire(made) {
        Some(errno) => Err(errno),
        None => i32::try_from(made).map(NewFd).map_err(|_| Errno::EOVERFLOW),
    }
}

/// host_file, as described in the table of calls.
pub(crate) fn host_file(cx: &Ctx<'_>, number: u64) -> Result<NewFd> {
    // A grate of the line further out may have looked at the call and sent it on.
    let of_line = |cage: &Cage| cage::searches(cx.kernel, cage);
    if !of_line(cx.cage) || (cx.cage.id != cx.caller.cage.id && !of_line(&cx.caller.cage)) {
        return Err(Errno::EPERM);
    }
    let file = cx.kernel.line().take_file(number)?;
    let stat = rustix::fs::fstat(&file).map_err(host::errno)?;
    let folder = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
    cx.cage.fds.add(File::new(file, if folder { Kind::Numbered } else { Kind::Host }), true).map(NewFd)
}

/// See the table. ENOEXEC when the caller exports no way in.
pub(crate) fn exit_notice(cx: &Ctx<'_>, entry: u64) -> Result<()> {
    if entry > u64::from(MAX_ENTRY) {
        return Err(Errno::EINVAL);
    }
    if !cx.kernel.engine().serves(cx.cage) {
        return Err(Errno::ENOEXEC);
    }
    cx.cage.serve(None)?;
    cx.cage.exit_notice.store(entry + 1, Ordering::Release);
    Ok(())
}

#[cfg(test)]
mod tests;

/// signalled, as described in the table of calls.
#[allow(clippy::unnecessary_wraps, reason = "calls have this type")]
pub(crate) fn signalled(_: &Ctx<'_>, _: u64, _: u64, _: u64, _: u64, _: u64, _: u64) -> Result<()> {
    Ok(())
}

/// steer, as described in the table of calls. EINVAL for other requests, numbers without a signal,
/// and ids that no record has; EEXIST for the id of a cage that exists.
pub(crate) fn steer(cx: &Ctx<'_>, what: Steer, info: In<Siginfo>, value: u64, mask: u64) -> Result<u64> {
    let course = cx.kernel.course();
    let allowed = match what.0 {
        Steer::STEER_ASK => course != Course::Free,
        _ => course == Course::Replayed,
    };
    if !allowed || !cage::searches(cx.kernel, &cx.caller.cage) {
        return Err(Errno::EPERM);
    }
    let first = || cx.cage.threads().into_iter().find(|thread| !thread.worker).ok_or(Errno::ESRCH);
    match what.0 {
        Steer::STEER_ASK => return Ok(first()?.is_interrupted().into()),
        Steer::STEER_INTERRUPT => first()?.interrupt_call(),
        Steer::STEER_PLAN => {
            let given: Siginfo = cx.load(info)?;
            let signal = u8::try_from(given.signo).map_err(|_| Errno::EINVAL)?;
            first()?.plan(Planned { info: Info::queued(signal, &given), returns: value, mask })?;
        }
        Steer::STEER_CHILD => cx.kernel.choose_id(cx.cage.id, value)?,
        Steer::STEER_END => {
            let signal = u8::try_from(value).ok().filter(|signal| (1..=LAST).contains(signal)).ok_or(Errno::EINVAL)?;
            cage::signal::end(cx.kernel, cx.cage, signal);
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}
