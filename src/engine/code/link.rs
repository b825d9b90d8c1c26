//! The compiler process, as the process that runs guests sees it.
//!
//! It is forked before there is a guest, a thread or a wall, so no guest can change it. The code
//! that it returns is trusted no more than any other file: it has to be signed.

#![allow(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lind_kernel::Errno;
use lind_kernel::lock::Locked;
use lind_kernel::runtime::Gone;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno as HostErrno;
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::code::compile::LOOK;
use crate::code::key::{CodeStore, Elsewhere, Kept};
use crate::code::progress::Shown;
use crate::code::serve;
use crate::code::signature::Checks;
use crate::code::walls::{self, Wall, Walls};
use crate::code::wire::{self, ASKED_AT_ONCE, Answer, CompileError, Heard, Request};

/// How long a caller waits for space for one more request.
const ROOM: Duration = Duration::from_millis(4);

/// How long a start waits for work that only saves later starts time.
const PATIENCE: Duration = Duration::from_secs(1);

/// The connection to a compiler process.
pub struct Link {
    /// None if the host could not start the process.
    socket: Option<OwnedFd>,
    /// The process, until it has been waited for.
    process: Mutex<Option<Pid>>,
    /// The number of modules that are asked for.
    asked: Mutex<usize>,
}

/// One of the modules that are asked for, as long as it lives.
struct Turn<'a>(&'a Mutex<usize>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.locked() -= 1;
    }
}

fn failed(errno: Errno, reason: impl Into<String>) -> anyhow::Error {
    CompileError::new(errno, reason).into()
}

impl Link {
    /// Forks the process: a copy of this one, which must have one thread. `walls` are put up around
    /// it, with the cache inside, before it reads any request. If the host cannot start a process,
    /// code that is compiled already still runs.
    ///
    /// # Errors
    /// EMFILE, ENFILE.
    pub fn start(walls: Walls) -> rustix::io::Result<Link> {
        let (ours, theirs) = wire::pair()?;
        // SAFETY: this process has one thread, so nothing that the copy needs is held by another;
        // and the copy never returns.
        match unsafe { libc::fork() } {
            0 => serve::serve(theirs, walls),
            pid => {
                // The compiler ends with the runner, whichever thread ends that.
                lind_kernel::fd::keep_also(ours.as_fd());
                let process = Mutex::new(Pid::from_raw(pid.max(0)));
                Ok(Link { socket: (pid > 0).then_some(ours), process, asked: Mutex::new(0) })
            }
        }
    }

    /// Ends the process and waits for it, so that no zombie is left to its new parent.
    pub fn end(&self) {
        let Some(socket) = &self.socket else { return };
        let Some(process) = self.process.locked().take() else { return };
        // It exits when nobody can ask any more, unless somebody has stopped it: then its new
        // parent waits for it.
        if rustix::net::shutdown(socket, rustix::net::Shutdown::Write).is_ok() && has_ended(socket) {
            let _ = rustix::io::retry_on_intr(|| waitpid(Some(process), WaitOptions::empty()));
        }
    }

    /// The keys that verify code, and the directories where it is kept. Keys are made if there are
    /// none.
    ///
    /// # Errors
    /// The reason why they cannot be used.
    pub fn keys(&self) -> Result<(Checks, Kept)> {
        let (bytes, _) = self.ask(Request::Keys, None, None, &mut |_, _| ())?;
        let (checks, kept) = bytes.split_first_chunk().context("the compiler process sent no keys")?;
        Ok((
            Checks::from_bytes(checks),
            Kept::of_bytes(kept).context("the compiler process sent no directories of keys")?,
        ))
    }

    /// The walls around it.
    ///
    /// # Errors
    /// The reason why it cannot be asked.
    pub fn walls(&self) -> Result<Vec<Wall>> {
        Ok(walls::of_bytes(&self.ask(Request::Walls, None, None, &mut |_, _| ())?.0))
    }

