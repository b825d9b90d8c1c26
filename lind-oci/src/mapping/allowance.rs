//! The limits that a container sees of itself, in its /sys/fs/cgroup. The host enforces them by its
//! control groups.

use serde_json::{Value, json};

use crate::config::Resources;

/// The period of a limit of processor time where there is none, in microseconds.
const PERIOD: u64 = 100_000;

/// The limits as lind-boot reads them. A limit that is missing, or has no end, is null.
pub fn of(resources: &Resources) -> Value {
    let positive =
        |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok()).filter(|&number| number > 0);
    let unified = |file: &str| resources.unified.get(file).map(|text| text.trim());
    let number = |file: &str| unified(file).and_then(|text| text.parse::<u64>().ok());
    let period = resources.cpu.period.filter(|&period| period > 0).unwrap_or(PERIOD);
    let cpu = unified("cpu.max").and_then(quota).or_else(|| positive(resources.cpu.quota).map(|quota| (quota, period)));
    json!({
        "memory": number("memory.max").or_else(|| positive(resources.memory.limit)),
        "cpu": cpu,
        "pids": number("pids.max").or_else(|| positive(resources.pids.limit)),
    })
}

/// The two numbers of a file cpu.max.
fn quota(text: &str) -> Option<(u64, u64)> {
    let (quota, period) = text.split_once(' ').unwrap_or((text, ""));
    Some((quota.parse().ok()?, period.parse().unwrap_or(PERIOD)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_all_forms_are_shown() {
        let of = |text: &str| of(&Resources::parse(text.as_bytes()).unwrap());
        let text = r#"{"memory": {"limit": 5}, "cpu": {"quota": 7, "period": 9}, "pids": {"limit": 3}}"#;
        assert_eq!(of(text), json!({"memory": 5, "cpu": [7, 9], "pids": 3}));
        let text = r#"{"memory": {"limit": -1}, "cpu": {"quota": 7}, "pids": {"limit": 0}}"#;
        assert_eq!(of(text), json!({"memory": null, "cpu": [7, PERIOD], "pids": null}));
        let text = r#"{"unified": {"memory.max": "6", "cpu.max": "8 10", "pids.max": "max"}}"#;
        assert_eq!(of(text), json!({"memory": 6, "cpu": [8, 10], "pids": null}));
    }
}
