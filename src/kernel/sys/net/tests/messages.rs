//! Tests of messages: their contents and their senders.

use lind_abi::Errno;
use lind_abi::layout::{Iovec, Msghdr, Ucred};
use lind_abi::nr::{
    close, dup, fchdir, fcntl, getsockopt, open, pipe, read, recvmsg, sendmsg, sendto, shutdown, socket, socketpair,
    write,
};

use super::names::{bound, connected};
use super::{CTRUNC, DGRAM, SOL_SOCKET, STREAM, UNIX, address};
use crate::root::Walls;
use crate::testing::{World, in_world};

fn pair(w: &World, kind: i64) -> [i64; 2] {
    let at = w.buffer(8);
    w.ok(socketpair, &[UNIX, kind, 0, at]);
    w.load::<[i32; 2]>(at).map(i64::from)
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

pub fn rights(fds: &[i64]) -> Vec<u8> {
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
        // To the host these are the root, which a receiver outside could list.
        for directory in ["/proc", "/proc/self/fd", "/dev"] {
            let directory = w.ok(open, &[w.str(directory), 0, 0]);
            assert_eq!(w.err(read, &[directory, w.buffer(8), 8]), Errno::EISDIR);
            assert_eq!(send_fds(w, a, &[file, directory]), Err(Errno::EPERM));
            w.ok(close, &[directory]);
        }
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
        assert_eq!(w.load::<Ucred>(at).pid, w.thread.cage.id.0.cast_signed(), "also as one of two");
        w.ok(close, &[listener]);
    });
}
