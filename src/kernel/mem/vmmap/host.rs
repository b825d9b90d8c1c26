//! Counts the mappings that the host may have for a map: never fewer than it has.
//!
//! The host makes one mapping of neighbours only if they are alike in more than the map knows.
//! Pages that were touched apart from each other stay apart, and so do pages that were moved from
//! elsewhere. So a region counts as more where such pages meet (a seam), and where some pages are
//! of another kind than new ones would be (an odd range, or a piece of
//! [`Frozen`](crate::mem::frozen::Frozen)).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use lind_abi::{Errno, Result};

use super::{MAX_REGIONS, Share, Vmmap};

/// Places within regions where the host may have separate mappings.
#[derive(Default)]
pub(super) struct Apart {
    /// Addresses at which two mappings may meet.
    seams: BTreeSet<u64>,
    /// Ranges that may be host mappings of their own; the end of each by its start.
    odd: BTreeMap<u64, u64>,
}

impl Apart {
    /// Each range may be a mapping of its own, and split the one around it.
    fn len(&self) -> usize {
        self.seams.len() + 2 * self.odd.len()
    }

    /// The pages of `range` are gone or new.
    pub(super) fn carve(&mut self, range: &Range<u64>) {
        if range.start < range.end {
            let gone: Vec<u64> = self.seams.range(range.start..=range.end).copied().collect();
            for at in gone {
                self.seams.remove(&at);
            }
        }
        for part in self.odd_parts(range) {
            let Some((&start, &end)) = self.odd.range(..=part.start).next_back() else { continue };
            self.odd.remove(&start);
            for rest in [start..part.start, part.end..end] {
                if !rest.is_empty() {
                    self.odd.insert(rest.start, rest.end);
                }
            }
        }
    }

    fn odd_parts(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let first = self.odd.range(..range.start).next_back();
        let inside = self.odd.range(range.start..range.end.max(range.start));
        let clip = |(&start, &end): (&u64, &u64)| start.max(range.start)..end.min(range.end);
        first.into_iter().chain(inside).map(clip).filter(|part| !part.is_empty()).collect()
    }
}

impl Vmmap {
    /// The most mappings that the host has for it: one for each region and each gap, and the pieces
    /// that are apart.
    pub(in crate::mem) fn host_mappings(&self) -> usize {
        2 * self.regions.len() + 1 + 2 * self.frozen.len() + self.apart.len()
    }

    /// Whether a piece of a region can be mapped again and apart from it.
    pub(in crate::mem) fn may_split(&self) -> bool {
        self.may_have(2)
    }

    /// Whether there may be so many regions or pieces more. A gap between regions is a mapping of
    /// the host's too.
    pub(in crate::mem) fn may_have(&self, more: usize) -> bool {
        self.regions.len() + 2 * self.frozen.len() + more <= MAX_REGIONS
            && self.share.has_room(self.host_mappings() + 2 * more)
    }

    /// Whether the host has room for the same map once more.
    ///
    /// # Errors
    /// ENOMEM.
    pub(in crate::mem) fn check_copy(&self) -> Result<()> {
        if Share::default().has_room(self.host_mappings()) { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// Says to the budget how many it has come to.
    pub(in crate::mem) fn settle_share(&mut self) {
        self.share.set(self.host_mappings());
    }

    /// Notes that the host may have one mapping up to `addr` and another from there.
    pub(in crate::mem) fn seam(&mut self, addr: u64) {
        if self.at(addr).is_some_and(|(found, _)| found.start < addr) {
            self.apart.seams.insert(addr);
        }
    }

    /// Notes that the host may have `range`, in a region, as a mapping that joins nothing.
    pub(in crate::mem) fn odd(&mut self, range: Range<u64>) {
        self.apart.carve(&range);
        self.apart.odd.insert(range.start, range.end);
    }

    /// The places within `range` where the host may have the end of a mapping, even if the map has
    /// none.
    pub(in crate::mem) fn ends_within(&self, range: &Range<u64>) -> Vec<u64> {
        let odd = self.apart.odd_parts(range).into_iter().flat_map(|part| [part.start, part.end]);
        let seams = self.apart.seams.range(range.start..range.end.max(range.start)).copied();
        seams.chain(odd).filter(|at| *at > range.start && *at < range.end).collect()
    }
}
