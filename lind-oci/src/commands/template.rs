//! `spec`: a config.json to begin with.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::cli::Spec;
use crate::config::FILE;
use crate::state::SPECIFICATION;

/// Writes the file.
///
/// # Errors
/// When there is one already, or the host's error.
pub fn write(spec: &Spec) -> Result<()> {
    let path = spec.bundle.join(FILE);
    ensure!(!path.exists(), "{}: exists already; remove it first, or choose another --bundle", path.display());
    std::fs::write(&path, format!("{:#}\n", template())).with_context(|| path.display().to_string())
}

fn template() -> Value {
    let capabilities = ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"];
    let namespaces = ["pid", "network", "ipc", "uts", "mount", "cgroup"].map(|kind| json!({"type": kind}));
    json!({
        "ociVersion": SPECIFICATION,
        "process": {
            "terminal": false,
            "user": {"uid": 0, "gid": 0},
            "args": ["sh"],
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm"],
            "cwd": "/",
            "capabilities": {"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
            "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 1024, "soft": 1024}],
            "noNewPrivileges": true,
        },
        "root": {"path": "rootfs", "readonly": true},
        "hostname": "lind",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]},
        ],
        "linux": {"namespaces": namespaces, "resources": {}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_template_can_be_run() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("rootfs/bin")).unwrap();
        std::fs::write(folder.path().join("rootfs/bin/sh.wasm"), b"\0asm").unwrap();
        let spec = Spec { bundle: folder.path().into(), rootless: false };
        write(&spec).unwrap();
        let mapped = crate::mapping::map(&Config::read(folder.path()).unwrap(), folder.path()).unwrap();
        assert!(mapped.warnings.is_empty(), "{:?}", mapped.warnings);
        assert!(write(&spec).unwrap_err().to_string().contains("exists already"));
    }
}
