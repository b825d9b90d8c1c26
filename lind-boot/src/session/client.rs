//! `session exec`: has a session run a command on our files, passes on the signals that we get, and ends as the command does.
//! It does nothing before it connects, and nothing heavy at all.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result, anyhow};
use lind_engine::signal::host_signals;
use lind_engine::signal::outside::Outside;
use lind_kernel::cage::signal::Origin;
use lind_kernel::stdio;
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Map, Value, json};

use super::Exec;
use super::place::Place;
use super::wire::{self, Incoming, VERSION};
use crate::FAILED;
use crate::config;

/// Runs the command, and returns its exit status as a shell would report it.
pub fn exec(exec: &Exec) -> u8 {
    host_signals::errors_are_no_signals();
    run(exec).unwrap_or_else(|error| {
        stdio::say(&format!("lind-boot: {error:#}\n"));
        FAILED
    })
}

fn run(exec: &Exec) -> Result<u8> {
    let socket = connect(&exec.name)?;
    let signals = Outside::hold()?;
    let files = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    wire::send(socket.as_fd(), &request(exec)?, &files)?;
    attend(&socket, &signals, &exec.name)
}

/// Connects to a session of ours.
///
/// # Errors
/// When there is none of that name, or it is not this user's.
pub fn connect(name: &str) -> Result<UnixStream> {
    let missing =
        || anyhow!("no session {name}: start it with `lind-boot session start {name}`, or see `lind-boot session ls`");
    let socket = Place::of_user()?.connect(name)?.ok_or_else(missing)?;
    let peer = rustix::net::sockopt::socket_peercred(&socket)?;
    // One that somebody else has put there would get our files and what is typed.
    anyhow::ensure!(peer.uid == rustix::process::geteuid(), "session {name} is another user's");
    Ok(socket)
}

fn request(exec: &Exec) -> Result<Value> {
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
    let named = ["memory", "cpu", "cages", "files", "disk"].into_iter();
    let limits: Map<String, Value> =
        named.filter_map(|limit| Some((limit.to_owned(), exec.amounts.named(limit)?.into()))).collect();
    if !limits.is_empty() {
        request.insert("limits".into(), limits.into());
    }
    Ok(request.into())
}

/// Waits for the end of the command, and passes on signals.
fn attend(socket: &UnixStream, signals: &Outside, name: &str) -> Result<u8> {
    let mut incoming = Incoming::default();
    loop {
        let mut files = [PollFd::new(socket, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        match poll(&mut files, None) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        let [from_socket, from_signals] = files.map(|file| !file.revents().is_empty());
        while from_signals && let Some((number, origin)) = signals.next() {
            let message = json!({"signal": number, "terminal": origin == Origin::Terminal});
            // One that has just ended needs no signal.
            let _ = wire::send(socket.as_fd(), &message, &[]);
        }
        if !from_socket {
            continue;
        }
        let there = match incoming.receive(socket.as_fd()) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            there => there?,
        };
        while let Some((message, _)) = incoming.next()? {
            if let Some(status) = heard(&message) {
                return Ok(status);
            }
        }
        if !there {
            return Err(anyhow!("session {name} has ended, and the command with it"));
        }
    }
}

/// The exit status, if that is what has been said.
fn heard(message: &Value) -> Option<u8> {
    let number = |value: &Value| value.as_u64().and_then(|number| u8::try_from(number).ok());
    if let Some(why) = message["error"].as_str() {
        stdio::say(&format!("lind-boot: {why}\n"));
        return Some(number(&message["status"]).unwrap_or(FAILED));
    }
    if !message["stopped"].is_null() {
        // For the shell that started us to see.
        host_signals::stop_process();
    }
    let ended = message.get("ended")?;
    if let Some(seconds) = ended["timed_out"].as_f64() {
        stdio::say(&format!("lind-boot: --timeout {seconds} s: the command was ended\n"));
        return Some(124);
    }
    number(&ended["status"]).or_else(|| Some(128_u8.saturating_add(number(&ended["signal"])?)))
}

/// Asks a session for something that it answers at once.
///
/// # Errors
/// What it says.
pub fn ask(socket: &UnixStream, request: &Value) -> Result<Value> {
    wire::send(socket.as_fd(), request, &[])?;
    let mut incoming = Incoming::default();
    loop {
        if let Some((answer, _)) = incoming.next()? {
            let why = answer["error"].as_str().map(str::to_owned);
            return why.map_or(Ok(answer), |why| Err(anyhow!(why)));
        }
        anyhow::ensure!(incoming.receive(socket.as_fd()).context("the session")?, "the session has ended");
    }
}
