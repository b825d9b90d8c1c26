//! A child's memory is its parent's, page by page, and then its own.

use super::*;
use crate::mem::random::Random;
use crate::mem::{Content, InitialData, Move, Place, install_fault_handler, space};
use crate::{host, sealed};

const RW: u32 = 3;

fn memory() -> Memory {
    install_fault_handler(None);
    Memory::new(1 << 32).unwrap()
}

fn fork(parent: &Memory, pages: &PageMap) -> Memory {
    parent.forking(Alone::Yes).copy(pages).unwrap()
}

/// With the host's page map and without.
fn both(test: impl Fn(&PageMap)) {
    test(&PageMap::none());
    test(&PageMap::open());
}

#[test]
fn what_was_written_is_there_and_apart() {
    both(|pages| {
        let parent = memory();
        parent.load_layout(0x2_3456, &InitialData::default()).unwrap();
        let big = parent.map_pages(Place::Hint(0), 64 << 20, RW, false, Content::Zero).unwrap();
        for (at, byte) in [(space::FIRST, 1), (space::END - 8, 2), (big, 3), (big + (32 << 20) - 1, 4)] {
            parent.guest.write(at, &[byte]).unwrap();
        }
        parent.guest.write(big + (8 << 20), &[5; 100_000]).unwrap();
        let child = fork(&parent, pages);
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
        let child = fork(&parent, pages);
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
        let child = fork(&parent, pages);
        let mut byte = [9];
        assert_eq!(child.guest.read(omit, &mut byte), Err(Errno::EFAULT));
        child.guest.read(wipe, &mut byte).unwrap();
        assert_eq!(byte, [0]);
        assert!(child.map().is_free(omit..omit + PAGE));
    });
}

/// Data that begin with `word` on each page.
fn data(spans: &[Range<u64>], word: &dyn Fn(u64) -> u64) -> InitialData {
    let file = sealed::create(c"data").unwrap();
    let mut places = Vec::new();
    let mut offset = PAGE;
    for span in spans {
        places.push((span.clone(), offset));
        for address in span.clone().step_by(PAGE_LEN) {
            rustix::io::pwrite(&file, &word(address).to_le_bytes(), offset).map_err(host::errno).unwrap();
            offset += PAGE;
        }
    }
    rustix::fs::ftruncate(&file, offset).unwrap();
    sealed::seal(&file).unwrap();
    InitialData::new(file, places)
}

#[test]
fn data_are_copied_when_they_were_written() {
    let span = space::FIRST + PAGE..space::FIRST + 301 * PAGE;
    let initial = data(std::slice::from_ref(&span), &|address| address + 1);
    both(|pages| {
        let parent = memory();
        parent.load_layout(span.end + 9 * PAGE, &initial).unwrap();
        parent.guest.store(span.start + 5 * PAGE, &5_u64).unwrap();
        parent.guest.store(span.start + 8 * PAGE, &8_u64).unwrap();
        parent.guest.store(span.end, &9_u64).unwrap();
        let child = fork(&parent, pages);
        let grandchild = fork(&child, pages);
        if pages.file.is_some() {
            for memory in [&parent, &child] {
                assert_eq!(memory.history.lock().unwrap().copied, 3 * PAGE);
            }
            assert_eq!(grandchild.map().frozen.bytes(span.clone()), 300 * PAGE);
        }
        child.guest.store(span.start, &77_u64).unwrap();
        for (memory, first) in [(&parent, span.start + 1), (&child, 77), (&grandchild, span.start + 1)] {
            for page in span.clone().step_by(PAGE_LEN).skip(1) {
                let written = [(5, 5), (8, 8)].into_iter().find(|(at, _)| span.start + at * PAGE == page);
                assert_eq!(memory.guest.load(page), Ok(written.map_or(page + 1, |(_, value)| value)));
            }
            assert_eq!(memory.guest.load(span.start), Ok(first));
            assert_eq!([span.start - PAGE, span.end].map(|at| memory.guest.load(at)), [Ok(0), Ok(9)]);
        }
    });
}

#[test]
fn data_lie_where_data_may() {
    let start = space::FIRST;
    let page = |page: i64| start.wrapping_add_signed(page * PAGE.cast_signed());
    for (spans, right) in [
        (&[(0, 1), (1, 2)][..], true),
        (&[(-1, 1)], false),
        (&[(3, 5)], false),
        (&[(1, 2), (0, 1)], false),
        (&[(0, 2), (1, 3)], false),
    ] {
        let spans: Vec<_> = spans.iter().map(|(start, end)| page(*start)..page(*end)).collect();
        let memory = memory();
        let laid_out = memory.load_layout(start + 4 * PAGE, &data(&spans, &|_| 1));
        assert_eq!(laid_out, if right { Ok(space::END) } else { Err(Errno::ENOEXEC) });
        memory.load_layout(start + 4 * PAGE, &InitialData::default()).unwrap();
        assert_eq!(memory.guest.load(start), Ok(0_u64), "nothing is left of the last program");
    }
}

