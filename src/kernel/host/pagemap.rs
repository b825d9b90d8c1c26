//! Finds the pages of a range that have been written: ioctl(PAGEMAP_SCAN) on /proc/self/pagemap,
//! since Linux 6.7.

use std::os::fd::{AsFd, OwnedFd};

use lind_abi::Result;
use syscalls::{Sysno, raw_syscall};

use super::requests::PAGEMAP_SCAN;
use super::{raw, result};
use crate::mem::HostRange;

/// struct pm_scan_arg
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_len: u64,
    max_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    returned: u64,
}

/// struct page_region
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Run {
    start: u64,
    end: u64,
    categories: u64,
}

const FILE: u64 = 1 << 2;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const ZERO_PAGE: u64 = 1 << 5;
const RUNS: usize = 128;

/// Whether the host has the call.
pub fn can_scan(file: &OwnedFd) -> bool {
    let mut runs = [Run::default(); RUNS];
    scan(file, 0, 0, &mut runs).is_ok()
}

/// Calls `found` with offset and length of each run of pages that exist and are no file's,
/// ascending: of a private mapping of a file, those that have been written.
///
/// # Errors
/// The errors of `found`; ENOMEM.
pub fn written(file: &OwnedFd, range: HostRange<'_>, mut found: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
    let first = range.as_ptr() as u64;
    let end = first + range.len() as u64;
    let mut from = first;
    while from < end {
        let mut runs = [Run::default(); RUNS];
        let (count, walked) = scan(file, from, end, &mut runs)?;
        for run in &runs[..count.min(RUNS)] {
            found(run.start - first, run.end - run.start)?;
        }
        if walked <= from {
            break;
        }
        from = walked;
    }
    Ok(())
}

/// How many runs were found, and up to where.
fn scan(file: &OwnedFd, start: u64, end: u64, runs: &mut [Run; RUNS]) -> Result<(usize, u64)> {
    let mut arg = Scan {
        size: size_of::<Scan>() as u64,
        start,
        end,
        regions: runs.as_mut_ptr() as u64,
        regions_len: RUNS as u64,
        inverted: FILE | ZERO_PAGE,
        all_of: FILE | ZERO_PAGE,
        any_of: PRESENT | SWAPPED,
        returned: PRESENT,
        ..Scan::default()
    };
    // SAFETY: the host reads and writes `arg`, and writes at most RUNS runs to `runs`.
    let count =
        result(unsafe { raw_syscall!(Sysno::ioctl, raw(file.as_fd()), PAGEMAP_SCAN as usize, &raw mut arg as usize) })?;
    Ok((count, arg.walk_end))
}
