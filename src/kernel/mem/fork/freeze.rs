//! Freezing: memory that many forks would copy again and again is put where parent and children
//! share it (docs/fork.md, "Memory").
//!
//! The unit is a block. A block that exists for the most part, and was copied by the last fork, is
//! written to a [`Layer`](crate::mem::frozen::Layer) and mapped from there, privately: a process
//! that writes a page of it gets a copy, as after Linux's own fork. A block is thawed if many of
//! its pages were written before the next fork, and not frozen again for a while.
//!
//! While a block is written to its layer it is read-only. Only the thread that forks touches it; a
//! grate that may write to the cage's memory without being asked may get EFAULT.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use lind_abi::{Errno, Result};

use super::{BLOCK, OnFork, PAGE, PageMap, READ_WRITE, Region, Use, Vmmap};
use crate::host::{self, pagemap};
use crate::mem::Memory;
use crate::mem::frozen::Piece;

/// A block with fewer pages written is copied page by page.
const DENSE: u64 = BLOCK / PAGE / 4;
/// Copying less than this is as good as freezing it.
const WORTH: u64 = 2 * BLOCK;
/// The layers of one space; one more puts them together.
const LAYERS: usize = 8;
/// The ranges of one layer in one space: each is a mapping of the host's, of which there are not
/// many.
const SPANS: usize = 64;
/// The number of forks for which a thawed block is not frozen again.
const REST: u32 = 16;

/// Observations from earlier forks of a space.
#[derive(Default)]
pub struct History {
    /// Bytes that the last one copied.
    pub copied: u64,
    forks: u32,
    /// The addresses of blocks that were thawed lately.
    hot: BTreeSet<u64>,
}

/// A block and how many of its pages have been written.
struct Written {
    block: Range<u64>,
    pages: u64,
}

impl Memory {
    /// Freezes and thaws before a fork. If the host cannot do it, the pages stay as they are and
    /// the fork copies them.
    pub(super) fn settle(&self, map: &mut Vmmap, history: &mut History, pages: &PageMap, file: &OwnedFd) {
        if history.copied < WORTH && map.frozen.layers().is_empty() {
            return;
        }
        history.forks += 1;
        if history.forks.is_multiple_of(REST) {
            history.hot.clear();
        }
        let may: Vec<_> = map.regions().filter(|(_, region)| may_freeze(region)).map(|(range, _)| range).collect();
        let Ok(written) = self.written(&may, file) else { return };
        let dense = || written.iter().filter(|written| written.pages >= DENSE).map(|written| written.block.clone());
        let (thaw, fresh): (Vec<_>, Vec<_>) = dense().partition(|block| map.frozen.bytes(block.clone()) > 0);
        history.hot.extend(thaw.iter().map(|block| block.start));
        for span in spans(&thaw) {
            self.thaw(map, span);
        }
        self.thaw_wasteful(map, &may);
        let mut cold: Vec<_> = fresh.into_iter().filter(|block| !history.hot.contains(&block.start)).collect();
        let layers = map.frozen.layers();
        let frozen: u64 = layers.iter().map(|(_, bytes)| bytes).sum();
        if history.copied < WORTH || cold.len() as u64 * BLOCK < WORTH.max(frozen / 2) || layers.len() >= 2 * LAYERS {
            return;
        }
        if layers.len() >= LAYERS {
            cold.extend(may.iter().flat_map(blocks).filter(|block| map.frozen.bytes(block.clone()) == BLOCK));
            cold.sort_by_key(|block| block.start);
        }
        let mut spans = spans(&cold);
        spans.sort_by_key(|span| Reverse(span.end - span.start));
        spans.truncate(SPANS);
        // Else the pages are writable again, and copied.
        let _ = self.freeze(map, &spans, pages, file);
    }

