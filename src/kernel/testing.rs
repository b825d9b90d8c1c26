//! For unit tests: a kernel over a temporary root, with cages whose "programs" are the tests
//! themselves.
//!
//! [`World`] makes calls in the same way as a guest: numbers in, an encoded result out.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use lind_abi::{CageId, Errno, Result, Word};

use crate::Kernel;
use crate::cage::{Cage, Limits, Program, Thread, boot, spawn};
use crate::call::Caller;
use crate::root::{Directory, Root, Walls};
use crate::runtime::{CachedCage, Entered, Executable, Gone, GuestRuntime, Hop, LoadError, Served, Start};

/// AT_FDCWD as an argument.
pub const CWD: i64 = -100;

/// Guest addresses the tests use: 1 MiB, half for strings and half for buffers.
const ARENA: u64 = 0x10_0000;
const HALF: u64 = 0x8_0000;

/// An engine that runs nothing and hands out the threads it was asked to start.
#[derive(Default, Clone)]
pub struct FakeEngine {
    started: Arc<Mutex<Vec<Arc<Thread>>>>,
}

impl GuestRuntime for FakeEngine {
    fn load(&self, _: BorrowedFd<'_>, _: &CString, _: Option<Gone<'_>>) -> std::result::Result<Executable, LoadError> {
        Ok(Arc::new(()))
    }

    fn start(&self, _: &Arc<Kernel>, thread: Arc<Thread>, _: Start) -> Result<()> {
        self.started.lock().unwrap().push(thread);
        Ok(())
    }

    fn start_thread(&self, _: &Arc<Kernel>, thread: &Arc<Thread>, _: u32) -> Result<()> {
        self.started.lock().unwrap().push(Arc::clone(thread));
        Ok(())
    }

    fn is_grate(&self, _: &Executable) -> bool {
        false
    }

    fn serves(&self, _: &Cage) -> bool {
        true
    }

    fn may_handle(&self, _: &Cage, _: u64) -> bool {
        true
    }

    fn interrupt(&self, _: &Thread) {}

    fn left_clients(&self, _: &Cage, _: &CString, _: usize) {}

    fn needs_descriptors(&self) {}

    fn stop_process(&self) {}
}

/// A hop without grates.
#[derive(Default)]
pub struct NoHop(CachedCage);

impl Hop for NoHop {
    fn cached_cage(&self) -> &CachedCage {
        &self.0
    }

    fn enter(&self, _: CageId, _: u32, _: bool, _: usize, _: &Served<'_>) -> Entered {
        Entered::Answered(Errno::ENOSYS.to_wire())
    }
}

/// A guest thread that serves nobody.
pub struct Plain {
    pub kernel: Arc<Kernel>,
    pub thread: Arc<Thread>,
    pub hop: NoHop,
}

impl Caller for Plain {
    type Hop = NoHop;
    fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }
    fn thread(&self) -> &Thread {
        &self.thread
    }
    fn cage(&self) -> &Cage {
        &self.thread.cage
    }
    fn served(&self) -> Option<&Served<'_>> {
        None
    }
    fn hop(&self) -> &NoHop {
        &self.hop
    }
}

/// A kernel, its root, and one cage that the test plays. Further ones come from [`World::sibling`].
pub struct World {
    pub kernel: Arc<Kernel>,
    pub thread: Arc<Thread>,
    pub walls: Walls,
    folder: Arc<tempfile::TempDir>,
    engine: FakeEngine,
    outside: Sender<Box<dyn FnOnce() + Send>>,
    next_string: Cell<u64>,
    next_buffer: Cell<u64>,
}

/// Runs a test once behind each kind of walls, each time in a fresh world: an empty root, and
/// beside it a folder `outside` with a file `secret` that no guest may reach.
pub fn both_walls(test: fn(&World)) {
    for walls in [Walls::Openat2, Walls::Chroot] {
        in_world(walls, test);
    }
}

