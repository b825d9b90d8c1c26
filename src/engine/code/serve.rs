//! The compiler process. It holds the user's secret and writes the cache; the process that runs
//! guests can do neither.
//!
//! It is forked from `lind-boot` before there are guests, has none of its descriptors, and does
//! nothing until the first request. Then it puts up walls of its own, and for each module forks a
//! child that compiles it, signs the code, and exits. So a module that makes the compiler use all
//! memory, run for minutes, or crash ends one child, and the cage that asked gets an error.
//! Compiled code depends on nothing but the module's bytes, which are copied before they are read.
//! So a caller gains nothing that a user without a key could not have: code of a module that was
//! checked.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::{Context, Result};
use lind_kernel::{Errno, stdio};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

use crate::code::cache::Cache;
use crate::code::compile::{AT_ONCE, Compiler, LOOK, fits, most, needs};
use crate::code::delivered::Delivered;
use crate::code::ending;
use crate::code::engines::{Engines, NoMemories};
use crate::code::key::{CodeStore, Kept};
use crate::code::own_code;
use crate::code::progress;
use crate::code::remember::remember;
use crate::code::source::read_source;
use crate::code::walls::{self, Wall, Walls};
use crate::code::wire::{self, ASKED_AT_ONCE, Answer, CompileError, Heard, Request};

/// The events of a socket whose other end is closed.
const GONE: PollFlags = PollFlags::HUP.union(PollFlags::RDHUP).union(PollFlags::ERR);

/// The socket's number from then on: 0, 1 and 2 lead nowhere.
const SOCKET: RawFd = 3;

/// The signal that ends a child, and how many times the process checks whether the child has exited
/// before it sends SIGKILL.
const END: libc::c_int = libc::SIGTERM;
const LOOKS: u32 = 200;

/// A launcher that has asked for nothing by then has all the code that it needs.
const SOON: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Serves the requests on `socket` until the other end is closed.
pub fn serve(socket: OwnedFd, walls: Walls) -> ! {
    keep_only(socket);
    // SAFETY: `keep_only` put it there, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(SOCKET) };
    // Most runs compile nothing.
    let mut first = [PollFd::new(&socket, PollFlags::IN | PollFlags::RDHUP)];
    if poll(&mut first, Some(&SOON)) == Ok(0) {
        own_code::let_go();
    }
    while poll(&mut first, None).is_err() {}
    if first[0].revents().intersects(GONE) {
        leave(0);
    }
    let store = CodeStore::open();
    let delivered = Delivered::of_this_program().map(Arc::new);
    let cache = store.as_ref().ok().and_then(|store| store.cache.as_ref()).map(AsFd::as_fd);
    let around = (walls.around)(cache, delivered.as_deref().map(Delivered::folder));
    // Only so that a wait for messages is interrupted when a child exits.
    ending::handle(libc::SIGCHLD, heard, false);
    Server { socket, store, delivered, walls, around, children: Vec::new(), waiting: VecDeque::new() }.run()
}

/// Closes all descriptors that were inherited, except the socket.
fn keep_only(socket: OwnedFd) {
    let from = socket.into_raw_fd();
    // SAFETY: no closed descriptor is used any more: its owners live in the process that this is a
    // copy of.
    unsafe {
        // No other process of this user may read its memory.
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        libc::prctl(libc::PR_SET_NAME, c"lind-compile".as_ptr());
        libc::dup2(from, SOCKET);
        if libc::close_range(libc::c_uint::try_from(SOCKET).unwrap_or(0) + 1, libc::c_uint::MAX, 0) != 0 {
            // A host from before Linux 5.9. Numbers beyond the limit are not open.
            for number in SOCKET + 1..RawFd::try_from(libc::sysconf(libc::_SC_OPEN_MAX)).unwrap_or(RawFd::MAX) {
                libc::close(number);
            }
        }
        for number in 0..SOCKET {
            libc::close(number);
        }
        libc::chdir(c"/".as_ptr());
    }
    stdio::fill();
}

fn leave(status: i32) -> ! {
    // SAFETY: nothing is left to be done: all files are written.
    unsafe { libc::_exit(status) }
}

extern "C" fn heard(_: libc::c_int) {}

struct Server {
    socket: OwnedFd,
    store: Result<CodeStore>,
    delivered: Option<Arc<Delivered>>,
    walls: Walls,
    /// The walls around this process.
    around: Vec<Wall>,
    /// The running children, each with the memory that it needs.
    children: Vec<(Pid, usize)>,
    /// Modules that do not fit into memory yet, the oldest first.
    waiting: VecDeque<Waiting>,
}

/// A module that waits to be compiled.
struct Waiting {
    answers: OwnedFd,
    file: File,
    /// The memory that it needs.
    needed: usize,
}

impl Server {
    fn run(mut self) -> ! {
        loop {
            self.reap();
            self.begin_waiting();
            if !self.hears() {
                continue;
            }
            match wire::asked(self.socket.as_fd()) {
                Ok(Heard::Message((request, answers, file))) => self.take(request, answers, file),
                Ok(Heard::Nonsense) | Err(rustix::io::Errno::INTR | rustix::io::Errno::MFILE) => {}
                Ok(Heard::Closed) | Err(_) => self.end(),
            }
        }
    }

