//! `session questions` and `session answer`: calls that wait until somebody says whether they are
//! denied.

use std::io::{BufRead, IsTerminal, stdin, stdout};

use anyhow::{Context, Result};
use lind_kernel::text;
use serde_json::{Value, json};

use super::link::Link;
use crate::cli::policy::{Answer, Questions};
use crate::failure::{self, Failure};

/// The answers at a terminal: a letter, the name, and the effect.
const ANSWERS: [(&str, &str, &str); 4] = [
    ("o", "once", "allow it once"),
    ("p", "program", "and again for this program"),
    ("s", "session", "and for the session"),
    ("n", "no", "deny it"),
];

/// Lists the calls that wait, or follows them. At a terminal it asks about each.
///
/// # Errors
/// When the session does not exist, or ends.
pub fn follow(questions: &Questions) -> Result<(), Failure> {
    let mut link = Link::to(&questions.name)?;
    let answer = link.ask(json!({"do": "questions", "follow": questions.follow}))?;
    let asks = questions.follow && !questions.json && stdin().is_terminal() && stdout().is_terminal();
    for question in answer["questions"].as_array().into_iter().flatten() {
        show(question, questions, asks)?;
    }
    if !questions.follow {
        return Ok(());
    }
    loop {
        let event = link.receive()?.value;
        if event["question"].is_object() {
            show(&event["question"], questions, asks)?;
        } else if questions.json {
            failure::print(&text::json(&format!("{event}\n")))?;
        }
    }
}

fn show(question: &Value, how: &Questions, asks: bool) -> Result<(), Failure> {
    if how.json {
        return failure::print(&text::json(&format!("{question}\n")));
    }
    failure::print(&described(question))?;
    if asks && let Err(why) = ask(&how.name, question) {
        failure::print(&format!("{why:#}\n"))?;
    }
    Ok(())
}

/// A line about a call that waits. A guest may have chosen the texts in it.
fn described(question: &Value) -> String {
    let part = |key: &str| text::shown(question[key].as_str().unwrap_or_default());
    let (program, mut what, rule) = (part("program"), part("arguments"), part("rule"));
    let about = part("about");
    if !what.ends_with(&about) {
        what += &format!(" ({about})");
    }
    let left = question["seconds"].as_f64().unwrap_or_default();
    let (number, cage) = (&question["number"], &question["cage"]);
    format!("{number} waits for {left:.0} s: {program} ({cage}): {what}: {rule}\n")
}

/// Asks at the terminal, and sends the answer.
fn ask(name: &str, question: &Value) -> Result<()> {
    let choices: Vec<_> = ANSWERS.iter().map(|(letter, _, effect)| format!("{letter} = {effect}")).collect();
    loop {
        failure::print(&format!("  {}? ", choices.join(", "))).map_err(|failed| failed.reason)?;
        let mut line = String::new();
        if stdin().lock().read_line(&mut line)? == 0 {
            return Ok(());
        }
        let said = line.trim();
        if let Some((_, answer, _)) = ANSWERS.iter().find(|(letter, answer, _)| said == *letter || said == *answer) {
            let number = question["number"].as_u64().context("the session does not number its questions")?;
            return send(name, number, answer);
        }
    }
}

/// Answers a question.
///
/// # Errors
/// When it does not wait any more.
pub fn answer(answer: &Answer) -> Result<(), Failure> {
    Ok(send(&answer.name, answer.number, &answer.answer)?)
}

fn send(name: &str, number: u64, answer: &str) -> Result<()> {
    Link::to(name)?.ask(json!({"do": "answer", "number": number, "answer": answer})).map(drop)
}
