//! Guest memory: the 4 GiB a cage can address, and the only code that touches it from outside.
//!
//! A [`GuestMemory`] is a reservation of address space, 4 GiB between two guards, all of it
//! PROT_NONE until the memory map opens pages. Soundness rests on three facts:
//!
//! 1. The reservation lives as long as the `GuestMemory`; every address made here is `base +
//!    offset` with `offset + len <= 4 GiB`, and every mapping call replaces pages inside it, so
//!    nothing else is ever touched.
//! 2. No Rust reference into the reservation exists. Guest threads may write any byte at any time;
//!    data is copied out before it is looked at, by assembly the compiler cannot look into, so a
//!    race spoils only bytes.
//! 3. A page may be unmapped or its file truncated under a copy. The copy routines occupy one known
//!    range of code; the fault handler sends a SIGSEGV or SIGBUS in that range to the routine's
//!    error exit, and the caller gets EFAULT.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_void};
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use lind_abi::layout::{LindAnswer, LindCall};
use lind_abi::{Call, Errno, Result};

mod copy;
mod fault;
mod pages;
pub mod spare;

pub use copy::Pod;
pub use fault::{Fault, install_fault_handler};

const SPACE: u64 = 1 << 32;
const GUARD: usize = 32 << 20;
/// A huge page of the host's: guest addresses are aligned to it where the host's are.
const HUGE: usize = 2 << 20;
const _: () = assert!(GUARD.is_multiple_of(HUGE));
/// The host's page size, which is the guest's as well.
pub const PAGE: u64 = 4096;

const SPACE_LEN: usize = 1 << 32;
const RESERVED: usize = SPACE_LEN + 2 * GUARD;

/// A cage's address space. Unmapped when dropped.
pub struct GuestMemory {
    base: NonNull<u8>,
}

// SAFETY: the reservation is owned, never borrowed as references, and all access to it tolerates
// races (facts 2 and 3).
unsafe impl Send for GuestMemory {}
// SAFETY: as for Send.
unsafe impl Sync for GuestMemory {}

/// A checked range of guest memory as the host sees it, for host calls that take an address.
///
/// The pages may be unmapped, or written by the guest, at any time: give it to the host kernel,
/// never dereference it.
#[derive(Clone, Copy)]
pub struct HostRange<'m> {
    start: *mut u8,
    len: usize,
    memory: PhantomData<&'m GuestMemory>,
}

