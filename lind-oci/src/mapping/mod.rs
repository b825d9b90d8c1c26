//! From config.json to the container that lind-boot runs: what is honoured, what is another thing
//! in a cage, what has no effect and a warning, and what is refused. docs/oci.md has the table.

mod allowance;
pub mod capabilities;
mod devices;
mod linux;
mod mounts;
pub mod process;
pub mod seccomp;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::config::{Config, Process};
use crate::network::{self, Network};
use crate::pod;
use crate::program::View;
pub use allowance::of as shown_limits;

/// The prefix of our annotations.
const OURS: &str = "run.lind.";

/// The directories that cages have of their own: nothing is mounted there.
const OWN: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A container for lind-boot.
#[derive(Debug)]
pub struct Mapped {
    /// The description, without the parts that come from the command line.
    pub container: Value,
    /// The process.
    pub process: Value,
    /// The profile of the calls that may be made, if it denies any.
    pub seccomp: Option<Value>,
    /// Whether it is the sandbox of a pod.
    pub is_pod: bool,
    /// The root on the host.
    pub rootfs: PathBuf,
    /// The mounts of the host's files: guest and host.
    pub mounts: Vec<(PathBuf, PathBuf)>,
    /// The network.
    pub network: Network,
    /// Settings of that network.
    pub settings: Vec<(String, String)>,
    /// Things in the file that have no effect.
    pub warnings: Vec<String>,
}

/// Whether a path of the guest is in a directory that cages have of their own.
fn is_own(path: &Path) -> bool {
    OWN.iter().any(|own| path.starts_with(own))
}

/// Maps a config.json.
///
/// # Errors
/// Something that a cage cannot be or have, or a mistake.
pub fn map(config: &Config, bundle: &Path) -> Result<Mapped> {
    ensure_supported(config)?;
    let mut warnings = Vec::new();
    let root = config.root.as_ref().context("root: is missing")?;
    let rootfs = bundle.join(&root.path);
    let rootfs = rootfs.canonicalize().with_context(|| format!("root.path: {}", rootfs.display()))?;
    let (mut mounted, bound) = mounts::map(&config.mounts, bundle, &mut warnings)?;
    // Over the mounts, which are theirs to be in.
    mounted.extend(devices::map(&config.linux.devices, &mut warnings)?);
    let settings = linux::check(&config.linux, &mut warnings)?;
    let view = View { root: &rootfs, mounts: bound.clone() };
    let process = config.process.as_ref().context("process: is missing, and a container has one")?;
    let process = &Process { args: process::without_init(&process.args).to_vec(), ..process.clone() };
    process::warn(process, &mut warnings);
    // The program of a pod's sandbox is not run.
    let is_pod = pod::is_sandbox(&config.annotations, &process.args);
    let module = if is_pod { None } else { view.check(&process.args, &process.env, &process.cwd)? };
    let paths = |paths: &[PathBuf]| -> Vec<PathBuf> { paths.iter().filter(|path| !is_own(path)).cloned().collect() };
    let host_name = config.hostname.clone().filter(|name| !name.is_empty());
    let host_name = host_name.map_or_else(|| network::host_name(&config.linux.namespaces), |name| Ok(Some(name)))?;
    ensure!(host_name.as_ref().is_none_or(|name| name.len() <= 64), "hostname: has more than 64 bytes");
    if config.domainname.is_some() {
        warnings.push("domainname: has no effect; a cage has a host name alone".to_owned());
    }
    let Annotated { policy, grates, overlay } = annotated(config)?;
    ensure!(
        overlay.is_none() || !root.readonly,
        "root.readonly: a root with an overlay is one to be changed; leave it out, or the annotation run.lind.overlay"
    );
    let ahead: Vec<PathBuf> = module.iter().filter_map(path_of).collect();
    let process_json = process::map(process, &view)?;
    let container = json!({
        "root": rootfs, "read_only": root.readonly, "mounts": mounted, "masked": paths(&config.linux.masked_paths),
        "unchanged": paths(&config.linux.readonly_paths), "host_name": host_name, "policy": policy, "grates": grates, "overlay": overlay,
        "ahead": ahead, "files": process::files(process), "terminal": process.terminal, "process": process_json,
        "allowance": shown_limits(&config.linux.resources),
    });
    Ok(Mapped {
        container,
        process: process_json,
        mounts: bound,
        network: Network::of(&config.linux.namespaces),
        settings,
        warnings,
        seccomp: seccomp::map(config.linux.seccomp.as_ref())?,
        is_pod,
        rootfs,
    })
}

/// The path of an open file.
fn path_of(file: &File) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

/// Refuses containers of other systems, and versions that are not known.
fn ensure_supported(config: &Config) -> Result<()> {
    let others = [("vm", &config.vm), ("windows", &config.windows), ("solaris", &config.solaris), ("zos", &config.zos)];
    if let Some((name, _)) = others.iter().find(|(_, value)| value.is_some()) {
        bail!("{name}: a container of this runtime is one of Linux; leave this part of config.json out");
    }
    ensure!(
        config.oci_version.starts_with("1."),
        "ociVersion: {:?} is not a version 1.x of the specification",
        config.oci_version
    );
    Ok(())
}

