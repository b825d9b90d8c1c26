//! Sockets of the runner's own loopback: see [`Loopback`](crate::fd::loopback::Loopback).
//!
//! A socket becomes one of these when it is first bound or connected to a marked address: a unix
//! socket replaces the host's, under the same descriptor. From then on the host's calls work on it
//! as on any socket, and only addresses and options need this module.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use lind_abi::flags::{MsgFlags, SockLevel};
use lind_abi::{Errno, Fd, Result};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use super::credentials::is_ours;
use super::transfer::failed;
use crate::Kernel;
use crate::call::Ctx;
use crate::fd::loopback::{
    Bound, Family, Named, Private, Protocol, Sharing, anywhere, marked, private, settled, shown,
};
use crate::fd::{File, Kind, Socket};
use crate::host::fs::Vector;
use crate::host::net::{self, Address};
use crate::host::{self, errno};
use crate::lock::Locked;

/// The largest datagram of UDP over IPv4.
const LARGEST: usize = 65507;
const MSG_FASTOPEN: u32 = 0x2000_0000;
/// The least number of connections that may wait to be accepted: the host refuses more, where TCP
/// would try again.
const BACKLOG: i32 = 1024;

/// bind(2) to a marked address; None where it is not marked and the socket is not one of these.
pub(super) fn bind(cx: &Ctx<'_>, file: &File, to: &Address) -> Option<Result<()>> {
    let Some((family, address)) = marked(to) else { return private(file).map(|_| Err(Errno::EINVAL)) };
    Some(own(cx, file, family).and_then(|private| {
        let mut bound = private.bound.locked();
        if bound.is_some() {
            return Err(Errno::EINVAL);
        }
        let new = cx.kernel.loopback.bind(private.protocol, address, sharing(private))?;
        if private.protocol == Protocol::Udp {
            receive_at(cx, file, private, &new)?;
        }
        *bound = Some(new);
        Ok(())
    }))
}

/// connect(2) to a marked address; None where it is not marked and the socket is not one of these.
pub(super) fn connect(cx: &Ctx<'_>, file: &File, to: &Address) -> Option<Result<()>> {
    let Some((family, to)) = marked(to) else {
        let private = private(file)?;
        let ends = to.bytes().get(..2) == Some(&[0, 0]);
        return Some(if ends { disconnect(file, private) } else { Err(Errno::ENETUNREACH) });
    };
    let to = settled(to);
    let Ok(protocol) = protocol_of(file) else { return Some(Err(Errno::EPROTONOSUPPORT)) };
    Some(match protocol {
        Protocol::Tcp => connect_stream(cx, file, family, to),
        Protocol::Udp => connect_datagrams(cx, file, family, to),
    })
}

fn connect_stream(cx: &Ctx<'_>, file: &File, family: Family, to: SocketAddr) -> Result<()> {
    let loopback = &cx.kernel.loopback;
    // Before the socket is changed, which cannot be taken back.
    let Some(listener) = loopback.find(Protocol::Tcp, to) else {
        check_family(file, family)?;
        return Err(if is_in_use(file) { Errno::EISCONN } else { Errno::ECONNREFUSED });
    };
    let private = own(cx, file, family)?;
    if is_in_use(file) {
        return Err(Errno::EISCONN);
    }
    let from = {
        let mut bound = private.bound.locked();
        if bound.is_none() {
            let any = SocketAddr::new(source(to.ip()), 0);
            *bound = Some(loopback.bind(Protocol::Tcp, any, sharing(private))?);
        }
        let bound = bound.as_ref().ok_or(Errno::EINVAL)?;
        let ip = if bound.address.ip().is_unspecified() { source(to.ip()) } else { bound.address.ip() };
        SocketAddr::new(ip, bound.address.port())
    };
    if net::name(file.host())?.len() > 2 {
        // An attempt before this one has left its name.
        file.replace(made(file.host(), private)?)?;
    }
    let named = Named { protocol: Protocol::Tcp, family: private.family, from, to: Some(to) };
    net::bind(file.host(), &loopback.name(&named))?;
    *private.peer.locked() = Some(to);
    let name = *listener.name().ok_or(Errno::ECONNREFUSED)?;
    let mut again = false;
    cx.blocking(|| match net::connect(file.host(), &name) {
        Err(Errno::EISCONN) if again => Ok(()),
        result => {
            again = result == Err(Errno::EINTR);
            result
        }
    })
}

/// Whether a stream socket is connected, or listens, and so must not be replaced.
fn is_in_use(file: &File) -> bool {
    net::peer(file.host()).is_ok() || sockopt::socket_acceptconn(file.host()) == Ok(true)
}

