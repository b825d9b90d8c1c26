//! A child's memory is its parent's, page by page, and then its own.

use super::*;
use crate::mem::{Content, Place, install_fault_handler, space};

const RW: u32 = 3;

fn memory() -> Memory {
    install_fault_handler(None);
    Memory::new(1 << 32).unwrap()
}

/// With the host's page map and without.
fn both(test: fn(&PageMap)) {
    test(&PageMap::none());
    test(&PageMap::open());
}

#[test]
fn what_was_written_is_there_and_apart() {
    both(|pages| {
        let parent = memory();
        parent.load_layout(0x2_3456).unwrap();
        let big = parent.map_pages(Place::Hint(0), 64 << 20, RW, false, Content::Zero).unwrap();
        for (at, byte) in [(space::FIRST, 1), (space::END - 8, 2), (big, 3), (big + (32 << 20) - 1, 4)] {
            parent.guest.write(at, &[byte]).unwrap();
        }
        parent.guest.write(big + (8 << 20), &[5; 100_000]).unwrap();
        let child = parent.fork(pages).unwrap();
        parent.guest.write(big, &[99]).unwrap();
        child.guest.write(space::END - 8, &[98]).unwrap();
        let read = |memory: &Memory, at| {
            let mut byte = [0];
            memory.guest.read(at, &mut byte).unwrap();
            byte[0]
        };
        assert_eq!([space::FIRST, space::END - 8, big, big + (32 << 20) - 1].map(|at| read(&child, at)), [1, 98, 3, 4]);
        assert_eq!(read(&parent, space::END - 8), 2);
        let mut long = vec![0; 100_000];
        child.guest.read(big + (8 << 20), &mut long).unwrap();
        assert!(long.iter().all(|byte| *byte == 5));
        assert_eq!(read(&child, big + (1 << 20)), 0);
        assert_eq!(child.map().brk, parent.map().brk);
    });
}

#[test]
fn shared_stays_shared_and_protection_stays() {
    both(|pages| {
        let parent = memory();
        let shared = parent.map_pages(Place::Hint(0), 2 * PAGE, RW, true, Content::Zero).unwrap();
        let locked = parent.map_pages(Place::Hint(0), PAGE, RW, false, Content::Zero).unwrap();
        let secret = parent.map_pages(Place::Hint(0), PAGE, RW, false, Content::Zero).unwrap();
        parent.guest.write(locked, b"read").unwrap();
        parent.guest.write(secret, b"none").unwrap();
        parent.protect_pages(locked..locked + PAGE, 1).unwrap();
        parent.protect_pages(secret..secret + PAGE, 0).unwrap();
        let child = parent.fork(pages).unwrap();
        child.guest.write(shared + PAGE, b"hello").unwrap();
        let mut bytes = [0; 5];
        parent.guest.read(shared + PAGE, &mut bytes).unwrap();
        assert_eq!(&bytes, b"hello");
        for memory in [&parent, &child] {
            let mut bytes = [0; 4];
            assert_eq!(memory.guest.write(locked, b"x"), Err(Errno::EFAULT));
            memory.guest.read(locked, &mut bytes).unwrap();
            assert_eq!(&bytes, b"read");
            assert_eq!(memory.guest.read(secret, &mut bytes), Err(Errno::EFAULT));
            memory.protect_pages(secret..secret + PAGE, 1).unwrap();
            memory.guest.read(secret, &mut bytes).unwrap();
            assert_eq!(&bytes, b"none");
        }
    });
}

#[test]
fn madvise_says_what_the_child_gets() {
    both(|pages| {
        let parent = memory();
        let omit = parent.map_pages(Place::Hint(0), PAGE, RW, false, Content::Zero).unwrap();
        let wipe = parent.map_pages(Place::Hint(0), PAGE, RW, false, Content::Zero).unwrap();
        parent.guest.write(omit, b"x").unwrap();
        parent.guest.write(wipe, b"x").unwrap();
        parent.set_on_fork(omit..omit + PAGE, OnFork::Omit).unwrap();
        parent.set_on_fork(wipe..wipe + PAGE, OnFork::Wipe).unwrap();
        let child = parent.fork(pages).unwrap();
        let mut byte = [9];
        assert_eq!(child.guest.read(omit, &mut byte), Err(Errno::EFAULT));
        child.guest.read(wipe, &mut byte).unwrap();
        assert_eq!(byte, [0]);
        assert!(child.map().is_free(omit..omit + PAGE));
    });
}
