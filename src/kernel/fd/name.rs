//! Names of sockets at the host, and their conversion to those that guests see.

use std::ffi::CString;

use lind_abi::{Errno, Result};

use super::File;
use crate::Kernel;
use crate::host::{self, net::Address};

/// The offset of sun_path.
pub(crate) const PATH: usize = 2;
/// The size of struct sockaddr_un.
pub(crate) const UNIX: usize = 110;
/// The family at the start of an address.
pub(crate) const AF_UNIX: [u8; 2] = 1_u16.to_le_bytes();

/// The meaning of a socket address.
pub(crate) enum Meaning<'a> {
    /// The same on the host.
    Host,
    /// A name without a file: the bytes behind the NUL.
    Abstract(&'a [u8]),
    /// A file's path.
    Path(CString),
}

/// The meaning of a unix address; the host's meaning for all others.
pub(crate) fn meaning(address: &Address) -> Meaning<'_> {
    match address.bytes().split_first_chunk::<PATH>() {
        Some((family, _)) if *family != AF_UNIX => Meaning::Host,
        Some((_, [0, name @ ..])) => Meaning::Abstract(name),
        // Too long for any path: the host has the errno.
        Some((_, path)) if (1..=UNIX - PATH).contains(&path.len()) => {
            let end = path.iter().position(|&byte| byte == 0).unwrap_or(path.len());
            CString::new(&path[..end]).map_or(Meaning::Host, Meaning::Path)
        }
        _ => Meaning::Host,
    }
}

/// A unix address with a path, as the host reads it: the NUL is there if there is room.
pub(crate) fn unix(path: &[u8]) -> Result<Address> {
    let bytes = [&AF_UNIX[..], path, &[0]].concat();
    if path.len() > UNIX - PATH { Err(Errno::ENAMETOOLONG) } else { Address::new(&bytes[..bytes.len().min(UNIX)]) }
}

/// The path or abstract name of a unix socket, as guests spell it, if it has one.
pub(crate) fn socket_path(kernel: &Kernel, socket: &File) -> Option<Vec<u8>> {
    let name = to_guest(kernel, &host::net::name(socket.host()).ok()?);
    let path = name.bytes().get(PATH..).filter(|path| !path.is_empty())?;
    let end = if path[0] == 0 { path.len() } else { path.iter().position(|&byte| byte == 0).unwrap_or(path.len()) };
    Some(path[..end].to_vec())
}

/// A host address as the guest is to see it.
pub(crate) fn to_guest(kernel: &Kernel, address: &Address) -> Address {
    let names = &kernel.sockets;
    let guest = match meaning(address) {
        // Such a name identifies the connecting cage, and means nothing to guests.
        Meaning::Abstract(name) if kernel.senders.named(name).is_some() => Some(Address::new(&AF_UNIX)),
        // Nor does that of a socket of the loopback that nobody has known as one.
        Meaning::Abstract(_) if kernel.loopback.named(address).is_some() => Some(Address::new(&AF_UNIX)),
        Meaning::Abstract(name) => names.guest_abstract(name).map(|name| Address::new(&[&AF_UNIX[..], &name].concat())),
        Meaning::Path(path) => {
            names.guest(path.to_bytes()).map(|path| Address::new(&[&AF_UNIX[..], &path, &[0]].concat()))
        }
        Meaning::Host => None,
    };
    guest.and_then(Result::ok).unwrap_or(*address)
}
