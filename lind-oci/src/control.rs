//! Requests to the runner of a container, over its socket.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rustix::fs::{CWD, Mode, OFlags};
use serde_json::{Value, json};

use crate::frames;

/// The version of the requests.
const VERSION: u32 = 2;

/// How long a runner may take to answer a question about itself. A stopped one does not.
const PATIENCE: Duration = Duration::from_secs(5);

/// A path for a socket: addresses have room for 107 bytes, and a path below the directory of states
/// may be longer. The path holds as long as the directory is open.
fn short(path: &Path) -> Result<(OwnedFd, OsString)> {
    let folder = path.parent().context("not the path of a socket")?;
    let folder = rustix::fs::openat(CWD, folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let mut short = OsString::from(format!("/proc/self/fd/{}/", folder.as_raw_fd()));
    short.push(path.file_name().context("not the path of a socket")?);
    Ok((folder, short))
}

/// Makes a socket to listen on.
///
/// # Errors
/// The host's error.
pub fn listen(path: &Path) -> Result<UnixListener> {
    let (_folder, short) = short(path)?;
    UnixListener::bind(short).with_context(|| path.display().to_string())
}

/// Connects to a socket.
///
/// # Errors
/// The host's error.
pub fn connect(path: &Path) -> Result<UnixStream> {
    let (_folder, short) = short(path)?;
    UnixStream::connect(short).with_context(|| path.display().to_string())
}

/// A connection to a runner.
pub struct Runner(UnixStream);

impl Runner {
    /// Connects to the runner behind a socket.
    ///
    /// # Errors
    /// When it has ended.
    pub fn of(path: &Path) -> Result<Runner> {
        connect(path).map(Runner)
    }

    fn ask(&self, mut request: Value, within: Option<Duration>) -> Result<Value> {
        request["lind"] = VERSION.into();
        self.0.set_read_timeout(within)?;
        frames::send(&self.0, &request, &[]).context("the runner does not listen")?;
        let answer = frames::receive(&self.0).context("the runner does not answer")?;
        match answer["error"].as_str() {
            Some(why) => Err(anyhow!("{why}")),
            None => Ok(answer),
        }
    }

    /// Lets the container's process begin, and waits until its program runs.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn begin(&self) -> Result<()> {
        self.ask(json!({"do": "begin"}), None).map(drop)
    }

    /// Whether the container's process has begun.
    ///
    /// # Errors
    /// When the runner has ended.
    pub fn has_begun(&self) -> Result<bool> {
        let answer = self.ask(json!({"do": "process"}), Some(PATIENCE))?;
        Ok(answer["begun"].as_bool() == Some(true))
    }

    /// Lets the container see other limits of itself. A frozen runner gets the message,
    /// and shows them once it goes on.
    ///
    /// # Errors
    /// When the runner has ended.
    pub fn show_limits(&self, limits: &Value, stands_still: bool) -> Result<()> {
        let mut request = json!({"do": "limits", "limits": limits});
        if stands_still {
            request["lind"] = VERSION.into();
            return frames::send(&self.0, &request, &[]).context("the runner does not listen");
        }
        self.ask(request, Some(PATIENCE)).map(drop)
    }

    /// Sends the container's process a signal.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&self, number: u8) -> Result<()> {
        self.ask(json!({"do": "signal", "id": 0, "signal": number}), Some(PATIENCE)).map(drop)
    }

    /// Sends each process in the container a signal.
    ///
    /// # Errors
    /// When the runner has ended.
    pub fn signal_every(&self, number: u8) -> Result<()> {
        self.ask(json!({"do": "signal", "all": true, "every": true, "signal": number}), Some(PATIENCE)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_have_sockets_too() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(100)).join("y".repeat(100));
        std::fs::create_dir_all(&long).unwrap();
        let _listener = listen(&long.join("socket")).unwrap();
        connect(&long.join("socket")).unwrap();
        assert!(connect(&long.join("other")).is_err());
    }
}
