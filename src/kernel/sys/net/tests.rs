//! Sockets, seen from a guest.

use lind_abi::Errno;
use lind_abi::layout::{Iovec, Msghdr, Ucred};
use lind_abi::nr::{
    accept, accept4, bind, chdir, close, connect, dup, fchdir, fcntl, getpeername, getsockname, getsockopt, ioctl,
    listen, mkdir, open, pipe, read, recvfrom, recvmsg, sendmsg, sendto, setsockopt, shutdown, socket, socketpair,
    symlink, umask, unlink, write,
};

use crate::root::Walls;
use crate::testing::{World, both_walls, in_world};

const UNIX: i64 = 1;
const INET: i64 = 2;
const STREAM: i64 = 1;
const DGRAM: i64 = 2;
const SOL_SOCKET: i64 = 1;
const CTRUNC: i32 = 8;

/// A unix address: where, and its length.
fn named(w: &World, path: &[u8]) -> (i64, i64) {
    let bytes = [&1_u16.to_le_bytes(), path].concat();
    (w.data(&bytes), i64::try_from(bytes.len()).unwrap())
}

fn name_of(w: &World, call: u32, fd: i64) -> Vec<u8> {
    let (at, len) = (w.buffer(128), w.value(&128_u32));
    w.ok(call, &[fd, at, len]);
    let bytes = w.bytes(at, i64::from(w.load::<u32>(len)));
    assert_eq!(bytes[..2], 1_u16.to_le_bytes());
    bytes[2..].to_vec()
}

fn bound(w: &World, kind: i64, path: &[u8]) -> i64 {
    let fd = w.ok(socket, &[UNIX, kind, 0]);
    let (at, len) = named(w, path);
    w.ok(bind, &[fd, at, len]);
    if kind == STREAM {
        w.ok(listen, &[fd, 5]);
    }
    fd
}

fn connected(w: &World, path: &[u8]) -> lind_abi::Result<i64> {
    let fd = w.ok(socket, &[UNIX, STREAM, 0]);
    let (at, len) = named(w, path);
    w.call(connect, &[fd, at, len]).map(|_| fd)
}

fn pair(w: &World, kind: i64) -> [i64; 2] {
    let at = w.buffer(8);
    w.ok(socketpair, &[UNIX, kind, 0, at]);
    w.load::<[i32; 2]>(at).map(i64::from)
}

fn address(at: i64) -> u32 {
    u32::try_from(at).unwrap()
}

/// A message of one byte with this control buffer.
fn message(w: &World, control: i64, len: usize) -> i64 {
    let iov = w.value(&Iovec { base: address(w.data(b"x")), len: 1 });
    w.value(&Msghdr {
        iov: address(iov),
        iovlen: 1,
        control: address(control),
        controllen: u32::try_from(len).unwrap(),
        ..Msghdr::default()
    })
}

fn rights(fds: &[i64]) -> Vec<u8> {
    let mut bytes =
        [&(16 + 4 * fds.len() as u64).to_le_bytes()[..], &1_u32.to_le_bytes(), &1_u32.to_le_bytes()].concat();
    bytes.extend(fds.iter().flat_map(|&fd| i32::try_from(fd).unwrap().to_le_bytes()));
    bytes
}

fn send_fds(w: &World, to: i64, fds: &[i64]) -> lind_abi::Result<i64> {
    let control = rights(fds);
    let at = w.data(&control);
    w.call(sendmsg, &[to, message(w, at, control.len()), 0])
}

/// The descriptors that come, and msg_flags.
fn receive_fds(w: &World, from: i64, room: usize) -> (Vec<i64>, i32) {
    let control = w.buffer(room.max(1));
    let at = message(w, control, room);
    assert_eq!(w.ok(recvmsg, &[from, at, 0]), 1);
    let got: Msghdr = w.load(at);
    let bytes = w.bytes(control, got.controllen.into());
    if bytes.is_empty() {
        return (Vec::new(), got.flags);
    }
    let len = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    (bytes[16..len].chunks(4).map(|n| i32::from_le_bytes(n.try_into().unwrap()).into()).collect(), got.flags)
}

