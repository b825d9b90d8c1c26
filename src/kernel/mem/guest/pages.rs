//! Mapping operations on a guest's space.
#![allow(unsafe_code)]

use core::ffi::c_int;
use core::ptr;
use std::os::fd::{AsRawFd, BorrowedFd};

use lind_abi::{Errno, Result};

use super::{GuestMemory, HUGE, HostRange, PAGE, SPACE, copy, trim};

/// Mapping operations, on whole pages of the guest's space. `start` and `len` must be multiples of
/// [`PAGE`], else EINVAL.
impl GuestMemory {
    /// Maps zeroed private pages.
    pub fn map_anonymous(&self, start: u64, len: u64, prot: c_int) -> Result<()> {
        self.map(start, len, prot, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// Maps zeroed pages that stay shared with copies of this space.
    pub fn map_anonymous_shared(&self, start: u64, len: u64, prot: c_int) -> Result<()> {
        self.map(start, len, prot, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// Maps a host file.
    pub fn map_file(
        &self,
        start: u64,
        len: u64,
        prot: c_int,
        shared: bool,
        file: BorrowedFd<'_>,
        offset: u64,
    ) -> Result<()> {
        let offset = i64::try_from(offset).map_err(|_| Errno::EOVERFLOW)?;
        let flags = if shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
        self.map(start, len, prot, flags, file.as_raw_fd(), offset)
    }

    /// Whether the host would map a file so: maps it at an address of the host's choosing and drops
    /// it again.
    pub fn try_map_file(&self, len: u64, prot: c_int, shared: bool, file: BorrowedFd<'_>, offset: u64) -> Result<()> {
        let offset = i64::try_from(offset).map_err(|_| Errno::EOVERFLOW)?;
        let len = usize::try_from(len).map_err(|_| Errno::ENOMEM)?;
        let flags = if shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE } | libc::MAP_NORESERVE;
        // SAFETY: without MAP_FIXED nothing that exists is touched, and what is unmapped is the
        // mapping just made.
        unsafe {
            let start = libc::mmap(ptr::null_mut(), len, data_only(prot), flags, file.as_raw_fd(), offset);
            if start == libc::MAP_FAILED {
                return Err(last_error());
            }
            libc::munmap(start, len);
        }
        Ok(())
    }

    /// Drops what is mapped and returns the pages to the reservation.
    pub fn unmap(&self, start: u64, len: u64) -> Result<()> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        self.map(start, len, libc::PROT_NONE, flags, -1, 0)
    }

    /// Drops everything, as exec does.
    pub fn unmap_all(&self) -> Result<()> {
        self.unmap(0, SPACE)
    }

    /// Changes protection.
    pub fn protect(&self, start: u64, len: u64, prot: c_int) -> Result<()> {
        let pages = self.pages(start, len)?;
        // SAFETY: changes only pages of the reservation; code that touches them expects faults
        // (fact 3).
        check(unsafe { libc::mprotect(pages.as_ptr(), pages.len, data_only(prot)) })
    }

    /// madvise(2) with the advice that cannot reach beyond this space; other advice is EINVAL.
    pub fn advise(&self, start: u64, len: u64, advice: c_int) -> Result<()> {
        const ALLOWED: &[c_int] = &[
            libc::MADV_NORMAL,
            libc::MADV_RANDOM,
            libc::MADV_SEQUENTIAL,
            libc::MADV_WILLNEED,
            libc::MADV_DONTNEED,
            libc::MADV_FREE,
            libc::MADV_HUGEPAGE,
            libc::MADV_NOHUGEPAGE,
            libc::MADV_COLD,
            libc::MADV_PAGEOUT,
            libc::MADV_POPULATE_READ,
            libc::MADV_POPULATE_WRITE,
        ];
        if !ALLOWED.contains(&advice) {
            return Err(Errno::EINVAL);
        }
        let pages = self.pages(start, len)?;
        // SAFETY: the allowed kinds of advice change contents or paging of these pages only.
        check(unsafe { libc::madvise(pages.as_ptr(), pages.len, advice) })
    }

    /// mlock2(2), of pages as they come to be used.
    pub fn lock(&self, start: u64, len: u64) -> Result<()> {
        let pages = self.pages(start, len)?;
        // SAFETY: keeps pages of the reservation in memory; what is in them does not change.
        check(unsafe { libc::mlock2(pages.as_ptr(), pages.len, libc::MLOCK_ONFAULT) })
    }

    /// munlock(2).
    pub fn unlock(&self, start: u64, len: u64) -> Result<()> {
        let pages = self.pages(start, len)?;
        // SAFETY: as for `lock`.
        check(unsafe { libc::munlock(pages.as_ptr(), pages.len) })
    }

    /// msync(2).
    pub fn sync(&self, start: u64, len: u64, flags: c_int) -> Result<()> {
        let pages = self.pages(start, len)?;
        // SAFETY: writes back pages of the reservation.
        check(unsafe { libc::msync(pages.as_ptr(), pages.len, flags) })
    }

    /// mincore(2): one byte per page into `resident`, which must have room for them.
    pub fn resident(&self, start: u64, len: u64, resident: &mut [u8]) -> Result<()> {
        let pages = self.pages(start, len)?;
        if (resident.len() as u64) < len / PAGE {
            return Err(Errno::EINVAL);
        }
        // SAFETY: the host writes one byte per page, and `resident` has that many.
        check(unsafe { libc::mincore(pages.as_ptr(), pages.len, resident.as_mut_ptr()) })
    }

    /// Moves the contents of `len` bytes of mappings from `from` to `to`, replacing mappings there;
    /// `from` stays mapped and reads as zeroes, or as its file.
    ///
    /// The two must not overlap (EINVAL).
    pub fn move_pages(&self, from: u64, to: u64, len: u64) -> Result<()> {
        // DONTUNMAP leaves no hole that another mapping of this process could take.
        self.remap(from, len, to, len, libc::MREMAP_DONTUNMAP)
    }

    /// Maps at `to`, for `len` bytes, the file or shared memory that is mapped at `from`, beginning
    /// with the page there.
    ///
    /// EINVAL if that is private.
    pub fn duplicate_shared(&self, from: u64, to: u64, len: u64) -> Result<()> {
        self.range(from, PAGE)?;
        self.remap(from, 0, to, len, 0)
    }

    /// Maps at the same place as in `parent` the file or shared memory that is mapped there.
    ///
    /// EINVAL if that is private.
    pub fn share_from(&self, parent: &GuestMemory, start: u64, len: u64) -> Result<()> {
        let old = parent.pages(start, len)?;
        let new = self.pages(start, len)?;
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: with an old length of 0 the old mapping stays as it is; what is replaced is in
        // this reservation.
        let mapped = unsafe { libc::mremap(old.as_ptr(), 0, new.len, flags, new.as_ptr()) };
        if mapped == libc::MAP_FAILED { Err(last_error()) } else { Ok(()) }
    }

    /// Replaces mapped pages by private ones with the same contents, writable, and huge if the host
    /// can. They are read-only while they are copied: a thread that writes to them meanwhile
    /// faults.
    pub fn make_anonymous(&self, start: u64, len: u64) -> Result<()> {
        let old = self.pages(start, len)?;
        self.protect(start, len, libc::PROT_READ)?;
        let copied = self.copy_over(old);
        if copied.is_err() {
            self.protect(start, len, libc::PROT_READ | libc::PROT_WRITE)?;
        }
        copied
    }

    fn copy_over(&self, old: HostRange<'_>) -> Result<()> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the host's choosing touches nothing that exists.
        // Part of it is filled, from guest memory that may fault (fact 3), and then moved over
        // pages of the reservation; the rest is dropped. The host looks for room in its tables
        // before it unmaps what is there.
        unsafe {
            let room = libc::mmap(ptr::null_mut(), old.len + HUGE, prot, flags, -1, 0);
            if room == libc::MAP_FAILED {
                return Err(last_error());
            }
            // In the same place of a huge page, or else moving would tear them.
            let before = old.start.addr().wrapping_sub(room.addr()) % HUGE;
            let new = room.cast::<u8>().add(before);
            if old.len >= HUGE {
                libc::madvise(new.cast(), old.len, libc::MADV_HUGEPAGE);
            }
            let mut done = copy::bytes(new, old.start, old.len);
            if done.is_ok() {
                let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
                let moved = libc::mremap(new.cast(), old.len, old.len, flags, old.as_ptr());
                if moved == libc::MAP_FAILED {
                    done = Err(last_error());
                }
            }
            match done {
                Ok(()) => {
                    trim(room.cast(), before);
                    trim(new.add(old.len), HUGE - before);
                }
                Err(_) => trim(room.cast(), old.len + HUGE),
            }
            done
        }
    }

    fn remap(&self, from: u64, old_len: u64, to: u64, new_len: u64, flags: c_int) -> Result<()> {
        let old = self.pages(from, old_len.max(PAGE))?;
        let new = self.pages(to, new_len)?;
        let old_len = if old_len == 0 { 0 } else { old.len };
        let flags = flags | libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: both ranges are in the reservation, and with these flags and lengths nothing is
        // unmapped but what was at `to`.
        let moved = unsafe { libc::mremap(old.as_ptr(), old_len, new.len, flags, new.as_ptr()) };
        if moved == libc::MAP_FAILED { Err(last_error()) } else { Ok(()) }
    }

    fn map(&self, start: u64, len: u64, prot: c_int, flags: c_int, file: c_int, offset: i64) -> Result<()> {
        let pages = self.pages(start, len)?;
        // NORESERVE: what a guest may map is bounded by its own limit, not by the host's guess of
        // what will be used.
        let flags = flags | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: MAP_FIXED replaces pages of the reservation only (`pages` checked that), and
        // nothing holds references into them.
        let mapped = unsafe { libc::mmap(pages.as_ptr(), pages.len, data_only(prot), flags, file, offset) };
        if mapped == libc::MAP_FAILED { Err(last_error()) } else { Ok(()) }
    }

    fn pages(&self, start: u64, len: u64) -> Result<HostRange<'_>> {
        if len == 0 || !start.is_multiple_of(PAGE) || !len.is_multiple_of(PAGE) {
            return Err(Errno::EINVAL);
        }
        self.range(start, len).map_err(|_| Errno::ENOMEM)
    }
}

/// Guest memory is never executable on the host; Linux lets executable pages be read.
fn data_only(prot: c_int) -> c_int {
    let readable = if prot & libc::PROT_EXEC != 0 { libc::PROT_READ } else { 0 };
    prot & (libc::PROT_READ | libc::PROT_WRITE) | readable
}

fn check(result: c_int) -> Result<()> {
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_raw(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}
