//! The end of a session, and what it releases while nobody uses it.

use std::time::{Duration, Instant};

use lind_engine::signal::host_signals;
use lind_kernel::stdio;

use super::{Held, Server};

/// The signal that asks commands to end.
const TERM: u8 = 15;

/// The time that grates have to end after the commands.
const OF_GRATES: Duration = Duration::from_secs(5);

/// The time without commands after which memory that only commands need is released.
const QUIET: Duration = Duration::from_secs(1);

impl Server {
    /// When memory is to be released.
    pub(super) fn next_quiet(&self) -> Option<Instant> {
        (self.is_unused() && !self.quiet).then(|| self.unused + QUIET)
    }

    /// Releases memory while the session waits for commands.
    pub(super) fn keep_little(&mut self) {
        lind_engine::let_go_of_code();
        self.quiet = true;
    }

    pub(super) fn is_unused(&self) -> bool {
        self.first.is_some() && self.commands.is_empty() && !self.has_jobs()
    }

    pub(super) fn end_if_unused(&mut self) {
        if self.is_unused() && self.about.idle.is_some_and(|idle| self.unused.elapsed() >= idle) {
            stdio::say_line("the session was unused for the time of --idle and ends");
            self.stop();
        }
    }

    /// Asks the commands to end. After a while the rest is killed.
    pub(super) fn stop(&mut self) {
        if self.ending.is_none() {
            self.commands.signal_all(TERM);
            self.end_helpers();
            self.take_states_back();
            self.ending = Some(Instant::now() + host_signals::GRACE);
        }
    }

    /// Kills the commands at once: nobody waits for them any more.
    pub(super) fn parent_ended(&mut self) {
        self.about.parent = None;
        if !self.closed {
            self.end_helpers();
            self.take_states_back();
            self.ending = Some(Instant::now());
        }
    }

    pub(super) fn go_on_ending(&mut self) {
        let Some(end) = self.ending else { return };
        let late = Instant::now() >= end;
        if late && self.closed {
            stdio::say_line("a grate did not end in time and is killed with the session");
            let process = self.about.held.as_ref().and_then(Held::end);
            let status = process.map_or(crate::failure::FAILED, |process| process.shell_code());
            std::process::exit(i32::from(status));
        }
        if late {
            self.commands.kill_all();
        }
        if !self.closed && (late || self.commands.is_empty()) {
            self.orders.end();
            (self.closed, self.ending) = (true, Some(Instant::now() + OF_GRATES));
        }
    }
}
