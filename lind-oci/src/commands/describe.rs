//! `features`.

use anyhow::Result;
use serde_json::{Value, json};

use super::print;
use crate::mapping::{capabilities, seccomp};
use crate::state::SPECIFICATION;

/// Prints what this runtime supports.
///
/// # Errors
/// When standard output cannot be written.
pub fn features() -> Result<()> {
    print(&format!("{:#}\n", all()))
}

fn all() -> Value {
    json!({
        "ociVersionMin": "1.0.0",
        "ociVersionMax": SPECIFICATION,
        "hooks": ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"],
        "mountOptions": ["bind", "rbind", "ro", "rro", "rw", "private", "rprivate", "slave", "rslave", "nosuid", "nodev", "noexec",
            "size", "mode", "relatime", "noatime"],
        "linux": {
            "namespaces": ["network", "mount", "pid", "ipc", "uts", "cgroup", "user"],
            "capabilities": capabilities::names(),
            "cgroup": {"v1": true, "v2": true, "systemd": true, "systemdUser": false, "rdma": false},
            "seccomp": {"enabled": true, "actions": seccomp::ACTIONS, "operators": seccomp::OPERATORS},
            "apparmor": {"enabled": false},
            "selinux": {"enabled": false},
            "intelRdt": {"enabled": false},
            "mountExtensions": {"idmap": {"enabled": false}},
        },
        "annotations": {"run.lind.version": env!("CARGO_PKG_VERSION")},
        "potentiallyUnsafeConfigAnnotations": ["run.lind."],
    })
}
