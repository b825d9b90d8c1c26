//! The amounts that a session uses, in the text format of Prometheus.

use std::fmt::Write as _;

use lind_kernel::text::is_seen;
use serde_json::Value;

/// A metric: its name, its kind, its description, and its place in the answer of the session.
type Metric = (&'static str, &'static str, &'static str, &'static str);

const METRICS: [Metric; 17] = [
    ("up_seconds", "gauge", "Time since the session began.", "/seconds"),
    ("commands", "gauge", "Commands that run.", "/commands"),
    ("cpu_seconds_total", "counter", "Processor time.", "/cpu/used"),
    ("cpu_limit_seconds", "gauge", "The limit of processor time.", "/cpu/limit"),
    ("memory_mapped_bytes", "gauge", "Memory that is mapped.", "/memory/used"),
    ("memory_limit_bytes", "gauge", "The limit of mapped memory.", "/memory/limit"),
    ("memory_resident_bytes", "gauge", "Memory that is in use.", "/memory/resident"),
    ("processes", "gauge", "Processes.", "/cages/used"),
    ("processes_limit", "gauge", "The limit of processes.", "/cages/limit"),
    ("threads", "gauge", "Threads.", "/threads/used"),
    ("threads_limit", "gauge", "The limit of threads.", "/threads/limit"),
    ("open_files", "gauge", "Open files.", "/files/used"),
    ("disk_bytes", "gauge", "Bytes written to files.", "/disk/used"),
    ("disk_limit_bytes", "gauge", "The limit of bytes written to files.", "/disk/limit"),
    ("io_read_bytes_total", "counter", "Bytes read from disks.", "/io/read"),
    ("io_written_bytes_total", "counter", "Bytes written to disks.", "/io/written"),
    ("denied_calls_total", "counter", "Calls that were denied.", "/denials"),
];

/// The text about a session. An amount that is not counted is left out.
pub fn text(answer: &Value) -> String {
    let mut text = String::new();
    let session = escaped(answer["name"].as_str().unwrap_or_default());
    for (name, kind, help, place) in METRICS {
        let Some(number) = answer.pointer(place).filter(|value| value.is_number()) else { continue };
        let _ = writeln!(
            text,
            "# HELP lind_session_{name} {help}\n# TYPE lind_session_{name} {kind}\nlind_session_{name}{{session=\"{session}\"}} {number}"
        );
    }
    text
}

/// The value of a label, escaped: it keeps to one line, and cannot control a terminal.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    text.chars().map(|c| if is_seen(c) { c } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_that_are_counted_are_samples() {
        let text =
            text(&json!({"name": "a\"b\\\n\u{1b}", "commands": 2, "cpu": {"used": 0.25, "limit": null}, "denials": 0}));
        let expected = "# HELP lind_session_commands Commands that run.\n# TYPE lind_session_commands gauge\n\
             lind_session_commands{session=\"a\\\"b\\\\\\n\u{fffd}\"} 2\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("cpu_seconds_total{") && !text.contains("cpu_limit"), "{text}");
        assert!(text.ends_with("} 0\n"), "{text}");
    }
}
