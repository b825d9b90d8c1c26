//! `session ps` and `session kill`.

use std::fmt::Write as _;

use anyhow::Result;
use lind_kernel::text;
use serde_json::{Value, json};

use super::link::Link;
use crate::cli::verbs::{Kill, Ps};
use crate::failure::{self, Failure};

/// Lists commands.
///
/// # Errors
/// When the session does not exist.
pub fn list(ps: &Ps) -> Result<(), Failure> {
    let list = Link::to(&ps.name)?.ask(json!({"do": "list"}))?;
    let commands = list["commands"].as_array().cloned().unwrap_or_default();
    let shown: Vec<Value> = commands.into_iter().filter(|command| ps.all || command["ended"].is_null()).collect();
    if ps.json {
        return failure::print(&text::json(&format!("{}\n", Value::Array(shown))));
    }
    let mut out = format!("{:>6} {:>8} {:>10} {:<12} COMMAND\n", "ID", "PID", "SECONDS", "STATE");
    for command in shown {
        let seconds = command["seconds"].as_f64().unwrap_or_default();
        let line = text::shown(command["line"].as_str().unwrap_or_default());
        let _ = writeln!(
            out,
            "{:>6} {:>8} {seconds:>10.1} {:<12} {line}",
            command["id"].to_string(),
            command["pid"].to_string(),
            state(&command)
        );
    }
    failure::print(&out)
}

fn state(command: &Value) -> String {
    let ended = &command["ended"];
    match (ended["status"].as_u64(), ended["signal"].as_u64()) {
        (Some(status), _) => format!("exited {status}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) if command["detached"].as_bool() == Some(true) => "detached".to_owned(),
        (None, None) => "runs".to_owned(),
    }
}

/// Sends a signal.
///
/// # Errors
/// When the session or a command does not exist.
pub fn kill(kill: &Kill) -> Result<(), Failure> {
    let mut link = Link::to(&kill.name)?;
    for id in &kill.ids {
        link.ask(json!({"do": "signal", "signal": kill.signal, "id": id, "group": kill.group}))?;
    }
    Ok(())
}
