//! The data image: the contents of a program's memory when its code begins, as the module itself
//! declares it (docs/startup.md, "Data").
//!
//! `lind-passes` computes what the linker's start function leaves in memory, and writes it into the
//! module as the section [`SECTION`]. Its pages become a part of the compiled file, which the
//! kernel maps privately. A module with wrong pages harms itself alone: it could write the same to
//! its memory. So this module only checks that the pages lie where data lies, and that all of them
//! are there.

use std::fs::File;
use std::num::NonZeroU32;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, ensure};
use lind_kernel::mem::space;
use wasmparser::{Parser, Payload};

/// The global that the engine sets for the first instance.
pub const TLS_BASE: &str = "__tls_base";

/// The section: the bytes of [`Layout::to_bytes`], but with the last two words first, then the
/// pages.
const SECTION: &str = "lind.data";
/// The size of a page.
const PAGE: u64 = 4096;
/// The most spans: each is a mapping of the host's.
const MOST_SPANS: usize = 32;

/// Pages of memory, one after the other, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The number of the first page.
    pub first: u32,
    /// The number of pages.
    pub pages: u32,
}

/// The addresses of the pages, and the other effects of the start function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// The pages, ascending, in the order in which the file has them; empty without an image.
    pub spans: Vec<Span>,
    /// The value of `__tls_base` in the first instance.
    pub tls_base: Option<NonZeroU32>,
}

/// The memory a program begins with.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct DataImage<'w> {
    /// The addresses of the pages.
    pub layout: Layout,
    /// The pages.
    pub pages: &'w [u8],
}

impl<'w> DataImage<'w> {
    /// Reads the data image of a valid module whose heap begins at `heap_base`; an empty one if the
    /// module declares none.
    ///
    /// # Errors
    /// The section is malformed, there are two, or pages lie outside the data.
    pub fn of(wasm: &'w [u8], heap_base: u32) -> Result<DataImage<'w>> {
        let mut found = None;
        for payload in Parser::new(0).parse_all(wasm) {
            if let Payload::CustomSection(section) = payload?
                && section.name() == SECTION
            {
                ensure!(found.is_none(), "two sections {SECTION}");
                found = Some(section.data());
            }
        }
        let Some(bytes) = found else { return Ok(DataImage::default()) };
        DataImage::read(bytes, heap_base).with_context(|| format!("the section {SECTION}"))
    }

    fn read(bytes: &'w [u8], heap_base: u32) -> Result<DataImage<'w>> {
        let words = bytes.as_chunks::<4>().0;
        let word = |at: usize| words.get(at).copied().map(u32::from_le_bytes).context("is cut short");
        let (tls_base, count) = (word(0)?, usize::try_from(word(1)?)?);
        ensure!((1..=MOST_SPANS).contains(&count), "has {count} spans, not 1 to {MOST_SPANS}");
        let spans = (0..count)
            .map(|n| Ok(Span { first: word(2 + 2 * n)?, pages: word(3 + 2 * n)? }))
            .collect::<Result<Vec<_>>>()?;
        let layout = Layout { spans, tls_base: NonZeroU32::new(tls_base) };
        let pages = &bytes[8 + 8 * count..];
        let mut free = space::FIRST / PAGE;
        for span in &layout.spans {
            let first = u64::from(span.first);
            ensure!(free <= first && span.pages > 0, "has spans that do not ascend, or lie below the data");
            free = first + u64::from(span.pages);
        }
        ensure!(free <= u64::from(heap_base).div_ceil(PAGE), "has pages beyond __heap_base");
        ensure!(pages.len() as u64 == layout.len(), "has {} bytes of pages, not {}", pages.len(), layout.len());
        Ok(DataImage { layout, pages })
    }
}

impl Layout {
    /// The bytes for a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let tls_base = self.tls_base.map_or(0, NonZeroU32::get);
        let count = u32::try_from(self.spans.len()).expect("at most MOST_SPANS");
        let spans = self.spans.iter().flat_map(|span| [span.first, span.pages]);
        spans.chain([tls_base, count]).flat_map(u32::to_le_bytes).collect()
    }

    /// Reads the layout that ends at `end` of a file, and its length there. None if it is not what
    /// `to_bytes` makes.
    pub fn read(file: &File, end: u64) -> std::io::Result<Option<(Layout, u64)>> {
        let word = |bytes: &[u8], n: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[4 * n + i]));
        let mut last = [0; 8];
        let Some(spans_end) = end.checked_sub(8) else { return Ok(None) };
        file.read_exact_at(&mut last, spans_end)?;
        let count = word(&last, 1) as usize;
        let Some(start) = spans_end.checked_sub(8 * count as u64).filter(|_| count <= MOST_SPANS) else {
            return Ok(None);
        };
        let mut bytes = vec![0; 8 * count];
        file.read_exact_at(&mut bytes, start)?;
        let spans = (0..count).map(|n| Span { first: word(&bytes, 2 * n), pages: word(&bytes, 2 * n + 1) }).collect();
        Ok(Some((Layout { spans, tls_base: NonZeroU32::new(word(&last, 0)) }, end - start)))
    }

    /// The number of bytes of the pages.
    pub fn len(&self) -> u64 {
        self.spans.iter().map(|span| u64::from(span.pages) * PAGE).sum()
    }

    /// The ranges of the spans in memory, each with its offset in a file whose pages begin at
    /// `file`.
    pub fn places(&self, mut file: u64) -> impl Iterator<Item = (Range<u64>, u64)> {
        self.spans.iter().map(move |span| {
            let start = u64::from(span.first) * PAGE;
            let end = start + u64::from(span.pages) * PAGE;
            let offset = file;
            file += end - start;
            (start..end, offset)
        })
    }
}

#[cfg(test)]
mod tests;
