//! For tests: the mappings that the host has of a space, and those that are counted.

use super::{GuestMemory, Memory};

/// Checks that there are not more than are counted.
pub fn is_bounded(memory: &Memory) {
    let counted = memory.map().host_mappings();
    let there = of(&memory.guest);
    assert!(there <= counted, "the host has {there}, counted are {counted}");
}

/// Counts the host's mappings of the reservation, unused parts included.
fn of(guest: &GuestMemory) -> usize {
    let space = guest.base().addr()..guest.base().addr() + usize::try_from(GuestMemory::SPACE).unwrap();
    let address = |text: &str| usize::from_str_radix(text, 16).unwrap();
    let within = |line: &&str| {
        let (start, rest) = line.split_once('-').unwrap();
        let (end, _) = rest.split_once(' ').unwrap();
        address(end) > space.start && address(start) < space.end
    };
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().filter(within).count()
}
