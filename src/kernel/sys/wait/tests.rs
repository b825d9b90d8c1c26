//! Waiting, seen from a guest.

use lind_abi::Errno;
use lind_abi::layout::{EpollEvent, Pollfd, Timespec};
use lind_abi::nr::{
    close, close_range, dup, epoll_create, epoll_create1, epoll_ctl, epoll_wait, eventfd, fcntl, pipe, poll, ppoll,
    read, select, write,
};

use crate::root::Walls;
use crate::testing::{World, in_world};

const POLLIN: i16 = 1;
const POLLOUT: i16 = 4;
const POLLNVAL: i16 = 32;
const ADD: i64 = 1;
const DEL: i64 = 2;
const MOD: i64 = 3;

fn pipe_of(w: &World) -> [i64; 2] {
    let at = w.buffer(8);
    w.ok(pipe, &[at]);
    w.load::<[i32; 2]>(at).map(i64::from)
}

fn pollfd(fd: i64, events: i16) -> Pollfd {
    Pollfd { fd: i32::try_from(fd).unwrap(), events, revents: -1 }
}

fn event(w: &World, events: u32, data: u64) -> i64 {
    w.value(&EpollEvent { events, data })
}

/// The events that epoll_wait reports at once.
fn ready(w: &World, ep: i64) -> Vec<(u32, u64)> {
    let at = w.buffer(8 * size_of::<EpollEvent>());
    let count = w.ok(epoll_wait, &[ep, at, 8, 0]);
    (0..count).map(|i| w.load::<EpollEvent>(at + i * 12)).map(|event| (event.events, event.data)).collect()
}

#[test]
fn poll_knows_guest_numbers() {
    in_world(Walls::Chroot, |w| {
        let [r, wr] = pipe_of(w);
        let high = w.ok(fcntl, &[r, 0, 900]);
        let at = w.buffer(4 * 8);
        let fds = [pollfd(high, POLLIN), pollfd(wr, POLLOUT), pollfd(-1, POLLIN), pollfd(700, POLLIN)];
        for (i, fd) in fds.iter().enumerate() {
            w.thread.cage.memory.guest.store(at.cast_unsigned() + i as u64 * 8, fd).unwrap();
        }
        assert_eq!(w.ok(poll, &[at, 4, -1]), 2);
        let revents = [0, 1, 2, 3].map(|i| w.load::<Pollfd>(at + i * 8).revents);
        assert_eq!(revents, [0, POLLOUT, 0, POLLNVAL]);
        assert_eq!(w.ok(poll, &[0, 0, 1]), 0);
        // The same, one at a time.
        for (fd, count, revents) in [(high, 0, 0), (wr, 1, POLLOUT), (-1, 0, 0), (700, 1, POLLNVAL)] {
            let one = w.value(&pollfd(fd, POLLIN | POLLOUT));
            assert_eq!(w.ok(poll, &[one, 1, 0]), count, "{fd}");
            assert_eq!(w.load::<Pollfd>(one).revents, revents, "{fd}");
        }
        let many: Vec<u8> =
            (0..1000).flat_map(|_| [wr.to_le_bytes()[..4].to_vec(), vec![4, 0, 0, 0]].concat()).collect();
        let many = w.data(&many);
        assert_eq!(w.ok(poll, &[many, 1000, -1]), 1000);
        assert_eq!(w.load::<Pollfd>(many + 999 * 8).revents, POLLOUT);
        assert_eq!(w.err(poll, &[at, 1 << 31, 0]), Errno::EINVAL);
        assert_eq!(w.err(poll, &[0x10, 1, 0]), Errno::EFAULT);
        assert_eq!(w.err(poll, &[-8, 1, 0]), Errno::EFAULT);
    });
}

