//! The map and the host agree: pages that are mapped by the map can be touched, and no others.

use std::os::fd::AsFd;

use super::*;
use crate::mem::host_count;
use crate::mem::random::Random;
use crate::mem::{InitialData, PAGE, install_fault_handler};

const RW: u32 = 3;

fn memory() -> Memory {
    install_fault_handler(None);
    Memory::new(1 << 32).unwrap()
}

/// The access that the host gives to one page: writable, readable or neither.
fn host_has(memory: &Memory, addr: u64) -> u32 {
    let mut byte = [0];
    match (memory.guest.read(addr, &mut byte), memory.guest.write(addr, &byte)) {
        (Ok(()), Ok(())) => 3,
        (Ok(()), Err(_)) => 1,
        _ => 0,
    }
}

fn agrees(memory: &Memory, range: Range<u64>) {
    let map = memory.map();
    for addr in range.step_by(usize::try_from(PAGE).unwrap()) {
        let said = map.at(addr).map_or(0, |(_, region)| region.prot & 3);
        assert_eq!(host_has(memory, addr), said, "page {addr:#x}");
    }
}

#[test]
fn a_program_gets_data_heap_and_a_guarded_stack() {
    let memory = memory();
    let top = memory.load_layout(0x2_3456, &InitialData::default()).unwrap();
    assert_eq!(top, space::END);
    assert_eq!(host_has(&memory, top - 1), 3);
    assert_eq!(host_has(&memory, top), 0);
    assert_eq!(host_has(&memory, top - space::STACK), 3);
    assert_eq!(host_has(&memory, top - space::STACK - 1), 0);
    assert_eq!(host_has(&memory, space::FIRST), 3);
    assert_eq!(host_has(&memory, space::FIRST - 1), 0);
    assert_eq!(host_has(&memory, 0x2_3fff), 3);
    assert_eq!(host_has(&memory, 0x2_4000), 0);
    assert_eq!(memory.set_break(0, u64::MAX), 0x2_4000);
    assert_eq!(memory.set_break(0x2_6001, u64::MAX), 0x2_6001);
    assert_eq!(host_has(&memory, 0x2_6fff), 3);
    assert_eq!(memory.set_break(0x2_5000, u64::MAX), 0x2_5000);
    assert_eq!(host_has(&memory, 0x2_5000), 0);
    assert_eq!(memory.set_break(0x2_9000, 0x4000), 0x2_5000, "RLIMIT_DATA");
    assert_eq!(memory.set_break(u64::MAX, u64::MAX), 0x2_5000);
    // No mapping is put into the guard.
    let below = memory.map_pages(Place::Hint(0), PAGE, RW, false, Content::Zero).unwrap();
    assert_eq!(below, top - space::STACK - space::STACK_GUARD - PAGE);
    // A second program finds nothing of the first.
    memory.load_layout(space::FIRST, &InitialData::default()).unwrap();
    assert_eq!(host_has(&memory, below), 0);
    assert_eq!(host_has(&memory, space::FIRST), 0);
    assert_eq!(memory.load_layout(space::END - space::STACK, &InitialData::default()), Err(Errno::ENOMEM));
}

#[test]
fn worker_stacks_come_and_go() {
    let memory = memory();
    memory.load_layout(space::FIRST, &InitialData::default()).unwrap();
    let before = memory.map().mapped();
    let one = memory.map_stack(100_000).unwrap();
    let two = memory.map_stack(100_000).unwrap();
    assert!(two <= one - 100_000 - space::STACK_GUARD);
    assert_eq!(host_has(&memory, one - 100_000), 3);
    assert_eq!(host_has(&memory, one - 200_000), 0);
    memory.unmap_stack(one, 100_000);
    memory.unmap_stack(two, 100_000);
    assert_eq!(memory.map().mapped(), before);
    assert_eq!(memory.map_stack(100_000).unwrap(), one);
    assert_eq!(memory.map_stack(u64::MAX), Err(Errno::ENOMEM));
}

