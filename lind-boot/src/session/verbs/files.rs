//! The commands on files of a session.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, Result};
use lind_kernel::text;
use serde_json::{Value, json};

use super::link::Link;
use crate::cli::verbs::{Cat, Files, Mkdir, Mv, Rm, Stat, Watch, Write};
use crate::failure::{self, Failure};
use crate::session::wire::{self, Message};

/// A path in a request.
pub fn path(path: &Path) -> Value {
    wire::word(path.as_os_str().as_bytes())
}

/// A name in an answer, for a terminal.
fn shown(name: &Value) -> String {
    text::shown(wire::bytes(name).unwrap_or_default())
}

fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).context("cannot write to standard output")
}

/// Prints files.
///
/// # Errors
/// When one cannot be read.
pub fn cat(cat: &Cat) -> Result<(), Failure> {
    let mut link = Link::to(&cat.name)?;
    for file in &cat.paths {
        let request = json!({"do": "read", "path": path(file), "count": i64::MAX});
        link.parts(request, |Message { body, .. }| print_bytes(&body))?;
    }
    Ok(())
}

/// Writes standard input to a file.
///
/// # Errors
/// When it cannot be written.
pub fn write(write: &Write) -> Result<(), Failure> {
    let verb = if write.append { "append" } else { "write" };
    let mut request = json!({"do": verb, "path": path(&write.path), "parents": write.parents, "create": write.new});
    request["mode"] = write.mode.into();
    Link::to(&write.name)?.upload(request, std::io::stdin().lock())?;
    Ok(())
}

/// Lists a directory.
///
/// # Errors
/// When it cannot be read.
pub fn list(name: &str, files: &Files, as_json: bool) -> Result<(), Failure> {
    let request =
        json!({"do": "list_files", "path": path(&files.path), "recursive": files.recursive, "count": 1_000_000});
    let mut entries: Vec<Value> = Vec::new();
    let end = Link::to(name)?.parts(request, |message| {
        entries.extend(message.value["entries"].as_array().cloned().unwrap_or_default());
        Ok(())
    })?;
    entries.sort_by_cached_key(|entry| wire::bytes(&entry["name"]));
    if as_json {
        failure::print(&text::json(&format!("{}\n", Value::Array(entries))))?;
    } else {
        let lines = entries.iter().map(|entry| if files.long { long(entry) } else { shown(&entry["name"]) + "\n" });
        failure::print(&lines.collect::<String>())?;
    }
    if end["more"].as_bool() == Some(true) {
        return Err(anyhow::anyhow!("{}: has more entries, which are not listed", files.path.display()).into());
    }
    Ok(())
}

fn long(entry: &Value) -> String {
    let kind = match entry["type"].as_str().unwrap_or_default() {
        "file" => '-',
        other => other.chars().next().unwrap_or('?'),
    };
    let mut line = format!(
        "{kind}{:04o} {:>5} {:>5} {:>12} {:>14.0} {}",
        entry["mode"].as_u64().unwrap_or_default(),
        entry["uid"].to_string(),
        entry["gid"].to_string(),
        entry["size"].to_string(),
        entry["mtime"].as_f64().unwrap_or_default(),
        shown(&entry["name"])
    );
    if !entry["target"].is_null() {
        let _ = write!(line, " -> {}", shown(&entry["target"]));
    }
    line.push('\n');
    line
}

/// Prints what files are.
///
/// # Errors
/// When one does not exist.
pub fn stat(stat: &Stat) -> Result<(), Failure> {
    let mut link = Link::to(&stat.name)?;
    for file in &stat.paths {
        let answer = link.ask(json!({"do": "stat", "path": path(file), "follow": stat.follow}))?;
        let entry = &answer["stat"];
        let line = if stat.json { text::json(&format!("{entry}\n")) } else { long(entry) };
        failure::print(&line)?;
    }
    Ok(())
}

/// Makes a directory.
///
/// # Errors
/// When it cannot be made.
pub fn mkdir(mkdir: &Mkdir) -> Result<(), Failure> {
    let mut request = json!({"do": "mkdir", "path": path(&mkdir.path), "parents": mkdir.parents});
    request["mode"] = mkdir.mode.into();
    Link::to(&mkdir.name)?.ask(request)?;
    Ok(())
}

/// Renames a file.
///
/// # Errors
/// When it cannot be renamed.
pub fn rename(mv: &Mv) -> Result<(), Failure> {
    let request = json!({"do": "rename", "path": path(&mv.from), "to": path(&mv.to), "create": mv.no_clobber});
    Link::to(&mv.name)?.ask(request)?;
    Ok(())
}

/// Removes files.
///
/// # Errors
/// When one cannot be removed.
pub fn remove(rm: &Rm) -> Result<(), Failure> {
    let mut link = Link::to(&rm.name)?;
    for file in &rm.paths {
        link.ask(json!({"do": "remove", "path": path(file), "recursive": rm.recursive, "missing_ok": rm.force}))?;
    }
    Ok(())
}

/// Prints changes until this process is ended.
///
/// # Errors
/// When the directory cannot be watched.
pub fn watch(watch: &Watch) -> Result<(), Failure> {
    let request = json!({"do": "watch", "path": path(&watch.path), "recursive": watch.recursive});
    Link::to(&watch.name)?.parts(request, |Message { value, .. }| {
        if value["event"].is_null() {
            return Ok(());
        }
        let line = match watch.json {
            true => text::json(&format!("{value}\n")),
            false => format!("{} {}\n", value["event"].as_str().unwrap_or_default(), shown(&value["name"])),
        };
        print_bytes(line.as_bytes())
    })?;
    Ok(())
}
