//! A loopback network of the runner's own: TCP and UDP between its cages only.
//!
//! Such a socket is a unix socket of the host whose abstract name contains what the guest sees:
//! protocol, family, and the addresses of both ends. So the name alone describes the other end,
//! also to a process that got the socket in a message. The owners of ports are in [`Loopback`]; the
//! host only carries the bytes.
//!
//! An address for this loopback is marked ([`marked`]) on the way in, and on the way out if a grate
//! has asked for it. The mark is not a secret: a cage that writes it reaches sockets of its own
//! runner, and nothing of the host's.

mod seen;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use lind_abi::{Errno, Result};

pub(crate) use seen::{anywhere, name, peer, private};

use super::name::{AF_UNIX, PATH};
use crate::host::net::Address;
use crate::lock::Locked;

/// The value of sin_zero in a marked address.
const MARK: [u8; 8] = *b"\xf1own\0lo\x1f";
/// The value of sin6_flowinfo in a marked address. The host fills at most the lower 28 bits.
const MARK6: [u8; 4] = *b"\xf1own";
/// The ports that the kernel chooses from.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 32768..=60999;
/// The length of a name behind the NUL.
const NAME: usize = 8 + 2 + 18 + 18 + 8;

/// TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Over a stream socket.
    Tcp,
    /// Over a datagram socket.
    Udp,
}

/// The family that a guest's socket was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// AF_INET
    V4,
    /// AF_INET6
    V6,
}

/// A port that a socket has.
#[derive(Debug)]
pub struct Bound {
    /// The address.
    pub address: SocketAddr,
    protocol: Protocol,
    sharing: Sharing,
    listening: AtomicBool,
    /// The host's name of the socket that listens or receives there, once it does.
    name: OnceLock<Address>,
}

/// How a socket shares its port with others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sharing {
    /// IPV6_V6ONLY
    pub only_v6: bool,
    /// SO_REUSEADDR
    pub address: bool,
    /// SO_REUSEPORT
    pub port: bool,
}

/// The kernel's state of a socket of this loopback, besides the host's socket.
#[derive(Debug)]
pub struct Private {
    /// The family it was made with.
    pub family: Family,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// A socket of that family that keeps the options which unix sockets do not have; made on first
    /// use.
    pub options: OnceLock<OwnedFd>,
    /// The port that it has.
    pub bound: Mutex<Option<Arc<Bound>>>,
    /// The address that it was last connected to.
    pub peer: Mutex<Option<SocketAddr>>,
}

/// The parts of a host's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// The family of the socket that has the name.
    pub family: Family,
    /// Its own address.
    pub from: SocketAddr,
    /// The address it has connected to, if it has.
    pub to: Option<SocketAddr>,
}

/// The holders of each port.
type Ports = HashMap<(Protocol, u16), Vec<Weak<Bound>>>;

/// The ports of one runner.
pub struct Loopback {
    /// The prefix of the host's names. No guest can spell it.
    scope: [u8; 8],
    ports: Mutex<Ports>,
    /// A counter that makes names unique.
    serial: AtomicU64,
    /// Picks the next of several sockets that share a port.
    turn: AtomicUsize,
    /// Held while a socket becomes one of these.
    pub(crate) changing: Mutex<()>,
}

impl Private {
    /// A socket that is neither bound nor connected yet.
    pub fn new(family: Family, protocol: Protocol) -> Private {
        Private { family, protocol, options: OnceLock::new(), bound: Mutex::new(None), peer: Mutex::new(None) }
    }
}

impl Bound {
    /// The host's name, if it has one yet.
    pub fn name(&self) -> Option<&Address> {
        self.name.get()
    }

    /// Notes the host's name.
    pub fn set_name(&self, name: Address) {
        let _ = self.name.set(name);
    }

    fn overlaps(&self, address: &SocketAddr, only_v6: bool) -> bool {
        match (self.address.ip(), address.ip()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => a == b || a.is_unspecified() || b.is_unspecified(),
            (IpAddr::V6(a), IpAddr::V6(b)) => a == b || a.is_unspecified() || b.is_unspecified(),
            (IpAddr::V6(six), IpAddr::V4(_)) => six.is_unspecified() && !self.sharing.only_v6,
            (IpAddr::V4(_), IpAddr::V6(six)) => six.is_unspecified() && !only_v6,
        }
    }

