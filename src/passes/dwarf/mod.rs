//! Corrects the debugging information of code that has moved.
//!
//! Addresses in the DWARF of a wasm module are offsets into its code section. Where code moved,
//! they are corrected in place, and the rest of the sections stays as the compiler wrote it; only
//! the line table grows by the steps over inserted code. Versions 2 to 5 of the 32-bit format, as
//! clang writes them.
//!
//! Limits: a length in a version 5 list that no longer fits its bytes stays as it was (a range then
//! ends a few bytes early), and DWARF that cannot be read is left as it is.

mod lines;
mod lists;

use anyhow::{Context, Result};
use gimli::{AttributeValue, Dwarf, EndianSlice, LittleEndian, Unit, constants as dw};

use crate::code::Moves;
use crate::module::Module;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Corrects the module's DWARF sections for code that has moved.
pub fn follow(module: &mut Module, moves: &Moves) {
    // Debugging information that does not parse must not keep a program from being built.
    if let Ok(sections) = corrected(module, moves) {
        for (name, bytes) in sections {
            module.set_custom(name, &bytes);
        }
    }
}

fn corrected(module: &Module, moves: &Moves) -> Result<Vec<(&'static str, Vec<u8>)>> {
    if module.custom(".debug_info").is_none() {
        return Ok(Vec::new());
    }
    let load =
        |id: gimli::SectionId| Ok::<_, gimli::Error>(Slice::new(module.custom(id.name()).unwrap_or(&[]), LittleEndian));
    let dwarf = Dwarf::load(load)?;
    let patch = |name| {
        let old = module.custom(name).unwrap_or(&[]);
        Patch { name, old, bytes: old.to_vec() }
    };
    let lines = lines::rewrite(module.custom(".debug_line").unwrap_or(&[]), moves)?;
    let mut out = Sections {
        moves,
        lines: &lines,
        info: patch(".debug_info"),
        address: patch(".debug_addr"),
        ranges: patch(".debug_ranges"),
        loc: patch(".debug_loc"),
        rnglists: patch(".debug_rnglists"),
        loclists: patch(".debug_loclists"),
    };
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        out.unit(&dwarf, &dwarf.unit(header)?)?;
    }
    let mut aranges = patch(".debug_aranges");
    lists::aranges(&mut aranges, moves)?;
    let Sections { info, address, ranges, loc, rnglists, loclists, .. } = out;
    let patched = [info, address, ranges, loc, rnglists, loclists, aranges];
    let mut sections: Vec<_> = patched.into_iter().map(|patch| (patch.name, patch.bytes)).collect();
    sections.push((".debug_line", lines.bytes));
    Ok(sections)
}

/// A copy of a section in which values of a fixed size are replaced.
struct Patch<'m> {
    name: &'static str,
    old: &'m [u8],
    bytes: Vec<u8>,
}

impl Patch<'_> {
    fn put(&mut self, at: usize, value: &[u8]) -> Result<()> {
        let place = self.bytes.get_mut(at..at + value.len()).context("a value beyond the end of its section")?;
        place.copy_from_slice(value);
        Ok(())
    }

    /// Writes a 32-bit value; a larger one, which no module can have, is left out.
    fn put_u32(&mut self, at: usize, value: u64) -> Result<()> {
        u32::try_from(value).map_or(Ok(()), |value| self.put(at, &value.to_le_bytes()))
    }

    /// Writes a LEB128 number in the bytes of the old one; the largest that fits if it does not.
    fn put_leb(&mut self, at: usize, len: usize, value: u64) -> Result<()> {
        let most =
            u32::try_from(7 * len).ok().and_then(|bits| 1u64.checked_shl(bits)).map_or(u64::MAX, |over| over - 1);
        let mut value = value.min(most);
        let mut bytes = Vec::with_capacity(len);
        for index in 0..len {
            let more = if index + 1 < len { 0x80 } else { 0 };
            bytes.push(u8::try_from(value & 0x7f)? | more);
            value >>= 7;
        }
        self.put(at, &bytes)
    }
}

