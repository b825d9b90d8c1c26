//! poll and ppoll.

use lind_abi::flags::PollEvents;
use lind_abi::layout::{Pollfd, Sigset, Timespec};
use lind_abi::{Errno, Fd, In, InOut, Len, Out, Result};

use super::Deadline;
use super::mask::mask;
use crate::call::Ctx;
use crate::host::wait::{self, Poll};

/// poll(2)
pub(crate) fn poll(cx: &Ctx<'_>, fds: InOut<Pollfd>, nfds: Len, timeout: i32) -> Result<usize> {
    poll_until(cx, fds, nfds, Deadline::after_milliseconds(timeout))
}

/// ppoll(2). As on Linux the time that is left is written back.
pub(crate) fn ppoll(cx: &Ctx<'_>, fds: InOut<Pollfd>, nfds: Len, timeout: InOut<Timespec>, set: In<Sigset>, size: Len) -> Result<usize> {
    let deadline = Deadline::load(cx, cx.reading(timeout))?;
    let masked = mask(cx, set, size)?;
    let ready = poll_until(cx, fds, nfds, deadline);
    drop(masked);
    store_remaining(cx, deadline, cx.writing(timeout));
    ready
}

/// Writes back what is left. A guest that has its timeout in read-only memory does not get it, and no error either.
pub(super) fn store_remaining(cx: &Ctx<'_>, deadline: Deadline, timeout: Out<Timespec>) {
    if let Some(left) = deadline.remaining() {
        let _ = cx.store(timeout, &left);
    }
}

fn poll_until(cx: &Ctx<'_>, at: InOut<Pollfd>, count: Len, deadline: Deadline) -> Result<usize> {
    let cage = cx.owner(at.cage)?;
    let count = u32::try_from(count.0 & u64::from(u32::MAX)).map_err(|_| Errno::EINVAL)?;
    if u64::from(count) > cage.settings().limits.files.0 {
        return Err(Errno::EINVAL);
    }
    let asked = cx.load_array(cx.reading(at), count as usize)?;
    let files: Vec<_> = asked.iter().map(|ask| cx.file(Fd { number: ask.fd, cage: at.cage })).collect();
    let mut polls: Vec<_> =
        asked.iter().zip(&files).map(|(ask, file)| Poll::new(file.as_ref().ok().map(|file| file.host()), ask.events)).collect();
    // What is not open is ready at once. Negative numbers are passed over.
    let bad = |i: usize| asked[i].fd >= 0 && files[i].is_err();
    let any_bad = (0..asked.len()).any(bad);
    let wait = || if any_bad { Some(Timespec::default()) } else { deadline.remaining() };
    let ready = cx.blocking(|| wait::poll(&mut polls, wait()));

    let mut count = ready?;
    for (i, poll) in polls.iter().enumerate() {
        let revents = if bad(i) {
            count += 1;
            POLLNVAL
        } else {
            poll.revents()
        };
        let place = at.addr + (i * size_of::<Pollfd>() + std::mem::offset_of!(Pollfd, revents)) as u64;
        cx.store(Out::new(place, at.cage), &revents)?;
    }
    Ok(count)
}

#[allow(clippy::cast_possible_truncation, reason = "bit 5")]
const POLLNVAL: i16 = PollEvents::POLLNVAL as i16;
