//! The tree of /sys: processors, memory and interfaces, as far as programs ask there how many they
//! may use. [`cgroup`] has the limits in /sys/fs/cgroup.
//!
//! The processors are those that the runner may use, by the host's numbers. How they share cores is
//! not known: each counts as a core of one package.

use std::fmt::Write;

use lind_abi::Result;

use super::system::{free_memory, total_memory};
use super::{Entry, Subject, What, cgroup};

const fn text(name: &'static str, make: fn(&Subject<'_>) -> Result<Vec<u8>>) -> Entry {
    Entry { name, mode: 0o444, what: What::Text(make) }
}

const fn folder(name: &'static str, entries: &'static [Entry]) -> Entry {
    Entry { name, mode: 0o755, what: What::Directory(entries) }
}

/// /sys
pub(super) static TOP: Entry = Entry { name: "sys", mode: 0o555, what: What::Directory(TREE) };

static TREE: &[Entry] = &[
    folder("block", &[]),
    folder("class", &[folder("block", &[]), folder("net", &[LOOPBACK])]),
    folder("devices", &[folder("system", SYSTEM), folder("virtual", &[folder("net", &[folder("lo", OF_LOOPBACK)])])]),
    folder("fs", &[cgroup::TOP]),
    folder(
        "kernel",
        &[folder(
            "mm",
            &[folder(
                "transparent_hugepage",
                &[text("enabled", huge_pages), text("hpage_pmd_size", |_| Ok(b"2097152\n".to_vec()))],
            )],
        )],
    ),
    folder("module", &[]),
];

const LOOPBACK: Entry =
    Entry { name: "lo", mode: 0o777, what: What::Link(|_| Ok(b"../../devices/virtual/net/lo".to_vec())) };

static OF_LOOPBACK: &[Entry] = &[
    text("addr_len", |_| Ok(b"6\n".to_vec())),
    text("address", |_| Ok(b"00:00:00:00:00:00\n".to_vec())),
    text("carrier", |_| Ok(b"1\n".to_vec())),
    text("flags", |_| Ok(b"0x9\n".to_vec())),
    text("ifindex", |_| Ok(b"1\n".to_vec())),
    text("iflink", |_| Ok(b"1\n".to_vec())),
    text("mtu", |_| Ok(b"65536\n".to_vec())),
    text("operstate", |_| Ok(b"unknown\n".to_vec())),
    text("type", |_| Ok(b"772\n".to_vec())),
];

static SYSTEM: &[Entry] = &[
    Entry { name: "cpu", mode: 0o755, what: What::Processors(PROCESSORS) },
    folder(
        "node",
        &[
            text("has_cpu", |_| Ok(b"0\n".to_vec())),
            text("has_memory", |_| Ok(b"0\n".to_vec())),
            folder("node0", NODE),
            text("online", |_| Ok(b"0\n".to_vec())),
            text("possible", |_| Ok(b"0\n".to_vec())),
        ],
    ),
];

static PROCESSORS: &[Entry] = &[
    text("isolated", |_| Ok(b"\n".to_vec())),
    text("kernel_max", |_| Ok(format!("{}\n", rustix::thread::CpuSet::MAX_CPU - 1).into_bytes())),
    text("offline", |_| Ok(b"\n".to_vec())),
    text("online", all_processors),
    text("possible", all_processors),
    text("present", all_processors),
];

static NODE: &[Entry] = &[
    text("cpulist", all_processors),
    text("cpumap", processor_mask),
    text("distance", |_| Ok(b"10\n".to_vec())),
    text("meminfo", node_memory),
];

/// /sys/devices/system/cpu/cpuN
pub(super) static PROCESSOR: Entry = folder("", &[folder("topology", TOPOLOGY)]);

static TOPOLOGY: &[Entry] = &[
    text("core_cpus", |subject| Ok(mask(&itself(subject), most(subject)))),
    text("core_cpus_list", |subject| Ok(list(&itself(subject)))),
    text("core_id", |subject| Ok(format!("{}\n", subject.number).into_bytes())),
    text("core_siblings", processor_mask),
    text("core_siblings_list", all_processors),
    text("die_id", |_| Ok(b"0\n".to_vec())),
    text("package_cpus", processor_mask),
    text("package_cpus_list", all_processors),
    text("physical_package_id", |_| Ok(b"0\n".to_vec())),
    text("thread_siblings", |subject| Ok(mask(&itself(subject), most(subject)))),
    text("thread_siblings_list", |subject| Ok(list(&itself(subject)))),
];

fn itself(subject: &Subject<'_>) -> [usize; 1] {
    [usize::try_from(subject.number).unwrap_or(0)]
}

fn all_processors(subject: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(list(&subject.cx.kernel.processors.list()))
}

fn processor_mask(subject: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(mask(&subject.cx.kernel.processors.list(), most(subject)))
}

/// Ascending numbers as Linux lists them: `0-2,5`.
pub(super) fn list(numbers: &[usize]) -> Vec<u8> {
    let runs: Vec<_> = numbers
        .chunk_by(|a, b| a + 1 == *b)
        .map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            run => run.iter().map(usize::to_string).collect(),
        })
        .collect();
    format!("{}\n", runs.join(",")).into_bytes()
}

/// The same as a mask: words of 32 bits, the highest first, as many as `most` numbers need.
pub(super) fn mask(numbers: &[usize], most: usize) -> Vec<u8> {
    let mut words = vec![0_u32; most.div_ceil(32).max(1)];
    for number in numbers.iter().filter(|&&number| number < most) {
        words[number / 32] |= 1 << (number % 32);
    }
    let first = match most % 32 {
        0 => 8,
        bits => bits.div_ceil(4),
    };
    let widths = std::iter::once(first).chain(std::iter::repeat(8));
    let words: Vec<_> = words.iter().rev().zip(widths).map(|(word, width)| format!("{word:0width$x}")).collect();
    format!("{}\n", words.join(",")).into_bytes()
}

/// One more than the highest number of a processor.
pub(super) fn most(subject: &Subject<'_>) -> usize {
    subject.cx.kernel.processors.list().last().map_or(1, |last| last + 1)
}

/// There is one node.
fn node_memory(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let (total, free) = (total_memory(subject), free_memory(subject));
    let mut text = String::new();
    for (name, bytes) in [("MemTotal:", total), ("MemFree:", free), ("MemUsed:", total - free)] {
        let _ = writeln!(text, "Node 0 {name:<15} {:>8} kB", bytes >> 10);
    }
    Ok(text.into_bytes())
}

/// Guests have none: mmap(2) of MAP_HUGETLB is ENOMEM, and advice about them does nothing.
fn huge_pages(_: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(b"always madvise [never]\n".to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_listed_as_linux_does() {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert_eq!(text(list(&[0])), "0\n");
        assert_eq!(text(list(&[0, 1, 2, 5, 7, 8])), "0-2,5,7-8\n");
        assert_eq!(text(list(&[])), "\n");
        assert_eq!(text(mask(&[0, 1], 2)), "3\n");
        assert_eq!(text(mask(&[1, 33], 64)), "00000002,00000002\n");
        assert_eq!(text(mask(&[1], 40)), "00,00000002\n");
    }
}
