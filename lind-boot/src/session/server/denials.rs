//! Denied calls, for clients that list or follow them, and for the end of a command.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Server;
use super::second::is;
use crate::launch::denials::kept::{Kept, Part};

/// The most denials of a message, and of the end of a command.
const MOST: usize = 256;
const OF_END: usize = 16;

/// A client that follows denials: what it has got.
pub struct Watch {
    after: u64,
    command: Option<u32>,
}

impl Server {
    fn kept(&self) -> Result<&Kept> {
        self.about.denials.kept().context("this session keeps no denials")
    }

    /// Lists denials, and lets the client follow if it wants to.
    ///
    /// # Errors
    /// A mistake in the request.
    pub(super) fn list_denials(&mut self, number: u64, value: &Value) -> Result<()> {
        let after = value["since"].as_u64().unwrap_or(0);
        let most = value["count"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(MOST).min(MOST);
        let command = Some(&value["id"]).filter(|id| !id.is_null());
        let command = command.map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok()).context("id")).transpose()?;
        let part = self.kept()?.since(after, command, most);
        let mut answer = message(&part);
        answer["total"] = self.about.denials.count().into();
        self.tell(number, &answer);
        if let Some(client) = self.clients.get_mut(&number).filter(|_| is(value, "follow")) {
            client.watches = Some(Watch { after: part.last, command });
        }
        Ok(())
    }

    /// Ends the following of a client. False if it follows no denials.
    pub(super) fn ends_watch(&mut self, number: u64) -> bool {
        let watched = self.clients.get_mut(&number).and_then(|client| client.watches.take());
        if watched.is_some() {
            self.tell(number, &json!({"done": true}));
        }
        watched.is_some()
    }

    /// Sends clients the denials that they have not got.
    pub(super) fn tell_denials(&mut self) {
        let follows = self.clients.iter().filter(|(_, client)| client.watches.is_some());
        let watchers: Vec<u64> = follows.map(|(&client, _)| client).collect();
        if watchers.is_empty() {
            return;
        }
        if let Ok(kept) = self.kept() {
            kept.await_next();
        }
        watchers.into_iter().for_each(|client| self.tell_denials_to(client));
    }

    fn tell_denials_to(&mut self, number: u64) {
        loop {
            let Some(client) = self.clients.get(&number).filter(|client| client.outgoing.is_empty()) else { return };
            let Some((watch, kept)) = client.watches.as_ref().zip(self.about.denials.kept()) else { return };
            let part = kept.since(watch.after, watch.command, MOST);
            let Some(watch) = self.clients.get_mut(&number).and_then(|client| client.watches.as_mut()) else { return };
            watch.after = part.last;
            if part.denials.is_empty() {
                return;
            }
            self.tell(number, &message(&part));
        }
    }

    /// The denials of a command that has ended.
    pub(super) fn denials_of(&self, command: u32) -> (u64, Vec<Value>) {
        let Some(kept) = self.about.denials.kept() else { return (0, Vec::new()) };
        let count = kept.count(command);
        kept.forget(command);
        (count, kept.since(0, Some(command), OF_END).denials)
    }
}

fn message(part: &Part) -> Value {
    json!({"denials": part.denials, "last": part.last, "lost": part.lost, "more": part.more})
}