    /// How well it fits a destination: 2 for its own address, 1 for any address.
    fn fits(&self, to: IpAddr) -> u8 {
        let any = match (self.address.ip(), to) {
            (IpAddr::V4(any), IpAddr::V4(_)) => any.is_unspecified(),
            (IpAddr::V6(any), IpAddr::V6(_)) => any.is_unspecified(),
            (IpAddr::V6(any), IpAddr::V4(_)) => any.is_unspecified() && !self.sharing.only_v6,
            (IpAddr::V4(_), IpAddr::V6(_)) => false,
        };
        if self.address.ip() == to { 2 } else { u8::from(any) }
    }
}

impl Loopback {
    /// No ports, and a scope that no other runner has.
    pub fn new() -> Loopback {
        let mut scope = [0; 8];
        if rustix::rand::getrandom(&mut scope, rustix::rand::GetRandomFlags::empty()) != Ok(scope.len()) {
            scope = (u64::from(std::process::id()) << 32 | 0x6c6f_6f70).to_le_bytes();
        }
        Loopback {
            scope,
            ports: Mutex::default(),
            serial: AtomicU64::new(0),
            turn: AtomicUsize::new(0),
            changing: Mutex::new(()),
        }
    }

    /// Takes a port; 0 is one that nobody has.
    ///
    /// # Errors
    /// EADDRINUSE; EADDRNOTAVAIL for an address beyond the loopback.
    pub fn bind(&self, protocol: Protocol, address: SocketAddr, sharing: Sharing) -> Result<Arc<Bound>> {
        if !address.ip().is_loopback() && !address.ip().is_unspecified() {
            return Err(Errno::EADDRNOTAVAIL);
        }
        let mut ports = self.ports.locked();
        if ports.len() >= 1024 {
            ports.retain(|_, list| list.iter().any(|bound| bound.strong_count() > 0));
        }
        let free = |port: u16| {
            let list = ports.get(&(protocol, port)).map_or(&[][..], Vec::as_slice);
            !list.iter().filter_map(Weak::upgrade).any(|other| {
                let both = (other.sharing.port && sharing.port)
                    || (other.sharing.address
                        && sharing.address
                        && !(protocol == Protocol::Tcp && other.listening.load(Ordering::Relaxed)));
                !both && other.overlaps(&SocketAddr::new(address.ip(), port), sharing.only_v6)
            })
        };
        let port = match address.port() {
            0 => self.any_port().find(|&port| free(port)).ok_or(Errno::EADDRINUSE)?,
            port if free(port) => port,
            _ => return Err(Errno::EADDRINUSE),
        };
        let bound = Arc::new(Bound {
            address: SocketAddr::new(address.ip(), port),
            protocol,
            sharing,
            listening: AtomicBool::new(false),
            name: OnceLock::new(),
        });
        let list = ports.entry((protocol, port)).or_default();
        list.retain(|other| other.strong_count() > 0);
        list.push(Arc::downgrade(&bound));
        Ok(bound)
    }

    /// All ports that the kernel chooses from, beginning anywhere.
    fn any_port(&self) -> impl Iterator<Item = u16> {
        let count = EPHEMERAL.end() - EPHEMERAL.start() + 1;
        let mut random = [0; 2];
        let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
        let start = u16::from_le_bytes(random) % count;
        (0..count).map(move |i| EPHEMERAL.start() + (start + i) % count)
    }

    /// Marks a port as one where connections are taken.
    ///
    /// # Errors
    /// EADDRINUSE where another does that already.
    pub fn listens(&self, bound: &Arc<Bound>) -> Result<()> {
        let ports = self.ports.locked();
        let list = ports.get(&(bound.protocol, bound.address.port())).map_or(&[][..], Vec::as_slice);
        let taken = list.iter().filter_map(Weak::upgrade).any(|other| {
            !Arc::ptr_eq(&other, bound)
                && other.listening.load(Ordering::Relaxed)
                && !(other.sharing.port && bound.sharing.port)
                && other.overlaps(&bound.address, bound.sharing.only_v6)
        });
        if taken {
            return Err(Errno::EADDRINUSE);
        }
        bound.listening.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The socket that takes connections, or receives datagrams, at an address.
    pub fn find(&self, protocol: Protocol, to: SocketAddr) -> Option<Arc<Bound>> {
        let ports = self.ports.locked();
        let mut found: Vec<_> = ports
            .get(&(protocol, to.port()))?
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|bound| bound.name.get().is_some())
            .filter(|bound| protocol == Protocol::Udp || bound.listening.load(Ordering::Relaxed))
            .filter(|bound| bound.fits(to.ip()) > 0)
            .collect();
        let best = found.iter().map(|bound| bound.fits(to.ip())).max()?;
        found.retain(|bound| bound.fits(to.ip()) == best);
        match found.iter().all(|bound| bound.sharing.port) {
            true => found.get(self.turn.fetch_add(1, Ordering::Relaxed) % found.len()).cloned(),
            false => found.pop(),
        }
    }

