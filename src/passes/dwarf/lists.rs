//! Lists of address ranges: those that code covers, and those over which a variable is at some
//! place.

use anyhow::{Result, bail};
use wasmparser::BinaryReader;

use super::Patch;
use crate::code::Moves;

/// The kind of a list. Places have an expression after each range.
#[derive(Clone, Copy, PartialEq)]
pub enum Of {
    Ranges,
    Places,
}

/// Corrects a list of versions 2 to 4: pairs of addresses, counted from a base.
pub fn pairs(section: &mut Patch, offset: usize, mut base: u64, of: Of, moves: &Moves) -> Result<()> {
    let Some(old) = section.old.get(offset..) else {
        return Ok(());
    };
    let mut reader = BinaryReader::new(old, offset);
    loop {
        let at = reader.original_position();
        let (begin, end) = (u64::from(reader.read_u32()?), u64::from(reader.read_u32()?));
        if (begin, end) == (0, 0) {
            return Ok(());
        }
        if begin == u64::from(u32::MAX) {
            base = end;
            section.put_u32(at + 4, moves.place(base))?;
            continue;
        }
        section.put_u32(at, moves.length(base, begin))?;
        section.put_u32(at + 4, moves.length(base, end))?;
        if of == Of::Places {
            let low = usize::from(reader.read_u8()?);
            let len = low + (usize::from(reader.read_u8()?) << 8);
            reader.read_bytes(len)?;
        }
    }
}

/// Corrects a list of version 5, whose entries have kinds. Returns the numbers of the addresses in
/// .debug_addr that it names; `address_of` gives their old values.
pub fn entries(
    section: &mut Patch,
    offset: usize,
    mut base: u64,
    of: Of,
    moves: &Moves,
    address_of: &dyn Fn(usize) -> Option<u64>,
) -> Result<Vec<usize>> {
    let mut named = Vec::new();
    let Some(old) = section.old.get(offset..) else {
        return Ok(named);
    };
    let mut reader = BinaryReader::new(old, offset);
    loop {
        // The kinds have the same numbers in both but for one, the place where no range applies.
        let kind = match (of, reader.read_u8()?) {
            (Of::Places, 5) => Kind::Default,
            (Of::Places, kind @ 6..) => Kind::of(kind - 1)?,
            (_, kind) => Kind::of(kind)?,
        };
        match kind {
            Kind::End => return Ok(named),
            Kind::Default => {}
            Kind::BaseIndex => {
                let index = usize::try_from(reader.read_var_u32()?)?;
                base = address_of(index).unwrap_or(base);
                named.push(index);
                continue;
            }
            Kind::IndexIndex => {
                named.extend([usize::try_from(reader.read_var_u32()?)?, usize::try_from(reader.read_var_u32()?)?])
            }
            Kind::IndexLength => {
                let index = usize::try_from(reader.read_var_u32()?)?;
                let from = address_of(index).unwrap_or(u64::MAX);
                number(section, &mut reader, |length| moves.length(from, length))?;
                named.push(index);
            }
            Kind::OffsetPair => {
                number(section, &mut reader, |begin| moves.length(base, begin))?;
                number(section, &mut reader, |end| moves.length(base, end))?;
            }
            Kind::Base => {
                base = address(section, &mut reader, moves)?;
                continue;
            }
            Kind::StartEnd => {
                address(section, &mut reader, moves)?;
                address(section, &mut reader, moves)?;
            }
            Kind::StartLength => {
                let from = address(section, &mut reader, moves)?;
                number(section, &mut reader, |length| moves.length(from, length))?;
            }
        }
        if of == Of::Places {
            let len = reader.read_var_u32()?;
            reader.read_bytes(usize::try_from(len)?)?;
        }
    }
}

/// DW_RLE_*, and DW_LLE_* with `Default` beside.
enum Kind {
    End,
    BaseIndex,
    IndexIndex,
    IndexLength,
    OffsetPair,
    Default,
    Base,
    StartEnd,
    StartLength,
}

impl Kind {
    fn of(number: u8) -> Result<Kind> {
        Ok(match number {
            0 => Kind::End,
            1 => Kind::BaseIndex,
            2 => Kind::IndexIndex,
            3 => Kind::IndexLength,
            4 => Kind::OffsetPair,
            5 => Kind::Base,
            6 => Kind::StartEnd,
            7 => Kind::StartLength,
            _ => bail!("an unknown kind of list entry"),
        })
    }
}

/// Corrects a 32-bit address; returns the old one.
fn address(section: &mut Patch, reader: &mut BinaryReader, moves: &Moves) -> Result<u64> {
    let at = reader.original_position();
    let old = u64::from(reader.read_u32()?);
    section.put_u32(at, moves.place(old))?;
    Ok(old)
}

/// Corrects a LEB128 number.
fn number(section: &mut Patch, reader: &mut BinaryReader, new: impl Fn(u64) -> u64) -> Result<()> {
    let at = reader.original_position();
    let old = reader.read_var_u64()?;
    section.put_leb(at, reader.original_position() - at, new(old))
}

/// Corrects .debug_aranges: per unit a header, then addresses and lengths.
pub fn aranges(section: &mut Patch, moves: &Moves) -> Result<()> {
    let mut reader = BinaryReader::new(section.old, 0);
    while !reader.eof() {
        let start = reader.original_position();
        let length = reader.read_u32()?;
        let end = reader.original_position() + usize::try_from(length)?;
        reader.read_bytes(8)?;
        // Version, unit, sizes of addresses and segments; the pairs are aligned to their size.
        while !(reader.original_position() - start).is_multiple_of(8) {
            reader.read_u8()?;
        }
        while reader.original_position() + 8 <= end {
            let at = reader.original_position();
            let (address, length) = (u64::from(reader.read_u32()?), u64::from(reader.read_u32()?));
            section.put_u32(at, moves.place(address))?;
            section.put_u32(at + 4, moves.length(address, length))?;
        }
    }
    Ok(())
}
