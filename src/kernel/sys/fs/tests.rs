//! File calls as a guest makes them, mostly those with two cages or arguments that a C library
//! would not pass.

use lind_abi::layout::{Flock, Iovec, Stat};
use lind_abi::{Errno, nr};

use crate::fd::File;
use crate::root::Walls;
use crate::testing::{CWD, World, both_walls, in_world};

const RDWR_CREATE: i64 = 0o102;
const SETLK: i64 = 6;
const GETLK: i64 = 5;
const OFD_SETLK: i64 = 37;
const OFD_GETLK: i64 = 36;
const WRITE_LOCK: i16 = 1;
const NO_LOCK: i16 = 2;

fn create(w: &World, path: &str) -> i64 {
    w.ok(nr::open, &[w.str(path), RDWR_CREATE, 0o666])
}

fn flock(kind: i16, start: i64, len: i64) -> Flock {
    Flock { kind, start, len, ..Flock::default() }
}

fn lock(w: &World, fd: i64, command: i64, lock: Flock) -> Result<Flock, Errno> {
    let at = w.value(&lock);
    w.call(nr::fcntl, &[fd, command, at])?;
    Ok(w.load(at))
}

#[test]
fn record_locks_are_between_cages() {
    in_world(Walls::Openat2, |w| {
        let child = w.sibling();
        let (ours, theirs) = (create(w, "/f"), create(&child, "/f"));
        lock(w, ours, SETLK, flock(WRITE_LOCK, 10, 10)).unwrap();
        assert_eq!(lock(&child, theirs, SETLK, flock(WRITE_LOCK, 19, 1)).err(), Some(Errno::EAGAIN));
        let found = lock(&child, theirs, GETLK, flock(WRITE_LOCK, 0, 0)).unwrap();
        assert_eq!((found.kind, found.start, found.len), (WRITE_LOCK, 10, 10));
        assert_eq!(found.pid, w.thread.cage.id.0.cast_signed());
        lock(&child, theirs, SETLK, flock(WRITE_LOCK, 20, 0)).unwrap();
        // Record locks and locks of descriptions know each other.
        let other = create(w, "/f");
        assert_eq!(lock(w, other, OFD_SETLK, flock(WRITE_LOCK, 15, 1)).err(), Some(Errno::EAGAIN));
        lock(w, other, OFD_SETLK, flock(WRITE_LOCK, 0, 1)).unwrap();
        let found = lock(&child, theirs, GETLK, flock(WRITE_LOCK, 0, 1)).unwrap();
        assert_eq!((found.kind, found.pid), (WRITE_LOCK, -1));
        assert_eq!(lock(w, other, OFD_SETLK, Flock { pid: 1, ..flock(WRITE_LOCK, 0, 1) }).err(), Some(Errno::EINVAL));
        // Closing any descriptor of the file gives the cage's locks up, and the description's go
        // with it.
        w.ok(nr::close, &[other]);
        lock(&child, theirs, SETLK, flock(WRITE_LOCK, 0, 20)).unwrap();
        assert_eq!(lock(w, ours, GETLK, flock(WRITE_LOCK, 0, 0)).unwrap().len, 0);
        // So does the end of a cage.
        child.exit();
        assert_eq!(lock(w, ours, GETLK, flock(WRITE_LOCK, 0, 0)).unwrap().kind, NO_LOCK);
        lock(w, ours, SETLK, flock(WRITE_LOCK, 0, 0)).unwrap();
    });
}

#[test]
fn replacing_a_descriptor_gives_locks_up() {
    in_world(Walls::Openat2, |w| {
        let child = w.sibling();
        let (ours, theirs) = (create(w, "/f"), create(&child, "/f"));
        let taken = |w: &World, fd| lock(w, fd, SETLK, flock(WRITE_LOCK, 0, 0));
        taken(w, ours).unwrap();
        let other = create(w, "/g");
        w.ok(nr::dup2, &[other, ours]);
        taken(&child, theirs).unwrap();
        w.ok(nr::close_range, &[0, 0xffff_ffff, 0]);
        assert_eq!(taken(w, create(w, "/f")).err(), Some(Errno::EAGAIN));
    });
}

