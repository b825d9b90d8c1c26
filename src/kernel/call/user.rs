//! Access to guest memory by kernel functions.
//!
//! A pointer argument has no deref: these functions return a copy, or a [`HostRange`] that only the
//! host kernel looks through.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use lind_abi::layout::Timespec;
use lind_abi::{Errno, In, InOut, Len, Out, Path, Result, Str};

use super::Ctx;
use crate::host::PATH_MAX;
use crate::mem::{GuestMemory, HostRange, Pod};

/// Room for a path, uninitialised until one is read into it.
pub struct PathBytes(pub(crate) [MaybeUninit<u8>; PATH_MAX]);

impl Default for PathBytes {
    fn default() -> Self {
        PathBytes([const { MaybeUninit::uninit() }; PATH_MAX])
    }
}

impl Ctx<'_> {
    /// The memory that a pointer refers to.
    #[inline(always)]
    pub fn memory(&self, cage: lind_abi::CageId) -> Result<&GuestMemory> {
        Ok(&self.owner(cage)?.memory.guest)
    }

    /// Reads a struct, once.
    ///
    /// # Errors
    /// EFAULT.
    #[inline]
    pub fn load<T: Pod>(&self, from: In<T>) -> Result<T> {
        self.memory(from.cage)?.load(from.addr)
    }

    /// Reads a time. Guests have 32 bits of tv_nsec and anything at all in the padding after it.
    ///
    /// # Errors
    /// EFAULT; EINVAL for a negative time or a second's worth of nanoseconds and more.
    pub fn load_timespec(&self, from: In<Timespec>) -> Result<Timespec> {
        let time = self.load_raw_timespec(from)?;
        if time.sec < 0 || time.nsec >= 1_000_000_000 { Err(Errno::EINVAL) } else { Ok(time) }
    }

    /// Reads a struct of 64-bit words that has grown: `size` is how much of it the guest knows,
    /// `first` how much it had at first. Words that the guest does not know are 0; words that we do
    /// not know must be 0.
    ///
    /// # Errors
    /// EINVAL, E2BIG, EFAULT.
    pub fn load_versioned<T, const N: usize>(&self, from: In<T>, size: Len, first: u64) -> Result<[u64; N]> {
        const LONGEST: u64 = 4096;
        if size.0 < first {
            return Err(Errno::EINVAL);
        }
        let size = usize::try_from(size.0).ok().filter(|&size| size as u64 <= LONGEST).ok_or(Errno::E2BIG)?;
        let mut bytes = vec![0; size.max(8 * N)];
        self.copy_in(from.cast(), &mut bytes[..size])?;
        if bytes[8 * N..].iter().any(|&byte| byte != 0) {
            return Err(Errno::E2BIG);
        }
        let mut words = [0; N];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("chunks of eight"));
        }
        Ok(words)
    }

    /// As `load_timespec`, for calls whose times may hold other values: utimensat(2) has two
    /// special ones.
    ///
    /// # Errors
    /// EFAULT.
    pub fn load_raw_timespec(&self, from: In<Timespec>) -> Result<Timespec> {
        let time: Timespec = self.load(from)?;
        Ok(Timespec { sec: time.sec, nsec: time.nsec & 0xffff_ffff })
    }

    /// Writes a struct.
    ///
    /// # Errors
    /// EFAULT.
    #[inline]
    pub fn store<T: Pod>(&self, to: Out<T>, value: &T) -> Result<()> {
        self.memory(to.cage)?.store(to.addr, value)
    }

    /// Writes a struct where the pointer is not NULL.
    ///
    /// # Errors
    /// EFAULT.
    pub fn store_if<T: Pod>(&self, to: Out<T>, value: &T) -> Result<()> {
        if to.is_null() { Ok(()) } else { self.store(to, value) }
    }

    /// Reads `count` structs that lie one after the other.
    ///
    /// # Errors
    /// EFAULT.
    pub fn load_array<T: Pod>(&self, from: In<T>, count: usize) -> Result<Vec<T>> {
        let memory = self.memory(from.cage)?;
        let size = size_of::<T>() as u64;
        memory.range(from.addr, size.checked_mul(count as u64).ok_or(Errno::EFAULT)?)?;
        (0..count as u64).map(|i| memory.load(from.addr + i * size)).collect()
    }

    /// A range the host kernel will write into.
    ///
    /// # Errors
    /// EFAULT when it does not lie in the guest's address space. Unmapped pages show when the host
    /// writes.
    #[inline(always)]
    pub fn output(&self, to: Out<u8>, len: Len) -> Result<HostRange<'_>> {
        self.memory(to.cage)?.range(to.addr, len.0)
    }

    /// A range the host kernel will read from.
    ///
    /// # Errors
    /// As for `output`.
    #[inline(always)]
    pub fn input(&self, from: In<u8>, len: Len) -> Result<HostRange<'_>> {
        self.memory(from.cage)?.range(from.addr, len.0)
    }

    /// A struct the host kernel will write.
    ///
    /// # Errors
    /// As for `output`.
    #[inline]
    pub fn output_of<T>(&self, to: Out<T>) -> Result<HostRange<'_>> {
        self.output(to.cast(), Len(size_of::<T>() as u64))
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// EFAULT.
    pub fn copy_in(&self, from: In<u8>, buf: &mut [u8]) -> Result<()> {
        self.memory(from.cage)?.read(from.addr, buf)
    }

    /// Copies bytes out.
    ///
    /// # Errors
    /// EFAULT.
    pub fn copy_out(&self, to: Out<u8>, bytes: &[u8]) -> Result<()> {
        self.memory(to.cage)?.write(to.addr, bytes)
    }

    /// Reads a path into `buf`.
    ///
    /// # Errors
    /// EFAULT; ENAMETOOLONG without a NUL within PATH_MAX.
    #[inline]
    pub fn path<'b>(&self, path: Path, buf: &'b mut PathBytes) -> Result<&'b CStr> {
        self.memory(path.cage)?.read_cstr(path.addr, &mut buf.0)
    }

    /// Reads a string, as `path` does.
    ///
    /// # Errors
    /// As for `path`.
    pub fn string<'b>(&self, string: Str, buf: &'b mut PathBytes) -> Result<&'b CStr> {
        self.path(Path { addr: string.addr, cage: string.cage }, buf)
    }

    /// A pointer that is read and written, as one that is read.
    pub fn reading<T>(&self, pointer: InOut<T>) -> In<T> {
        In::new(pointer.addr, pointer.cage)
    }

    /// A pointer that is read and written, as one that is written.
    pub fn writing<T>(&self, pointer: InOut<T>) -> Out<T> {
        Out::new(pointer.addr, pointer.cage)
    }
}
