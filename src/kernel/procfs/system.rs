//! Texts about the machine: the files of /proc that are not about processes.
//!
//! They agree with sysinfo(2) and uname(2): memory is at most what the cage may map, processes are
//! those that it may see.

use std::fmt::Write;

use lind_abi::Result;

use super::{Subject, process, seen};
use crate::cage::Names;
use crate::host::clock;

/// The host's memory, cut down to the limits as for sysinfo(2).
struct Memory {
    total: u64,
    free: u64,
}

fn memory(subject: &Subject<'_>) -> Memory {
    let host = rustix::system::sysinfo();
    let unit = u64::from(host.mem_unit.max(1));
    let limit = subject.cx.cage.memory.map().limit();
    let bytes = |count: u64| count.saturating_mul(unit).min(limit);
    Memory { total: bytes(host.totalram), free: bytes(host.freeram) }
}

/// The bytes of memory there are, as far as the cage may map them.
pub(super) fn total_memory(subject: &Subject<'_>) -> u64 {
    memory(subject).total
}

/// The bytes of it that are free.
pub(super) fn free_memory(subject: &Subject<'_>) -> u64 {
    memory(subject).free
}

fn line(text: impl AsRef<[u8]>) -> Result<Vec<u8>> {
    Ok([text.as_ref(), b"\n"].concat())
}

pub(super) fn this_process(subject: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(subject.cx.cage.id.0.to_string().into_bytes())
}

pub(super) fn this_thread(subject: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(format!("{}/task/{}", subject.cx.cage.id.0, subject.cx.thread.tid).into_bytes())
}

pub(super) fn cmdline(_: &Subject<'_>) -> Result<Vec<u8>> {
    line("lind")
}

pub(super) fn cpuinfo(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let mut text = String::new();
    for cpu in subject.cx.kernel.processors.list() {
        let _ =
            write!(text, "processor\t: {cpu}\nvendor_id\t: lind\nmodel name\t: WebAssembly\nflags\t\t: simd128\n\n");
    }
    Ok(text.into_bytes())
}

pub(super) fn filesystems(_: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(b"nodev\tsysfs\nnodev\tproc\nnodev\ttmpfs\nnodev\tdevtmpfs\nnodev\tdevpts\nnodev\tcgroup2\n".to_vec())
}

pub(super) fn loadavg(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let cx = subject.cx;
    let loads =
        rustix::system::sysinfo().loads.map(|load| format!("{}.{:02}", load >> 16, ((load & 0xffff) * 100) >> 16));
    let cages = cx.kernel.cages.all();
    let visible = cages.iter().filter(|cage| seen(cx, cage.id).is_some());
    let threads: usize = visible.clone().map(|cage| cage.threads().len()).sum();
    let newest = visible.map(|cage| cage.id.0).max().unwrap_or(0);
    line(format!("{} {} {} 1/{threads} {newest}", loads[0], loads[1], loads[2]))
}

pub(super) fn meminfo(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let Memory { total, free } = memory(subject);
    let rows = [
        ("MemTotal:", total),
        ("MemFree:", free),
        ("MemAvailable:", free),
        ("Buffers:", 0),
        ("Cached:", 0),
        ("SwapCached:", 0),
        ("Active:", total - free),
        ("Inactive:", 0),
        ("SwapTotal:", 0),
        ("SwapFree:", 0),
        ("Dirty:", 0),
        ("Writeback:", 0),
        ("Mapped:", 0),
        ("Shmem:", 0),
        ("SReclaimable:", 0),
    ];
    let mut text = String::new();
    for (name, bytes) in rows {
        let _ = writeln!(text, "{name:<15} {:>8} kB", bytes >> 10);
    }
    Ok(text.into_bytes())
}

/// The processor time of the processes that may be seen, spread over all processors.
pub(super) fn stat(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let cx = subject.cx;
    let cages: Vec<_> = cx.kernel.cages.all().into_iter().filter(|cage| seen(cx, cage.id).is_some()).collect();
    let (mut user, mut system) = (0, 0);
    for cage in &cages {
        let used = cage.usage();
        user += process::ticks(used.utime);
        system += process::ticks(used.stime);
    }
    let cpus = cx.kernel.processors.list();
    let count = i64::try_from(cpus.len()).unwrap_or(1).max(1);
    let up = clock::gettime(libc::CLOCK_BOOTTIME).unwrap_or_default();
    let idle = (up.sec * 100 * count - user - system).max(0);
    let mut text = format!("cpu  {user} 0 {system} {idle} 0 0 0 0 0 0\n");
    for cpu in cpus {
        let _ = writeln!(text, "cpu{cpu} {} 0 {} {} 0 0 0 0 0 0", user / count, system / count, idle / count);
    }
    let now = clock::gettime(libc::CLOCK_REALTIME).unwrap_or_default();
    let newest = cages.iter().map(|cage| cage.id.0).max().unwrap_or(0);
    let _ = write!(
        text,
        "intr 0\nctxt 0\nbtime {}\nprocesses {newest}\nprocs_running 1\nprocs_blocked 0\nsoftirq 0\n",
        now.sec - up.sec
    );
    Ok(text.into_bytes())
}

