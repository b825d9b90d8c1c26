//! The calls about memory mappings.
//!
//! These functions check arguments as Linux does, in its order; [`Memory`](crate::mem::Memory) does
//! the work.

mod advice;
mod lock;
mod map;
mod remap;

pub(crate) use advice::*;
pub(crate) use lock::*;
pub(crate) use map::*;
pub(crate) use remap::*;

use std::ops::Range;

use lind_abi::{Errno, Result};

use crate::mem::{PAGE, page_up, space};

/// The pages from `addr`, which must be page aligned, over `len` bytes.
///
/// # Errors
/// EINVAL for an address inside a page; `beyond` when the range leaves the address space.
fn pages(addr: u64, len: u64, beyond: Errno) -> Result<Range<u64>> {
    if !addr.is_multiple_of(PAGE) {
        return Err(Errno::EINVAL);
    }
    let end = page_up(len).and_then(|len| addr.checked_add(len)).filter(|&end| end <= space::LIMIT).ok_or(beyond)?;
    Ok(addr..end)
}

#[cfg(test)]
mod tests;
