//! Texts about sockets: the files of /proc/net.
//!
//! They show sockets that processes visible to the caller have open, and nothing else: no sockets
//! of the host, whose interfaces, routes and traffic are not known here, and none that were handed
//! in. Only the columns that netstat(8) and lsof(8) look for are filled in.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use lind_abi::Result;
use rustix::net::{AddressFamily, SocketAddrAny, SocketType, sockopt};

use super::process::LONGEST;
use super::{Subject, seen};
use crate::fd::loopback::{self, Family, marked};
use crate::fd::name::socket_path;
use crate::fd::{File, FileRef, Kind};
use crate::host::{self, net::Address};

/// A socket that a process has open.
struct Found {
    file: FileRef,
    /// The owner's user id.
    user: u32,
    inode: u64,
}

/// The sockets of a family and type, each once.
fn sockets(subject: &Subject<'_>, wanted: impl Fn(AddressFamily, SocketType) -> bool) -> Vec<Found> {
    let cx = subject.cx;
    let mut found = BTreeMap::new();
    for cage in cx.kernel.cages.all().into_iter().filter(|cage| seen(cx, cage.id).is_some()) {
        let user = cage.settings().credentials.uid[1];
        for file in cage.fds.open_in(0, u32::MAX).into_iter().filter_map(|fd| cage.fds.get(fd).ok()) {
            if !matches!(file.kind, Kind::Socket(_)) {
                continue;
            }
            let (family, kind) = (shown_family(&file), sockopt::socket_type(file.host()));
            let (Ok(family), Ok(kind), Ok(stat)) = (family, kind, rustix::fs::fstat(file.host())) else { continue };
            if wanted(family, kind) {
                found.entry(stat.st_ino).or_insert(Found { file, user, inode: stat.st_ino });
            }
        }
    }
    found.into_values().collect()
}

/// The family that the socket's program made it with.
fn shown_family(file: &File) -> rustix::io::Result<AddressFamily> {
    match loopback::private(file).map(|private| private.family) {
        Some(Family::V4) => Ok(FOUR),
        Some(Family::V6) => Ok(SIX),
        None => sockopt::socket_domain(file.host()),
    }
}

/// Adds lines to a heading, as long as there is room.
fn table<T>(heading: &str, items: Vec<T>, line: impl Fn(&mut Vec<u8>, usize, T)) -> Vec<u8> {
    let mut text = heading.as_bytes().to_vec();
    for (number, item) in items.into_iter().enumerate() {
        if text.len() as u64 > LONGEST {
            break;
        }
        line(&mut text, number, item);
        text.push(b'\n');
    }
    text
}

const STREAM: SocketType = SocketType::STREAM;
const DATAGRAM: SocketType = SocketType::DGRAM;
const FOUR: AddressFamily = AddressFamily::INET;
const SIX: AddressFamily = AddressFamily::INET6;

pub(super) fn tcp(subject: &Subject<'_>) -> Result<Vec<u8>> {
    internet(subject, FOUR, STREAM)
}

pub(super) fn tcp6(subject: &Subject<'_>) -> Result<Vec<u8>> {
    internet(subject, SIX, STREAM)
}

pub(super) fn udp(subject: &Subject<'_>) -> Result<Vec<u8>> {
    internet(subject, FOUR, DATAGRAM)
}

pub(super) fn udp6(subject: &Subject<'_>) -> Result<Vec<u8>> {
    internet(subject, SIX, DATAGRAM)
}

pub(super) fn raw(subject: &Subject<'_>) -> Result<Vec<u8>> {
    internet(subject, FOUR, SocketType::RAW)
}

pub(super) fn raw6(subject: &Subject<'_>) -> Result<Vec<u8>> {
    internet(subject, SIX, SocketType::RAW)
}

/// Sockets without a port are not in these lists.
fn internet(subject: &Subject<'_>, family: AddressFamily, kind: SocketType) -> Result<Vec<u8>> {
    let mut heading = match family {
        FOUR => "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
        _ => {
            "  sl  local_address                         remote_address                        st tx_queue rx_queue tr \
             tm->when retrnsmt   uid  timeout inode"
        }
    }
    .to_owned();
    heading.push_str(if kind == STREAM { "\n" } else { " ref pointer drops\n" });
    let mut found = sockets(subject, |its, of| its == family && of == kind);
    found.retain(|found| local(subject, &found.file).is_some_and(|local| local.port() != 0));
    let line = |text: &mut Vec<u8>, number, Found { file, user, inode }: Found| {
        let socket = file.host();
        let none = if family == FOUR { SocketAddr::from(([0; 4], 0)) } else { SocketAddr::from(([0; 16], 0)) };
        let (own, peer) = (local(subject, &file).unwrap_or(none), peer(subject, &file));
        let state = state(&file, kind, peer.is_some());
        let waiting = if state == LISTENS { 0 } else { rustix::io::ioctl_fionread(socket).unwrap_or(0) };
        let (own, peer) = (spell(own), spell(peer.unwrap_or(none)));
        let row = format!(
            "{number:4}: {own} {peer} {state:02X} {:08X}:{waiting:08X} 00:00000000 00000000 {user:5}        0 {inode} 2 {:016x}",
            0, 0
        );
        text.extend(row.into_bytes());
        text.extend(if kind == STREAM { &b" 100 0 0 10 0"[..] } else { b" 0" });
    };
    Ok(table(&heading, found, line))
}