/// The contents of a page: the word it begins with, and the one that comes back when it is
/// discarded.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Held {
    word: u64,
    initial: u64,
    /// It has been moved: whether it is the program's data still depends on what forks have done to
    /// it.
    moved: bool,
}

impl Held {
    const ZERO: Held = Held { word: 0, initial: 0, moved: false };
}

/// Spaces and what their pages hold, as far as there are any.
struct World {
    random: Random,
    pages: PageMap,
    cages: Vec<(Memory, Vec<Option<Held>>)>,
    next: u64,
}

/// The address and number of the pages: enough for some blocks.
const AT: u64 = 16 << 20;
const COUNT: u64 = 8 * BLOCK / PAGE;

impl World {
    fn new(pages: PageMap) -> World {
        let first = memory();
        first.map_pages(Place::Fixed(AT), COUNT * PAGE, RW, false, Content::Zero).unwrap();
        let model = vec![Some(Held::ZERO); usize::try_from(COUNT).unwrap()];
        World { random: Random::seeded(), pages, cages: vec![(first, model)], next: 1 }
    }

    /// The first space is that of a program with data: a long run of pages, and one.
    fn with_data(pages: PageMap) -> World {
        let (first, mut model) = (memory(), vec![0; usize::try_from(COUNT).unwrap()]);
        let spans = [100..1500, 2000..2001];
        for page in spans.iter().cloned().flatten() {
            model[page] = 1 << 32 | page as u64;
        }
        let at = spans.map(|span| AT + span.start as u64 * PAGE..AT + span.end as u64 * PAGE);
        first
            .load_layout(
                AT + COUNT * PAGE - 7,
                &data(&at, &|address| model[usize::try_from((address - AT) / PAGE).unwrap()]),
            )
            .unwrap();
        let held = |word| Some(Held { word, initial: word, moved: false });
        World { random: Random::seeded(), pages, cages: vec![(first, model.into_iter().map(held).collect())], next: 1 }
    }

    /// Some pages: few or many, often whole blocks.
    fn range(&mut self) -> Range<u64> {
        let (unit, random) = (BLOCK / PAGE, &mut self.random);
        let (start, len) = match random.below(3) {
            0 => (random.below(COUNT), 1 + random.below(4)),
            1 => (random.below(COUNT), 1 + random.below(COUNT)),
            _ => (random.below(COUNT / unit) * unit, (1 + random.below(4)) * unit),
        };
        start..(start + len).min(COUNT)
    }

    fn step(&mut self) {
        let cage = usize::try_from(self.random.below(self.cages.len() as u64)).unwrap();
        let range = self.range();
        let bytes = AT + range.start * PAGE..AT + range.end * PAGE;
        let slots = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        let what = self.random.below(12);
        let mut value = self.next;
        self.next += COUNT;
        let (memory, model) = &mut self.cages[cage];
        match what {
            0..=2 => {
                let alone = if self.random.below(4) == 0 { Alone::No } else { Alone::Yes };
                if self.random.below(2) == 0 {
                    // The next fork freezes the pages that this one has copied.
                    drop(memory.forking(Alone::Yes).copy(&self.pages).unwrap());
                }
                let child = (memory.forking(alone).copy(&self.pages).unwrap(), model.clone());
                self.cages.push(child);
                if self.cages.len() > 5 {
                    self.cages.swap_remove(usize::try_from(self.random.below(6)).unwrap());
                }
            }
            3 => {
                memory.unmap_pages(bytes).unwrap();
                model[slots].fill(None);
            }
            4 => {
                let advice = if self.random.below(2) == 0 { libc::MADV_DONTNEED } else { libc::MADV_FREE };
                let whole = model[slots.clone()].iter().all(Option::is_some);
                assert_eq!(memory.discard(bytes.clone(), advice).is_ok(), whole);
                for (page, held) in (range.start..).zip(&mut model[slots]) {
                    let Some(held) = held else { continue };
                    let found: u64 = memory.guest.load(AT + page * PAGE).unwrap();
                    if advice == libc::MADV_FREE {
                        // A freed page may still have its contents, but once they are gone they
                        // must not return.
                        assert!(found == 0 || found == held.word);
                        memory.guest.store(AT + page * PAGE, &0_u64).unwrap();
                        held.word = 0;
                    } else {
                        assert!(
                            found == held.initial || (held.moved && found == 0),
                            "page {page}: {found:#x}, {held:#x?}"
                        );
                        held.word = found;
                    }
                }
            }
            5 => {
                memory.map_pages(Place::Fixed(bytes.start), bytes.end - bytes.start, RW, false, Content::Zero).unwrap();
                model[slots].fill(Some(Held::ZERO));
            }
            6 => {
                // There and back. A moved page is no longer the program's data, and does not form
                // one mapping with pages that are.
                let one = memory.map().mapped_at(bytes.start).is_some_and(|(extent, _)| extent.end >= bytes.end);
                if one && model[slots.clone()].iter().all(Option::is_some) {
                    let len = bytes.end - bytes.start;
                    let there = memory.remap(bytes.clone(), len, Move::To(AT + COUNT * PAGE)).unwrap();
                    assert_eq!(memory.remap(there..there + len, len, Move::To(bytes.start)), Ok(bytes.start));
                    model[slots].iter_mut().flatten().for_each(|held| held.moved = true);
                }
            }
            7 => {
                let _ = memory.protect_pages(bytes.clone(), 1);
                drop(memory.forking(Alone::Yes).copy(&self.pages).unwrap());
                for (part, _) in memory.map().mapped_parts(bytes).0 {
                    memory.guest.protect(part.start, part.end - part.start, READ_WRITE).unwrap();
                }
                memory.map().update(AT..AT + COUNT * PAGE, |region| region.prot = RW);
            }
            _ => {
                for (page, held) in (range.start..).zip(&mut model[slots]) {
                    let Some(held) = held else { continue };
                    memory.guest.store(AT + page * PAGE, &value).unwrap();
                    memory.guest.store(AT + page * PAGE + PAGE - 8, &value).unwrap();
                    held.word = value;
                    value += 1;
                }
            }
        }
    }

