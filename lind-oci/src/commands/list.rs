//! `state`, `list` and `ps`.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::{Context, print};
use crate::cli::{List, Ps, Shape};
use crate::state::Status;

/// Prints the state of a container.
///
/// # Errors
/// When there is no such container.
pub fn state(context: &Context<'_>, id: &str) -> Result<()> {
    let container = context.states.find(id)?;
    print(&format!("{:#}\n", container.described(container.status())))
}

/// Lists the containers.
///
/// # Errors
/// When their states cannot be read.
pub fn list(context: &Context<'_>, list: &List) -> Result<()> {
    let all = context.states.all()?;
    let described: Vec<Value> = all.iter().map(|container| container.described(container.status())).collect();
    if list.quiet {
        return print(&all.iter().map(|container| format!("{}\n", container.facts.id)).collect::<String>());
    }
    if list.format == Shape::Json {
        return print(&format!("{}\n", Value::Array(described)));
    }
    let mut text = format!("{:<24} {:>8} {:<10} {:<40} CREATED\n", "ID", "PID", "STATUS", "BUNDLE");
    for one in &described {
        let word = |key: &str| one[key].as_str().unwrap_or_default();
        let _ = writeln!(
            text,
            "{:<24} {:>8} {:<10} {:<40} {}",
            word("id"),
            one["pid"].to_string(),
            word("status"),
            word("bundle"),
            word("created")
        );
    }
    print(&text)
}

/// Lists the processes of a container, as the host numbers them.
///
/// # Errors
/// When there is no such container, or it does not run.
pub fn processes(context: &Context<'_>, ps: &Ps) -> Result<()> {
    let container = context.states.find(&ps.id)?;
    let Some(runner) = container.runner() else { bail!("container not running") };
    let group = container.facts.group.clone().unwrap_or_default();
    let mut all = group.processes(runner.pid);
    if all.is_empty() {
        all.push(runner.pid);
    }
    if ps.format == Shape::Json {
        return print(&format!("{}\n", json!(all)));
    }
    let mut text = format!("{:>8} {:<10} COMMAND\n", "PID", "STATE");
    for pid in all {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let state = if container.status() == Status::Paused { "paused" } else { "running" };
        let _ = writeln!(text, "{pid:>8} {state:<10} {}", words.trim_end().escape_debug());
    }
    print(&text)
}