#[test]
fn a_host_call_that_fails_leaves_map_and_host_agreed() {
    let memory = memory();
    let file = tempfile_read_only();
    let start = memory.map_pages(Place::Fixed(1 << 20), 8 * PAGE, RW, false, Content::Zero).unwrap();
    // A shared writable mapping of a file open for reading: the host refuses, and what was there
    // stays.
    let refused = memory.map_pages(Place::Fixed(start), PAGE, RW, true, Content::File(file.as_fd(), 0));
    assert_eq!(refused, Err(Errno::EACCES));
    agrees(&memory, start..start + 8 * PAGE);
    assert_eq!(host_has(&memory, start), 3);
    // Protection that the host refuses halfway: the pages before are changed, the others are not.
    let middle = start + 4 * PAGE;
    memory.map_pages(Place::Fixed(middle), PAGE, 1, true, Content::File(file.as_fd(), 0)).unwrap();
    memory.protect_pages(start..start + 8 * PAGE, 1).unwrap();
    assert_eq!(memory.protect_pages(start..start + 8 * PAGE, RW), Err(Errno::EACCES));
    agrees(&memory, start..start + 8 * PAGE);
    assert_eq!(host_has(&memory, start), 3);
    assert_eq!(host_has(&memory, start + 7 * PAGE), 1);
    // Up to a hole.
    memory.unmap_pages(start + PAGE..start + 2 * PAGE).unwrap();
    assert_eq!(memory.protect_pages(start..start + 4 * PAGE, 0), Err(Errno::ENOMEM));
    agrees(&memory, start..start + 8 * PAGE);
    assert_eq!(host_has(&memory, start), 0);
}