    fn turn(&self, gone: Option<Gone<'_>>) -> Result<Turn<'_>> {
        loop {
            let mut asked = self.asked.locked();
            if *asked < ASKED_AT_ONCE {
                *asked += 1;
                return Ok(Turn(&self.asked));
            }
            drop(asked);
            ensure!(gone.is_none_or(|gone| !gone()), Errno::EINTR);
            std::thread::sleep(LOOK);
        }
    }

    fn ask(
        &self,
        request: Request,
        file: Option<BorrowedFd<'_>>,
        gone: Option<Gone<'_>>,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<(Vec<u8>, Option<OwnedFd>)> {
        let socket = self
            .socket
            .as_ref()
            .ok_or_else(|| failed(Errno::EAGAIN, "cannot start the compiler process (check `ulimit -u`)"))?;
        let (ours, theirs) =
            wire::pair().map_err(|error| of_host(error, "cannot make sockets for the compiler process"))?;
        loop {
            ensure!(gone.is_none_or(|gone| !gone()), Errno::EINTR);
            match wire::ask(socket.as_fd(), request, theirs.as_fd(), file) {
                Ok(()) => break,
                Err(HostErrno::AGAIN | HostErrno::INTR) => std::thread::sleep(ROOM),
                Err(HostErrno::PIPE | HostErrno::CONNRESET) => {
                    return Err(failed(Errno::EAGAIN, "the compiler process has exited"));
                }
                Err(error) => return Err(of_host(error, "cannot send to the compiler process")),
            }
        }
        drop(theirs);
        loop {
            match wire::answered(ours.as_fd()) {
                Ok(Heard::Message((Answer::Progress(begun, functions), _))) => progress(begun, functions),
                Ok(Heard::Message((Answer::Done(bytes), file))) => return Ok((bytes, file)),
                Ok(Heard::Message((Answer::Failed(errno, reason), _))) => return Err(failed(errno, reason)),
                Ok(Heard::Nonsense) => return Err(failed(Errno::EIO, "the compiler process sent an invalid message")),
                Ok(Heard::Closed) => {
                    return Err(failed(Errno::ENOMEM, "the compiler exited: it ran out of memory"));
                }
                Err(HostErrno::AGAIN | HostErrno::INTR) => {
                    ensure!(gone.is_none_or(|gone| !gone()), Errno::EINTR);
                    wait(&ours, gone.map(|_| LOOK));
                }
                Err(error) => return Err(of_host(error, "cannot receive from the compiler process")),
            }
        }
    }
}

impl CodeStore {
    /// Like [`CodeStore::open`], for a process that runs guests: the key is not read, and `link`
    /// compiles. Call it before confinement.
    ///
    /// # Errors
    /// The errors of `open`.
    pub fn beside(link: &Arc<Link>) -> Result<CodeStore> {
        CodeStore::without_secret(Arc::clone(link) as Arc<dyn Elsewhere>, || link.keys())
    }
}

impl Elsewhere for Link {
    fn compile(
        &self,
        module: BorrowedFd<'_>,
        gone: Option<Gone<'_>>,
        mut shown: Option<&mut Shown>,
    ) -> Result<OwnedFd> {
        let _turn = self.turn(gone)?;
        let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let mut progress = |begun, functions| {
            if let Some(shown) = &mut shown {
                shown.report(count(begun), count(functions));
            }
        };
        let (_, code) = self.ask(Request::Compile, Some(module), gone, &mut progress)?;
        code.context("the compiler process sent no code")
    }

    fn remember(&self, file: BorrowedFd<'_>) {
        let began = Instant::now();
        let late = || began.elapsed() > PATIENCE;
        let _ = self.ask(Request::Remember, Some(file), Some(&late), &mut |_, _| ());
    }

    fn checks(&self) -> Result<Checks> {
        Ok(self.keys()?.0)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether the other end is closed, after a moment.
fn has_ended(socket: &OwnedFd) -> bool {
    let began = Instant::now();
    while let Some(left) = PATIENCE.checked_sub(began.elapsed()) {
        let mut end = [PollFd::new(socket, PollFlags::empty())];
        let time = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let _ = poll(&mut end, Some(&time));
        if end[0].revents().contains(PollFlags::HUP) {
            return true;
        }
    }
    false
}

fn of_host(error: HostErrno, what: &str) -> anyhow::Error {
    failed(Errno::from_raw(error.raw_os_error()), format!("{what}: {error}"))
}

/// Waits for a message, a signal, or the end of the time.
fn wait(socket: &OwnedFd, time: Option<Duration>) {
    let time = time.map(|time| Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() });
    let _ = poll(&mut [PollFd::new(socket, PollFlags::IN)], time.as_ref());
}

impl Kept {
    /// The bytes of a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt;
        match self {
            Kept::In(data, cache) => {
                [&b"+"[..], data.as_os_str().as_bytes(), b"\0", cache.as_os_str().as_bytes()].concat()
            }
            Kept::Nowhere(why) => [b"-", why.as_bytes()].concat(),
        }
    }

    fn of_bytes(bytes: &[u8]) -> Option<Kept> {
        use std::os::unix::ffi::OsStringExt;
        let path = |bytes: &[u8]| PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()));
        match bytes.split_first()? {
            (b'+', paths) => {
                let between = paths.iter().position(|&byte| byte == 0)?;
                Some(Kept::In(path(&paths[..between]), path(&paths[between + 1..])))
            }
            (b'-', why) => Some(Kept::Nowhere(String::from_utf8_lossy(why).into_owned())),
            _ => None,
        }
    }
}
