//! A connection to a session, for requests of the second version.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::named::Changed;
use crate::session::client;
use crate::session::wire::{self, Incoming, Message, SECOND};

/// The bytes of a message that is one of several.
pub const PIECE: usize = 1 << 20;

/// An error that the session has answered.
#[derive(Debug)]
pub struct Refused {
    why: String,
    /// The name of the errno, if it is one of a call.
    pub errno: Option<String>,
}

impl std::error::Error for Refused {}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

/// The connection.
pub struct Link {
    socket: UnixStream,
    incoming: Incoming,
}

impl Link {
    /// Connects to a session.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn to(name: &str) -> Result<Link> {
        Ok(Link { socket: client::connect(name)?, incoming: Incoming::second() })
    }

    /// A second handle for sending, for another thread.
    ///
    /// # Errors
    /// The host's error.
    pub fn sender(&self) -> Result<Link> {
        Ok(Link { socket: self.socket.try_clone()?, incoming: Incoming::second() })
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the session has ended.
    pub fn send(&mut self, mut message: Value, body: &[u8]) -> Result<()> {
        message["lind"] = SECOND.into();
        wire::send_bytes(self.socket.as_fd(), message, body).context("cannot write to the session")
    }

    /// The next message.
    ///
    /// # Errors
    /// The error that it is; the end of the session.
    pub fn receive(&mut self) -> Result<Message> {
        loop {
            if let Some(message) = self.incoming.next().context("the session sent something else than a message")? {
                let text = |key: &str| message.value[key].as_str().map(str::to_owned);
                return match text("error") {
                    None => Ok(message),
                    Some(why) => Err(Refused { why, errno: text("errno") }.into()),
                };
            }
            let there = self.incoming.receive(self.socket.as_fd()).context("cannot read from the session")?;
            ensure!(there, "the session has ended");
        }
    }

    /// Sends a request, and returns its one answer.
    ///
    /// # Errors
    /// The error in the answer.
    pub fn ask(&mut self, message: Value) -> Result<Value> {
        self.send(message, &[])?;
        Ok(self.receive()?.value)
    }

    /// The directories of the host where commands of the session may have made links.
    ///
    /// # Errors
    /// The error in the answer.
    pub fn changed(&mut self) -> Result<Changed> {
        let hello = self.ask(serde_json::json!({"do": "hello"}))?;
        let volumes = hello["volumes"].as_array().context("the session does not say what its volumes are")?;
        let host = |volume: &Value| Some(PathBuf::from(OsString::from_vec(wire::bytes(volume)?)));
        let hosts: Option<Vec<_>> = volumes.iter().map(host).collect();
        Ok(Changed::new(hosts.context("the session does not say what its volumes are")?))
    }

    /// Sends a request, hands over what comes, and returns the last message.
    ///
    /// # Errors
    /// The error in the answer, or of `take`.
    pub fn parts(&mut self, message: Value, mut take: impl FnMut(Message) -> Result<()>) -> Result<Value> {
        self.send(message, &[])?;
        loop {
            let message = self.receive()?;
            if message.value["done"].as_bool() == Some(true) {
                return Ok(message.value);
            }
            take(message)?;
        }
    }

    /// Sends a request with bytes that are read meanwhile, and returns the answer.
    ///
    /// # Errors
    /// The error in the answer, or of the reader.
    pub fn upload(&mut self, mut message: Value, mut from: impl Read) -> Result<Value> {
        let mut piece = vec![0; PIECE];
        loop {
            let count = match from.read(&mut piece) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                count => count?,
            };
            message["more"] = (count > 0).into();
            self.send(message, piece.get(..count).unwrap_or_default())?;
            if count == 0 {
                return Ok(self.receive()?.value);
            }
            message = serde_json::json!({});
        }
    }
}