    /// Exits, and ends all compilations: nobody waits for them any more. A child that is writing a
    /// file finishes it.
    fn end(&mut self) -> ! {
        let tell = |server: &Server, signal| {
            for (child, _) in &server.children {
                let _ = kill_process(*child, signal);
            }
        };
        tell(self, Signal::TERM);
        for _ in 0..LOOKS {
            self.reap();
            if self.children.is_empty() {
                leave(0);
            }
            std::thread::sleep(LOOK);
        }
        tell(self, Signal::KILL);
        while let Ok(Some(_)) = wait(WaitOptions::empty()) {}
        leave(0)
    }

    /// Waits for a request, or for memory for a waiting one. Returns whether there is a request.
    fn hears(&mut self) -> bool {
        let askers = self.waiting.iter().map(|waiting| PollFd::new(&waiting.answers, PollFlags::RDHUP));
        let asked = PollFd::new(&self.socket, PollFlags::IN | PollFlags::RDHUP);
        let mut ends: Vec<_> = std::iter::once(asked).chain(askers).collect();
        let look = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
        if poll(&mut ends, Some(&look).filter(|_| !self.waiting.is_empty())).is_err() {
            return false;
        }
        let mut said = ends.iter().map(PollFd::revents).collect::<Vec<_>>().into_iter();
        let runner = said.next().unwrap_or(PollFlags::empty());
        if runner.intersects(GONE) {
            self.end();
        }
        self.waiting.retain(|_| !said.next().is_some_and(|asker| asker.intersects(GONE)));
        runner.contains(PollFlags::IN)
    }

    fn take(&mut self, request: Request, answers: OwnedFd, file: Option<OwnedFd>) {
        self.reap();
        let said = match (request, file.map(File::from), &self.store) {
            (_, _, Err(error)) => Err(CompileError::new(Errno::EACCES, format!("{error:#}"))),
            (Request::Keys, _, Ok(store)) => {
                Ok(Some([&store.checks.to_bytes()[..], &Kept::of(store).to_bytes()].concat()))
            }
            (Request::Walls, ..) => self.begin(request, &answers, None, 0).map(|()| None),
            (_, None, _) => Err(CompileError::new(Errno::EBADF, "no file")),
            // Remembering only saves time, so nobody waits for a turn.
            (Request::Remember, Some(_), Ok(_)) if !self.has_room(0) => {
                Err(CompileError::new(Errno::EAGAIN, "others read"))
            }
            (Request::Remember, file, Ok(_)) => self.begin(request, &answers, file.as_ref(), 0).map(|()| None),
            (Request::Compile, Some(_), Ok(_)) if self.waiting.len() >= ASKED_AT_ONCE => {
                Err(CompileError::new(Errno::EAGAIN, "too many modules wait to be compiled"))
            }
            (Request::Compile, Some(file), Ok(_)) => {
                let size = file.metadata().map_or(0, |metadata| usize::try_from(metadata.len()).unwrap_or(usize::MAX));
                self.waiting.push_back(Waiting { answers, file, needed: needs(size) });
                return;
            }
        };
        tell(&answers, said);
    }

    /// Starts waiting modules, as far as their memory fits.
    fn begin_waiting(&mut self) {
        while self.waiting.front().is_some_and(|first| self.has_room(first.needed)) {
            let Some(Waiting { answers, file, needed }) = self.waiting.pop_front() else { return };
            tell(&answers, self.begin(Request::Compile, &answers, Some(&file), needed).map(|()| None));
        }
    }

    /// Forks a child for the request.
    fn begin(&mut self, request: Request, answers: &OwnedFd, file: Option<&File>, needed: usize) -> Answered<()> {
        // SAFETY: this process has one thread; and the child never returns.
        match unsafe { libc::fork() } {
            0 => self.work(request, answers, file),
            pid => match Pid::from_raw(pid.max(0)) {
                Some(pid) => self.children.push((pid, needed)),
                None => {
                    let error = std::io::Error::last_os_error();
                    let errno = Errno::from_raw(error.raw_os_error().unwrap_or(libc::EAGAIN));
                    return Err(CompileError::new(errno, format!("cannot start a process to compile it: {error}")));
                }
            },
        }
        Ok(())
    }

    /// Whether one more child may use so much memory. A child that needs none only reads a file.
    fn has_room(&self, needed: usize) -> bool {
        let compile: Vec<_> = self.children.iter().map(|child| child.1).filter(|needed| *needed > 0).collect();
        let others = self.children.len() - compile.len();
        if needed > 0 { fits(&compile, needed, most()) } else { others < AT_ONCE }
    }

    /// Forgets the children that have exited.
    fn reap(&mut self) {
        while let Ok(Some((ended, _))) = wait(WaitOptions::NOHANG) {
            self.children.retain(|child| child.0 != ended);
        }
    }