/// The sections that hold addresses, while they are corrected.
struct Sections<'m> {
    moves: &'m Moves,
    lines: &'m lines::Lines,
    info: Patch<'m>,
    address: Patch<'m>,
    ranges: Patch<'m>,
    loc: Patch<'m>,
    rnglists: Patch<'m>,
    loclists: Patch<'m>,
}

impl Sections<'_> {
    fn unit(&mut self, dwarf: &Dwarf<Slice>, unit: &Unit<Slice>) -> Result<()> {
        let start = unit.header.debug_info_offset().context("a unit outside of .debug_info")?.0;
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            // A function's first address, and the place of its length, which may replace its end.
            let (mut low, mut high) = (None, None);
            for spec in abbreviation.attributes() {
                let at = start + entries.next_offset().0;
                let attribute = entries.read_attribute(*spec)?;
                let size = start + entries.next_offset().0 - at;
                let value = attribute.value();
                match attribute.name() {
                    dw::DW_AT_low_pc => low = dwarf.attr_address(unit, value)?,
                    dw::DW_AT_high_pc => high = value.udata_value().map(|length| (at, size, attribute.form(), length)),
                    _ => {}
                }
                self.value(dwarf, unit, at, value)?;
            }
            if let (Some(low), Some((at, size, form, length))) = (low, high) {
                let length = self.moves.length(low, length);
                match form {
                    dw::DW_FORM_udata => self.info.put_leb(at, size, length)?,
                    dw::DW_FORM_data4 => self.info.put_u32(at, length)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Corrects an attribute's value, or the list it refers to.
    fn value(
        &mut self,
        dwarf: &Dwarf<Slice>,
        unit: &Unit<Slice>,
        at: usize,
        value: AttributeValue<Slice>,
    ) -> Result<()> {
        match value {
            AttributeValue::Addr(address) => {
                return self.info.put_u32(at, self.moves.place(address));
            }
            AttributeValue::DebugAddrIndex(index) => return self.indexed(dwarf, unit, index.0),
            AttributeValue::DebugLineRef(offset) => {
                return self.lines.place(offset.0).map_or(Ok(()), |new| self.info.put_u32(at, new as u64));
            }
            _ => {}
        }
        let base = unit.low_pc;
        if let Some(offset) = dwarf.attr_ranges_offset(unit, value)? {
            if unit.encoding().version < 5 {
                return lists::pairs(&mut self.ranges, offset.0, base, lists::Of::Ranges, self.moves);
            }
            let indexes = lists::entries(
                &mut self.rnglists,
                offset.0,
                base,
                lists::Of::Ranges,
                self.moves,
                &address_of(dwarf, unit),
            )?;
            return indexes.into_iter().try_for_each(|index| self.indexed(dwarf, unit, index));
        }
        if let Some(offset) = dwarf.attr_locations_offset(unit, value)? {
            if unit.encoding().version < 5 {
                return lists::pairs(&mut self.loc, offset.0, base, lists::Of::Places, self.moves);
            }
            let indexes = lists::entries(
                &mut self.loclists,
                offset.0,
                base,
                lists::Of::Places,
                self.moves,
                &address_of(dwarf, unit),
            )?;
            return indexes.into_iter().try_for_each(|index| self.indexed(dwarf, unit, index));
        }
        Ok(())
    }

    /// Corrects an address in .debug_addr, which attributes and lists name by its number.
    fn indexed(&mut self, dwarf: &Dwarf<Slice>, unit: &Unit<Slice>, index: usize) -> Result<()> {
        let address = dwarf.address(unit, gimli::DebugAddrIndex(index))?;
        self.address.put_u32(unit.addr_base.0 + 4 * index, self.moves.place(address))
    }
}

fn address_of<'d>(dwarf: &'d Dwarf<Slice<'d>>, unit: &'d Unit<Slice<'d>>) -> impl Fn(usize) -> Option<u64> + 'd {
    move |index| dwarf.address(unit, gimli::DebugAddrIndex(index)).ok()
}
