//! `session start`, `ls`, `logs`, `signal` and `stop`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use lind_engine::signal::outside::Outside;
use lind_kernel::{stdio, text};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, kill_process};
use serde_json::{Value, json};

use super::client;
use super::parent::Parent;
use super::place::Place;
use super::wire::{self, VERSION};
use crate::cli::session::{Signal, Start};
use crate::failure::{self, Failure};

/// The line that a session prints when it is ready.
pub const READY: &str = "ready\n";

/// Starts a session, and waits until it takes commands.
///
/// # Errors
/// The reason why it does not start.
pub fn start(start: &Start) -> Result<(), Failure> {
    let place = Place::of_user()?;
    if place.connect(&start.name)?.is_some() {
        return Err(anyhow!("session {} is already running", start.name).into());
    }
    // Files that cannot be removed are not in the way.
    let _ = place.sweep();
    let signals = Outside::hold_ending().context("cannot receive signals")?;
    let mut log = open_log(&place, &start.name).context("cannot open the session's log")?;
    let parent = start.die_with_parent.map(Parent::find).transpose()?;
    let mut child = spawn(&log, parent.as_ref()).context("cannot start the session")?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        // A file of its own, because writes to the log move the offset of the other one.
        let shown = File::open(place.log(&start.name)?).context("cannot open the session's log")?;
        if let Err(failure) = await_news(&out, (&signals, shown), parent.as_ref()) {
            give_up(&mut child, &place, &start.name);
            return Err(failure);
        }
        // Only one line: other processes of the session may hold the pipe open.
        let _ = BufReader::new(out).read_line(&mut line);
    }
    if line == READY {
        return if start.json { describe(&start.name, &place, &child) } else { Ok(()) };
    }
    let status = child.wait().ok().and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
    let mut why = String::new();
    let _ = log.seek(SeekFrom::Start(0)).and_then(|_| log.read_to_string(&mut why));
    let why = why.trim_end();
    let why = why.strip_prefix("lind-boot: ").filter(|why| !why.contains('\n')).unwrap_or(why);
    Err(Failure {
        reason: anyhow!("{why}"),
        status: status.filter(|&status| status > 0).unwrap_or(crate::failure::FAILED),
    })
}

/// Opens the log of a session that starts. The session has it locked until it ends.
fn open_log(place: &Place, name: &str) -> Result<File> {
    let _lock = place.lock()?;
    let log = File::options().read(true).append(true).create(true).mode(0o600).open(place.log(name)?)?;
    // Two that start at once would both have it open; only one gets the socket.
    let _ = log.try_lock();
    log.set_len(0)?;
    Ok(log)
}

/// Prints where a session is that has started.
fn describe(name: &str, place: &Place, child: &Child) -> Result<(), Failure> {
    let [socket, log] = [place.socket(name)?, place.log(name)?].map(|path| wire::word(path.as_os_str().as_bytes()));
    let about = json!({"name": name, "pid": child.id(), "socket": socket, "log": log});
    failure::print(&text::json(&format!("{about}\n")))
}

/// How often the log is checked for progress while the session starts.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// Prints the lines about compiling. All else in the log is printed if the session does not start.
fn show_progress(log: &mut BufReader<File>) {
    let mut line = String::new();
    while log.read_line(&mut line).is_ok_and(|count| count > 0) {
        if let Some(what) = line.trim_end().strip_prefix("lind-boot: ").filter(|what| what.starts_with("compiling ")) {
            stdio::say_line(what);
        }
        line.clear();
    }
}

/// How long a session has to end that nobody waits for any more, in looks at it.
const PATIENCE: u32 = 500;

