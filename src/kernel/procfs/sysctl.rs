//! /proc/sys: the kernel's limits, and settings of the host's network.
//!
//! The host's own files cannot be read behind the walls. Values that a socket option can tell are
//! read from a socket. Values that are neither known nor ours are Linux's defaults, since programs
//! look whether they are large enough.

use lind_abi::Result;
use rustix::net::{AddressFamily, SocketType, sockopt};

use super::{Entry, Subject, What, ipc, seen, setting as w, system as s};

type Make = fn(&Subject<'_>) -> Result<Vec<u8>>;

const fn text(name: &'static str, make: Make) -> Entry {
    Entry { name, mode: 0o444, what: What::Text(make) }
}

const fn setting(name: &'static str, make: Make, set: fn(&Subject<'_>, &[u8]) -> Result<()>) -> Entry {
    Entry { name, mode: 0o644, what: What::Setting(make, set) }
}

const fn folder(name: &'static str, entries: &'static [Entry]) -> Entry {
    Entry { name, mode: 0o555, what: What::Directory(entries) }
}

/// A file whose value is always the same.
macro_rules! fixed {
    ($name:literal, $value:literal) => {
        text($name, |_| Ok(concat!($value, "\n").as_bytes().to_vec()))
    };
}

/// /proc/sys
pub(super) static ENTRIES: &[Entry] =
    &[folder("fs", FS), folder("kernel", KERNEL), folder("net", NET), folder("vm", VM)];

/// Leases and notices of directories are not given, whence the zeroes.
static FS: &[Entry] = &[
    fixed!("aio-max-nr", "65536"),
    fixed!("aio-nr", "0"),
    fixed!("dir-notify-enable", "1"),
    folder("epoll", &[text("max_user_watches", file_max)]),
    text("file-max", file_max),
    text("file-nr", file_nr),
    folder(
        "inotify",
        &[
            fixed!("max_queued_events", "16384"),
            fixed!("max_user_instances", "128"),
            fixed!("max_user_watches", "8192"),
        ],
    ),
    fixed!("lease-break-time", "45"),
    fixed!("leases-enable", "1"),
    folder(
        "mqueue",
        &[
            fixed!("msg_default", "10"),
            fixed!("msg_max", "10"),
            fixed!("msgsize_default", "8192"),
            fixed!("msgsize_max", "8192"),
            fixed!("queues_max", "256"),
        ],
    ),
    text("nr_open", nr_open),
    fixed!("overflowgid", "65534"),
    fixed!("overflowuid", "65534"),
    text("pipe-max-size", pipe_max_size),
    fixed!("pipe-user-pages-hard", "0"),
    fixed!("pipe-user-pages-soft", "16384"),
    fixed!("protected_fifos", "0"),
    fixed!("protected_hardlinks", "0"),
    fixed!("protected_regular", "0"),
    fixed!("protected_symlinks", "0"),
    fixed!("suid_dumpable", "0"),
];

static KERNEL: &[Entry] = &[
    fixed!("arch", "wasm32"),
    fixed!("auto_msgmni", "0"),
    fixed!("cap_last_cap", "40"),
    fixed!("core_pattern", "core"),
    fixed!("core_pipe_limit", "0"),
    fixed!("core_uses_pid", "0"),
    fixed!("dmesg_restrict", "1"),
    setting("domainname", s::domainname, w::set_domainname),
    setting("hostname", s::hostname, w::set_hostname),
    fixed!("io_uring_disabled", "2"),
    fixed!("modules_disabled", "1"),
    text("msgmax", ipc::msgmax),
    text("msgmnb", ipc::msgmnb),
    text("msgmni", ipc::most),
    fixed!("ngroups_max", "65536"),
    text("osrelease", s::osrelease),
    fixed!("ostype", "Linux"),
    fixed!("overflowgid", "65534"),
    fixed!("overflowuid", "65534"),
    fixed!("panic", "0"),
    text("pid_max", pid_max),
    fixed!("printk", "4\t4\t1\t7"),
    folder(
        "random",
        &[
            text("boot_id", s::boot_id),
            fixed!("entropy_avail", "256"),
            fixed!("poolsize", "256"),
            text("uuid", s::uuid),
        ],
    ),
    fixed!("randomize_va_space", "0"),
    fixed!("sched_child_runs_first", "0"),
    fixed!("sched_rr_timeslice_ms", "100"),
    fixed!("sched_rt_period_us", "1000000"),
    fixed!("sched_rt_runtime_us", "950000"),
    text("sem", ipc::semaphores),
    text("shm_rmid_forced", |_| Ok(b"0\n".to_vec())),
    text("shmall", shmall),
    text("shmmax", shmmax),
    text("shmmni", ipc::most),
    fixed!("tainted", "0"),
    text("threads-max", threads_max),
    text("version", s::kernel_version),
];

