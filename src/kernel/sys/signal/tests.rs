//! Tests of the effects of signals, and of the permission to send them.

use lind_abi::layout::Sigaction;
use lind_abi::{Errno, nr};

use crate::cage::signal::{Info, Step};
use crate::cage::{Next, Status, Thread};
use crate::root::Walls;
use crate::testing::{World, in_world};

/// The engine's next step, if that is to leave guest code.
fn left(w: &World) -> Option<Next> {
    match w.thread.next_step(&w.kernel) {
        Step::Leave(next) => Some(next),
        Step::Go => None,
        Step::Handle(delivery) => panic!("a handler for {:?}", delivery.info),
    }
}

fn id(w: &World) -> i64 {
    i64::from(w.thread.cage.id.0)
}

fn set(w: &World, bits: u64) -> i64 {
    w.value(&bits)
}

const BLOCK: i64 = 0;
const UNBLOCK: i64 = 1;
const ABRT: i64 = 6;
const USR1: i64 = 10;
const CHLD: i64 = 17;

#[test]
fn a_blocked_signal_acts_when_it_is_unblocked() {
    in_world(Walls::Openat2, |w| {
        // As raise(3) does it.
        w.ok(nr::rt_sigprocmask, &[BLOCK, set(w, !0), 0, 8]);
        w.ok(nr::tkill, &[id(w), ABRT]);
        assert_eq!(left(w), None);
        let pending = w.buffer(8);
        w.ok(nr::rt_sigpending, &[pending, 8]);
        assert_eq!(w.load::<u64>(pending), 1 << (ABRT - 1));
        let old = w.buffer(8);
        w.ok(nr::rt_sigprocmask, &[UNBLOCK, set(w, !0), old, 8]);
        assert_eq!(w.load::<u64>(old), !(1 << 8 | 1 << 18), "SIGKILL and SIGSTOP cannot be blocked");
        assert_eq!(left(w), Some(Next::Exit(Status::Signaled { signal: 6 })));
    });
}

#[test]
fn dispositions_are_checked_and_kept() {
    in_world(Walls::Openat2, |w| {
        let act = |handler, flags| w.value(&Sigaction { handler, flags, restorer: 0, mask: [!0, !0] });
        let action = |sig: i64, act: i64, old: i64| w.call(nr::rt_sigaction, &[sig, act, old, 8]);
        for sig in [0, 65, -1, 9, 19] {
            assert_eq!(action(sig, act(1, 0), 0), Err(Errno::EINVAL), "{sig}");
        }
        assert_eq!(w.err(nr::rt_sigaction, &[USR1, act(1, 0), 0, 4]), Errno::EINVAL);
        assert_eq!(action(USR1, 8, 0), Err(Errno::EFAULT));
        assert_eq!(action(9, 0, w.buffer(20)), Ok(0));
        let old = w.buffer(20);
        action(USR1, act(77, 0x1000_0020), 0).unwrap();
        action(USR1, act(1, 0), old).unwrap();
        let old: Sigaction = w.load(old);
        assert_eq!((old.handler, old.flags), (77, 0x1000_0000), "unknown flags are dropped");
        assert_eq!(old.mask, [!(1 << 8 | 1 << 18), !0]);
        // Ignored now; blocked it waits; with the default it ends.
        w.ok(nr::kill, &[id(w), USR1]);
        w.ok(nr::rt_sigprocmask, &[BLOCK, set(w, 1 << (USR1 - 1)), 0, 8]);
        action(USR1, act(77, 0), 0).unwrap();
        w.ok(nr::kill, &[id(w), USR1]);
        assert_eq!(left(w), None);
        action(USR1, act(0, 0), 0).unwrap();
        w.ok(nr::kill, &[id(w), CHLD]);
        assert_eq!(left(w), None);
        w.ok(nr::rt_sigprocmask, &[UNBLOCK, set(w, !0), 0, 8]);
        assert_eq!(left(w), Some(Next::Exit(Status::Signaled { signal: 10 })));
    });
}

fn grate(w: &World) -> crate::threei::Handler {
    crate::threei::Handler::Grate { cage: w.thread.cage.id, entry: 1, serialized: false }
}

