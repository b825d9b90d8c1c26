//! Containers: `container serve` is the runner of one, and `container exec` runs a process in it.
//!
//! A container is a session whose first command is the container's process. That command waits
//! until the session is told to `begin`, and the runner ends as it does. The OCI runtime sends the
//! description over standard input, a socket: first the container with the standard files of its
//! process, then the socket on which the session listens. The runner answers when all is mounted,
//! waits for a byte, and says so when it is ready.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, anyhow, ensure};
use lind_engine::signal::process_signals;
use lind_kernel::stdio;
use rustix::fs::{CWD, Mode, OFlags};
use serde_json::{Value, json};

use super::client::{self, Outcome};
use super::orders::Orders;
use super::request::Line;
use super::server::{About, Held, Meter, Server};
use super::wire::{FILES, Incoming, Message, VERSION};
use crate::cli::container::{Command, Exec};
use crate::failure::{FAILED, Failure};
use crate::launch::Attendant;
use crate::plan::container::{Container, Process};
use crate::sandbox;

/// The line that a runner sends when all is mounted.
const MOUNTED: &str = "mounted\n";

/// Runs a command on containers, and returns the exit status.
///
/// # Errors
/// When the container cannot be started.
pub fn run(command: &Command) -> Result<u8, Failure> {
    match command {
        Command::Serve(serve) => become_runner(serve.preserved).map(|()| 0),
        Command::Exec(line) => Ok(exec(line)),
    }
}

/// Becomes the runner of a container.
fn become_runner(preserved: u32) -> Result<(), Failure> {
    lind_kernel::fd::ensure_preserved(preserved).map_err(|why| anyhow!("--preserve-fds {preserved}: {why}"))?;
    lind_kernel::fd::close_inherited(preserved, None);
    // Fails for the leader of a group, which has a session of its own already.
    let _ = rustix::process::setsid();
    let channel = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).context("cannot set up standard input")?;
    let channel = UnixStream::from(channel);
    let (container, files, listener) = described(&channel)?;
    if container.terminal {
        rustix::process::ioctl_tiocsctty(&files[0]).context("cannot take the terminal")?;
    }
    let line = Line::of_process(&container.process);
    let ended = Arc::<OnceLock<_>>::default();
    let held = Held::new(line, files.map(Some), Arc::clone(&ended));
    let name = container.name.clone();
    let hooked = channel.try_clone().context("cannot copy the connection")?;
    let mounted = Box::new(move || wait_for_hooks(&hooked));
    sandbox::run_container(&container, preserved, (ended, mounted), |surroundings, denials| {
        let (ours, of_first) = UnixStream::pair()?;
        rustix::stdio::dup2_stdin(&of_first)?;
        let orders = Orders::new(ours)?;
        let ready = Some(File::from(OwnedFd::from(channel)));
        let meter = Meter::new(None);
        let about = About {
            name,
            idle: None,
            ask: None,
            surroundings,
            denials,
            meter,
            lent: Vec::new(),
            ready,
            parent: None,
            held: Some(held),
        };
        let attend: Attendant = Box::new(move |kernel| Server::new(kernel, listener, orders, about).start());
        Ok(attend)
    })
    .map(|never| match never {})
}

/// Waits until the runtime has run the hooks that see the mounts.
fn wait_for_hooks(mut channel: &UnixStream) -> Result<()> {
    channel.write_all(MOUNTED.as_bytes())?;
    channel.read_exact(&mut [0]).context("the runtime has ended before the container was created")
}

/// Receives the container, the standard files of its process, and the socket to listen on.
fn described(channel: &UnixStream) -> Result<(Container, [OwnedFd; FILES], UnixListener)> {
    let mut incoming = Incoming::default();
    let Message { value, files, .. } = next(channel, &mut incoming)?;
    let container: Container = serde_path_to_error::deserialize(value).context("the description of the container")?;
    let files = files.try_into().map_err(|_| anyhow!("the process of the container has no standard files"))?;
    let listener = next(channel, &mut incoming)?.files.pop().context("the container has no socket")?;
    let listener = UnixListener::from(listener);
    listener.set_nonblocking(true)?;
    Ok((container, files, listener))
}

