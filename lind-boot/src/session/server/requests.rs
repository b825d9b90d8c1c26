//! The requests of the first version, and the start of commands for both.

use std::borrow::Cow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use lind_abi::Errno;
use lind_kernel::cage::signal::Origin;
use lind_kernel::fd;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;
use crate::sandbox::Surroundings;
use crate::session::orders::Order;
use crate::session::pipes::Pipes;
use crate::session::request::{Line, Meanwhile, Request, ToSignal};
use crate::session::terminal::{self, Terminal};
use crate::session::wire::{self, Word};

impl Server {
    pub(super) fn handle(&mut self, number: u64, message: &Value, files: Vec<OwnedFd>) {
        if let Some(id) = self.commands.of_client(number) {
            match (Meanwhile::deserialize(message), self.commands.terminal_of(number)) {
                (Ok(Meanwhile::Signal { signal, terminal }), _) => {
                    let origin = if terminal { Origin::Terminal } else { Origin::Process };
                    self.commands.signal(id, signal, origin);
                }
                (Ok(Meanwhile::Input { input: Word(bytes) }), Some(terminal)) => terminal.add_input(&bytes),
                (Ok(Meanwhile::Resize { resize }), Some(terminal)) => terminal.resize(resize),
                _ => {}
            }
            return;
        }
        match Request::read(message) {
            Err(why) => {
                let versions = [wire::VERSION, wire::SECOND];
                let refused =
                    json!({"error": format!("{why:#}"), "status": crate::failure::FAILED, "versions": versions});
                self.tell(number, &refused);
            }
            Ok(Request::List) => {
                let list = self.described();
                self.tell(number, &list);
            }
            Ok(Request::Stop) => {
                self.tell(number, &json!({"stopping": true}));
                self.stop();
            }
            Ok(Request::Signal(ToSignal { signal, id: None })) => {
                self.commands.signal_all(signal);
                self.tell(number, &json!({"sent": true}));
            }
            Ok(Request::Signal(ToSignal { signal, id: Some(id) })) if self.commands.get(id).is_some() => {
                self.commands.signal(id, signal, Origin::Process);
                self.tell(number, &json!({"sent": true}));
            }
            Ok(Request::Signal(ToSignal { id: Some(id), .. })) => {
                self.refuse(number, &anyhow!("no command has the number {id}"), crate::failure::FAILED)
            }
            Ok(Request::Exec(line)) => {
                if let Some((why, errno)) = self.takes_none() {
                    return self.refuse_with(number, why, crate::failure::FAILED, errno);
                }
                if let Err(why) = self.order(number, &line, files) {
                    self.refuse(number, &why, crate::failure::FAILED);
                }
            }
        }
    }

    /// Why no command is taken now, if none is.
    fn takes_none(&self) -> Option<(&'static str, Errno)> {
        if self.ending.is_some() {
            return Some(("the session is ending", Errno::ESHUTDOWN));
        }
        self.first.is_none().then_some(("the session is not ready yet", Errno::EAGAIN))
    }

    /// Lets the first program start a command, and returns its number.
    ///
    /// # Errors
    /// When there is no room for one, or the session ends.
    pub(super) fn order(&mut self, client: u64, line: &Line, files: Vec<OwnedFd>) -> Result<u32> {
        self.check_identity(line)?;
        let wanted = line.terminal.as_ref();
        let terminal = wanted.map(|wanted| Terminal::open(&self.kernel, wanted)).transpose()?;
        let kept = line.kept.as_ref();
        let (pipes, theirs) = match kept {
            Some(kept) => Pipes::open(kept.pipes, kept.input)?,
            None => Default::default(),
        };
        let files = terminal::files(line, terminal.as_ref(), theirs, files)?;
        let id = self.order_with(client, line, terminal, files)?;
        if let Some(command) = self.commands.get(id) {
            command.pipes = pipes;
            command.keep(kept);
        }
        Ok(id)
    }

    /// Lets the first program start a command on these files, and returns its number.
    ///
    /// # Errors
    /// As for `order`.
    pub(super) fn order_with(
        &mut self,
        client: u64,
        line: &Line,
        terminal: Option<Terminal>,
        files: [Option<OwnedFd>; wire::FILES],
    ) -> Result<u32> {
        anyhow::ensure!(self.ending.is_none(), "the session is ending");
        let first =
            self.first.and_then(|first| self.kernel.cages.get(first)).context("the session is not ready yet")?;
        let place = files[2].as_ref().and_then(|file| file.try_clone().ok());
        let mut numbers = [-1; wire::FILES];
        for (number, file) in numbers.iter_mut().zip(files) {
            let Some(file) = file else { continue };
            *number = fd::hand_over(&first, file)
                .map_err(|errno| anyhow!("too many commands at once: {errno}"))?
                .unwrap_or(-1);
        }
        self.quiet = false;
        let directory = directory(&self.about.surroundings, line);
        let id = self.commands.add(client, line.shown.clone(), line.timeout, line.events);
        let place = place.map(Arc::new);
        if let Some(command) = self.commands.get(id) {
            command.terminal = terminal;
            command.directory = directory.to_path_buf();
        }
        let envp = line.environment(&self.about.surroundings);
        let directory = directory.as_os_str().as_bytes();
        self.about.denials.expect(id, place);
        let identity = line.identity.as_ref();
        self.orders.give(&Order { id, files: numbers, directory, argv: &line.argv, envp: &envp, identity });
        Ok(id)
    }

    pub(super) fn described(&self) -> Value {
        json!({
            "name": self.about.name, "pid": std::process::id(), "seconds": self.began.elapsed().as_secs_f64(),
            "commands": self.commands.described(),
        })
    }
}

/// The directory in which a command starts.
fn directory<'a>(surroundings: &'a Surroundings, line: &Line) -> Cow<'a, Path> {
    if let Some(workdir) = &line.workdir {
        return Cow::Owned(surroundings.workdir.join(workdir));
    }
    let here = line.here.as_ref().and_then(|here| surroundings.inside(here));
    here.map_or(Cow::Borrowed(&surroundings.workdir), Cow::Owned)
}
