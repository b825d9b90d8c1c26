//! config.json, as far as something in it has an effect or is refused. Fields that are not here
//! have none.

#![allow(missing_docs, reason = "the fields are those of the specification, which describes them")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the file in a bundle.
pub const FILE: &str = "config.json";

/// The whole file.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    pub oci_version: String,
    pub process: Option<Process>,
    pub root: Option<Root>,
    pub hostname: Option<String>,
    pub domainname: Option<String>,
    pub mounts: Vec<Mount>,
    pub hooks: Hooks,
    pub annotations: BTreeMap<String, String>,
    pub linux: Linux,
    pub vm: Option<Value>,
    pub windows: Option<Value>,
    pub solaris: Option<Value>,
    pub zos: Option<Value>,
}

/// A process.
#[derive(Deserialize, Debug, Default, Clone)]
#[serde(rename_all = "camelCase", default)]
pub struct Process {
    pub terminal: bool,
    pub console_size: Option<ConsoleSize>,
    pub user: User,
    pub args: Vec<String>,
    pub env: Vec<String>,
    pub cwd: String,
    pub capabilities: Option<Capabilities>,
    pub rlimits: Vec<Rlimit>,
    pub no_new_privileges: bool,
    pub apparmor_profile: Option<String>,
    pub selinux_label: Option<String>,
    pub oom_score_adj: Option<i32>,
    pub scheduler: Option<Value>,
    pub io_priority: Option<Value>,
    #[serde(rename = "execCPUAffinity")]
    pub exec_cpu_affinity: Option<Value>,
}

/// The size of a terminal.
#[derive(Deserialize, Debug, Clone, Copy)]
pub struct ConsoleSize {
    pub height: u16,
    pub width: u16,
}

/// A user.
#[derive(Deserialize, Debug, Default, Clone)]
#[serde(rename_all = "camelCase", default)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
    pub umask: Option<u32>,
    pub additional_gids: Vec<u32>,
}

/// Sets of capabilities, by name.
#[derive(Deserialize, Debug, Default, Clone)]
#[serde(default)]
pub struct Capabilities {
    pub bounding: Vec<String>,
    pub effective: Vec<String>,
    pub permitted: Vec<String>,
    pub inheritable: Vec<String>,
    pub ambient: Vec<String>,
}

/// A resource limit.
#[derive(Deserialize, Debug, Clone)]
pub struct Rlimit {
    #[serde(rename = "type")]
    pub kind: String,
    pub soft: u64,
    pub hard: u64,
}

/// The root file system.
#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub struct Root {
    pub path: PathBuf,
    pub readonly: bool,
}

/// A mount.
#[derive(Deserialize, Debug, Default, Clone)]
#[serde(rename_all = "camelCase", default)]
pub struct Mount {
    pub destination: PathBuf,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub source: Option<PathBuf>,
    pub options: Vec<String>,
    pub uid_mappings: Vec<Value>,
    pub gid_mappings: Vec<Value>,
}

/// The programs of the host that are run at points of a container's life.
#[derive(Deserialize, Serialize, Debug, Default, Clone)]
#[serde(rename_all = "camelCase", default)]
pub struct Hooks {
    pub prestart: Vec<Hook>,
    pub create_runtime: Vec<Hook>,
    pub create_container: Vec<Hook>,
    pub start_container: Vec<Hook>,
    pub poststart: Vec<Hook>,
    pub poststop: Vec<Hook>,
}

/// Such a program.
#[derive(Deserialize, Serialize, Debug, Default, Clone)]
#[serde(default)]
pub struct Hook {
    pub path: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<String>,
    pub timeout: Option<u64>,
}

/// The part of the file that is about Linux.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Linux {
    pub namespaces: Vec<Namespace>,
    pub uid_mappings: Vec<Value>,
    pub gid_mappings: Vec<Value>,
    pub devices: Vec<Device>,
    pub cgroups_path: Option<String>,
    pub resources: Resources,
    pub rootfs_propagation: Option<String>,
    pub seccomp: Option<Value>,
    pub sysctl: BTreeMap<String, String>,
    pub masked_paths: Vec<PathBuf>,
    pub readonly_paths: Vec<PathBuf>,
    pub mount_label: Option<String>,
    pub intel_rdt: Option<Value>,
    pub personality: Option<Value>,
    pub time_offsets: Option<Value>,
}

