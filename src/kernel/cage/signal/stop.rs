//! Stopping cages and continuing them: SIGSTOP and its like, SIGCONT.
//!
//! A stop signal is taken by one thread, which then makes all stop. Each thread stops where it
//! would return to guest code, or in the engine's interruption of it. When the last one has
//! stopped, the parent is notified. Workers of a grate do not stop: they act for others.

use std::sync::atomic::Ordering;

use super::{Change, Signals, child_changed};
use crate::Kernel;
use crate::cage::{Attention, Cage, Thread};
use crate::lock::Locked;

impl Signals {
    /// Ends a stop, if there is one, and what was about to be one.
    pub(super) fn go_on(&mut self) -> Option<Ended> {
        self.stop_taken = false;
        let complete = std::mem::take(&mut self.stop_complete);
        self.stop.take().map(|_| if complete { Ended::Complete } else { Ended::Beginning })
    }
}

/// A stop that SIGCONT has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// Only some threads had stopped: the parent has not been notified.
    Beginning,
    /// All threads had stopped.
    Complete,
}

/// Begins to stop a cage, for one of its threads that has taken the signal, unless SIGCONT has come
/// since then.
pub(super) fn begin(kernel: &Kernel, cage: &Cage, signal: u8) {
    let threads = {
        let mut signals = cage.signals();
        if signals.stop.is_some() || !std::mem::take(&mut signals.stop_taken) {
            return;
        }
        signals.stop = Some(signal);
        signals.stop_complete = false;
        let mut threads = cage.threads();
        threads.retain(|thread| !thread.worker);
        for thread in &threads {
            thread.signals.stopped.store(false, Ordering::Relaxed);
            thread.notice(Attention::SIGNAL);
        }
        threads
    };
    for thread in threads {
        kernel.engine().interrupt(&thread);
    }
    cage.changed.notify_all();
}

/// Stands still as long as the thread's cage is stopped.
pub(super) fn stand(kernel: &Kernel, thread: &Thread) {
    let cage = &*thread.cage;
    // Signals that come meanwhile wait.
    thread.unnotice(Attention::SIGNAL);
    loop {
        let seen = cage.changed.seen();
        // Set each time round the loop: it may be another stop by now, which began without this
        // thread.
        thread.signals.stopped.store(true, Ordering::Relaxed);
        check_complete(kernel, cage);
        if cage.signals().stop.is_none() || thread.attention() & Attention::INTERRUPTS & !Attention::SIGNAL != 0 {
            break;
        }
        // However the wait ends, the question is asked again.
        let _ = cage.changed.wait(seen, None);
    }
    thread.signals.stopped.store(false, Ordering::Relaxed);
    thread.notice(Attention::SIGNAL);
}

/// Counts the thread as stopped: it has lent its host thread, and will stop when it is back, if the
/// stop has not ended by then.
pub(super) fn count_as_standing(kernel: &Kernel, thread: &Thread) {
    thread.unnotice(Attention::SIGNAL);
    thread.signals.stopped.store(true, Ordering::Relaxed);
    check_complete(kernel, &thread.cage);
}

impl Thread {
    /// Called by the engine when the thread, which has lent its host thread, has got attention.
    pub fn settle_as_lender(&self, kernel: &Kernel) {
        super::deliver::settle_lender(kernel, self);
    }

    /// Called by the engine when the thread has its host thread back: it looks for signals and may
    /// stop.
    pub fn is_back(&self) {
        self.signals.stopped.store(false, Ordering::Relaxed);
        self.notice(Attention::SIGNAL);
    }
}

/// Notifies the parent of a stop once all threads have stopped. Has to be called again when a
/// thread has ended.
pub(crate) fn check_complete(kernel: &Kernel, cage: &Cage) {
    let signal = {
        let mut signals = cage.signals();
        let Some(signal) = signals.stop.filter(|_| !signals.stop_complete) else { return };
        let threads = cage.threads();
        let mut own = threads.iter().filter(|thread| !thread.worker);
        if !own.all(|thread| thread.signals.stopped.load(Ordering::Relaxed)) {
            return;
        }
        signals.stop_complete = true;
        signal
    };
    tell_parent(kernel, cage, Change::Stopped(signal));
}

/// SIGCONT has ended a stop.
pub(super) fn went_on(kernel: &Kernel, cage: &Cage, stop: Ended) {
    cage.changed.notify_all();
    if stop == Ended::Complete {
        tell_parent(kernel, cage, Change::Continued);
    }
}

fn tell_parent(kernel: &Kernel, cage: &Cage, change: Change) {
    match cage.living_parent(kernel) {
        Some(parent) => {
            let news = parent.news();
            // A later change is reported by the thread that made it: old news must not replace
            // newer ones.
            if cage.is_stopped() != matches!(change, Change::Stopped(_)) {
                return;
            }
            parent.family().note_change(cage.id, change);
            child_changed(kernel, &parent, cage, change);
            drop(news);
            if cage.is_command && matches!(change, Change::Stopped(_)) && has_job_control(kernel) {
                stop_process(kernel, cage);
            }
        }
        // The first cage's parent is outside.
        None if cage.maker().is_none() && matches!(change, Change::Stopped(_)) => stop_process(kernel, cage),
        None => {}
    }
}

/// Stops this process, so that its parent sees it. The first cage and the command behind its grates
/// often stop at once; only one of them stops the process until SIGCONT comes from outside.
fn stop_process(kernel: &Kernel, cage: &Cage) {
    let mut stopped = kernel.stopped_outside.locked();
    if !*stopped && cage.is_stopped() {
        *stopped = true;
        kernel.engine().stop_process();
    }
}

/// Whether a shell outside may see its jobs stop: there is a terminal, and no time limit ends the
/// run. Otherwise the run of a command that has stopped waits for a SIGCONT.
fn has_job_control(kernel: &Kernel) -> bool {
    const NOCTTY: u32 = 0o400;
    let terminal = || kernel.root.devices().open(&kernel.root, crate::root::devices::TTY, NOCTTY);
    !kernel.timed.load(Ordering::Relaxed) && terminal().is_ok()
}

impl Cage {
    /// The signal that has stopped it, once all its threads have stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        let signals = self.signals();
        signals.stop.is_some() && signals.stop_complete
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use lind_abi::nr;

    use crate::root::Walls;
    use crate::testing::in_world;

    /// A thread that has taken SIGSTOP and not acted on it yet finds that SIGCONT has come.
    #[test]
    fn what_was_continued_does_not_stop() {
        in_world(Walls::Openat2, |w| {
            let child = w.sibling();
            let id = i64::from(child.thread.cage.id.0);
            let done = Arc::new(AtomicBool::new(false));
            let (thread, kernel, ended) = (Arc::clone(&child.thread), Arc::clone(&w.kernel), Arc::clone(&done));
            let runs = std::thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    thread.next_step(&kernel);
                }
            });
            let stopped = (0..50_000).filter(|round| {
                w.ok(nr::kill, &[id, 19]);
                // Sooner or later, as the thread is doing this and that.
                (0..round % 100).for_each(|_| std::hint::spin_loop());
                w.ok(nr::kill, &[id, 18]);
                (0..20).any(|_| child.thread.cage.signals().stop.is_some())
            });
            assert_eq!(stopped.count(), 0);
            done.store(true, Ordering::Relaxed);
            runs.join().unwrap();
            // The last report to its parent is that it continues, or there is none.
            let status = w.buffer(4);
            while w.ok(nr::wait4, &[id, status, 1 | 2 | 8, 0]) != 0 {
                assert_eq!(w.load::<u32>(status), 0xffff);
            }
        });
    }
}
