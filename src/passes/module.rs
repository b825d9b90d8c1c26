//! A module as a list of sections, so that a pass rewrites the sections that it changes and every
//! other byte of the file stays as the linker wrote it.
//!
//! The bytes are validated before a `Module` is made of them ([`crate::run`]); so they are well
//! formed here, and an error below would be a bug of ours, not of the input.

use std::borrow::Cow;
use std::ops::Range;

use anyhow::{Context, Result};
use wasmparser::{BinaryReader, FromReader, Name, NameSectionReader, SectionLimited};

/// Section numbers of the binary format.
pub mod id {
    #![allow(missing_docs)]
    pub const CUSTOM: u8 = 0;
    pub const TYPE: u8 = 1;
    pub const IMPORT: u8 = 2;
    pub const FUNCTION: u8 = 3;
    pub const TABLE: u8 = 4;
    pub const MEMORY: u8 = 5;
    pub const GLOBAL: u8 = 6;
    pub const EXPORT: u8 = 7;
    pub const ELEMENT: u8 = 9;
    pub const CODE: u8 = 10;
    pub const DATA: u8 = 11;
    pub const TAG: u8 = 13;
}

/// The order in which known sections appear; the numbers alone do not give it (tag, data count).
const ORDER: [u8; 13] = [1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11];

const HEADER: usize = 8;

/// One section: its number, and its bytes without number and length.
struct Section<'a> {
    id: u8,
    /// Number and length in their original bytes, kept while the length is the same (wasm-ld pads
    /// it).
    head: &'a [u8],
    body: Cow<'a, [u8]>,
}

/// The sections of a module, in file order.
pub struct Module<'a> {
    header: &'a [u8],
    sections: Vec<Section<'a>>,
}