/// Runs a test in a fresh world, on a thread with a root directory and umask of its own.
pub fn in_world(walls: Walls, test: impl FnOnce(&World) + Send + 'static) {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let root = folder.path().join("root");
    std::fs::create_dir(&root).unwrap();
    std::fs::create_dir(folder.path().join("outside")).unwrap();
    std::fs::write(folder.path().join("outside/secret"), "secret").unwrap();
    std::fs::write(root.join("init"), "").unwrap();
    let (outside, jobs) = channel::<Box<dyn FnOnce() + Send>>();
    // Keeps the host's root directory when the test's thread leaves it.
    std::thread::spawn(move || jobs.into_iter().for_each(|job| job()));
    let played = std::thread::spawn(move || {
        if let Some(world) = World::new(walls, folder, &root, outside) {
            test(&world);
        }
    });
    if let Err(panic) = played.join() {
        eprintln!("behind {walls:?}");
        std::panic::resume_unwind(panic);
    }
}

/// The program of every world: its engine runs nothing.
fn init() -> Program {
    let name = c"/init".to_owned();
    Program { name, argv: vec![c"init".to_owned()], envp: Vec::new(), ignored: 0, umask: 0o022, preserved: 0 }
}

impl World {
    fn new(
        walls: Walls,
        folder: Arc<tempfile::TempDir>,
        root: &Path,
        outside: Sender<Box<dyn FnOnce() + Send>>,
    ) -> Option<World> {
        crate::mem::install_fault_handler(None);
        #[allow(deprecated, reason = "unsafe is meant for CLONE_FILES")]
        rustix::thread::unshare(rustix::thread::UnshareFlags::FS).unwrap();
        rustix::process::umask(rustix::fs::Mode::empty());
        let directory = std::fs::File::open(root).unwrap();
        let guest_root = Root::new(directory.into(), None, walls);
        if walls == Walls::Chroot && rustix::process::chroot(root).is_err() {
            eprintln!("chroot is not permitted here: not tested");
            return None;
        }
        rustix::process::chdir("/").unwrap();
        let kernel = Kernel::new(guest_root, Limits::default(), crate::mem::PageMap::none());
        let engine = FakeEngine::default();
        kernel.attach(Box::new(engine.clone()));
        let start_in = Directory::open(&kernel.root, c"/").unwrap();
        boot(&kernel, start_in, init()).unwrap_or_else(|e| panic!("{}", e.reason));
        let thread = engine.started.lock().unwrap().pop().unwrap();
        let world = World::of(kernel, thread, walls, folder, engine, outside);
        let program = world.path("init");
        world.host(move || std::fs::remove_file(program).unwrap());
        Some(world)
    }

    fn of(
        kernel: Arc<Kernel>,
        thread: Arc<Thread>,
        walls: Walls,
        folder: Arc<tempfile::TempDir>,
        engine: FakeEngine,
        outside: Sender<Box<dyn FnOnce() + Send>>,
    ) -> World {
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        thread.cage.memory.guest.map_anonymous(ARENA, 2 * HALF, rw).unwrap();
        World { kernel, thread, walls, folder, engine, outside, next_string: Cell::new(0), next_buffer: Cell::new(0) }
    }

    /// A child of this world's cage, as `spawn` makes it, in the same kernel. Call it from the same
    /// host thread.
    pub fn sibling(&self) -> World {
        let file = self.path("init");
        self.host(move || std::fs::write(file, "").unwrap());
        let parent = self.kernel.cages.get(self.thread.cage.id).unwrap();
        spawn(&self.kernel, &parent, (init(), None), &[], None).unwrap();
        let file = self.path("init");
        self.host(move || std::fs::remove_file(file).unwrap());
        let thread = self.engine.started.lock().unwrap().pop().unwrap();
        let (folder, engine, outside) = (Arc::clone(&self.folder), self.engine.clone(), self.outside.clone());
        World::of(Arc::clone(&self.kernel), thread, self.walls, folder, engine, outside)
    }

    /// Ends all cages: this world's, and those that it has started.
    pub fn exit_all(&self) {
        self.exit();
        while let Some(thread) = self.engine.started.lock().unwrap().pop() {
            thread.ended(&self.kernel, crate::cage::Next::ExitThread(0), &NoHop::default());
        }
    }

    /// Ends this world's cage.
    pub fn exit(&self) {
        self.thread.ended(&self.kernel, crate::cage::Next::ExitThread(0), &NoHop::default());
    }