static VM: &[Entry] = &[
    fixed!("legacy_va_layout", "0"),
    text("max_map_count", max_map_count),
    text("mmap_min_addr", |_| Ok(b"0\n".to_vec())),
    fixed!("nr_hugepages", "0"),
    fixed!("nr_overcommit_hugepages", "0"),
    fixed!("overcommit_kbytes", "0"),
    fixed!("overcommit_memory", "0"),
    fixed!("overcommit_ratio", "50"),
    fixed!("page-cluster", "3"),
    fixed!("panic_on_oom", "0"),
    fixed!("swappiness", "60"),
    fixed!("vfs_cache_pressure", "100"),
    fixed!("zone_reclaim_mode", "0"),
];

static NET: &[Entry] = &[
    folder(
        "core",
        &[
            fixed!("netdev_max_backlog", "1000"),
            text("rmem_default", |_| of_datagrams(|socket| sockopt::socket_recv_buffer_size(socket).map(number))),
            text("rmem_max", |_| {
                of_datagrams(|socket| {
                    // The largest possible size, half of which is for the host's own overhead.
                    sockopt::set_socket_recv_buffer_size(socket, MOST_ROOM)?;
                    sockopt::socket_recv_buffer_size(socket).map(|size| number(size / 2))
                })
            }),
            fixed!("somaxconn", "4096"),
            text("wmem_default", |_| of_datagrams(|socket| sockopt::socket_send_buffer_size(socket).map(number))),
            text("wmem_max", |_| {
                of_datagrams(|socket| {
                    sockopt::set_socket_send_buffer_size(socket, MOST_ROOM)?;
                    sockopt::socket_send_buffer_size(socket).map(|size| number(size / 2))
                })
            }),
        ],
    ),
    folder("ipv4", IPV4),
    folder(
        "ipv6",
        &[
            text("bindv6only", |_| {
                asked(AddressFamily::INET6, SocketType::STREAM, |s| sockopt::ipv6_v6only(s).map(|on| number(on.into())))
            }),
            folder(
                "conf",
                &[
                    folder("all", &[text("disable_ipv6", no_ipv6)]),
                    folder("default", &[text("disable_ipv6", no_ipv6)]),
                    folder("lo", &[text("disable_ipv6", no_ipv6)]),
                ],
            ),
        ],
    ),
    folder("unix", &[fixed!("max_dgram_qlen", "10")]),
];

static IPV4: &[Entry] = &[
    fixed!("icmp_echo_ignore_all", "0"),
    fixed!("icmp_echo_ignore_broadcasts", "1"),
    fixed!("igmp_max_memberships", "20"),
    text("ip_default_ttl", |_| of_streams(|socket| sockopt::ip_ttl(socket).map(|ttl| ttl.to_string()))),
    fixed!("ip_forward", "0"),
    fixed!("ip_local_port_range", "32768\t60999"),
    fixed!("ip_local_reserved_ports", ""),
    fixed!("ip_nonlocal_bind", "0"),
    fixed!("ip_unprivileged_port_start", "1024"),
    fixed!("ping_group_range", "1\t0"),
    fixed!("tcp_abort_on_overflow", "0"),
    text("tcp_available_congestion_control", |_| of_streams(congestion)),
    text("tcp_congestion_control", |_| of_streams(congestion)),
    fixed!("tcp_fastopen", "1"),
    fixed!("tcp_fin_timeout", "60"),
    text("tcp_keepalive_intvl", |_| {
        of_streams(|socket| sockopt::tcp_keepintvl(socket).map(|time| time.as_secs().to_string()))
    }),
    text("tcp_keepalive_probes", |_| of_streams(|socket| sockopt::tcp_keepcnt(socket).map(|count| count.to_string()))),
    text("tcp_keepalive_time", |_| {
        of_streams(|socket| sockopt::tcp_keepidle(socket).map(|time| time.as_secs().to_string()))
    }),
    fixed!("tcp_max_syn_backlog", "512"),
    fixed!("tcp_moderate_rcvbuf", "1"),
    fixed!("tcp_mtu_probing", "0"),
    fixed!("tcp_no_metrics_save", "0"),
    fixed!("tcp_notsent_lowat", "4294967295"),
    fixed!("tcp_retries1", "3"),
    fixed!("tcp_retries2", "15"),
    text("tcp_rmem", |_| {
        of_streams(|socket| sockopt::socket_recv_buffer_size(socket).map(|size| format!("4096\t{size}\t6291456")))
    }),
    fixed!("tcp_sack", "1"),
    fixed!("tcp_slow_start_after_idle", "1"),
    fixed!("tcp_syn_retries", "6"),
    fixed!("tcp_synack_retries", "5"),
    fixed!("tcp_syncookies", "1"),
    fixed!("tcp_timestamps", "1"),
    fixed!("tcp_tw_reuse", "2"),
    fixed!("tcp_window_scaling", "1"),
    text("tcp_wmem", |_| {
        of_streams(|socket| sockopt::socket_send_buffer_size(socket).map(|size| format!("4096\t{size}\t4194304")))
    }),
];

