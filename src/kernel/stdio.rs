//! Messages of the runner: everything that it writes to its standard output and standard error goes
//! through here.
//!
//! Both may be a full device, a pipe that nobody reads, or one that does not wait, and guests can
//! make them so. A message that cannot be delivered is lost, and its sender goes on.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lind_abi::layout::Timespec;
use lind_abi::{Errno, Result};
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::ReadWriteFlags;
use rustix::net::SendFlags;

use crate::host::errno;
use crate::host::wait::{Poll, poll};
use crate::text;

/// PIPE_BUF: a pipe takes so much whole or not at all, so messages of several cages do not mix.
const PIECE: usize = 4096;

/// How long a message waits for its reader, each time it gets no further, unless the previous
/// message has waited in vain.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether the last message found no reader in time: then the next one does not wait for him.
static UNHEARD: AtomicBool = AtomicBool::new(false);

/// Prints one line on standard error, if possible. Guests' names in it stay on the line and do not
/// control the terminal.
pub fn say_line(text: &str) {
    say(&format!("lind-boot: {}\n", text::shown(text)));
}

/// Says one line on an open file, as [`say_line`] does.
pub fn say_line_at(file: impl AsFd, text: &str) {
    let line = format!("lind-boot: {}\n", text::shown(text));
    let _ = put(file.as_fd(), line.as_bytes(), Some(PATIENCE));
}

/// Prints several lines on standard error. Guests' names in them have to have passed
/// [`text::shown`], so that all line breaks are ours.
pub fn say(text: &str) {
    say_as_it_is(&text::fit(text));
}

/// Says something on standard error with orders to the terminal. It has none but ours.
pub fn say_as_it_is(text: &str) {
    let patience = if UNHEARD.load(Ordering::Relaxed) { Duration::ZERO } else { PATIENCE };
    let said = put(rustix::stdio::stderr(), text.as_bytes(), Some(patience));
    UNHEARD.store(said == Err(Errno::EAGAIN), Ordering::Relaxed);
}

/// Prints on standard output what the user has asked for, fit for a terminal, and waits until it is
/// read. If the reader has gone, that counts as success. Line breaks are ours, as in [`say`]; JSON
/// has to have passed [`text::json`].
///
/// # Errors
/// The host's error for a device or file that does not accept it.
pub fn print(text: &str) -> Result<()> {
    match put(rustix::stdio::stdout(), text::fit(text).as_bytes(), None) {
        Err(Errno::EPIPE) => Ok(()),
        done => done,
    }
}

/// Called before this process opens anything: fills closed descriptors among 0, 1 and 2 with one
/// that can be neither read nor written. Otherwise the next file to be opened would get the number,
/// and messages would go there.
pub fn fill() {
    let all = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    let mut asked = all.map(|file| Poll::new(Some(file), 0));
    let closed = match poll(&mut asked, Some(Timespec::default())) {
        Ok(_) => asked.iter().filter(|answer| answer.revents() & libc::POLLNVAL != 0).count(),
        Err(_) => 0,
    };
    for _ in 0..closed {
        // The lowest number that is free. Not CLOEXEC, as its neighbours are not.
        if let Ok(nothing) = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY, Mode::empty()) {
            std::mem::forget(nothing);
        }
    }
}

fn put(file: BorrowedFd<'_>, mut bytes: &[u8], patience: Option<Duration>) -> Result<()> {
    let mut since = Instant::now();
    while !bytes.is_empty() {
        match put_some(file, &bytes[..bytes.len().min(PIECE)]) {
            Ok(0) => return Err(Errno::EIO),
            Ok(count) => (bytes, since) = (&bytes[count..], Instant::now()),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let left = patience.map(|patience| patience.saturating_sub(since.elapsed()));
                if left == Some(Duration::ZERO) {
                    return Err(Errno::EAGAIN);
                }
                // A signal does not make the wait longer: only the rest of the time is waited for.
                has_room(file, left)?;
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Writes as much as there is room for now.
///
/// # Errors
/// EAGAIN if there is none.
fn put_some(file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
    /// The file's own position.
    const HERE: u64 = u64::MAX;
    let stat = fstat(file).map_err(errno)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return rustix::io::write(file, bytes).map_err(errno),
        FileType::Socket => {
            return rustix::net::send(file, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).map_err(errno);
        }
        _ => {}
    }
    match rustix::io::pwritev2(file, &[std::io::IoSlice::new(bytes)], HERE, ReadWriteFlags::NOWAIT).map_err(errno) {
        // Terminals, and pipes of older hosts. If another process takes the room in between, the
        // write waits until that is read, or until a signal for this thread comes.
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL | Errno::ESPIPE) => {
            if has_room(file, Some(Duration::ZERO))? {
                rustix::io::write(file, bytes).map_err(errno)
            } else {
                Err(Errno::EAGAIN)
            }
        }
        result => result,
    }
}

/// Whether there comes to be room, or a reason why there will be none.
fn has_room(file: BorrowedFd<'_>, patience: Option<Duration>) -> Result<bool> {
    let timeout = patience.map(|time| Timespec {
        sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        nsec: i64::from(time.subsec_nanos()),
    });
    let mut asked = [Poll::new(Some(file), libc::POLLOUT)];
    match poll(&mut asked, timeout) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}
