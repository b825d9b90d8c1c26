//! The seccomp profile: the calls that a container may make. A grate in front of its programs
//! enforces it, unless it denies no call that cages have.

use anyhow::{Context, Result, bail, ensure};
use lind_abi::{SYSCALLS, Syscall};
use serde::Deserialize;
use serde_json::{Value, json};

const ALLOW: &str = "SCMP_ACT_ALLOW";

/// Actions under which a call is made.
const LETS: [&str; 2] = [ALLOW, "SCMP_ACT_LOG"];

/// The actions that the grate knows.
pub const ACTIONS: [&str; 7] = [
    ALLOW,
    "SCMP_ACT_LOG",
    "SCMP_ACT_ERRNO",
    "SCMP_ACT_KILL",
    "SCMP_ACT_KILL_PROCESS",
    "SCMP_ACT_KILL_THREAD",
    "SCMP_ACT_TRAP",
];

/// The tests of arguments that it knows.
pub const OPERATORS: [&str; 7] =
    ["SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE", "SCMP_CMP_EQ", "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ"];

/// The part of the table of calls that grates use among themselves. No profile of Linux names them.
const OF_GRATES: &str = "threei";

/// The call of that part that programs make too. The grate decides about it as about clone and
/// execve.
const SPAWN: &str = "spawn";

/// A profile, as far as it is looked into here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    default_action: String,
    listener_path: Option<String>,
    syscalls: Option<Vec<Calls>>,
}

/// A rule about some calls.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Calls {
    names: Option<Vec<String>>,
    /// As in profiles of older engines.
    name: Option<String>,
    action: String,
    args: Option<Vec<Value>>,
    /// The grate checks it.
    #[serde(rename = "errnoRet")]
    _errno: Option<Value>,
}

impl Calls {
    fn is_about(&self, call: &str) -> bool {
        self.names.iter().flatten().chain(&self.name).any(|name| name == call)
    }
}

/// The profile for the grate. None if none is needed.
///
/// # Errors
/// A profile that is malformed, asks another process, or has an action that is not known.
pub fn map(given: Option<&Value>) -> Result<Option<Value>> {
    let Some(given) = given else { return Ok(None) };
    let profile = Profile::deserialize(given).context("linux.seccomp")?;
    ensure!(
        profile.listener_path.as_deref().unwrap_or_default().is_empty(),
        "linux.seccomp.listenerPath: a cage asks no process of the host; leave it out"
    );
    let entries = profile.syscalls.as_deref().unwrap_or_default();
    for action in entries.iter().map(|entry| &entry.action).chain([&profile.default_action]) {
        if !ACTIONS.contains(&action.as_str()) {
            bail!("linux.seccomp: the action {action:?} is not supported; there are {}", ACTIONS.join(", "));
        }
    }
    let of_grates = |call: &&Syscall| call.area == OF_GRATES;
    if SYSCALLS.iter().filter(|call| !of_grates(call)).all(|call| is_free(&profile, entries, call.name)) {
        return Ok(None);
    }
    let names: Vec<_> = SYSCALLS.iter().filter(of_grates).map(|call| call.name).filter(|name| *name != SPAWN).collect();
    let entry = json!({"names": names, "action": ALLOW});
    let mut kept = given.clone();
    match kept["syscalls"].as_array_mut() {
        Some(entries) => entries.push(entry),
        None => kept["syscalls"] = json!([entry]),
    }
    Ok(Some(kept))
}

/// Whether a call may be made, whatever its arguments are.
fn is_free(profile: &Profile, entries: &[Calls], call: &str) -> bool {
    let lets = |action: &str| LETS.contains(&action);
    let mut of_call = entries.iter().filter(|entry| entry.is_about(call)).peekable();
    if of_call.peek().is_none() {
        return lets(&profile.default_action);
    }
    of_call.all(|entry| {
        lets(&entry.action) && (entry.args.as_ref().is_none_or(Vec::is_empty) || lets(&profile.default_action))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<&'static str> {
        SYSCALLS.iter().map(|call| call.name).collect()
    }

    #[test]
    fn a_profile_that_denies_nothing_needs_no_grate() {
        assert_eq!(map(None).unwrap(), None);
        assert_eq!(map(Some(&json!({"defaultAction": ALLOW}))).unwrap(), None);
        let all = json!({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": names(), "action": ALLOW}]});
        assert_eq!(map(Some(&all)).unwrap(), None);
        let other =
            json!({"defaultAction": ALLOW, "syscalls": [{"names": ["kexec_load"], "action": "SCMP_ACT_ERRNO"}]});
        assert_eq!(map(Some(&other)).unwrap(), None);
    }

    #[test]
    fn a_profile_that_denies_is_kept_with_the_calls_of_grates() {
        for profile in [
            json!({"defaultAction": "SCMP_ACT_ERRNO"}),
            json!({"defaultAction": ALLOW, "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO"}]}),
            json!({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
                {"names": names(), "action": ALLOW, "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}]}]}),
        ] {
            let kept = map(Some(&profile)).unwrap().unwrap();
            let last = kept["syscalls"].as_array().unwrap().last().unwrap().clone();
            let names = last["names"].as_array().unwrap();
            // A profile that denies clone or execve denies spawn, too.
            assert!(!names.is_empty() && !names.contains(&json!("spawn")), "{kept}");
        }
    }

    #[test]
    fn profiles_that_ask_others_or_are_malformed_are_refused() {
        for (profile, part) in [
            (json!({"defaultAction": ALLOW, "listenerPath": "/run/x"}), "listenerPath"),
            (json!({"defaultAction": "SCMP_ACT_NOTIFY"}), "SCMP_ACT_NOTIFY"),
            (json!({"defaultAction": ALLOW, "syscalls": [{"names": ["read"], "action": "SCMP_ACT_TRACE"}]}), "TRACE"),
            (json!({}), "defaultAction"),
            (json!({"defaultAction": ALLOW, "syscalls": {}}), "sequence"),
            (json!({"defaultAction": ALLOW, "syscalls": [{"names": "mkdir", "action": "SCMP_ACT_ERRNO"}]}), "sequence"),
            (
                json!({"defaultAction": ALLOW, "syscalls": [{"names": ["read"], "action": ALLOW, "args": {}}]}),
                "sequence",
            ),
            (
                json!({"defaultAction": ALLOW, "syscalls": [{"names": ["read"], "action": ALLOW, "includes": {}}]}),
                "includes",
            ),
        ] {
            let error = format!("{:#}", map(Some(&profile)).unwrap_err());
            assert!(error.contains(part), "{profile}: {error}");
        }
    }
}
