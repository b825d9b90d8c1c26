//! Names of unix sockets.

use std::time::{Duration, Instant};

use lind_abi::Errno;
use lind_abi::nr::{
    accept, bind, chdir, close, connect, getpeername, getsockname, listen, mkdir, open, read, recvfrom, sendto, socket,
    symlink, umask, write,
};

use super::{DGRAM, STREAM, UNIX};
use crate::testing::{World, both_walls};

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

pub fn bound(w: &World, kind: i64, path: &[u8]) -> i64 {
    let fd = w.ok(socket, &[UNIX, kind, 0]);
    let (at, len) = named(w, path);
    w.ok(bind, &[fd, at, len]);
    if kind == STREAM {
        w.ok(listen, &[fd, 5]);
    }
    fd
}

pub fn connected(w: &World, path: &[u8]) -> lind_abi::Result<i64> {
    let fd = w.ok(socket, &[UNIX, STREAM, 0]);
    let (at, len) = named(w, path);
    w.call(connect, &[fd, at, len]).map(|_| fd)
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
        // A process that another test is about to make has a copy for a moment.
        let start = Instant::now();
        let mut after = connected(w, b"/a/sock\0");
        while after.is_ok() && start.elapsed() < Duration::from_secs(10) {
            after = connected(w, b"/a/sock\0");
        }
        assert_eq!(after, Err(Errno::ECONNREFUSED));
        let fd = w.ok(socket, &[UNIX, STREAM, 0]);
        let (at, len) = named(w, b"/b/link\0");
        assert_eq!(w.err(bind, &[fd, at, len]), Errno::EADDRINUSE);
    });
}

/// The host's /proc/self is the main thread's, which may have another descriptor table than the one
/// that asks.
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

/// The hash of a long name is not a name that a guest could give.
#[test]
fn long_abstract_names_meet_no_others() {
    let names = crate::fd::SocketNames::new();
    let long = [b'n'; 107];
    let host = names.abstract_name(&long, 107);
    assert_eq!(host.len(), 40);
    assert_eq!(names.guest_abstract(&host), Some(Vec::new()), "nobody has it");
    let kept = names.keep(&host, &long).unwrap();
    assert_eq!(kept[1..], long);
    assert_eq!(names.guest_abstract(&host).unwrap(), *kept);
    let again = names.keep(&host, &long).unwrap();
    drop(kept);
    assert_eq!(names.guest_abstract(&host).unwrap(), *again);
    drop(again);
    assert_eq!(names.guest_abstract(&host), Some(Vec::new()));
    for length in 0..=99 {
        let name = names.abstract_name(&host[..length.min(40)], 107);
        assert_ne!(name, host);
        assert!(names.keep(&name, &host).is_none());
    }
    let other = crate::fd::SocketNames::new();
    assert_eq!(other.guest_abstract(&host), None);
    assert_ne!(other.abstract_name(&long, 107), host);
}
