//! config.json, as far as something in it has an effect or is refused. Fields that are not here
//! have none.

#![allow(missing_docs, reason = "the fields are those of the specification, which describes them")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the file in a bundle.
pub const FILE: &str = "config.json";

/// The most bytes in the file.
const MOST: u64 = 16 << 20;

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
#[derive(Deserialize, Debug, Clone, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Device {
    pub path: PathBuf,
    #[serde(rename = "type")]
    pub kind: String,
    pub major: Option<i64>,
    pub minor: Option<i64>,
    pub file_mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
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
        let file = File::open(&path)
            .with_context(|| format!("{}: a bundle has this file; `lind-oci spec` writes one", path.display()))?;
        let mut text = Vec::new();
        file.take(MOST + 1).read_to_end(&mut text).with_context(|| path.display().to_string())?;
        ensure!(text.len() as u64 <= MOST, "{}: is longer than {} MiB", path.display(), MOST >> 20);
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
    /// The limits after an update, which may say nothing of some.
    #[must_use]
    pub fn updated(mut self, by: &Resources) -> Resources {
        // The words of version 2 are the last that is written, so those of before must not stay.
        let newer: [(&str, bool); 3] = [
            ("memory.max", by.memory.limit.is_some()),
            ("cpu.max", by.cpu.quota.is_some() || by.cpu.period.is_some()),
            ("pids.max", by.pids.limit.is_some()),
        ];
        for (file, _) in newer.into_iter().filter(|(_, is_newer)| *is_newer) {
            self.unified.remove(file);
        }
        self.memory.limit = by.memory.limit.or(self.memory.limit);
        self.memory.reservation = by.memory.reservation.or(self.memory.reservation);
        self.memory.swap = by.memory.swap.or(self.memory.swap);
        self.cpu.shares = by.cpu.shares.or(self.cpu.shares);
        self.cpu.quota = by.cpu.quota.or(self.cpu.quota);
        self.cpu.period = by.cpu.period.or(self.cpu.period);
        self.cpu.cpus = by.cpu.cpus.clone().or(self.cpu.cpus);
        self.cpu.mems = by.cpu.mems.clone().or(self.cpu.mems);
        self.pids.limit = by.pids.limit.or(self.pids.limit);
        self.block_io.weight = by.block_io.weight.or(self.block_io.weight);
        self.unified.extend(by.unified.clone());
        self
    }

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
    fn an_update_changes_what_it_names() {
        let of = |text: &str| Resources::parse(text.as_bytes()).unwrap();
        let before = of(
            r#"{"cpu": {"quota": 1, "period": 2}, "pids": {"limit": 3}, "unified": {"memory.max": "4", "io.max": "5"}}"#,
        );
        let after = before.updated(&of(r#"{"cpu": {"quota": 6}, "memory": {"limit": 7}}"#));
        assert_eq!((after.cpu.quota, after.cpu.period, after.pids.limit), (Some(6), Some(2), Some(3)));
        assert_eq!((after.memory.limit, after.unified), (Some(7), BTreeMap::from([("io.max".into(), "5".into())])));
    }

    #[test]
    fn files_without_an_end_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join(FILE)).unwrap();
        let error = Config::read(folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("is longer than 16 MiB"), "{error}");
    }

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
