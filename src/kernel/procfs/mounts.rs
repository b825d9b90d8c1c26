//! What is mounted: the root, and the trees that the kernel serves itself. Where the host has further ones inside the root is not told.

use std::fmt::Write;

use lind_abi::Result;

use super::Subject;
use super::stat::{DEV_DEVICE, PROC_DEVICE, PTS_DEVICE, SHM_DEVICE, SYS_DEVICE};

struct Mount {
    source: &'static str,
    place: &'static str,
    kind: &'static str,
    options: &'static str,
    /// As stat(2) of the place says.
    device: u64,
}

fn mounted(subject: &Subject<'_>) -> [Mount; 6] {
    let directory = subject.cx.kernel.root.directory();
    let kind = match rustix::fs::fstatfs(directory).map_or(0, |stat| stat.f_type) {
        0xef53 => "ext4",
        0x0102_1994 => "tmpfs",
        0x794c_7630 => "overlay",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        _ => "root",
    };
    let root = rustix::fs::fstat(directory).map_or(0, |stat| stat.st_dev);
    [
        ("root", "/", kind, "rw,relatime", root),
        ("proc", "/proc", "proc", "rw,nosuid,nodev,noexec,relatime", PROC_DEVICE),
        ("dev", "/dev", "devtmpfs", "rw,nosuid,relatime", DEV_DEVICE),
        ("shm", "/dev/shm", "tmpfs", "rw,nosuid,nodev", SHM_DEVICE),
        ("devpts", "/dev/pts", "devpts", "rw,nosuid,noexec,relatime", PTS_DEVICE),
        ("sysfs", "/sys", "sysfs", "ro,nosuid,nodev,noexec,relatime", SYS_DEVICE),
    ]
    .map(|(source, place, kind, options, device)| Mount { source, place, kind, options, device })
}

pub(super) fn mounts(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let line = |Mount { source, place, kind, options, .. }| format!("{source} {place} {kind} {options} 0 0\n");
    Ok(mounted(subject).map(line).concat().into_bytes())
}

pub(super) fn mountinfo(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let mut text = String::new();
    for (id, Mount { source, place, kind, options, device }) in (1..).zip(mounted(subject)) {
        let above = match place {
            "/" => 0,
            "/dev/shm" | "/dev/pts" => 3,
            _ => 1,
        };
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let _ = writeln!(text, "{id} {above} {major}:{minor} / {place} {options} - {kind} {source} rw");
    }
    Ok(text.into_bytes())
}
