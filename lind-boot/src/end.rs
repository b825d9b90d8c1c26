//! How a run ends: as its program does, after a time, or when it was asked to and does not; and who is told.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lind_engine::code::progress;
use lind_kernel::cage::{Status, signal};
use lind_kernel::{Kernel, stdio};
use serde_json::json;

use crate::denials::Denials;
use crate::sandbox::{Learner, Peaks};
use lind_kernel::lock::Locked;

/// The exit status of a run that its time has ended, as timeout(1) has it.
const TIMED_OUT: u8 = 124;

/// What a run is asked to end by, and ends as.
const TERM: u8 = 15;
const TERMINATED: u8 = 128 + TERM;

/// How long grates have, once their programs are killed, to save what they keep.
const GRACE: Duration = Duration::from_secs(5);

/// A program may be about to start another.
const AGAIN: Duration = Duration::from_millis(5);

/// The watch's stack, in bytes: it sleeps, and writes a line.
const STACK: usize = 256 << 10;

/// How long compiling may take that is not a command's time: a program may write others for ever, and begin with them.
const COMPILING: Duration = Duration::from_secs(600);

/// The time of a command: compiling what it begins with is none of that. What is compiled once does not end the first run of a program, with
/// nothing kept for the next one.
#[derive(Clone, Copy)]
pub struct Clock {
    began: Instant,
    compiled: Duration,
}

impl Clock {
    /// From now on.
    pub fn start() -> Clock {
        Clock { began: Instant::now(), compiled: progress::spent() }
    }

    /// How long modules were compiled, as far as that does not count.
    pub fn compiled(&self) -> Duration {
        progress::spent().saturating_sub(self.compiled).min(COMPILING)
    }

    /// What is left of so much time; None when it is over.
    pub fn left(&self, timeout: Duration) -> Option<Duration> {
        let used = self.began.elapsed().saturating_sub(self.compiled());
        timeout.checked_sub(used).filter(|left| !left.is_zero())
    }

    /// All of it.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// When a run ends, and where what came of it is written.
#[derive(Clone, Default)]
pub struct End {
    timeout: Option<Duration>,
    /// The exit status of a run that was ended; 0 before.
    over: Arc<AtomicU8>,
    /// Whether a program that handles SIGTERM has only so much time.
    is_strict: bool,
    record: Option<Arc<Record>>,
    learner: Option<Arc<Learner>>,
    kernel: Arc<OnceLock<Arc<Kernel>>>,
}

struct Record {
    /// Emptied by the first who writes.
    file: Mutex<Option<File>>,
    began: Instant,
    denials: Arc<Denials>,
    peaks: Option<Peaks>,
    kernel: Arc<OnceLock<Arc<Kernel>>>,
}

impl End {
    /// Of a run that begins now.
    pub fn new(
        timeout: Option<Duration>,
        result: Option<File>,
        denials: &Arc<Denials>,
        (learner, peaks): (Option<Learner>, Option<Peaks>),
    ) -> End {
        let kernel = Arc::<OnceLock<_>>::default();
        let record = |file: File| {
            // Who writes into it at the end may be a thread with a table of its own.
            lind_kernel::fd::keep_also(file.as_fd());
            Arc::new(Record {
                file: Mutex::new(Some(file)),
                began: Instant::now(),
                denials: Arc::clone(denials),
                peaks,
                kernel: Arc::clone(&kernel),
            })
        };
        End {
            timeout,
            over: Arc::default(),
            is_strict: true,
            record: result.map(record),
            learner: learner.map(Arc::new),
            kernel,
        }
    }

    /// Starts the watch, behind the walls and before the first program runs.
    ///
    /// # Errors
    /// When there is no room for a thread.
    pub fn watch(&self, kernel: &Arc<Kernel>) -> Result<()> {
        let _ = self.kernel.set(Arc::clone(kernel));
        let Some(timeout) = self.timeout else { return Ok(()) };
        kernel.ends_in_time();
        let (end, kernel) = (self.clone(), Arc::clone(kernel));
        let watch = std::thread::Builder::new().name("timeout".into()).stack_size(STACK);
        watch
            .spawn(move || end.wait(timeout, &kernel))
            .context("--timeout: cannot start a thread (check `ulimit -u`)")?;
        Ok(())
    }

