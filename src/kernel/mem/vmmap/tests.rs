//! Random operations on the map and on a naive model that keeps one entry per page.

use super::*;
use crate::mem::random::Random;

const FIRST: u64 = 16;
const PAGES: u64 = 96;

impl Random {
    fn range(&mut self) -> Range<u64> {
        let start = self.below(PAGES);
        let end = start + 1 + self.below((PAGES - start).min(1 + PAGES / 3));
        (FIRST + start) * PAGE..(FIRST + end) * PAGE
    }

    fn region(&mut self) -> Region {
        let usage = if self.below(8) == 0 { Use::Guard } else { Use::Mapping };
        Region { source: self.below(2), ..Region::private(u32::try_from(self.below(2)).unwrap(), usage) }
    }
}

/// One entry per page.
struct Model {
    pages: Vec<Option<Region>>,
    limit: u64,
}

impl Model {
    fn slots(&mut self, range: &Range<u64>) -> &mut [Option<Region>] {
        let index = |addr: u64| usize::try_from(addr / PAGE - FIRST).unwrap();
        let span = index(range.start)..index(range.end);
        &mut self.pages[span]
    }

    fn mapped(&self) -> u64 {
        self.pages.iter().flatten().filter(|r| r.usage != Use::Guard).count() as u64 * PAGE
    }

    fn claim(&mut self, len: u64, hint: u64, region: Region) -> Result<u64> {
        let count = usize::try_from(len / PAGE).unwrap();
        let free =
            |model: &Model, at: usize| model.pages.get(at..at + count).is_some_and(|s| s.iter().all(Option::is_none));
        let hinted =
            (hint / PAGE).checked_sub(FIRST).and_then(|at| usize::try_from(at).ok()).filter(|&at| free(self, at));
        let at = hinted.or_else(|| (0..self.pages.len()).rev().find(|&at| free(self, at))).ok_or(Errno::ENOMEM)?;
        if self.mapped() + len > self.limit {
            return Err(Errno::ENOMEM);
        }
        self.pages[at..at + count].fill(Some(region));
        Ok((FIRST + at as u64) * PAGE)
    }
}

fn agree(map: &Vmmap, model: &mut Model) {
    let mut before: Option<(Range<u64>, Region)> = None;
    let mut seen = vec![None; model.pages.len()];
    for (range, region) in map.regions() {
        if let Some((last, other)) = before {
            assert!(last.end <= range.start, "overlap at {range:x?}");
            assert!(last.end < range.start || other != *region, "{last:x?} and {range:x?} should be one region");
        }
        let index = |addr: u64| usize::try_from(addr / PAGE - FIRST).unwrap();
        seen[index(range.start)..index(range.end)].fill(Some(*region));
        before = Some((range, *region));
    }
    assert_eq!(seen, model.pages);
    assert_eq!(map.mapped(), model.mapped());
}

#[test]
fn random_operations_agree_with_a_page_by_page_model() {
    let mut random = Random::seeded();
    for _ in 0..200 {
        let limit = (1 + random.below(PAGES * 2)) * PAGE;
        let mut map = Vmmap::within(FIRST * PAGE..(FIRST + PAGES) * PAGE, limit);
        let mut model = Model { pages: vec![None; usize::try_from(PAGES).unwrap()], limit };
        for _ in 0..100 {
            step(&mut random, &mut map, &mut model);
            agree(&map, &mut model);
        }
    }
}

fn step(random: &mut Random, map: &mut Vmmap, model: &mut Model) {
    let range = random.range();
    match random.below(5) {
        0 => {
            let region = random.region();
            map.map(range.clone(), region);
            model.slots(&range).fill(Some(region));
        }
        1 => {
            map.unmap(range.clone());
            model.slots(&range).fill(None);
        }
        2 => {
            let prot = u32::try_from(random.below(3)).unwrap();
            map.update(range.clone(), |region| region.prot = prot);
            model.slots(&range).iter_mut().flatten().for_each(|region| region.prot = prot);
        }
        3 => {
            let region = Region { usage: Use::Mapping, ..random.region() };
            let len = (1 + random.below(PAGES)) * PAGE;
            let hint = [0, range.start][usize::try_from(random.below(2)).unwrap()];
            assert_eq!(map.claim(len, hint, region), model.claim(len, hint, region));
        }
        _ => {
            let slots = model.slots(&range).to_vec();
            assert_eq!(map.is_free(range.clone()), slots.iter().all(Option::is_none));
            let mapped = |slot: &Option<Region>| slot.is_some_and(|region| region.usage != Use::Guard);
            assert_eq!(map.mapped_parts(range.clone()).1, slots.iter().all(mapped));
            assert_eq!(map.at(range.start).map(|(_, region)| *region), slots[0]);
        }
    }
}

#[test]
fn the_number_of_regions_is_bounded() {
    let mut map = Vmmap::new(1 << 32);
    let page = |n: u64| space::FIRST + n * PAGE..space::FIRST + (n + 1) * PAGE;
    let region = Region::private(3, Use::Mapping);
    let mut n = 0;
    while map.check_room(page(2 * n)).is_ok() {
        map.map(page(2 * n), region);
        n += 1;
        assert!(map.len() <= MAX_REGIONS);
    }
    assert!(map.len() >= MAX_REGIONS - 2);
    assert_eq!(map.claim(PAGE, 0, region), Err(Errno::ENOMEM));
    // Operations that make no further region stay possible.
    assert_eq!(map.check_split(page(0)), Ok(()));
    map.unmap(page(0));
    let wide = space::END - 16 * PAGE..space::END;
    map.map(wide.clone(), region);
    map.map(page(0), region);
    assert_eq!(map.check_split(wide.start + PAGE..wide.end - PAGE), Err(Errno::ENOMEM));
    assert_eq!(map.check_split(wide), Ok(()));
}