    fn check(&self) {
        for (memory, model) in &self.cages {
            for (page, slot) in (0..COUNT).zip(model) {
                let found = memory.guest.load::<u64>(AT + page * PAGE);
                assert_eq!(found, slot.map(|held| held.word).ok_or(Errno::EFAULT), "page {page}");
            }
            let (map, frozen) = (memory.map(), |map: &Vmmap| map.frozen.bytes(0..space::LIMIT));
            let plain = map.regions().filter(|(_, region)| region.is_plain()).map(|(range, _)| range);
            let inside: u64 = plain.map(|range| map.frozen.bytes(range)).sum();
            assert_eq!(inside, frozen(&map), "only private memory is frozen");
            drop(map);
            crate::mem::host_count::is_bounded(memory);
        }
    }
}

#[test]
fn a_tree_of_forks_of_a_program_agrees_with_the_model() {
    for pages in [PageMap::open(), PageMap::none(), PageMap::open()] {
        let mut world = World::with_data(pages);
        for _ in 0..80 {
            world.check();
            world.step();
        }
    }
}

#[test]
fn a_tree_of_forks_agrees_with_a_page_by_page_model() {
    let mut frozen = 0;
    for _ in 0..6 {
        let mut world = World::new(PageMap::open());
        for _ in 0..80 {
            world.step();
            world.check();
            frozen += world.cages.iter().map(|(memory, _)| memory.map().frozen.len()).sum::<usize>();
        }
        let layers = world.pages.layers.clone();
        drop(world);
        assert_eq!(layers.count(), 0, "layers go with the last that has them");
    }
    assert!(frozen > 0 || PageMap::open().file.is_none(), "nothing was ever frozen");
}

#[test]
fn what_is_copied_twice_is_shared_from_then_on() {
    let pages = PageMap::open();
    if pages.file.is_none() {
        return;
    }
    let parent = memory();
    let at = parent.map_pages(Place::Fixed(AT), 16 * BLOCK, RW, false, Content::Zero).unwrap();
    let copied = |memory: &Memory| memory.history.lock().unwrap().copied;
    parent.guest.fill(at, 1, 16 * BLOCK).unwrap();
    let first = fork(&parent, &pages);
    assert_eq!((copied(&parent), pages.layers.count()), (16 * BLOCK, 0));
    drop(fork(&parent, &pages));
    assert_eq!((copied(&parent), pages.layers.count()), (0, 1));
    // A child that has written little hands on what it has.
    let child = fork(&parent, &pages);
    child.guest.write(at + 5 * PAGE, b"x").unwrap();
    let grandchild = fork(&child, &pages);
    assert_eq!((copied(&child), pages.layers.count()), (PAGE, 1));
    assert_eq!(grandchild.guest.load::<u64>(at + 6 * PAGE), Ok(0x0101_0101_0101_0101));
    // A process that writes to a block all the time keeps it.
    parent.guest.fill(at, 2, BLOCK).unwrap();
    drop(fork(&parent, &pages));
    assert_eq!(parent.map().frozen.bytes(at..at + BLOCK), 0);
    assert_eq!(parent.map().frozen.bytes(at..at + 16 * BLOCK), 15 * BLOCK);
    parent.guest.fill(at, 3, BLOCK).unwrap();
    drop(fork(&parent, &pages));
    assert_eq!((copied(&parent), pages.layers.count()), (BLOCK, 1));
    // A process that has less than half of a layer gives it up.
    parent.unmap_pages(at + 4 * BLOCK..at + 16 * BLOCK).unwrap();
    drop(fork(&parent, &pages));
    assert!(parent.map().frozen.is_empty());
    drop((first, child, grandchild));
    assert_eq!(pages.layers.count(), 0);
}
