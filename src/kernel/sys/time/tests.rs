//! Times in and out.

use lind_abi::layout::{Itimerspec, Timespec};
use lind_abi::{Errno, nr};

use crate::root::Walls;
use crate::testing::in_world;

#[test]
fn padding_of_a_timespec_does_not_matter() {
    in_world(Walls::Openat2, |w| {
        // tv_nsec has 32 bits in a guest; the following ones may have any value.
        let dirty = |sec, nsec: i64| w.value(&Timespec { sec, nsec: nsec | 0x7eed << 32 });
        assert_eq!(w.ok(nr::nanosleep, &[dirty(0, 1000), 0]), 0);
        assert_eq!(w.err(nr::nanosleep, &[dirty(0, 1_000_000_000), 0]), Errno::EINVAL);
        assert_eq!(w.err(nr::nanosleep, &[dirty(0, 0xffff_ffff), 0]), Errno::EINVAL);
        assert_eq!(w.err(nr::nanosleep, &[dirty(-1, 0), 0]), Errno::EINVAL);
        assert_eq!(w.err(nr::nanosleep, &[0, 0]), Errno::EFAULT);
        assert_eq!(w.err(nr::clock_nanosleep, &[3, 0, dirty(0, 0), 0]), Errno::EINVAL);
        assert_eq!(w.err(nr::clock_nanosleep, &[4, 0, dirty(0, 0), 0]), Errno::EOPNOTSUPP);
        let fd = w.ok(nr::timerfd_create, &[1, 0]);
        let dirty = Timespec { sec: 1, nsec: 5 | 1 << 40 };
        let spec = w.value(&Itimerspec { interval: dirty, value: dirty });
        assert_eq!(w.ok(nr::timerfd_settime, &[fd, 0, spec, 0]), 0);
        let now = w.buffer(32);
        w.ok(nr::timerfd_gettime, &[fd, now]);
        assert_eq!(w.load::<Itimerspec>(now).interval.nsec, 5);
        assert_eq!(w.err(nr::timerfd_settime, &[fd, 4, spec, 0]), Errno::EINVAL);
        assert_eq!(w.err(nr::timerfd_create, &[8, 0]), Errno::EPERM);
    });
}

#[test]
fn a_timer_is_waited_for_once_and_not_when_it_is_gone() {
    in_world(Walls::Openat2, |w| {
        let waiting = || w.kernel.timers.len();
        let long = |sec| {
            let (value, interval) = (Timespec { sec, nsec: 0 }, Timespec::default());
            w.value(&Itimerspec { interval, value })
        };
        let id = w.buffer(4);
        let timers: Vec<i64> = (0..3)
            .map(|_| {
                w.ok(nr::timer_create, &[1, 0, id]);
                w.load::<i32>(id).into()
            })
            .collect();
        for sec in 1..100 {
            for timer in &timers {
                w.ok(nr::timer_settime, &[*timer, 0, long(1000 * sec), 0]);
            }
            w.ok(nr::alarm, &[5000 + sec]);
        }
        assert_eq!(waiting(), 4);
        w.ok(nr::timer_settime, &[timers[0], 0, long(0), 0]);
        assert_eq!(waiting(), 3);
        w.ok(nr::timer_delete, &[timers[1]]);
        assert_eq!(waiting(), 2);
        assert!(w.ok(nr::alarm, &[0]) > 5000);
        w.kernel.cages.get(w.thread.cage.id).unwrap().delete_timers();
        assert_eq!(waiting(), 0);
    });
}
