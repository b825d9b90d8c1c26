//! The process of a container, and those that `exec` starts.

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::capabilities;
use crate::config::{Process, Rlimit};
use crate::program::{View, home};

/// The permissions that new files do not get, unless config.json says so.
const UMASK: u32 = 0o022;

/// The numbers of descriptors that a program may have: at least, and at most.
const FILES: (u64, u64) = (1024, 65536);

/// The resource limits, by number.
const RESOURCES: [&str; 16] = [
    "CPU",
    "FSIZE",
    "DATA",
    "STACK",
    "CORE",
    "RSS",
    "NPROC",
    "NOFILE",
    "MEMLOCK",
    "AS",
    "LOCKS",
    "SIGPENDING",
    "MSGQUEUE",
    "NICE",
    "RTPRIO",
    "RTTIME",
];

/// The number of the limit of descriptors.
const NOFILE: usize = 7;

/// The process as lind-boot reads it.
///
/// # Errors
/// A mistake, or something that a cage cannot have.
pub fn map(process: &Process, view: &View<'_>) -> Result<Value> {
    ensure!(!process.args.is_empty() && !process.args[0].is_empty(), "process.args: has no program");
    ensure!(process.cwd.starts_with('/'), "process.cwd: {:?} is not an absolute path", process.cwd);
    for text in process.args.iter().chain(&process.env).chain([&process.cwd]) {
        ensure!(!text.contains('\0'), "process: {text:?} has a NUL byte");
    }
    if process.selinux_label.as_ref().is_some_and(|label| !label.is_empty()) {
        bail!("process.selinuxLabel: a cage has no SELinux label; leave it out (podman: --security-opt label=disable)");
    }
    let mut env: Vec<String> = process.env.iter().filter(|text| text.contains('=')).cloned().collect();
    if !env.iter().any(|text| text.starts_with("HOME=")) {
        env.push(format!("HOME={}", home(view, process.user.uid).unwrap_or_else(|| "/".to_owned())));
    }
    let user = &process.user;
    let capabilities = process.capabilities.as_ref().map(|sets| match sets.bounding.is_empty() {
        true => capabilities::set(&sets.effective),
        false => capabilities::set(&sets.bounding),
    });
    // As on Linux, a program has none of them beyond the bounding set.
    let ambient = process.capabilities.as_ref().map_or(0, |sets| capabilities::set(&sets.ambient));
    let ambient = ambient & capabilities.unwrap_or(0);
    let mut identity = json!({
        "uid": user.uid, "gid": user.gid, "groups": user.additional_gids, "umask": user.umask.unwrap_or(UMASK) & 0o777,
        "capabilities": capabilities, "no_new_privileges": process.no_new_privileges, "limits": limits(&process.rlimits)?,
    });
    // The runner of a container that has been started by an earlier version does not know the key.
    if ambient != 0 {
        identity["ambient"] = ambient.into();
    }
    Ok(json!({"argv": process.args, "env": env, "cwd": process.cwd, "identity": identity}))
}

/// The programs that engines put in front (`--init`), so that ended processes of nobody are waited
/// for. They are for the host, and the first program of each container does that.
const INITS: [&str; 3] = ["/run/podman-init", "/dev/init", "/sbin/docker-init"];

/// The program and its arguments, without such a program in front.
pub fn without_init(args: &[String]) -> &[String] {
    match args {
        [first, dashes, rest @ ..] if INITS.contains(&first.as_str()) && dashes == "--" => rest,
        args => args,
    }
}

/// The limits with their numbers.
fn limits(limits: &[Rlimit]) -> Result<Vec<(usize, u64, u64)>> {
    let mut all: Vec<(usize, u64, u64)> = Vec::new();
    for limit in limits {
        let name = limit.kind.strip_prefix("RLIMIT_").unwrap_or(&limit.kind);
        let Some(number) = RESOURCES.iter().position(|known| *known == name) else {
            bail!("process.rlimits: {} is not a resource limit of Linux", limit.kind);
        };
        ensure!(all.iter().all(|(known, ..)| *known != number), "process.rlimits: {} is there twice", limit.kind);
        ensure!(limit.soft <= limit.hard, "process.rlimits: {}: the soft limit is above the hard one", limit.kind);
        all.push((number, limit.soft, limit.hard));
    }
    Ok(all)
}

/// The most descriptors that a program of the container may have.
pub fn files(process: &Process) -> u64 {
    let limit = process.rlimits.iter().find(|limit| limit.kind.strip_prefix("RLIMIT_") == Some(RESOURCES[NOFILE]));
    limit.map_or(FILES.1, |limit| limit.hard.clamp(FILES.0, FILES.1))
}