    /// A name for the host that no other socket has.
    pub fn name(&self, named: &Named) -> Address {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let kind =
            [if named.protocol == Protocol::Tcp { b't' } else { b'u' }, if named.family == Family::V4 { 4 } else { 6 }];
        let to = named.to.map_or([0; 18], packed);
        let name = [&AF_UNIX[..], &[0], &self.scope, &kind, &packed(named.from), &to, &serial.to_le_bytes()].concat();
        Address::new(&name).unwrap_or(Address::NONE)
    }

    /// Decodes a host's address, if it is one of these.
    pub fn named(&self, host: &Address) -> Option<Named> {
        let name = host.bytes().strip_prefix(&AF_UNIX)?.strip_prefix(&[0])?.strip_prefix(&self.scope)?;
        if PATH + 1 + NAME != host.bytes().len() {
            return None;
        }
        let protocol = if name[0] == b't' { Protocol::Tcp } else { Protocol::Udp };
        let family = if name[1] == 4 { Family::V4 } else { Family::V6 };
        let (from, to) = (unpacked(&name[2..20]), unpacked(&name[20..38]));
        Some(Named { protocol, family, from, to: Some(to).filter(|to| to.port() != 0) })
    }
}

impl Default for Loopback {
    fn default() -> Self {
        Loopback::new()
    }
}

fn packed(address: SocketAddr) -> [u8; 18] {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..].copy_from_slice(&address.port().to_be_bytes());
    bytes
}

fn unpacked(bytes: &[u8]) -> SocketAddr {
    let ip: [u8; 16] = bytes.get(..16).and_then(|ip| ip.try_into().ok()).unwrap_or_default();
    let port = bytes.get(16..18).and_then(|port| port.try_into().ok()).map_or(0, u16::from_be_bytes);
    SocketAddr::new(Ipv6Addr::from(ip).to_canonical(), port)
}

/// The family of a marked address and its target, IPv4 within IPv6 as IPv4. None for all others.
pub fn marked(address: &Address) -> Option<(Family, SocketAddr)> {
    let bytes = address.bytes();
    let family = u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?);
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    match i32::from(family) {
        libc::AF_INET if bytes.get(8..16)? == MARK => {
            let ip: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some((Family::V4, SocketAddr::new(Ipv4Addr::from(ip).into(), port)))
        }
        libc::AF_INET6 if bytes.get(4..8)? == MARK6 => {
            let ip: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some((Family::V6, SocketAddr::new(Ipv6Addr::from(ip).to_canonical(), port)))
        }
        _ => None,
    }
}

/// An address as a socket of a family shows it, with the mark.
pub fn shown(family: Family, address: SocketAddr) -> Address {
    let port = address.port().to_be_bytes();
    let bytes = match (family, address.ip()) {
        (Family::V4, IpAddr::V4(ip)) => [&[2, 0], &port[..], &ip.octets(), &MARK].concat(),
        (Family::V4, IpAddr::V6(_)) => [&[2, 0], &port[..], &[0; 4], &MARK].concat(),
        (Family::V6, ip) => {
            let ip = match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            [&[10, 0], &port[..], &MARK6, &ip.octets(), &[0; 4]].concat()
        }
    };
    Address::new(&bytes).unwrap_or(Address::NONE)
}

/// The address without its mark, as programs that are not grates see it.
pub fn unmarked(address: &Address) -> Address {
    let Some((family, _)) = marked(address) else { return *address };
    let mark = if family == Family::V4 { 8..16 } else { 4..8 };
    let mut bytes = address.bytes().to_vec();
    bytes[mark].fill(0);
    Address::new(&bytes).unwrap_or(*address)
}