#[test]
fn times_are_claims() {
    in_world(Walls::Chroot, |w| {
        for (sec, nsec) in [(-1, 0), (0, 1_000_000_000), (0, -1)] {
            let time = w.value(&Timespec { sec, nsec });
            assert_eq!(w.err(ppoll, &[0, 0, time, 0, 0]), Errno::EINVAL);
        }
        // The padding of tv_nsec is anything.
        let time = w.value(&Timespec { sec: 0, nsec: -1 << 32 });
        assert_eq!(w.ok(ppoll, &[0, 0, time, 0, 0]), 0);
        let time = w.value(&Timespec { sec: i64::MAX, nsec: 999_999_999 });
        let [_, wr] = pipe_of(w);
        let fds = w.value(&pollfd(wr, POLLOUT));
        assert_eq!(w.ok(ppoll, &[fds, 1, time, 0, 0]), 1);
        assert!(w.load::<Timespec>(time).sec > 1 << 60);
        assert_eq!(w.err(ppoll, &[fds, 1, time, time, 4]), Errno::EINVAL);
    });
}

#[test]
fn a_wait_has_its_mask_and_returns_the_old_one() {
    use std::sync::atomic::Ordering;
    in_world(Walls::Chroot, |w| {
        w.thread.mask.store(7, Ordering::Relaxed);
        let set = w.value(&u64::MAX);
        let time = w.value(&Timespec { sec: 0, nsec: 1 });
        w.ok(ppoll, &[0, 0, time, set, 8]);
        assert_eq!(w.thread.mask.load(Ordering::Relaxed), 7);
    });
}

#[test]
fn select_answers_for_every_number_of_a_file() {
    in_world(Walls::Chroot, |w| {
        let [r, wr] = pipe_of(w);
        let copy = w.ok(fcntl, &[r, 0, 300]);
        let text = w.data(b"x");
        w.ok(write, &[wr, text, 1]);
        let set = |fds: &[i64]| {
            let mut bytes = [0_u8; 128];
            for fd in fds {
                bytes[usize::try_from(fd / 8).unwrap()] |= 1 << (fd % 8);
            }
            bytes
        };
        let (read_set, write_set) = (w.data(&set(&[r, copy])), w.data(&set(&[wr])));
        assert_eq!(w.ok(select, &[copy + 1, read_set, write_set, 0, 0]), 3);
        assert_eq!(w.bytes(read_set, 128), set(&[r, copy]));
        // A closed number is an error, and the sets stay.
        w.ok(close, &[copy]);
        assert_eq!(w.err(select, &[copy + 1, read_set, 0, 0, 0]), Errno::EBADF);
        assert_eq!(w.bytes(read_set, 128), set(&[r, copy]));
        assert_eq!(w.err(select, &[-1, 0, 0, 0, 0]), Errno::EINVAL);
        assert_eq!(w.err(select, &[64, 0x10, 0, 0, 0]), Errno::EFAULT);
        // More than any table has, in memory that ends before.
        assert_eq!(w.err(select, &[i64::from(i32::MAX), 0xffff_0000 - 64, 0, 0, 0]), Errno::EFAULT);
        let now = w.value(&[0_i64; 2]);
        let empty = w.data(&[0; 128]);
        assert_eq!(w.ok(select, &[1024, empty, empty, empty, now]), 0);
    });
}

#[test]
fn epoll_knows_numbers_and_files() {
    in_world(Walls::Chroot, |w| {
        let ep = w.ok(epoll_create1, &[0]);
        let [r, wr] = pipe_of(w);
        let copy = w.ok(dup, &[r]);
        w.ok(epoll_ctl, &[ep, ADD, r, event(w, 1, 7)]);
        w.ok(epoll_ctl, &[ep, ADD, copy, event(w, 1, 8)]);
        assert_eq!(w.err(epoll_ctl, &[ep, ADD, copy, event(w, 1, 8)]), Errno::EEXIST);
        w.ok(write, &[wr, w.data(b"x"), 1]);
        let mut both = ready(w, ep);
        both.sort_unstable();
        assert_eq!(both, [(1, 7), (1, 8)]);
        // The first number goes; its registration stays with the file, as on Linux.
        w.ok(close, &[r]);
        assert_eq!(ready(w, ep).len(), 2);
        assert_eq!(w.err(epoll_ctl, &[ep, MOD, r, event(w, 1, 9)]), Errno::EBADF);
        w.ok(epoll_ctl, &[ep, DEL, copy, 0]);
        assert_eq!(ready(w, ep), [(1, 7)]);
        // Another file under the first number is a registration of its own.
        assert_eq!(w.ok(eventfd, &[1]), r);
        assert_eq!(w.err(epoll_ctl, &[ep, DEL, r, 0]), Errno::ENOENT);
        w.ok(epoll_ctl, &[ep, ADD, r, event(w, 1, 10)]);
        assert_eq!(ready(w, ep).len(), 2);
        // With its last number the file leaves.
        w.ok(close, &[copy]);
        assert_eq!(ready(w, ep), [(1, 10)]);
        w.ok(close, &[r]);
        assert_eq!(ready(w, ep), []);
    });
}

