//! The types whose values are their bytes.
#![allow(unsafe_code)]

use lind_abi::layout::*;

/// A struct or number of the interface.
///
/// # Safety
///
/// The type has no padding, no invalid bit patterns and no references.
pub unsafe trait Plain: Copy + 'static {}

macro_rules! plain {
    ($($t:ty)*) => {$(
        // SAFETY: integers and arrays of them; the kernel asserts that no struct of the interface
        // has padding.
        unsafe impl Plain for $t {}
    )*};
}
plain!(
    u8 i8 u16 i16 u32 i32 u64 i64
    Timespec Timeval Timezone Itimerspec Itimerval Utimbuf Tms Stat StatxTimestamp Statx Statfs Dirent64 OpenHow
    CloneArgs Flock FOwnerEx Iovec Msghdr Mmsghdr Cmsghdr Ucred Linger Sockaddr Pollfd EpollEvent FdSet SigsetArg
    Rlimit Rusage Sysinfo Utsname Sigset Sigaction Siginfo Sigevent Stack Termios Winsize IpcPerm ShmidDs SemidDs
    Sembuf MsqidDs MqAttr RobustList
);

// SAFETY: an array has no padding between its elements.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// The bytes of a value.
#[inline]
pub(crate) fn bytes<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: a plain value has no padding, so all of its bytes are there.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// A type of which every call that writes one writes exactly one, so that a reference says how much
/// room there is.
pub trait Single: Plain {}

macro_rules! single {
    ($($t:ty)*) => {$(impl Single for $t {})*};
}
single!(Stat Statx Statfs Utsname Timespec Timeval Timezone Itimerspec Itimerval Tms Rlimit Rusage Sysinfo i64);
