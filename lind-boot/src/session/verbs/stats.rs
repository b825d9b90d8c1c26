//! `session stats`.

use std::fmt::Write as _;

use lind_kernel::text;
use serde_json::{Value, json};

use super::link::Link;
use super::prometheus;
use crate::cli::verbs::Stats;
use crate::failure::{self, Failure};

/// How an amount is shown.
type Form = fn(&Value) -> String;

/// The rows: what it is, the object, the keys of the amount and its peak, and the form.
const ROWS: [(&str, &str, [&str; 2], Form); 10] = [
    ("processor time", "cpu", ["used", "peak"], time),
    ("memory mapped", "memory", ["used", "peak"], size),
    ("memory touched", "memory", ["resident", "resident_peak"], size),
    ("processes", "cages", ["used", "peak"], count),
    ("threads", "threads", ["used", "peak"], count),
    ("open files", "files", ["used", "peak"], count),
    ("written to files", "disk", ["used", "peak"], size),
    ("read from disks", "io", ["read", ""], size),
    ("written to disks", "io", ["written", ""], size),
    ("denied calls", "", ["denials", ""], count),
];

/// Prints what a session uses, and its limits.
///
/// # Errors
/// When the session does not exist.
pub fn print(stats: &Stats) -> Result<(), Failure> {
    let answer = Link::to(&stats.name)?.ask(json!({"do": "stats"}))?;
    if stats.json {
        return failure::print(&text::json(&format!("{answer}\n")));
    }
    failure::print(&if stats.prometheus { prometheus::text(&answer) } else { table(&answer) })
}

fn table(answer: &Value) -> String {
    let mut out = format!(
        "session {}, up {}, commands that run: {}\n{:<18} {:>12} {:>12} {:>12}\n",
        text::shown(answer["name"].as_str().unwrap_or_default()),
        time(&answer["seconds"]),
        answer["commands"],
        "RESOURCE",
        "USED",
        "MOST",
        "LIMIT"
    );
    for (what, object, [used, peak], form) in ROWS {
        let of = if object.is_empty() { answer } else { &answer[object] };
        // The limit of memory is one of what is mapped.
        let limit = if used == "resident" { &Value::Null } else { &of["limit"] };
        let [used, peak, limit] = [&of[used], &of[peak], limit].map(form);
        let _ = writeln!(out, "{what:<18} {used:>12} {peak:>12} {limit:>12}");
    }
    out
}

fn count(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".to_owned(), |count| count.to_string())
}

fn time(value: &Value) -> String {
    value.as_f64().map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.2} s"))
}

fn size(value: &Value) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a size with a unit has a few digits")]
    let Some(mut size) = value.as_u64().map(|size| size as f64) else { return "-".to_owned() };
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if size >= 1024.0 {
            (size, unit) = (size / 1024.0, larger);
        }
    }
    if unit == "B" { format!("{size} B") } else { format!("{size:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (bytes, text) in
            [(0_u64, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (4 << 30, "4.0 GiB"), (9 << 40, "9.0 TiB")]
        {
            assert_eq!(size(&json!(bytes)), text);
        }
        assert_eq!(size(&Value::Null), "-");
    }
}
