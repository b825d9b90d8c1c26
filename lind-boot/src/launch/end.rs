//! The end of a run: because its program has ended, its time is over, or it did not end when asked
//! to; and the records that are written then.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lind_engine::code::progress;
use lind_kernel::cage::{Status, signal};
use lind_kernel::lock::Locked;
use lind_kernel::{Kernel, stdio};
use serde_json::{Value, json};

use super::denials::Denials;

/// The exit status of a run whose time is over, as in timeout(1).
const TIMED_OUT: u8 = 124;

/// The signal that asks a run to end, and the exit status of such a run.
const TERM: u8 = 15;
const TERMINATED: u8 = 128 + TERM;

/// How long grates may take to save their state once their programs are killed.
const GRACE: Duration = Duration::from_secs(5);

/// The pause before programs are killed again: one may have been about to start another.
const AGAIN: Duration = Duration::from_millis(5);

/// The stack of the watching thread, in bytes: it sleeps, and prints a line.
const STACK: usize = 256 << 10;

/// The longest compiling time that does not count as a command's time: a program may write other
/// programs without end, and begin with compiling them.
const COMPILING: Duration = Duration::from_secs(600);

/// The time of a command, without the compiling at its start. The time of a first run could
/// otherwise be over before the program is compiled, with no code kept for the next run.
#[derive(Clone, Copy)]
pub struct Clock {
    began: Instant,
    compiled: Duration,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Clock {
        Clock { began: Instant::now(), compiled: progress::spent() }
    }

    /// The time spent compiling, as far as it does not count.
    pub fn compiled(&self) -> Duration {
        progress::spent().saturating_sub(self.compiled).min(COMPILING)
    }

    /// The rest of `timeout`. None when it is over.
    pub fn left(&self, timeout: Duration) -> Option<Duration> {
        let used = self.began.elapsed().saturating_sub(self.compiled());
        timeout.checked_sub(used).filter(|left| !left.is_zero())
    }

    /// All time since the start, with compiling.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// The actions of others at the end of a run.
#[derive(Default)]
pub struct AtEnd {
    /// Writes what was learned.
    pub learn: Option<Box<dyn Fn() -> Result<()> + Send + Sync>>,
    /// The largest amounts that were used, for the record.
    pub peaks: Option<Box<dyn Fn() -> Value + Send + Sync>>,
}

/// The end of a run: its time limit, and the files that are written at the end.
#[derive(Clone, Default)]
pub struct End {
    timeout: Option<Duration>,
    /// The exit status of a run that was ended; 0 before that.
    over: Arc<AtomicU8>,
    /// Whether a program that handles SIGTERM is killed if it has not ended after a while.
    is_strict: bool,
    record: Option<Arc<Record>>,
    learn: Option<Arc<dyn Fn() -> Result<()> + Send + Sync>>,
    kernel: Arc<OnceLock<Arc<Kernel>>>,
    /// Called after the command has ended, before the end is recorded.
    after: Option<Arc<dyn Fn() + Send + Sync>>,
    /// The end of a container's process, which counts instead of the first cage's.
    process: Option<Arc<OnceLock<Status>>>,
}

struct Record {
    /// The file; taken by the first thread that writes.
    file: Mutex<Option<File>>,
    began: Instant,
    denials: Arc<Denials>,
    peaks: Option<Box<dyn Fn() -> Value + Send + Sync>>,
    kernel: Arc<OnceLock<Arc<Kernel>>>,
}

impl End {
    /// The end of a run that begins now.
    pub fn new(
        timeout: Option<Duration>,
        result: Option<File>,
        denials: &Arc<Denials>,
        AtEnd { learn, peaks }: AtEnd,
    ) -> End {
        let kernel = Arc::<OnceLock<_>>::default();
        let record = |file: File| {
            // The thread that writes at the end may have a descriptor table of its own.
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
            learn: learn.map(Arc::from),
            kernel,
            after: None,
            process: None,
        }
    }

    /// The same, which calls `after` when the command has ended without being asked to.
    pub fn after(self, after: impl Fn() + Send + Sync + 'static) -> End {
        End { after: Some(Arc::new(after)), ..self }
    }

    /// The same for a container, which ends as its process does, and never because the process
    /// handles a signal.
    pub fn with(self, process: Arc<OnceLock<Status>>) -> End {
        End { process: Some(process), is_strict: false, ..self }
    }

    /// Starts the thread that watches the time, behind the walls and before the first program runs.
    ///
    /// # Errors
    /// When the thread cannot be started.
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
        // This thread leaves the cages' descriptor table: their calls would pay for sharing it.
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

    /// Whether a program that handles, blocks or ignores SIGTERM is killed if it has not ended
    /// after a while.
    pub fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Ends a run that was asked to end, and has not.
    pub fn overdue(&self, kernel: &Kernel) -> ! {
        self.end_all(kernel, TERMINATED)
    }

    /// Kills the programs, lets the grates before them end, and exits.
    fn end_all(&self, kernel: &Kernel, status: u8) -> ! {
        // The first thread that ends the run decides its status.
        let first = self.over.compare_exchange(0, status, Ordering::SeqCst, Ordering::SeqCst);
        let status = first.map_or_else(|other| other, |_| status);
        let over = Instant::now() + GRACE;
        // When the last grate has ended, the run ends without this thread.
        while Instant::now() < over && signal::has_program(kernel) {
            signal::end_programs(kernel);
            std::thread::sleep(AGAIN);
        }
        self.leave(status)
    }

    /// Records that the run has ended. Does not return if it was ended by this.
    pub fn ended(&self, status: Status) {
        match self.over.load(Ordering::SeqCst) {
            0 => {
                self.after.iter().for_each(|after| after());
                let process = self.process.as_ref().and_then(|process| process.get().copied());
                self.write(Some(process.unwrap_or(status)));
                if let Some(process) = process {
                    std::process::exit(i32::from(process.shell_code()));
                }
            }
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
        if let Some(Err(error)) = self.learn.as_ref().map(|learn| learn()) {
            stdio::say_line(&format!("{error:#}"));
        }
        if let Some(record) = &self.record {
            record.write(status);
        }
    }
}

impl Record {
    /// Writes the record. `status` is None if the time was over.
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
            "peaks": self.peaks.as_ref().map(|read| read()),
            "cages": self.kernel.get().map(|kernel| kernel.cages_made()),
        });
        if let Err(error) = file.write_all(format!("{text}\n").as_bytes()) {
            stdio::say_line(&format!("--result: cannot write: {error}"));
        }
    }

    /// The status of the command: a grate exits as a shell does when a signal killed its command,
    /// and the record names the signal.
    fn of_command(&self, status: Status) -> Status {
        let command = self.kernel.get().and_then(|kernel| kernel.command_end());
        command.filter(|command| command.shell_code() == status.shell_code()).unwrap_or(status)
    }
}