#[test]
fn unix_names_lead_where_open_leads() {
    both_walls(|w| {
        w.ok(mkdir, &[w.str("/a"), 0o755]);
        w.ok(mkdir, &[w.str("/b"), 0o755]);
        let listener = bound(w, STREAM, b"/a/sock\0");
        assert_eq!(name_of(w, getsockname, listener), b"/a/sock\0");
        w.ok(chdir, &[w.str("/a")]);
        w.ok(symlink, &[w.str("/a/sock"), w.str("/b/link")]);
        for path in
            [&b"sock\0"[..], b"/a/sock", b"../a/sock\0", b"/b/link\0", b"/../../a/./sock\0", b"../b/link\0padding"]
        {
            let client = connected(w, path).unwrap();
            let server = w.ok(accept, &[listener, 0, 0]);
            w.ok(write, &[client, w.data(b"hello"), 5]);
            let text = w.buffer(8);
            assert_eq!(w.ok(read, &[server, text, 8]), 5);
            assert_eq!(name_of(w, getpeername, client), b"/a/sock\0");
            assert_eq!(name_of(w, getsockname, server), b"/a/sock\0");
            assert_eq!(name_of(w, getpeername, server), b"");
            w.ok(close, &[client]);
            w.ok(close, &[server]);
        }
        assert_eq!(connected(w, b"/a/none\0"), Err(Errno::ENOENT));
        assert_eq!(connected(w, b"/none/sock\0"), Err(Errno::ENOENT));
        assert_eq!(connected(w, b"/a/sock/x\0"), Err(Errno::ENOTDIR));
        assert_eq!(connected(w, b"/b\0"), Err(Errno::ECONNREFUSED));
        w.ok(close, &[listener]);
        assert_eq!(connected(w, b"/a/sock\0"), Err(Errno::ECONNREFUSED));
        let fd = w.ok(socket, &[UNIX, STREAM, 0]);
        let (at, len) = named(w, b"/b/link\0");
        assert_eq!(w.err(bind, &[fd, at, len]), Errno::EADDRINUSE);
    });
}

/// The runner's main thread has a descriptor table of its own, and the host's /proc/self is the main thread's.
#[test]
fn names_are_found_by_a_thread_with_its_own_descriptors() {
    both_walls(|w| {
        crate::host::close_own_from(u32::MAX);
        bound(w, STREAM, b"/sock\0");
        connected(w, b"/sock\0").unwrap();
        w.ok(mkdir, &[w.str("/a"), 0o755]);
        w.ok(chdir, &[w.str("/a")]);
        connected(w, b"../sock\0").unwrap();
    });
}

#[test]
fn the_host_is_out_of_reach() {
    both_walls(|w| {
        let (path, link) = (w.outside().join("sock"), w.path("link"));
        let outside = path.clone();
        let _listener = w.host(move || std::os::unix::net::UnixListener::bind(outside).unwrap());
        let target = path.clone();
        w.host(move || std::os::unix::fs::symlink(target, link).unwrap());
        let mut absolute = path.into_os_string().into_encoded_bytes();
        absolute.push(0);
        for path in [&absolute[..], b"/link\0", b"../outside/sock\0", b"/../outside/sock\0"] {
            assert_eq!(connected(w, path), Err(Errno::ENOENT));
        }
        // Nor can a name be made there.
        let fd = w.ok(socket, &[UNIX, STREAM, 0]);
        let (at, len) = named(w, b"../outside/made\0");
        assert_eq!(w.err(bind, &[fd, at, len]), Errno::ENOENT);
        let (made, elsewhere) = (w.outside().join("made"), w.path("../outside/made"));
        assert!(!w.host(move || made.exists() || elsewhere.exists()));
    });
}