fn tempfile_read_only() -> std::fs::File {
    let path = std::env::temp_dir().join(format!("lind-mapping-{}", std::process::id()));
    std::fs::write(&path, vec![7; 3 * 4096]).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

#[test]
fn mappings_grow_shrink_and_move_with_their_contents() {
    use crate::mem::Move;
    let memory = memory();
    memory.load_layout(space::FIRST, &InitialData::default()).unwrap();
    let map = |place, pages, shared| memory.map_pages(place, pages * PAGE, RW, shared, Content::Zero).unwrap();
    let at = |start: u64, pages: u64| start..start + pages * PAGE;
    for shared in [false, true] {
        let a = map(Place::Fixed(1 << 24), 4, shared);
        memory.guest.store(a + 8, &99_u64).unwrap();
        memory.guest.store(a + 3 * PAGE, &77_u64).unwrap();
        // Something is behind it: it has to move, and may not without leave.
        let wall = map(Place::Fixed(a + 4 * PAGE), 1, false);
        assert_eq!(memory.remap(at(a, 4), 8 * PAGE, Move::No), Err(Errno::ENOMEM));
        let b = memory.remap(at(a, 4), 8 * PAGE, Move::IfNeeded).unwrap();
        assert_ne!(a, b);
        assert_eq!(memory.guest.load::<u64>(b + 8), Ok(99));
        assert_eq!(memory.guest.load::<u64>(b + 3 * PAGE), Ok(77));
        assert_eq!(host_has(&memory, b + 7 * PAGE), if shared { 0 } else { 3 }, "beyond a shared object is SIGBUS");
        assert_eq!(host_has(&memory, a), 0);
        assert_eq!(memory.remap(at(b, 8), 2 * PAGE, Move::No), Ok(b));
        assert_eq!(host_has(&memory, b + 2 * PAGE), 0);
        assert_eq!(memory.remap(at(b, 2), 2 * PAGE, Move::To(wall)), Ok(wall));
        assert_eq!(memory.guest.load::<u64>(wall + 8), Ok(99));
        assert_eq!(memory.remap(at(b, 1), PAGE, Move::IfNeeded), Err(Errno::EFAULT));
        let twin = memory.remap(wall..wall, PAGE, Move::IfNeeded);
        if shared {
            memory.guest.store(wall + 8, &5_u64).unwrap();
            assert_eq!(memory.guest.load::<u64>(twin.unwrap() + 8), Ok(5));
        } else {
            assert_eq!(twin, Err(Errno::EINVAL));
            assert_eq!(memory.remap(at(wall, 2), 5 * PAGE, Move::No), Ok(wall));
            assert_eq!(memory.guest.load::<u64>(wall + 8), Ok(99));
        }
        agrees(&memory, at(a - PAGE, 16));
        memory.unmap_pages(at(a, 16)).unwrap();
    }
}

/// Pages that everything happens in, so that much meets.
const ARENA: u64 = 48;

fn arena(random: &mut Random, most: u64) -> Range<u64> {
    let start = random.below(ARENA);
    let end = (start + 1 + random.below(most)).min(ARENA);
    (1 << 20) + start * PAGE..(1 << 20) + end * PAGE
}

/// One operation of many. Impossible operations are refused, which is fine.
fn operate(random: &mut Random, memory: &Memory, file: &std::fs::File) {
    use crate::mem::Move;
    let (range, to) = (arena(random, 12), arena(random, 12).start);
    let len = range.end - range.start;
    let prot = [0, 1, RW, RW][usize::try_from(random.below(4)).unwrap()];
    let _ = match random.below(10) {
        0 | 1 => memory.map_pages(Place::Fixed(range.start), len, prot, false, Content::Zero).map(drop),
        2 => memory.map_pages(Place::Fixed(range.start), len, prot, true, Content::Zero).map(drop),
        3 => memory.map_pages(Place::Fixed(range.start), 2 * PAGE, 1, false, Content::File(file.as_fd(), 0)).map(drop),
        4 => memory.unmap_pages(range),
        5 | 6 => memory.protect_pages(range, prot),
        7 if random.below(2) == 0 => memory.remap(range, (1 + random.below(12)) * PAGE, Move::IfNeeded).map(drop),
        7 if to >= range.end || to + len <= range.start => memory.remap(range, len, Move::To(to)).map(drop),
        8 => memory.discard(range, libc::MADV_DONTNEED),
        _ => memory.guest.fill(range.start, 1, len),
    };
}

#[test]
fn the_host_never_has_more_mappings_than_are_counted() {
    let file = tempfile_read_only();
    let mut random = Random::seeded();
    let pages = crate::mem::PageMap::open();
    for _ in 0..60 {
        let mut memory = memory();
        memory.load_layout(space::FIRST, &InitialData::default()).unwrap();
        for step in 0..200 {
            operate(&mut random, &memory, &file);
            if step % 64 == 63 {
                memory = memory.forking(crate::mem::Alone::Yes).copy(&pages).unwrap();
            }
            host_count::is_bounded(&memory);
        }
    }
}

#[test]
fn pages_that_were_touched_apart_are_counted_apart() {
    const PAIRS: u64 = 200;
    let memory = memory();
    let page = |n: u64| {
        let start = memory.map_pages(Place::Fixed((1 << 20) + n * PAGE), PAGE, RW, false, Content::Zero).unwrap();
        memory.guest.write(start, &[1]).unwrap();
    };
    (0..PAIRS).for_each(|n| page(2 * n));
    (0..PAIRS).for_each(|n| page(2 * n + 1));
    assert_eq!(memory.map().len(), 1);
    assert!(memory.map().host_mappings() > usize::try_from(PAIRS).unwrap());
    host_count::is_bounded(&memory);
    // A range that is mapped again is one mapping.
    memory.map_pages(Place::Fixed(1 << 20), 2 * PAIRS * PAGE, RW, false, Content::Zero).unwrap();
    assert_eq!(memory.map().host_mappings(), 3);
    host_count::is_bounded(&memory);
}
