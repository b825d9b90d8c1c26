//! Capabilities by name.

/// The capabilities, by number.
const NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// The set of these capabilities. A name that is not known counts for nothing.
pub fn set(names: &[String]) -> u64 {
    names.iter().filter_map(|name| number(name)).fold(0, |set, number| set | 1 << number)
}

/// Whether there is a capability of this name.
pub fn is_known(name: &str) -> bool {
    number(name).is_some()
}

fn number(name: &str) -> Option<usize> {
    let upper = name.to_uppercase();
    let name = upper.strip_prefix("CAP_").unwrap_or(&upper);
    NAMES.iter().position(|known| *known == name)
}

/// All names, as config.json has them.
pub fn names() -> Vec<String> {
    NAMES.iter().map(|name| format!("CAP_{name}")).collect()
}

/// The names in a set.
pub fn of_set(set: u64) -> impl Iterator<Item = String> {
    (0..).zip(names()).filter(move |(number, _)| set >> number & 1 == 1).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_numbers() {
        let names = ["CAP_CHOWN", "net_bind_service", "CAP_CHECKPOINT_RESTORE", "CAP_NEW"].map(str::to_owned);
        assert_eq!(set(&names), 1 | 1 << 10 | 1 << 40);
    }
}
