//! `session attach`, `session wait` and `session exec --detach`.

use std::io::{Read, Write};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::link::Link;
use crate::cli::verbs::{Attach, Wait};
use crate::failure::{self, Failure};
use crate::session::client;

/// Shows the output of a command, and returns its exit status.
///
/// # Errors
/// When there is no such command, or its output cannot be written.
pub fn attach(attach: &Attach) -> Result<u8, Failure> {
    let mut link = Link::to(&attach.name)?;
    link.send(json!({"do": "attach", "id": attach.id, "from": attach.from}), &[])?;
    if attach.interactive {
        let sender = link.sender()?;
        std::thread::Builder::new().spawn(move || pass_on_input(sender)).context("cannot start a thread")?;
    }
    until_ended(&mut link)
}

fn pass_on_input(mut link: Link) {
    let mut piece = vec![0; 16 << 10];
    // When the command has ended, this process does too.
    while let Ok(count) = std::io::stdin().read(&mut piece) {
        let bytes = piece.get(..count).unwrap_or_default();
        if link.send(json!({"do": "input", "close": count == 0}), bytes).is_err() || count == 0 {
            return;
        }
    }
}

/// Waits for a command, and returns its exit status.
///
/// # Errors
/// When there is no such command.
pub fn wait(wait: &Wait) -> Result<u8, Failure> {
    let mut link = Link::to(&wait.name)?;
    link.send(json!({"do": "wait", "id": wait.id}), &[])?;
    until_ended(&mut link)
}

fn until_ended(link: &mut Link) -> Result<u8, Failure> {
    loop {
        let message = link.receive()?;
        if let Some(status) = client::end(&message.value) {
            return Ok(status);
        }
        let written = match message.value["output"].as_str() {
            Some("stderr") => std::io::stderr().write_all(&message.body),
            Some(_) => {
                let mut out = std::io::stdout().lock();
                out.write_all(&message.body).and_then(|()| out.flush())
            }
            None => Ok(()),
        };
        written.context("cannot write the output of the command")?;
    }
}

/// Starts a command that goes on without this process, and prints its number.
///
/// # Errors
/// When it cannot be started.
pub fn start_detached(name: &str, mut request: Value) -> Result<u8, Failure> {
    request["detach"] = true.into();
    let started = Link::to(name)?.ask(request)?;
    failure::print(&format!("{}\n", started["started"]["id"]))?;
    Ok(0)
}