/// A namespace: a new one, or the one at a path.
#[derive(Deserialize, Debug, Clone)]
pub struct Namespace {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub path: Option<PathBuf>,
}

impl Namespace {
    /// The path of a namespace that there is already. None if a new one is wanted, also by an empty
    /// path.
    pub fn of_others(&self) -> Option<&Path> {
        self.path.as_deref().filter(|path| !path.as_os_str().is_empty())
    }
}

/// A device node.
#[derive(Deserialize, Debug, Clone)]
pub struct Device {
    pub path: PathBuf,
}

/// Limits for a control group.
#[derive(Deserialize, Serialize, Debug, Default, Clone)]
#[serde(rename_all = "camelCase", default)]
pub struct Resources {
    pub memory: Memory,
    pub cpu: Cpu,
    pub pids: Pids,
    #[serde(rename = "blockIO")]
    pub block_io: BlockIo,
    pub unified: BTreeMap<String, String>,
}

/// Limits of memory, in bytes.
#[derive(Deserialize, Serialize, Debug, Default, Clone)]
#[serde(rename_all = "camelCase", default)]
pub struct Memory {
    pub limit: Option<i64>,
    pub reservation: Option<i64>,
    pub swap: Option<i64>,
}

/// Shares and limits of processor time.
#[derive(Deserialize, Serialize, Debug, Default, Clone)]
#[serde(rename_all = "camelCase", default)]
pub struct Cpu {
    pub shares: Option<u64>,
    pub quota: Option<i64>,
    pub period: Option<u64>,
    pub cpus: Option<String>,
    pub mems: Option<String>,
}

/// The limit of tasks.
#[derive(Deserialize, Serialize, Debug, Default, Clone)]
#[serde(default)]
pub struct Pids {
    pub limit: Option<i64>,
}

/// Shares of disks.
#[derive(Deserialize, Serialize, Debug, Default, Clone)]
#[serde(default)]
pub struct BlockIo {
    pub weight: Option<u16>,
}

impl Config {
    /// Reads the file of a bundle.
    ///
    /// # Errors
    /// When it cannot be read, or is not such a file.
    pub fn read(bundle: &Path) -> Result<Config> {
        let path = bundle.join(FILE);
        let text = std::fs::read(&path)
            .with_context(|| format!("{}: a bundle has this file; `lind-oci spec` writes one", path.display()))?;
        Config::parse(&text).with_context(|| path.display().to_string())
    }

    /// Parses the text of such a file. A value that is null counts as missing.
    ///
    /// # Errors
    /// The place of a mistake.
    pub fn parse(text: &[u8]) -> Result<Config> {
        Ok(serde_json::from_value(without_nulls(serde_json::from_slice(text)?))?)
    }
}

impl Process {
    /// Parses the text of a process alone, as `exec` gets it.
    ///
    /// # Errors
    /// The place of a mistake.
    pub fn parse(text: &[u8]) -> Result<Process> {
        Ok(serde_json::from_value(without_nulls(serde_json::from_slice(text)?))?)
    }
}

impl Resources {
    /// Parses the text of limits alone, as `update` gets it.
    ///
    /// # Errors
    /// The place of a mistake.
    pub fn parse(text: &[u8]) -> Result<Resources> {
        Ok(serde_json::from_value(without_nulls(serde_json::from_slice(text)?))?)
    }
}

/// Programs in Go write null for lists and objects that are empty.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(keys) => Value::Object(
            keys.into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, without_nulls(value)))
                .collect(),
        ),
        Value::Array(all) => Value::Array(all.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_and_unknown_fields_are_left_out() {
        let text = br#"{"ociVersion": "1.0.2", "process": {"args": ["a"], "rlimits": null, "cwd": "/"},
            "mounts": null, "linux": {"resources": {"memory": {"limit": 5}, "devices": [{"allow": false}]}, "new": 1}}"#;
        let config = Config::parse(text).unwrap();
        assert_eq!(config.linux.resources.memory.limit, Some(5));
        assert_eq!(config.process.unwrap().args, ["a"]);
        assert!(Config::parse(b"{\"process\": {\"args\": 5}}").is_err());
    }
}