/// From include/net/tcp_states.h.
const ESTABLISHED: u8 = 1;
const CLOSED: u8 = 7;
const LISTENS: u8 = 10;

fn state(file: &File, kind: SocketType, connected: bool) -> u8 {
    let socket = file.host();
    match kind {
        STREAM if connected && loopback::private(file).is_some() => ESTABLISHED,
        STREAM if loopback::private(file).is_some() && sockopt::socket_acceptconn(socket) == Ok(true) => LISTENS,
        STREAM => host::net::tcp_state(socket).unwrap_or(CLOSED),
        _ if connected => ESTABLISHED,
        _ => CLOSED,
    }
}

fn local(subject: &Subject<'_>, file: &File) -> Option<SocketAddr> {
    match loopback::name(subject.cx.kernel, file) {
        Some(own) => shown(own),
        None => rustix::net::getsockname(file.host()).ok().and_then(inet),
    }
}

fn peer(subject: &Subject<'_>, file: &File) -> Option<SocketAddr> {
    match loopback::peer(subject.cx.kernel, file) {
        Some(peer) => shown(peer),
        None => rustix::net::getpeername(file.host()).ok().flatten().and_then(inet),
    }
}

fn shown(address: Result<Address>) -> Option<SocketAddr> {
    let (family, address) = marked(&address.ok()?)?;
    match (family, address.ip()) {
        (Family::V6, IpAddr::V4(ip)) => Some(SocketAddr::new(ip.to_ipv6_mapped().into(), address.port())),
        _ => Some(address),
    }
}

fn inet(address: SocketAddrAny) -> Option<SocketAddr> {
    SocketAddr::try_from(address).ok()
}

/// Addresses are written as words of the machine, with the bytes in network order.
fn spell(address: SocketAddr) -> String {
    let words = |bytes: &[u8]| -> String {
        let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(std::array::from_fn(|i| word[i])));
        words.map(|word| format!("{word:08X}")).collect()
    };
    let ip = match address {
        SocketAddr::V4(address) => words(&address.ip().octets()),
        SocketAddr::V6(address) => words(&address.ip().octets()),
    };
    format!("{ip}:{:04X}", address.port())
}

/// /proc/net/unix; states are `ss_state` of include/linux/net.h.
pub(super) fn unix(subject: &Subject<'_>) -> Result<Vec<u8>> {
    const UNCONNECTED: u8 = 1;
    const CONNECTED: u8 = 3;
    const ACCEPTS: u32 = 1 << 16;
    let line = |text: &mut Vec<u8>, _, Found { file, inode, .. }: Found| {
        let socket = file.host();
        let kind = sockopt::socket_type(socket).map_or(0, rustix::net::SocketType::as_raw);
        let listens = sockopt::socket_acceptconn(socket).unwrap_or(false);
        let connected = host::net::peer(socket).is_ok();
        let (flags, state) = (if listens { ACCEPTS } else { 0 }, if connected { CONNECTED } else { UNCONNECTED });
        let row = format!("{:016x}: 00000002 00000000 {flags:08X} {kind:04X} {state:02X} {inode:5}", 0);
        text.extend(row.into_bytes());
        if let Some(path) = socket_path(subject.cx.kernel, &file) {
            text.push(b' ');
            // An abstract name begins with a NUL, and may have more of them.
            text.extend(path.into_iter().map(|byte| if byte == 0 { b'@' } else { byte }));
        }
    };
    let found = sockets(subject, |family, _| family == AddressFamily::UNIX);
    Ok(table("Num       RefCount Protocol Flags    Type St Inode Path\n", found, line))
}

/// The one interface that every network has. Traffic is counted nowhere.
pub(super) fn dev(_: &Subject<'_>) -> Result<Vec<u8>> {
    let zeroes = "       0       0    0    0    0     0          0         0";
    let text = format!(
        "Inter-|   Receive                                                |  Transmit\n \
         face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
         lo:{zeroes} {zeroes}\n"
    );
    Ok(text.into_bytes())
}

pub(super) fn sockstat(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let count = |wanted: &dyn Fn(AddressFamily, SocketType) -> bool| sockets(subject, wanted).len();
    let mut text = format!("sockets: used {}\n", count(&|_, _| true));
    let (tcp, udp, raw) = (
        count(&|family, kind| family == FOUR && kind == STREAM),
        count(&|family, kind| family == FOUR && kind == DATAGRAM),
        count(&|family, kind| family == FOUR && kind == SocketType::RAW),
    );
    let _ = write!(
        text,
        "TCP: inuse {tcp} orphan 0 tw 0 alloc {tcp} mem 0\nUDP: inuse {udp} mem 0\nUDPLITE: inuse 0\nRAW: inuse {raw}\nFRAG: inuse 0 memory 0\n"
    );
    Ok(text.into_bytes())
}
