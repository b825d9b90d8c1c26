//! Prints the findings as a table and as JSON.

use std::fmt::Write as _;

use lind_kernel::text;
use serde_json::{Map, Value, json};

use super::host::Fact;
use super::trials::Trial;
use super::{Findings, Outcome, Wall};

/// Facts alone.
pub fn text_of(facts: &[Fact]) -> String {
    let mut text = String::new();
    for fact in facts {
        let _ = writeln!(text, "{:<18} {}", fact.name, text::shown(&fact.value));
        if let Some(advice) = &fact.advice {
            let _ = writeln!(text, "{:<18}   {}", "", text::shown(advice));
        }
    }
    text
}

/// The table.
pub fn text(findings: &Findings) -> String {
    let mut text = text_of(&findings.facts);
    let _ = write!(text, "\n{:<28}", "tried");
    for wall in Wall::ALL {
        let _ = write!(text, " {:<10}", wall.name());
    }
    text.truncate(text.trim_end().len());
    for trial in Trial::ALL {
        let mut row = format!("\n{:<28}", trial.says());
        for wall in Wall::ALL {
            let _ = write!(row, " {:<10}", cell(findings.outcomes[&(trial, wall)]));
        }
        text.push_str(row.trim_end());
    }
    text.push_str("\n\n");
    if findings.less.is_empty() {
        text.push_str("Everything that is promised holds.\n");
        return text;
    }
    text.push_str("Less than promised:\n");
    for (what, advice) in &findings.less {
        let _ = writeln!(text, "  {}\n    {}", text::shown(what), text::shown(advice));
    }
    text
}

fn cell(outcome: Outcome) -> String {
    match outcome {
        Outcome::NotPromised => "-".into(),
        Outcome::Refused(_) => "refused".into(),
        Outcome::Allowed => "ALLOWED".into(),
        Outcome::Unknown => "not tried".into(),
    }
}

fn json_of(facts: &[Fact]) -> Vec<Value> {
    let one = |fact: &Fact| json!({"name": fact.name, "value": fact.value, "advice": fact.advice, "holds": !fact.less});
    facts.iter().map(one).collect()
}

/// The JSON about a node.
pub fn json_of_node(facts: &[Fact]) -> String {
    let all = json!({"holds": !facts.iter().any(|fact| fact.less), "node": json_of(facts)});
    text::json(&format!("{all:#}\n"))
}

/// The JSON.
pub fn json(findings: &Findings) -> String {
    let mut trials = Map::new();
    for trial in Trial::ALL {
        let of_walls = Wall::ALL.map(|wall| (wall.name().to_owned(), outcome(findings.outcomes[&(trial, wall)])));
        trials.insert(trial.name().to_owned(), Value::Object(of_walls.into_iter().collect()));
    }
    let less: Vec<Value> = findings.less.iter().map(|(what, advice)| json!({"what": what, "advice": advice})).collect();
    let all =
        json!({"holds": findings.less.is_empty(), "host": json_of(&findings.facts), "trials": trials, "less": less});
    text::json(&format!("{all:#}\n"))
}

/// The outcome as JSON; null if the wall does not promise to refuse the trial.
fn outcome(outcome: Outcome) -> Value {
    match outcome {
        Outcome::NotPromised => Value::Null,
        Outcome::Refused(error) => json!({"refused": true, "error": lind_abi::Errno::from_raw(error).to_string()}),
        Outcome::Allowed => json!({"refused": false}),
        Outcome::Unknown => json!({"refused": null}),
    }
}