#[test]
fn a_description_is_shared_with_children() {
    in_world(Walls::Openat2, |w| {
        let fd = create(w, "/f");
        let hidden = w.ok(nr::open, &[w.str("/f"), 0o2_000_000, 0]);
        let child = w.sibling();
        assert_eq!(w.ok(nr::write, &[fd, w.data(b"abc"), 3]), 3);
        assert_eq!(child.ok(nr::lseek, &[fd, 0, 1]), 3);
        assert_eq!(child.err(nr::fstat, &[hidden, child.buffer(144)]), Errno::EBADF);
        child.ok(nr::close, &[fd]);
        w.ok(nr::fstat, &[fd, w.buffer(144)]);
        lock(w, fd, OFD_SETLK, flock(WRITE_LOCK, 0, 1)).unwrap();
        let next = w.sibling();
        assert_eq!(lock(&next, fd, OFD_GETLK, flock(WRITE_LOCK, 0, 1)).unwrap().kind, NO_LOCK);
        // cwd and umask are copies.
        w.ok(nr::umask, &[0o077]);
        w.ok(nr::mkdir, &[w.str("/d"), 0o777]);
        w.ok(nr::chdir, &[w.str("/d")]);
        next.ok(nr::mkdir, &[next.str("e"), 0o777]);
        let stat = next.buffer(144);
        next.ok(nr::stat, &[next.str("/e"), stat]);
        assert_eq!(next.load::<Stat>(stat).mode & 0o777, 0o755);
        next.ok(nr::stat, &[next.str("/d"), stat]);
        assert_eq!(next.load::<Stat>(stat).mode & 0o777, 0o700);
    });
}

#[test]
fn vectors_are_checked_before_anything_moves() {
    in_world(Walls::Openat2, |w| {
        let fd = create(w, "/f");
        let good = w.data(b"0123456789");
        let base = u32::try_from(good).unwrap();
        let vector = |parts: &[(u32, u32)]| {
            let bytes: Vec<u8> =
                parts.iter().flat_map(|(base, len)| [base.to_le_bytes(), len.to_le_bytes()].concat()).collect();
            w.data(&bytes)
        };
        let write =
            |parts: &[(u32, u32)]| w.call(nr::writev, &[fd, vector(parts), i64::try_from(parts.len()).unwrap()]);
        assert_eq!(write(&[(base, 4), (0, 0), (base + 8, 2)]), Ok(6));
        assert_eq!(write(&[(base, 1); 20]), Ok(20));
        assert_eq!(write(&[(base, 1); 1024]), Ok(1024));
        assert_eq!(write(&[]), Ok(0));
        assert_eq!(write(&[(base, 1), (base, 0x8000_0000)]), Err(Errno::EINVAL));
        assert_eq!(write(&[(base, 1), (u32::MAX, 2)]), Err(Errno::EFAULT));
        assert_eq!(write(&[(base, 1), (u32::MAX - 10, u32::MAX)]), Err(Errno::EINVAL));
        for count in [1025, -1, i64::MIN, 1 << 32] {
            assert_eq!(w.err(nr::writev, &[fd, good, count]), Errno::EINVAL, "{count}");
        }
        for at in [0, 8, 0xffff_fffc, u32::MAX.into(), -1, i64::MAX] {
            assert_eq!(w.err(nr::readv, &[fd, at, 1]), Errno::EFAULT, "{at:#x}");
        }
        assert_eq!(w.err(nr::preadv, &[fd, vector(&[(base, 1)]), 1, -1]), Errno::EINVAL);
        assert_eq!(w.ok(nr::preadv2, &[fd, vector(&[(base, 1)]), 1, 5, 0, 0]), 1);
        assert_eq!(w.bytes(good, 1), b"9");
        assert_eq!(w.err(nr::preadv2, &[fd, vector(&[(base, 1)]), 1, 5, 0, 1 << 20]), Errno::EOPNOTSUPP);
        assert_eq!(size_of::<Iovec>(), 8);
    });
}