impl<'a> Module<'a> {
    /// Splits validated bytes into sections.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (header, _) = bytes.split_at_checked(HEADER).context("file shorter than a module's header")?;
        let mut reader = BinaryReader::new(bytes, 0);
        reader.read_bytes(HEADER)?;
        let mut sections = Vec::new();
        while !reader.eof() {
            let start = reader.original_position();
            let id = reader.read_u8()?;
            let len = reader.read_var_u32()?;
            let at = reader.original_position();
            let body = reader.read_bytes(usize::try_from(len)?)?;
            sections.push(Section { id, head: &bytes[start..at], body: Cow::Borrowed(body) });
        }
        Ok(Module { header, sections })
    }

    /// The module as a file.
    pub fn finish(&self) -> Result<Vec<u8>> {
        let mut out = self.header.to_vec();
        for section in &self.sections {
            match &section.body {
                Cow::Borrowed(body) => {
                    out.extend_from_slice(section.head);
                    out.extend_from_slice(body);
                }
                Cow::Owned(body) => {
                    out.push(section.id);
                    leb(&mut out, u32::try_from(body.len()).context("a section grew beyond 4 GiB")?);
                    out.extend_from_slice(body);
                }
            }
        }
        Ok(out)
    }

    /// The bytes of a known section.
    pub fn body(&self, id: u8) -> Option<&[u8]> {
        self.sections.iter().find(|s| s.id == id).map(|s| &*s.body)
    }

    /// The entries of a known section, each with its range in the section's bytes. None if absent.
    pub fn entries<'s, T: FromReader<'s>>(&'s self, id: u8) -> Result<Vec<(Range<usize>, T)>> {
        self.body(id).map_or(Ok(Vec::new()), entries)
    }

    /// Replaces a known section, or inserts it at its place.
    pub fn set(&mut self, id: u8, body: Vec<u8>) {
        if let Some(section) = self.sections.iter_mut().find(|s| s.id == id) {
            section.body = Cow::Owned(body);
            return;
        }
        let rank = |id: u8| ORDER.iter().position(|&o| o == id);
        let at = self.sections.iter().rposition(|s| s.id != id::CUSTOM && rank(s.id) < rank(id)).map_or(0, |i| i + 1);
        self.sections.insert(at, Section { id, head: &[], body: Cow::Owned(body) });
    }

    /// Removes a known section.
    pub fn remove(&mut self, id: u8) {
        self.sections.retain(|s| s.id != id);
    }

    /// The names of the custom sections.
    pub fn custom_names(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().filter(|s| s.id == id::CUSTOM).filter_map(|s| split_custom(&s.body)).map(|(name, _)| name)
    }

    /// The content of a custom section.
    pub fn custom(&self, name: &str) -> Option<&[u8]> {
        self.sections
            .iter()
            .filter(|s| s.id == id::CUSTOM)
            .filter_map(|s| split_custom(&s.body))
            .find(|(n, _)| *n == name)
            .map(|(_, data)| data)
    }

    /// Replaces the content of a custom section, if it exists.
    pub fn set_custom(&mut self, name: &str, data: &[u8]) {
        let found = self
            .sections
            .iter_mut()
            .find(|s| s.id == id::CUSTOM && split_custom(&s.body).is_some_and(|(n, _)| n == name));
        if let Some(section) = found {
            let mut body = Vec::with_capacity(data.len() + name.len() + 5);
            name_bytes(&mut body, name);
            body.extend_from_slice(data);
            section.body = Cow::Owned(body);
        }
    }

    /// Inserts a custom section before a known one.
    pub fn put_custom_before(&mut self, id: u8, name: &str, data: &[u8]) {
        let mut body = Vec::with_capacity(data.len() + name.len() + 5);
        name_bytes(&mut body, name);
        body.extend_from_slice(data);
        let at = self.sections.iter().position(|s| s.id == id).unwrap_or(self.sections.len());
        self.sections.insert(at, Section { id: id::CUSTOM, head: &[], body: Cow::Owned(body) });
    }

    /// Adds a custom section at the end.
    pub fn add_custom(&mut self, name: &str, data: &[u8]) {
        let mut body = Vec::with_capacity(data.len() + name.len() + 5);
        name_bytes(&mut body, name);
        body.extend_from_slice(data);
        self.sections.push(Section { id: id::CUSTOM, head: &[], body: Cow::Owned(body) });
    }

    /// Removes the custom sections whose name the predicate accepts.
    pub fn remove_custom(&mut self, remove: impl Fn(&str) -> bool) {
        self.sections.retain(|s| s.id != id::CUSTOM || !split_custom(&s.body).is_some_and(|(name, _)| remove(name)));
    }

    /// Appends entries, already encoded, to a section that is a list, or makes the section.
    pub fn append(&mut self, id: u8, new: &[Vec<u8>]) -> Result<()> {
        let body = self.body(id).unwrap_or(&[0]);
        let mut reader = BinaryReader::new(body, 0);
        let count = reader.read_var_u32()?;
        let mut out = Vec::with_capacity(body.len() + 16 * new.len());
        leb_padded(&mut out, count + u32::try_from(new.len())?, reader.original_position());
        out.extend_from_slice(&body[reader.original_position()..]);
        new.iter().for_each(|entry| out.extend_from_slice(entry));
        self.set(id, out);
        Ok(())
    }

    /// Names functions that were added at the end, if the module names its functions.
    pub fn name_functions(&mut self, new: &[(u32, String)]) -> Result<()> {
        const FUNCTIONS: u8 = 1;
        let Some(data) = self.custom("name") else {
            return Ok(());
        };
        let (mut reader, mut out) = (BinaryReader::new(data, 0), Vec::with_capacity(data.len() + 32 * new.len()));
        while !reader.eof() {
            let start = reader.original_position();
            let kind = reader.read_u8()?;
            let len = reader.read_var_u32()?;
            let names = reader.read_bytes(usize::try_from(len)?)?;
            if kind != FUNCTIONS {
                out.extend_from_slice(&data[start..reader.original_position()]);
                continue;
            }
            let mut list = BinaryReader::new(names, 0);
            let count = list.read_var_u32()?;
            let mut names_out = Vec::with_capacity(names.len() + 32 * new.len());
            leb(&mut names_out, count + u32::try_from(new.len())?);
            names_out.extend_from_slice(&names[list.original_position()..]);
            for (index, name) in new {
                leb(&mut names_out, *index);
                name_bytes(&mut names_out, name);
            }
            out.push(FUNCTIONS);
            leb(&mut out, u32::try_from(names_out.len())?);
            out.extend_from_slice(&names_out);
        }
        self.set_custom("name", &out);
        Ok(())
    }

    /// The subsections of the name section. A malformed name section counts as none: names are for
    /// people.
    pub fn names(&self) -> Vec<Name<'_>> {
        let Some(data) = self.custom("name") else {
            return Vec::new();
        };
        NameSectionReader::new(BinaryReader::new(data, 0)).map_while(Result::ok).collect()
    }
}

/// The entries of a section's bytes with their places in them.
pub fn entries<'s, T: FromReader<'s>>(body: &'s [u8]) -> Result<Vec<(Range<usize>, T)>> {
    let section = SectionLimited::<T>::new(BinaryReader::new(body, 0))?;
    let read: Vec<(usize, T)> = section.into_iter_with_offsets().collect::<wasmparser::Result<_>>()?;
    let ends: Vec<usize> = read.iter().skip(1).map(|(at, _)| *at).chain([body.len()]).collect();
    Ok(read.into_iter().zip(ends).map(|((at, item), end)| (at..end, item)).collect())
}

/// Appends an unsigned LEB128 number.
pub fn leb(out: &mut Vec<u8>, value: u32) {
    leb_padded(out, value, 1);
}

/// Appends an unsigned LEB128 number of at least so many bytes.
pub fn leb_padded(out: &mut Vec<u8>, mut value: u32, width: usize) {
    let start = out.len();
    while value >= 0x80 || out.len() + 1 < start + width {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Appends a name: its length, then its bytes.
pub fn name_bytes(out: &mut Vec<u8>, name: &str) {
    leb(out, u32::try_from(name.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(name.as_bytes());
}

fn split_custom(body: &[u8]) -> Option<(&str, &[u8])> {
    let mut reader = BinaryReader::new(body, 0);
    let name = reader.read_string().ok()?;
    Some((name, &body[reader.original_position()..]))
}