/// More than any host gives, and as much as an int can say twice.
const MOST_ROOM: usize = 1 << 29;

fn line(text: impl AsRef<[u8]>) -> Result<Vec<u8>> {
    Ok([text.as_ref(), b"\n"].concat())
}

fn number(value: usize) -> String {
    value.to_string()
}

type Ask = fn(&std::os::fd::OwnedFd) -> rustix::io::Result<String>;

/// A value as read from a new socket.
fn asked(family: AddressFamily, kind: SocketType, ask: Ask) -> Result<Vec<u8>> {
    use rustix::net::{SocketFlags, socket_with};
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).map_err(crate::host::errno)?;
    line(ask(&socket).map_err(crate::host::errno)?)
}

fn of_streams(ask: Ask) -> Result<Vec<u8>> {
    asked(AddressFamily::INET, SocketType::STREAM, ask)
}

fn of_datagrams(ask: Ask) -> Result<Vec<u8>> {
    asked(AddressFamily::INET, SocketType::DGRAM, ask)
}

fn congestion(socket: &std::os::fd::OwnedFd) -> rustix::io::Result<String> {
    sockopt::tcp_congestion(socket)
}

fn no_ipv6(_: &Subject<'_>) -> Result<Vec<u8>> {
    use std::net::Ipv6Addr;
    // A host that has the family, but not for use, gives no address.
    let can = std::net::UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    line(if can { "0" } else { "1" })
}

/// The number of open files in the processes that may be seen.
fn file_nr(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let cx = subject.cx;
    let cages = cx.kernel.cages.all();
    let open: usize =
        cages.iter().filter(|cage| seen(cx, cage.id).is_some()).map(|cage| cage.fds.open_in(0, u32::MAX).len()).sum();
    line([open.to_string().as_bytes(), b"\t0\t", file_max(subject)?.trim_ascii_end()].concat())
}

/// A segment may have what a cage can map.
fn shmmax(_: &Subject<'_>) -> Result<Vec<u8>> {
    line(crate::mem::space::END.to_string())
}

fn shmall(_: &Subject<'_>) -> Result<Vec<u8>> {
    line((crate::mem::space::END / crate::mem::PAGE * crate::ipc::MOST as u64).to_string())
}

/// Linux's largest maximum, for which programs make room; more once there have been more processes,
/// since ids ascend and are not used again.
fn pid_max(subject: &Subject<'_>) -> Result<Vec<u8>> {
    const MOST: u32 = 1 << 22;
    line(subject.cx.kernel.newest_id().next_power_of_two().max(MOST).to_string())
}

fn file_max(_: &Subject<'_>) -> Result<Vec<u8>> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    line(limit.unwrap_or(u64::MAX >> 1).to_string())
}

fn nr_open(_: &Subject<'_>) -> Result<Vec<u8>> {
    line(crate::fd::MAX_FILES.to_string())
}

fn pipe_max_size(_: &Subject<'_>) -> Result<Vec<u8>> {
    line((1 << 20).to_string())
}

fn max_map_count(_: &Subject<'_>) -> Result<Vec<u8>> {
    line(crate::mem::MAX_REGIONS.to_string())
}

fn threads_max(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let limits = &subject.cx.kernel.limits;
    line(limits.cages.saturating_mul(limits.threads as u64).to_string())
}