#[test]
fn names_tell_sockets_of_the_same_last_part_apart() {
    both_walls(|w| {
        w.ok(mkdir, &[w.str("/a"), 0o755]);
        w.ok(mkdir, &[w.str("/b"), 0o755]);
        let names = [&b"/a/s\0"[..], b"/b/s\0", b"s\0"];
        let fds = names.map(|name| bound(w, DGRAM, name));
        for (fd, name) in fds.into_iter().zip(names) {
            assert_eq!(name_of(w, getsockname, fd), name);
            let (at, len) = named(w, b"/b/s\0");
            w.ok(sendto, &[fd, w.data(b"x"), 1, 0, at, len]);
            let (from, room) = (w.buffer(128), w.value(&128_u32));
            assert_eq!(w.ok(recvfrom, &[fds[1], w.buffer(8), 8, 0, from, room]), 1);
            assert_eq!(w.bytes(from + 2, i64::from(w.load::<u32>(room)) - 2), name);
        }
    });
}

#[test]
fn a_name_has_the_mode_that_umask_leaves() {
    both_walls(|w| {
        w.ok(umask, &[0o027]);
        bound(w, STREAM, b"/sock\0");
        let path = w.path("sock");
        let mode = w.host(move || std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).unwrap()));
        assert_eq!(mode & 0o777, 0o750);
        // And files made later on this thread are not touched by it.
        w.ok(umask, &[0]);
        w.ok(open, &[w.str("/file"), 0o101, 0o666]);
        let path = w.path("file");
        assert_eq!(
            w.host(move || std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).unwrap())) & 0o777,
            0o666
        );
    });
}

#[test]
fn long_and_odd_addresses() {
    both_walls(|w| {
        let fd = w.ok(socket, &[UNIX, STREAM, 0]);
        let longest = [&b"/"[..], &[b'n'; 107]].concat();
        let (at, len) = named(w, &longest);
        w.ok(bind, &[fd, at, len]);
        assert!(name_of(w, getsockname, fd).starts_with(&longest));
        let client = w.ok(socket, &[UNIX, STREAM, 0]);
        w.ok(listen, &[fd, 1]);
        w.ok(connect, &[client, at, len]);
        let client = w.ok(socket, &[UNIX, STREAM, 0]);
        let (at, _) = named(w, &[b'n'; 200]);
        assert_eq!(w.err(connect, &[client, at, 111]), Errno::EINVAL);
        assert_eq!(w.err(connect, &[client, at, 129]), Errno::EINVAL);
        assert_eq!(w.err(connect, &[client, at, -1]), Errno::EINVAL);
        assert_eq!(w.err(connect, &[client, at, 2]), Errno::EINVAL);
        assert_eq!(w.err(connect, &[client, 0x10, 20]), Errno::EFAULT);
        let (at, room) = (w.buffer(8), w.value(&4_u32));
        w.ok(getsockname, &[fd, at, room]);
        assert_eq!(w.bytes(at, 6), [1, 0, b'/', b'n', 0, 0]);
        assert_eq!(w.load::<u32>(room), 2 + 108 + 1);
        assert_eq!(w.err(getsockname, &[fd, at, w.value(&-1_i32)]), Errno::EINVAL);
        assert_eq!(w.err(getsockname, &[fd, 0x10, w.value(&16_u32)]), Errno::EFAULT);
    });
}

