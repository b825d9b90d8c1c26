//! Socket addresses on their way between guest and host.
//!
//! IPv4 and IPv6 addresses are the same on both sides. Of a unix address
//! - a path leads where it would lead the guest's open(2), and names that come back are those that
//!   were bound;
//! - an abstract name lives in a name space of the runner: the host's name is a random scope and
//!   then the guest's name, or the hash of one that is too long for that. Cages of one runner see
//!   each other's, nobody sees the host's.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use lind_abi::layout::Sockaddr;
use lind_abi::{Errno, In, InOut, Len, Out, Result};
use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::call::Ctx;
use crate::fd::loopback::{marked, unmarked};
use crate::fd::name::{AF_UNIX, Meaning, PATH, UNIX, meaning, to_guest, unix};
use crate::fd::{File, FileRef, Kind};
use crate::host::net::Address;
use crate::host::place;
use crate::procfs::Reached;
use crate::root::table::Dir;
use crate::root::{Change, Last, Walls};
use rustix::fs::FileType;

/// Reads an address, once. A NULL pointer or length 0 gives an empty address.
pub(super) fn load(cx: &Ctx<'_>, from: In<Sockaddr>, len: u32) -> Result<Address> {
    if from.is_null() || len == 0 {
        return Ok(Address::NONE);
    }
    let mut bytes = [0; size_of::<Sockaddr>()];
    let bytes = bytes.get_mut(..usize::try_from(len).map_err(|_| Errno::EINVAL)?).ok_or(Errno::EINVAL)?;
    cx.copy_in(from.cast(), bytes)?;
    Address::new(bytes)
}

/// The length of an address argument: an int.
pub(super) fn length(len: Len) -> Result<u32> {
    let len = u32::try_from(len.0 & u64::from(u32::MAX)).map_err(|_| Errno::EINVAL)?;
    if len as usize > size_of::<Sockaddr>() { Err(Errno::EINVAL) } else { Ok(len) }
}

/// Hands an address to the guest: as much as fits, and its length.
pub(super) fn store(cx: &Ctx<'_>, address: &Address, to: Out<Sockaddr>, len: InOut<u32>) -> Result<()> {
    let room: u32 = cx.load(cx.reading(len))?;
    if i32::try_from(room).is_err() {
        return Err(Errno::EINVAL);
    }
    let mut address = to_guest(cx.kernel, address);
    // Grates need to know; to programs it would be a flow of IPv6.
    if marked(&address).is_some() && !cx.kernel.cages.get(to.cage).is_some_and(|cage| cx.kernel.engine().serves(&cage))
    {
        address = unmarked(&address);
    }
    let bytes = address.bytes();
    let fits = bytes.len().min(usize::try_from(room).map_err(|_| Errno::EINVAL)?);
    cx.copy_out(to.cast(), &bytes[..fits])?;
    cx.store(cx.writing(len), &address.len())
}

/// As [`store`], where the guest may not want to know.
pub(super) fn store_if(cx: &Ctx<'_>, address: &Address, to: Out<Sockaddr>, len: InOut<u32>) -> Result<()> {
    if to.is_null() { Ok(()) } else { store(cx, address, to, len) }
}

/// Runs `act` with the host's spelling of an address. A path is resolved for the acting cage, even
/// if it was read from another cage's memory, as for calls on files that have no directory
/// argument.
pub(super) fn reach<T>(cx: &Ctx<'_>, address: &Address, mut act: impl FnMut(&Address) -> Result<T>) -> Result<T> {
    match meaning(address) {
        Meaning::Host => cx.blocking(|| act(address)),
        Meaning::Abstract(name) => {
            let address = abstract_name(cx, name)?;
            cx.blocking(|| act(&address))
        }
        Meaning::Path(path) => {
            let root = &cx.kernel.root;
            let mut at = |dir: BorrowedFd<'_>, path: &CStr| {
                let address = unix(path.to_bytes())?;
                place::at(dir, 0, || cx.blocking(|| act(&address)))
            };
            let found = cx.act(
                cx.here(),
                &path,
                Last::Follow,
                |dir, path| match root.walls() {
                    Walls::Chroot if !dir.walked => at(dir.fd, path).map(Found::Done),
                    _ => {
                        let object = root.open(dir, path, OFlags::PATH.bits(), 0)?;
                        root.again(object.as_fd(), &mut at).map(Found::Done)
                    }
                },
                |reached| match reached {
                    Reached::File(file) => Ok(Found::File(file)),
                    Reached::Place(_) => Err(Errno::ECONNREFUSED),
                    Reached::Missing(..) | Reached::Host(..) => Err(Errno::ENOENT),
                },
            )?;
            match found {
                Found::Done(result) => Ok(result),
                Found::File(file) => root.again(file.host(), at),
            }
        }
    }
}