/// The address that something sent from `from` comes from: "any" is this host.
pub fn settled(from: SocketAddr) -> SocketAddr {
    let ip = match from.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, from.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn one_port_is_had_once_and_free_again_when_its_socket_is_gone() {
        let loopback = Loopback::new();
        let first = loopback.bind(Protocol::Tcp, at("0.0.0.0:80"), Sharing::default()).expect("a free port");
        assert_eq!(loopback.bind(Protocol::Tcp, at("127.0.0.1:80"), Sharing::default()).err(), Some(Errno::EADDRINUSE));
        assert_eq!(loopback.bind(Protocol::Tcp, at("[::]:80"), Sharing::default()).err(), Some(Errno::EADDRINUSE));
        assert!(loopback.bind(Protocol::Tcp, at("[::1]:80"), Sharing::default()).is_ok());
        let only = Sharing { only_v6: true, ..Sharing::default() };
        assert!(loopback.bind(Protocol::Tcp, at("[::]:80"), only).is_ok());
        assert!(loopback.bind(Protocol::Udp, at("127.0.0.1:80"), Sharing::default()).is_ok());
        drop(first);
        assert!(loopback.bind(Protocol::Tcp, at("127.0.0.1:80"), Sharing::default()).is_ok());
        assert_eq!(
            loopback.bind(Protocol::Tcp, at("192.0.2.1:80"), Sharing::default()).err(),
            Some(Errno::EADDRNOTAVAIL)
        );
    }

    #[test]
    fn reused_addresses_do_not_listen_twice() {
        let loopback = Loopback::new();
        let reuse = Sharing { address: true, ..Sharing::default() };
        let first = loopback.bind(Protocol::Tcp, at("127.0.0.1:80"), reuse).expect("a free port");
        let second = loopback.bind(Protocol::Tcp, at("127.0.0.1:80"), reuse).expect("a shared port");
        assert_eq!(loopback.listens(&first), Ok(()));
        assert_eq!(loopback.listens(&second), Err(Errno::EADDRINUSE));
        assert_eq!(loopback.bind(Protocol::Tcp, at("127.0.0.1:80"), reuse).err(), Some(Errno::EADDRINUSE));
    }

    #[test]
    fn the_closest_address_is_found_and_ports_are_shared_in_turn() {
        let loopback = Loopback::new();
        let listening = |address, sharing| {
            let bound = loopback.bind(Protocol::Tcp, at(address), sharing).expect("a free port");
            loopback.listens(&bound).expect("nobody else");
            let named = Named { protocol: Protocol::Tcp, family: Family::V6, from: bound.address, to: None };
            bound.set_name(loopback.name(&named));
            bound
        };
        let six = listening("[::]:80", Sharing::default());
        let one = listening("[::1]:81", Sharing::default());
        let found = |to| loopback.find(Protocol::Tcp, at(to));
        assert!(found("127.0.0.1:80").is_some_and(|bound| Arc::ptr_eq(&bound, &six)));
        assert!(found("[::1]:81").is_some_and(|bound| Arc::ptr_eq(&bound, &one)));
        assert!(found("127.0.0.1:81").is_none());
        let share = Sharing { port: true, ..Sharing::default() };
        let (a, b) = (listening("127.0.0.1:82", share), listening("127.0.0.1:82", share));
        let turns: Vec<_> = (0..2).filter_map(|_| found("127.0.0.1:82")).collect();
        assert!(turns.iter().any(|bound| Arc::ptr_eq(bound, &a)) && turns.iter().any(|bound| Arc::ptr_eq(bound, &b)));
    }

    #[test]
    fn names_and_marks_say_what_they_were_made_of() {
        let (mine, others) = (Loopback::new(), Loopback::new());
        for (from, to) in [("127.0.0.1:40000", Some("127.0.0.2:80")), ("[::1]:9", None)] {
            let named = Named { protocol: Protocol::Udp, family: Family::V6, from: at(from), to: to.map(at) };
            assert_eq!(mine.named(&mine.name(&named)), Some(named));
            assert_eq!(others.named(&mine.name(&named)), None);
            assert_eq!(marked(&shown(Family::V6, named.from)), Some((Family::V6, named.from)));
        }
        assert_eq!(marked(&shown(Family::V4, at("127.0.0.1:1"))), Some((Family::V4, at("127.0.0.1:1"))));
        let plain = Address::new(&[2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]).expect("16 bytes");
        assert_eq!(marked(&plain), None);
        assert_eq!(unmarked(&shown(Family::V4, at("127.0.0.1:80"))).bytes(), plain.bytes());
        assert_eq!(unmarked(&shown(Family::V6, at("[::1]:80"))).bytes()[4..8], [0; 4]);
    }

    #[test]
    fn a_port_of_the_kernels_choice_is_ephemeral() {
        let loopback = Loopback::new();
        let ports: Vec<_> = (0..200)
            .map(|_| loopback.bind(Protocol::Tcp, at("127.0.0.1:0"), Sharing::default()).expect("a free port"))
            .collect();
        let mut numbers: Vec<_> = ports.iter().map(|bound| bound.address.port()).collect();
        assert!(numbers.iter().all(|port| EPHEMERAL.contains(port)));
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), ports.len());
    }
}