/// Names without a file belong to the runner: not the host's, not another runner's.
#[test]
fn abstract_names_belong_to_the_runner() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
    both_walls(|w| {
        let name = format!("lind-test-{}-{:?}", std::process::id(), w.walls);
        let host = SocketAddr::from_abstract_name(&name).unwrap();
        let _theirs = UnixListener::bind_addr(&host).unwrap();
        let guest = [&b"\0"[..], name.as_bytes()].concat();
        assert_eq!(connected(w, &guest), Err(Errno::ECONNREFUSED));
        // The same name is free for guests.
        let listener = bound(w, STREAM, &guest);
        assert_eq!(name_of(w, getsockname, listener), guest);
        assert_eq!(connected(w, &guest[..guest.len() - 1]), Err(Errno::ECONNREFUSED));
        let client = connected(&w.sibling(), &guest).unwrap();
        assert!(client >= 0);
        let name = [name.as_bytes(), b"-guests"].concat();
        bound(w, STREAM, &[b"\0", &name[..]].concat());
        assert!(UnixStream::connect_addr(&SocketAddr::from_abstract_name(&name).unwrap()).is_err());

        let any = w.ok(socket, &[UNIX, DGRAM, 0]);
        let (at, _) = named(w, b"");
        w.ok(bind, &[any, at, 2]);
        let name = name_of(w, getsockname, any);
        assert_eq!((name.len(), name[0]), (6, 0));
        let other = w.ok(socket, &[UNIX, DGRAM, 0]);
        let (at, len) = named(w, &name);
        w.ok(connect, &[other, at, len]);
        assert_eq!(name_of(w, getpeername, other), name);
    });
}

#[test]
fn descriptors_travel() {
    in_world(Walls::Chroot, |w| {
        let [a, b] = pair(w, STREAM);
        let at = w.buffer(8);
        w.ok(pipe, &[at]);
        let [r, wr] = w.load::<[i32; 2]>(at).map(i64::from);
        send_fds(w, a, &[r, wr]).unwrap();
        w.ok(close, &[r]);
        w.ok(close, &[wr]);
        let (got, flags) = receive_fds(w, b, 64);
        assert_eq!((got.len(), flags & CTRUNC), (2, 0));
        w.ok(write, &[got[1], w.data(b"through"), 7]);
        assert_eq!(w.ok(read, &[got[0], w.buffer(8), 8]), 7);
        w.ok(close, &[got[1]]);
        assert_eq!(w.ok(read, &[got[0], w.buffer(8), 8]), 0);
        // Room for one of three.
        let file = w.ok(open, &[w.str("/f"), 0o102, 0o600]);
        send_fds(w, a, &[file, file, file]).unwrap();
        let (got, flags) = receive_fds(w, b, 20);
        assert_eq!((got.len(), flags & CTRUNC), (1, CTRUNC));
        let next = w.ok(dup, &[file]);
        send_fds(w, a, &[file]).unwrap();
        assert_eq!(receive_fds(w, b, 0), (vec![], CTRUNC));
        send_fds(w, a, &[file]).unwrap();
        assert_eq!(w.ok(read, &[b, w.buffer(8), 8]), 1);
        assert_eq!(w.ok(dup, &[file]), next + 1, "nothing was left behind");
        assert_eq!(send_fds(w, a, &[999]), Err(Errno::EBADF));
        assert_eq!(send_fds(w, a, &[file; 253]), Ok(1));
        assert_eq!(send_fds(w, a, &[file; 254]), Err(Errno::EINVAL));
    });
}

#[test]
fn descriptors_without_room_in_the_table_are_closed() {
    in_world(Walls::Chroot, |w| {
        let [a, b] = pair(w, STREAM);
        let file = w.ok(open, &[w.str("/f"), 0o102, 0o600]);
        send_fds(w, a, &[file; 4]).unwrap();
        w.thread.cage.fds.set_limit(u64::try_from(file).unwrap() + 3);
        let (got, flags) = receive_fds(w, b, 64);
        assert_eq!((got, flags & CTRUNC), (vec![file + 1, file + 2], CTRUNC));
        assert_eq!(w.err(socket, &[UNIX, STREAM, 0]), Errno::EMFILE);
        assert_eq!(w.err(socketpair, &[UNIX, STREAM, 0, w.buffer(8)]), Errno::EMFILE);
    });
}

