//! The process of a session: the steps that need the host, before the walls go up.

use std::convert::Infallible;
use std::fs::File;
use std::os::unix::net::{UnixListener, UnixStream};

use anyhow::{Context, Result, bail};

use super::orders::Orders;
use super::parent::Parent;
use super::place::Place;
use super::server::{About, Meter, Server};
use crate::cli::sandbox::RunOptions;
use crate::cli::session::Start;
use crate::failure::Failure;
use crate::launch::Attendant;
use crate::sandbox::{self, Meters};

/// Becomes the session. Standard output is a pipe to the process that waits for it to be ready,
/// standard error its log.
///
/// # Errors
/// The reason why it cannot start.
pub fn serve(start: Start) -> Result<(), Failure> {
    // This fails for the leader of a group, which has a session of its own already, or wants none.
    let _ = rustix::process::setsid();
    let ready = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)
        .map(File::from)
        .context("cannot set up standard output")?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr()).context("cannot set up standard output")?;
    let parent = start.die_with_parent.map(|_| Parent::handed()).transpose()?;
    let options = start.options;
    let (name, idle, ask) = (start.name, start.idle, options.ask);
    let learn = start.learn.map(|file| (file, format!("session {name}")));
    sandbox::run_session(&options, learn, |surroundings, denials, Meters { used, lent }| {
        let meter = Meter::new(used);
        attendant(About { name, idle, ask, surroundings, denials, meter, lent, ready: Some(ready), parent, held: None })
    })
    .map(|never: Infallible| match never {})
}

fn attendant(about: About) -> Result<Attendant> {
    let listener = listen(&about.name)?;
    let (ours, of_first) = UnixStream::pair()?;
    rustix::stdio::dup2_stdin(&of_first)?;
    let orders = Orders::new(ours)?;
    Ok(Box::new(move |kernel| Server::new(kernel, listener, orders, about).start()))
}

/// Runs a command in a sandbox as `run` does. Calls that would be denied wait for answers, which
/// come over a socket like that of a session.
///
/// # Errors
/// As for `run`.
pub fn run_asking(run: &RunOptions) -> Result<Option<Infallible>, Failure> {
    let name = format!("run-{}", std::process::id());
    sandbox::run_attended(run, |surroundings, denials, used| {
        let listener = listen(&name)?;
        // Behind the walls this process cannot remove it.
        let open_end = sandbox::remove_at_end(&Place::of_user()?.socket(&name)?)?;
        // No program takes orders, so the other end stays open and silent.
        let (ours, theirs) = UnixStream::pair()?;
        let orders = Orders::new(ours)?;
        let meter = Meter::new(used);
        let ask = run.options.ask;
        let about = About {
            name,
            idle: None,
            ask,
            surroundings,
            denials,
            meter,
            lent: Vec::new(),
            ready: None,
            parent: None,
            held: None,
        };
        Ok(Box::new(move |kernel| {
            std::mem::forget((theirs, open_end));
            Server::new(kernel, listener, orders, about).start()
        }))
    })
}

/// Creates the session's socket. A socket that an ended session has left is replaced.
fn listen(name: &str) -> Result<UnixListener> {
    let place = Place::of_user()?;
    let _lock = place.lock()?;
    let path = place.socket(name)?;
    if place.connect(name)?.is_some() {
        bail!("session {name} is already running");
    }
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => bail!("{}: {error}", path.display()),
        _ => {}
    }
    let listener = UnixListener::bind(&path).with_context(|| path.display().to_string())?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
