//! poll and ppoll.

use std::os::fd::AsFd;

use lind_abi::flags::PollEvents;
use lind_abi::layout::{Pollfd, Sigset, Timespec};
use lind_abi::{Errno, Fd, In, InOut, Len, Out, Result};

use super::Deadline;
use super::mask;
use crate::call::Ctx;
use crate::fd::FileRef;
use crate::host::wait::{self, Poll};
use crate::spin;
use crate::terminal::polled;

/// poll(2)
pub(crate) fn poll(cx: &Ctx<'_>, fds: InOut<Pollfd>, nfds: Len, timeout: i32) -> Result<usize> {
    poll_until(cx, fds, nfds, Deadline::after_milliseconds(timeout))
}

/// ppoll(2). As on Linux the time that is left is written back.
pub(crate) fn ppoll(
    cx: &Ctx<'_>,
    fds: InOut<Pollfd>,
    nfds: Len,
    timeout: InOut<Timespec>,
    set: In<Sigset>,
    size: Len,
) -> Result<usize> {
    let deadline = Deadline::load(cx, cx.reading(timeout))?;
    let masked = mask(cx, set, size)?;
    let ready = masked.wait(cx, deadline, |deadline| poll_until(cx, fds, nfds, deadline));
    store_remaining(cx, deadline, cx.writing(timeout));
    ready
}

/// Writes back the remaining time. A guest with its timeout in read-only memory does not get it,
/// and no error either.
pub(super) fn store_remaining(cx: &Ctx<'_>, deadline: Deadline, timeout: Out<Timespec>) {
    if let Some(left) = deadline.remaining() {
        let _ = cx.store(timeout, &left);
    }
}

/// So many entries lie on the stack.
const FEW: usize = 8;

fn poll_until(cx: &Ctx<'_>, at: InOut<Pollfd>, count: Len, deadline: Deadline) -> Result<usize> {
    let count = u32::try_from(count.0 & u64::from(u32::MAX)).map_err(|_| Errno::EINVAL)? as usize;
    if count == 1 {
        return poll_one(cx, at, deadline);
    }
    if count <= FEW {
        let mut entries: [Entry; FEW] = Default::default();
        let mut polls = [Poll::new(None, 0); FEW];
        return poll_entries(cx, at, &mut entries[..count], &mut polls[..count], deadline);
    }
    // Reading the limit takes a lock. Nobody has one so low that it matters to the few.
    if count as u64 > cx.owner(at.cage)?.settings().limits.files.0 {
        return Err(Errno::EINVAL);
    }
    let mut entries: Vec<Entry> = (0..count).map(|_| Entry::default()).collect();
    let mut polls = vec![Poll::new(None, 0); count];
    poll_entries(cx, at, &mut entries, &mut polls, deadline)
}

/// Most calls have one entry. It needs no share of the file.
fn poll_one(cx: &Ctx<'_>, at: InOut<Pollfd>, deadline: Deadline) -> Result<usize> {
    let asked = cx.load(cx.reading(at))?;
    if asked.events & POLLIN != 0 && cx.owner(at.cage)?.fds.is_watched() {
        note_poll(cx, at, asked.fd);
    }
    let file = if asked.fd < 0 { None } else { Some(cx.host_fd(Fd { number: asked.fd, cage: at.cage })) };
    let (ready, revents) = match &file {
        Some(Err(_)) => (1, POLLNVAL),
        file => {
            let fd = file.as_ref().and_then(|file| file.as_ref().ok()).map(AsFd::as_fd);
            let mut poll = [Poll::new(fd, asked.events)];
            (wait_for(cx, &mut poll, deadline)?, poll[0].revents())
        }
    };
    cx.store(Out::new(at.addr + REVENTS, at.cage), &revents)?;
    Ok(ready)
}

#[cold]
fn note_poll(cx: &Ctx<'_>, at: InOut<Pollfd>, number: i32) {
    if let Ok(file) = cx.file(Fd { number, cage: at.cage }) {
        polled(cx, &file);
    }
}

/// The meaning of an entry of the guest's array.
#[derive(Default)]
enum Entry {
    /// Nothing: a negative number.
    #[default]
    Nothing,
    /// A number that is not open. It is ready at once.
    Bad,
    /// This file, kept open for the call.
    File { _file: FileRef },
}

fn poll_entries(
    cx: &Ctx<'_>,
    at: InOut<Pollfd>,
    entries: &mut [Entry],
    polls: &mut [Poll],
    deadline: Deadline,
) -> Result<usize> {
    let memory = cx.memory(at.cage)?;
    let place = |i: usize| at.addr.saturating_add((i * size_of::<Pollfd>()) as u64);
    let watched = cx.owner(at.cage)?.fds.is_watched();
    let mut bad = 0;
    for (i, (entry, poll)) in entries.iter_mut().zip(&mut *polls).enumerate() {
        let asked: Pollfd = memory.load(place(i))?;
        if asked.fd < 0 {
            continue;
        }
        *entry = match cx.file(Fd { number: asked.fd, cage: at.cage }) {
            Ok(file) => {
                if watched && asked.events & POLLIN != 0 {
                    polled(cx, &file);
                }
                *poll = Poll::new(Some(file.host()), asked.events);
                Entry::File { _file: file }
            }
            Err(_) => {
                bad += 1;
                Entry::Bad
            }
        };
    }
    let deadline = if bad > 0 { Deadline::Now } else { deadline };
    let ready = wait_for(cx, polls, deadline)?;
    for (i, (entry, poll)) in entries.iter().zip(polls).enumerate() {
        let revents = if matches!(entry, Entry::Bad) { POLLNVAL } else { poll.revents() };
        memory.store(place(i) + REVENTS, &revents)?;
    }
    Ok(ready + bad)
}

fn wait_for(cx: &Ctx<'_>, polls: &mut [Poll], deadline: Deadline) -> Result<usize> {
    if !deadline.is_now()
        && let Some(ready) = spin::for_events(cx, || wait::poll(polls, Some(Timespec::default())))
    {
        return ready;
    }
    cx.blocking(|| wait::poll(polls, deadline.remaining()))
}

/// The offset of `revents` in an entry.
const REVENTS: u64 = std::mem::offset_of!(Pollfd, revents) as u64;

#[allow(clippy::cast_possible_truncation, reason = "bit 0")]
const POLLIN: i16 = PollEvents::POLLIN as i16;

#[allow(clippy::cast_possible_truncation, reason = "bit 5")]
const POLLNVAL: i16 = PollEvents::POLLNVAL as i16;