/// A directory that comes by message is readable, but no path starts at it: it may be the host's.
#[test]
fn a_directory_by_message_is_no_way_out() {
    in_world(Walls::Chroot, |w| {
        let [a, b] = pair(w, STREAM);
        let root = w.ok(open, &[w.str("/"), 0o200_000, 0]);
        send_fds(w, a, &[root]).unwrap();
        let (got, _) = receive_fds(w, b, 64);
        w.ok(fchdir, &[root]);
        assert!(w.call(fchdir, &[got[0]]).is_err());
        assert!(w.call(lind_abi::nr::openat, &[got[0], w.str("f"), 0o101, 0o600]).is_err());
    });
}

#[test]
fn messages_are_claims() {
    in_world(Walls::Chroot, |w| {
        let [a, _] = pair(w, DGRAM);
        let before = w.ok(fcntl, &[a, 0, 0]);
        w.ok(close, &[before]);
        let good = Msghdr::default();
        let send = |msg: &Msghdr| w.call(sendmsg, &[a, w.value(msg), 0]);
        assert_eq!(send(&Msghdr { iovlen: 1025, ..good }), Err(Errno::EMSGSIZE));
        assert_eq!(send(&Msghdr { iov: 0x10, iovlen: 1, ..good }), Err(Errno::EFAULT));
        let iov = address(w.value(&Iovec { base: u32::MAX, len: 8 }));
        assert_eq!(send(&Msghdr { iov, iovlen: 1, ..good }), Err(Errno::EFAULT));
        let iov = address(w.value(&Iovec { base: 0, len: 1 << 31 }));
        assert_eq!(send(&Msghdr { iov, iovlen: 1, ..good }), Err(Errno::EINVAL));
        assert_eq!(send(&Msghdr { name: 0x10, namelen: u32::MAX, ..good }), Err(Errno::EINVAL));
        assert_eq!(send(&Msghdr { control: 0x10, controllen: 16, ..good }), Err(Errno::EFAULT));
        assert_eq!(send(&Msghdr { control: 0x10, controllen: u32::MAX, ..good }), Err(Errno::ENOBUFS));
        for len in [0_u64, 15, 4096, u64::MAX] {
            let mut control = rights(&[a]);
            control[..8].copy_from_slice(&len.to_le_bytes());
            let at = address(w.data(&control));
            assert_eq!(send(&Msghdr { control: at, controllen: 20, ..good }), Err(Errno::EINVAL), "{len}");
        }
        let credentials = |pid: u32| {
            let head = [&28_u64.to_le_bytes()[..], &1_u32.to_le_bytes(), &2_u32.to_le_bytes()].concat();
            let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
            [head, pid.to_le_bytes().to_vec(), uid.to_le_bytes().to_vec(), gid.to_le_bytes().to_vec()].concat()
        };
        let at = address(w.data(&credentials(std::process::id())));
        assert_eq!(send(&Msghdr { control: at, controllen: 28, ..good }), Err(Errno::EPERM));
        let at = address(w.data(&credentials(w.thread.cage.id.0)));
        assert_eq!(send(&Msghdr { control: at, controllen: 28, ..good }), Ok(0));
        assert_eq!(w.ok(fcntl, &[a, 0, 0]), before, "no descriptor was left");
    });
}

#[test]
fn a_broken_stream_ends_the_sender() {
    use crate::cage::{Next, Status};
    const NOSIGNAL: i64 = 0x4000;
    in_world(Walls::Chroot, |w| {
        let x = w.data(b"x");
        for (kind, flags, ends) in [(5, 0, false), (DGRAM, 0, false), (STREAM, NOSIGNAL, false), (STREAM, 0, true)] {
            let [a, _] = pair(w, kind);
            w.ok(shutdown, &[a, 1]);
            assert_eq!(w.err(sendto, &[a, x, 1, flags]), Errno::EPIPE);
            assert_eq!(w.err(sendmsg, &[a, message(w, 0, 0), flags]), Errno::EPIPE);
            let next = w.thread.take_next();
            assert_eq!(next, ends.then_some(Next::Exit(Status::signaled(13))), "type {kind}, flags {flags:#x}");
        }
    });
}

