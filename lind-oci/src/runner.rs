//! Starts the runner of a container, and the processes that stand for others in it: both are
//! lind-boot, which is beside this program.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use crate::frames;
use crate::network::{self, Network};
use crate::pod;

/// The lines that a runner sends when all is mounted, and when it waits for the start.
const MOUNTED: &str = "mounted\n";
const READY: &str = "ready\n";

/// The most bytes of a runner's messages that are reported.
const MOST: u64 = 16 << 10;

/// The file of lind-boot.
///
/// # Errors
/// When it is not beside this program.
pub fn boot() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find the file of lind-oci itself (mount /proc)")?;
    let boot = own.with_file_name("lind-boot");
    if boot.is_file() {
        Ok(boot)
    } else {
        bail!("{}: is missing; install lind-boot and lind-oci together", boot.display())
    }
}

/// A runner that has been started.
pub struct Runner {
    /// Its process.
    pub child: Child,
    /// The connection to it.
    channel: UnixStream,
    messages: PathBuf,
}

impl Runner {
    /// Starts one in a network. It does nothing before it gets its container.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        (network, settings): (&Network, &[(String, String)]),
        preserved: u32,
        messages: &Path,
    ) -> Result<Runner> {
        let (channel, theirs) = UnixStream::pair()?;
        let log =
            File::options().create(true).append(true).open(messages).with_context(|| messages.display().to_string())?;
        let mut command = Command::new(boot()?);
        command.args(["container", "serve", &preserved.to_string()]).current_dir("/");
        command.stdin(OwnedFd::from(theirs)).stdout(log.try_clone()?).stderr(log);
        command.env_remove("NOTIFY_SOCKET");
        let child = spawn(command, || network.enter(settings))?;
        Ok(Runner { child, channel, messages: messages.to_owned() })
    }

    /// Starts a process that only sleeps once it gets a byte, in a network and with a host name of
    /// its own.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn sleep(network: &Network, settings: &[(String, String)], host_name: Option<&str>) -> Result<Child> {
        let mut command =
            Command::new(std::env::current_exe().context("cannot find the file of lind-oci itself (mount /proc)")?);
        command.arg(pod::WORD).current_dir("/").env_clear();
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        spawn(command, || {
            network.enter(settings)?;
            host_name.map_or(Ok(()), network::set_host_name)
        })
    }

    /// Gives it its container, with the standard files of the process, and the socket to listen on.
    ///
    /// # Errors
    /// When it has ended.
    pub fn describe(&mut self, container: &Value, files: &[BorrowedFd<'_>; 3], listener: &UnixListener) -> Result<()> {
        let sent = frames::send(&self.channel, container, files)
            .and_then(|()| frames::send(&self.channel, &json!({}), &[listener.as_fd()]));
        sent.map_err(|error| self.failure().unwrap_or_else(|| error.into()))
    }

    /// Waits until all is mounted.
    ///
    /// # Errors
    /// The reason why it cannot be.
    pub fn wait_until_mounted(&mut self) -> Result<()> {
        self.wait_for(MOUNTED)
    }

    /// Lets it go on, and waits until it can begin.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn wait_until_ready(&mut self) -> Result<()> {
        let _ = (&self.channel).write_all(b"\n");
        self.wait_for(READY)
    }

    fn wait_for(&mut self, expected: &str) -> Result<()> {
        let mut line = String::new();
        // Nothing follows a line before it is answered.
        let _ = BufReader::new(&self.channel).read_line(&mut line);
        if line == expected {
            return Ok(());
        }
        Err(self.failure().unwrap_or_else(|| anyhow!("the runner of the container has ended")))
    }

    /// The last message of a runner that has failed.
    fn failure(&mut self) -> Option<anyhow::Error> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let text = last_of(&self.messages)?;
        (!text.is_empty()).then(|| anyhow!("{text}"))
    }
}

/// Starts a process in the namespaces that `enter` enters.
fn spawn(mut command: Command, enter: impl FnOnce() -> Result<()> + Send) -> Result<Child> {
    // A namespace is that of a thread, and what it starts is born there.
    let start = || -> Result<Child> {
        enter()?;
        command.spawn().context("cannot start the process of the container")
    };
    let child = std::thread::scope(|scope| scope.spawn(start).join());
    child.unwrap_or_else(|_| Err(anyhow!("a thread has failed")))
}

/// The last lines of a runner's messages, as one.
pub fn last_of(messages: &Path) -> Option<String> {
    let mut file = File::open(messages).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(std::io::SeekFrom::Start(length.saturating_sub(MOST))).ok()?;
    let mut text = Vec::new();
    file.take(MOST).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().map(|line| line.strip_prefix("lind-boot: ").unwrap_or(line));
    let lines: Vec<_> = lines.filter(|line| !line.is_empty() && !line.starts_with("compiling ")).collect();
    Some(lines.join("; "))
}

/// A line of lind-boot that runs a process in a container. `process` is the file that describes it,
/// and `news` the one that gets a line when it runs.
///
/// # Errors
/// When lind-boot is missing.
pub fn process(socket: &Path, process: &Path, news: Option<&Path>) -> Result<Command> {
    let mut command = Command::new(boot()?);
    command.args(["container", "exec"]).arg(socket).arg(process).args(news);
    command.env_clear().stdin(Stdio::inherit());
    Ok(command)
}

/// Replaces this program by a line.
///
/// # Errors
/// When it cannot be run.
pub fn become_line(mut command: Command) -> Result<u8> {
    Err(anyhow::Error::from(command.exec()).context("cannot run lind-boot"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_messages_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "compiling x\nlind-boot: cannot mount at /a: no\n\n").unwrap();
        assert_eq!(last_of(&path).unwrap(), "cannot mount at /a: no");
        assert_eq!(last_of(&folder.path().join("other")), None);
    }
}