/// Ends a session that has not started yet, with its files.
fn give_up(child: &mut Child, place: &Place, name: &str) {
    if let Some(session) = Pid::from_raw(child.id().cast_signed()) {
        let _ = kill_process(session, rustix::process::Signal::TERM);
    }
    for _ in 0..PATIENCE {
        if !matches!(child.try_wait(), Ok(None)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // No command has run in it, so nothing is lost.
    let _ = child.kill();
    let _ = child.wait();
    let Ok(_lock) = place.lock() else { return };
    if matches!(place.connect(name), Ok(None)) {
        place.abandon(name);
        let _ = place.log(name).map(std::fs::remove_file);
    }
}

/// Waits until the session prints something or ends. It fails if a signal comes that ends this
/// process, since the session may still be compiling.
///
/// # Errors
/// The status of a program that the signal has ended.
fn await_news(out: &ChildStdout, (signals, log): (&Outside, File), parent: Option<&Parent>) -> Result<(), Failure> {
    let mut log = BufReader::new(log);
    loop {
        show_progress(&mut log);
        let mut files = vec![PollFd::new(out, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        files.extend(parent.map(|parent| PollFd::new(parent, PollFlags::IN)));
        if poll(&mut files, Some(&LOOK)).is_err() {
            continue;
        }
        if let Some((number, _)) = signals.next() {
            return Err(Failure {
                reason: anyhow!("the session was not started: interrupted by signal {number}"),
                status: 128 + number,
            });
        }
        let [news, _, parent @ ..] = &files[..] else { return Ok(()) };
        if parent.iter().any(|parent| !parent.revents().is_empty()) {
            return Err(anyhow!("the session was not started: the process of --die-with-parent has ended").into());
        }
        if !news.revents().is_empty() {
            return Ok(());
        }
    }
}

/// Starts this command line again, with `serve` for `start`, in a process that outlives this one.
fn spawn(log: &File, parent: Option<&Parent>) -> Result<Child> {
    let program = std::env::current_exe().context("cannot find the file of lind-boot itself (mount /proc)")?;
    let words = std::env::args_os().skip_while(|word| word != "start").skip(1);
    let mut command = Command::new(program);
    command.args(["session", "serve"]).args(words);
    let input = parent.map_or_else(|| Ok(Stdio::null()), Parent::hand_over)?;
    Ok(command.stdin(input).stdout(Stdio::piped()).stderr(log.try_clone()?).spawn()?)
}

/// Lists sessions. Sockets without a listener are removed.
///
/// # Errors
/// When the directory of sessions cannot be read.
pub fn list(as_json: bool) -> Result<(), Failure> {
    let place = Place::of_user()?;
    let _lock = place.lock()?;
    let mut sessions = Vec::new();
    for name in place.names()? {
        match place.connect(&name)? {
            Some(socket) => {
                let Ok(mut session) = client::ask(&socket, &json!({"lind": VERSION, "do": "list"})) else { continue };
                session["socket"] = wire::word(place.socket(&name)?.as_os_str().as_bytes());
                sessions.push(session);
            }
            None => place.forget(&name),
        }
    }
    if as_json {
        return failure::print(&text::json(&format!("{}\n", Value::Array(sessions))));
    }
    let mut shown = format!("{:<20} {:>8} {:>10}  COMMANDS\n", "SESSION", "PID", "SECONDS");
    for session in &sessions {
        let name = session["name"].as_str().unwrap_or_default();
        let commands = session["commands"].as_array().map_or(0, Vec::len);
        let seconds = session["seconds"].as_f64().unwrap_or_default();
        let _ = writeln!(shown, "{name:<20} {:>8} {seconds:>10.0}  {commands}", session["pid"]);
        for command in session["commands"].as_array().into_iter().flatten() {
            let line = text::shown(command["line"].as_str().unwrap_or_default());
            let seconds = command["seconds"].as_f64().unwrap_or_default();
            let _ = writeln!(shown, "  {:<18} {:>8} {seconds:>10.0}  {line}", command["id"], command["pid"]);
        }
    }
    failure::print(&shown)
}

/// Prints a session's log.
///
/// # Errors
/// When it does not exist.
pub fn logs(name: &str) -> Result<(), Failure> {
    let path = Place::of_user()?.log(name)?;
    let why = || format!("no log of session {name}: there was no such session, or it has ended and said nothing");
    let text = std::fs::read(&path).with_context(why)?;
    failure::print(&String::from_utf8_lossy(&text))
}

/// Sends a signal.
///
/// # Errors
/// When the session or the command does not exist.
pub fn send_signal(signal: &Signal) -> Result<(), Failure> {
    let request = json!({"lind": VERSION, "do": "signal", "signal": signal.signal, "id": signal.id});
    client::ask(&client::connect(&signal.name)?, &request)?;
    Ok(())
}

/// Ends a session, and waits for that.
///
/// # Errors
/// When it does not exist.
pub fn stop(name: &str) -> Result<(), Failure> {
    let mut socket = client::connect(name)?;
    client::ask(&socket, &json!({"lind": VERSION, "do": "stop"}))?;
    await_end(&mut socket);
    let place = Place::of_user()?;
    let _lock = place.lock()?;
    if place.connect(name)?.is_none() {
        place.forget(name);
    }
    Ok(())
}

fn await_end(socket: &mut UnixStream) {
    let mut rest = Vec::new();
    // Errors mean the end, too.
    let _ = socket.read_to_end(&mut rest);
}