fn next(channel: &UnixStream, incoming: &mut Incoming) -> Result<Message> {
    loop {
        if let Some(message) = incoming.next()? {
            return Ok(message);
        }
        // The runtime has ended before all was said, so nothing shall run.
        ensure!(incoming.receive(channel.as_fd())?, "the runtime has ended before it described the container");
    }
}

/// Runs a process in a container, on our standard files, and returns its exit status. The death of
/// this process ends it.
pub fn exec(line: &Exec) -> u8 {
    process_signals::errors_are_no_signals();
    if line.news.is_some() {
        // A detached process is not the engine's, and neither is its terminal.
        let _ = rustix::process::setsid();
        let _ = rustix::process::ioctl_tiocsctty(rustix::stdio::stdin());
    }
    let process = std::fs::read(&line.process).with_context(|| line.process.display().to_string());
    let mut news = News(line.news.as_deref().and_then(|path| File::options().write(true).open(path).ok()));
    lind_kernel::fd::close_inherited(0, news.0.as_ref().map(AsFd::as_fd));
    match process.and_then(|process| run_process(line, &process, &mut news)) {
        Ok(status) => status,
        Err(error) => {
            news.refused(&format!("{error:#}"), FAILED);
            FAILED
        }
    }
}

fn run_process(line: &Exec, process: &[u8], news: &mut News) -> Result<u8> {
    let process: Value = serde_json::from_slice(process).context("the description of the process")?;
    let request = json!({
        "lind": VERSION, "do": "exec", "argv": process["argv"], "env": process["env"], "workdir": process["cwd"],
        "as": process["identity"],
    });
    let socket = connect(&line.socket).context("container not running")?;
    let outcome = client::follow_process(request, socket, |said| match said {
        Ok(()) => news.runs(),
        Err((why, status)) => news.refused(why, status),
    })?;
    Ok(match outcome {
        Outcome::Status(status) => status,
        Outcome::Signal(signal) => 128_u8.saturating_add(signal),
    })
}

/// Connects to a socket, whose path may be longer than an address has room for.
fn connect(path: &Path) -> Result<UnixStream> {
    let folder = path.parent().context("not a path of a socket")?;
    let folder = rustix::fs::openat(CWD, folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let name = path.file_name().map(OsString::from).unwrap_or_default();
    let number = std::os::fd::AsRawFd::as_raw_fd(&folder);
    let mut short = OsString::from(format!("/proc/self/fd/{number}/"));
    short.push(name);
    let socket = UnixStream::connect(&short)?;
    let peer = rustix::net::sockopt::socket_peercred(&socket)?;
    ensure!(peer.uid == rustix::process::geteuid(), "{} is another user's", path.display());
    Ok(socket)
}

/// The news for the runtime, which waits until the process runs.
struct News(Option<File>);

impl News {
    fn runs(&mut self) {
        self.send(&json!({"runs": true}));
    }

    /// Without a runtime that waits for it, the reason is printed.
    fn refused(&mut self, why: &str, status: u8) {
        if !self.send(&json!({"error": why, "status": status})) {
            stdio::say_line(why);
        }
    }

    fn send(&mut self, message: &Value) -> bool {
        let Some(mut file) = self.0.take() else { return false };
        // The runtime may have been killed meanwhile.
        let _ = file.write_all(format!("{message}\n").as_bytes());
        true
    }
}

impl Line {
    /// The process of a container.
    pub fn of_process(process: &Process) -> Line {
        let bytes = |words: &[String]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
        Line {
            argv: bytes(&process.argv),
            shown: process.argv.join(" "),
            env: bytes(&process.env),
            workdir: Some(Path::new(std::ffi::OsStr::from_bytes(process.cwd.as_bytes())).to_owned()),
            here: None,
            timeout: None,
            events: false,
            terminal: None,
            identity: Some(process.identity.clone()),
            kept: None,
        }
    }
}
