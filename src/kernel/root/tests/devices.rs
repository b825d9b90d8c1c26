//! The devices that every root has.

use super::*;

#[test]
fn every_root_has_the_devices() {
    both_walls(|w| {
        for path in ["/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "//dev///random"] {
            let fd = open(w, path, 0o2).unwrap_or_else(|e| panic!("{path}: {e:?}"));
            assert_eq!(stat(w, path).unwrap().mode & 0o170_000, 0o020_000, "{path}");
            assert_eq!(w.err(nr::fchmod, &[fd, 0o777]), Errno::EPERM);
            assert_eq!(w.err(nr::fchown, &[fd, 1, 1]), Errno::EPERM);
            assert_eq!(w.err(nr::utimensat, &[fd, 0, 0, 0]), Errno::EPERM);
            assert_eq!(w.err(nr::fchmodat2, &[fd, w.str(""), 0o777, EMPTY_PATH]), Errno::EPERM);
            w.ok(nr::close, &[fd]);
        }
        let null = open(w, "/dev/null", CREATE | 0o1000).unwrap();
        assert_eq!(w.ok(nr::write, &[null, w.data(b"gone"), 4]), 4);
        assert_eq!(w.ok(nr::read, &[null, w.buffer(4), 4]), 0);
        let zero = open(w, "/dev/zero", 0).unwrap();
        let buffer = w.data(b"xxxx");
        assert_eq!(w.ok(nr::read, &[zero, buffer, 4]), 4);
        assert_eq!(w.bytes(buffer, 4), [0; 4]);
        assert_eq!(w.err(nr::write, &[zero, buffer, 4]), Errno::EBADF);
        let full = open(w, "/dev/full", 1).unwrap();
        assert_eq!(w.err(nr::write, &[full, buffer, 4]), Errno::ENOSPC);
        w.ok(nr::access, &[w.str("/dev/null"), 6]);
        assert_eq!(open(w, "/dev/null", CREATE | 0o200), Err(Errno::EEXIST));
        assert_eq!(open(w, "/dev/null", DIRECTORY), Err(Errno::ENOTDIR));
        assert_eq!(w.err(nr::chmod, &[w.str("/dev/null"), 0o777]), Errno::EPERM);
        assert_eq!(w.err(nr::chown, &[w.str("/dev/null"), 1, 1]), Errno::EPERM);
        assert_eq!(w.err(nr::unlink, &[w.str("/dev/null")]), Errno::EPERM);
        // /dev/fd/N is a number of the caller.
        make(w, "/f", "text");
        let fd = open(w, "/f", 0).unwrap();
        let again = open(w, &format!("/dev/fd/{fd}"), 0).unwrap();
        assert_eq!(w.filled(nr::read, |b, len| vec![again, b, len]), b"text");
        let again = open(w, &format!("/proc/self/fd/{fd}"), 0).unwrap();
        assert_eq!(w.filled(nr::read, |b, len| vec![again, b, len]), b"text");
        assert_eq!(open(w, "/dev/fd/99", 0), Err(Errno::ENOENT));
        assert_eq!(open(w, "/dev/fd/x", 0), Err(Errno::ENOENT));
        assert_eq!(open(w, "/dev/mem", 0), Err(Errno::ENOENT));
        // Nor do they get names in the root.
        assert_eq!(w.err(nr::linkat, &[null, w.str(""), CWD, w.str("/n"), EMPTY_PATH]), Errno::ENOENT);
        assert_eq!(w.err(nr::mknod, &[w.str("/mem"), 0o020_600, 0x101]), Errno::EPERM);
    });
}