    /// The host path of a file in the root, for [`World::host`].
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("root").join(name)
    }

    /// The host path of the folder outside the root.
    pub fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    /// Does something on a thread that is not confined, and waits for it.
    pub fn host<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        self.outside.send(Box::new(move || done.send(job()).unwrap())).unwrap();
        result.recv().expect("the job panicked")
    }

    /// Makes a call.
    pub fn call(&self, number: u32, args: &[i64]) -> Result<i64> {
        let mut values = [0; 6];
        for (value, arg) in values.iter_mut().zip(args) {
            *value = arg.cast_unsigned();
        }
        let plain = Plain { kernel: Arc::clone(&self.kernel), thread: Arc::clone(&self.thread), hop: NoHop::default() };
        let result = crate::call::syscall(&plain, number, &Word::six(values));
        Errno::from_wire(result).map_or(Ok(result), Err)
    }

    /// Makes a call that must succeed.
    #[track_caller]
    pub fn ok(&self, number: u32, args: &[i64]) -> i64 {
        self.call(number, args).unwrap_or_else(|errno| panic!("{}: {errno:?}", name(number)))
    }

    /// Makes a call that must fail.
    #[track_caller]
    pub fn err(&self, number: u32, args: &[i64]) -> Errno {
        match self.call(number, args) {
            Ok(result) => panic!("{}: {result}, not an error", name(number)),
            Err(errno) => errno,
        }
    }

    /// A string in guest memory; good for the next few hundred strings.
    pub fn str(&self, text: &str) -> i64 {
        self.cstr(&CString::new(text).unwrap())
    }

    /// As `str`.
    pub fn cstr(&self, text: &CStr) -> i64 {
        let bytes = text.to_bytes_with_nul();
        let at = take(&self.next_string, ARENA, bytes.len());
        self.thread.cage.memory.guest.write(at, bytes).unwrap();
        at.cast_signed()
    }

    /// Guest memory to be filled, at first zero.
    pub fn buffer(&self, len: usize) -> i64 {
        let at = take(&self.next_buffer, ARENA + HALF, len);
        self.thread.cage.memory.guest.fill(at, 0, len as u64).unwrap();
        at.cast_signed()
    }

    /// Guest memory with these bytes.
    pub fn data(&self, bytes: &[u8]) -> i64 {
        let at = self.buffer(bytes.len());
        self.thread.cage.memory.guest.write(at.cast_unsigned(), bytes).unwrap();
        at
    }

    /// A struct in guest memory.
    pub fn value<T: crate::mem::Pod>(&self, value: &T) -> i64 {
        let at = self.buffer(size_of::<T>());
        self.thread.cage.memory.guest.store(at.cast_unsigned(), value).unwrap();
        at
    }

    /// A struct out of guest memory.
    pub fn load<T: crate::mem::Pod>(&self, at: i64) -> T {
        self.thread.cage.memory.guest.load(at.cast_unsigned()).unwrap()
    }

    /// Bytes out of guest memory.
    pub fn bytes(&self, at: i64, len: i64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(len).unwrap()];
        self.thread.cage.memory.guest.read(at.cast_unsigned(), &mut bytes).unwrap();
        bytes
    }

    /// A call that fills a buffer and returns how much of it.
    #[track_caller]
    pub fn filled(&self, number: u32, args: impl FnOnce(i64, i64) -> Vec<i64>) -> Vec<u8> {
        let buffer = self.buffer(8192);
        let len = self.ok(number, &args(buffer, 8192));
        self.bytes(buffer, len)
    }
}

fn take(next: &Cell<u64>, start: u64, len: usize) -> u64 {
    let len = (len as u64).next_multiple_of(16);
    if next.get() + len > HALF {
        next.set(0);
    }
    let at = start + next.get();
    next.set(next.get() + len);
    at
}

#[test]
fn a_world_answers_behind_chroot() {
    in_world(Walls::Chroot, |w| {
        let sibling = w.sibling();
        assert_eq!(w.ok(lind_abi::nr::getpid, &[]), i64::from(w.thread.cage.id.0));
        assert_eq!(sibling.ok(lind_abi::nr::getppid, &[]), i64::from(w.thread.cage.id.0));
        assert_eq!(w.err(lind_abi::nr::open, &[w.str("/init"), 0]), Errno::ENOENT);
        assert_eq!(sibling.err(lind_abi::nr::close, &[7]), Errno::EBADF);
    });
}

fn name(number: u32) -> &'static str {
    lind_abi::syscall(number).map_or("?", |row| row.name)
}
