//! Ends a process that compiles at a signal: at once, unless a file is being written; then after
//! that.
//!
//! Code that writes a file runs within [`whole`]. That holds the signals back from its thread, so
//! the handler always runs on another one or between files; and the handler waits until nobody
//! writes any more.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The signals with which people end programs.
pub const SIGNALS: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// The number of rounds that the end waits for writers: a disk may never answer.
const PATIENCE: u32 = 2000;
static LOOK: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// The number of threads that are writing a file.
static WRITING: AtomicUsize = AtomicUsize::new(0);

/// Whether the process is ending: then no thread begins to write.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Runs `write`, which must not be interrupted by the end of the process.
pub fn whole<T>(write: impl FnOnce() -> T) -> T {
    let _held = Held::signals();
    let _writer = Writer::begin();
    write()
}

/// Keeps signals from the calling thread as long as it lives.
struct Held(libc::sigset_t);

impl Held {
    fn signals() -> Held {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both sets are this thread's own, and made by the two calls.
        unsafe {
            libc::sigemptyset(all.as_mut_ptr());
            for signal in SIGNALS.into_iter().chain([libc::SIGIO]) {
                libc::sigaddset(all.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
            Held(before.assume_init())
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the set is initialised.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

struct Writer;

impl Writer {
    fn begin() -> Writer {
        WRITING.fetch_add(1, Ordering::SeqCst);
        if ENDING.load(Ordering::SeqCst) {
            WRITING.fetch_sub(1, Ordering::SeqCst);
            loop {
                std::thread::park();
            }
        }
        Writer
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        WRITING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits until no thread writes, and lets none begin. It only makes calls that a signal handler may
/// make.
fn await_writers() {
    ENDING.store(true, Ordering::SeqCst);
    for _ in 0..PATIENCE {
        if WRITING.load(Ordering::SeqCst) == 0 {
            return;
        }
        // SAFETY: the time is valid, and the remaining time is not asked for.
        unsafe { libc::nanosleep(&raw const LOOK, std::ptr::null_mut()) };
    }
}

/// Ends the process, from a handler.
pub fn leave(status: libc::c_int) -> ! {
    await_writers();
    // SAFETY: all files are written, and nothing else is left to be done.
    unsafe { libc::_exit(status) }
}

extern "C" fn on_signal(signal: libc::c_int) {
    await_writers();
    // SAFETY: both calls may be made by a handler. The signal is held back until it returns, and
    // then ends the process as if nobody had handled it, which its parent is to see.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Makes the signals that end programs end this process in this way. A signal that its starter
/// ignores stays ignored.
pub fn at_signals() {
    for signal in SIGNALS {
        handle(signal, on_signal, true);
    }
}

/// Installs a handler, which runs on a thread that does not block the signal.
pub fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int), unless_ignored: bool) {
    // SAFETY: actions and sets are valid when they have been zeroed and emptied; the handlers here
    // call only what a handler may.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut before);
        if unless_ignored && before.sa_sigaction == libc::SIG_IGN {
            return;
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// In a child, since it ends: a thread writes while a signal comes, and the whole of it is
    /// written.
    #[test]
    fn what_is_being_written_is_written_to_its_end() {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for two numbers.
        unsafe { libc::pipe(ends.as_mut_ptr()) };
        // SAFETY: the child makes threads of its own, and leaves by a signal.
        let child = unsafe { libc::fork() };
        if child == 0 {
            at_signals();
            let (begun, has_begun) = channel();
            let writer = std::thread::spawn(move || {
                whole(|| {
                    begun.send(()).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    // SAFETY: one byte is read from a literal.
                    unsafe { libc::write(ends[1], b"x".as_ptr().cast(), 1) };
                });
            });
            has_begun.recv().unwrap();
            // SAFETY: a signal to this very process.
            unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
            let _ = writer.join();
            loop {
                std::thread::park();
            }
        }
        let (mut status, mut byte) = (0, [0; 1]);
        // SAFETY: plain calls on numbers of our own, with room for what they write.
        let got = unsafe {
            libc::close(ends[1]);
            libc::waitpid(child, &raw mut status, 0);
            libc::read(ends[0], byte.as_mut_ptr().cast(), 1)
        };
        assert_eq!((got, &byte), (1, b"x"));
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGTERM, "{status:x}");
    }
}