#[test]
fn a_peer_is_a_cage() {
    in_world(Walls::Chroot, |w| {
        let [a, _] = pair(w, STREAM);
        let (at, len) = (w.buffer(12), w.value(&12_u32));
        w.ok(getsockopt, &[a, SOL_SOCKET, 17, at, len]);
        assert_eq!(w.load::<Ucred>(at).pid, w.thread.cage.id.0.cast_signed());
        let listener = bound(w, STREAM, b"/sock\0");
        let client = connected(w, b"/sock\0").unwrap();
        w.ok(getsockopt, &[client, SOL_SOCKET, 17, at, len]);
        assert_eq!(w.load::<Ucred>(at).pid, w.thread.cage.id.0.cast_signed());
        let _sibling = w.sibling();
        w.ok(getsockopt, &[client, SOL_SOCKET, 17, at, len]);
        assert_eq!(w.load::<Ucred>(at).pid, 0, "one of two cages: not known which");
        w.ok(close, &[listener]);
    });
}

#[test]
fn options_with_addresses_are_refused() {
    in_world(Walls::Chroot, |w| {
        let fd = w.ok(socket, &[INET, STREAM, 0]);
        let value = w.value(&1_i32);
        w.ok(setsockopt, &[fd, SOL_SOCKET, 2, value, 4]);
        for (level, option) in
            [(1, 26), (1, 50), (1, 51), (1, 52), (1, 76), (6, 31), (6, 35), (0, 64), (0, 1 << 20), (41, 64)]
        {
            assert_eq!(w.err(setsockopt, &[fd, level, option, value, 4]), Errno::ENOPROTOOPT, "{level} {option}");
            assert_eq!(w.err(getsockopt, &[fd, level, option, value, w.value(&4_u32)]), Errno::ENOPROTOOPT);
        }
        assert_eq!(w.err(setsockopt, &[fd, SOL_SOCKET, 2, value, -1]), Errno::EINVAL);
        assert_eq!(w.err(setsockopt, &[fd, SOL_SOCKET, 2, 0x10, 4]), Errno::EFAULT);
        assert_eq!(w.err(getsockopt, &[fd, SOL_SOCKET, 2, 0x10, w.value(&4_u32)]), Errno::EFAULT);
        // A length that would lead out of the guest's memory is only what there is room for.
        let len = w.value(&i32::MAX);
        w.ok(getsockopt, &[fd, SOL_SOCKET, 2, value, len]);
        assert_eq!(w.load::<i32>(len), 4);
    });
}

#[test]
fn interfaces_fit_the_guests_struct() {
    in_world(Walls::Chroot, |w| {
        let fd = w.ok(socket, &[INET, DGRAM, 0]);
        let asked = w.data(&[&b"lo\0"[..], &[0; 29], &[0xee; 32]].concat());
        if w.call(ioctl, &[fd, 0x8913, asked]) == Err(Errno::ENODEV) {
            return;
        }
        assert_ne!(w.load::<u16>(asked + 16) & 8, 0, "IFF_LOOPBACK");
        assert_eq!(w.bytes(asked + 32, 32), [0xee; 32]);
        // How much room it takes, and then one entry less.
        let conf = w.value(&[0_u32; 2]);
        w.ok(ioctl, &[fd, 0x8912, conf]);
        let len = w.load::<u32>(conf);
        assert!(len > 0 && len % 32 == 0);
        let list = w.buffer(4096);
        w.thread.cage.memory.guest.fill(list.cast_unsigned(), 0xee, 4096).unwrap();
        let conf = w.value(&[len - 1, address(list)]);
        w.ok(ioctl, &[fd, 0x8912, conf]);
        assert_eq!(w.load::<u32>(conf), len - 32);
        assert_eq!(w.bytes(list + i64::from(len) - 32, 32), [0xee; 32]);
        assert_eq!(w.err(ioctl, &[fd, 0x8912, w.value(&[u32::MAX, address(list)])]), Errno::EINVAL);
        assert_eq!(w.err(ioctl, &[fd, 0x8912, w.value(&[64_u32, 0x10])]), Errno::EFAULT);
        // Nothing is changed: SIOCSIFFLAGS.
        assert_eq!(w.err(ioctl, &[fd, 0x8914, asked]), Errno::ENOTTY);
    });
}

