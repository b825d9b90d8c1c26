//! The requests of the second version. A connection carries one after another; the answers come in
//! the same order.

use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, anyhow, bail, ensure};
use lind_kernel::cage::signal::Origin;
use serde_json::{Value, json};

use super::Server;
use super::clients::Client;
use super::follow::Follow;
use crate::session::commands::Command;
use crate::session::files::{Ask, request::verbs};
use crate::session::request::{self, Line};
use crate::session::wire::{self, Message, SECOND, VERSION};

/// The verbs, for `hello`.
const VERBS: [&str; 20] = [
    "hello",
    "exec",
    "attach",
    "wait",
    "input",
    "resize",
    "signal",
    "detach",
    "list",
    "stats",
    "denials",
    "questions",
    "answer",
    "allow",
    "deny",
    "revoke",
    "policy",
    "hold",
    "release",
    "stop",
];

impl Server {
    pub(super) fn is_second(&self, number: u64) -> bool {
        self.clients.get(&number).is_some_and(Client::is_second)
    }

    /// Handles a message of a client.
    pub(super) fn handle_second(&mut self, number: u64, message: Message) {
        let followed = self.clients.get(&number).and_then(|client| client.follows.as_ref()).map(|follow| follow.id);
        if let Some(id) = followed {
            // An answer would be taken for the command's end, so mistakes are not answered here.
            let _ = self.while_followed(number, id, &message);
            return;
        }
        if self.ends_watch(number) || self.ends_questions(number) {
            return;
        }
        if let Some(job) = self.clients.get(&number).and_then(|client| client.job) {
            return self.during_job(job, &message);
        }
        if let Err(why) = self.answer(number, message) {
            self.refuse(number, &why, crate::failure::FAILED);
        }
    }

    fn answer(&mut self, number: u64, message: Message) -> Result<()> {
        let Message { value, body, files } = message;
        let version = value["lind"].as_u64().unwrap_or(SECOND);
        ensure!(version == SECOND, "lind: this connection speaks version {SECOND}, and not {version}");
        let done = json!({"done": true});
        if is_late(&value) {
            return Ok(());
        }
        if let Some(ask) = Ask::read(&value, &self.about.surroundings.workdir)? {
            return self.serve_files(number, ask, &body);
        }
        if let Some(done) = self.about_container(number, &value) {
            return done;
        }
        match value["do"].as_str().context("do: expected a verb")? {
            "hello" => self.tell(
                number,
                &json!({"version": SECOND, "versions": [VERSION, SECOND], "name": self.about.name,
                    "pid": std::process::id(), "volumes": self.volumes(), "overlays": self.overlays(), "verbs": VERBS.into_iter().chain(verbs()).collect::<Vec<_>>()}),
            ),
            "exec" => {
                let line = Line::second(&value)?;
                let id = self.order(number, &line, files)?;
                self.follow(number, Follow { id, at: 0, shows: true });
            }
            "attach" => self.attach(number, &value, true)?,
            "wait" => self.attach(number, &value, false)?,
            "input" => {
                let id = self.running(&value)?;
                let command = self.commands.get(id).context("id")?;
                ensure!(command.takes_input(), "command {id} takes no input: start it with `stdin` or `terminal`");
                command.add_input(&body, is(&value, "close"));
                match (command.is_full(), self.clients.get_mut(&number)) {
                    (true, Some(client)) => client.feeds = Some(id),
                    _ => self.tell(number, &done),
                }
            }
            "resize" => {
                let id = self.running(&value)?;
                let size = request::size(&value["size"]).context("size")?;
                let terminal = self.commands.get(id).and_then(|command| command.terminal.as_ref());
                terminal.with_context(|| format!("command {id} has no terminal"))?.resize(size);
                self.tell(number, &done);
            }
            "signal" => {
                let signal = signal(&value)?;
                if is(&value, "all") {
                    self.commands.signal_all(signal);
                } else {
                    let id = self.running(&value)?;
                    self.commands.signal(id, signal, origin(&value));
                }
                self.tell(number, &done);
            }
            "list" => {
                let list = self.described_second();
                self.tell(number, &list);
            }
            "stats" => self.tell(number, &self.stats()),
            "hold" => self.borrow_state(number, &value)?,
            "release" => self.return_state(number)?,
            "denials" => self.list_denials(number, &value)?,
            "questions" => self.list_questions(number, &value)?,
            "answer" => self.answer_question(number, &value)?,
            verb @ ("allow" | "deny") => {
                let answer = self.add_rule(verb == "allow", &value)?;
                self.tell(number, &answer);
            }
            "revoke" => {
                let answer = self.revoke_rule(&value)?;
                self.tell(number, &answer);
            }
            "policy" => {
                let rules = self.described_rules();
                self.tell(number, &rules);
            }
            "stop" => {
                self.tell(number, &json!({"stopping": true}));
                self.stop();
            }
            verb => bail!("do: {verb}: this session does not know this verb; `hello` lists the verbs that it knows"),
        }
        Ok(())
    }

