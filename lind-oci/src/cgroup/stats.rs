//! The amounts that a control group uses, in the form of `runc events --stats`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::Group;

/// The numbers of a group.
pub fn of(group: &Group) -> Value {
    match &group.unified {
        Some(folder) => unified(folder),
        None => separate(group),
    }
}

fn text(folder: &Path, file: &str) -> Option<String> {
    std::fs::read_to_string(folder.join(file)).ok()
}

/// A number; the largest for `max`.
fn number(folder: &Path, file: &str) -> u64 {
    text(folder, file).map_or(0, |text| text.trim().parse().unwrap_or(if text.trim() == "max" { u64::MAX } else { 0 }))
}

/// Lines of a name and a number.
fn table(folder: &Path, file: &str) -> BTreeMap<String, u64> {
    let text = text(folder, file).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, number)| Some((name.to_owned(), number.trim().parse().ok()?)))
        .collect()
}

fn unified(folder: &Path) -> Value {
    let (cpu, memory, events) =
        (table(folder, "cpu.stat"), table(folder, "memory.stat"), table(folder, "memory.events"));
    let of = |table: &BTreeMap<String, u64>, name: &str| table.get(name).copied().unwrap_or(0);
    let nanoseconds = |name: &str| of(&cpu, name).saturating_mul(1000);
    let pids = number(folder, "pids.max");
    json!({
        "cpu": {
            "usage": {"total": nanoseconds("usage_usec"), "kernel": nanoseconds("system_usec"), "user": nanoseconds("user_usec")},
            "throttling": {"periods": of(&cpu, "nr_periods"), "throttledPeriods": of(&cpu, "nr_throttled"),
                "throttledTime": nanoseconds("throttled_usec")},
        },
        "memory": {
            "cache": of(&memory, "file"),
            "usage": {"limit": number(folder, "memory.max"), "usage": number(folder, "memory.current"),
                "max": number(folder, "memory.peak"), "failcnt": of(&events, "max")},
            "swap": {"limit": number(folder, "memory.swap.max"), "usage": number(folder, "memory.swap.current"), "failcnt": 0},
            "kernel": {"limit": 0, "failcnt": 0}, "kernelTCP": {"limit": 0, "failcnt": 0},
            "raw": memory,
        },
        "pids": {"current": number(folder, "pids.current"), "limit": if pids == u64::MAX { 0 } else { pids }},
        "blkio": {}, "hugetlb": {}, "intel_rdt": {}, "network_interfaces": null,
    })
}

fn separate(group: &Group) -> Value {
    let at = |controller: &str| group.of(controller).cloned().unwrap_or_default();
    let (account, cpu, memory, pids) = (at("cpuacct"), at("cpu"), at("memory"), at("pids"));
    let (throttled, raw, split) =
        (table(&cpu, "cpu.stat"), table(&memory, "memory.stat"), table(&account, "cpuacct.stat"));
    let of = |table: &BTreeMap<String, u64>, name: &str| table.get(name).copied().unwrap_or(0);
    // Ticks, of which the host has 100 in a second.
    let nanoseconds = |name: &str| of(&split, name).saturating_mul(10_000_000);
    let each = text(&account, "cpuacct.usage_percpu").unwrap_or_default();
    let each: Vec<u64> = each.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let limit = number(&pids, "pids.max");
    json!({
        "cpu": {
            "usage": {"total": number(&account, "cpuacct.usage"), "percpu": each, "kernel": nanoseconds("system"), "user": nanoseconds("user")},
            "throttling": {"periods": of(&throttled, "nr_periods"), "throttledPeriods": of(&throttled, "nr_throttled"),
                "throttledTime": of(&throttled, "throttled_time")},
        },
        "memory": {
            "cache": of(&raw, "cache"),
            "usage": {"limit": number(&memory, "memory.limit_in_bytes"), "usage": number(&memory, "memory.usage_in_bytes"),
                "max": number(&memory, "memory.max_usage_in_bytes"), "failcnt": number(&memory, "memory.failcnt")},
            "swap": {"limit": number(&memory, "memory.memsw.limit_in_bytes"), "usage": number(&memory, "memory.memsw.usage_in_bytes"),
                "failcnt": number(&memory, "memory.memsw.failcnt")},
            "kernel": {"limit": 0, "failcnt": 0}, "kernelTCP": {"limit": 0, "failcnt": 0},
            "raw": raw,
        },
        "pids": {"current": number(&pids, "pids.current"), "limit": if limit == u64::MAX { 0 } else { limit }},
        "blkio": {}, "hugetlb": {}, "intel_rdt": {}, "network_interfaces": null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_both_versions_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("cpu.stat", "usage_usec 5\nuser_usec 3\nsystem_usec 2\n");
        write("memory.current", "4096\n");
        write("memory.max", "max\n");
        write("pids.max", "7\n");
        let stats = unified(folder.path());
        assert_eq!(stats["cpu"]["usage"]["total"], 5000);
        assert_eq!(
            (&stats["memory"]["usage"]["usage"], &stats["memory"]["usage"]["limit"]),
            (&json!(4096), &json!(u64::MAX))
        );
        assert_eq!(stats["pids"]["limit"], 7);
        write("cpuacct.usage", "9\n");
        let separate = vec![("cpuacct".to_owned(), folder.path().to_owned())];
        let stats = of(&Group { unified: None, separate });
        assert_eq!((&stats["cpu"]["usage"]["total"], &stats["memory"]["usage"]["usage"]), (&json!(9), &json!(0)));
    }
}