impl HostRange<'_> {
    /// The host address of the first byte.
    #[inline]
    pub fn as_ptr(&self) -> *mut c_void {
        self.start.cast()
    }

    /// Bytes in the range.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the range has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl GuestMemory {
    /// Bytes a cage can address.
    pub const SPACE: u64 = SPACE;
    /// Inaccessible bytes on either side of them; the engine leaves out bounds checks for smaller
    /// offsets.
    pub const GUARD: u64 = GUARD as u64;

    /// Reserves a fresh address space with nothing mapped in it. ENOMEM when the host has no room.
    pub fn reserve() -> Result<GuestMemory> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: an anonymous mapping at an address of the host's choosing touches nothing that
        // exists.
        let reserve = |len| unsafe { libc::mmap(ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
        let mut start = reserve(RESERVED);
        // Large mappings are aligned by recent hosts.
        if start != libc::MAP_FAILED && !start.addr().is_multiple_of(HUGE) {
            // SAFETY: only the mapping just made is unmapped, and of the larger one only the parts
            // before and after the aligned range.
            unsafe {
                libc::munmap(start, RESERVED);
                start = reserve(RESERVED + HUGE);
                if start != libc::MAP_FAILED {
                    let before = start.addr().next_multiple_of(HUGE) - start.addr();
                    trim(start.cast(), before);
                    start = start.byte_add(before);
                    trim(start.byte_add(RESERVED).cast(), HUGE - before);
                }
            }
        }
        if start == libc::MAP_FAILED {
            return Err(Errno::ENOMEM);
        }
        // SAFETY: only the mapping just made goes.
        spare::check(0).inspect_err(|_| unsafe { trim(start.cast(), RESERVED) })?;
        // SAFETY: GUARD is inside the mapping just made, so the result is in bounds and not null.
        let base = unsafe { NonNull::new_unchecked(start.cast::<u8>().add(GUARD)) };
        Ok(GuestMemory { base })
    }

    /// The host address of guest address 0.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Whether a host address lies in the reservation or its guards.
    pub fn contains(&self, address: usize) -> bool {
        let start = self.base.as_ptr() as usize - GUARD;
        address.wrapping_sub(start) < RESERVED
    }

    /// Checks `[ptr, ptr + len)` against the space. Says nothing about whether pages are mapped
    /// there. EFAULT.
    #[inline(always)]
    pub fn range(&self, ptr: u64, len: u64) -> Result<HostRange<'_>> {
        if ptr >= SPACE || len > SPACE - ptr {
            return Err(Errno::EFAULT);
        }
        let (Ok(offset), Ok(len)) = (usize::try_from(ptr), usize::try_from(len)) else {
            return Err(Errno::EFAULT);
        };
        Ok(HostRange { start: self.base.as_ptr().wrapping_add(offset), len, memory: PhantomData })
    }

    /// Copies guest bytes out.
    #[inline]
    pub fn read(&self, ptr: u64, dst: &mut [u8]) -> Result<()> {
        let src = self.range(ptr, dst.len() as u64)?;
        // SAFETY: `dst` is writable for its length; `src` is in the reservation (fact 1) and may
        // fault (fact 3).
        unsafe { copy::bytes(dst.as_mut_ptr(), src.start, src.len) }
    }

    /// Copies guest bytes into memory that need not be initialised; returns it initialised.
    #[inline]
    pub fn read_uninit<'d>(&self, ptr: u64, dst: &'d mut [MaybeUninit<u8>]) -> Result<&'d mut [u8]> {
        let src = self.range(ptr, dst.len() as u64)?;
        let start = dst.as_mut_ptr().cast::<u8>();
        // SAFETY: as in `read`; on success every byte of `dst` has been written.
        unsafe {
            copy::bytes(start, src.start, src.len)?;
            Ok(core::slice::from_raw_parts_mut(start, src.len))
        }
    }

    /// Copies bytes to the guest.
    #[inline]
    pub fn write(&self, ptr: u64, src: &[u8]) -> Result<()> {
        let dst = self.range(ptr, src.len() as u64)?;
        // SAFETY: `src` is readable for its length; `dst` is in the reservation (fact 1) and may
        // fault (fact 3).
        unsafe { copy::bytes(dst.start, src.as_ptr(), dst.len) }
    }

    /// Reads a value once. The bytes may be torn by a racing guest thread; every bit pattern of a
    /// `Pod` is valid.
    #[inline]
    pub fn load<T: Pod>(&self, ptr: u64) -> Result<T> {
        let src = self.range(ptr, size_of::<T>() as u64)?;
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: `value` has room for a T; a successful copy has written all of it, and any bytes
        // make a Pod.
        unsafe {
            copy::bytes(value.as_mut_ptr().cast(), src.start, src.len)?;
            Ok(value.assume_init())
        }
    }

    /// Reads the answer that a grate's handler has left, and takes it away: it is there once.
    ///
    /// # Errors
    /// EFAULT.
    #[inline]
    pub fn take_answer(&self, ptr: u64) -> Result<LindAnswer> {
        let src = self.range(ptr, size_of::<LindAnswer>() as u64)?;
        // SAFETY: `src` is in the reservation (fact 1) and may fault (fact 3).
        unsafe { copy::take_answer(src.start) }
    }

    /// Writes a value.
    #[inline]
    pub fn store<T: Pod>(&self, ptr: u64, value: &T) -> Result<()> {
        let dst = self.range(ptr, size_of::<T>() as u64)?;
        let src = ptr::from_ref(value).cast();
        let whole_words = size_of::<T>().is_multiple_of(8) && size_of::<T>() > 0;
        // SAFETY: a Pod has no padding, so all its bytes are initialised; `dst` as in `write`.
        unsafe {
            if whole_words { copy::words(dst.start, src, dst.len / 8) } else { copy::bytes(dst.start, src, dst.len) }
        }
    }

    /// Writes a call as the `struct lind_call` that a grate's handler reads.
    ///
    /// # Errors
    /// EFAULT.
    #[inline]
    pub fn store_call(&self, ptr: u64, call: &Call<'_>) -> Result<()> {
        let dst = self.range(ptr, size_of::<LindCall>() as u64)?;
        // SAFETY: `dst` has room for it in the reservation (fact 1) and may fault (fact 3).
        unsafe { copy::call(dst.start, call) }
    }

    /// Copies between two address spaces, or within one if the ranges do not overlap.
    #[inline]
    pub fn copy_between(dst: &GuestMemory, dst_ptr: u64, src: &GuestMemory, src_ptr: u64, len: u64) -> Result<()> {
        let from = src.range(src_ptr, len)?;
        let to = dst.range(dst_ptr, len)?;
        // SAFETY: both ranges are in live reservations (fact 1) and may fault (fact 3). Overlap
        // spoils only guest bytes.
        unsafe { copy::bytes(to.start, from.start, from.len) }
    }

    /// Writes `len` bytes of `byte`.
    pub fn fill(&self, ptr: u64, byte: u8, len: u64) -> Result<()> {
        let dst = self.range(ptr, len)?;
        // SAFETY: `dst` is in the reservation (fact 1) and may fault (fact 3).
        unsafe { copy::fill(dst.start, byte, dst.len) }
    }

    /// Reads a string into `buf` and returns it with its NUL. ENAMETOOLONG if `buf` ends first.
    ///
    /// Reads no page beyond the one that holds the NUL.
    pub fn read_cstr<'b>(&self, ptr: u64, buf: &'b mut [MaybeUninit<u8>]) -> Result<&'b CStr> {
        // Paths are short: a first piece this size usually holds all of one.
        let mut piece = 128;
        let mut done = 0;
        while done < buf.len() {
            let at = ptr.checked_add(done as u64).filter(|at| *at < SPACE).ok_or(Errno::EFAULT)?;
            let to_page_end = usize::try_from(PAGE - at % PAGE).map_err(|_| Errno::EFAULT)?;
            let take = piece.min(to_page_end).min(buf.len() - done);
            let bytes = self.read_uninit(at, &mut buf[done..done + take])?;
            if let Some(nul) = bytes.iter().position(|byte| *byte == 0) {
                // SAFETY: bytes up to the end of this piece are initialised, and the first NUL
                // among them is at `done + nul`.
                return Ok(unsafe {
                    let bytes = core::slice::from_raw_parts(buf.as_ptr().cast::<u8>(), done + nul + 1);
                    CStr::from_bytes_with_nul_unchecked(bytes)
                });
            }
            done += take;
            piece = 4096;
        }
        Err(Errno::ENAMETOOLONG)
    }

    /// Loads an aligned word as the guest's atomics do. EINVAL if `ptr` is not a multiple of four.
    pub fn atomic_load(&self, ptr: u64) -> Result<u32> {
        let word = self.word(ptr)?;
        // SAFETY: `word` is aligned and in the reservation (fact 1), and may fault (fact 3).
        unsafe { copy::load_u32(word) }
    }

    /// Stores an aligned word, sequentially consistent.
    pub fn atomic_store(&self, ptr: u64, value: u32) -> Result<()> {
        let word = self.word(ptr)?;
        // SAFETY: as in `atomic_load`.
        unsafe { copy::swap_u32(word, value) }.map(|_| ())
    }

    /// Replaces an aligned word if it is `expected`; returns what was there.
    pub fn atomic_compare_exchange(&self, ptr: u64, expected: u32, new: u32) -> Result<u32> {
        let word = self.word(ptr)?;
        // SAFETY: as in `atomic_load`.
        unsafe { copy::compare_exchange_u32(word, expected, new) }
    }

    fn word(&self, ptr: u64) -> Result<*mut u32> {
        if !ptr.is_multiple_of(4) {
            return Err(Errno::EINVAL);
        }
        Ok(self.range(ptr, 4)?.start.cast())
    }
}

impl Drop for GuestMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `reserve` with this start and length; no range outlives
        // its borrow of self.
        unsafe { libc::munmap(self.base.as_ptr().sub(GUARD).cast(), RESERVED) };
    }
}

/// Unmaps what is left over of a mapping.
///
/// # Safety
/// Nothing refers to those pages.
unsafe fn trim(start: *mut u8, len: usize) {
    if len > 0 {
        // SAFETY: by the caller's contract.
        unsafe { libc::munmap(start.cast(), len) };
    }
}

#[cfg(test)]
mod tests;