    /// The work of a child.
    fn work(&mut self, request: Request, answers: &OwnedFd, file: Option<&File>) -> ! {
        // A caller in this queue is answered when the other child that compiles for it exits, not
        // when this one does.
        self.waiting.clear();
        end_with_whoever_asked(answers);
        // In case the process that forked this one is killed. SAFETY: it takes a number.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, END) };
        let walls = [std::mem::take(&mut self.around), (self.walls.child)()].concat();
        let missing = walls::missing(&walls).filter(|_| self.walls.required && request != Request::Walls);
        let done = match (missing, &self.store, file, request) {
            (Some(missing), ..) => {
                Err(CompileError::new(Errno::EPERM, format!("the compiler's walls: {missing}")).into())
            }
            (_, _, _, Request::Walls) => Ok((walls::to_bytes(&walls), None)),
            (_, Ok(store), Some(file), Request::Compile) => {
                compiled(store, self.delivered.take(), file, answers).map(|code| (Vec::new(), Some(code)))
            }
            (_, Ok(store), Some(file), _) => remembered(store, file).map(|()| (Vec::new(), None)),
            _ => leave(1),
        };
        let _ = match done {
            Ok((said, code)) => wire::answer(answers.as_fd(), &Answer::Done(said), code.as_ref().map(AsFd::as_fd)),
            Err(error) => {
                let failed = Answer::Failed(CompileError::errno_of(&error), format!("{error:#}"));
                wire::answer(answers.as_fd(), &failed, None)
            }
        };
        leave(0)
    }
}

/// The answer for the caller; nothing where a child sends it.
type Answered<T> = std::result::Result<T, CompileError>;

/// Answers the caller, which may have exited.
fn tell(answers: &OwnedFd, said: Answered<Option<Vec<u8>>>) {
    let _ = match said {
        Ok(None) => Ok(()),
        Ok(Some(bytes)) => wire::answer(answers.as_fd(), &Answer::Done(bytes), None),
        Err(error) => wire::answer(answers.as_fd(), &error.into(), None),
    };
}

impl From<CompileError> for Answer {
    fn from(error: CompileError) -> Answer {
        Answer::Failed(error.errno, error.to_string())
    }
}

/// The socket of the caller.
static ASKER: AtomicI32 = AtomicI32::new(-1);

/// Ends this process as soon as the caller closes the other end: it has been killed, or the whole
/// runner has exited.
fn end_with_whoever_asked(answers: &OwnedFd) {
    ASKER.store(answers.as_raw_fd(), Ordering::SeqCst);
    ending::handle(libc::SIGCHLD, heard, false);
    ending::handle(libc::SIGIO, look_for_asker, false);
    ending::handle(END, end_now, false);
    // SAFETY: fcntl of an open descriptor, with numbers.
    unsafe {
        libc::fcntl(answers.as_raw_fd(), libc::F_SETOWN, libc::getpid());
        libc::fcntl(answers.as_raw_fd(), libc::F_SETFL, libc::O_ASYNC);
    }
    // The other end may have been closed before that.
    look_for_asker(0);
}

extern "C" fn look_for_asker(_: libc::c_int) {
    let mut asked = libc::pollfd { fd: ASKER.load(Ordering::SeqCst), events: 0, revents: 0 };
    // SAFETY: `asked` is one entry, and both calls may be made by a handler. errno is put back.
    unsafe {
        let errno = *libc::__errno_location();
        libc::poll(&raw mut asked, 1, 0);
        if asked.revents & libc::POLLHUP != 0 {
            ending::leave(0);
        }
        *libc::__errno_location() = errno;
    }
}

extern "C" fn end_now(_: libc::c_int) {
    ending::leave(0)
}

/// Compiles the module in a file; returns a file of code.
fn compiled(store: &CodeStore, delivered: Option<Arc<Delivered>>, file: &File, answers: &OwnedFd) -> Result<OwnedFd> {
    let wasm = read_source(file)?;
    let functions = progress::functions(&wasm);
    let listener = answers.try_clone()?;
    let step = functions / 100 + 1;
    progress::tell_also(Box::new(move |begun| {
        if begun % step == 0 {
            let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
            let _ = wire::answer(listener.as_fd(), &Answer::Progress(count(begun), count(functions)), None);
        }
    }));
    let engines = Arc::new(Engines::new(Arc::new(NoMemories))?);
    let compiler = Compiler { engines, secret: store.secret()?, cache: cache_of(store)?.map(Arc::new), delivered };
    let bytes = compiler.compile_and_keep(&wasm)?;
    let code = File::from(rustix::fs::memfd_create(c"compiled", rustix::fs::MemfdFlags::CLOEXEC)?);
    code.write_all_at(&bytes, 0)?;
    Ok(code.into())
}

fn remembered(store: &CodeStore, file: &File) -> Result<()> {
    let cache = cache_of(store)?.context("there is no cache")?;
    remember(&cache, &store.checks, file);
    Ok(())
}

fn cache_of(store: &CodeStore) -> Result<Option<Cache>> {
    let directory = store.cache.as_ref().map(OwnedFd::try_clone).transpose()?;
    Ok(directory.map(|directory| Cache::new(directory, store.limit)))
}
