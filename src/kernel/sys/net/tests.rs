//! Sockets, seen from a guest.

mod messages;
mod names;

use lind_abi::Errno;
use lind_abi::layout::{Iovec, Msghdr};
use lind_abi::nr::{
    accept4, bind, close, connect, fcntl, getsockname, getsockopt, ioctl, listen, open, recvfrom, recvmsg, sendmsg,
    sendto, setsockopt, shutdown, socket, socketpair, unlink,
};

use crate::root::Walls;
use crate::testing::in_world;
use messages::rights;

const UNIX: i64 = 1;
const INET: i64 = 2;
const STREAM: i64 = 1;
const DGRAM: i64 = 2;
const SOL_SOCKET: i64 = 1;
const CTRUNC: i32 = 8;

fn address(at: i64) -> u32 {
    u32::try_from(at).unwrap()
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

/// A call of these ends in a result or an errno, whatever its arguments are, and its new
/// descriptors can be closed.
#[test]
fn any_arguments_end_in_a_result() {
    use std::os::fd::AsRawFd;

    use lind_abi::nr::{epoll_create1, epoll_ctl, epoll_wait, eventfd2, poll, recvmmsg, select, sendmmsg};
    const NONBLOCK: i64 = 0o4000;
    const DONTWAIT: i64 = 0x40;
    in_world(Walls::Chroot, |w| {
        // A table of this thread's own, so that the lowest free number of the host shows whether
        // all was closed.
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
