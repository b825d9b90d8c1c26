//! `session exec`: lets a session run a command on our standard files, forwards the signals that we
//! get, and exits as the command does. It does nothing before it connects, and nothing expensive at
//! all.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use lind_engine::signal::host_signals;
use lind_engine::signal::outside::Outside;
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
    host_signals::errors_are_no_signals();
    run(exec).unwrap_or_else(|error| {
        stdio::say_line(&format!("{error:#}"));
        FAILED
    })
}

fn run(exec: &Exec) -> Result<u8> {
    let socket = connect(&exec.name)?;
    let signals = Outside::hold()?;
    let (screen, files) = Screen::find();
    let mut request = request(exec)?;
    if let Some(screen) = &screen {
        request["terminal"] = screen.wanted();
    }
    wire::send(socket.as_fd(), &request, &files)?;
    let (incoming, outgoing) = (Incoming::default(), Outgoing::default());
    let mut client = Client { name: &exec.name, socket, signals, screen, incoming, outgoing, gone: false, due: None };
    loop {
        if let Some(status) = client.turn()? {
            return Ok(status);
        }
    }
}

/// Connects to a session of this user.
///
/// # Errors
/// When the session does not exist, or is another user's.
pub fn connect(name: &str) -> Result<UnixStream> {
    let missing =
        || anyhow!("no session {name}: start it with `lind-boot session start {name}`, or see `lind-boot session ls`");
    let socket = Place::of_user()?.connect(name)?.ok_or_else(missing)?;
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
    /// When a command that was asked to end is killed.
    due: Option<Instant>,
}

impl Client<'_> {
    /// Waits for an event, and handles it. Returns the exit status at the end.
    fn turn(&mut self) -> Result<Option<u8>> {
        let looks = self.screen.as_mut().is_some_and(|screen| {
            screen.take_keys();
            screen.may_take_keys()
        });
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
            if number == TERM {
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
        let typed = screen.typed();
        if typed.is_empty() {
            return screen.forget_keys();
        }
        self.tell(&json!({"input": wire::word(&typed)}));
    }

    /// Reads messages of the session.
    fn hear(&mut self) -> Result<Option<u8>> {
        self.gone = match self.incoming.receive(self.socket.as_fd()) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => true,
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
        ensure!(!self.gone, "session {} has ended, and the command with it", self.name);
        Ok(None)
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
        // The terminal is left first: something may be printed, or another program may use it next.
        if let Some(screen) = &mut self.screen {
            screen.leave_keys();
        }
        if !message["stopped"].is_null() {
            // The shell that started us sees this.
            host_signals::stop_process();
        }
        Ok(end(message))
    }
}

/// The exit status in a message, if it has one.
pub fn end(message: &Value) -> Option<u8> {
    let number = |value: &Value| value.as_u64().and_then(|number| u8::try_from(number).ok());
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
