//! The tree of /sys/fs/cgroup: the control group that the sandbox is, in the second version's form,
//! and read-only. Programs look there for how much of the machine they may use.
//!
//! The limits are those that the runner was started with ([`Allowance`]). The amounts in
//! use are those of the processes which the reader sees.

use std::fmt::Write;
use std::sync::Arc;

use lind_abi::Result;
use lind_abi::layout::Timeval;

use super::{Entry, Subject, What, seen};
use crate::cage::Cage;

/// The limits of a sandbox as /sys/fs/cgroup shows them. They are enforced elsewhere: by a grate,
/// or by a control group of the host.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// Bytes of memory of all programs together.
    pub memory: Option<u64>,
    /// The microseconds of processor time in each period, and the period in microseconds.
    pub cpu: Option<(u64, u64)>,
    /// The number of processes and threads.
    pub pids: Option<u64>,
}

impl Allowance {
    /// The narrower of each of two limits.
    #[must_use]
    pub fn within(self, other: Allowance) -> Allowance {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        let share = |&(quota, period): &(u64, u64)| u128::from(quota) * u128::from(PERIOD) / u128::from(period.max(1));
        Allowance {
            memory: least(self.memory, other.memory),
            cpu: self.cpu.into_iter().chain(other.cpu).min_by_key(share),
            pids: least(self.pids, other.pids),
        }
    }
}

/// The period of a limit of processor time where there is none, in microseconds.
const PERIOD: u64 = 100_000;

const fn text(name: &'static str, make: fn(&Subject<'_>) -> Result<Vec<u8>>) -> Entry {
    Entry { name, mode: 0o444, what: What::Text(make) }
}

/// /sys/fs/cgroup
pub(super) const TOP: Entry = Entry { name: "cgroup", mode: 0o555, what: What::Directory(FILES) };

static FILES: &[Entry] = &[
    text("cgroup.controllers", |_| Ok(b"cpu memory pids\n".to_vec())),
    text("cgroup.events", |_| Ok(b"populated 1\nfrozen 0\n".to_vec())),
    text("cgroup.freeze", |_| Ok(b"0\n".to_vec())),
    text("cgroup.max.depth", |_| Ok(b"0\n".to_vec())),
    text("cgroup.max.descendants", |_| Ok(b"0\n".to_vec())),
    text("cgroup.procs", processes),
    text("cgroup.stat", |_| Ok(b"nr_descendants 0\nnr_dying_descendants 0\n".to_vec())),
    text("cgroup.subtree_control", |_| Ok(b"\n".to_vec())),
    text("cgroup.threads", threads),
    text("cgroup.type", |_| Ok(b"domain\n".to_vec())),
    text("cpu.max", cpu_max),
    text("cpu.max.burst", |_| Ok(b"0\n".to_vec())),
    text("cpu.stat", cpu_stat),
    text("cpu.weight", |_| Ok(b"100\n".to_vec())),
    text("memory.current", |subject| Ok(format!("{}\n", memory(subject)).into_bytes())),
    text("memory.events", |_| Ok(b"low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n".to_vec())),
    text("memory.high", |_| Ok(b"max\n".to_vec())),
    text("memory.low", |_| Ok(b"0\n".to_vec())),
    text("memory.max", |subject| most(subject.cx.kernel.allowance().memory)),
    text("memory.min", |_| Ok(b"0\n".to_vec())),
    text("memory.stat", |subject| Ok(format!("anon {}\nfile 0\ninactive_file 0\n", memory(subject)).into_bytes())),
    text("memory.swap.current", |_| Ok(b"0\n".to_vec())),
    text("memory.swap.max", |_| Ok(b"0\n".to_vec())),
    text("pids.current", |subject| {
        Ok(format!("{}\n", members(subject).map(|cage| cage.thread_count()).sum::<usize>()).into_bytes())
    }),
    text("pids.max", |subject| most(subject.cx.kernel.allowance().pids)),
];

/// The processes in the group: those that the reader sees.
fn members<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = Arc<Cage>> + 'a {
    let cages = subject.cx.kernel.cages.all();
    cages.into_iter().filter(|cage| !cage.is_dead() && seen(subject.cx, cage.id).is_some())
}

fn lines(numbers: impl Iterator<Item = u32>) -> Result<Vec<u8>> {
    let mut text = String::new();
    for number in numbers {
        let _ = writeln!(text, "{number}");
    }
    Ok(text.into_bytes())
}

fn processes(subject: &Subject<'_>) -> Result<Vec<u8>> {
    lines(members(subject).map(|cage| cage.id.0))
}

fn threads(subject: &Subject<'_>) -> Result<Vec<u8>> {
    lines(members(subject).flat_map(|cage| cage.threads()).map(|thread| thread.tid))
}

/// A limit as the files spell it.
fn most(limit: Option<u64>) -> Result<Vec<u8>> {
    Ok(limit.map_or_else(|| "max\n".to_owned(), |limit| format!("{limit}\n")).into_bytes())
}

fn cpu_max(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let text = match subject.cx.kernel.allowance().cpu {
        Some((quota, period)) => format!("{quota} {period}\n"),
        None => format!("max {PERIOD}\n"),
    };
    Ok(text.into_bytes())
}

/// The processor time of the members and of their children that have ended.
fn cpu_stat(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let micros = |time: Timeval| u64::try_from(time.sec * 1_000_000 + time.usec).unwrap_or(0);
    let (mut user, mut system) = (0, 0);
    for cage in members(subject) {
        for usage in [cage.usage(), cage.children_usage()] {
            user += micros(usage.utime);
            system += micros(usage.stime);
        }
    }
    let total = user + system;
    Ok(format!("usage_usec {total}\nuser_usec {user}\nsystem_usec {system}\n").into_bytes())
}

/// The bytes that the members have mapped, and that the kernel keeps for them.
fn memory(subject: &Subject<'_>) -> u64 {
    let of = |cage: Arc<Cage>| {
        let map = cage.memory.map();
        map.mapped() + map.charged()
    };
    members(subject).map(of).sum()
}