#[test]
fn families_and_types() {
    in_world(Walls::Chroot, |w| {
        let refused = [
            ([16, 3, 0], Errno::EAFNOSUPPORT),
            ([17, 3, 0], Errno::EAFNOSUPPORT),
            ([40, 1, 0], Errno::EAFNOSUPPORT),
            ([INET, 3, 1], Errno::EPERM),
            ([INET, 10, 3], Errno::EPERM),
            ([INET, 5, 0], Errno::ESOCKTNOSUPPORT),
            ([INET, STREAM, 262], Errno::EPROTONOSUPPORT),
            ([INET, STREAM, 132], Errno::EPROTONOSUPPORT),
            ([INET, 99, 0], Errno::EINVAL),
            ([UNIX, 1 << 20, 0], Errno::EINVAL),
        ];
        for (args, errno) in refused {
            assert_eq!(w.err(socket, &args), errno, "{args:?}");
        }
        let fd = w.ok(socket, &[UNIX, STREAM | 0o2_004_000, 0]);
        assert_eq!(w.ok(fcntl, &[fd, 1]), 1);
        assert_eq!(w.ok(fcntl, &[fd, 3]) & 0o4000, 0o4000);
        assert_eq!(w.err(accept4, &[fd, 0, 0, 1]), Errno::EINVAL);
        assert_eq!(w.err(accept4, &[fd, 0, 0, 0]), Errno::EINVAL);
        assert_eq!(w.err(shutdown, &[fd, 3]), Errno::EINVAL);
        assert_eq!(w.err(shutdown, &[w.ok(socket, &[INET, STREAM, 0]), 2]), Errno::ENOTCONN);
        let file = w.ok(open, &[w.str("/f"), 0o102, 0o600]);
        assert_eq!(w.err(listen, &[file, 1]), Errno::ENOTSOCK);
        w.ok(unlink, &[w.str("/f")]);
    });
}