/// The kinds of devices there are, by number.
pub(super) fn devices(_: &Subject<'_>) -> Result<Vec<u8>> {
    line("Character devices:\n  1 mem\n  5 /dev/tty\n  5 /dev/console\n  5 /dev/ptmx\n136 pts\n\nBlock devices:")
}

/// The controllers of the first version, which is not there: /sys/fs/cgroup is of the second.
pub(super) fn control_groups(_: &Subject<'_>) -> Result<Vec<u8>> {
    line("#subsys_name\thierarchy\tnum_cgroups\tenabled")
}

/// Cages have no disks and no modules.
pub(super) fn nothing(_: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(Vec::new())
}

pub(super) fn partitions(_: &Subject<'_>) -> Result<Vec<u8>> {
    line("major minor  #blocks  name\n")
}

/// Memory in pages, as in `meminfo`, and the faults of the processes that may be seen.
pub(super) fn vmstat(subject: &Subject<'_>) -> Result<Vec<u8>> {
    const KIND: usize = 4;
    let (cx, Memory { total, free }) = (subject.cx, memory(subject));
    let (mut faults, mut major) = (0, 0);
    for cage in cx.kernel.cages.all().iter().filter(|cage| seen(cx, cage.id).is_some()) {
        let used = cage.usage();
        faults += used.counts[KIND] + used.counts[KIND + 1];
        major += used.counts[KIND + 1];
    }
    let pages = |bytes: u64| bytes / crate::mem::PAGE;
    let rows = [("nr_free_pages", pages(free)), ("nr_active_anon", pages(total - free)), ("nr_inactive_anon", 0)];
    let zero =
        ["nr_active_file", "nr_inactive_file", "nr_dirty", "nr_writeback", "pgpgin", "pgpgout", "pswpin", "pswpout"];
    let mut text = String::new();
    for (name, value) in rows.into_iter().chain(zero.map(|name| (name, 0))) {
        let _ = writeln!(text, "{name} {value}");
    }
    let _ = writeln!(text, "pgfault {faults}\npgmajfault {major}");
    Ok(text.into_bytes())
}

pub(super) fn swaps(_: &Subject<'_>) -> Result<Vec<u8>> {
    line("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority")
}

pub(super) fn uptime(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let up = clock::gettime(libc::CLOCK_BOOTTIME).unwrap_or_default();
    let count = i64::try_from(subject.cx.kernel.processors.list().len()).unwrap_or(1);
    line(format!("{0}.{1:02} {2}.{1:02}", up.sec, up.nsec / 10_000_000, up.sec * count))
}

pub(super) fn version(_: &Subject<'_>) -> Result<Vec<u8>> {
    let host = rustix::system::uname();
    let (release, version) = (host.release().to_string_lossy(), host.version().to_string_lossy());
    line(format!("Linux version {release} (lind) {version}"))
}

pub(super) fn kernel_version(_: &Subject<'_>) -> Result<Vec<u8>> {
    line(rustix::system::uname().version().to_bytes())
}

pub(super) fn osrelease(_: &Subject<'_>) -> Result<Vec<u8>> {
    line(rustix::system::uname().release().to_bytes())
}

pub(super) fn hostname(subject: &Subject<'_>) -> Result<Vec<u8>> {
    line(Names::of(subject.cx.cage).host())
}

pub(super) fn domainname(subject: &Subject<'_>) -> Result<Vec<u8>> {
    line(Names::of(subject.cx.cage).domain())
}

/// A random UUID, another one each time.
pub(super) fn uuid(_: &Subject<'_>) -> Result<Vec<u8>> {
    line(spell_uuid(random()))
}

/// Sixteen bytes never come in parts, and without the pool (early boot) come when it is there.
fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    bytes
}

/// The same as long as the runner runs.
pub(super) fn boot_id(subject: &Subject<'_>) -> Result<Vec<u8>> {
    line(spell_uuid(*subject.cx.kernel.boot_id.get_or_init(random)))
}

/// RFC 4122: a random one, version 4.
fn spell_uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        let _ = write!(text, "{}{byte:02x}", if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" });
    }
    text
}
