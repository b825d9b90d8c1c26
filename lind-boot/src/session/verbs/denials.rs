//! `session denials`.

use anyhow::Context;
use lind_kernel::text;
use serde_json::{Value, json};

use super::link::Link;
use super::questions;
use crate::cli::policy::Questions;
use crate::cli::verbs::Denials;
use crate::failure::{self, Failure};

/// Prints the denied calls of a session, and those to come if they are wanted.
///
/// # Errors
/// When the session does not exist, or ends.
pub fn list(denials: &Denials) -> Result<(), Failure> {
    let mut link = Link::to(&denials.name)?;
    if denials.follow {
        let questions = Questions { name: denials.name.clone(), follow: true, json: denials.json };
        // A session without --ask has no questions.
        std::thread::spawn(move || questions::follow(&questions));
    }
    let mut since = denials.since;
    loop {
        let request = json!({"do": "denials", "since": since, "id": denials.id, "follow": denials.follow});
        let answer = link.ask(request)?;
        print(&answer, denials.json)?;
        if denials.follow {
            break;
        }
        if answer["more"].as_bool() != Some(true) {
            return Ok(());
        }
        since = answer["last"].as_u64().context("the session does not number its denials")?;
    }
    loop {
        print(&link.receive()?.value, denials.json)?;
    }
}

fn print(answer: &Value, as_json: bool) -> Result<(), Failure> {
    let mut shown = String::new();
    if let Some(lost) = answer["lost"].as_u64().filter(|&lost| lost > 0 && !as_json) {
        shown.push_str(&format!("({lost} earlier denials are not kept any more)\n"));
    }
    for denial in answer["denials"].as_array().into_iter().flatten() {
        if as_json {
            shown.push_str(&text::json(&format!("{denial}\n")));
            continue;
        }
        let times = denial["times"].as_u64().filter(|&times| times > 1);
        let times = times.map(|times| format!(" ({times} times)")).unwrap_or_default();
        let line = text::shown(denial["message"].as_str().unwrap_or_default());
        shown.push_str(&format!("{} {line}{times}\n", denial["id"]));
    }
    failure::print(&shown)
}
