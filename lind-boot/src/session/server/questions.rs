//! Calls that wait for an answer, for clients that follow them and answer.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Server;
use super::second::is;
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
        let (open, happened) = (questions.open(), questions.happened());
        self.tell(number, &json!({"questions": open}));
        if let Some(client) = self.clients.get_mut(&number).filter(|_| is(value, "follow")) {
            client.asked = Some(happened);
        }
        Ok(())
    }

    /// Answers a question.
    ///
    /// # Errors
    /// When it does not wait any more.
    pub(super) fn answer_question(&self, value: &Value) -> Result<()> {
        let number = value["number"].as_u64().context("number: expected the number of a question")?;
        let how = How::named(value["answer"].as_str().unwrap_or_default())?;
        self.questions()?.answer(number, how)
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
