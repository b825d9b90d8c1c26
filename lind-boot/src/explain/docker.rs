//! Policies of the seccomp grate in Docker's JSON, as `grates/seccomp/json.c` reads them, as far as that is decided by which call it is.

use lind_abi::{Syscall, syscall_named};
use serde_json::{Map, Value};

use super::policy::{Action, Policy, Rule};
use super::sources;

/// What Docker gives a container.
const CAPABILITIES: &str = "CAP_CHOWN,CAP_DAC_OVERRIDE,CAP_FSETID,CAP_FOWNER,CAP_MKNOD,CAP_NET_RAW,CAP_SETGID,CAP_SETUID,CAP_SETFCAP,CAP_SETPCAP,\
                            CAP_NET_BIND_SERVICE,CAP_SYS_CHROOT,CAP_KILL,CAP_AUDIT_WRITE";

impl Policy {
    /// None if something there is not understood: then the grate says what.
    pub fn docker(text: &str, capabilities: Option<&str>) -> Option<Policy> {
        let file: Value = serde_json::from_str(text).ok()?;
        let file = file.as_object()?;
        let otherwise = action(file, "defaultAction", "defaultErrnoRet", "defaultErrno")?;
        let entries = list(file, "syscalls")?;
        let mut rules = Vec::new();
        for entry in entries {
            let entry = entry.as_object()?;
            let rule = rule(entry)?;
            if counts(entry, capabilities.unwrap_or(CAPABILITIES))? && rule.action != otherwise {
                rules.push(rule);
            }
        }
        // As in libseccomp an entry without conditions comes before those with some.
        rules.sort_by_key(|rule| rule.conditions);
        Some(Policy { otherwise, rules })
    }
}

/// A list that may be missing. None if it is no list.
fn list<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a [Value]> {
    match object.get(key) {
        None | Some(Value::Null) => Some(&[]),
        Some(value) => value.as_array().map(Vec::as_slice),
    }
}

fn action(object: &Map<String, Value>, name: &str, number: &str, by_name: &str) -> Option<Action> {
    let name = match object.get(name)?.as_str()? {
        "SCMP_ACT_ALLOW" => "allow",
        "SCMP_ACT_LOG" => "log",
        "SCMP_ACT_ERRNO" => "deny",
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_PROCESS" | "SCMP_ACT_KILL_THREAD" | "SCMP_ACT_TRAP" => "kill",
        _ => return None,
    };
    let named = |number: u64| lind_abi::ERRNOS.iter().find(|row| u64::try_from(row.0).ok() == Some(number));
    let errno = match (object.get(number), object.get(by_name)) {
        (Some(Value::Number(number)), _) => {
            named(number.as_u64()?).map_or_else(|| format!("errno {number}"), |row| row.1.to_owned())
        }
        (_, Some(Value::String(name))) => name.clone(),
        _ => "EPERM".to_owned(),
    };
    // Of others than denials it says nothing.
    let errno = if name == "deny" { errno } else { String::new() };
    Some(Action { name: name.to_owned(), errno })
}

fn rule(entry: &Map<String, Value>) -> Option<Rule> {
    let mut calls = Vec::new();
    let names = entry.get("name").into_iter().chain(list(entry, "names")?);
    for name in names {
        let name = name.as_str()?;
        let known = syscall_named(name).or_else(|| {
            sources::other_names().find(|(other, _)| *other == name).and_then(|(_, name)| syscall_named(name))
        });
        calls.extend(known.map(|row: &Syscall| row.name.to_owned()));
    }
    Some(Rule {
        action: action(entry, "action", "errnoRet", "errno")?,
        calls,
        conditions: !list(entry, "args")?.is_empty(),
        exact: true,
    })
}

/// Whether an entry counts on this machine, for these capabilities.
fn counts(entry: &Map<String, Value>, capabilities: &str) -> Option<bool> {
    let empty = Map::new();
    let half = |key: &str| match entry.get(key) {
        None | Some(Value::Null) => Some(empty.clone()),
        Some(value) => value.as_object().cloned(),
    };
    let (with, without) = (half("includes")?, half("excludes")?);
    let has = |name: &Value| capabilities.split(',').any(|known| Some(known) == name.as_str());
    let here = |name: &Value| matches!(name.as_str(), Some("amd64" | "x86_64"));
    let reached = |of: &Map<String, Value>| match of.get("minKernel") {
        None | Some(Value::Null) => Some(None),
        Some(version) => reached(version.as_str()?).map(Some),
    };
    let arches = list(&with, "arches")?;
    let in_ = list(&with, "caps")?.iter().all(has) && (arches.is_empty() || arches.iter().any(here));
    let out = list(&without, "caps")?.iter().any(has) || list(&without, "arches")?.iter().any(here);
    Some(in_ && reached(&with)?.unwrap_or(true) && !out && !reached(&without)?.unwrap_or(false))
}

/// Whether the kernel that programs see, which is the host's, is of this version or a later one.
fn reached(version: &str) -> Option<bool> {
    let host = rustix::system::uname();
    let release = host.release().to_str().ok()?;
    let pair = |text: &str| {
        let (major, rest) = text.split_once('.')?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        Some((major.parse::<u32>().ok()?, rest[..end].parse::<u32>().ok()?))
    };
    Some(pair(release)? >= pair(version)?)
}

#[cfg(test)]
mod tests {
    use super::super::policy::Verdict;
    use super::*;

    const PROFILE: &str = r#"{"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "syscalls": [
        {"names": ["read", "umount", "nosuch"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 0, "op": "SCMP_CMP_EQ"}]},
        {"names": ["socket"], "action": "SCMP_ACT_KILL", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}]},
        {"names": ["socket"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["mount"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
        {"names": ["chroot"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_CHROOT"], "minKernel": "4.8"}},
        {"names": ["ptrace"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13, "excludes": {"minKernel": "999.0"}},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]}"#;

    #[test]
    fn entries_decide_as_in_the_grate() {
        let verdict = |name: &str| Policy::docker(PROFILE, None).unwrap().verdict(syscall_named(name).unwrap());
        let refused = |errno: &str| Verdict::Always(format!("refuses with {errno}"));
        assert_eq!(
            [verdict("read"), verdict("umount2"), verdict("socket")],
            [Verdict::Passes, Verdict::Passes, Verdict::Passes]
        );
        assert_eq!([verdict("write"), verdict("mount"), verdict("clone3")], ["ENOSYS"; 3].map(refused));
        assert_eq!(
            [verdict("personality"), verdict("chroot"), verdict("ptrace")],
            [Verdict::Depends, Verdict::Passes, refused("EACCES")]
        );
        assert_eq!([verdict("exit_group"), verdict("spawn")], [Verdict::Passes, Verdict::Depends]);
        let more = Policy::docker(PROFILE, Some("CAP_SYS_ADMIN")).unwrap();
        assert_eq!(more.verdict(syscall_named("mount").unwrap()), Verdict::Passes);
    }

    #[test]
    fn what_is_not_understood_is_said_to_be_so() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"defaultAction": "SCMP_ACT_TRACE"}"#,
            r#"{"defaultAction": "SCMP_ACT_LOG", "syscalls": 1}"#,
        ] {
            assert!(Policy::docker(text, None).is_none(), "{text}");
        }
    }
}
