//! Tests that a signal finds consistent marks at whichever instruction it comes.

use std::arch::asm;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Inside, RUNNING, leave};
use crate::run::guest::Guest;

/// Counts of steps: all, those with a base, and those with a base but without a guest.
static STEPS: AtomicUsize = AtomicUsize::new(0);
static INSIDE: AtomicUsize = AtomicUsize::new(0);
static WRONG: AtomicUsize = AtomicUsize::new(0);

/// Runs after every instruction.
extern "C" fn step(_: i32) {
    RUNNING.with(|running| {
        let inside = running.base.get() != 0;
        STEPS.fetch_add(1, Ordering::Relaxed);
        INSIDE.fetch_add(usize::from(inside), Ordering::Relaxed);
        WRONG.fetch_add(usize::from(inside && running.guest.get().is_null()), Ordering::Relaxed);
    });
}

/// Turns single-stepping of this thread on or off.
fn single_steps(on: bool) {
    const TRAP: u64 = 1 << 8;
    // SAFETY: only this flag changes, and it has a handler.
    unsafe {
        if on {
            asm!("pushfq", "or qword ptr [rsp], {trap}", "popfq", trap = const TRAP);
        } else {
            asm!("pushfq", "and qword ptr [rsp], {rest}", "popfq", rest = const !TRAP.cast_signed());
        }
    }
}

/// A thread that was interrupted between the two stores of `enter` looked for its guest at address
/// 0, in a signal handler, and in the handler of that fault again, until the signal stack was full
/// and the process ended.
#[test]
fn there_is_a_guest_wherever_there_is_a_base() {
    let mut guest = Box::new(MaybeUninit::<Guest>::zeroed());
    let guest = guest.as_mut_ptr();
    // SAFETY: the handler has the signature of one. Of the guest nothing is read but what is
    // written here.
    unsafe {
        libc::signal(libc::SIGTRAP, step as extern "C" fn(i32) as usize);
        (&raw mut (*guest).base).write(4096);
        let (outer, inner) = (Inside::new(guest), Inside::new(guest));
        single_steps(true);
        for inside in [&outer, &inner] {
            let outside = inside.enter();
            RUNNING.with(|running| running.base.set(0));
            let within = inner.enter();
            leave(within);
            leave(outside);
        }
        single_steps(false);
    }
    let [steps, inside, wrong] = [&STEPS, &INSIDE, &WRONG].map(|count| count.load(Ordering::Relaxed));
    assert!(steps > 20 && inside > 0 && inside < steps, "{inside} of {steps} steps inside");
    assert_eq!(wrong, 0, "of {inside} steps inside, {steps} in all");
}
