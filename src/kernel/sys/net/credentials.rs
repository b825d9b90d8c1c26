//! Credentials of the other end of a unix socket and of the sender of a message: SO_PEERCRED and
//! its like, SCM_CREDENTIALS.
//!
//! See [`Senders`](crate::fd::Senders). A sender outside the runner has no number here: 0, as on
//! Linux for a process that the reader cannot see.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lind_abi::layout::Ucred;
use lind_abi::{CageId, Errno, Fd, InOut, Out, Result};
use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::cage::{Cage, EFFECTIVE, REAL, capability};
use crate::call::Ctx;
use crate::fd::name::AF_UNIX;
use crate::fd::{File, Ids, Kind, Last, Socket, Token, Who};
use crate::host::control::Control;
use crate::host::net::{self, Address};
use crate::lock::Locked;
use crate::sys::process::descriptor_of;

pub(super) const SO_PEERPIDFD: i32 = 77;
pub(super) const SO_PEERGROUPS: i32 = 59;
const SOL_SOCKET: i32 = libc::SOL_SOCKET;
const SCM_CREDENTIALS: i32 = libc::SCM_CREDENTIALS;
/// The offset of a name, behind family and NUL.
const ABSTRACT: usize = 3;

/// The cage that a call on a descriptor is made for: a grate makes it with the descriptor of its
/// client and an address of its own.
///
/// # Errors
/// EBADF.
pub(super) fn on_behalf_of<'c>(cx: &'c Ctx<'_>, fd: Fd) -> Result<&'c Cage> {
    let owner = cx.owner(fd.cage)?;
    Ok(if owner.descends_from(cx.cage.id) { owner } else { cx.cage })
}

/// The credentials of a cage, as they are now.
pub(super) fn who(cage: &Cage) -> Arc<Who> {
    let own = &cage.settings().credentials;
    let ids = Ids { pid: cage.id.0, uid: own.uid[EFFECTIVE], gid: own.gid[EFFECTIVE] };
    Arc::new(Who { ids, groups: Arc::clone(&own.groups) })
}

/// The unix socket that a file is, if it is one.
fn unix(file: &File) -> Option<&Socket> {
    let Kind::Socket(socket) = &file.kind else { return None };
    // To its guest a socket of the loopback is not one of these.
    let unix = socket.loopback.get().is_none() && sockopt::socket_domain(file.host()) == Ok(AddressFamily::UNIX);
    unix.then_some(socket)
}

/// Called after listen(2): connecting processes see the credentials of the listener.
pub(super) fn listens(cx: &Ctx<'_>, file: &File) {
    if let Some(socket) = unix(file) {
        be_known(cx, file, socket, who(cx.cage));
    }
}

/// Called before connect(2): the accepting process identifies a socket with a name of its own by
/// that name.
pub(super) fn connects(cx: &Ctx<'_>, file: &File, by: &Cage) {
    let Some(socket) = unix(file).filter(|_| sockopt::socket_type(file.host()) != Ok(SocketType::DGRAM)) else {
        return;
    };
    let named = net::name(file.host()).is_ok_and(|name| name.bytes() != AF_UNIX);
    if !named && sockopt::socket_passcred(file.host()) == Ok(true) {
        // Else the host gives it a name.
        say_in_name(cx, file, by);
    }
    if named && sockopt::socket_acceptconn(file.host()) == Ok(false) {
        be_known(cx, file, socket, who(by));
    }
}

/// Called after connect(2): the accepting process sees the credentials of this one, and this one
/// those of the listener.
pub(super) fn connected(cx: &Ctx<'_>, file: &File, by: &Cage) {
    let Some(socket) = unix(file) else { return };
    let Ok(host) = net::peer_credentials(file.host()) else { return };
    // Sockets for datagrams have no such thing.
    if host.pid == 0 && host.uid == u32::MAX {
        return;
    }
    if is_ours(&host) {
        let listener = net::peer(file.host()).ok().and_then(|name| cx.kernel.senders.known(name.bytes()));
        let _ = socket.peer.set(listener.unwrap_or_else(Who::nobody));
    }
    say_in_name(cx, file, by);
}

/// Gives a socket a name with its credentials, if it has none.
fn say_in_name(cx: &Ctx<'_>, file: &File, by: &Cage) {
    let name = cx.kernel.senders.name(&who(by));
    let _ = Address::new(&[&AF_UNIX[..], &[0], &name].concat()).and_then(|name| net::bind(file.host(), &name));
}

fn be_known(cx: &Ctx<'_>, file: &File, socket: &Socket, who: Arc<Who>) {
    if let Ok(name) = net::name(file.host()) {
        cx.kernel.senders.know(name.bytes(), &who);
    }
    *socket.own.locked() = Some(who);
}

/// Called after accept(2): reads the credentials of the connecting process, while its socket still
/// exists.
pub(super) fn accepted(cx: &Ctx<'_>, peer: &Address, socket: &Socket) {
    if peer.bytes().starts_with(&AF_UNIX)
        && peer.bytes() != AF_UNIX
        && let Some(who) = by_name(cx, peer)
    {
        let _ = socket.peer.set(who);
    }
}

