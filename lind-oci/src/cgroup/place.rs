//! The hierarchies of the host, and the place of a container's group in them.

use std::io::Result;
use std::path::{Path, PathBuf};

/// The hierarchies of control groups.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hierarchies {
    /// The one of version 2, if it has the controllers.
    pub unified: Option<PathBuf>,
    /// The hierarchies of version 1, by their controllers.
    pub separate: Vec<(String, PathBuf)>,
}

/// The controllers of version 1, and the names of hierarchies without one.
const CONTROLLERS: [&str; 13] = [
    "cpu",
    "cpuacct",
    "cpuset",
    "memory",
    "pids",
    "blkio",
    "devices",
    "freezer",
    "net_cls",
    "net_prio",
    "perf_event",
    "hugetlb",
    "name=systemd",
];

impl Hierarchies {
    /// The hierarchies of the host.
    pub fn of_host() -> Hierarchies {
        Hierarchies::of(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
    }

    /// The hierarchies in the text of mountinfo. Where version 1 has the controllers, a mount of
    /// version 2 beside them has none that count.
    fn of(mounts: &str) -> Hierarchies {
        let mut found = Hierarchies::default();
        for line in mounts.lines() {
            let Some((before, after)) = line.split_once(" - ") else { continue };
            let Some(place) = before.split(' ').nth(4) else { continue };
            let mut after = after.split(' ');
            match (after.next(), after.nth(1)) {
                (Some("cgroup2"), _) => found.unified = Some(place.into()),
                (Some("cgroup"), Some(options)) => {
                    let controllers = options.split(',').filter(|option| CONTROLLERS.contains(option));
                    found.separate.extend(controllers.map(|controller| (controller.to_owned(), PathBuf::from(place))));
                }
                _ => {}
            }
        }
        // Of several controllers in one hierarchy each is listed, with the same directory.
        if found.separate.iter().any(|(name, _)| !name.starts_with("name=")) {
            found.unified = None;
        } else {
            found.separate.clear();
        }
        found
    }
}

/// The path of a container's group: what config.json says, or one for its id.
pub fn path_of(cgroups_path: Option<&str>, id: &str, by_systemd: bool) -> PathBuf {
    let Some(path) = cgroups_path.filter(|path| !path.is_empty()) else { return Path::new("/lind-oci").join(id) };
    let parts: Vec<&str> = path.split(':').collect();
    match parts[..] {
        [slice, prefix, name] if by_systemd || !path.starts_with('/') => of_slice(slice, prefix, name),
        _ => clean(Path::new(path)),
    }
}

/// The path of systemd for a scope in a slice: a-b.slice is in a.slice.
fn of_slice(slice: &str, prefix: &str, name: &str) -> PathBuf {
    let mut path = PathBuf::from("/");
    let slice = if slice.is_empty() { "system.slice" } else { slice };
    let stem = slice.strip_suffix(".slice").unwrap_or(slice);
    let mut so_far = String::new();
    for part in stem.split('-').filter(|part| !part.is_empty()) {
        if !so_far.is_empty() {
            so_far.push('-');
        }
        so_far.push_str(part);
        path.push(format!("{so_far}.slice"));
    }
    let unit = match (name.ends_with(".slice"), prefix.is_empty()) {
        (true, _) => name.to_owned(),
        (false, true) => format!("{name}.scope"),
        (false, false) => format!("{prefix}-{name}.scope"),
    };
    path.join(unit)
}

/// The path without `..`, which would lead out of the hierarchy.
fn clean(path: &Path) -> PathBuf {
    let names = path.components().filter(|part| matches!(part, std::path::Component::Normal(_)));
    Path::new("/").join(names.collect::<PathBuf>())
}

/// Makes a group of version 2, and lets it and its ancestors have controllers.
///
/// # Errors
/// The host's error.
pub fn make_unified(hierarchies: &Hierarchies, folder: &Path) -> Result<()> {
    let Some(top) = &hierarchies.unified else { return Ok(()) };
    let below = folder.strip_prefix(top).unwrap_or(folder);
    let mut at = top.clone();
    for name in below {
        // Some may be missing or in use; a limit that needs one says so.
        for controller in ["+cpu", "+cpuset", "+memory", "+pids", "+io"] {
            let _ = std::fs::write(at.join("cgroup.subtree_control"), controller);
        }
        at.push(name);
        make(&at)?;
    }
    Ok(())
}

/// Makes a group of version 1.
///
/// # Errors
/// The host's error.
pub fn make_separate(hierarchies: &Hierarchies, controller: &str, folder: &Path) -> Result<()> {
    let Some((_, top)) = hierarchies.separate.iter().find(|(name, _)| name == controller) else { return Ok(()) };
    let mut at = top.clone();
    for name in folder.strip_prefix(top).unwrap_or(folder) {
        let above = at.clone();
        at.push(name);
        make(&at)?;
        if controller == "cpuset" {
            inherit(&above, &at)?;
        }
    }
    Ok(())
}

/// A group without processors and nodes of memory takes no process.
fn inherit(above: &Path, at: &Path) -> Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if std::fs::read_to_string(at.join(file))?.trim().is_empty() {
            std::fs::write(at.join(file), std::fs::read_to_string(above.join(file))?.trim())?;
        }
    }
    Ok(())
}

fn make(folder: &Path) -> Result<()> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_of_both_versions_are_found() {
        let second = "30 1 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let found = Hierarchies::of(second);
        assert_eq!(found, Hierarchies { unified: Some("/sys/fs/cgroup".into()), separate: Vec::new() });
        let hybrid = "31 1 0:27 / /c/unified rw - cgroup2 cgroup2 rw\n32 1 0:28 / /c/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                      33 1 0:29 / /c/systemd rw - cgroup cgroup rw,name=systemd\n34 1 0:30 / / rw - ext4 /dev/a rw\n";
        let found = Hierarchies::of(hybrid);
        let names: Vec<_> = found.separate.iter().map(|(name, place)| format!("{name} {}", place.display())).collect();
        assert_eq!(names, ["cpu /c/cpu", "cpuacct /c/cpu", "name=systemd /c/systemd"]);
        assert_eq!(found.unified, None);
        let of_systemd = "30 1 0:26 / /c rw - cgroup2 cgroup2 rw\n33 1 0:29 / /s rw - cgroup cgroup rw,name=systemd\n";
        assert!(Hierarchies::of(of_systemd).separate.is_empty());
    }

    #[test]
    fn paths_are_those_of_config_json() {
        let of = |path: Option<&str>, by_systemd: bool| path_of(path, "id", by_systemd).display().to_string();
        assert_eq!(of(None, true), "/lind-oci/id");
        assert_eq!(of(Some("/default/x"), false), "/default/x");
        assert_eq!(of(Some("a/../../b"), false), "/a/b");
        assert_eq!(of(Some("machine-pod.slice:libpod:abc"), true), "/machine.slice/machine-pod.slice/libpod-abc.scope");
        assert_eq!(of(Some("system.slice:docker:abc"), false), "/system.slice/docker-abc.scope");
        assert_eq!(of(Some(":cri:abc"), true), "/system.slice/cri-abc.scope");
        assert_eq!(of(Some("a.slice::b"), true), "/a.slice/b.scope");
        assert_eq!(of(Some("/a:b:c"), false), "/a:b:c");
    }
}
