//! `lind-boot run --explain`: describes a sandbox in sentences, or as JSON.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use lind_kernel::text::{self, shell_word};
use serde_json::json;

use super::Sandbox;
use super::root::Maker;
use crate::cli::sandbox::{Amounts, Options};
use crate::plan::HOME;
use crate::plan::step::{self, Setting, Step};

/// The output of `--explain`.
pub fn described(sandbox: &Sandbox, options: &Options, json: bool) -> String {
    if json {
        return text::json(&format!("{:#}\n", as_json(sandbox, options)));
    }
    let tree = &sandbox.tree;
    let mut text = format!("policy {}\n\nmounts, made by {}\n", sandbox.policy, maker(sandbox));
    let mut row = |guest: &str, what: &str, mode: &str| {
        let _ = writeln!(text, "  {guest:<24} {what} ({mode})");
    };
    row("/", &shown(&tree.image), "the image, read-only");
    for volume in &tree.volumes {
        let changes = volume.overlay.as_ref().map(|state| format!("overlay: changes go to {}", shown(&state.file)));
        let mode = changes.as_deref().unwrap_or(if volume.read_only { "read-only" } else { "can be changed" });
        row(&shown(&volume.guest), &shown(&volume.host), mode);
    }
    for path in &tree.scratch {
        row(&shown(path), "memory", "empty, gone at the end");
    }
    for tmpfs in &tree.tmpfs {
        row(&shown(&tmpfs.guest), "memory", &format!("at most {}", tmpfs.size));
    }
    let _ = writeln!(text, "\nrules");
    for rule in rules(sandbox) {
        let _ = writeln!(text, "  {rule}");
    }
    for published in &options.publish {
        let _ = writeln!(text, "  published: {published}");
    }
    if let Some(timeout) = options.timeout {
        let _ = writeln!(text, "  after {} s all programs are killed, with status 124", timeout.as_secs_f64());
    }
    let _ = writeln!(text, "\nstarts in {}, with home directory {HOME}\n\nline", shown(&sandbox.workdir));
    let _ = writeln!(text, "  lind-boot {}", line(sandbox));
    text
}

/// The maker of the mounts, in words.
fn maker(sandbox: &Sandbox) -> &'static str {
    match sandbox.maker {
        Maker::Host => "the host (bind)",
        Maker::Kernel => "lind-boot (kernel)",
    }
}

/// The words of the grates with their options.
fn words(sandbox: &Sandbox) -> Vec<OsString> {
    step::words(&sandbox.grates).into_iter().chain(sandbox.own_grates.iter().cloned()).collect()
}

/// The grates of the line with their options, and the command, as shell words.
fn line(sandbox: &Sandbox) -> String {
    let words = words(sandbox);
    words.iter().chain(&sandbox.command).map(|word| shell_word(word.as_bytes())).collect::<Vec<_>>().join(" ")
}

/// The name of a file, or a word, on one line.
fn shown(name: &(impl AsRef<OsStr> + ?Sized)) -> String {
    text::shown(name.as_ref().as_bytes())
}

/// The rules that the grates on the line enforce, a sentence each.
fn rules(sandbox: &Sandbox) -> Vec<String> {
    let mut rules = Vec::new();
    let mut network = "the host's network, without rules".to_owned();
    let mut allowed = Vec::new();
    for step in &sandbox.grates {
        for chain in &step.inside {
            let program = step.settings.first().and_then(value).unwrap_or_default();
            let inside = chain.iter().flat_map(rules_of);
            rules.extend(inside.map(|rule| format!("{program}: {}", rule.text())));
        }
        if step.inside.is_empty() {
            for rule in rules_of(step) {
                match rule {
                    Rule::Network => network = "no network".to_owned(),
                    Rule::Connection(rule) => allowed.push(rule),
                    Rule::Other(rule) => rules.push(rule),
                }
            }
        }
    }
    rules.push(if allowed.is_empty() { network } else { format!("network: {} and nothing else", allowed.join("; ")) });
    rules
}

/// A rule that a grate enforces.
enum Rule {
    /// Only the network that other rules allow.
    Network,
    /// A connection is allowed.
    Connection(String),
    /// Another rule, as a sentence.
    Other(String),
}

impl Rule {
    fn text(self) -> String {
        match self {
            Rule::Network => "no network but what the rules allow".to_owned(),
            Rule::Connection(rule) | Rule::Other(rule) => rule,
        }
    }
}

/// The rules of one grate.
fn rules_of(step: &Step) -> Vec<Rule> {
    let whole = (step.grate == "net_grate").then_some(Rule::Network);
    whole.into_iter().chain(step.settings.iter().filter_map(|setting| rule_of(&step.grate, setting))).collect()
}

/// The value of an option, as text.
fn value(setting: &Setting) -> Option<String> {
    setting.value.word().map(|word| shown(&word))
}

/// The rule that an option of a grate means. None if the option is not a rule.
fn rule_of(grate: &str, setting: &Setting) -> Option<Rule> {
    let value = value(setting)?;
    Some(Rule::Other(match (grate, setting.name.trim_start_matches('-')) {
        (_, "path" | "program") if value.is_empty() => return None,
        ("net_grate", "allow") => match value.strip_prefix("any unix:") {
            Some(name) => format!("sockets with names such as {name}"),
            None => return Some(Rule::Connection(value)),
        },
        ("net_grate", "loopback") => "127.0.0.0/8 and ::1 are the sandbox's own".to_owned(),
        ("write_filter_grate", "protect" | "protect-below") => format!("{value} cannot be changed or created"),
        ("write_filter_grate", "allow") => format!("can be changed: {value}"),
        ("seccomp_grate", "path") => format!("can be read: {value}"),
        ("seccomp_grate", "program") => format!("can be run: {value}"),
        ("seccomp_grate", "calls") => format!("calls: {}", value.replace(',', ", ")),
        ("resource_grate", "write-bytes") => {
            format!("at most {} are written to files", value.strip_prefix("file=").unwrap_or(&value))
        }
        ("resource_grate", limit) if Amounts::has(limit) => {
            format!("{limit}: at most {value}, all programs together")
        }
        _ => return None,
    }))
}

fn as_json(sandbox: &Sandbox, options: &Options) -> serde_json::Value {
    let tree = &sandbox.tree;
    let volumes = tree.volumes.iter().map(|volume| {
        let state = volume.overlay.as_ref().map(|state| shown(&state.file));
        json!({"guest": shown(&volume.guest), "host": shown(&volume.host), "read_only": volume.read_only, "overlay": state})
    });
    let memory = tree.scratch.iter().map(|path| json!({"guest": shown(path)}));
    let tmpfs = tree.tmpfs.iter().map(|tmpfs| json!({"guest": shown(&tmpfs.guest), "size": tmpfs.size.to_string()}));
    json!({
        "policy": sandbox.policy,
        "mounts": if sandbox.maker == Maker::Host { "bind" } else { "kernel" },
        "image": shown(&tree.image),
        "volumes": volumes.collect::<Vec<_>>(),
        "memory": memory.chain(tmpfs).collect::<Vec<_>>(),
        "rules": rules(sandbox),
        "published": options.publish.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "timeout": options.timeout.map(|timeout| timeout.as_secs_f64()),
        "workdir": shown(&sandbox.workdir),
        "home": HOME,
        "line": words(sandbox).iter().map(shown).collect::<Vec<_>>(),
        "command": sandbox.command.iter().map(shown).collect::<Vec<_>>(),
    })
}
