//! The calls' arguments, checked in Linux's order. The effects of mappings are tested with the
//! memory map.

use lind_abi::{Errno, nr};

use crate::mem::space;
use crate::root::Walls;
use crate::testing::{World, in_world};

const RW: i64 = 3;
const PRIVATE_ANON: i64 = 0x22;
const FIXED: i64 = 0x10;
const NOREPLACE: i64 = 0x10_0000;

fn mmap(w: &World, addr: i64, len: i64, flags: i64) -> lind_abi::Result<i64> {
    w.call(nr::mmap, &[addr, len, RW, flags, -1, 0])
}

#[test]
fn addresses_and_lengths_are_checked() {
    in_world(Walls::Openat2, |w| {
        let page = 4096;
        assert_eq!(mmap(w, 0, 0, PRIVATE_ANON), Err(Errno::EINVAL));
        for len in [i64::MAX, -1, -page, 1 << 32, 0xffff_0000 + page] {
            assert_eq!(mmap(w, 0, len, PRIVATE_ANON), Err(Errno::ENOMEM), "{len:#x}");
        }
        let end = space::END.cast_signed();
        // Fixed mappings may lie below those that the kernel places.
        for low in [0, 0xf000] {
            assert_eq!(mmap(w, low, page, PRIVATE_ANON | FIXED), Ok(low));
            assert_eq!(w.ok(nr::munmap, &[low, page]), 0);
        }
        assert_eq!(mmap(w, 0x1_0001, page, PRIVATE_ANON | FIXED), Err(Errno::EINVAL));
        assert_eq!(mmap(w, end, page, PRIVATE_ANON | FIXED), Err(Errno::ENOMEM));
        assert_eq!(mmap(w, 1 << 40, page, PRIVATE_ANON | FIXED), Err(Errno::ENOMEM));
        assert_eq!(mmap(w, -page, page, PRIVATE_ANON | FIXED), Err(Errno::ENOMEM));
        assert_eq!(mmap(w, end - page, 1, PRIVATE_ANON | FIXED), Ok(end - page));
        assert_eq!(mmap(w, end - page, 1, PRIVATE_ANON | NOREPLACE), Err(Errno::EEXIST));
        // A hint that cannot be is only a hint.
        assert_eq!(mmap(w, 1 << 40, page, PRIVATE_ANON), Ok(end - 2 * page));
        assert_eq!(mmap(w, 1, page, PRIVATE_ANON), Ok(end - 3 * page));
        assert_eq!(mmap(w, 4097, page, PRIVATE_ANON), Ok(0x1_0000));
        assert_eq!(w.err(nr::mmap, &[0, page, RW, PRIVATE_ANON, -1, 1]), Errno::EINVAL);
        assert_eq!(w.err(nr::mmap, &[0, page, RW, 2, -1, 0]), Errno::EBADF);
        assert_eq!(w.err(nr::mmap, &[0, page, RW, 0x20, -1, 0]), Errno::EINVAL);
        assert_eq!(w.err(nr::mmap, &[0, page, RW, 0x20 | 3 | 0x400_0000, -1, 0]), Errno::EINVAL);
        assert_eq!(w.err(nr::mmap, &[0, page, RW, PRIVATE_ANON | 0x4_0000, -1, 0]), Errno::ENOMEM, "MAP_HUGETLB");

        assert_eq!(w.err(nr::munmap, &[0, 0]), Errno::EINVAL);
        assert_eq!(w.err(nr::munmap, &[0, -1]), Errno::EINVAL);
        assert_eq!(w.err(nr::munmap, &[1 << 33, page]), Errno::EINVAL);
        assert_eq!(w.ok(nr::munmap, &[0, page]), 0);
        assert_eq!(w.ok(nr::mprotect, &[0, 0, 0]), 0);
        assert_eq!(w.err(nr::mprotect, &[0, page, 1]), Errno::ENOMEM);
        assert_eq!(w.err(nr::mprotect, &[1, 0, 1]), Errno::EINVAL);
        assert_eq!(w.err(nr::mprotect, &[0, page, 0x100]), Errno::EINVAL);
        assert_eq!(w.err(nr::mremap, &[0, page, -1, 1]), Errno::EINVAL);
        assert_eq!(w.err(nr::mremap, &[end - page, page, 1 << 33, 1]), Errno::ENOMEM);
        assert_eq!(w.err(nr::mremap, &[end - page, page, page, 3, 0]), Errno::EPERM);
        assert_eq!(w.err(nr::mremap, &[end - page, page, page, 3, -page]), Errno::EINVAL);
        assert_eq!(w.err(nr::madvise, &[end - page, page, 9]), Errno::EINVAL);
        assert_eq!(w.err(nr::mincore, &[end - page, page, -1]), Errno::EFAULT);
    });
}

#[test]
fn the_limit_on_address_space_binds() {
    in_world(Walls::Openat2, |w| {
        let used = w.thread.cage.memory.map().mapped();
        let limit = w.value(&lind_abi::layout::Rlimit { cur: used + 65536, max: used + 65536 });
        assert_eq!(w.ok(nr::setrlimit, &[9, limit]), 0);
        assert_eq!(mmap(w, 0, 65537, PRIVATE_ANON), Err(Errno::ENOMEM));
        let at = mmap(w, 0, 65536, PRIVATE_ANON).unwrap();
        assert_eq!(mmap(w, 0, 1, PRIVATE_ANON), Err(Errno::ENOMEM));
        // A mapping that replaces another needs no more room.
        assert_eq!(mmap(w, at, 65536, PRIVATE_ANON | FIXED), Ok(at));
        assert_eq!(w.ok(nr::munmap, &[at, 4096]), 0);
        assert!(mmap(w, 0, 1, PRIVATE_ANON).is_ok());
    });
}
