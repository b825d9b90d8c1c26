//! `lind-boot syscalls`: the table, for people and programs.

use anyhow::Result;
use lind_abi::{Kind, MISSING, SYSCALLS, Syscall};
use serde_json::{Value, json};

use crate::cli::tools::Syscalls;
use crate::failure::{self, Failure};

/// Prints the table.
pub fn print(options: &Syscalls) -> std::result::Result<(), Failure> {
    let mut rows: Vec<_> = SYSCALLS.iter().chain(MISSING).collect();
    rows.sort_by_key(|row| row.nr);
    let text = if options.json { as_json(&rows)? } else { as_text(&rows) };
    failure::print(&text)
}

fn as_text(rows: &[&Syscall]) -> String {
    let mut text = String::new();
    for row in rows {
        let args: Vec<_> = row.args.iter().map(|(name, _)| *name).collect();
        let state =
            if row.implemented { String::new() } else { format!("missing ({})", lind_abi::absent(row.nr).name()) };
        let call = format!("{}({})", row.name, args.join(", "));
        text += format!("{:>4}  {:<8} {call:<64} {state}", row.nr, row.area).trim_end();
        text.push('\n');
        for note in row.notes {
            text += &format!("{:15}{note}\n", "");
        }
    }
    text
}

fn as_json(rows: &[&Syscall]) -> Result<String> {
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            let args: Vec<_> =
                row.args.iter().map(|(name, kind)| json!({ "name": name, "kind": kind_name(*kind) })).collect();
            let notes: Vec<_> = row.notes.iter().map(|note| note.trim()).collect();
            json!({
                "number": row.nr, "name": row.name, "area": row.area, "args": args, "result": kind_name(row.ret),
                "implemented": row.implemented, "notes": notes,
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&rows)? + "\n")
}

fn kind_name(kind: Kind) -> String {
    match kind {
        Kind::In(layout) => format!("in {}", layout.name),
        Kind::Out(layout) => format!("out {}", layout.name),
        Kind::InOut(layout) => format!("inout {}", layout.name),
        Kind::Flags(names) | Kind::Value(names) => names.name.to_owned(),
        plain => format!("{plain:?}").to_lowercase(),
    }
}