/// Notes what has no effect.
pub fn warn(process: &Process, warnings: &mut Vec<String>) {
    let sets = process.capabilities.as_ref();
    for name in sets.into_iter().flat_map(|sets| &sets.bounding).filter(|name| !capabilities::is_known(name)) {
        warnings.push(format!("process.capabilities: {name} has no effect; there is no such capability"));
    }
    let has = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let without_effect = [
        ("apparmorProfile", has(&process.apparmor_profile), "the walls of the runner confine it"),
        ("scheduler", process.scheduler.is_some(), "the host schedules the threads of all cages alike"),
        ("ioPriority", process.io_priority.is_some(), "use the control group's limits"),
        ("execCPUAffinity", process.exec_cpu_affinity.is_some(), "use the control group's cpuset"),
    ];
    for (name, is_there, instead) in without_effect {
        if is_there {
            warnings.push(format!("process.{name}: has no effect; {instead}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn process(more: &str) -> Process {
        Process::parse(more.as_bytes()).unwrap()
    }

    fn mapped(more: &str) -> Result<Value> {
        map(&process(more), &View { root: Path::new("/nowhere"), mounts: Vec::new() })
    }

    #[test]
    fn all_of_a_process_is_mapped() {
        let value = mapped(
            r#"{"args": ["a", "b"], "cwd": "/c", "env": ["X=1", "bad"], "noNewPrivileges": true,
            "user": {"uid": 1, "gid": 2, "umask": 23, "additionalGids": [3]},
            "capabilities": {"bounding": ["CAP_KILL", "CAP_CHOWN"], "effective": [], "ambient": ["CAP_CHOWN", "CAP_FOWNER"]},
            "rlimits": [{"type": "RLIMIT_NOFILE", "soft": 5, "hard": 18446744073709551615}]}"#,
        )
        .unwrap();
        let identity = json!({"uid": 1, "gid": 2, "groups": [3], "umask": 23, "capabilities": 33, "ambient": 1, "no_new_privileges": true,
            "limits": [[7, 5, u64::MAX]]});
        assert_eq!(value, json!({"argv": ["a", "b"], "cwd": "/c", "env": ["X=1", "HOME=/"], "identity": identity}));
        let value = mapped(r#"{"args": ["a"], "cwd": "/", "env": ["HOME=/h"]}"#).unwrap();
        assert_eq!((&value["identity"]["umask"], &value["identity"]["capabilities"]), (&json!(UMASK), &Value::Null));
        assert!(value["identity"].get("ambient").is_none());
        assert_eq!(value["env"], json!(["HOME=/h"]));
    }

    #[test]
    fn programs_of_engines_in_front_are_left_out() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (given, kept) in [
            ("/run/podman-init -- sleep 5", "sleep 5"),
            ("/sbin/docker-init -- /a --", "/a --"),
            ("/sbin/docker-init -s", "/sbin/docker-init -s"),
            ("sleep -- 5", "sleep -- 5"),
        ] {
            assert_eq!(without_init(&words(given)), words(kept), "{given}");
        }
    }

    #[test]
    fn mistakes_are_refused() {
        for (more, part) in [
            (r#"{"args": [""], "cwd": "/"}"#, "process.args"),
            (r#"{"args": ["a"], "cwd": "c"}"#, "process.cwd"),
            (r#"{"args": ["a\u0000"], "cwd": "/"}"#, "NUL"),
            (r#"{"args": ["a"], "cwd": "/", "selinuxLabel": "x"}"#, "label=disable"),
            (r#"{"args": ["a"], "cwd": "/", "rlimits": [{"type": "RLIMIT_X", "soft": 1, "hard": 1}]}"#, "RLIMIT_X"),
            (
                r#"{"args": ["a"], "cwd": "/", "rlimits": [{"type": "RLIMIT_AS", "soft": 2, "hard": 1}]}"#,
                "above the hard",
            ),
        ] {
            let error = mapped(more).unwrap_err().to_string();
            assert!(error.contains(part), "{more}: {error}");
        }
        let twice = Rlimit { kind: "RLIMIT_AS".to_owned(), soft: 1, hard: 1 };
        assert!(limits(&[twice.clone(), twice]).unwrap_err().to_string().contains("twice"));
    }

    #[test]
    fn other_fields_are_warned_about() {
        let mut warnings = Vec::new();
        warn(&process(r#"{"capabilities": {"bounding": ["CAP_KILL", "CAP_TEST"]}}"#), &mut warnings);
        assert_eq!(warnings, ["process.capabilities: CAP_TEST has no effect; there is no such capability"]);
        warnings.clear();
        warn(
            &process(r#"{"apparmorProfile": "x", "ioPriority": {}, "scheduler": {}, "execCPUAffinity": {}}"#),
            &mut warnings,
        );
        assert_eq!(warnings.len(), 4);
        assert!(warnings[0].starts_with("process.apparmorProfile: has no effect"));
        warnings.clear();
        warn(&process(r#"{"apparmorProfile": "", "selinuxLabel": ""}"#), &mut warnings);
        assert!(warnings.is_empty());
    }

    #[test]
    fn the_limit_of_descriptors_has_bounds() {
        assert_eq!(files(&Process::default()), 65536);
        for (hard, expected) in [(5, 1024), (2000, 2000), (u64::MAX, 65536)] {
            let rlimits = vec![Rlimit { kind: "RLIMIT_NOFILE".to_owned(), soft: 5, hard }];
            assert_eq!(files(&Process { rlimits, ..Process::default() }), expected);
        }
    }
}