    /// Handles a message that comes while the client follows a command.
    fn while_followed(&mut self, number: u64, id: u32, message: &Message) -> Result<()> {
        let Message { value, body, .. } = message;
        match value["do"].as_str().context("do")? {
            "input" => self.commands.get(id).context("ended")?.add_input(body, is(value, "close")),
            "signal" => self.commands.signal(id, signal(value)?, origin(value)),
            "resize" => {
                let size = request::size(&value["size"])?;
                let terminal = self.commands.get(id).and_then(|command| command.terminal.as_ref());
                terminal.context("terminal")?.resize(size);
            }
            "detach" => {
                if let Some(command) = self.commands.get(id).filter(|command| command.client == Some(number)) {
                    (command.detached, command.client) = (true, None);
                }
                let client = self.clients.get_mut(&number).context("gone")?;
                let at = client.follows.take().map(|follow| follow.at);
                self.tell(number, &json!({"detached": id, "at": at}));
            }
            _ => {}
        }
        Ok(())
    }

    fn follow(&mut self, number: u64, follow: Follow) {
        if let Some(client) = self.clients.get_mut(&number) {
            client.follows = Some(follow);
        }
    }

    fn attach(&mut self, number: u64, value: &Value, shows: bool) -> Result<()> {
        let id = id(value)?;
        let command = self.commands.any(id).with_context(|| format!("no command has the number {id}"))?;
        let output = command.output.as_ref().with_context(|| {
            format!("the output of command {id} is not kept: a client of version {VERSION} has started it")
        })?;
        let from = value["from"].as_u64().unwrap_or(0).min(output.end());
        let at = if shows { output.after(from).map_or(from, |part| part.at.max(from)) } else { output.end() };
        let pid = command.pid.map(|pid| pid.0);
        self.follow(number, Follow { id, at, shows });
        if shows {
            self.tell(number, &json!({"attached": {"id": id, "pid": pid, "at": at}}));
        }
        Ok(())
    }

    /// The command that a request names, which still runs.
    fn running(&mut self, value: &Value) -> Result<u32> {
        let id = self.meant(id(value)?)?;
        if self.commands.get(id).is_some() {
            return Ok(id);
        }
        Err(match self.commands.any(id) {
            Some(_) => anyhow!("command {id} has ended"),
            None => anyhow!("no command has the number {id}"),
        })
    }

    /// The directories of the host that commands see, for clients that open files of the host.
    fn volumes(&self) -> Value {
        let places = self.about.surroundings.places.iter();
        places.map(|(host, _)| wire::word(host.as_os_str().as_encoded_bytes())).collect()
    }

    fn described_second(&self) -> Value {
        let all = self.commands.all().map(|(id, command)| described(id, command));
        json!({
            "name": self.about.name, "pid": std::process::id(), "seconds": self.began.elapsed().as_secs_f64(),
            "commands": all.collect::<Value>(),
        })
    }
}

fn described(id: u32, command: &Command) -> Value {
    let began = command.began.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let output = command.output.as_ref().map(|output| output.end());
    let mut all = json!({
        "id": id, "pid": command.pid.map(|pid| pid.0), "line": command.shown, "started": began,
        "seconds": command.seconds(), "terminal": command.terminal.is_some(), "detached": command.detached,
        "output": output,
    });
    if let Some((ended, _)) = &command.ended {
        let mut ended = ended["ended"].clone();
        // A list of commands has a bound, and the denials of each would go beyond it.
        if let Some(ended) = ended.as_object_mut() {
            ended.remove("denials");
        }
        all["ended"] = ended;
    }
    all
}

/// Whether a message was for a command that the connection followed, and which has ended meanwhile.
fn is_late(value: &Value) -> bool {
    let verb = value["do"].as_str();
    verb == Some("detach")
        || (matches!(verb, Some("input" | "resize" | "signal")) && value["id"].is_null() && !is(value, "all"))
}

pub(super) fn is(value: &Value, key: &str) -> bool {
    value[key].as_bool() == Some(true)
}

/// The number of a command.
fn id(value: &Value) -> Result<u32> {
    value["id"].as_u64().and_then(|id| u32::try_from(id).ok()).context("id: expected the number of a command")
}

/// The signal, by its name or its number.
fn signal(value: &Value) -> Result<u8> {
    match value["signal"].as_str() {
        Some(name) => crate::cli::session::signal(name).map_err(|why| anyhow!("signal: {why}")),
        None => request::number(&value["signal"]).context("signal"),
    }
}

/// With `group` a signal goes to those in front on the command's terminal; without a terminal, to
/// the command's process group.
fn origin(value: &Value) -> Origin {
    if is(value, "group") { Origin::Terminal } else { Origin::Process }
}