#[test]
fn wild_pointers_are_efault() {
    both_walls(|w| {
        let fd = create(w, "/f");
        w.ok(nr::ftruncate, &[fd, 100]);
        for at in [8, 0xffff_fff0, 0xffff_ffff, 1 << 32, -8, i64::MIN] {
            assert_eq!(w.err(nr::open, &[at, 0, 0]), Errno::EFAULT, "{at:#x}");
            assert_eq!(w.err(nr::stat, &[w.str("/f"), at]), Errno::EFAULT, "{at:#x}");
            assert_eq!(w.err(nr::fstat, &[fd, at]), Errno::EFAULT, "{at:#x}");
            assert_eq!(w.err(nr::statx, &[CWD, w.str("/f"), 0, 0xfff, at]), Errno::EFAULT, "{at:#x}");
            assert_eq!(w.err(nr::read, &[fd, at, 50]), Errno::EFAULT, "{at:#x}");
            if at != 8 {
                assert_eq!(w.err(nr::pread64, &[fd, w.buffer(8), at, 0]), Errno::EFAULT, "{at:#x}");
            }
            assert_eq!(w.err(nr::rename, &[w.str("/f"), at]), Errno::EFAULT, "{at:#x}");
            assert_eq!(w.err(nr::fcntl, &[fd, SETLK, at]), Errno::EFAULT, "{at:#x}");
            assert_eq!(w.err(nr::pipe, &[at]), Errno::EFAULT, "{at:#x}");
            assert_eq!(w.err(nr::fstatfs, &[fd, at]), Errno::EFAULT, "{at:#x}");
            assert_eq!(w.err(nr::utimensat, &[CWD, w.str("/f"), at, 0]), Errno::EFAULT, "{at:#x}");
            assert_eq!(w.err(nr::sendfile, &[fd, fd, at, 1]), Errno::EFAULT, "{at:#x}");
            assert_eq!(w.err(nr::ioctl, &[fd, 0x541b, at]), Errno::EFAULT, "{at:#x}");
            let dir = w.ok(nr::open, &[w.str("/"), 0, 0]);
            assert_eq!(w.err(nr::getdents64, &[dir, at, 512]), Errno::EFAULT, "{at:#x}");
            w.ok(nr::close, &[dir]);
        }
        // A pipe whose numbers could not be stored is closed again.
        let next = create(w, "/g");
        assert_eq!(next, fd + 1);
    });
}

#[test]
fn requests_that_are_not_known_never_reach_the_host() {
    in_world(Walls::Openat2, |w| {
        let (master, slave) = w.host(|| {
            let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
            let master = rustix::pty::openpt(flags).unwrap();
            rustix::pty::grantpt(&master).unwrap();
            rustix::pty::unlockpt(&master).unwrap();
            let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
            let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
            (master, rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap())
        });
        let slave = i64::from(w.thread.cage.fds.add(File::handed_in(slave), false).unwrap());
        let (tcgets, tcsets, winsize, pgrp, pushes, steals) = (0x5401, 0x5402, 0x5413, 0x540f, 0x5412, 0x540e);
        let termios = w.buffer(36);
        w.ok(nr::ioctl, &[slave, tcgets, termios]);
        w.ok(nr::ioctl, &[slave, tcsets, termios]);
        w.ok(nr::ioctl, &[slave, winsize, w.buffer(8)]);
        let group = w.buffer(4);
        w.ok(nr::ioctl, &[slave, pgrp, group]);
        assert_eq!(w.load::<i32>(group), w.thread.cage.id.0.cast_signed());
        assert_eq!(w.err(nr::ioctl, &[slave, pushes, w.data(b"x")]), Errno::EPERM);
        // It is the terminal of the first cage's session, and nobody else's.
        w.ok(nr::ioctl, &[slave, steals, 0]);
        assert_eq!(w.sibling().err(nr::ioctl, &[slave, steals, 0]), Errno::EPERM);
        assert_eq!(w.err(nr::fchmod, &[slave, 0o777]), Errno::EPERM);
        // Nothing was typed.
        let waiting = w.buffer(4);
        w.ok(nr::ioctl, &[slave, 0x541b, waiting]);
        assert_eq!(w.load::<i32>(waiting), 0);
        drop(master);
    });
}

#[test]
fn numbers_run_out_and_come_back() {
    in_world(Walls::Openat2, |w| {
        w.thread.cage.fds.set_limit(16);
        let first = create(w, "/f");
        let mut last = first;
        while let Ok(fd) = w.call(nr::dup, &[first]) {
            last = fd;
        }
        assert_eq!(last, 15);
        assert_eq!(w.err(nr::open, &[w.str("/f"), 0, 0]), Errno::EMFILE);
        assert_eq!(w.err(nr::pipe, &[w.buffer(8)]), Errno::EMFILE);
        assert_eq!(w.err(nr::dup2, &[first, 16]), Errno::EBADF);
        assert_eq!(w.err(nr::fcntl, &[first, 0, 16]), Errno::EINVAL);
        w.ok(nr::close, &[9]);
        // One number is not enough for a pipe, and is free again after it has failed.
        assert_eq!(w.err(nr::pipe, &[w.buffer(8)]), Errno::EMFILE);
        assert_eq!(w.ok(nr::fcntl, &[first, 1030, 5]), 9);
        assert_eq!(w.ok(nr::fcntl, &[9, 1, 0]), 1);
        assert_eq!(w.err(nr::close_range, &[5, 4, 0]), Errno::EINVAL);
        assert_eq!(w.err(nr::close_range, &[4, 5, 2]), Errno::EINVAL);
        w.ok(nr::close_range, &[3, 0xffff_ffff, 4]);
        assert_eq!(w.ok(nr::fcntl, &[first, 1, 0]), 1);
        w.ok(nr::close_range, &[3, 0xffff_ffff, 0]);
        assert_eq!(w.err(nr::fcntl, &[first, 1, 0]), Errno::EBADF);
    });
}

