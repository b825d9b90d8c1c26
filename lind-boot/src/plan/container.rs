//! A container, as the OCI runtime describes it: its root, its mounts, and the process that it
//! starts with. The runtime has checked what the engine has asked for; the rest is checked here.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A container.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// The directory of the host that becomes its root.
    pub root: PathBuf,
    /// Whether the root itself cannot be changed.
    pub read_only: bool,
    /// The mounts, in this order.
    pub mounts: Vec<Mount>,
    /// Files and directories that it sees empty.
    pub masked: Vec<PathBuf>,
    /// Files and directories that it cannot change.
    pub unchanged: Vec<PathBuf>,
    /// The state of the overlay on its root, by name: changes go there.
    pub overlay: Option<String>,
    /// Its host name.
    pub host_name: Option<String>,
    /// The policy that confines it, besides its mounts.
    pub policy: Option<String>,
    /// The file of the seccomp profile for its programs.
    pub seccomp: Option<PathBuf>,
    /// Grates between the policy and its programs, with their options.
    pub grates: Vec<String>,
    /// Modules that are compiled while it waits for its start.
    pub ahead: Vec<PathBuf>,
    /// The most file descriptors that a program in it may have.
    pub files: u64,
    /// Whether standard input is a terminal that becomes the container's.
    pub terminal: bool,
    /// The limits that it sees of itself, which the host enforces.
    pub allowance: Allowance,
    /// The process.
    pub process: Process,
}

/// Limits of all programs of a container together.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(deny_unknown_fields)]
pub struct Allowance {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Microseconds of processor time in each period, and the period.
    pub cpu: Option<(u64, u64)>,
    /// Processes and threads.
    pub pids: Option<u64>,
}

impl From<Allowance> for lind_kernel::Allowance {
    fn from(Allowance { memory, cpu, pids }: Allowance) -> lind_kernel::Allowance {
        lind_kernel::Allowance { memory, cpu, pids }
    }
}

/// A mount.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Its path in the container.
    pub guest: PathBuf,
    /// Whether it cannot be changed.
    pub read_only: bool,
    /// The thing that is mounted.
    pub what: What,
}

/// The things that can be mounted.
#[derive(Deserialize, Clone, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A file or directory of the host.
    Bind {
        /// Its path on the host.
        source: PathBuf,
        /// Whether the mounts below it are mounted, too.
        recursive: bool,
    },
    /// A device of the host that all may use.
    Device(Device),
    /// A file system in memory.
    Memory {
        /// The most bytes in it.
        size: Option<u64>,
        /// The permissions of its top.
        mode: u32,
    },
}

/// The devices that know no difference between those who open them, by their names in /dev.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "null(4), full(4) and random(4) describe them")]
pub enum Device {
    Null,
    Zero,
    Full,
    Random,
    Urandom,
}

impl Device {
    /// Its path on the host.
    pub fn path(self) -> &'static Path {
        Path::new(match self {
            Device::Null => "/dev/null",
            Device::Zero => "/dev/zero",
            Device::Full => "/dev/full",
            Device::Random => "/dev/random",
            Device::Urandom => "/dev/urandom",
        })
    }
}

/// A process to start.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// All of its environment.
    pub env: Vec<String>,
    /// Its working directory, which is created if it is missing.
    pub cwd: String,
    /// The user that it runs as, and its limits.
    pub identity: Identity,
}

/// The user that a process runs as, and its limits.
#[derive(Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Further groups.
    pub groups: Vec<u32>,
    /// The permissions that new files do not get.
    pub umask: u32,
    /// The capabilities that it may have; None for those of the runner.
    pub capabilities: Option<u64>,
    /// The ones among them that an ordinary user's programs have, too.
    #[serde(default)]
    pub ambient: u64,
    /// Whether no program that it runs may give it more rights.
    pub no_new_privileges: bool,
    /// Resource limits: number, soft limit, hard limit.
    pub limits: Vec<(u32, u64, u64)>,
}

/// The bits of the first word of [`Identity::words`].
const HAS_CAPABILITIES: u32 = 1;
const NO_NEW_PRIVILEGES: u32 = 2;

impl Identity {
    /// As the first program of the container reads it (`grates/session/identity.c`).
    pub fn words(&self) -> Vec<u32> {
        let halves = |number: u64| {
            let [a, b, c, d, e, f, g, h] = number.to_le_bytes();
            [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
        };
        let mut flags = 0;
        if self.capabilities.is_some() {
            flags |= HAS_CAPABILITIES;
        }
        if self.no_new_privileges {
            flags |= NO_NEW_PRIVILEGES;
        }
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let mut words = vec![flags, self.uid, self.gid, self.umask];
        words.extend([self.capabilities.unwrap_or(0), self.ambient].into_iter().flat_map(halves));
        words.extend([count(self.groups.len()), count(self.limits.len())]);
        words.extend(&self.groups);
        for &(resource, soft, hard) in &self.limits {
            words.push(resource);
            words.extend(halves(soft));
            words.extend(halves(hard));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_all_of_an_identity() {
        let identity = Identity {
            uid: 1,
            gid: 2,
            groups: vec![7, 8],
            umask: 0o22,
            capabilities: Some(1 << 40 | 3),
            ambient: 1 << 33 | 2,
            no_new_privileges: true,
            limits: vec![(7, 1024, u64::MAX)],
        };
        let expected = [3, 1, 2, 0o22, 3, 1 << 8, 2, 2, 2, 1, 7, 8, 7, 1024, 0, u32::MAX, u32::MAX];
        assert_eq!(identity.words(), expected);
        assert_eq!(Identity::default().words(), [0; 10]);
    }

    #[test]
    fn mounts_are_read() {
        let text = r#"[{"guest": "/a", "read_only": true, "what": {"bind": {"source": "/b", "recursive": false}}},
            {"guest": "/c", "read_only": false, "what": {"memory": {"size": 5, "mode": 511}}},
            {"guest": "/d", "read_only": false, "what": {"device": "urandom"}}]"#;
        let mounts: Vec<Mount> = serde_json::from_str(text).unwrap();
        assert!(matches!(&mounts[0].what, What::Bind { source, recursive: false } if source.as_os_str() == "/b"));
        assert!(matches!(mounts[1].what, What::Memory { size: Some(5), mode: 511 }));
        assert!(matches!(mounts[2].what, What::Device(device) if device.path() == Path::new("/dev/urandom")));
        assert!(serde_json::from_str::<Device>("\"mem\"").is_err());
    }
}