    /// The blocks of some regions of which anything has been written, ascending.
    fn written(&self, regions: &[Range<u64>], file: &OwnedFd) -> Result<Vec<Written>> {
        let mut found: Vec<Written> = Vec::new();
        for region in regions {
            let whole = region.start.next_multiple_of(BLOCK)..region.end / BLOCK * BLOCK;
            if whole.start >= whole.end {
                continue;
            }
            let host = self.guest.range(whole.start, whole.end - whole.start)?;
            pagemap::written(file, host, |at, len| {
                let mut run = whole.start + at..whole.start + at + len;
                while !run.is_empty() {
                    let start = run.start / BLOCK * BLOCK;
                    let end = run.end.min(start + BLOCK);
                    let pages = (end - run.start) / PAGE;
                    match found.last_mut() {
                        Some(last) if last.block.start == start => last.pages += pages,
                        _ => found.push(Written { block: start..start + BLOCK, pages }),
                    }
                    run.start = end;
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// Thaws the rest of layers of which this space has less than half: the unused part is kept for
    /// nothing.
    fn thaw_wasteful(&self, map: &mut Vmmap, may: &[Range<u64>]) {
        for (layer, bytes) in map.frozen.layers() {
            if bytes * 2 >= layer.kept() {
                continue;
            }
            let parts = may.iter().flat_map(|range| map.frozen.parts(range.clone()));
            let its: Vec<_> = parts.filter(|piece| Arc::ptr_eq(&piece.layer, &layer)).map(|piece| piece.at).collect();
            its.into_iter().for_each(|part| self.thaw(map, part));
        }
    }

    fn thaw(&self, map: &mut Vmmap, range: Range<u64>) {
        let parts: Vec<_> = map.frozen.parts(range).map(|piece| piece.at).collect();
        for part in parts {
            if self.guest.make_anonymous(part.start, part.end - part.start).is_ok() {
                map.frozen.carve(part.clone());
                map.odd(part);
            }
        }
    }

    fn freeze(&self, map: &mut Vmmap, spans: &[Range<u64>], pages: &PageMap, file: &OwnedFd) -> Result<()> {
        let total = spans.iter().map(|span| span.end - span.start).sum();
        if total > pages.file_limit {
            return Err(Errno::EFBIG);
        }
        if !map.may_have(2 * spans.len()) {
            return Err(Errno::ENOMEM);
        }
        // A range that is protected for a while may be a host mapping of its own afterwards.
        spans.iter().for_each(|span| [span.start, span.end].into_iter().for_each(|at| map.seam(at)));
        let protect = |span: &Range<u64>, prot| self.guest.protect(span.start, span.end - span.start, prot);
        let made = pages.layers.make(total, |layer| {
            let mut offset = 0;
            for span in spans {
                protect(span, libc::PROT_READ)?;
                for block in blocks(span) {
                    self.save(map, &block, layer, offset, file)?;
                    offset += BLOCK;
                }
            }
            Ok(())
        });
        let layer = match made {
            Ok(layer) => Arc::new(layer),
            Err(errno) => {
                // The host had room for these mappings as they were.
                spans.iter().try_for_each(|span| protect(span, READ_WRITE))?;
                return Err(errno);
            }
        };
        let mut offset = 0;
        for span in spans {
            let len = span.end - span.start;
            if self.guest.map_file(span.start, len, READ_WRITE, false, layer.file(), offset).is_ok() {
                map.frozen.carve(span.clone());
                map.frozen.insert(Piece { at: span.clone(), layer: Arc::clone(&layer), offset });
            } else {
                protect(span, READ_WRITE)?;
            }
            offset += len;
        }
        Ok(())
    }

    /// Writes a block to a layer: its written pages, or all if some of it comes from another layer.
    fn save(&self, map: &Vmmap, block: &Range<u64>, layer: BorrowedFd<'_>, offset: u64, file: &OwnedFd) -> Result<()> {
        if map.frozen.bytes(block.clone()) > 0 {
            return self.save_run(block.clone(), layer, offset);
        }
        pagemap::written(file, self.guest.range(block.start, BLOCK)?, |at, len| {
            self.save_run(block.start + at..block.start + at + len, layer, offset + at)
        })
    }

    fn save_run(&self, mut run: Range<u64>, layer: BorrowedFd<'_>, mut offset: u64) -> Result<()> {
        while !run.is_empty() {
            let from = self.guest.range(run.start, run.end - run.start)?;
            let done = host::pwrite(layer, from, offset.cast_signed())? as u64;
            if done == 0 {
                return Err(Errno::EIO);
            }
            run.start += done;
            offset += done;
        }
        Ok(())
    }
}

fn may_freeze(region: &Region) -> bool {
    const WRITABLE: u32 = 3;
    region.is_plain()
        && region.prot & WRITABLE == WRITABLE
        && region.on_fork == OnFork::Keep
        && region.usage != Use::Guard
        && !region.locked
}

fn blocks(range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let whole = range.start.next_multiple_of(BLOCK)..range.end / BLOCK * BLOCK;
    whole.step_by(usize::try_from(BLOCK).expect("small")).map(|start| start..start + BLOCK)
}

/// Blocks, ascending, as ranges of those that are next to each other.
fn spans(blocks: &[Range<u64>]) -> Vec<Range<u64>> {
    blocks.chunk_by(|one, next| one.end == next.start).map(|span| span[0].start..span[span.len() - 1].end).collect()
}
