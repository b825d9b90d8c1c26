//! Memory while a start function is interpreted: the pages that were written, and their places.

use std::collections::BTreeMap;
use std::ops::Range;

/// The size of a page.
pub const PAGE: u64 = 4096;
const PAGE_LEN: usize = 4096;
/// Up to so many empty pages are kept in the file rather than mapped separately.
const GAP: u32 = 16;

/// Pages of memory, one after the other, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The number of the first page.
    pub first: u32,
    /// The number of pages.
    pub pages: u32,
}

/// Memory that is zero where nothing was written.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Pages(BTreeMap<u32, Box<[u8; PAGE_LEN]>>);

impl Pages {
    /// Writes bytes.
    pub fn write(&mut self, start: u64, bytes: &[u8]) {
        let mut rest = bytes;
        self.each(start..start + bytes.len() as u64, |part| {
            let (now, later) = rest.split_at(part.len());
            part.copy_from_slice(now);
            rest = later;
        });
    }

    /// The word at an address that is a multiple of 4.
    pub fn load(&self, word: u64) -> u32 {
        let Some(page) = self.0.get(&number(word)) else { return 0 };
        let at = usize::try_from(word % PAGE).expect("smaller than a page");
        u32::from_le_bytes(std::array::from_fn(|i| page[at + i]))
    }

    /// Fills a range with zeroes.
    pub fn clear(&mut self, range: Range<u64>) {
        let whole = number(range.start.next_multiple_of(PAGE))..number(range.end);
        for part in [range.start..range.end.min(range.start.next_multiple_of(PAGE)), range.end / PAGE * PAGE..range.end]
        {
            if part.start >= range.start && self.0.contains_key(&number(part.start)) {
                self.each(part, |part| part.fill(0));
            }
        }
        if whole.start < whole.end {
            let mut behind = self.0.split_off(&whole.start);
            self.0.append(&mut behind.split_off(&whole.end));
        }
    }

    /// Calls `act` with each page's part of a range, ascending. Makes the pages.
    pub fn each(&mut self, range: Range<u64>, mut act: impl FnMut(&mut [u8])) {
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min((at / PAGE + 1) * PAGE);
            let from = usize::try_from(at % PAGE).expect("smaller than a page");
            let len = usize::try_from(end - at).expect("at most a page");
            let page = self.0.entry(number(at)).or_insert_with(|| Box::new([0; PAGE_LEN]));
            act(&mut page[from..from + len]);
            at = end;
        }
    }

    /// Forgets pages of zeroes: they are as if they had never been written.
    pub fn forget_empty(&mut self) {
        self.0.retain(|_, page| page.iter().any(|byte| *byte != 0));
    }

    /// The ranges of the pages, ascending.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        for &page in self.0.keys() {
            match spans.last_mut() {
                Some(last) if page - (last.first + last.pages) <= GAP => last.pages = page + 1 - last.first,
                _ => spans.push(Span { first: page, pages: 1 }),
            }
        }
        spans
    }

    /// The contents of the spans, one after the other.
    pub fn bytes(&self, spans: &[Span]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for page in spans.iter().flat_map(|span| span.first..span.first + span.pages) {
            match self.0.get(&page) {
                Some(page) => bytes.extend(page.iter()),
                None => bytes.resize(bytes.len() + PAGE_LEN, 0),
            }
        }
        bytes
    }
}

/// The page of an address below 2^32.
fn number(address: u64) -> u32 {
    u32::try_from(address / PAGE).expect("within the data")
}
