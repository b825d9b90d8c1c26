//! Data between two files that does not pass through the guest.

use lind_abi::flags::SpliceFlags;
use lind_abi::{Errno, Fd, In, InOut, Len, Result};

use super::rw::write_failed;
use super::watched;
use crate::call::Ctx;
use crate::fd::Kind;
use crate::host;
use crate::mem::HostRange;
use crate::sys::net::check_tokenless;

/// sendfile(2)
pub(crate) fn sendfile(cx: &Ctx<'_>, out: Fd, input: Fd, offset: InOut<i64>, count: Len) -> Result<usize> {
    let count = within_limit(cx, out, InOut::new(0, out.cage), count)?;
    let (to_fd, out, input) = (out, cx.file(out)?, cx.file(input)?);
    check_tokenless(cx, &out)?;
    let offset = offset_at(cx, offset)?;
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
    let len = within_limit(cx, out, out_offset, len)?;
    let (input, out) = (cx.file(input)?, cx.file(out)?);
    let (from, to) = (offset_at(cx, in_offset)?, offset_at(cx, out_offset)?);
    cx.blocking(|| host::fs::copy_range((input.host(), from), (out.host(), to), len.0, flags))
}

/// splice(2). What terminals mean by reading and writing does not go this way: EINVAL.
pub(crate) fn splice(
    cx: &Ctx<'_>,
    input: Fd,
    in_offset: InOut<i64>,
    out: Fd,
    out_offset: InOut<i64>,
    len: Len,
    flags: SpliceFlags,
) -> Result<usize> {
    let len = within_limit(cx, out, out_offset, len)?;
    let (to_fd, input, out) = (out, cx.file(input)?, cx.file(out)?);
    if [&input, &out].iter().any(|file| matches!(file.kind, Kind::Terminal | Kind::Master(_))) {
        return Err(Errno::EINVAL);
    }
    check_tokenless(cx, &out)?;
    let (from, to) = (offset_at(cx, in_offset)?, offset_at(cx, out_offset)?);
    let flags = spliced(flags)?;
    cx.blocking(|| host::fs::splice((input.host(), from), (out.host(), to), len.0, flags))
        .inspect_err(|&errno| write_failed(cx, to_fd, out.host(), errno))
}

/// tee(2)
pub(crate) fn tee(cx: &Ctx<'_>, input: Fd, out: Fd, len: Len, flags: SpliceFlags) -> Result<usize> {
    let (to_fd, input, out) = (out, cx.file(input)?, cx.file(out)?);
    let flags = spliced(flags)?;
    cx.blocking(|| host::fs::tee(input.host(), out.host(), len.0, flags))
        .inspect_err(|&errno| write_failed(cx, to_fd, out.host(), errno))
}

/// How much of what is to be written RLIMIT_FSIZE allows. The offset may be another by the time the host reads it: that is the
/// guest's own doing, and the limit its own.
fn within_limit(cx: &Ctx<'_>, out: Fd, offset: InOut<i64>, len: Len) -> Result<Len> {
    if !cx.owner(out.cage)?.fds.is_watched() {
        return Ok(len);
    }
    let at = if offset.addr == 0 { None } else { Some(cx.load(In::new(offset.addr, offset.cage))?) };
    watched::within_limit(cx, out, at, len)
}

/// The flags of splice(2) and its like.
pub(super) const SPLICE_FLAGS: u32 = SpliceFlags::SPLICE_F_MOVE
    | SpliceFlags::SPLICE_F_NONBLOCK
    | SpliceFlags::SPLICE_F_MORE
    | SpliceFlags::SPLICE_F_GIFT;

fn spliced(flags: SpliceFlags) -> Result<u32> {
    if flags.beyond(SPLICE_FLAGS) { Err(Errno::EINVAL) } else { Ok(flags.0 & !SpliceFlags::SPLICE_F_GIFT) }
}

/// An offset that the host reads and writes; NULL is the file's own.
fn offset_at<'m>(cx: &'m Ctx<'_>, offset: InOut<i64>) -> Result<Option<HostRange<'m>>> {
    if offset.addr == 0 { Ok(None) } else { cx.output_of(cx.writing(offset)).map(Some) }
}
