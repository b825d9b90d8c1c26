//! What signals do, and to whom they may be sent.

use lind_abi::layout::Sigaction;
use lind_abi::{Errno, nr};

use crate::cage::{Next, Status};
use crate::root::Walls;
use crate::testing::{World, in_world};

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
        assert_eq!(w.thread.take_next(), None);
        let pending = w.buffer(8);
        w.ok(nr::rt_sigpending, &[pending, 8]);
        assert_eq!(w.load::<u64>(pending), 1 << (ABRT - 1));
        let old = w.buffer(8);
        w.ok(nr::rt_sigprocmask, &[UNBLOCK, set(w, !0), old, 8]);
        assert_eq!(w.load::<u64>(old), !(1 << 8 | 1 << 18), "SIGKILL and SIGSTOP cannot be blocked");
        assert_eq!(w.thread.take_next(), Some(Next::Exit(Status::Signaled { signal: 6, core: true })));
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
        // Ignored now; with a handler it would wait; with the default it ends.
        w.ok(nr::kill, &[id(w), USR1]);
        action(USR1, act(77, 0), 0).unwrap();
        w.ok(nr::kill, &[id(w), USR1]);
        assert_eq!(w.thread.take_next(), None);
        action(USR1, act(0, 0), 0).unwrap();
        assert_eq!(w.thread.take_next(), Some(Next::Exit(Status::Signaled { signal: 10, core: false })));
        w.ok(nr::kill, &[id(w), CHLD]);
        assert_eq!(w.thread.take_next(), None);
    });
}

#[test]
fn a_cage_signals_its_descendants_alone() {
    in_world(Walls::Openat2, |w| {
        let (one, two) = (w.sibling(), w.sibling());
        assert_eq!(one.err(nr::kill, &[id(&two), 0]), Errno::EPERM);
        assert_eq!(one.err(nr::kill, &[id(w), 9]), Errno::EPERM);
        assert_eq!(one.err(nr::tkill, &[id(w), 9]), Errno::EPERM);
        assert_eq!(one.err(nr::kill, &[77777, 9]), Errno::ESRCH);
        assert_eq!(one.err(nr::kill, &[-1, 9]), Errno::EPERM);
        assert_eq!(w.err(nr::kill, &[id(&one), 65]), Errno::EINVAL);
        assert_eq!(w.err(nr::kill, &[id(&one), 19]), Errno::EINVAL);
        assert_eq!(w.err(nr::tgkill, &[id(w), id(&one), 9]), Errno::ESRCH);
        assert_eq!(w.err(nr::tgkill, &[id(w), 0, 9]), Errno::EINVAL);
        assert_eq!(w.ok(nr::kill, &[id(&one), 0]), 0);
        assert_eq!(w.ok(nr::kill, &[id(&one), 15]), 0);
        assert_eq!(one.thread.take_next(), Some(Next::Exit(Status::Signaled { signal: 15, core: false })));
        assert_eq!(two.thread.take_next(), None);
        assert_eq!(w.ok(nr::kill, &[-1, 9]), 0);
        assert_eq!(two.thread.take_next(), Some(Next::Exit(Status::Signaled { signal: 9, core: false })));
        assert_eq!(w.thread.take_next(), None);
    });
}