#[test]
fn a_broken_pipe_ends_the_cage_that_does_not_ignore_it() {
    in_world(Walls::Openat2, |w| {
        // The runner ignores the host's signal.
        let broken = |w: &World| {
            let fds = w.buffer(8);
            w.ok(nr::pipe, &[fds]);
            let [read, write] = w.load::<[i32; 2]>(fds).map(i64::from);
            w.ok(nr::close, &[read]);
            write
        };
        let child = w.sibling();
        let ignore = child.value(&lind_abi::layout::Sigaction { handler: 1, ..Default::default() });
        child.ok(nr::rt_sigaction, &[13, ignore, 0, 8]);
        assert_eq!(child.err(nr::write, &[broken(&child), child.data(b"x"), 1]), Errno::EPIPE);
        assert_eq!(child.thread.take_next(), None);
        assert_eq!(w.err(nr::write, &[broken(w), w.data(b"x"), 1]), Errno::EPIPE);
        let end = crate::cage::Status::Signaled { signal: 13 };
        assert_eq!(w.thread.take_next(), Some(crate::cage::Next::Exit(end)));
    });
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn one_of(&mut self, values: &[i64]) -> i64 {
        values[usize::try_from(self.next() % values.len() as u64).unwrap()]
    }
}

/// Every call gets a result, whatever a guest passes: no panic, nothing hangs, and nothing outside
/// changes.
#[test]
fn any_arguments_end_in_a_result() {
    both_walls(|w| {
        let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
        println!("seed {seed}");
        let mut random = Random(seed);
        w.ok(nr::close_range, &[0, 0xffff_ffff, 0]);
        // Calls that wait (for a lock, the other end of a pipe) or take long (all of a disk) are
        // left out.
        let left_out = [
            nr::flock,
            nr::pipe,
            nr::pipe2,
            nr::mknod,
            nr::mknodat,
            nr::fallocate,
            nr::sync,
            nr::syncfs,
            nr::sendfile,
            nr::copy_file_range,
            nr::splice,
            nr::tee,
            nr::sync_file_range,
            nr::inotify_init,
            nr::inotify_init1,
        ];
        let numbers: Vec<u32> = lind_abi::SYSCALLS
            .iter()
            .filter(|row| row.area == "fs" && !left_out.contains(&row.nr))
            .map(|row| row.nr)
            .collect();
        let names = [
            "a",
            "b",
            "/a/../b",
            "../../outside/secret",
            "d/",
            "d/e",
            "",
            ".",
            "..",
            "/",
            "l",
            "d/up/x",
            "/dev/null",
            "/dev/fd/3",
        ];
        let mut fine = 0;
        for _ in 0..20_000 {
            let number = numbers[usize::try_from(random.next() % numbers.len() as u64).unwrap()];
            let text = names[usize::try_from(random.next() % names.len() as u64).unwrap()];
            let (string, buffer) = (w.str(text), w.buffer(256));
            let numbers = [
                0,
                1,
                2,
                3,
                4,
                5,
                7,
                64,
                4096,
                0o102,
                0o200_000,
                0o10_000_000,
                -1,
                -2,
                -100,
                1 << 31,
                1 << 32,
                i64::MIN,
                i64::MAX,
            ];
            let mut args = [0; 6].map(|_: i64| match random.next() % 8 {
                0..=2 => string,
                3 => buffer,
                4..=6 => random.one_of(&numbers),
                _ => random.next().cast_signed(),
            });
            if number == nr::fcntl && [7, 38].contains(&(args[1] & 0xffff_ffff)) {
                args[1] = 6;
            }
            fine += u32::from(w.call(number, &args).is_ok());
            if random.next().is_multiple_of(64) {
                w.ok(nr::close_range, &[8, 0xffff_ffff, 0]);
                let _ = w.call(nr::symlink, &[w.str("../../../outside"), w.str("l")]);
                let _ = w.call(nr::mkdir, &[w.str("/d"), 0o777]);
                let _ = w.call(nr::symlink, &[w.str("../.."), w.str("/d/up")]);
            }
        }
        assert!(fine > 300, "{fine} calls did something");
        let outside = w.outside();
        let left = w.host(move || {
            let names: Vec<_> = std::fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            (names, std::fs::read_to_string(outside.join("secret")).unwrap())
        });
        assert_eq!(left, (vec!["secret".into()], "secret".to_owned()));
    });
}