    fn wait(&self, timeout: Duration, kernel: &Kernel) {
        // It has no part in the table of the cages' descriptors, which calls of theirs would pay for.
        lind_kernel::fd::keep_none();
        let clock = Clock::start();
        while let Some(left) = clock.left(timeout) {
            std::thread::sleep(left);
        }
        let compiled = clock.compiled();
        let besides = if compiled.is_zero() {
            String::new()
        } else {
            format!(" (not counting {:.1} s of compiling)", compiled.as_secs_f64())
        };
        stdio::say_line(&format!("--timeout: all programs were killed after {} s{besides}", timeout.as_secs_f64()));
        self.end_all(kernel, TIMED_OUT)
    }

    /// Whether a program that handles, blocks or ignores SIGTERM has only so much time.
    pub fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// It was asked to end, and has not.
    pub fn overdue(&self, kernel: &Kernel) -> ! {
        self.end_all(kernel, TERMINATED)
    }

    /// Kills the programs, and has the grates before them end.
    fn end_all(&self, kernel: &Kernel, status: u8) -> ! {
        // The first who ends it says why.
        let first = self.over.compare_exchange(0, status, Ordering::SeqCst, Ordering::SeqCst);
        let status = first.map_or_else(|other| other, |_| status);
        let over = Instant::now() + GRACE;
        // With the last of its line the run ends by itself.
        while Instant::now() < over && signal::has_program(kernel) {
            signal::end_programs(kernel);
            std::thread::sleep(AGAIN);
        }
        self.leave(status)
    }

    /// The run has ended. Does not return if it was ended.
    pub fn ended(&self, status: Status) {
        match self.over.load(Ordering::SeqCst) {
            0 => self.write(Some(status)),
            over => self.leave(over),
        }
    }

    fn leave(&self, over: u8) -> ! {
        self.write((over != TIMED_OUT).then_some(Status::Signaled { signal: TERM }));
        // All cages live in this process.
        std::process::exit(i32::from(over));
    }

    fn write(&self, status: Option<Status>) {
        if let Some(line) = self.kernel.get().and_then(|kernel| kernel.set_ids.take()) {
            stdio::say_line(&line);
        }
        if let Some(Err(error)) = self.learner.as_ref().map(|learner| learner.write()) {
            stdio::say_line(&format!("{error:#}"));
        }
        if let Some(record) = &self.record {
            record.write(status);
        }
    }
}

impl Record {
    /// `status`: none, if the time was over.
    fn write(&self, status: Option<Status>) {
        let Some(mut file) = self.file.locked().take() else { return };
        let (code, signal) = match status.map(|status| self.of_command(status)) {
            None => (Some(i32::from(TIMED_OUT)), None),
            Some(Status::Exited(code)) => (Some(i32::from(code)), None),
            Some(Status::Signaled { signal }) => (None, Some(signal)),
        };
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let used = Duration::new(used.tv_sec.try_into().unwrap_or(0), used.tv_nsec.try_into().unwrap_or(0));
        let text = json!({
            "status": code,
            "signal": signal,
            "timed_out": status.is_none(),
            "limit": self.denials.ended_by().or_else(|| status.is_none().then(|| "timeout".to_owned())),
            "denials": self.denials.count(),
            "wall": self.began.elapsed().as_secs_f64(),
            "cpu": used.as_secs_f64(),
            "peaks": self.peaks.as_ref().map(Peaks::read),
            "cages": self.kernel.get().map(|kernel| kernel.cages_made()),
        });
        if let Err(error) = file.write_all(format!("{text}\n").as_bytes()) {
            stdio::say_line(&format!("--result: cannot write: {error}"));
        }
    }

    /// A grate ends as a shell does whose command was ended by a signal; the record names the signal.
    fn of_command(&self, status: Status) -> Status {
        let command = self.kernel.get().and_then(|kernel| kernel.command_end());
        command.filter(|command| command.shell_code() == status.shell_code()).unwrap_or(status)
    }
}
