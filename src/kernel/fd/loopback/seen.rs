//! The names of both ends of a loopback socket, as the guest sees them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use lind_abi::{Errno, Result};

use super::{Family, Named, Private, Protocol, settled, shown};
use crate::Kernel;
use crate::fd::{File, Kind};
use crate::host::net::{self, Address};
use crate::lock::Locked;

/// The kernel's state of a socket of the loopback; None for all others.
pub(crate) fn private(file: &File) -> Option<&Private> {
    let Kind::Socket(socket) = &file.kind else { return None };
    socket.loopback.get().map(|private| &**private)
}

/// getsockname(2); None for other sockets.
pub(crate) fn name(kernel: &Kernel, file: &File) -> Option<Result<Address>> {
    let private = private(file)?;
    Some(Ok(shown(private.family, local(kernel, file, private))))
}

fn local(kernel: &Kernel, file: &File, private: &Private) -> SocketAddr {
    let bound = private.bound.locked().as_ref().map(|bound| bound.address);
    let named = |name: Result<Address>| name.ok().and_then(|name| kernel.loopback.named(&name));
    let nowhere = SocketAddr::new(anywhere(private.family), 0);
    match named(net::name(file.host())) {
        // A socket that has connected.
        Some(Named { from, to: Some(_), .. }) => from,
        // An accepted socket has its listener's name; its peer's name says which address was meant.
        Some(own) if own.protocol == Protocol::Tcp => {
            named(net::peer(file.host())).and_then(|peer| peer.to).unwrap_or(own.from)
        }
        Some(own) => own.from,
        None => bound.unwrap_or(nowhere),
    }
}

/// getpeername(2); None for other sockets.
pub(crate) fn peer(kernel: &Kernel, file: &File) -> Option<Result<Address>> {
    let private = private(file)?;
    let peer = net::peer(file.host());
    if let (Err(errno), Protocol::Tcp) = (&peer, private.protocol) {
        return Some(Err(*errno));
    }
    let known = *private.peer.locked();
    let named = peer.ok().and_then(|name| kernel.loopback.named(&name)).map(|named| settled(named.from));
    Some(known.or(named).map(|peer| shown(private.family, peer)).ok_or(Errno::ENOTCONN))
}

/// The address of a socket that is bound nowhere in particular.
pub(crate) fn anywhere(family: Family) -> IpAddr {
    if family == Family::V4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}