fn connect_datagrams(cx: &Ctx<'_>, file: &File, family: Family, to: SocketAddr) -> Result<()> {
    let private = own(cx, file, family)?;
    have_port(cx, file, private)?;
    *private.peer.locked() = Some(to);
    let name = match cx.kernel.loopback.find(Protocol::Udp, to) {
        Some(receiver) => receiver.name().copied(),
        None => None,
    };
    if let Some(name) = name {
        return net::connect(file.host(), &name);
    }
    // Connecting succeeds even if nobody receives, and later sends are refused, as by a socket that
    // has gone.
    let gone = made(file.host(), private)?;
    let name = cx.kernel.loopback.name(&Named { protocol: Protocol::Udp, family: private.family, from: to, to: None });
    net::bind(gone.as_fd(), &name)?;
    net::connect(file.host(), &name)
}

/// connect(2) without a family ends what a datagram socket was connected to.
fn disconnect(file: &File, private: &Private) -> Result<()> {
    *private.peer.locked() = None;
    net::connect(file.host(), &Address::new(&[0; 16])?)
}

/// listen(2); None for other sockets.
pub(super) fn listen(cx: &Ctx<'_>, file: &File, backlog: i32) -> Option<Result<()>> {
    let private = private(file)?;
    Some((|| {
        if private.protocol != Protocol::Tcp {
            return Err(Errno::EOPNOTSUPP);
        }
        if net::peer(file.host()).is_ok() {
            return Err(Errno::EINVAL);
        }
        let bound = {
            let mut bound = private.bound.locked();
            if bound.is_none() {
                let any = SocketAddr::new(anywhere(private.family), 0);
                *bound = Some(cx.kernel.loopback.bind(Protocol::Tcp, any, sharing(private))?);
            }
            bound.clone().ok_or(Errno::EINVAL)?
        };
        cx.kernel.loopback.listens(&bound)?;
        receive_at(cx, file, private, &bound)?;
        rustix::net::listen(file.host(), backlog.max(BACKLOG)).map_err(errno)
    })())
}

/// Gives a socket the name under which others reach it.
fn receive_at(cx: &Ctx<'_>, file: &File, private: &Private, bound: &Bound) -> Result<()> {
    if bound.name().is_some() {
        return Ok(());
    }
    let named = Named { protocol: private.protocol, family: private.family, from: bound.address, to: None };
    let name = cx.kernel.loopback.name(&named);
    net::bind(file.host(), &name)?;
    bound.set_name(name);
    Ok(())
}

impl Kernel {
    /// Connects to a port of the loopback from outside; its listener sees `from` as the peer.
    ///
    /// # Errors
    /// ECONNREFUSED if no socket listens, EMFILE.
    pub fn dial(&self, port: u16, from: SocketAddr) -> Result<OwnedFd> {
        let local = |ip: IpAddr| SocketAddr::new(ip, port);
        let (four, six) = (local(Ipv4Addr::LOCALHOST.into()), local(Ipv6Addr::LOCALHOST.into()));
        let find = |to| self.loopback.find(Protocol::Tcp, to).map(|listener| (to, listener));
        let (to, listener) = find(four).or_else(|| find(six)).ok_or(Errno::ECONNREFUSED)?;
        let name = *listener.name().ok_or(Errno::ECONNREFUSED)?;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(errno)?;
        let named = Named { protocol: Protocol::Tcp, family: Family::V6, from, to: Some(to) };
        net::bind(socket.as_fd(), &self.loopback.name(&named))?;
        net::connect(socket.as_fd(), &name)?;
        Ok(socket)
    }
}

/// The state of a socket that a listener of the loopback has accepted, and its peer's address.
/// `Err(())` for a connection that did not come from a cage of this runner.
pub(super) fn accepted(
    cx: &Ctx<'_>,
    listener: &File,
    (new, peer): (&OwnedFd, &Address),
) -> Option<std::result::Result<(Private, Address), ()>> {
    let listener = private(listener)?;
    // Names can be read in the host's /proc/net/unix.
    let ours = net::peer_credentials(new.as_fd()).is_ok_and(|host| is_ours(&host));
    let Some(named) = cx.kernel.loopback.named(peer).filter(|_| ours) else { return Some(Err(())) };
    Some(Ok((Private::new(listener.family, Protocol::Tcp), shown(listener.family, named.from))))
}

/// Marks a socket that came in a message as one of these, if it is one.
pub(super) fn received(cx: &Ctx<'_>, host: BorrowedFd<'_>, socket: &Socket) {
    if let Some(named) = net::name(host).ok().and_then(|name| cx.kernel.loopback.named(&name)) {
        let _ = socket.loopback.set(Arc::new(Private::new(named.family, named.protocol)));
    }
}

