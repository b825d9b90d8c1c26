//! The process of a container: it is held until a client says `begin`, and the session ends as it
//! does.

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use lind_abi::{CageId, Errno};
use lind_kernel::cage::Status;
use lind_kernel::cage::signal;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::Server;
use crate::plan::container::Allowance;
use crate::session::request::Line;
use crate::session::wire::FILES;

/// The number that stands for the process of the container in requests.
const PROCESS: u32 = 0;

/// The process of a container.
pub struct Held {
    line: Line,
    files: Option<[Option<OwnedFd>; FILES]>,
    /// Its number, once it has begun.
    id: Option<u32>,
    /// The client that waits until its program runs.
    waits: Option<u64>,
    /// Its end.
    ended: Arc<OnceLock<Status>>,
}

impl Held {
    /// A process that has not begun.
    pub fn new(line: Line, files: [Option<OwnedFd>; FILES], ended: Arc<OnceLock<Status>>) -> Held {
        Held { line, files: Some(files), id: None, waits: None, ended }
    }

    /// Its end, if it has ended.
    pub fn end(&self) -> Option<Status> {
        self.ended.get().copied()
    }
}

impl Server {
    /// Carries out a request that only containers know. None if it is another one.
    pub(super) fn about_container(&mut self, client: u64, value: &Value) -> Option<Result<()>> {
        let held = self.about.held.as_ref()?;
        match value["do"].as_str()? {
            "begin" => Some(self.begin(client)),
            "process" => {
                let described = json!({"begun": held.id.is_some(), "ended": held.end().is_some()});
                self.tell(client, &described);
                Some(Ok(()))
            }
            "limits" => Some(self.show_limits(client, value)),
            "signal" if value["every"].as_bool() == Some(true) => Some(self.signal_every(client, value)),
            _ => None,
        }
    }

    fn begin(&mut self, client: u64) -> Result<()> {
        let held = self.about.held.as_mut().context("this session is not a container")?;
        let files = held.files.take().context("the container has been started already")?;
        let line = held.line.clone();
        let id = self.order_with(client, &line, None, files)?;
        if let Some(command) = self.commands.get(id) {
            // It does not end with the client that has started it.
            (command.client, command.detached) = (None, true);
        }
        if let Some(held) = &mut self.about.held {
            (held.id, held.waits) = (Some(id), Some(client));
        }
        Ok(())
    }

    /// Signals for the runner are for the container's process, if that is the command.
    pub(super) fn represent(&self, id: u32, cage: CageId) {
        if self.about.held.as_ref().is_some_and(|held| held.id == Some(id)) {
            self.kernel.represent(cage);
        }
    }

    /// Sends a signal to all processes, and not only to those that a client has started.
    fn signal_every(&mut self, client: u64, value: &Value) -> Result<()> {
        let number = value["signal"].as_u64().and_then(|number| u8::try_from(number).ok());
        signal::to_programs(&self.kernel, number.context("signal")?);
        self.tell(client, &json!({"done": true}));
        Ok(())
    }

    /// Shows other limits of the host in /sys/fs/cgroup.
    fn show_limits(&mut self, client: u64, value: &Value) -> Result<()> {
        let of_host = Allowance::deserialize(&value["limits"]).context("limits")?;
        self.kernel.show_allowance(self.about.surroundings.allowance.within(of_host.into()));
        self.tell(client, &json!({"done": true}));
        Ok(())
    }

    /// The number of the command that a request means.
    pub(super) fn meant(&self, id: u32) -> Result<u32> {
        match &self.about.held {
            Some(held) if id == PROCESS => held.id.context("the container has not been started"),
            _ => Ok(id),
        }
    }

    /// A command's program runs, or has not been run for a reason that was told before.
    pub(super) fn loaded(&mut self, id: u32) {
        if let Some(client) = self.begun(id) {
            return self.tell(client, &json!({"begun": true}));
        }
        let Some(command) = self.commands.get(id) else { return };
        if let Some(client) = command.client {
            self.tell(client, &json!({"loaded": true}));
        }
    }

    /// The client that waits for the container's process, if that is the command.
    fn begun(&mut self, id: u32) -> Option<u64> {
        self.about.held.as_mut().filter(|held| held.id == Some(id))?.waits.take()
    }

    /// Reports that a process could not be run, in the words of other runtimes, which engines look
    /// for. False if this is not a container.
    pub(super) fn process_failed(&mut self, id: u32, what: &str, errno: Errno, clients: &[u64]) -> bool {
        let Some(held) = &self.about.held else { return false };
        let is_process = held.id == Some(id);
        let shown = self.commands.get(id).map(|command| command.shown.clone()).unwrap_or_default();
        let why = match errno {
            _ if shown.split(' ').next() != Some(what) => format!("{what}: {errno}"),
            Errno::ENOENT if !what.contains('/') => format!("exec: \"{what}\": executable file not found in $PATH"),
            Errno::ENOENT => format!("exec: \"{what}\": stat {what}: no such file or directory"),
            Errno::EACCES => format!("exec: \"{what}\": permission denied"),
            Errno::ENOEXEC => format!(
                "exec: \"{what}\": exec format error: built for linux/amd64; needs a program compiled for Lind (see \
                 docs/oci.md)"
            ),
            errno => format!("{what}: {errno}"),
        };
        let status = if errno == Errno::ENOENT { 127 } else { 126 };
        for client in clients.iter().copied().chain(self.begun(id)) {
            self.refuse_with(client, &why, status, errno);
        }
        if is_process {
            self.end_as(Status::Exited(status));
        }
        true
    }

    /// Ends the container if the command was its process.
    pub(super) fn process_ended(&mut self, id: u32, word: i32) {
        // A short program may end before the news that it was loaded.
        self.loaded(id);
        if self.about.held.as_ref().is_none_or(|held| held.id != Some(id)) {
            return;
        }
        let [signal, status, ..] = word.to_le_bytes();
        self.end_as(match signal & 0x7f {
            0 => Status::Exited(status),
            signal => Status::Signaled { signal },
        });
    }

    fn end_as(&mut self, status: Status) {
        if let Some(held) = &self.about.held {
            // The first end counts.
            let _ = held.ended.set(status);
        }
        self.end_helpers();
        self.commands.kill_all();
        self.ending = Some(Instant::now());
    }

    /// Refuses to run a process as somebody else where this is not a container.
    pub(super) fn check_identity(&self, line: &Line) -> Result<()> {
        ensure!(line.identity.is_none() || self.about.held.is_some(), "as: only a process of a container has this key");
        Ok(())
    }
}
