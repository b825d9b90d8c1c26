//! Sockets as such: socket(2), socketpair(2), listen(2), accept(2), shutdown(2).

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use lind_abi::flags::{AcceptFlags, ShutdownHow, SocketDomain, SocketType};
use lind_abi::layout::Sockaddr;
use lind_abi::{Errno, Fd, InOut, NewFd, Out, Result};
use rustix::net::{AddressFamily, Protocol, Shutdown, SocketFlags};

use super::{address, credentials, loopback};
use crate::call::Ctx;
use crate::fd::{File, Kind, Pair, Socket};
use crate::host::{errno, net};
use crate::spin;

/// The bits of the type in socket(2)'s argument, without its flags.
const KIND: u32 = 0xf;
const FLAGS: u32 = SocketType::SOCK_NONBLOCK | SocketType::SOCK_CLOEXEC;
const SOCK_PACKET: u32 = 10;

/// socket(2). Raw sockets would show the host's traffic, and other protocols have options whose
/// values hold addresses.
pub(crate) fn socket(cx: &Ctx<'_>, domain: SocketDomain, kind: SocketType, protocol: i32) -> Result<NewFd> {
    let (family, protocol, kind_and_flags) = checked(domain, kind, protocol)?;
    cx.cage.fds.check_room(1)?;
    // Messages may have any size.
    let (kind, flags) = (rustix::net::SocketType::from_raw(kind_and_flags & KIND), host_flags(kind_and_flags));
    let host = rustix::net::socket_with(family, kind, flags, protocol).map_err(errno)?;
    add(cx, host, Socket::default(), kind_and_flags & SocketType::SOCK_CLOEXEC != 0)
}

/// socketpair(2)
pub(crate) fn socketpair(
    cx: &Ctx<'_>,
    domain: SocketDomain,
    kind: SocketType,
    protocol: i32,
    fds: Out<[i32; 2]>,
) -> Result<()> {
    let (family, protocol, kind_and_flags) = checked(domain, kind, protocol)?;
    cx.cage.fds.check_room(2)?;
    let (kind, flags) = (rustix::net::SocketType::from_raw(kind_and_flags & KIND), host_flags(kind_and_flags));
    let (a, b) = rustix::net::socketpair(family, kind, flags, protocol).map_err(errno)?;
    let (pair, who) = (Arc::new(Pair::default()), credentials::who(cx.cage));
    let end = || Socket { pair: Some(Arc::clone(&pair)), peer: OnceLock::from(Arc::clone(&who)), ..Socket::default() };
    let cloexec = kind_and_flags & SocketType::SOCK_CLOEXEC != 0;
    let a = add(cx, a, end(), cloexec)?;
    let b = add(cx, b, end(), cloexec).inspect_err(|_| close(cx, a))?;
    cx.store(fds, &[a.0, b.0]).inspect_err(|_| [a, b].into_iter().for_each(|fd| close(cx, fd)))
}

/// listen(2)
pub(crate) fn listen(cx: &Ctx<'_>, fd: Fd, backlog: i32) -> Result<()> {
    let file = cx.file(fd)?;
    if let Some(result) = loopback::listen(cx, &file, backlog) {
        return result;
    }
    rustix::net::listen(file.host(), backlog).map_err(errno)?;
    credentials::listens(cx, &file);
    Ok(())
}

/// accept(2)
pub(crate) fn accept(cx: &Ctx<'_>, fd: Fd, addr: Out<Sockaddr>, len: InOut<u32>) -> Result<NewFd> {
    accept4(cx, fd, addr, len, AcceptFlags(0))
}