/// The sender of a datagram as the receiver is to see it; None if it is not a name of the loopback.
pub(super) fn sender(cx: &Ctx<'_>, fd: Fd, from: &Address) -> Option<Address> {
    let named = cx.kernel.loopback.named(from)?;
    let file = cx.file(fd).ok()?;
    private(&file).map(|private| shown(private.family, settled(named.from)))
}

/// Sends to a marked address, or by a socket of the loopback with an address or control messages;
/// None in all other cases.
pub(super) fn send(cx: &Ctx<'_>, fd: Fd, data: &Vector<'_>, to: &Address, flags: MsgFlags) -> Option<Result<usize>> {
    let file = match cx.file(fd) {
        Ok(file) => file,
        Err(errno) => return Some(Err(errno)),
    };
    let mark = marked(to);
    if mark.is_none() && private(&file).is_none() {
        return None;
    }
    // TCP and UDP leave control messages for unix sockets where they are.
    let on = |to: &Address, flags: u32| cx.blocking(|| net::sendmsg(file.host(), to, data, &[], flags));
    let sent = match (protocol_of(&file), mark) {
        (Err(errno), _) => Err(errno),
        (Ok(Protocol::Tcp), _) if flags.has(MSG_FASTOPEN) => Err(Errno::EOPNOTSUPP),
        // TCP goes where it is connected to.
        (Ok(Protocol::Tcp), _) => on(&Address::NONE, flags.0),
        (Ok(Protocol::Udp), None) if to.len() == 0 => on(to, flags.0),
        (Ok(Protocol::Udp), None) => Err(Errno::EINVAL),
        (Ok(Protocol::Udp), Some((family, to))) => send_datagram(cx, &file, data, family, to, flags),
    };
    Some(sent.inspect_err(|&errno| failed(cx, fd, file.host(), flags, errno)))
}

/// A datagram: it is lost where nobody receives or has room for it.
fn send_datagram(
    cx: &Ctx<'_>,
    file: &File,
    data: &Vector<'_>,
    family: Family,
    to: SocketAddr,
    flags: MsgFlags,
) -> Result<usize> {
    let private = own(cx, file, family)?;
    have_port(cx, file, private)?;
    if data.bytes() > LARGEST {
        return Err(Errno::EMSGSIZE);
    }
    let receiver = cx.kernel.loopback.find(Protocol::Udp, settled(to));
    let Some(name) = receiver.as_ref().and_then(|receiver| receiver.name()) else { return Ok(data.bytes()) };
    match net::sendmsg(file.host(), name, data, &[], flags.0 | MsgFlags::MSG_DONTWAIT) {
        Err(Errno::EAGAIN | Errno::ECONNREFUSED | Errno::EPERM) => Ok(data.bytes()),
        result => result,
    }
}

/// Gives a datagram socket a port, if it has none.
fn have_port(cx: &Ctx<'_>, file: &File, private: &Private) -> Result<()> {
    let mut bound = private.bound.locked();
    if bound.is_none() && cx.kernel.loopback.named(&net::name(file.host())?).is_none() {
        let any = SocketAddr::new(anywhere(private.family), 0);
        let new = cx.kernel.loopback.bind(private.protocol, any, sharing(private))?;
        receive_at(cx, file, private, &new)?;
        *bound = Some(new);
    }
    Ok(())
}

/// The socket that has an option: a further one for options that unix sockets lack, or None for the
/// socket itself.
pub(super) fn keeper(file: &File, level: SockLevel, option: i32) -> Option<Result<BorrowedFd<'_>>> {
    /// Options about the bytes themselves.
    const CARRIED: [i32; 12] = [
        libc::SO_ERROR,
        libc::SO_SNDBUF,
        libc::SO_RCVBUF,
        libc::SO_SNDBUFFORCE,
        libc::SO_RCVBUFFORCE,
        libc::SO_RCVTIMEO,
        libc::SO_SNDTIMEO,
        libc::SO_RCVLOWAT,
        libc::SO_ACCEPTCONN,
        libc::SO_PEEK_OFF,
        SO_RCVTIMEO_NEW,
        SO_SNDTIMEO_NEW,
    ];
    const SO_RCVTIMEO_NEW: i32 = 66;
    const SO_SNDTIMEO_NEW: i32 = 67;
    let private = private(file)?;
    (level.0 != SockLevel::SOL_SOCKET || !CARRIED.contains(&option)).then(|| options(private))
}

fn options(private: &Private) -> Result<BorrowedFd<'_>> {
    if private.options.get().is_none() {
        let new = rustix::net::socket_with(domain(private.family), kind(private.protocol), SocketFlags::CLOEXEC, None);
        let _ = private.options.set(new.map_err(errno)?);
    }
    private.options.get().map(AsFd::as_fd).ok_or(Errno::EMFILE)
}

