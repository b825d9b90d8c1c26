//! Timers of a cage: alarm(2), setitimer(2), timer_create(2).
//!
//! A timer whose signal still waits does not send another one: the signal that waits counts how
//! often it ran out since. The waiting signal of a timer of timer_create(2) is dropped when the
//! timer is set again or deleted (as on Linux from 6.13 on).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use lind_abi::flags::{Resource, Signals as Number};
use lind_abi::{Errno, Result};

use super::Cage;
use super::signal::{self, Info};
use crate::Kernel;
use crate::host::clock;
use crate::lock::Locked;
use crate::timers::{self, Entry, Nanos, Timers};

/// The times that timers measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Measure {
    /// A clock of the host.
    Clock(i32),
    /// The processor time of the cage.
    Process,
    /// The processor time of one of its threads.
    Thread(u32),
}

/// The effect of a timer that runs out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Notice {
    /// Nothing: SIGEV_NONE.
    Nothing,
    /// One of the signals of setitimer(2).
    Alarm(u8),
    /// The signals of RLIMIT_CPU: SIGXCPU, and SIGKILL from the hard limit on.
    Limit,
    /// A signal with a value, for the cage or one of its threads.
    Signal {
        /// The signal.
        signal: u8,
        /// si_value.
        value: u32,
        /// The thread.
        thread: Option<u32>,
    },
}

/// A timer.
pub(crate) struct Timer {
    cage: Weak<Cage>,
    clock: Arc<Timers>,
    /// Its entry in the clock's list.
    pub entry: Entry,
    id: u32,
    pub measure: Measure,
    notice: Notice,
    setting: Mutex<Setting>,
    /// The overrun count for timer_getoverrun(2).
    pub overrun: AtomicI32,
}

/// A timer's setting, in nanoseconds of the measured time.
#[derive(Clone, Copy, Default)]
struct Setting {
    end: Option<Nanos>,
    interval: Nanos,
    /// Whether the next look has been put off, and reckoned.
    put_off: bool,
}

/// The time left of a timer, and its interval.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Left {
    /// Nanoseconds until it runs out; 0 if it is not set.
    pub value: Nanos,
    /// Nanoseconds between further times.
    pub interval: Nanos,
}

impl Timer {
    fn new(clock: &Arc<Timers>, cage: &Arc<Cage>, id: u32, measure: Measure, notice: Notice) -> Arc<Timer> {
        let (clock, cage, setting) = (Arc::clone(clock), Arc::downgrade(cage), Mutex::default());
        let (entry, overrun) = (Entry::default(), AtomicI32::new(0));
        Arc::new(Timer { cage, clock, entry, id, measure, notice, setting, overrun })
    }

    /// Sets it to run out after `value`, or at that time if `absolute`; 0 stops it. Returns the
    /// previous setting.
    pub fn set(self: &Arc<Timer>, kernel: &Arc<Kernel>, value: Nanos, interval: Nanos, absolute: bool) -> Result<Left> {
        let cage = self.cage.upgrade().ok_or(Errno::EINVAL)?;
        let now = self.measure.now(&cage)?;
        let mut setting = self.setting();
        let before = setting.left(now);
        let end = (value != 0).then_some(if absolute { value } else { now + value });
        *setting = Setting { end, interval, put_off: false };
        self.forget_signal(&cage);
        match end {
            Some(end) => self.look_again(kernel, &cage, end - now),
            None => self.clock.forget(self),
        }
        Ok(before)
    }

    /// The time left of it.
    pub fn left(&self) -> Result<Left> {
        let cage = self.cage.upgrade().ok_or(Errno::EINVAL)?;
        let now = self.measure.now(&cage)?;
        Ok(self.setting().left(now))
    }

    /// Handles the timer if it has run out.
    pub fn look(self: &Arc<Timer>, kernel: &Arc<Kernel>) {
        let Some(cage) = self.cage.upgrade().filter(|cage| !cage.is_dead()) else { return };
        let mut setting = self.setting();
        // The timer was set again or stopped since; the thread that did so has arranged for the
        // next look.
        let Some(end) = setting.end else { return };
        if !std::mem::take(&mut setting.put_off)
            && let Some(later) =
                cage.pace.ask(timers::now(), cage.told_of_signals(), !matches!(self.measure, Measure::Clock(_)))
        {
            setting.put_off = true;
            return kernel.timers.look_at(kernel, self, later);
        }
        let Ok(now) = self.measure.now(&cage) else { return };
        let mut times = 0;
        if end <= now {
            times = if setting.interval > 0 { 1 + (now - end) / setting.interval } else { 1 };
            setting.end = (setting.interval > 0).then(|| end + times * setting.interval);
        }
        if let Some(end) = setting.end {
            self.look_again(kernel, &cage, end - now);
        }
        // With the setting locked: after the timer has been stopped no signal of it is sent any
        // more.
        if times > 0 {
            self.notify(kernel, &cage, i32::try_from(times).unwrap_or(i32::MAX));
        }
    }

