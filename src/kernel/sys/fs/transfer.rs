//! Copies between two files that do not pass through the guest: sendfile(2), splice(2) and others.

use std::cell::Cell;

use lind_abi::flags::SpliceFlags;
use lind_abi::{Errno, Fd, In, InOut, Len, Result};

use super::rw::write_failed;
use super::watched;
use crate::call::Ctx;
use crate::fd::Kind;
use crate::host;
use crate::host::fs::At;
use crate::sys::net::check_tokenless;

/// sendfile(2)
pub(crate) fn sendfile(cx: &Ctx<'_>, out: Fd, input: Fd, offset: InOut<i64>, count: Len) -> Result<usize> {
    let (count, _) = within_limit(cx, out, InOut::new(0, out.cage), count)?;
    let (to_fd, out, input) = (out, cx.file(out)?, cx.file(input)?);
    check_tokenless(cx, &out)?;
    let offset = if offset.addr == 0 { None } else { Some(cx.output_of(cx.writing(offset))?) };
    cx.blocking(|| host::fs::sendfile(out.host(), input.host(), offset, count.0))
        .inspect_err(|&errno| write_failed(cx, to_fd, out.host(), errno))
}

/// copy_file_range(2)
pub(crate) fn copy_file_range(
    cx: &Ctx<'_>,
    input: Fd,
    in_offset: InOut<i64>,
    out: Fd,
    out_offset: InOut<i64>,
    len: Len,
    flags: u32,
) -> Result<usize> {
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let (len, looked_at) = within_limit(cx, out, out_offset, len)?;
    let (input, out) = (cx.file(input)?, cx.file(out)?);
    let (from, to) = (offset_at(cx, in_offset, None)?, offset_at(cx, out_offset, looked_at.as_ref())?);
    let done = cx.blocking(|| host::fs::copy_range((input.host(), from), (out.host(), to), len.0, flags))?;
    say_offset(cx, out_offset, looked_at.as_ref()).map(|()| done)
}

/// splice(2). The effects of reading and writing a terminal are not possible this way: EINVAL.
pub(crate) fn splice(
    cx: &Ctx<'_>,
    input: Fd,
    in_offset: InOut<i64>,
    out: Fd,
    out_offset: InOut<i64>,
    len: Len,
    flags: SpliceFlags,
) -> Result<usize> {
    let (len, looked_at) = within_limit(cx, out, out_offset, len)?;
    let (to_fd, input, out) = (out, cx.file(input)?, cx.file(out)?);
    if [&input, &out].iter().any(|file| matches!(file.kind, Kind::Terminal | Kind::Master(_))) {
        return Err(Errno::EINVAL);
    }
    check_tokenless(cx, &out)?;
    let flags = spliced(flags)?;
    let (from, to) = (offset_at(cx, in_offset, None)?, offset_at(cx, out_offset, looked_at.as_ref())?);
    let done = cx
        .blocking(|| host::fs::splice((input.host(), from), (out.host(), to), len.0, flags))
        .inspect_err(|&errno| write_failed(cx, to_fd, out.host(), errno))?;
    say_offset(cx, out_offset, looked_at.as_ref()).map(|()| done)
}

/// tee(2)
pub(crate) fn tee(cx: &Ctx<'_>, input: Fd, out: Fd, len: Len, flags: SpliceFlags) -> Result<usize> {
    let (to_fd, input, out) = (out, cx.file(input)?, cx.file(out)?);
    let flags = spliced(flags)?;
    cx.blocking(|| host::fs::tee(input.host(), out.host(), len.0, flags))
        .inspect_err(|&errno| write_failed(cx, to_fd, out.host(), errno))
}

/// The part of a write that RLIMIT_FSIZE permits, and the offset for which that was checked: the
/// host has to use that offset, whatever is in the guest's memory by then.
fn within_limit(cx: &Ctx<'_>, out: Fd, offset: InOut<i64>, len: Len) -> Result<(Len, Option<Cell<i64>>)> {
    if !cx.owner(out.cage)?.fds.is_watched() {
        return Ok((len, None));
    }
    let at = if offset.addr == 0 { None } else { Some(cx.load(In::new(offset.addr, offset.cage))?) };
    Ok((watched::within_limit(cx, out, at, len)?, at.map(Cell::new)))
}

/// The flags of splice(2) and its like.
pub(super) const SPLICE_FLAGS: u32 = SpliceFlags::SPLICE_F_MOVE
    | SpliceFlags::SPLICE_F_NONBLOCK
    | SpliceFlags::SPLICE_F_MORE
    | SpliceFlags::SPLICE_F_GIFT;

fn spliced(flags: SpliceFlags) -> Result<u32> {
    if flags.beyond(SPLICE_FLAGS) { Err(Errno::EINVAL) } else { Ok(flags.0 & !SpliceFlags::SPLICE_F_GIFT) }
}

/// An offset that the host reads and writes, unless it was read already; NULL is the file's own.
fn offset_at<'m>(cx: &'m Ctx<'_>, offset: InOut<i64>, read: Option<&'m Cell<i64>>) -> Result<At<'m>> {
    match read {
        Some(read) => Ok(At::Here(read)),
        None if offset.addr == 0 => Ok(At::Own),
        None => cx.output_of(cx.writing(offset)).map(At::Guest),
    }
}

/// Tells the guest how far a transfer came from an offset that was read here.
fn say_offset(cx: &Ctx<'_>, offset: InOut<i64>, at: Option<&Cell<i64>>) -> Result<()> {
    at.map_or(Ok(()), |at| cx.store(cx.writing(offset), &at.get()))
}
