//! `session exec`: lets a session run a command on our standard files, forwards the signals that we
//! get, and exits as the command does. It does nothing before it connects, and nothing expensive at
//! all.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use lind_engine::signal::outside::{self, Outside};
use lind_engine::signal::{host_signals, process_signals};
use lind_kernel::cage::signal::Origin;
use lind_kernel::stdio;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Map, Value, json};

use super::place::Place;
use super::screen::Screen;
use super::wire::{self, Incoming, Message, Outgoing, VERSION};
use crate::cli::session::Exec;
use crate::config;
use crate::failure::FAILED;

/// Runs the command, and returns its exit status as a shell would report it.
pub fn exec(exec: &Exec) -> u8 {
    process_signals::errors_are_no_signals();
    run(exec).unwrap_or_else(|error| {
        stdio::say_line(&format!("{error:#}"));
        FAILED
    })
}

/// The end of a command.
pub enum Outcome {
    /// It has exited with this status, or could not be run.
    Status(u8),
    /// This signal has ended it.
    Signal(u8),
}

fn run(exec: &Exec) -> Result<u8> {
    match follow(exec, connect(&exec.name)?)? {
        Some(Outcome::Status(status)) => Ok(status),
        Some(Outcome::Signal(signal)) => Ok(128_u8.saturating_add(signal)),
        None => Err(anyhow!("session {} is not ready, or is ending", exec.name)),
    }
}

/// Runs the command if the session is there. None if it is not, or ends before the command begins.
///
/// # Errors
/// When the session ends while the command runs, or the host's error.
pub fn try_run(place: &Place, exec: &Exec) -> Result<Option<Outcome>> {
    match place.connect(&exec.name)? {
        Some(socket) => follow(exec, ours(socket, &exec.name)?),
        None => Ok(None),
    }
}

/// Runs the command in the session behind a socket. None if the session takes no command.
fn follow(exec: &Exec, socket: UnixStream) -> Result<Option<Outcome>> {
    follow_request((&exec.name, request(exec)?), socket, None)
}

/// The receiver of the news that a process of a container runs, or why it does not, with the exit
/// status.
type Hears<'a> = &'a mut dyn FnMut(Result<(), (&str, u8)>);

/// Runs a process in a container. It ends as on SIGKILL if the container ends before.
///
/// # Errors
/// The host's error.
pub fn follow_process(
    request: Value,
    socket: UnixStream,
    mut hears: impl FnMut(Result<(), (&str, u8)>),
) -> Result<Outcome> {
    let outcome = follow_request(("", request), socket, Some(&mut hears))?;
    outcome.ok_or_else(|| anyhow!("container not running"))
}

fn follow_request<'a>(
    (name, mut request): (&'a str, Value),
    socket: UnixStream,
    hears: Option<Hears<'a>>,
) -> Result<Option<Outcome>> {
    let signals = Outside::hold()?;
    let (screen, files) = Screen::find();
    request["events"] = true.into();
    if let Some(screen) = &screen {
        request["terminal"] = screen.wanted();
    }
    match wire::send(socket.as_fd(), &request, &files) {
        Err(error) if is_gone(&error) => return Ok(None),
        sent => sent?,
    }
    let (incoming, outgoing) = (Incoming::default(), Outgoing::default());
    let mut client = Client {
        name,
        socket,
        signals,
        screen,
        incoming,
        outgoing,
        gone: false,
        started: false,
        refused: false,
        signal: None,
        due: None,
        hears,
    };
    loop {
        if let Some(status) = client.turn()? {
            return Ok((!client.refused).then(|| client.signal.map_or(Outcome::Status(status), Outcome::Signal)));
        }
    }
}

