//! Processes of the host: whether one still runs, and is the one that was meant.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// A process. Numbers are used again, so the time of its start belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// The time of its start, as in /proc/PID/stat.
    pub start: u64,
}

/// The state and the start in a line of /proc/PID/stat.
fn fields(line: &str) -> Option<(char, u64)> {
    // The name, in parentheses, may have spaces and parentheses in it.
    let mut fields = line.get(line.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

fn read(pid: i32) -> Option<(char, u64)> {
    fields(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The number of the parent of a process.
pub fn parent(pid: i32) -> Option<i32> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    line.get(line.rfind(')')? + 1..)?.split_whitespace().nth(1)?.parse().ok()
}

impl Process {
    /// The process that has this number now.
    pub fn of(pid: i32) -> Option<Process> {
        let (_, start) = read(pid)?;
        Some(Process { pid, start })
    }

    /// Whether it runs. A process that has ended and waits for its parent does not.
    pub fn runs(&self) -> bool {
        read(self.pid).is_some_and(|(state, start)| start == self.start && !matches!(state, 'Z' | 'X'))
    }

    /// Kills it if it still runs.
    pub fn kill(&self) {
        if self.runs()
            && let Some(pid) = Pid::from_raw(self.pid)
        {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Waits until it has ended. False if that takes too long.
    pub fn wait(&self, most: Duration) -> bool {
        let end = Instant::now() + most;
        while self.runs() {
            if Instant::now() >= end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_again() {
        let own = Process::of(std::process::id().cast_signed()).unwrap();
        assert!(own.runs() && !Process { start: own.start + 1, ..own }.runs());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(child.id().cast_signed()).unwrap();
        assert_eq!(parent(process.pid), Some(own.pid));
        process.kill();
        assert!(process.wait(Duration::from_secs(10)));
        child.wait().unwrap();
    }

    #[test]
    fn names_may_have_parentheses() {
        let line = "7 (a) (b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1";
        assert_eq!(fields(line), Some(('S', 12345)));
        assert_eq!(fields("7 (a S"), None);
    }
}