/// The handler that runs next, with the mask that it has and the one that comes back.
fn handler(w: &World) -> (u32, Info, u64, u64) {
    match w.thread.next_step(&w.kernel) {
        Step::Handle(delivery) => (delivery.handler, delivery.info, mask(&w.thread), delivery.mask),
        _ => panic!("no handler"),
    }
}

fn mask(thread: &Thread) -> u64 {
    thread.mask.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn handlers_have_their_mask_and_their_info() {
    const SIGINFO_RESETHAND: u32 = 0x8000_0004;
    const NODEFER: u32 = 0x4000_0000;
    const RTMIN: i64 = 34;
    in_world(Walls::Openat2, |w| {
        let act = |sig, handler, flags, mask: u64| {
            let mask = [mask & 0xffff_ffff, mask >> 32].map(|half| u32::try_from(half).unwrap());
            w.ok(nr::rt_sigaction, &[sig, w.value(&Sigaction { handler, flags, restorer: 0, mask }), 0, 8]);
        };
        act(USR1, 5, SIGINFO_RESETHAND, 1 << 13);
        act(RTMIN, 6, NODEFER, 0);
        w.ok(nr::rt_sigprocmask, &[BLOCK, set(w, 1 << 3), 0, 8]);
        w.ok(nr::kill, &[id(w), USR1]);
        let (function, info, during, after) = handler(w);
        assert_eq!((function, info.code, info.fields[0]), (5, Info::SI_USER, w.thread.cage.id.0));
        assert_eq!((during, after), (1 << 3 | 1 << 13 | 1 << 9, 1 << 3));
        w.thread.set_mask(&w.kernel, after);
        w.ok(nr::kill, &[id(w), USR1]);
        assert_eq!(left(w), Some(Next::Exit(Status::Signaled { signal: 10 })), "SA_RESETHAND");
    });
    in_world(Walls::Openat2, |w| {
        let act = Sigaction { handler: 6, flags: NODEFER, restorer: 0, mask: [0, 0] };
        w.ok(nr::rt_sigaction, &[RTMIN, w.value(&act), 0, 8]);
        for value in 0..3_u32 {
            let info = lind_abi::layout::Siginfo { code: -1, fields: [value; 29], ..Default::default() };
            w.ok(nr::rt_sigqueueinfo, &[id(w), RTMIN, w.value(&info)]);
        }
        let order: Vec<_> = (0..3).map(|_| handler(w).1.fields[2]).collect();
        assert_eq!(order, [0, 1, 2]);
        assert_eq!(left(w), None);
        assert_eq!(w.thread.attention(), 0);
    });
}

#[test]
fn the_mask_of_a_suspended_thread_comes_back_after_the_handler() {
    in_world(Walls::Openat2, |w| {
        let act = Sigaction { handler: 6, flags: 0, restorer: 0, mask: [0, 0] };
        w.ok(nr::rt_sigaction, &[USR1, w.value(&act), 0, 8]);
        w.ok(nr::rt_sigprocmask, &[BLOCK, set(w, 1 << 9 | 1), 0, 8]);
        w.ok(nr::kill, &[id(w), USR1]);
        assert_eq!(left(w), None);
        assert_eq!(w.err(nr::rt_sigsuspend, &[set(w, 2), 8]), Errno::EINTR);
        assert!(w.thread.take_interrupted());
        let (_, _, during, after) = handler(w);
        assert_eq!((during, after), (1 << 9 | 2, 1 << 9 | 1));
    });
}

#[test]
fn sigtimedwait_takes_what_waits() {
    in_world(Walls::Openat2, |w| {
        w.ok(nr::rt_sigprocmask, &[BLOCK, set(w, !0), 0, 8]);
        w.ok(nr::tkill, &[id(w), USR1]);
        w.ok(nr::kill, &[id(w), ABRT]);
        let info = w.buffer(128);
        assert_eq!(w.ok(nr::rt_sigtimedwait, &[set(w, !0), info, 0, 8]), USR1, "the thread's own come first");
        assert_eq!(w.load::<[i32; 3]>(info), [10, 0, Info::SI_TKILL]);
        let now = w.value(&lind_abi::layout::Timespec::default());
        assert_eq!(w.err(nr::rt_sigtimedwait, &[set(w, 1), 0, now, 8]), Errno::EAGAIN);
        assert_eq!(w.ok(nr::rt_sigtimedwait, &[set(w, 1 << 5), 0, 0, 8]), ABRT);
    });
}

#[test]
fn children_tell_of_their_end() {
    in_world(Walls::Openat2, |w| {
        w.ok(nr::rt_sigprocmask, &[BLOCK, set(w, 1 << 16), 0, 8]);
        let child = w.sibling();
        child.exit();
        let info = w.buffer(128);
        assert_eq!(w.ok(nr::rt_sigtimedwait, &[set(w, 1 << 16), info, 0, 8]), CHLD);
        assert_eq!(w.load::<[i32; 6]>(info)[2..4], [1, id(&child).try_into().unwrap()]);
        assert_eq!(w.ok(nr::waitid, &[1, id(&child), info, 4 | 0x100_0000, 0]), 0);
        assert_eq!(w.ok(nr::wait4, &[-1, 0, 0, 0]), id(&child));
        // SIG_IGN: no zombies.
        w.ok(nr::rt_sigaction, &[CHLD, w.value(&Sigaction { handler: 1, ..Default::default() }), 0, 8]);
        w.sibling().exit();
        assert_eq!(w.err(nr::wait4, &[-1, 0, 0, 0]), Errno::ECHILD);
    });
}

#[test]
fn a_stop_holds_a_thread_until_it_is_continued() {
    in_world(Walls::Openat2, |w| {
        let child = w.sibling();
        w.ok(nr::kill, &[id(&child), 19]);
        let thread = std::sync::Arc::clone(&child.thread);
        let kernel = std::sync::Arc::clone(&w.kernel);
        let stopped = std::thread::spawn(move || matches!(thread.next_step(&kernel), Step::Go));
        let status = w.buffer(4);
        assert_eq!(w.ok(nr::wait4, &[-1, status, 2, 0]), id(&child));
        assert_eq!(w.load::<u32>(status), 19 << 8 | 0x7f);
        w.ok(nr::kill, &[id(&child), 18]);
        assert_eq!(w.ok(nr::wait4, &[-1, status, 8, 0]), id(&child));
        assert_eq!(w.load::<u32>(status), 0xffff);
        assert!(stopped.join().unwrap());
        assert_eq!(w.ok(nr::wait4, &[-1, 0, 1 | 2 | 8, 0]), 0);
    });
}

/// Between the brackets of a composer: the cage's own table names the composer alone, which routes
/// its calls by the table of a cage that it descends from.
#[test]
fn a_cage_signals_no_grate_that_a_composer_shows_its_calls_to() {
    in_world(Walls::Openat2, |w| {
        let handles = |of: &World, by: &World| {
            let entry = crate::threei::Change::To(grate(by));
            of.thread.cage.handlers.set(500, entry, |_| Ok::<(), ()>(())).unwrap();
        };
        let inner = w.sibling();
        let view = inner.sibling();
        handles(&view, &inner);
        let (program, other) = (view.sibling(), view.sibling());
        handles(&program, w);
        handles(&other, w);
        assert_eq!(program.err(nr::kill, &[id(&inner), 0]), Errno::EPERM);
        assert_eq!(program.err(nr::tkill, &[id(&inner), 9]), Errno::EPERM);
        assert_eq!(program.ok(nr::kill, &[id(&other), 0]), 0);
        assert_eq!(program.ok(nr::kill, &[-1, 9]), 0);
        assert_eq!(left(&other), Some(Next::Exit(Status::Signaled { signal: 9 })));
        assert_eq!(left(&inner), None);
        // A process that the grate starts for itself may signal it.
        let helper = inner.sibling();
        handles(&helper, w);
        assert_eq!(helper.ok(nr::kill, &[id(&inner), 0]), 0);
    });
}

#[test]
fn a_cage_signals_its_descendants_alone() {
    in_world(Walls::Openat2, |w| {
        let entry = crate::threei::Change::To(crate::threei::Handler::Grate {
            cage: w.thread.cage.id,
            entry: 1,
            serialized: false,
        });
        let (one, two) = (w.sibling(), w.sibling());
        // The first cage has a grate, which is thereby also one of the second's.
        one.thread.cage.handlers.set(500, entry, |_| Ok::<(), ()>(())).unwrap();
        two.thread.cage.handlers.set(500, crate::threei::Change::To(grate(&one)), |_| Ok::<(), ()>(())).unwrap();
        assert_eq!(one.ok(nr::kill, &[id(&two), 0]), 0);
        assert_eq!(two.err(nr::kill, &[id(&one), 0]), Errno::EPERM);
        assert_eq!(one.err(nr::kill, &[id(w), 9]), Errno::EPERM);
        assert_eq!(one.err(nr::tkill, &[id(w), 9]), Errno::EPERM);
        assert_eq!(one.err(nr::kill, &[77777, 9]), Errno::ESRCH);
        assert_eq!(two.err(nr::kill, &[-1, 9]), Errno::EPERM);
        assert_eq!(w.err(nr::kill, &[id(&one), 65]), Errno::EINVAL);
        assert_eq!(w.err(nr::tgkill, &[id(w), id(&one), 9]), Errno::ESRCH);
        assert_eq!(w.err(nr::tgkill, &[id(w), 0, 9]), Errno::EINVAL);
        assert_eq!(w.ok(nr::kill, &[id(&one), 0]), 0);
        assert_eq!(w.ok(nr::kill, &[id(&one), 15]), 0);
        assert_eq!(left(&one), Some(Next::Exit(Status::Signaled { signal: 15 })));
        assert_eq!(left(&two), None);
        assert_eq!(w.ok(nr::kill, &[-1, 9]), 0);
        assert_eq!(left(&two), Some(Next::Exit(Status::Signaled { signal: 9 })));
        assert_eq!(left(w), None);
    });
}

/// A grate and its client share a file: the client must not use it to signal cages that it may not
/// signal, nor choose for the grate which signal it gets.
#[test]
fn a_file_tells_only_whom_those_reach_who_set_it_up() {
    const SETOWN: i64 = 8;
    const SETSIG: i64 = 10;
    const SETFL: i64 = 4;
    const ASYNC: i64 = 0o20000;
    const IO: i64 = 29;
    in_world(Walls::Openat2, |w| {
        let fds = w.buffer(8);
        w.ok(nr::pipe2, &[fds, 0]);
        let [read, write] = w.load::<[i32; 2]>(fds).map(i64::from);
        w.ok(nr::rt_sigprocmask, &[BLOCK, set(w, !0), 0, 8]);
        let client = w.sibling();
        client.thread.cage.handlers.set(500, crate::threei::Change::To(grate(w)), |_| Ok::<(), ()>(())).unwrap();
        let notified = || {
            w.ok(nr::write, &[write, w.data(b"x"), 1]);
            let limit = w.value(&lind_abi::layout::Timespec { sec: 0, nsec: 200_000_000 });
            w.call(nr::rt_sigtimedwait, &[set(w, !0), 0, limit, 8])
        };
        client.ok(nr::fcntl, &[read, SETFL, ASYNC]);
        client.ok(nr::fcntl, &[read, SETOWN, id(w)]);
        assert_eq!(notified(), Err(Errno::EAGAIN), "the client reaches no grate of its own");
        w.ok(nr::fcntl, &[read, SETOWN, id(w)]);
        assert_eq!(notified(), Ok(IO));
        w.ok(nr::fcntl, &[read, SETSIG, 40]);
        assert_eq!(notified(), Ok(40));
        client.ok(nr::fcntl, &[read, SETSIG, 9]);
        assert_eq!(notified(), Err(Errno::EAGAIN));
        assert_eq!(left(w), None);
        client.ok(nr::fcntl, &[read, SETOWN, id(&client)]);
        w.ok(nr::write, &[write, w.data(b"x"), 1]);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while left(&client).is_none() && std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        assert_eq!(left(&client), Some(Next::Exit(Status::Signaled { signal: 9 })));
    });
}