/// A registration must not keep the write end of a pipe open.
#[test]
fn what_epoll_watches_still_closes() {
    in_world(Walls::Chroot, |w| {
        let ep = w.ok(epoll_create1, &[0]);
        let [r, wr] = pipe_of(w);
        let copy = w.ok(dup, &[wr]);
        w.ok(epoll_ctl, &[ep, ADD, wr, event(w, 4, 1)]);
        w.ok(epoll_ctl, &[ep, ADD, copy, event(w, 4, 2)]);
        w.ok(close, &[wr]);
        w.ok(close, &[copy]);
        assert_eq!(w.ok(read, &[r, w.buffer(8), 8]), 0);
        assert_eq!(ready(w, ep), []);
    });
}

#[test]
fn one_file_has_a_bounded_number_of_registrations() {
    in_world(Walls::Chroot, |w| {
        let fd = w.ok(eventfd, &[1]);
        for _ in 0..3 {
            let ep = w.ok(epoll_create, &[1]);
            w.ok(epoll_ctl, &[ep, ADD, fd, event(w, 1, 0)]);
            let mut last = Ok(0);
            for i in 0..20 {
                let copy = w.ok(fcntl, &[fd, 0, 100 + i]);
                last = w.call(epoll_ctl, &[ep, ADD, copy, event(w, 1, 0)]);
            }
            assert_eq!(last, Err(Errno::ENOSPC));
            assert_eq!(ready(w, ep).len(), 8);
            w.ok(close_range, &[100, 200, 0]);
            w.ok(close, &[ep]);
        }
    });
}

#[test]
fn an_instance_of_epoll_is_needed() {
    in_world(Walls::Chroot, |w| {
        let ep = w.ok(epoll_create1, &[0]);
        let [r, _] = pipe_of(w);
        let at = w.buffer(96);
        assert_eq!(w.err(epoll_ctl, &[r, ADD, ep, event(w, 1, 0)]), Errno::EINVAL);
        assert_eq!(w.err(epoll_ctl, &[ep, ADD, ep, event(w, 1, 0)]), Errno::EINVAL);
        assert_eq!(w.err(epoll_ctl, &[ep, 99, r, event(w, 1, 0)]), Errno::EINVAL);
        assert_eq!(w.err(epoll_ctl, &[ep, ADD, r, 0]), Errno::EFAULT);
        assert_eq!(w.err(epoll_wait, &[r, at, 8, 0]), Errno::EINVAL);
        for max in [0, -1, i64::from(i32::MAX)] {
            assert_eq!(w.err(epoll_wait, &[ep, at, max, 0]), Errno::EINVAL);
        }
        assert_eq!(w.err(epoll_wait, &[ep, 0xffff_fff0, 8, 0]), Errno::EFAULT);
        let outer = w.ok(epoll_create1, &[0]);
        w.ok(epoll_ctl, &[outer, ADD, ep, event(w, 1, 9)]);
        assert_eq!(w.err(epoll_ctl, &[ep, ADD, outer, event(w, 1, 0)]), Errno::ELOOP);
        w.ok(epoll_ctl, &[ep, ADD, w.ok(eventfd, &[1]), event(w, 1, 0)]);
        assert_eq!(ready(w, outer), [(1, 9)]);
    });
}