/// Whether the other side of a socket has closed it.
fn is_gone(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// Connects to a session of this user.
///
/// # Errors
/// When the session does not exist, or is another user's.
pub fn connect(name: &str) -> Result<UnixStream> {
    let missing =
        || anyhow!("no session {name}: start it with `lind-boot session start {name}`, or see `lind-boot session ls`");
    ours(Place::of_user()?.connect(name)?.ok_or_else(missing)?, name)
}

/// Checks that a session is this user's.
fn ours(socket: UnixStream, name: &str) -> Result<UnixStream> {
    let peer = rustix::net::sockopt::socket_peercred(&socket)?;
    // Another user's session would get our files and all that is typed.
    anyhow::ensure!(peer.uid == rustix::process::geteuid(), "session {name} is another user's");
    Ok(socket)
}

/// The request to run a command.
///
/// # Errors
/// A mistake in a variable.
pub fn request(exec: &Exec) -> Result<Value> {
    let mut request = Map::new();
    let words = |words: &mut dyn Iterator<Item = &[u8]>| words.map(wire::word).collect::<Value>();
    request.insert("lind".into(), VERSION.into());
    request.insert("do".into(), "exec".into());
    request.insert("argv".into(), words(&mut exec.command.iter().map(|word| word.as_bytes())));
    let mut env = vec!["TERM".into()];
    env.extend(exec.env.iter().cloned());
    let env = config::environment(&env)?;
    request.insert("env".into(), words(&mut env.iter().map(|word| word.as_bytes())));
    if let Some(workdir) = &exec.workdir {
        request.insert("workdir".into(), wire::word(workdir.as_os_str().as_bytes()));
    } else if let Ok(here) = std::env::current_dir() {
        request.insert("here".into(), wire::word(here.as_os_str().as_bytes()));
    }
    if let Some(timeout) = exec.timeout {
        request.insert("timeout".into(), timeout.as_secs_f64().into());
    }
    let limits = exec.amounts.set().into_iter();
    let limits: Map<String, Value> =
        limits.map(|(limit, amount)| (limit.to_owned(), amount.to_string().into())).collect();
    if !limits.is_empty() {
        request.insert("limits".into(), limits.into());
    }
    Ok(request.into())
}

/// How often a client in the background, or beside another, checks whether it may read the keys
/// now: no event reports that.
const LOOK: Duration = Duration::from_millis(250);

const KILL: u8 = 9;
const TERM: u8 = 15;
const CONT: u8 = 18;
const WINCH: u8 = 28;

/// A client that waits for the end of its command.
struct Client<'a> {
    /// The session's name.
    name: &'a str,
    socket: UnixStream,
    signals: Outside,
    screen: Option<Screen>,
    incoming: Incoming,
    outgoing: Outgoing,
    /// Whether the session has closed the connection.
    gone: bool,
    /// Whether the command has started.
    started: bool,
    /// Whether the session takes no command now: it is starting, or ending.
    refused: bool,
    /// The signal that has ended the command.
    signal: Option<u8>,
    /// When a command that was asked to end is killed.
    due: Option<Instant>,
    /// The receiver of news about a process of a container.
    hears: Option<Hears<'a>>,
}

