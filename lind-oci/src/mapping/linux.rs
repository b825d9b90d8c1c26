//! The part of config.json that is about Linux.

use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::config::{Linux, Namespace};
use crate::network::Network;

/// Settings that a cage has of its own, so that they have no effect.
const OWN_SETTINGS: [&str; 10] = [
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.domainname",
    "kernel.hostname",
];

/// Checks it, and returns the settings for the container's network.
///
/// # Errors
/// Something that a cage cannot be.
pub fn check(linux: &Linux, warnings: &mut Vec<String>) -> Result<Vec<(String, String)>> {
    let mut none = |what: &str, instead: &str| warnings.push(format!("linux.{what}: has no effect; {instead}"));
    for namespace in &linux.namespaces {
        if let Some(path) = others(namespace)? {
            none("namespaces", &format!("a cage does not see the processes of {}", path.display()));
        }
    }
    if linux.mount_label.as_ref().is_some_and(|label| !label.is_empty()) {
        bail!(
            "linux.mountLabel: files in a cage have no SELinux label; leave it out (podman: --security-opt label=disable)"
        );
    }
    if let Some("shared" | "rshared") = linux.rootfs_propagation.as_deref() {
        bail!("linux.rootfsPropagation: mounts of a cage do not spread to the host; use private or slave");
    }
    let has_users = linux.namespaces.iter().any(|namespace| namespace.kind == "user");
    if has_users || !linux.uid_mappings.is_empty() || !linux.gid_mappings.is_empty() {
        none("uidMappings", "ids in a cage are those of the host's files");
    }
    for (what, is_there) in [
        ("intelRdt", linux.intel_rdt.is_some()),
        ("personality", linux.personality.is_some()),
        ("timeOffsets", linux.time_offsets.is_some()),
    ] {
        if is_there {
            none(what, "a cage has none");
        }
    }
    let own_network = Network::of(&linux.namespaces) != Network::Own;
    let mut settings = Vec::new();
    for (name, value) in &linux.sysctl {
        if name.starts_with("net.") && !name.contains('/') && !name.contains("..") {
            ensure!(own_network, "linux.sysctl: {name} would change the host; give the container a network namespace");
            settings.push((name.clone(), value.clone()));
        } else if OWN_SETTINGS.contains(&name.as_str()) || name.starts_with("fs.mqueue.") {
            none("sysctl", &format!("a cage has a {name} of its own"));
        } else {
            bail!("linux.sysctl: {name} cannot be set for a container");
        }
    }
    Ok(settings)
}

/// The pid namespace of others, if a container shall be in one. Kubernetes' interface asks for the
/// pod's unless a caller says otherwise, so it gets a warning and not an error.
///
/// # Errors
/// The mount namespace of others: a cage has mounts of its own.
fn others(namespace: &Namespace) -> Result<Option<&Path>> {
    let Some(path) = namespace.of_others() else { return Ok(None) };
    match namespace.kind.as_str() {
        // /dev/shm comes as a mount, and message queues are the cage's own.
        "network" | "uts" | "ipc" | "cgroup" | "user" | "time" => Ok(None),
        "pid" => Ok(Some(path)),
        kind => bail!("linux.namespaces: a cage cannot be in the {kind} namespace {}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The settings, and the warnings.
    type Checked = (Vec<(String, String)>, Vec<String>);

    fn checked(text: &str) -> Result<Checked> {
        let mut warnings = Vec::new();
        let settings = check(&serde_json::from_str(text).unwrap(), &mut warnings)?;
        Ok((settings, warnings))
    }

    #[test]
    fn what_has_no_effect_is_warned_about() {
        for (text, what) in [
            (r#"{"intelRdt": {}}"#, "intelRdt"),
            (r#"{"personality": {}}"#, "personality"),
            (r#"{"timeOffsets": {}}"#, "timeOffsets"),
            (r#"{"namespaces": [{"type": "pid", "path": "/proc/1/ns/pid"}]}"#, "namespaces"),
            (r#"{"namespaces": [{"type": "user"}], "uidMappings": [{}]}"#, "uidMappings"),
            (r#"{"sysctl": {"kernel.shmmax": "1"}}"#, "sysctl"),
        ] {
            let (_, warnings) = checked(text).unwrap();
            assert!(warnings.len() == 1 && warnings[0].starts_with(&format!("linux.{what}")), "{text}: {warnings:?}");
        }
        let text = r#"{"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "cgroup"}], "rootfsPropagation": "rslave"}"#;
        assert!(checked(text).unwrap().1.is_empty());
    }

    #[test]
    fn what_a_cage_cannot_be_is_refused() {
        for (text, part) in [
            (r#"{"namespaces": [{"type": "mount", "path": "/m"}]}"#, "mount namespace /m"),
            (r#"{"mountLabel": "x"}"#, "mountLabel"),
            (r#"{"rootfsPropagation": "rshared"}"#, "rootfsPropagation"),
            (r#"{"sysctl": {"vm.swappiness": "1"}}"#, "vm.swappiness"),
            (r#"{"sysctl": {"net.core.somaxconn": "1"}}"#, "would change the host"),
        ] {
            let error = checked(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn settings_of_an_own_network_are_kept() {
        let text =
            r#"{"namespaces": [{"type": "network", "path": "/n"}], "sysctl": {"net.ipv4.ping_group_range": "0 0"}}"#;
        assert_eq!(checked(text).unwrap().0, [("net.ipv4.ping_group_range".to_owned(), "0 0".to_owned())]);
    }
}