fn by_name(cx: &Ctx<'_>, name: &Address) -> Option<Arc<Who>> {
    let senders = &cx.kernel.senders;
    let hidden = name.bytes().get(ABSTRACT..).and_then(|name| senders.named(name));
    hidden.map(Arc::new).or_else(|| senders.known(name.bytes()))
}

/// Whether a process named by the host is this runner.
pub(super) fn is_ours(host: &Ucred) -> bool {
    u32::try_from(host.pid).is_ok_and(|pid| pid == std::process::id())
}

/// The credentials of the other end; None for a socket without one.
fn peer(cx: &Ctx<'_>, file: &File) -> Result<Option<Arc<Who>>> {
    let host = net::peer_credentials(file.host())?;
    let Some(socket) = unix(file).filter(|_| (host.pid, host.uid) != (0, u32::MAX)) else { return Ok(None) };
    if let Some(peer) = socket.peer.get() {
        return Ok(Some(Arc::clone(peer)));
    }
    if sockopt::socket_acceptconn(file.host()) == Ok(true) {
        let own = socket.own.locked().clone();
        return Ok(Some(own.unwrap_or_else(Who::nobody)));
    }
    if !is_ours(&host) {
        return Ok(Some(Arc::new(Who { ids: Ids { pid: 0, uid: host.uid, gid: host.gid }, groups: Arc::new([]) })));
    }
    // A socket that connected a moment ago may be about to get its name.
    for _ in 0..100 {
        let name = net::peer(file.host())?;
        if name.bytes() != AF_UNIX {
            let who = by_name(cx, &name).unwrap_or_else(Who::nobody);
            return Ok(Some(Arc::clone(socket.peer.get_or_init(|| who))));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(Some(Who::nobody()))
}

/// SO_PEERCRED
pub(super) fn peer_credentials(cx: &Ctx<'_>, file: &File, value: Out<u8>, room: u32, len: InOut<u32>) -> Result<()> {
    let ids = peer(cx, file)?.map_or([0, u32::MAX, u32::MAX], |who| [who.ids.pid, who.ids.uid, who.ids.gid]);
    store_cut(cx, &ids.map(u32::to_le_bytes).concat(), value, room, len)
}

/// Hands out as much as there is room for, and how much that is.
fn store_cut(cx: &Ctx<'_>, bytes: &[u8], value: Out<u8>, room: u32, len: InOut<u32>) -> Result<()> {
    let fits = bytes.len().min(room as usize);
    cx.copy_out(value, &bytes[..fits])?;
    cx.store(cx.writing(len), &u32::try_from(fits).map_err(|_| Errno::EINVAL)?)
}

/// SO_PEERGROUPS
pub(super) fn peer_groups(cx: &Ctx<'_>, file: &File, value: Out<u8>, room: u32, len: InOut<u32>) -> Result<()> {
    let who = peer(cx, file)?.ok_or(Errno::ENODATA)?;
    let bytes: Vec<u8> = who.groups.iter().flat_map(|group| group.to_le_bytes()).collect();
    cx.store(cx.writing(len), &u32::try_from(bytes.len()).map_err(|_| Errno::EINVAL)?)?;
    if bytes.len() > room as usize { Err(Errno::ERANGE) } else { cx.copy_out(value, &bytes) }
}

/// SO_PEERPIDFD
pub(super) fn peer_descriptor(cx: &Ctx<'_>, file: &File, value: Out<u8>, room: u32, len: InOut<u32>) -> Result<()> {
    let who = peer(cx, file)?.ok_or(Errno::ENODATA)?;
    let fd = descriptor_of(cx, CageId(who.ids.pid), false)?;
    let stored = store_cut(cx, &fd.to_le_bytes(), value, room, len);
    stored.inspect_err(|_| drop(cx.cage.fds.remove(fd, cx.reader(cx.cage.id))))
}

/// Called before SO_PASSCRED: from now on messages carry their senders.
pub(super) fn asks(cx: &Ctx<'_>, file: &File) {
    let Some(socket) = unix(file) else { return };
    ask(cx, socket);
}

fn ask(cx: &Ctx<'_>, socket: &Socket) {
    if let Some(pair) = &socket.pair {
        pair.asked.store(true, Ordering::SeqCst);
    }
    // A socket that came in a message may be an end of a pair.
    let anywhere = socket.pair.is_none() && socket.travelled.load(Ordering::Acquire);
    if cx.kernel.senders.ask(anywhere) {
        // The short way of write(2) sends no token.
        cx.kernel.cages.all().iter().for_each(|cage| cage.fds.watch());
    }
}

/// The token to send along with a message, by which the receiver knows the sender; None if none is
/// needed. `claims`: the message has SCM_CREDENTIALS of its own.
///
/// # Errors
/// ENOBUFS, EMFILE.
pub(super) fn token(cx: &Ctx<'_>, file: &File, by: &Cage, claims: bool) -> Result<Option<Arc<OwnedFd>>> {
    let senders = &cx.kernel.senders;
    let Some(socket) = unix(file) else { return Ok(None) };
    if claims {
        ask(cx, socket);
    }
    let unasked = || socket.pair.as_ref().is_some_and(|pair| !pair.asked.load(Ordering::SeqCst));
    if !senders.asked() || !senders.asked_anywhere() && unasked() {
        return Ok(None);
    }
    // Sockets outside get only what was sent.
    let host = net::peer_credentials(file.host())?;
    if host.pid != 0 && !is_ours(&host) {
        return Ok(None);
    }
    let ids = {
        let own = &by.settings().credentials;
        Ids { pid: by.id.0, uid: own.uid[REAL], gid: own.gid[REAL] }
    };
    cx.kernel.engine().needs_descriptors();
    senders.token(ids, claims, |pid| cx.kernel.cages.get(CageId(pid)).is_some()).map(Some)
}

/// Before something is sent that no token can go with.
///
/// # Errors
/// EINVAL: it is to be read and written.
pub(crate) fn check_tokenless(cx: &Ctx<'_>, file: &File) -> Result<()> {
    if cx.kernel.senders.asked() && token(cx, file, cx.cage, false)?.is_some() { Err(Errno::EINVAL) } else { Ok(()) }
}

/// Whether what is sent by a file is cut into pieces: each has a token then.
pub(super) fn is_stream(file: &File) -> bool {
    sockopt::socket_type(file.host()) == Ok(SocketType::STREAM)
}

/// Converts SCM_CREDENTIALS for the host: the runner's process id replaces the cage's. User and
/// group are checked here, since the host would accept any from a runner that is root.
pub(super) fn claim(by: &Cage, data: &[u8]) -> Result<Vec<u8>> {
    let (pid, ids) = data.split_first_chunk::<4>().filter(|_| data.len() == size_of::<Ucred>()).ok_or(Errno::EINVAL)?;
    if i32::from_le_bytes(*pid).cast_unsigned() != by.id.0 {
        return Err(Errno::EPERM);
    }
    let number = |at: usize| ids.get(at..at + 4).and_then(|id| id.try_into().ok()).map_or(u32::MAX, u32::from_le_bytes);
    let (user, group) = (number(0), number(4));
    let own = &by.settings().credentials;
    if !(own.uid.contains(&user) || own.can(capability::SETUID))
        || !(own.gid.contains(&group) || own.can(capability::SETGID))
    {
        return Err(Errno::EPERM);
    }
    Ok([&std::process::id().to_le_bytes(), ids].concat())
}

/// Takes the token out of a received message.
pub(super) fn take_token(cx: &Ctx<'_>, control: &mut Vec<Control<OwnedFd>>) -> Option<Token> {
    let mut found = None;
    for message in control.iter_mut() {
        let Control::Rights(files) = message else { continue };
        files.retain(|file| {
            let token = cx.kernel.senders.token_behind(file);
            found = found.or(token);
            token.is_none()
        });
    }
    control.retain(|message| !matches!(message, Control::Rights(files) if files.is_empty()));
    found
}

/// The contents of a received SCM_CREDENTIALS. A message of a stream may be received in parts, of
/// which only the first has the token.
pub(super) fn of_sender(cx: &Ctx<'_>, file: Option<&File>, token: Option<Token>, data: &[u8]) -> Vec<u8> {
    let word =
        |at: usize| data.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(u32::MAX, u32::from_le_bytes);
    let host = Ucred { pid: word(0).cast_signed(), uid: word(4), gid: word(8) };
    let ids = if is_ours(&host) {
        match token.map_or_else(|| last(cx, file), Some) {
            Some(Token::Sender(ids)) => ids,
            Some(Token::Claimed(pid)) => Ids { pid, uid: host.uid, gid: host.gid },
            None => Ids::NOBODY,
        }
    } else {
        Ids { pid: 0, uid: host.uid, gid: host.gid }
    };
    [ids.pid, ids.uid, ids.gid].map(u32::to_le_bytes).concat()
}

/// The sender of the previous bytes; before any came, the process that has connected: its bytes
/// were sent before anybody asked, and the connection was not accepted yet.
fn last(cx: &Ctx<'_>, file: Option<&File>) -> Option<Token> {
    let file = file.filter(|file| is_stream(file))?;
    let last = *unix(file)?.last.locked();
    match last {
        Last::Token(token) => Some(token),
        Last::Unknown => None,
        Last::Nothing => peer(cx, file).ok().flatten().map(|who| Token::Sender(who.ids)),
    }
}

/// Notes the sender of the part before the next one: this token, or unknown.
pub(crate) fn note_received(file: &File, token: Option<Token>) {
    if let Kind::Socket(socket) = &file.kind {
        *socket.last.locked() = token.map_or(Last::Unknown, Last::Token);
    }
}

/// The claim in an SCM_CREDENTIALS message, if it is one.
pub(super) fn is_claim<F>(message: &Control<F>) -> bool {
    matches!(message, Control::Other { level: SOL_SOCKET, kind: SCM_CREDENTIALS, .. })
}
