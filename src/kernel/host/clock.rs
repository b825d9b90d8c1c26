//! Clocks, and the resource usage of host threads.

use lind_abi::layout::{Rusage, Timespec, Timeval};
use lind_abi::{Errno, Result};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::ClockId;

/// clock_gettime(2), through the vdso where the host has it there.
#[inline]
pub fn gettime(clock: i32) -> Result<Timespec> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec that libc may write.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(last_errno());
    }
    // Loaded word by word, as it was written: one load of both would wait until both stores have
    // left the processor's queue, which was most of the time that this took. SAFETY: both are
    // fields of a variable.
    let (sec, nsec) = unsafe { ((&raw const time.tv_sec).read_volatile(), (&raw const time.tv_nsec).read_volatile()) };
    Ok(Timespec { sec, nsec })
}

/// clock_getres(2)
pub fn getres(clock: i32) -> Result<Timespec> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as for `clock_gettime`.
    match unsafe { libc::clock_getres(clock, &raw mut time) } {
        0 => Ok(Timespec { sec: time.tv_sec, nsec: time.tv_nsec }),
        _ => Err(last_errno()),
    }
}

/// clock_nanosleep(2) to a time.
pub fn sleep_until(clock: ClockId, deadline: &Timespec) -> Result<()> {
    let request = rustix::time::Timespec { tv_sec: deadline.sec, tv_nsec: deadline.nsec };
    clock_nanosleep_absolute(clock, &request).map_err(super::errno)
}

/// The clock of the processor time of a host thread of this process: CPUCLOCK_SCHED with the
/// per-thread bit, as pthread_getcpuclockid(3) makes it.
pub fn cpu_clock_of(tid: u32) -> i32 {
    (!tid.cast_signed() << 3) | 6
}

/// getrusage(RUSAGE_THREAD) of the calling host thread, without the memory of the process.
pub fn thread_usage() -> Rusage {
    // SAFETY: all bits zero is a valid rusage, and libc writes one.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    let time = |t: libc::timeval| Timeval { sec: t.tv_sec, usec: t.tv_usec };
    let mut counts = [0; 14];
    counts[4..6].copy_from_slice(&[usage.ru_minflt, usage.ru_majflt]);
    counts[7..9].copy_from_slice(&[usage.ru_inblock, usage.ru_oublock]);
    counts[12..14].copy_from_slice(&[usage.ru_nvcsw, usage.ru_nivcsw]);
    Rusage { utime: time(usage.ru_utime), stime: time(usage.ru_stime), counts }
}

fn last_errno() -> Errno {
    Errno::from_raw(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}
