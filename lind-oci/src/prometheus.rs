//! The amounts that containers use, in the text format of Prometheus.

use std::fmt::Write as _;

use serde_json::Value;

use crate::state::Facts;

/// The values of the labels of a container. Its user has chosen them.
pub struct Labels {
    /// The container's.
    pub id: String,
    /// The labels of the pod, from its annotations.
    pub pod: [Option<String>; 3],
}

/// The names of the labels of a pod.
const OF_POD: [&str; 3] = ["namespace", "pod", "container"];

/// The annotations that have them, by containerd and by CRI-O.
const ANNOTATIONS: [[&str; 2]; 3] = [
    ["io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace"],
    ["io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"],
    ["io.kubernetes.cri.container-name", "io.kubernetes.container.name"],
];

impl Labels {
    /// The labels of a container.
    pub fn of(facts: &Facts) -> Labels {
        let value = |names: [&str; 2]| names.iter().find_map(|name| facts.annotations.get(*name)).cloned();
        Labels { id: facts.id.clone(), pod: ANNOTATIONS.map(value) }
    }
}

/// A metric: its name, its kind, its description, its place in the statistics, and the number by
/// which it is divided.
type Metric = (&'static str, &'static str, &'static str, &'static str, f64);

const METRICS: [Metric; 12] = [
    ("cpu_usage_seconds_total", "counter", "Processor time.", "/cpu/usage/total", 1e9),
    ("cpu_system_seconds_total", "counter", "Processor time in the kernel.", "/cpu/usage/kernel", 1e9),
    (
        "cpu_throttled_periods_total",
        "counter",
        "Periods in which it had to wait.",
        "/cpu/throttling/throttledPeriods",
        1.0,
    ),
    ("cpu_throttled_seconds_total", "counter", "Time in which it had to wait.", "/cpu/throttling/throttledTime", 1e9),
    ("memory_usage_bytes", "gauge", "Memory in use, with cached files.", "/memory/usage/usage", 1.0),
    ("memory_max_usage_bytes", "gauge", "The most memory that was in use.", "/memory/usage/max", 1.0),
    ("memory_limit_bytes", "gauge", "The limit of memory; +Inf without one.", "/memory/usage/limit", 1.0),
    ("memory_failures_total", "counter", "How often the limit was hit.", "/memory/usage/failcnt", 1.0),
    ("memory_cache_bytes", "gauge", "Cached files.", "/memory/cache", 1.0),
    ("memory_swap_bytes", "gauge", "Swap in use.", "/memory/swap/usage", 1.0),
    ("tasks", "gauge", "Threads of the host.", "/pids/current", 1.0),
    ("tasks_limit", "gauge", "The limit of threads; 0 without one.", "/pids/limit", 1.0),
];

/// The text about containers, each with its statistics.
pub fn text(all: &[(Labels, Value)]) -> String {
    let mut text = String::new();
    for (name, kind, help, place, unit) in METRICS {
        let samples: Vec<(&Labels, &Value)> =
            all.iter().filter_map(|(labels, stats)| Some((labels, stats.pointer(place)?))).collect();
        if samples.is_empty() {
            continue;
        }
        let _ = writeln!(text, "# HELP lind_container_{name} {help}\n# TYPE lind_container_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "lind_container_{name}{{{labels}}} {}", number(value, unit));
        }
    }
    text
}

fn number(value: &Value, unit: f64) -> String {
    match value.as_u64() {
        Some(u64::MAX) => "+Inf".to_owned(),
        // Whole numbers are exact.
        Some(number) if unit <= 1.0 => number.to_string(),
        #[expect(clippy::cast_precision_loss, reason = "a counter of nanoseconds reaches 2^53 after 100 days")]
        Some(number) => format!("{}", number as f64 / unit),
        None => "NaN".to_owned(),
    }
}

impl std::fmt::Display for Labels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "id=\"{}\"", escaped(&self.id))?;
        let of_pod = OF_POD.iter().zip(&self.pod).filter_map(|(name, value)| Some((name, value.as_ref()?)));
        of_pod.into_iter().try_for_each(|(name, value)| write!(f, ",{name}=\"{}\"", escaped(value)))
    }
}

/// The value of a label, escaped: it keeps to one line, and cannot control a terminal.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    text.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn samples_are_grouped_and_labels_are_escaped() {
        let of = |id: &str, used: u64| {
            let labels = Labels { id: id.to_owned(), pod: [None, Some("a\"b\\c\nd".to_owned()), None] };
            (
                labels,
                json!({"memory": {"usage": {"usage": used, "limit": u64::MAX}}, "cpu": {"usage": {"total": 1_500_000_000_u64}}}),
            )
        };
        let text = text(&[of("one", 5), of("two", 6)]);
        let expected = "# TYPE lind_container_memory_usage_bytes gauge\n\
             lind_container_memory_usage_bytes{id=\"one\",pod=\"a\\\"b\\\\c\\nd\"} 5\n\
             lind_container_memory_usage_bytes{id=\"two\",pod=\"a\\\"b\\\\c\\nd\"} 6\n";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("_cpu_usage_seconds_total{id=\"one\",pod=\"a\\\"b\\\\c\\nd\"} 1.5\n"), "{text}");
        assert!(text.contains("limit_bytes{id=\"two\",pod=\"a\\\"b\\\\c\\nd\"} +Inf\n"), "{text}");
        assert_eq!(text.matches("# TYPE").count(), 3);
        assert!(super::text(&[]).is_empty());
    }
}