/// As [`reach`], for sending. A stream takes no address, and fails for any.
pub(super) fn reach_to_send<T>(
    cx: &Ctx<'_>,
    socket: BorrowedFd<'_>,
    address: &Address,
    mut act: impl FnMut(&Address) -> Result<T>,
) -> Result<T> {
    if matches!(meaning(address), Meaning::Host) || !is_unix_stream(socket) {
        return reach(cx, address, act);
    }
    cx.blocking(|| act(address))
}

fn is_unix_stream(socket: BorrowedFd<'_>) -> bool {
    sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX) && sockopt::socket_type(socket) == Ok(SocketType::STREAM)
}

/// The result of a look-up.
enum Found<T> {
    /// The host has acted on it.
    Done(T),
    /// It led to an open file, by /proc/self/fd.
    File(FileRef),
}

/// Runs `act`, which makes a socket's name, with the host's spelling of an address. Directory and
/// umask are the acting cage's.
pub(super) fn make(cx: &Ctx<'_>, socket: &File, address: &Address, act: impl Fn(&Address) -> Result<()>) -> Result<()> {
    let path = match meaning(address) {
        Meaning::Host if address.bytes() == AF_UNIX => return any_abstract_name(cx, act),
        Meaning::Host => return act(address),
        Meaning::Abstract(name) => {
            let host = abstract_name(cx, name)?;
            let kept = host.bytes().get(PATH + 1..).and_then(|host| cx.kernel.sockets.keep(host, name));
            act(&host)?;
            if let (Kind::Socket(socket), Some(kept)) = (&socket.kind, kept) {
                let _ = socket.bound.set(kept);
            }
            return Ok(());
        }
        Meaning::Path(path) => path,
    };
    let make_at = |start: Dir<'_>, found: &CStr| {
        cx.kernel
            .root
            .parent(start, found, Change::Make, |dir, name| make_in(cx, (socket, address, &path), (dir, name), &act))
    };
    if cx.cage.root.get().is_none() && !cx.cage.confined.is() {
        return make_at(cx.cage.cwd.load().dir(), &path);
    }
    cx.act(cx.here(), &path, Last::Name, make_at, |_| Err(Errno::EACCES))
}

/// As [`make`], by the name that was found in a directory. Where the host finds names itself,
/// sockets have the names that guests gave them; one that a walk has found is told from those.
fn make_in(
    cx: &Ctx<'_>,
    (socket, address, path): (&File, &Address, &CStr),
    (dir, name): (Dir<'_>, &CStr),
    act: impl Fn(&Address) -> Result<()>,
) -> Result<()> {
    cx.permit_name(dir, name, Change::Make, FileType::Socket)?;
    let umask = cx.cage.umask.load(Ordering::Relaxed);
    let by_host = cx.kernel.root.walls() == Walls::Chroot;
    if by_host && !dir.walked {
        return place::at(dir.fd, umask, || act(address));
    }
    let name = [if by_host { &b"././"[..] } else { b"" }, name.to_bytes()].concat();
    let (host, guest) = cx.kernel.sockets.add(&name, path.to_bytes(), UNIX - PATH - 1);
    place::at(dir.fd, umask, || act(&unix(&host)?))?;
    if let Kind::Socket(socket) = &socket.kind {
        let _ = socket.bound.set(guest);
    }
    Ok(())
}

fn abstract_name(cx: &Ctx<'_>, name: &[u8]) -> Result<Address> {
    if PATH + 1 + name.len() > UNIX {
        return Err(Errno::EINVAL);
    }
    let name = cx.kernel.sockets.abstract_name(name, UNIX - PATH - 1);
    Address::new(&[&AF_UNIX[..], &[0], &name].concat())
}

/// unix(7), autobind: an abstract name of five hexadecimal digits that nobody has.
fn any_abstract_name(cx: &Ctx<'_>, act: impl Fn(&Address) -> Result<()>) -> Result<()> {
    const NAMES: u32 = 1 << 20;
    let mut start = [0; 4];
    let _ = rustix::rand::getrandom(&mut start, rustix::rand::GetRandomFlags::empty());
    let start = u32::from_le_bytes(start);
    for i in 0..NAMES {
        let name = format!("{:05x}", start.wrapping_add(i) % NAMES);
        match act(&abstract_name(cx, name.as_bytes())?) {
            Err(Errno::EADDRINUSE) => {}
            result => return result,
        }
    }
    Err(Errno::ENOSPC)
}