    /// Stops it for good.
    fn stop(&self) {
        let mut setting = self.setting();
        *setting = Setting::default();
        self.clock.forget(self);
        if let Some(cage) = self.cage.upgrade() {
            self.forget_signal(&cage);
        }
    }

    /// Called with the setting locked, as `notify`.
    fn forget_signal(&self, cage: &Cage) {
        if let Notice::Signal { .. } = self.notice {
            cage.forget_timer_signal(self.id);
        }
    }

    /// Called with the setting locked: of two threads that set it, the later one decides.
    fn look_again(self: &Arc<Timer>, kernel: &Arc<Kernel>, cage: &Cage, left: Nanos) {
        /// Processor time passes as fast as there are threads; asking more often is not worth it.
        const OFTEN: Nanos = 1_000_000;
        let wait = match self.measure {
            Measure::Clock(_) => left,
            Measure::Thread(_) => left.max(OFTEN),
            Measure::Process => (left / Nanos::try_from(cage.threads().len().max(1)).unwrap_or(1)).max(OFTEN),
        };
        kernel.timers.look_at(kernel, self, timers::now() + wait);
    }

    fn notify(&self, kernel: &Kernel, cage: &Arc<Cage>, times: i32) {
        match self.notice {
            Notice::Nothing => {}
            Notice::Alarm(signal) => {
                // There is always room for a standard signal of the kernel's.
                let _ = signal::send(kernel, cage, Info::kernel(signal));
            }
            Notice::Limit => {
                let (_, hard) = cage.cpu_limit();
                let over = u64::try_from(cage.cpu_time().sec).is_ok_and(|used| used >= hard);
                let signal = if over { Number::SIGKILL } else { Number::SIGXCPU };
                let _ = signal::send(kernel, cage, Info::kernel(signal::number(signal)));
            }
            Notice::Signal { signal, value, thread } => {
                if cage.count_overrun(self.id, times) {
                    return;
                }
                let overrun = times.unsigned_abs() - 1;
                let info = Info::timer(signal, self.id, overrun, value);
                // A thread that has ended, or a queue that is full, loses the signal, as on Linux.
                let _ = match thread {
                    None => signal::send(kernel, cage, info),
                    Some(tid) => {
                        cage.thread(tid).map_or(Ok(()), |thread| signal::send_to_thread(kernel, &thread, info))
                    }
                };
            }
        }
    }

    fn setting(&self) -> MutexGuard<'_, Setting> {
        self.setting.locked()
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.clock.forget(self);
    }
}

impl Setting {
    fn left(&self, now: Nanos) -> Left {
        // A timer that has run out and was not looked at yet reports a little time left, as on
        // Linux.
        Left { value: self.end.map_or(0, |end| (end - now).max(1)), interval: self.interval }
    }
}

impl Measure {
    pub fn now(self, cage: &Cage) -> Result<Nanos> {
        let time = match self {
            Measure::Clock(clock) => clock::gettime(clock)?,
            Measure::Process => cage.cpu_time(),
            Measure::Thread(tid) => super::usage::cpu_time(&*cage.thread(tid).ok_or(Errno::EINVAL)?),
        };
        Ok(Nanos::from(time.sec) * 1_000_000_000 + Nanos::from(time.nsec))
    }
}

/// The timers of a cage, under `Cage::timers`.
#[derive(Default)]
pub(crate) struct Owned {
    /// ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF, once used.
    intervals: [Option<Arc<Timer>>; 3],
    /// The timers of timer_create(2).
    created: BTreeMap<i32, Arc<Timer>>,
    last: i32,
    /// The timer of RLIMIT_CPU, once there was a limit.
    limit: Option<Arc<Timer>>,
}

impl Cage {
    /// The number of things to look at when a signal comes: threads, and descriptors of
    /// signalfd(2). Each of those sets a timer of the host that runs out at once, which takes some
    /// microseconds, and costs ten times that like all else.
    fn told_of_signals(&self) -> usize {
        let threads = self.family().threads.len();
        // Not in one expression, which would hold both locks.
        threads + 40 * self.listeners.count()
    }

