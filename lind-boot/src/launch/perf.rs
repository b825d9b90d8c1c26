//! The report that --perf prints at exit.

use std::fmt::Write;
use std::time::Duration;

use lind_engine::syscall::perf::{Key, Perf, Times};
use lind_kernel::text;
use serde_json::{Value, json};

use crate::cli::PerfFormat;

/// The report, on one line per call for people, or as one JSON array.
pub fn report(perf: &Perf, format: PerfFormat) -> String {
    let mut rows = perf.rows();
    // Within a cage, the calls that took most time come first.
    rows.sort_by_key(|(key, times)| (key.cage, std::cmp::Reverse(times.total)));
    match format {
        PerfFormat::Text => as_text(perf, &rows),
        PerfFormat::Json => as_json(perf, &rows),
    }
}

fn as_text(perf: &Perf, rows: &[(Key, Times)]) -> String {
    let mut table = format!(
        "{:<28} {:<28} {:<26} {:>10} {:>14} {:>10} {:>10} {:>12}\n",
        "CAGE", "HANDLED BY", "CALL", "COUNT", "TOTAL (us)", "MEAN (ns)", "MIN (ns)", "MAX (ns)"
    );
    for (key, times) in rows {
        let program = text::shown(perf.program(key.cage).unwrap_or_default());
        let cage = format!("{} {program}", key.cage.0);
        writeln!(
            table,
            "{cage:<28} {:<28} {:<26} {:>10} {:>14.1} {:>10} {:>10} {:>12}",
            route(perf, key),
            call(key.nr),
            times.count,
            times.total.as_secs_f64() * 1e6,
            mean(times).as_nanos(),
            times.least.as_nanos(),
            times.most.as_nanos(),
        )
        .expect("writing to a string");
    }
    table
}

fn as_json(perf: &Perf, rows: &[(Key, Times)]) -> String {
    let rows: Vec<Value> = rows
        .iter()
        .map(|(key, times)| {
            json!({
                "cage": key.cage.0, "program": perf.program(key.cage), "grate": key.grate.map(|id| id.0),
                "number": key.nr, "call": call(key.nr), "count": times.count, "total_ns": nanoseconds(times.total),
                "min_ns": nanoseconds(times.least), "max_ns": nanoseconds(times.most),
            })
        })
        .collect();
    text::json(&format!("{}\n", Value::Array(rows)))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn mean(times: &Times) -> Duration {
    let count = u32::try_from(times.count).unwrap_or(u32::MAX).max(1);
    times.total / count
}

fn route(perf: &Perf, key: &Key) -> String {
    match key.grate {
        None => "kernel".to_owned(),
        Some(grate) => format!("{} {}", grate.0, text::shown(perf.program(grate).unwrap_or_default())),
    }
}

fn call(nr: u32) -> String {
    lind_abi::syscall(nr).map_or_else(|| format!("number {nr}"), |row| row.name.to_owned())
}