/// accept4(2)
pub(crate) fn accept4(cx: &Ctx<'_>, fd: Fd, addr: Out<Sockaddr>, len: InOut<u32>, flags: AcceptFlags) -> Result<NewFd> {
    if flags.beyond(FLAGS) {
        return Err(Errno::EINVAL);
    }
    let listener = cx.file(fd)?;
    // A connection that finds no number must stay in the queue.
    cx.cage.fds.check_room(1)?;
    let (host, peer) = loop {
        spin::for_input(cx, listener.host(), 0);
        let (host, peer) = cx.blocking(|| net::accept(listener.host(), flags.0))?;
        match loopback::accepted(cx, &listener, (&host, &peer)) {
            None => break (host, peer),
            Some(Ok((private, peer))) => {
                address::store_if(cx, &peer, addr, len)?;
                let socket = Socket { loopback: OnceLock::from(Arc::new(private)), ..Socket::default() };
                return add(cx, host, socket, flags.has(AcceptFlags::SOCK_CLOEXEC));
            }
            // Some process of the host's has found the name. The guest gets no error.
            Some(Err(())) => {}
        }
    };
    address::store_if(cx, &peer, addr, len)?;
    let bound = match &listener.kind {
        Kind::Socket(listener) => listener.bound.clone(),
        _ => OnceLock::new(),
    };
    let socket = Socket { bound, ..Socket::default() };
    credentials::accepted(cx, &peer, &socket);
    add(cx, host, socket, flags.has(AcceptFlags::SOCK_CLOEXEC))
}

/// shutdown(2)
pub(crate) fn shutdown(cx: &Ctx<'_>, fd: Fd, how: ShutdownHow) -> Result<()> {
    let file = cx.file(fd)?;
    let how = match how.0 {
        ShutdownHow::SHUT_RD => Shutdown::Read,
        ShutdownHow::SHUT_WR => Shutdown::Write,
        ShutdownHow::SHUT_RDWR => Shutdown::Both,
        _ => return Err(Errno::EINVAL),
    };
    rustix::net::shutdown(file.host(), how).map_err(errno)
}

fn add(cx: &Ctx<'_>, host: OwnedFd, socket: Socket, cloexec: bool) -> Result<NewFd> {
    cx.cage.fds.add(File::new(host, Kind::Socket(socket)), cloexec).map(NewFd)
}

/// Closes a descriptor whose number the guest does not know yet.
fn close(cx: &Ctx<'_>, fd: NewFd) {
    drop(cx.cage.fds.remove(fd.0, cx.reader(cx.cage.id)));
}

fn host_flags(kind: u32) -> SocketFlags {
    let flags = SocketFlags::CLOEXEC;
    if kind & SocketType::SOCK_NONBLOCK != 0 { flags | SocketFlags::NONBLOCK } else { flags }
}

fn checked(domain: SocketDomain, kind: SocketType, protocol: i32) -> Result<(AddressFamily, Option<Protocol>, u32)> {
    const ICMP: [i32; 2] = [libc::IPPROTO_ICMP, libc::IPPROTO_ICMPV6];
    if kind.beyond(KIND | FLAGS) {
        return Err(Errno::EINVAL);
    }
    let family = match domain.0 {
        SocketDomain::AF_UNIX => AddressFamily::UNIX,
        SocketDomain::AF_INET => AddressFamily::INET,
        SocketDomain::AF_INET6 => AddressFamily::INET6,
        _ => return Err(Errno::EAFNOSUPPORT),
    };
    if family != AddressFamily::UNIX {
        match (kind.0 & KIND, protocol) {
            (SocketType::SOCK_RAW | SOCK_PACKET, _) => return Err(Errno::EPERM),
            (SocketType::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => {}
            (SocketType::SOCK_DGRAM, 0 | libc::IPPROTO_UDP | libc::IPPROTO_UDPLITE) => {}
            (SocketType::SOCK_DGRAM, protocol) if ICMP.contains(&protocol) => {}
            (SocketType::SOCK_STREAM | SocketType::SOCK_DGRAM, _) => return Err(Errno::EPROTONOSUPPORT),
            (1..SOCK_PACKET, _) => return Err(Errno::ESOCKTNOSUPPORT),
            _ => return Err(Errno::EINVAL),
        }
    }
    let protocol = u32::try_from(protocol).map_err(|_| Errno::EINVAL)?;
    Ok((family, rustix::net::RawProtocol::new(protocol).map(Protocol::from_raw), kind.0))
}
