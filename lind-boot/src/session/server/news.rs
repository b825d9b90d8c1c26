//! The news of commands that the first program sends.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use anyhow::anyhow;
use lind_abi::{CageId, Errno};
use lind_kernel::text::shown;
use serde_json::{Value, json};

use super::Server;
use crate::session::control::READY;
use crate::session::orders::News;
use crate::session::terminal::Terminal;
use crate::session::wire;

impl Server {
    pub(super) fn hear(&mut self, news: News) {
        match news {
            News::Ready { pid } => {
                self.first = Some(CageId(pid));
                // All grates of the line run before this program does.
                self.kernel.rules.close();
                self.unused = Instant::now();
                self.keep_little();
                if let Some(mut file) = self.about.ready.take() {
                    // The process that started the session may have ended.
                    let _ = file.write_all(READY.as_bytes());
                }
            }
            News::Started { id, pid } => {
                if self.helper_started(id, pid) || self.commands.get(id).is_none() {
                    return;
                }
                self.about.denials.started(id, Some(CageId(pid)));
                self.commands.started(id, pid);
                self.represent(id, CageId(pid));
                self.tell_start(id, pid);
            }
            News::NoDirectory { id, errno } | News::NoProgram { id, errno } if self.helpers.contains_key(&id) => {
                self.end_helper(id, Errno::from_raw(errno));
            }
            News::NoDirectory { id, errno } => {
                let directory = self.commands.get(id).map(|command| shown(command.directory.as_os_str().as_bytes()));
                let what = format!("cannot enter the working directory {}", directory.unwrap_or_default());
                self.failed(id, &what, errno);
            }
            News::NoProgram { id, errno } => {
                let name = self.commands.get(id).map(|command| command.shown.clone()).unwrap_or_default();
                self.failed(id, name.split(' ').next().unwrap_or_default(), errno);
            }
            News::Ended { pid, word } => {
                if let Some(helper) = self.helper_of(pid) {
                    return self.end_helper(helper, Errno::EIO);
                }
                let Some(id) = self.commands.of_cage(pid) else { return };
                self.ended(id, word);
            }
            News::Stopped { pid, signal } => self.tell_of(pid, &json!({"stopped": signal})),
            News::Loaded { id } => self.loaded(id),
            News::Continued { pid } => self.tell_of(pid, &json!({"continued": true})),
        }
    }

    fn tell_start(&mut self, id: u32, pid: u32) {
        let started = json!({"started": {"id": id, "pid": pid}});
        let Some(command) = self.commands.get(id).filter(|command| command.events) else { return };
        match (command.output.is_some(), command.client) {
            (true, _) => self.tell_followers(id, &started),
            // A client of this version sends what is typed once it hears that it is read.
            (false, Some(client)) => {
                let mut started = started;
                started["reads"] = false.into();
                self.tell(client, &started);
            }
            (false, None) => {}
        }
        self.leave_detached(id);
    }

    fn tell_of(&mut self, pid: u32, message: &Value) {
        let Some(id) = self.commands.of_cage(pid) else { return };
        let Some(command) = self.commands.get(id) else { return };
        match (command.output.is_some(), command.client) {
            (true, _) => self.tell_followers(id, message),
            (false, Some(client)) => self.tell(client, message),
            (false, None) => {}
        }
    }

    /// Reports that a command could not be started, with the exit statuses of a shell.
    fn failed(&mut self, id: u32, what: &str, errno: i32) {
        let Some(command) = self.commands.get(id) else { return };
        let never_lived = command.pid.is_none();
        let clients = match (command.output.is_some(), command.client.take()) {
            (true, _) => self.let_followers_go(id),
            (false, client) => client.into_iter().collect(),
        };
        let errno = Errno::from_raw(errno);
        if never_lived {
            self.about.denials.started(id, None);
        }
        if self.process_failed(id, what, errno, &clients) {
            return self.commands.forget(id, never_lived);
        }
        let status = match errno {
            Errno::ENOENT => 127,
            Errno::EAGAIN | Errno::ENOMEM => crate::failure::FAILED,
            _ => 126,
        };
        for client in clients {
            if self.is_second(client) {
                self.refuse_with(client, &format!("{what}: {errno}"), status, errno);
            } else {
                self.refuse(client, &anyhow!("{what}: {errno}"), status);
            }
        }
        self.commands.forget(id, never_lived);
    }

    fn ended(&mut self, id: u32, word: i32) {
        let Some(command) = self.commands.get(id) else { return };
        if let Some(pid) = command.pid {
            self.about.denials.forget(pid);
        }
        self.unused = Instant::now();
        if self.about.held.is_some() {
            self.process_ended(id, word);
        }
        let Some(command) = self.commands.get(id) else { return };
        if command.output.is_some() {
            // The note may be about another command that runs meanwhile; the first command that
            // ends reports it.
            let note = self.kernel.set_ids.take();
            let (denied, denials) = self.denials_of(id);
            self.commands.end(id, word, json!({"note": note, "denied": denied, "denials": denials}));
            return self.follow_on(id);
        }
        self.denials_of(id);
        let Some(command) = self.commands.remove(id) else { return };
        let Some(client) = command.client else { return };
        let rest = command.terminal.as_ref().map(Terminal::rest).unwrap_or_default();
        if !rest.is_empty() {
            self.tell(client, &json!({"output": wire::word(&rest)}));
        }
        let mut ended = command.ended(word);
        ended["note"] = self.kernel.set_ids.take().into();
        self.tell(client, &ended);
    }
}
