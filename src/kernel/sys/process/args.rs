//! The arguments and environment of a new program, read from the guest.

use std::ffi::CString;

use lind_abi::{CageId, Errno, In, Path, Result, StrArray};

use crate::cage::Cage;
use crate::call::{Ctx, PathBytes};

/// As on Linux, strings and their pointers may take a quarter of the stack's limit, but always this
/// much, and three quarters of 8 MiB at most.
const LEAST: u64 = 128 << 10;
const MOST: u64 = 6 << 20;
/// Linux's MAX_ARG_STRLEN.
const MOST_STRING: usize = 32 * 4096;

/// The room left for strings.
pub(crate) struct Room(usize);

impl Room {
    /// The room for a program that this cage starts.
    pub fn of(cage: &Cage) -> Room {
        let quarter = cage.settings().limits.stack.0 / 4;
        Room(usize::try_from(quarter.clamp(LEAST, MOST)).unwrap_or(0))
    }

    fn take(&mut self, string: &CString) -> Result<()> {
        let size = string.as_bytes_with_nul().len() + size_of::<u32>();
        self.0 = self.0.checked_sub(size).ok_or(Errno::E2BIG)?;
        Ok(())
    }
}

/// Reads a NULL-terminated array of 32-bit string pointers; NULL is an empty array, as on Linux.
///
/// # Errors
/// E2BIG, EFAULT.
pub(crate) fn strings(cx: &Ctx<'_>, array: StrArray, room: &mut Room) -> Result<Vec<CString>> {
    let mut strings = Vec::new();
    if array.addr == 0 {
        return Ok(strings);
    }
    for index in 0.. {
        let pointer: u32 = cx.load(In::new(array.addr.saturating_add(4 * index), array.cage))?;
        if pointer == 0 {
            break;
        }
        let string = string(cx, u64::from(pointer), array.cage)?;
        room.take(&string)?;
        strings.push(string);
    }
    Ok(strings)
}

fn string(cx: &Ctx<'_>, addr: u64, cage: CageId) -> Result<CString> {
    let mut bytes = Vec::new();
    while bytes.len() < MOST_STRING {
        let at = addr + bytes.len() as u64;
        let mut buf = PathBytes::default();
        match cx.path(Path { addr: at, cage }, &mut buf) {
            Ok(rest) if bytes.is_empty() => return Ok(rest.to_owned()),
            Ok(rest) => {
                bytes.extend_from_slice(rest.to_bytes());
                return CString::new(bytes).map_err(|_| Errno::EINVAL);
            }
            // Longer than a path may be: another piece of it.
            Err(Errno::ENAMETOOLONG) => {
                let mut piece = [0; 4096];
                cx.copy_in(In::new(at, cage), &mut piece)?;
                // Another thread may have cut it short meanwhile.
                let end = piece.iter().position(|byte| *byte == 0).unwrap_or(piece.len());
                bytes.extend_from_slice(&piece[..end]);
            }
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::E2BIG)
}
