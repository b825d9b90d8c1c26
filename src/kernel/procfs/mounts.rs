//! The table of mounts: the root, the volumes, and the trees that the kernel serves itself. Further
//! mounts of the host inside the root are not shown, nor where on the host anything comes from.

use std::borrow::Cow;
use std::ffi::CString;
use std::fmt::Write;
use std::os::fd::AsFd;

use lind_abi::Result;
use rustix::fs::OFlags;

use super::Subject;
use super::stat::{CGROUP_DEVICE, DEV_DEVICE, PROC_DEVICE, PTS_DEVICE, SHM_DEVICE, SYS_DEVICE};

struct Mount {
    source: &'static str,
    place: Cow<'static, str>,
    kind: &'static str,
    options: &'static str,
    /// The device number, as in stat(2) of the place.
    device: u64,
}

fn mounted(subject: &Subject<'_>) -> Vec<Mount> {
    let root = &subject.cx.kernel.root;
    let (kind, device) = describe(root.directory());
    let can_be_changed = |(path, read_only): &(Vec<u8>, bool)| path == b"/" && !read_only;
    let is_open = root.mounted().is_empty() || root.mounted().iter().any(can_be_changed);
    let options = if is_open { "rw,relatime" } else { "ro,nosuid,nodev,relatime" };
    let first = Mount { source: "root", place: "/".into(), kind, options, device };
    let put = root.mounted().iter().filter(|(path, _)| path != b"/").filter_map(|(path, read_only)| {
        let name = CString::new(&path[..]).ok()?;
        let found = root.open(root.top(), &name, OFlags::PATH.bits(), 0).ok()?;
        let (kind, device) = describe(found.as_fd());
        let options = if *read_only { "ro,nosuid,nodev,relatime" } else { "rw,nosuid,nodev,relatime" };
        Some(Mount { source: "volume", place: escaped(path).into(), kind, options, device })
    });
    let volumes = root.mounted();
    let of_grates = root.in_grates().iter().filter(|path| !volumes.iter().any(|(volume, _)| volume == *path));
    let of_grates = of_grates.map(|path| Mount {
        source: "tmpfs",
        place: escaped(path).into(),
        kind: "tmpfs",
        options: "rw,nosuid,nodev,relatime",
        // Only the grate knows.
        device: 0,
    });
    let own = [
        ("proc", "/proc", "proc", "rw,nosuid,nodev,noexec,relatime", PROC_DEVICE),
        ("dev", "/dev", "devtmpfs", "rw,nosuid,relatime", DEV_DEVICE),
        ("shm", "/dev/shm", "tmpfs", "rw,nosuid,nodev", SHM_DEVICE),
        ("devpts", "/dev/pts", "devpts", "rw,nosuid,noexec,relatime", PTS_DEVICE),
        ("sysfs", "/sys", "sysfs", "ro,nosuid,nodev,noexec,relatime", SYS_DEVICE),
        ("cgroup2", "/sys/fs/cgroup", "cgroup2", "ro,nosuid,nodev,noexec,relatime", CGROUP_DEVICE),
    ]
    .map(|(source, place, kind, options, device)| Mount { source, place: place.into(), kind, options, device });
    let (in_dev, put): (Vec<_>, Vec<_>) = put.partition(|mount| mount.place.starts_with("/dev/"));
    let own = own.into_iter().filter(|mount| !volumes.iter().any(|(path, _)| path == mount.place.as_bytes()));
    std::iter::once(first).chain(put).chain(of_grates).chain(own).chain(in_dev).collect()
}

/// The kind of a file system, and its device.
fn describe(file: impl AsFd) -> (&'static str, u64) {
    let kind = match rustix::fs::fstatfs(&file).map_or(0, |stat| stat.f_type) {
        0xef53 => "ext4",
        0x0102_1994 => "tmpfs",
        0x794c_7630 => "overlay",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        _ => "root",
    };
    (kind, rustix::fs::fstat(&file).map_or(0, |stat| stat.st_dev))
}

/// A path as proc_pid_mounts(5) spells it.
fn escaped(path: &[u8]) -> String {
    let mut text = String::new();
    for part in path.utf8_chunks() {
        for letter in part.valid().chars() {
            match letter {
                ' ' | '\t' | '\n' | '\\' | '#' => {
                    let _ = write!(text, "\\{:03o}", u32::from(letter));
                }
                letter => text.push(letter),
            }
        }
        if !part.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

pub(super) fn mounts(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let line = |Mount { source, place, kind, options, .. }| format!("{source} {place} {kind} {options} 0 0\n");
    Ok(mounted(subject).into_iter().map(line).collect::<String>().into_bytes())
}

pub(super) fn mountinfo(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let all = mounted(subject);
    let mut text = String::new();
    for (id, Mount { source, place, kind, options, device }) in (1..).zip(&all) {
        let above = around(&all, id);
        let (major, minor) = (rustix::fs::major(*device), rustix::fs::minor(*device));
        let _ = writeln!(text, "{id} {above} {major}:{minor} / {place} {options} - {kind} {source} rw");
    }
    Ok(text.into_bytes())
}

/// The number of the mount that one lies in; 0 for the root.
fn around(all: &[Mount], id: usize) -> usize {
    let place = &all[id - 1].place;
    let holds = |other: &Mount| {
        let folder = other.place.trim_end_matches('/');
        place.strip_prefix(folder).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
    };
    let found = all.iter().enumerate().filter(|(_, other)| holds(other)).max_by_key(|(_, other)| other.place.len());
    found.map_or(0, |(index, _)| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_lie_in_one_another() {
        let at = |place: &'static str| Mount { source: "", place: place.into(), kind: "", options: "", device: 0 };
        let all = ["/", "/a", "/a/b", "/ab", "/dev", "/dev/shm"].map(at);
        let found: Vec<_> = (1..=all.len()).map(|id| around(&all, id)).collect();
        assert_eq!(found, [0, 1, 2, 1, 1, 5]);
    }

    #[test]
    fn paths_are_escaped() {
        assert_eq!(escaped(b"/a b\\c#\n"), "/a\\040b\\134c\\043\\012");
        assert_eq!(escaped(b"/a\xffb"), "/a\u{fffd}b");
    }
}