impl Client<'_> {
    /// Waits for an event, and handles it. Returns the exit status at the end.
    fn turn(&mut self) -> Result<Option<u8>> {
        let (looks, has_typed) = self.screen.as_mut().map_or((false, false), |screen| {
            screen.take_keys();
            (screen.may_take_keys(), screen.has_typed())
        });
        if has_typed {
            self.pass_on_keys();
        }
        let left = self.due.map(|due| due.saturating_duration_since(Instant::now()));
        if let Some(screen) = self.screen.as_mut().filter(|screen| screen.is_full()) {
            if left.is_none() {
                return self.wait_for_room();
            }
            // A command that is to be killed soon does not wait until somebody reads the terminal.
            screen.discard();
            return self.act_on_heard();
        }
        let room = if self.outgoing.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let mut files =
            vec![PollFd::new(&self.socket, PollFlags::IN | room), PollFd::new(&self.signals, PollFlags::IN)];
        let keys = self.screen.as_ref().and_then(Screen::keys).filter(|_| room.is_empty());
        files.extend(keys.iter().map(|keys| PollFd::new(keys, PollFlags::IN)));
        if left == Some(Duration::ZERO) {
            // When we exit, the session kills the command.
            if self.screen.as_ref().is_none_or(Screen::has_room) {
                self.screen.iter_mut().for_each(Screen::show_return);
                stdio::say_line(&format!(
                    "the command did not end within {} s of SIGTERM and is killed",
                    host_signals::GRACE.as_secs()
                ));
            }
            return Ok(Some(128 + TERM));
        }
        let most = looks.then_some(LOOK).into_iter().chain(left).min().map(Timespec::try_from).transpose()?;
        match poll(&mut files, most.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(None),
            polled => polled?,
        };
        let ready: Vec<_> = files.iter().map(PollFd::revents).collect();
        let is_ready = |at: usize| ready.get(at).is_some_and(|ready| !ready.is_empty());
        if is_ready(1) {
            self.pass_on_signals();
        }
        if is_ready(2) {
            self.pass_on_keys();
        }
        // If the session has closed the socket, there is nothing more to read, or the end can be
        // read now.
        let _ = self.outgoing.flush(self.socket.as_fd());
        if ready.first().is_some_and(|ready| !(*ready - PollFlags::OUT).is_empty()) { self.hear() } else { Ok(None) }
    }

    /// Waits until the terminal has room for what the command has written. Meanwhile nothing more
    /// is taken from the session, so that the command waits too.
    fn wait_for_room(&mut self) -> Result<Option<u8>> {
        let Some(screen) = &mut self.screen else { return Ok(None) };
        let place = screen.place();
        let mut files = vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&place, PollFlags::OUT)];
        let keys = screen.keys().filter(|_| self.outgoing.is_empty());
        files.extend(keys.iter().map(|keys| PollFd::new(keys, PollFlags::IN)));
        match poll(&mut files, None) {
            Err(rustix::io::Errno::INTR) => return Ok(None),
            polled => polled?,
        };
        let ready: Vec<_> = files.iter().map(|file| !file.revents().is_empty()).collect();
        if ready[1] {
            screen.flush()?;
        }
        if ready[0] {
            self.pass_on_signals();
        }
        if ready.get(2) == Some(&true) {
            self.pass_on_keys();
        }
        let _ = self.outgoing.flush(self.socket.as_fd());
        self.act_on_heard()
    }

    fn tell(&mut self, message: &Value) {
        // A command that has just ended needs no message.
        let _ = self.outgoing.send(self.socket.as_fd(), message);
    }

    fn pass_on_signals(&mut self) {
        while let Some((number, origin)) = self.signals.next() {
            if number == TERM && self.hears.is_none() {
                self.due.get_or_insert_with(|| Instant::now() + host_signals::GRACE);
            }
            if let Some(screen) = self.screen.as_mut().filter(|_| [WINCH, CONT].contains(&number)) {
                screen.take_keys();
                let size = screen.size();
                self.tell(&json!({"resize": size}));
            }
            if number != WINCH || self.screen.is_none() {
                self.tell(&json!({"signal": number, "terminal": origin == Origin::Terminal}));
            }
        }
    }

    fn pass_on_keys(&mut self) {
        let Some(screen) = &mut self.screen else { return };
        let Some(typed) = screen.typed() else { return };
        if typed.is_empty() {
            return screen.forget_keys();
        }
        self.tell(&json!({"input": wire::word(&typed)}));
    }

    /// Reads messages of the session.
    fn hear(&mut self) -> Result<Option<u8>> {
        self.gone = match self.incoming.receive(self.socket.as_fd()) {
            Err(error) if is_gone(&error) => true,
            there => !there?,
        };
        self.act_on_heard()
    }

    /// Acts on what has come, as long as the terminal has room.
    fn act_on_heard(&mut self) -> Result<Option<u8>> {
        loop {
            if self.screen.as_ref().is_some_and(Screen::is_full) {
                return Ok(None);
            }
            let Some(Message { value: message, .. }) = self.incoming.next()? else { break };
            if let Some(status) = self.heard(&message)? {
                return Ok(Some(status));
            }
        }
        match (self.gone, self.started) {
            (false, _) => Ok(None),
            (true, true) if self.hears.is_some() => {
                self.signal = Some(KILL);
                Ok(Some(128 + KILL))
            }
            (true, true) => Err(anyhow!("session {} has ended, and the command with it", self.name)),
            (true, false) => {
                self.refused = true;
                Ok(Some(FAILED))
            }
        }
    }

    /// Handles a message. Returns the exit status if it has one.
    fn heard(&mut self, message: &Value) -> Result<Option<u8>> {
        if let Some((screen, bytes)) = self.screen.as_mut().zip(wire::bytes(&message["output"])) {
            screen.show(&bytes)?;
            return Ok(None);
        }
        if message.get("continued").is_some() {
            return Ok(None);
        }
        if let Some(signal) = number(&message["key"]) {
            if let Some(screen) = &mut self.screen {
                screen.signal_group(signal);
            }
            return Ok(None);
        }
        let starts = message.get("started").is_some();
        self.started |= starts;
        if starts || message.get("reads").is_some() {
            // A session of an earlier version does not say when the keys are read.
            let reads = message["reads"].as_bool().unwrap_or(true);
            self.screen.iter_mut().for_each(|screen| screen.wanted |= reads);
            return Ok(None);
        }
        if message.get("loaded").is_some() {
            self.hears.iter_mut().for_each(|hears| hears(Ok(())));
            return Ok(None);
        }
        // The terminal is left first: something may be printed, or another program may use it next.
        if let Some(screen) = &mut self.screen {
            screen.show_return();
            screen.leave_keys();
        }
        if let Some(signal) = number(&message["stopped"]) {
            // The shell that started us sees this.
            outside::stop_by(signal);
        }
        if message["errno"].as_str().is_some_and(|errno| NOT_NOW.contains(&errno)) {
            self.refused = true;
            return Ok(Some(FAILED));
        }
        if let (Some(hears), Some(why)) = (&mut self.hears, message["error"].as_str()) {
            let status = number(&message["status"]).unwrap_or(FAILED);
            hears(Err((why, status)));
            return Ok(Some(status));
        }
        let ended = &message["ended"];
        if ended["timed_out"].is_null() {
            self.signal = number(&ended["signal"]);
        }
        Ok(end(message))
    }
}

