//! The mounts of config.json.

use std::path::{Component, Path, PathBuf};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::is_own;
use crate::config::Mount;

/// File systems that cages have of their own, or have none of.
const KERNELS: [&str; 8] = ["proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue", "devtmpfs", "securityfs"];

/// The names in /dev that cages have of their own.
const DEVICES: [&str; 14] = [
    "null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "pts", "fd", "stdin", "stdout", "stderr",
    "mqueue",
];

/// Options of mounts that say how mounts on the host spread. Nothing spreads out of a container.
const SPREADING: [&str; 4] = ["shared", "rshared", "slave", "rslave"];

/// The permissions of the top of a file system in memory.
const MODE: u32 = 0o1777;

/// The guest's path of a mount of a host's file, and that file.
pub type Bound = (PathBuf, PathBuf);

/// The mounts as lind-boot reads them, and those of the host's files, guest and host.
///
/// # Errors
/// A mount that a cage cannot have.
pub fn map(mounts: &[Mount], bundle: &Path, warnings: &mut Vec<String>) -> Result<(Vec<Value>, Vec<Bound>)> {
    let (mut all, mut bound) = (Vec::new(), Vec::new());
    for mount in mounts {
        let guest = clean(&mount.destination);
        let shown = mount.destination.display();
        ensure!(
            mount.uid_mappings.is_empty()
                && mount.gid_mappings.is_empty()
                && !has(mount, "idmap")
                && !has(mount, "ridmap"),
            "mounts: {shown}: ids are not mapped in mounts; mount it without uidMappings and gidMappings"
        );
        let is_bind = has(mount, "bind") || has(mount, "rbind") || mount.kind.as_deref() == Some("bind");
        let kind = mount.kind.as_deref().unwrap_or(if is_bind { "bind" } else { "none" });
        if (is_own(&guest) && !is_in_dev(&guest)) || (!is_bind && KERNELS.contains(&kind)) {
            if is_bind && guest != Path::new("/dev/mqueue") {
                warnings.push(format!("mounts: {shown}: has no effect; a cage has its own there"));
            }
            continue;
        }
        ensure!(guest != Path::new("/"), "mounts: {shown}: the root cannot be mounted over; use root.path");
        if let Some(option) = mount.options.iter().find(|option| SPREADING[..2].contains(&option.as_str())) {
            warnings
                .push(format!("mounts: {shown}: {option} has no effect: mounts do not spread from a cage to the host"));
        }
        let read_only = has(mount, "ro") || has(mount, "rro");
        let what = match kind {
            _ if is_bind => {
                let Some(source) = &mount.source else { bail!("mounts: {shown}: has no source") };
                let source = bundle.join(source);
                ensure!(source.exists(), "mounts: {shown}: the source {} does not exist", source.display());
                // No program is looked for in /dev.
                if !is_own(&guest) {
                    bound.push((guest.clone(), source.clone()));
                }
                json!({"bind": {"source": source, "recursive": !has(mount, "bind") || has(mount, "rbind")}})
            }
            "tmpfs" => memory(mount)?,
            kind => bail!("mounts: {shown}: a cage has no file system of the type {kind:?}; there are bind and tmpfs"),
        };
        all.push(json!({"guest": guest, "read_only": read_only, "what": what}));
    }
    Ok((all, bound))
}

/// Whether a path is below /dev, and its name there is none of those that the kernel of cages has.
/// Only /dev/shm can be one of the host's instead.
pub fn is_in_dev(guest: &Path) -> bool {
    let name = guest.strip_prefix("/dev").ok().and_then(|rest| rest.components().next());
    name.is_some_and(|name| !DEVICES.iter().any(|own| name.as_os_str() == *own))
}

fn has(mount: &Mount, option: &str) -> bool {
    mount.options.iter().any(|known| known == option)
}

fn memory(mount: &Mount) -> Result<Value> {
    let value = |name: &str| mount.options.iter().rev().find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
    let wrong = |option: &str, text: &str| format!("mounts: {}: {option}={text} is wrong", mount.destination.display());
    let mode = value("mode").map_or(Ok(MODE), |text| u32::from_str_radix(text, 8).map_err(|_| wrong("mode", text)));
    let size = value("size").map(|text| bytes(text).ok_or_else(|| wrong("size", text))).transpose();
    Ok(
        json!({"memory": {"size": size.map_err(anyhow::Error::msg)?.flatten(), "mode": mode.map_err(anyhow::Error::msg)? & 0o7777}}),
    )
}