/// Makes a socket one of these, if it is not yet.
///
/// # Errors
/// EAFNOSUPPORT for an address of another family, EINVAL for a socket that already has an address
/// of the host's.
fn own<'f>(cx: &Ctx<'_>, file: &'f File, family: Family) -> Result<&'f Private> {
    let Kind::Socket(socket) = &file.kind else { return Err(Errno::ENOTSOCK) };
    check_family(file, family)?;
    if let Some(private) = socket.loopback.get() {
        return Ok(private);
    }
    let _changing = cx.kernel.loopback.changing.locked();
    if socket.loopback.get().is_none() {
        let private = Private::new(family, protocol_of(file)?);
        if port(&net::name(file.host())?) != 0 {
            return Err(Errno::EINVAL);
        }
        keep_options(file.host(), options(&private)?);
        let new = made(file.host(), &private)?;
        for (level, option) in [(libc::SOL_SOCKET, libc::SO_RCVTIMEO), (libc::SOL_SOCKET, libc::SO_SNDTIMEO)] {
            net::copy_option(file.host(), new.as_fd(), level, option);
        }
        file.replace(new)?;
        let _ = socket.loopback.set(Arc::new(private));
    }
    socket.loopback.get().map(|private| &**private).ok_or(Errno::EINVAL)
}

/// Copies what programs set before they bind or connect.
fn keep_options(from: BorrowedFd<'_>, to: BorrowedFd<'_>) {
    const KEPT: [(i32, i32); 12] = [
        (libc::SOL_SOCKET, libc::SO_REUSEADDR),
        (libc::SOL_SOCKET, libc::SO_REUSEPORT),
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
        (libc::SOL_SOCKET, libc::SO_LINGER),
        (libc::SOL_SOCKET, libc::SO_BROADCAST),
        (libc::IPPROTO_TCP, libc::TCP_NODELAY),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
        (libc::IPPROTO_IP, libc::IP_TOS),
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
    ];
    for (level, option) in KEPT {
        net::copy_option(from, to, level, option);
    }
}

/// A unix socket like this one.
fn made(like: BorrowedFd<'_>, private: &Private) -> Result<OwnedFd> {
    let status = rustix::fs::fcntl_getfl(like).map_err(errno)?;
    let waits =
        if status.contains(rustix::fs::OFlags::NONBLOCK) { SocketFlags::NONBLOCK } else { SocketFlags::empty() };
    rustix::net::socket_with(AddressFamily::UNIX, kind(private.protocol), SocketFlags::CLOEXEC | waits, None)
        .map_err(host::errno)
}

fn check_family(file: &File, family: Family) -> Result<()> {
    let own = match private(file) {
        Some(private) => domain(private.family),
        None => sockopt::socket_domain(file.host()).map_err(errno)?,
    };
    match (own == domain(family), family) {
        (true, _) => Ok(()),
        // It is too short for one of IPv6.
        (false, Family::V4) => Err(Errno::EINVAL),
        (false, Family::V6) => Err(Errno::EAFNOSUPPORT),
    }
}

fn protocol_of(file: &File) -> Result<Protocol> {
    if let Some(private) = private(file) {
        return Ok(private.protocol);
    }
    let host = file.host();
    match sockopt::socket_protocol(host).map_err(errno)? {
        Some(ipproto::TCP) if sockopt::socket_type(host) == Ok(SocketType::STREAM) => Ok(Protocol::Tcp),
        Some(ipproto::UDP) if sockopt::socket_type(host) == Ok(SocketType::DGRAM) => Ok(Protocol::Udp),
        _ => Err(Errno::EPROTONOSUPPORT),
    }
}

fn sharing(private: &Private) -> Sharing {
    let Ok(kept) = options(private) else { return Sharing::default() };
    Sharing {
        only_v6: private.family == Family::V6 && sockopt::ipv6_v6only(kept) == Ok(true),
        address: sockopt::socket_reuseaddr(kept) == Ok(true),
        port: sockopt::socket_reuseport(kept) == Ok(true),
    }
}

fn port(address: &Address) -> u16 {
    address.bytes().get(2..4).and_then(|port| port.try_into().ok()).map_or(0, u16::from_be_bytes)
}

fn domain(family: Family) -> AddressFamily {
    if family == Family::V4 { AddressFamily::INET } else { AddressFamily::INET6 }
}

fn kind(protocol: Protocol) -> SocketType {
    if protocol == Protocol::Tcp { SocketType::STREAM } else { SocketType::DGRAM }
}

/// The address that a connection to `to` comes from.
fn source(to: IpAddr) -> IpAddr {
    if to.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() }
}
