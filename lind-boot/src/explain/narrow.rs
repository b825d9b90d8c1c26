//! What a grate's options leave of what it declares, for the grates that are known here. Of others it may be all.

use std::path::Path;

use anyhow::{Result, bail};
use lind_abi::Syscall;
use lind_engine::manifest::{Manifest, Role};

use super::clamp::Clamp;
use super::options::{self, Calls, Spec};
use super::policy::{Policy, Verdict};

const STRACE: [Spec; 13] = [
    ("e", "", true),
    ("o", "output", true),
    ("s", "string-limit", true),
    ("v", "no-abbrev", false),
    ("c", "summary-only", false),
    ("C", "summary", false),
    ("T", "syscall-times", false),
    ("t", "", false),
    ("r", "relative-timestamps", false),
    ("z", "", false),
    ("Z", "", false),
    ("q", "quiet", false),
    ("f", "follow-forks", false),
];
const FORWARD: [Spec; 3] = [("n", "nr", true), ("", "handler", false), ("r", "result", false)];
const SECCOMP: [Spec; 8] = [
    ("p", "policy", true),
    ("", "docker", true),
    ("", "capabilities", true),
    ("", "learn", true),
    ("", "learn-names", false),
    ("", "lines", true),
    ("q", "quiet", false),
    ("v", "verbose", false),
];
const TEE: [Spec; 1] = [("", "agree", false)];

/// What is known of a grate's options.
pub enum Known {
    /// Nothing: it may do what it declares.
    Nothing,
    /// It looks at these calls alone.
    Calls(Calls),
    /// A policy that is read from a file.
    Policy(Policy),
    /// A policy that cannot be read here: its file.
    Unread(String),
    /// A policy is being learned: it refuses nothing.
    Learns,
    /// It lets some calls in.
    Clamp(Clamp),
    /// Two stacks see each call; whether both must agree.
    Tee(bool),
}

impl Known {
    /// What the options of a grate say. Files are looked for below `root`.
    ///
    /// # Errors
    /// What the grate would say.
    pub fn of(grate: &str, words: &[String], root: &Path) -> Result<Known> {
        let name = grate.rsplit('/').next().unwrap_or(grate);
        let name = name.strip_suffix(".cwasm").or_else(|| name.strip_suffix(".wasm")).unwrap_or(name);
        Ok(match &name.replace('-', "_")[..] {
            "namespace_grate" => Known::Clamp(Clamp::read(grate, words, root)?),
            "tee_grate" => Known::Tee(!options::read(grate, &TEE, words)?.is_empty()),
            "seccomp_grate" => policy(grate, words, root)?,
            "strace_grate" => {
                let mut calls = Calls::default();
                for (_, list) in options::read(grate, &STRACE, words)?.into_iter().filter(|(name, _)| *name == "e") {
                    let list = list.strip_prefix("trace=").unwrap_or(&list).replace('?', "");
                    if let Err(wrong) = calls.change(&list, &traced) {
                        bail!("{grate}: -e: {wrong}");
                    }
                }
                Known::Calls(calls)
            }
            "forward_grate" => {
                let mut calls = Calls::default();
                for (_, number) in options::read(grate, &FORWARD, words)?.into_iter().filter(|(name, _)| *name == "nr")
                {
                    let Ok(number) = number.parse() else {
                        bail!("{grate}: --nr: '{number}': not a system call number")
                    };
                    calls.add(number);
                }
                Known::Calls(calls)
            }
            _ => Known::Nothing,
        })
    }

    /// What the grate does with a call that it declares for, in words. None if it does not get it.
    pub fn role(
        &self,
        manifest: &Manifest,
        declared: Option<Role>,
        row: &Syscall,
        has_options: bool,
    ) -> Option<String> {
        let of_sdk = (manifest.role(row.nr) == Some(Role::Follows)).then_some(Role::Follows);
        match self {
            Known::Calls(calls) if !calls.has(row.nr) => of_sdk.map(words),
            Known::Policy(policy) => match policy.verdict(row) {
                Verdict::Passes => of_sdk.map(words),
                Verdict::Always(what) => Some(what),
                Verdict::Depends => Some("may refuse, by what the call is about".to_owned()),
            },
            Known::Learns => declared.map(|_| words(Role::Observes)),
            // Options can make it look at less.
            Known::Nothing if has_options && declared == Some(Role::Observes) => Some("may see".to_owned()),
            _ => declared.map(words),
        }
    }
}

fn policy(grate: &str, words: &[String], root: &Path) -> Result<Known> {
    let given = options::read(grate, &SECCOMP, words)?;
    let value = |name: &str| given.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    Ok(match (value("policy"), value("docker"), value("learn")) {
        (None, None, None) => bail!("{grate}: give it --policy FILE or --learn FILE"),
        (None, None, Some(_)) => Known::Learns,
        (Some(file), None, _) => Policy::read(&file, root).map_or(Known::Unread(file), Known::Policy),
        (_, Some(file), _) => Known::Unread(file),
    })
}

/// A role in words.
pub fn words(role: Role) -> String {
    match role {
        Role::Follows => "sees (to know its clients)",
        Role::Observes => "sees",
        Role::Alters => "may change or refuse",
        Role::Answers => "may answer",
    }
    .to_owned()
}

/// strace(1)'s classes, with `%` or without.
fn traced(word: &str, row: &Syscall) -> bool {
    match word.strip_prefix('%').unwrap_or(word) {
        "all" => true,
        "process" => {
            matches!(
                row.name,
                "clone" | "clone3" | "execve" | "execveat" | "exit" | "exit_group" | "fork" | "vfork" | "spawn"
            ) || matches!(row.name, "wait4" | "waitid" | "kill" | "tkill" | "tgkill" | "rt_sigqueueinfo")
                || matches!(row.name, "rt_tgsigqueueinfo" | "pidfd_send_signal")
        }
        class => options::in_class(class, row),
    }
}