    fn timers(&self) -> MutexGuard<'_, Owned> {
        self.timers.locked()
    }

    /// A timer of setitimer(2), by its number.
    ///
    /// # Errors
    /// EINVAL.
    pub(crate) fn interval_timer(self: &Arc<Cage>, clock: &Arc<Timers>, which: i32) -> Result<Arc<Timer>> {
        // The host does not report the part of the user's own code in a processor time.
        const KINDS: [(Measure, u8); 3] =
            [(Measure::Clock(libc::CLOCK_MONOTONIC), 14), (Measure::Process, 26), (Measure::Process, 27)];
        let index = usize::try_from(which).map_err(|_| Errno::EINVAL)?;
        let &(measure, signal) = KINDS.get(index).ok_or(Errno::EINVAL)?;
        let mut timers = self.timers();
        let new = || Timer::new(clock, self, 0, measure, Notice::Alarm(signal));
        let timer = timers.intervals[index].get_or_insert_with(new);
        Ok(Arc::clone(timer))
    }

    fn cpu_limit(&self) -> (u64, u64) {
        self.settings().limits.of(Resource(Resource::RLIMIT_CPU)).map_or((u64::MAX, u64::MAX), |limit| *limit)
    }

    /// Watches a new or inherited RLIMIT_CPU: the cage gets a signal when so many seconds are used,
    /// and each second from then on. As on Linux a limit of 0 means 1.
    pub(crate) fn watch_cpu(self: &Arc<Cage>, kernel: &Arc<Kernel>) {
        const SECOND: Nanos = 1_000_000_000;
        let (soft, hard) = self.cpu_limit();
        let first = soft.min(hard);
        let timer = {
            let mut timers = self.timers();
            if first == u64::MAX && timers.limit.is_none() {
                return;
            }
            let new = || Timer::new(&kernel.timers, self, 0, Measure::Process, Notice::Limit);
            Arc::clone(timers.limit.get_or_insert_with(new))
        };
        let end = if first == u64::MAX { 0 } else { Nanos::from(first.max(1)) * SECOND };
        // This fails only if the cage is gone.
        let _ = timer.set(kernel, end, SECOND, true);
    }

    /// timer_create(2). Without a notice it is SIGALRM with the timer's number.
    ///
    /// # Errors
    /// EAGAIN when there are too many.
    pub(crate) fn create_timer(
        self: &Arc<Cage>,
        clock: &Arc<Timers>,
        measure: Measure,
        notice: Option<Notice>,
    ) -> Result<i32> {
        const MOST: usize = 1024;
        const SIGALRM: u8 = 14;
        let mut timers = self.timers();
        if timers.created.len() >= MOST {
            return Err(Errno::EAGAIN);
        }
        let id = timers.last;
        timers.last = id.checked_add(1).ok_or(Errno::EAGAIN)?;
        let value = id.unsigned_abs();
        let notice = notice.unwrap_or(Notice::Signal { signal: SIGALRM, value, thread: None });
        timers.created.insert(id, Timer::new(clock, self, value, measure, notice));
        Ok(id)
    }

    /// A timer that was created.
    ///
    /// # Errors
    /// EINVAL.
    pub(crate) fn created_timer(&self, id: i32) -> Result<Arc<Timer>> {
        self.timers().created.get(&id).cloned().ok_or(Errno::EINVAL)
    }

    /// timer_delete(2).
    ///
    /// # Errors
    /// EINVAL.
    pub(crate) fn delete_timer(&self, id: i32) -> Result<()> {
        let timer = self.timers().created.remove(&id).ok_or(Errno::EINVAL)?;
        timer.stop();
        Ok(())
    }

    /// execve(2): created timers are gone, the others run on.
    pub(crate) fn delete_timers(&self) {
        let gone = std::mem::take(&mut self.timers().created);
        gone.values().for_each(|timer| timer.stop());
    }

    /// The signal of a timer has been taken: `info` has the number of times that it ran out.
    pub(crate) fn timer_signal_taken(&self, info: &Info) {
        if info.code == Info::SI_TIMER
            && let Ok(timer) =
                i32::try_from(info.fields[0]).map_err(|_| Errno::EINVAL).and_then(|id| self.created_timer(id))
        {
            timer.overrun.store(i32::try_from(info.fields[1]).unwrap_or(i32::MAX), Ordering::Relaxed);
        }
    }
}
