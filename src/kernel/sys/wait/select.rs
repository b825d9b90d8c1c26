//! select and pselect6.
//!
//! The host is asked about its own descriptors, with sets that reach as far as the highest of them.

use lind_abi::layout::{FdSet, Sigset, SigsetArg, Timespec, Timeval};
use lind_abi::{Errno, Fd, In, InOut, Len, Result};

use super::Deadline;
use super::mask;
use super::poll::store_remaining;
use crate::call::Ctx;
use crate::fd::{FileRef, MAX_FILES};
use crate::host::wait;
use crate::sys::process::persona;
use crate::terminal::polled;

/// The guest's sets are arrays of these.
type Word = u32;
const BITS: usize = Word::BITS as usize;

/// select(2). As on Linux the time that is left is written back.
pub(crate) fn select(
    cx: &Ctx<'_>,
    n: i32,
    read: InOut<FdSet>,
    write: InOut<FdSet>,
    except: InOut<FdSet>,
    timeout: InOut<Timeval>,
) -> Result<usize> {
    let deadline = if timeout.is_null() {
        Deadline::Never
    } else {
        let time: Timeval = cx.load(cx.reading(timeout))?;
        let sec = time.sec.saturating_add(time.usec / 1_000_000);
        if sec < 0 || time.usec < 0 {
            return Err(Errno::EINVAL);
        }
        Deadline::after(Timespec { sec, nsec: time.usec % 1_000_000 * 1000 })
    };
    let ready = select_until(cx, n, [read, write, except], deadline);
    let tells = cx.cage.settings().persona & persona::STICKY_TIMEOUTS == 0;
    if let Some(left) = deadline.remaining().filter(|_| tells) {
        let _ = cx.store(cx.writing(timeout), &Timeval { sec: left.sec, usec: left.nsec / 1000 });
    }
    ready
}

/// pselect(2)
pub(crate) fn pselect6(
    cx: &Ctx<'_>,
    n: i32,
    read: InOut<FdSet>,
    write: InOut<FdSet>,
    except: InOut<FdSet>,
    timeout: InOut<Timespec>,
    set: In<SigsetArg>,
) -> Result<usize> {
    let deadline = Deadline::load(cx, cx.reading(timeout))?;
    let argument: SigsetArg = if set.is_null() { SigsetArg::default() } else { cx.load(set)? };
    let masked = mask(cx, In::<Sigset>::new(argument.set, set.cage), Len(argument.size))?;
    let ready = masked.wait(cx, deadline, |deadline| select_until(cx, n, [read, write, except], deadline));
    store_remaining(cx, deadline, cx.writing(timeout));
    ready
}

fn select_until(cx: &Ctx<'_>, n: i32, sets: [InOut<FdSet>; 3], deadline: Deadline) -> Result<usize> {
    let n = usize::try_from(n).map_err(|_| Errno::EINVAL)?.min(MAX_FILES);
    let words = n.div_ceil(BITS);
    let mut asked: [Option<Vec<Word>>; 3] = [const { None }; 3];
    for (asked, at) in asked.iter_mut().zip(sets).filter(|(_, at)| !at.is_null()) {
        *asked = Some(cx.load_array(In::<Word>::new(at.addr, at.cage), words)?);
    }
    let files = files(cx, n, &asked, sets)?;
    if let Some(read) = &asked[0] {
        files.iter().filter(|(fd, _)| has(read, *fd)).for_each(|(_, file)| polled(cx, file));
    }
    let end = files.iter().map(|(_, file)| number(file) + 1).max().unwrap_or(0);
    let mut host = asked.each_ref().map(|asked| asked.as_ref().map(|asked| to_host(asked, &files, end)));
    // A select that fails leaves the sets as they are.
    let ready = cx.blocking(|| wait::select(end, host.each_mut().map(Option::as_deref_mut), deadline.remaining()))?;

    let mut count = 0;
    for ((asked, host), at) in asked.iter().zip(&host).zip(sets) {
        let (Some(asked), Some(host)) = (asked, host) else { continue };
        let mut found: Vec<Word> = vec![0; words];
        if ready > 0 {
            for (fd, file) in files.iter().filter(|(fd, _)| has(asked, *fd)) {
                if has_host(host, number(file)) {
                    found[fd / BITS] |= 1 << (fd % BITS);
                    count += 1;
                }
            }
        }
        let bytes: Vec<u8> = found.iter().flat_map(|word| word.to_le_bytes()).collect();
        cx.copy_out(cx.writing(at).cast(), &bytes)?;
    }
    Ok(count)
}

/// The files that any set names.
///
/// # Errors
/// EBADF if one is not open.
fn files(
    cx: &Ctx<'_>,
    n: usize,
    asked: &[Option<Vec<Word>>; 3],
    sets: [InOut<FdSet>; 3],
) -> Result<Vec<(usize, FileRef)>> {
    let mut files = Vec::new();
    for fd in 0..n {
        let in_set = |(asked, _): &(&Option<Vec<Word>>, _)| asked.as_ref().is_some_and(|asked| has(asked, fd));
        if let Some((_, at)) = asked.iter().zip(sets).find(in_set) {
            files.push((fd, cx.file(Fd { number: i32::try_from(fd).map_err(|_| Errno::EBADF)?, cage: at.cage })?));
        }
    }
    Ok(files)
}

fn to_host(asked: &[Word], files: &[(usize, FileRef)], end: usize) -> Vec<u64> {
    let mut host = vec![0; end.div_ceil(64)];
    for (_, file) in files.iter().filter(|(fd, _)| has(asked, *fd)) {
        host[number(file) / 64] |= 1 << (number(file) % 64);
    }
    host
}

fn number(file: &FileRef) -> usize {
    use std::os::fd::AsRawFd;
    usize::try_from(file.host().as_raw_fd()).expect("open descriptors are not negative")
}

fn has(set: &[Word], fd: usize) -> bool {
    set[fd / BITS] >> (fd % BITS) & 1 != 0
}

fn has_host(set: &[u64], fd: usize) -> bool {
    set[fd / 64] >> (fd % 64) & 1 != 0
}