/// The errors of a session that takes no command yet, or none any more.
const NOT_NOW: [&str; 2] = ["EAGAIN", "ESHUTDOWN"];

fn number(value: &Value) -> Option<u8> {
    value.as_u64().and_then(|number| u8::try_from(number).ok())
}

/// The exit status in a message, if it has one.
pub fn end(message: &Value) -> Option<u8> {
    if let Some(why) = message["error"].as_str() {
        stdio::say_line(why);
        return Some(number(&message["status"]).unwrap_or(FAILED));
    }
    let ended = message.get("ended")?;
    if let Some(note) = message["note"].as_str() {
        stdio::say_line(note);
    }
    if let Some(seconds) = ended["timed_out"].as_f64() {
        stdio::say_line(&format!("--timeout: the command was killed after {seconds} s"));
        return Some(124);
    }
    number(&ended["status"]).or_else(|| Some(128_u8.saturating_add(number(&ended["signal"])?)))
}

/// Sends a request that a session answers at once.
///
/// # Errors
/// The error in its answer.
pub fn ask(socket: &UnixStream, request: &Value) -> Result<Value> {
    wire::send(socket.as_fd(), request, &[])?;
    let mut incoming = Incoming::default();
    loop {
        if let Some(Message { value: answer, .. }) = incoming.next()? {
            let why = answer["error"].as_str().map(str::to_owned);
            return why.map_or(Ok(answer), |why| Err(anyhow!(why)));
        }
        anyhow::ensure!(
            incoming.receive(socket.as_fd()).context("cannot read from the session")?,
            "the session has ended"
        );
    }
}