/// Bytes, with a unit of tmpfs(5). None within for a share of the host's memory: the default.
fn bytes(text: &str) -> Option<Option<u64>> {
    if text.ends_with('%') {
        return Some(None);
    }
    let (digits, shift) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 10),
        (at, 'm' | 'M') => (&text[..at], 20),
        (at, 'g' | 'G') => (&text[..at], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift).map(Some)
}

/// An absolute path without `.` and `..`.
pub fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => drop(clean.pop()),
            _ => {}
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(text: &str) -> Result<(Vec<Value>, Vec<String>)> {
        let mut warnings = Vec::new();
        let (mounts, _) = map(&serde_json::from_str::<Vec<Mount>>(text).unwrap(), Path::new("/"), &mut warnings)?;
        Ok((mounts, warnings))
    }

    #[test]
    fn mounts_of_both_kinds_keep_their_order() {
        let (mounts, warnings) = mapped(
            r#"[{"destination": "/a", "type": "bind", "source": "/etc", "options": ["rbind", "ro"]},
            {"destination": "/a/../b", "source": "/etc/passwd", "options": ["bind"]},
            {"destination": "/c", "type": "tmpfs", "source": "tmpfs", "options": ["size=64k", "mode=0750", "nosuid"]},
            {"destination": "/d", "type": "tmpfs", "options": ["size=50%"]}]"#,
        )
        .unwrap();
        let expected = json!([
            {"guest": "/a", "read_only": true, "what": {"bind": {"source": "/etc", "recursive": true}}},
            {"guest": "/b", "read_only": false, "what": {"bind": {"source": "/etc/passwd", "recursive": false}}},
            {"guest": "/c", "read_only": false, "what": {"memory": {"size": 65536, "mode": 0o750}}},
            {"guest": "/d", "read_only": false, "what": {"memory": {"size": null, "mode": 0o1777}}},
        ]);
        assert!(warnings.is_empty());
        assert_eq!(Value::from(mounts), expected);
    }

    #[test]
    fn directories_of_the_cage_stay_its_own() {
        let (mounts, warnings) = mapped(
            r#"[{"destination": "/proc", "type": "proc"}, {"destination": "/dev", "type": "tmpfs"},
            {"destination": "/dev/pts", "type": "devpts"}, {"destination": "/dev/null", "type": "tmpfs"},
            {"destination": "/sys/fs/cgroup", "type": "cgroup"}, {"destination": "/dev/mqueue", "type": "mqueue"},
            {"destination": "/elsewhere", "type": "proc"}, {"destination": "/sys", "type": "sysfs", "options": ["ro"]},
            {"destination": "/dev/pts/0", "type": "bind", "source": "/x", "options": ["rbind"]}]"#,
        )
        .unwrap();
        assert!(mounts.is_empty());
        assert_eq!(warnings, ["mounts: /dev/pts/0: has no effect; a cage has its own there"]);
    }

    #[test]
    fn other_names_in_dev_are_mounted() {
        let (mounts, warnings) = mapped(
            r#"[{"destination": "/dev/shm", "type": "tmpfs", "options": ["size=64k"]},
            {"destination": "/dev/termination-log", "type": "bind", "source": "/etc/passwd", "options": ["rbind"]}]"#,
        )
        .unwrap();
        assert!(warnings.is_empty());
        let guests: Vec<_> = mounts.iter().map(|mount| mount["guest"].as_str().unwrap()).collect();
        assert_eq!(guests, ["/dev/shm", "/dev/termination-log"]);
    }

    #[test]
    fn other_mounts_are_refused() {
        for (text, part) in [
            (r#"[{"destination": "/a", "type": "overlay", "source": "o"}]"#, "no file system of the type \"overlay\""),
            (r#"[{"destination": "/", "type": "bind", "source": "/etc", "options": ["bind"]}]"#, "root.path"),
            (r#"[{"destination": "/a", "type": "bind", "options": ["bind"]}]"#, "has no source"),
            (r#"[{"destination": "/a", "type": "bind", "source": "/no/such", "options": ["bind"]}]"#, "does not exist"),
            (r#"[{"destination": "/a", "type": "bind", "source": "/etc", "uidMappings": [{}]}]"#, "uidMappings"),
            (r#"[{"destination": "/a", "type": "tmpfs", "options": ["size=x"]}]"#, "size=x"),
        ] {
            let error = mapped(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let (_, warnings) =
            mapped(r#"[{"destination": "/a", "type": "bind", "source": "/etc", "options": ["rshared"]}]"#).unwrap();
        assert!(warnings[0].contains("rshared has no effect"));
    }
}