/// Whatever the arguments are, a call of these ends in a result or an errno, and what was opened can be closed.
#[test]
fn any_arguments_end_in_a_result() {
    use std::os::fd::AsRawFd;

    use lind_abi::nr::{epoll_create1, epoll_ctl, epoll_wait, eventfd2, poll, recvmmsg, select, sendmmsg};
    const NONBLOCK: i64 = 0o4000;
    const DONTWAIT: i64 = 0x40;
    in_world(Walls::Chroot, |w| {
        // A table of this thread's own, so that the lowest free number of the host tells whether all was closed.
        crate::host::close_own_from(u32::MAX);
        let lowest = || rustix::io::dup(w.kernel.root.directory()).unwrap().as_raw_fd();
        w.thread.cage.fds.close_all();
        let before = lowest();
        let mut state = 7_u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        // Nothing here may leave the machine: inet addresses are the loopback's.
        let addresses: [&[u8]; 7] = [
            b"\x01\0/sock\0",
            b"\x01\0\0abstract",
            b"\x01\0",
            b"\x02\0\0\0\x7f\0\0\x01\0\0\0\0\0\0\0\0",
            b"\x02\0\x30\x39\x7f\0\0\x01\0\0\0\0\0\0\0\0",
            b"\0\0garbage",
            b"\xff\xffgarbage garbage",
        ];
        let sizes = [0, 1, 2, 4, 8, 16, 24, 28, 110, 128, 129, 4096, 1 << 20, -1, i64::from(i32::MIN), 1 << 32];
        for round in 0..20_000 {
            let mut pick = |list: &[i64]| list[random(list.len())];
            let fd = pick(&[-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 50]);
            let fd2 = pick(&[-1, 3, 4, 5, 6, 7, 8, 9, 10, 50]);
            let bytes: Vec<u8> =
                (0..64).map(|_| u8::try_from(pick(&[0, 0, 0, 0, 1, 2, 4, 16, 20, 24, 255])).unwrap()).collect();
            let memory = w.data(&bytes);
            let iov = w.value(&Iovec { base: address(memory), len: 8 });
            let control = w.data(&rights(&[fd2.max(0), fd.max(0)]));
            let word = |value: i64| u32::try_from(value & 0xffff_ffff).unwrap();
            let head = w.value(&Msghdr {
                name: word(pick(&[0, memory, 0x10])),
                namelen: word(pick(&sizes)),
                iov: word(pick(&[iov, iov, memory, 0])),
                iovlen: word(pick(&[0, 1, 1, 2, 1024, 1025, -1])),
                control: word(pick(&[0, control, control, memory, 0x10])),
                controllen: word(pick(&[0, 16, 20, 24, 32, -1])),
                flags: 0,
            });
            let at = pick(&[memory, memory, memory, head, 0, 0x10, 0xffff_fff0, -1]);
            let (size, size2) = (pick(&sizes), pick(&sizes));
            let name = addresses[usize::try_from(pick(&[0, 1, 2, 3, 4, 5, 6])).unwrap()];
            let (name, name_len) = (w.data(name), i64::try_from(name.len()).unwrap());
            let len = w.value(&word(size));
            let option = pick(&[2, 3, 4, 7, 8, 9, 16, 17, 20, 59, 61, 1000]);
            let _ = match round % 24 {
                0 => w.call(socket, &[pick(&[1, 2, 10, 16]), pick(&[1, 2, 3, 5, 9]) | NONBLOCK, pick(&[0, 6, 17, -1])]),
                1 => w.call(socketpair, &[1, pick(&[1, 2, 5]) | NONBLOCK, 0, at]),
                2 => w.call(bind, &[fd, name, name_len]),
                3 => w.call(connect, &[fd, name, name_len]),
                4 => w.call(listen, &[fd, size]),
                5 => w.call(accept4, &[fd, at, len, NONBLOCK]),
                6 => w.call(sendto, &[fd, at, size, size2 | DONTWAIT, name, name_len]),
                7 => w.call(recvfrom, &[fd, at, size, size2 | DONTWAIT, at, len]),
                8 | 9 => w.call(sendmsg, &[fd, head, size2 | DONTWAIT]),
                10 | 11 => w.call(recvmsg, &[fd, head, size2 | DONTWAIT]),
                12 => w.call(sendmmsg, &[fd, head, size2, DONTWAIT]),
                13 => w.call(recvmmsg, &[fd, head, size2, DONTWAIT, 0]),
                14 => w.call(getsockname, &[fd, at, len]),
                15 => w.call(setsockopt, &[fd, SOL_SOCKET, option, at, size]),
                16 => w.call(getsockopt, &[fd, pick(&[0, 1, 6, 17, 41, 999]), option, at, len]),
                17 => w.call(poll, &[at, pick(&[0, 1, 8, 1024, 5000, -1]), 0]),
                18 => w.call(select, &[size, at, pick(&[0, memory]), at, w.value(&[0_u64; 2])]),
                19 => w.call(epoll_create1, &[0]),
                20 => w.call(epoll_ctl, &[fd, pick(&[0, 1, 1, 1, 2, 3, 99]), fd2, at]),
                21 => w.call(epoll_wait, &[fd, at, size, 0]),
                22 => w.call(eventfd2, &[word(size).into(), NONBLOCK]),
                _ => w.call(close, &[fd]),
            };
        }
        w.thread.cage.fds.close_all();
        assert_eq!(lowest(), before, "a descriptor of the host was left open");
    });
}
