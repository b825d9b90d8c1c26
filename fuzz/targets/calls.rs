//! System calls of a guest, whose arguments lie: numbers, descriptors, paths, addresses of structs.
//! The kernel is that of the unit tests, whose engine runs nothing.
#![no_main]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lind_abi::{Kind, SYSCALLS, nr};
use lind_kernel::Kernel;
use lind_kernel::cage::Cage;
use lind_kernel::cage::signal::{self, Step};
use lind_kernel::root::Walls;
use lind_kernel::testing::{CWD, World, in_world};

/// The most calls of an input.
const MOST: usize = 32;
/// Numbers that many calls treat in a way of their own.
const ODD: [i64; 12] =
    [-1, -2, -4096, 4095, 4096, 1 << 20, 0x7fff_ffff, 1 << 31, 0xffff_ffff, 1 << 32, i64::MAX, i64::MIN];
/// Some are in the root.
const PATHS: [&str; 16] = [
    "f",
    "d",
    "d/x",
    "link",
    "/",
    ".",
    "..",
    "",
    "../outside/secret",
    "d/../../f",
    "/proc/self/maps",
    "/proc/self/fd",
    "/proc/self/fd/3",
    "/proc/1/root/f",
    "/dev/null",
    "/dev/ptmx",
];
/// The address of the structs, and how many bytes they have together.
const STRUCTS: (i64, usize) = (0x18_0000, 0x1000);

/// Whether the host's network cannot be reached.
static ALONE: AtomicBool = AtomicBool::new(false);

libfuzzer_sys::fuzz_target!(
    init: {
        ALONE.store(leave_network(), Ordering::Relaxed);
        ends_calls();
        std::thread::spawn(watch);
    },
    |input: &[u8]| {
        let input = input.to_vec();
        in_world(Walls::Openat2, move |w| {
            // SAFETY: the thread is this one.
            let thread = unsafe { libc::pthread_self() };
            let (kernel, cage) = (Arc::clone(&w.kernel), Arc::clone(&w.thread.cage));
            *PLAYED.lock().unwrap() = Some(Played { kernel, cage, thread });
            play(w, &mut Input(&input));
            *PLAYED.lock().unwrap() = None;
            w.exit_all();
        });
    }
);

fn play(w: &World, input: &mut Input<'_>) {
    for (call, args) in [
        (nr::mkdir, vec![w.str("d"), 0o755]),
        (nr::symlink, vec![w.str("d/x"), w.str("link")]),
        (nr::open, vec![w.str("f"), 0o102, 0o644]),
        (nr::socketpair, vec![1, 1, 0, STRUCTS.0]),
        (nr::epoll_create1, vec![0]),
    ] {
        w.ok(call, &args);
    }
    for _ in 0..MOST {
        if input.0.is_empty() || w.thread.cage.is_dead() {
            return;
        }
        let row = &SYSCALLS[usize::from(u16::from_le_bytes([input.byte(), input.byte() % 2])) % SYSCALLS.len()];
        if input.byte().is_multiple_of(4) {
            structs(w, input);
        }
        let mut args: Vec<i64> = row.args.iter().map(|(_, kind)| argument(w, input, kind)).collect();
        if matches!(row.nr, nr::socket | nr::socketpair) && !ALONE.load(Ordering::Relaxed) {
            args[0] = 1;
        }
        CALLS.fetch_add(1, Ordering::SeqCst);
        let _ = w.call(row.nr, &args);
        if let Step::Leave(_) = w.thread.next_step(&w.kernel) {
            return;
        }
    }
}

/// Fills the structs with words, of which some are addresses of structs, or small numbers.
fn structs(w: &World, input: &mut Input<'_>) {
    let count = input.byte() % 64;
    let words = (0..count).map(|_| match input.byte() {
        small @ 0..=99 => i64::from(small),
        at @ 100..=179 => STRUCTS.0 + i64::from(at) * 8,
        odd @ 180..=219 => ODD[usize::from(odd) % ODD.len()],
        220..=255 => input.number(),
    });
    let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes().into_iter().take(4)).collect();
    if !bytes.is_empty() {
        let all: Vec<u8> = bytes.into_iter().cycle().take(STRUCTS.1).collect();
        w.thread.cage.memory.guest.write(STRUCTS.0.cast_unsigned(), &all).ok();
    }
}

/// An argument: mostly one of its kind.
fn argument(w: &World, input: &mut Input<'_>, kind: &Kind) -> i64 {
    let small = match input.byte() {
        small @ 0..=199 => i64::from(small),
        odd @ 200..=239 => return ODD[usize::from(odd) % ODD.len()],
        240..=255 => return input.number(),
    };
    match kind {
        Kind::Fd => small % 12,
        Kind::DirFd if small % 4 != 0 => CWD,
        Kind::DirFd => small / 4 % 12,
        Kind::Path | Kind::Str => w.str(PATHS[usize::try_from(small).unwrap() % PATHS.len()]),
        Kind::Pid => small % 4,
        Kind::Flags(_) => 1 << (small % 32) | i64::from(input.byte() % 8),
        Kind::In(_) | Kind::Out(_) | Kind::InOut(_) | Kind::StrArray | Kind::Addr => STRUCTS.0 + small * 8,
        _ => small,
    }
}

/// The bytes that choose calls and arguments.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    fn number(&mut self) -> i64 {
        i64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }
}

/// How many calls have begun.
static CALLS: AtomicU64 = AtomicU64::new(0);
static PLAYED: Mutex<Option<Played>> = Mutex::new(None);

/// The cage whose calls are made, and the thread that makes them.
struct Played {
    kernel: Arc<Kernel>,
    cage: Arc<Cage>,
    thread: libc::pthread_t,
}

/// Ends a cage whose call waits, as a signal of another one would.
fn watch() {
    const LONG: Duration = Duration::from_millis(10);
    loop {
        let before = CALLS.load(Ordering::SeqCst);
        std::thread::sleep(LONG);
        if CALLS.load(Ordering::SeqCst) == before
            && let Some(played) = &*PLAYED.lock().unwrap()
        {
            signal::end(&played.kernel, &played.cage, 9);
            // SAFETY: the thread does not end before it has taken itself out of `PLAYED`.
            unsafe { libc::pthread_kill(played.thread, libc::SIGUSR2) };
        }
    }
}

/// Has a signal interrupt host calls.
fn ends_calls() {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: the handler does nothing; flags that are 0 are valid.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut());
    }
}

/// Leaves the host's network, and says whether that was permitted.
fn leave_network() -> bool {
    // SAFETY: the process has one thread yet, and shares no memory.
    [libc::CLONE_NEWNET, libc::CLONE_NEWNET | libc::CLONE_NEWUSER]
        .iter()
        .any(|&flags| unsafe { libc::unshare(flags) == 0 })
}
