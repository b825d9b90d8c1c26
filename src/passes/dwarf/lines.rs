//! The line table: programs that step an address and a line, and mark where a line begins.
//!
//! A program keeps its instructions. Before a step over inserted code, an instruction is added that
//! makes up for it.

use anyhow::Result;
use wasmparser::BinaryReader;

use crate::code::Moves;
use crate::module::leb;

/// The new .debug_line.
pub struct Lines {
    pub bytes: Vec<u8>,
    /// Old and new offset of each unit's part, in order.
    parts: Vec<(usize, usize)>,
}

impl Lines {
    /// The new offset of the part that was at `old`.
    pub fn place(&self, old: usize) -> Option<usize> {
        let found = self.parts.binary_search_by_key(&old, |&(old, _)| old).ok()?;
        Some(self.parts[found].1)
    }
}

/// Rewrites .debug_line.
pub fn rewrite(old: &[u8], moves: &Moves) -> Result<Lines> {
    let mut lines = Lines { bytes: Vec::with_capacity(old.len()), parts: Vec::new() };
    let mut reader = BinaryReader::new(old, 0);
    while !reader.eof() {
        lines.parts.push((reader.original_position(), lines.bytes.len()));
        let length = reader.read_u32()?;
        let part = reader.read_bytes(usize::try_from(length)?)?;
        let new = match Header::read(part) {
            Ok(header) => program(part, &header, moves)?,
            // A part of an unknown format stays as it is.
            Err(_) => part.to_vec(),
        };
        lines.bytes.extend_from_slice(&u32::try_from(new.len())?.to_le_bytes());
        lines.bytes.extend_from_slice(&new);
    }
    Ok(lines)
}

/// The fields of a program's header that its instructions depend on.
struct Header {
    /// The offset of the first instruction.
    start: usize,
    line_range: u8,
    opcode_base: u8,
    /// The number of operands of each standard instruction.
    operands: Vec<u8>,
}

impl Header {
    fn read(part: &[u8]) -> Result<Header> {
        let mut reader = BinaryReader::new(part, 0);
        let version = reader.read_u8()?;
        anyhow::ensure!((2..=5).contains(&version) && reader.read_u8()? == 0, "an unknown version");
        if version == 5 {
            anyhow::ensure!(reader.read_u8()? == 4 && reader.read_u8()? == 0, "addresses are not of 32 bits");
        }
        let length = usize::try_from(reader.read_u32()?)?;
        let start = reader.original_position() + length;
        let minimum = reader.read_u8()?;
        let operations = if version >= 4 { reader.read_u8()? } else { 1 };
        anyhow::ensure!(minimum == 1 && operations == 1, "instructions are not single bytes");
        reader.read_bytes(2)?; // default_is_stmt, line_base
        let line_range = reader.read_u8()?;
        let opcode_base = reader.read_u8()?;
        anyhow::ensure!(line_range > 0 && opcode_base >= 10 && start <= part.len(), "an unusual header");
        let operands = reader.read_bytes(usize::from(opcode_base) - 1)?.to_vec();
        Ok(Header { start, line_range, opcode_base, operands })
    }

    /// The distance that a special instruction steps.
    fn step(&self, opcode: u8) -> u64 {
        u64::from((opcode - self.opcode_base) / self.line_range)
    }
}

/// A program's bytes with its instructions rewritten.
fn program(part: &[u8], header: &Header, moves: &Moves) -> Result<Vec<u8>> {
    let mut out = part[..header.start].to_vec();
    let mut reader = BinaryReader::new(&part[header.start..], header.start);
    let mut address = 0u64;
    while !reader.eof() {
        let at = reader.original_position();
        let opcode = reader.read_u8()?;
        let step = match opcode {
            0 => {
                address = extended(&mut reader, &mut out, address, moves)?;
                continue;
            }
            special if special >= header.opcode_base => header.step(special),
            2 => u64::from(reader.read_var_u32()?),
            8 => header.step(255),
            9 => u64::from(reader.read_u8()?) + (u64::from(reader.read_u8()?) << 8),
            other => {
                for _ in 0..header.operands[usize::from(other) - 1] {
                    reader.read_var_i64()?; // a signed number has the bytes of an unsigned one
                }
                0
            }
        };
        let missing = moves.length(address, step).saturating_sub(step);
        if missing > 0 {
            out.push(2); // DW_LNS_advance_pc
            leb(&mut out, u32::try_from(missing)?);
        }
        address = address.saturating_add(step);
        out.extend_from_slice(&part[at..reader.original_position()]);
    }
    Ok(out)
}

/// An extended instruction, which carries its length. Returns the old address after it.
fn extended(reader: &mut BinaryReader, out: &mut Vec<u8>, address: u64, moves: &Moves) -> Result<u64> {
    let len = reader.read_var_u32()?;
    let body = reader.read_bytes(usize::try_from(len)?)?;
    out.push(0);
    leb(out, len);
    match *body {
        // DW_LNE_set_address
        [2, a, b, c, d] => {
            let address = u64::from(u32::from_le_bytes([a, b, c, d]));
            out.push(2);
            out.extend_from_slice(&u32::try_from(moves.place(address))?.to_le_bytes());
            Ok(address)
        }
        // DW_LNE_end_sequence
        [1, ..] => {
            out.extend_from_slice(body);
            Ok(0)
        }
        _ => {
            out.extend_from_slice(body);
            Ok(address)
        }
    }
}
