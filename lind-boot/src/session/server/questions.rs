//! Calls that wait for an answer, for clients that follow them and answer.

use anyhow::{Context, Result};
use lind_abi::Errno;
use serde_json::{Value, json};

use super::Server;
use super::second::is;
use crate::failure::FAILED;
use crate::launch::denials::questions::{How, Questions};

impl Server {
    fn questions(&self) -> Result<&Questions> {
        self.about.denials.questions().context("no call waits for an answer here: it was started without --ask")
    }

    /// Lists the calls that wait, and lets the client follow if it wants to.
    ///
    /// # Errors
    /// When no call waits.
    pub(super) fn list_questions(&mut self, number: u64, value: &Value) -> Result<()> {
        let questions = self.questions()?;
        let (open, happened) = questions.open();
        self.tell(number, &open);
        if let Some(client) = self.clients.get_mut(&number).filter(|_| is(value, "follow")) {
            client.asked = Some(happened);
        }
        Ok(())
    }

    /// Answers a question.
    ///
    /// # Errors
    /// When no such answer can be given.
    pub(super) fn answer_question(&mut self, client: u64, value: &Value) -> Result<()> {
        let number = value["number"].as_u64().context("number: expected the number of a question")?;
        let how = How::named(value["answer"].as_str().unwrap_or_default())?;
        if self.questions()?.answer(number, how) {
            self.tell(client, &json!({"done": true}));
        } else {
            let why = format!("question {number} does not wait for an answer, or not any more");
            self.refuse_with(client, &why, FAILED, Errno::ESRCH);
        }
        Ok(())
    }

    /// Ends the following of a client. False if it follows no questions.
    pub(super) fn ends_questions(&mut self, number: u64) -> bool {
        let followed = self.clients.get_mut(&number).and_then(|client| client.asked.take());
        if followed.is_some() {
            self.tell(number, &json!({"done": true}));
        }
        followed.is_some()
    }

    /// Sends clients the events since the last ones that they got.
    pub(super) fn tell_questions(&mut self) {
        let follows = self.clients.iter().filter(|(_, client)| client.outgoing.is_empty());
        let behind: Vec<_> = follows.filter_map(|(&number, client)| Some((number, client.asked?))).collect();
        if behind.is_empty() {
            return;
        }
        for (number, after) in behind {
            let Ok(questions) = self.questions() else { return };
            questions.await_next();
            let (events, happened) = questions.since(after);
            events.iter().for_each(|event| self.tell(number, event));
            if let Some(client) = self.clients.get_mut(&number).filter(|client| client.asked.is_some()) {
                client.asked = Some(happened);
            }
        }
    }
}
