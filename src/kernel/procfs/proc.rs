//! The tree of /proc.

use std::borrow::Cow;

use super::{
    Entry, What, fdinfo, ipc, mappings, mounts, namespaces, net, process as p, setting as w, sysctl, system as s,
};

const fn text(name: &'static str, make: fn(&super::Subject<'_>) -> lind_abi::Result<Vec<u8>>) -> Entry {
    Entry { name, mode: 0o444, what: What::Text(make) }
}

const fn private(name: &'static str, make: fn(&super::Subject<'_>) -> lind_abi::Result<Vec<u8>>) -> Entry {
    Entry { name, mode: 0o400, what: What::Text(make) }
}

const fn setting(
    name: &'static str,
    make: fn(&super::Subject<'_>) -> lind_abi::Result<Vec<u8>>,
    set: fn(&super::Subject<'_>, &[u8]) -> lind_abi::Result<()>,
) -> Entry {
    Entry { name, mode: 0o644, what: What::Setting(make, set) }
}

const fn link(name: &'static str, to: fn(&super::Subject<'_>) -> lind_abi::Result<Vec<u8>>) -> Entry {
    Entry { name, mode: 0o777, what: What::Link(to) }
}

const fn folder(name: &'static str, entries: &'static [Entry]) -> Entry {
    Entry { name, mode: 0o555, what: What::Directory(entries) }
}

/// /proc
pub(super) static TOP: Entry = Entry { name: "proc", mode: 0o555, what: What::Processes(SYSTEM) };

static SYSTEM: &[Entry] = &[
    text("cgroups", s::control_groups),
    text("cmdline", s::cmdline),
    text("cpuinfo", s::cpuinfo),
    text("devices", s::devices),
    text("diskstats", s::nothing),
    text("filesystems", s::filesystems),
    folder("lind", &[text("denials", |subject| Ok(subject.cx.kernel.denials_explained()))]),
    text("loadavg", s::loadavg),
    text("meminfo", s::meminfo),
    text("modules", s::nothing),
    link("mounts", |_| Ok(b"self/mounts".to_vec())),
    link("net", |_| Ok(b"self/net".to_vec())),
    text("partitions", s::partitions),
    link("self", s::this_process),
    text("stat", s::stat),
    text("swaps", s::swaps),
    folder("sys", sysctl::ENTRIES),
    folder("sysvipc", &[text("msg", ipc::msg), text("sem", ipc::sem), text("shm", ipc::shm)]),
    link("thread-self", s::this_thread),
    text("uptime", s::uptime),
    text("version", s::version),
    text("vmstat", s::vmstat),
];

/// /proc/PID
pub(super) static PROCESS: Entry = Entry { name: "", mode: 0o555, what: What::Directory(OF_PROCESS) };

/// /proc/PID/task/TID
pub(super) static TASK: Entry = Entry { name: "", mode: 0o555, what: What::Directory(OF_TASK) };

/// /proc/PID/fd/N. A link's own mode shows what the descriptor permits.
pub(super) static DESCRIPTOR: Entry = Entry { name: "", mode: 0o700, what: What::Descriptor };

/// /proc/PID/fdinfo/N
pub(super) static DESCRIPTOR_INFO: Entry = private("", fdinfo::descriptor_info);

static OF_PROCESS: &[Entry] = &[
    private("auxv", p::auxv),
    text("cgroup", |_| Ok(b"0::/\n".to_vec())),
    text("cmdline", p::cmdline),
    setting("comm", p::comm, w::set_comm),
    setting("coredump_filter", w::core_filter, w::set_core_filter),
    text("cpuset", |_| Ok(b"/\n".to_vec())),
    Entry { name: "cwd", mode: 0o777, what: What::Cwd },
    private("environ", p::environ),
    link("exe", p::exe),
    Entry { name: "fd", mode: 0o500, what: What::Descriptors },
    Entry { name: "fdinfo", mode: 0o555, what: What::DescriptorInfos },
    text("gid_map", all_ids),
    private("io", p::io),
    text("limits", p::limits),
    text("loginuid", p::nobody),
    text("maps", mappings::maps),
    text("mountinfo", mounts::mountinfo),
    text("mounts", mounts::mounts),
    folder("net", NET),
    Entry { name: "ns", mode: 0o511, what: What::Directory(NAMESPACES) },
    setting("oom_adj", w::oom_adj, w::set_oom_adj),
    text("oom_score", w::oom_score),
    setting("oom_score_adj", w::oom_score_adj, w::set_oom_score_adj),
    private("pagemap", p::pagemap),
    private("personality", p::persona),
    text("projid_map", all_ids),
    Entry { name: "root", mode: 0o777, what: What::Root },
    text("schedstat", p::schedstat),
    text("sessionid", p::nobody),
    text("setgroups", |_| Ok(b"allow\n".to_vec())),
    text("smaps", mappings::smaps),
    text("smaps_rollup", mappings::smaps_rollup),
    text("stat", p::stat),
    text("statm", mappings::statm),
    text("status", p::status),
    Entry { name: "task", mode: 0o555, what: What::Tasks },
    setting("timerslack_ns", p::timer_slack, w::set_timer_slack),
    text("uid_map", all_ids),
    text("wchan", p::waits_at),
];

/// /proc/PID/ns: the kinds of which a cage may have its own.
static NAMESPACES: &[Entry] = &[link("ipc", namespaces::ipc), link("uts", namespaces::uts)];

/// /proc/PID/net
static NET: &[Entry] = &[
    text("dev", net::dev),
    text("raw", net::raw),
    text("raw6", net::raw6),
    text("sockstat", net::sockstat),
    text("tcp", net::tcp),
    text("tcp6", net::tcp6),
    text("udp", net::udp),
    text("udp6", net::udp6),
    text("unix", net::unix),
];

static OF_TASK: &[Entry] = &[
    private("auxv", p::auxv),
    text("cgroup", |_| Ok(b"0::/\n".to_vec())),
    text("children", p::children),
    text("cmdline", p::cmdline),
    setting("comm", p::comm, w::set_comm),
    text("cpuset", |_| Ok(b"/\n".to_vec())),
    Entry { name: "cwd", mode: 0o777, what: What::Cwd },
    private("environ", p::environ),
    link("exe", p::exe),
    Entry { name: "fd", mode: 0o500, what: What::Descriptors },
    Entry { name: "fdinfo", mode: 0o555, what: What::DescriptorInfos },
    text("limits", p::limits),
    text("loginuid", p::nobody),
    text("maps", mappings::maps),
    text("mountinfo", mounts::mountinfo),
    text("mounts", mounts::mounts),
    folder("net", NET),
    Entry { name: "ns", mode: 0o511, what: What::Directory(NAMESPACES) },
    setting("oom_adj", w::oom_adj, w::set_oom_adj),
    text("oom_score", w::oom_score),
    setting("oom_score_adj", w::oom_score_adj, w::set_oom_score_adj),
    private("pagemap", p::pagemap),
    private("personality", p::persona),
    Entry { name: "root", mode: 0o777, what: What::Root },
    text("schedstat", p::schedstat),
    text("smaps", mappings::smaps),
    text("smaps_rollup", mappings::smaps_rollup),
    text("stat", p::stat),
    text("statm", mappings::statm),
    text("status", p::status),
    text("wchan", p::waits_at),
];

/// There is one user namespace, in which ids are what they are.
fn all_ids(_: &super::Subject<'_>) -> lind_abi::Result<Vec<u8>> {
    Ok(b"         0          0 4294967295\n".to_vec())
}

/// A number as a name.
pub(super) fn name(number: u32) -> super::Name {
    Cow::Owned(number.to_string().into_bytes())
}