/// The annotations that are ours.
#[derive(Default)]
struct Annotated<'a> {
    policy: Option<&'a str>,
    grates: Vec<&'a str>,
    overlay: Option<&'a str>,
}

/// Reads the annotations. They may come from somebody who may not read the host's files, so none is
/// named here.
fn annotated(config: &Config) -> Result<Annotated<'_>> {
    let mut ours = Annotated::default();
    for (name, text) in config.annotations.iter().filter(|(name, _)| name.starts_with(OURS)) {
        ensure!(!text.contains(['/', '\\']), "annotation {name}: names a file of the host, which annotations cannot");
        let given = Some(text.as_str()).filter(|text| !text.is_empty());
        match name.strip_prefix(OURS) {
            Some("policy") => ours.policy = given,
            Some("overlay") => {
                ensure!(
                    given.is_none() || !pod::is_of_kubernetes(&config.annotations),
                    "annotation {name}: not for pods of Kubernetes, since the state would stay on the node, and no \
                     limit of the pod counts it; use a volume for what has to stay"
                );
                ours.overlay = given;
            }
            Some("grates") => {
                ours.grates = text.split([';', '\n']).map(str::trim).filter(|grate| !grate.is_empty()).collect();
            }
            _ => bail!("annotation {name}: unknown; there are run.lind.policy, run.lind.grates and run.lind.overlay"),
        }
    }
    Ok(ours)
}

/// Whether the changes of a container go to an overlay.
pub fn has_overlay(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get("run.lind.overlay").is_some_and(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bundle with an empty root, and its config.json with `more` merged into it.
    pub fn bundle(more: Value) -> (tempfile::TempDir, Config) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("rootfs/bin")).unwrap();
        std::fs::write(folder.path().join("rootfs/bin/a"), b"\0asm").unwrap();
        let mut config =
            json!({"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "process": {"args": ["a"], "cwd": "/"}});
        merge(&mut config, more);
        (folder, Config::parse(config.to_string().as_bytes()).unwrap())
    }

    fn merge(into: &mut Value, more: Value) {
        match (into, more) {
            (Value::Object(into), Value::Object(more)) => {
                more.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
            }
            (into, more) => *into = more,
        }
    }

    fn mapped(more: Value) -> Result<Mapped> {
        let (folder, config) = bundle(more);
        map(&config, folder.path())
    }

    #[test]
    fn the_root_and_its_paths_are_mapped() {
        let container = mapped(json!({
            "root": {"readonly": true}, "hostname": "h",
            "linux": {"maskedPaths": ["/proc/kcore", "/secret"], "readonlyPaths": ["/etc", "/sys/x"]},
        }));
        let container = container.unwrap().container;
        assert_eq!((&container["read_only"], &container["host_name"]), (&json!(true), &json!("h")));
        assert_eq!((&container["masked"], &container["unchanged"]), (&json!(["/secret"]), &json!(["/etc"])));
    }

    #[test]
    fn what_a_cage_is_not_is_refused() {
        for (more, part) in [
            (json!({"vm": {}}), "vm: a container of this runtime is one of Linux"),
            (json!({"windows": {}}), "windows: "),
            (json!({"solaris": {}}), "solaris: "),
            (json!({"zos": {}}), "zos: "),
            (json!({"ociVersion": "2.0"}), "ociVersion"),
            (json!({"root": {"path": "nowhere"}}), "root.path"),
            (json!({"process": {"args": []}}), "process.args"),
            (json!({"hostname": "x".repeat(65)}), "hostname"),
            (json!({"annotations": {"run.lind.policy": "/etc/shadow"}}), "names a file of the host"),
            (json!({"annotations": {"run.lind.overlay": "../x"}}), "names a file of the host"),
            (json!({"annotations": {"run.lind.overlay": "x"}, "root": {"readonly": true}}), "root.readonly"),
            (
                json!({"annotations": {"run.lind.overlay": "x", "io.kubernetes.cri.container-type": "container"}}),
                "not for pods",
            ),
            (json!({"annotations": {"run.lind.polcy": "x"}}), "unknown"),
        ] {
            let error = format!("{:#}", mapped(more.clone()).unwrap_err());
            assert!(error.contains(part), "{more}: {error}");
        }
    }

    #[test]
    fn annotations_choose_the_policy_the_grates_and_the_overlay() {
        let more = json!({"annotations": {"run.lind.policy": "readonly", "run.lind.grates": "a_grate --x; b_grate",
            "run.lind.overlay": "fix:try", "other": "/"}});
        let container = mapped(more).unwrap().container;
        assert_eq!(
            (&container["policy"], &container["grates"]),
            (&json!("readonly"), &json!(["a_grate --x", "b_grate"]))
        );
        assert_eq!(container["overlay"], "fix:try");
        assert_eq!(mapped(json!({"annotations": {"run.lind.overlay": ""}})).unwrap().container["overlay"], Value::Null);
    }
}
