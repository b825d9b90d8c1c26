//! A container in front: signals for this process are passed on to the container's, and its
//! terminal is this process's.

use std::io::{Read, Write};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};

use anyhow::{Context as _, Result};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};
use signal_hook::consts::signal::{
    SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::Signals;

use crate::control::Runner;

/// The signals that are passed on.
const PASSED: [i32; 10] = [SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGCONT, SIGTSTP, SIGWINCH];

/// The terminal of this process while another one is behind it.
struct Raw(Option<Termios>);

impl Raw {
    /// Lets everything that is typed through, if standard input is a terminal.
    fn set() -> Raw {
        let input = rustix::stdio::stdin();
        let before = isatty(input).then(|| tcgetattr(input).ok()).flatten();
        if let Some(mut raw) = before.clone() {
            raw.make_raw();
            let _ = tcsetattr(input, OptionalActions::Now, &raw);
        }
        Raw(before)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Signals that are kept from before the container is there.
pub struct Front(Signals);

impl Front {
    /// From now on signals wait for the container.
    ///
    /// # Errors
    /// The host's error.
    pub fn new() -> Result<Front> {
        Signals::new(PASSED).map(Front).context("cannot catch signals")
    }

    /// Waits for the end of a container. `terminal` is the engine's end of its terminal.
    ///
    /// # Errors
    /// The host's error.
    pub fn wait(self, child: &mut Child, socket: PathBuf, terminal: Option<OwnedFd>) -> Result<ExitStatus> {
        let _raw = terminal.as_ref().map(|_| Raw::set());
        let sized = terminal.as_ref().and_then(|master| master.try_clone().ok());
        if let Some(master) = &sized {
            resize(master);
        }
        let (handle, mut signals) = (self.0.handle(), self.0);
        std::thread::spawn(move || {
            for number in &mut signals {
                match (&sized, number) {
                    (Some(master), SIGWINCH) => resize(master),
                    _ => pass(&socket, number),
                }
            }
        });
        let shown = terminal.map(show).transpose()?;
        let status = child.wait().context("cannot wait for the container")?;
        handle.close();
        // All that it has printed is shown first.
        shown.map(|shown| shown.join());
        Ok(status)
    }
}

/// Passes a signal on. The process may have ended meanwhile.
fn pass(socket: &Path, number: i32) {
    if let Ok(number) = u8::try_from(number) {
        let _ = Runner::of(socket).and_then(|runner| runner.signal(number));
    }
}

fn resize(master: &OwnedFd) {
    if let Ok(size) = tcgetwinsize(rustix::stdio::stdin()) {
        let _ = tcsetwinsize(master, size);
    }
}

/// Copies between a terminal and the standard files, until nobody has its other end any more.
fn show(master: OwnedFd) -> Result<std::thread::JoinHandle<()>> {
    let typed = std::fs::File::from(master.as_fd().try_clone_to_owned().context("cannot copy the terminal")?);
    std::thread::spawn(move || copy(std::io::stdin(), typed));
    Ok(std::thread::spawn(move || copy(std::fs::File::from(master), std::io::stdout())))
}

fn copy(mut from: impl Read, mut to: impl Write) {
    let mut piece = [0; 4096];
    while let Ok(count) = from.read(&mut piece) {
        if count == 0 || to.write_all(&piece[..count]).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}
