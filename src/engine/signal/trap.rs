//! The reasons why guest code was left: a system call that ends it, or a trap, which is a signal to
//! the cage.

use lind_kernel::cage::{Attention, Cage, Next, Status};
use lind_kernel::{stdio, text};
use wasmtime::{Error, Store, ThrownException, Trap, WasmBacktrace};

use crate::run::fork;
use crate::run::guest::Guest;
use crate::signal::backtrace;
use crate::signal::context;

/// The next step of the thread whose guest code returned `error`. A trap is reported on standard
/// error.
pub fn outcome(store: &Store<Guest>, error: &Error) -> Next {
    let guest = store.data();
    let fault = context::take_signal();
    if let Some(next) = guest.way_out.next.take().or_else(|| guest.thread.take_next()) {
        return next;
    }
    if guest.way_out.only_handler.get() && error.is::<ThrownException>() {
        return fork::nothing_below(guest);
    }
    let signal = fault.unwrap_or_else(|| signal_of(error));
    report(guest, error, signal);
    Next::Exit(Status::signaled(u8::try_from(signal).unwrap_or(0)))
}

/// Whether the program itself failed with `error`; otherwise the engine lacked memory for it.
pub fn is_of_guest(store: &Store<Guest>, error: &Error) -> bool {
    const LEAVES: u32 = Attention::NEXT | Attention::ENDING | Attention::LEAVE;
    let next = store.data().way_out.next.take();
    store.data().way_out.next.set(next);
    next.is_some()
        || store.data().thread.attention() & LEAVES != 0
        || error.is::<Trap>()
        || error.is::<ThrownException>()
}

fn signal_of(error: &Error) -> i32 {
    if error.is::<ThrownException>() {
        // Like a C++ exception that nobody catches.
        return libc::SIGABRT;
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow | Trap::MemoryOutOfBounds) => libc::SIGSEGV,
        Some(Trap::TableOutOfBounds | Trap::IndirectCallToNull | Trap::NullReference) => libc::SIGSEGV,
        Some(Trap::IntegerOverflow | Trap::IntegerDivisionByZero | Trap::BadConversionToInteger) => libc::SIGFPE,
        Some(Trap::HeapMisaligned) => libc::SIGBUS,
        Some(Trap::UnreachableCodeReached | Trap::BadSignature) => libc::SIGILL,
        Some(_) => libc::SIGILL,
        // Not a trap: the engine ran out of something, such as memory for exceptions.
        None => libc::SIGABRT,
    }
}

fn report(guest: &Guest, error: &Error, signal: i32) {
    let name = name_of(signal);
    let what = match error.downcast_ref::<Trap>() {
        Some(trap) if fault_free(signal, trap) => trap.to_string(),
        Some(_) => "memory that is not there".to_owned(),
        None => format!("{:#}", error.root_cause()),
    };
    let mut text = format!("{name}: {what}\n");
    if (guest.host.shared.backtrace || guest.served().is_some())
        && let Some(trace) = error.downcast_ref::<WasmBacktrace>()
    {
        text += &backtrace::text(trace);
    }
    say(guest, &text);
}

/// Prints a message about the cage of a guest.
pub fn say(guest: &Guest, what: &str) {
    say_of(&guest.cage, what);
}

/// Prints a message about a cage.
pub fn say_of(cage: &Cage, what: &str) {
    // The same module may have run under another path before.
    let program = cage.settings().program.clone();
    let (first, rest) =
        what.trim_end().split_once('\n').map_or((what.trim_end(), None), |(first, rest)| (first, Some(rest)));
    let head = text::shown(format!("{} (cage {}): {first}", program.to_string_lossy(), cage.id.0));
    // The lines of a backtrace are ours, and names in them are escaped already.
    let rest = rest.map(|rest| format!("{rest}\n")).unwrap_or_default();
    stdio::say(&format!("lind-boot: {head}\n{rest}"));
}

/// Whether the trap itself explains the fault; the landing pad's `unreachable` does not.
fn fault_free(signal: i32, trap: &Trap) -> bool {
    !(*trap == Trap::UnreachableCodeReached && signal != libc::SIGILL)
}

/// The names of the signals that traps become.
pub fn name_of(signal: i32) -> &'static str {
    match signal {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        _ => "SIGABRT",
    }
}
