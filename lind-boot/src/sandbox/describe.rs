//! `lind-boot run --explain`: describes a sandbox in sentences, or as JSON.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use lind_kernel::text::{self, shell_word};
use serde_json::json;

use super::root::Maker;
use super::{HOME, Sandbox};
use crate::cli::sandbox::Options;
use crate::plan::policy::LIMITS;

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

/// The grates of the line with their options, and the command, as shell words.
fn line(sandbox: &Sandbox) -> String {
    sandbox.grates.iter().chain(&sandbox.command).map(|word| shell_word(word.as_bytes())).collect::<Vec<_>>().join(" ")
}

/// The name of a file, or a word, on one line.
fn shown(name: &(impl AsRef<OsStr> + ?Sized)) -> String {
    text::shown(name.as_ref().as_bytes())
}

/// The rules that the grates on the line enforce, a sentence each.
fn rules(sandbox: &Sandbox) -> Vec<String> {
    let mut rules = Vec::new();
    let mut allowed = Vec::new();
    let mut network = "the host's network, without rules".to_owned();
    let mut grate = String::new();
    let mut program: Option<String> = None;
    for word in &sandbox.grates {
        let word = &*shown(word);
        let rule = if let Some(name) = word.strip_suffix("_grate") {
            grate = name.to_owned();
            (name == "net").then(|| "no network but what the rules allow".to_owned())
        } else if word == "%}" {
            program = None;
            None
        } else {
            word.strip_prefix("--").and_then(|word| word.split_once('=')).and_then(|(option, value)| {
                match (&*grate, option) {
                    ("program", _) => {
                        program = Some(value.to_owned());
                        None
                    }
                    _ => rule_of(&grate, option, value),
                }
            })
        };
        match (rule, &program, &*grate) {
            (Some(rule), Some(program), _) => rules.push(format!("{program}: {rule}")),
            (Some(rule), None, "net") if word.ends_with("_grate") => {
                network = rule.replace(" but what the rules allow", "")
            }
            (Some(rule), None, "net") if rule.starts_with(OWN_SOCKETS) || rule.ends_with(OWN) => rules.push(rule),
            (Some(rule), None, "net") => allowed.push(rule),
            (Some(rule), None, _) => rules.push(rule),
            (None, ..) => {}
        }
    }
    rules.push(if allowed.is_empty() { network } else { format!("network: {} and nothing else", allowed.join("; ")) });
    rules
}

/// The beginning of the rule for sockets between programs of the sandbox.
const OWN_SOCKETS: &str = "sockets with names such as";

/// The end of the rule for the loopback.
const OWN: &str = "the sandbox's own";

/// The rule that an option of a grate stands for. None if the option is not a rule.
fn rule_of(grate: &str, option: &str, value: &str) -> Option<String> {
    Some(match (grate, option) {
        (_, "path" | "program") if value.is_empty() => return None,
        ("net", "allow") if value.starts_with("any unix:") => format!("{OWN_SOCKETS} {}", &value["any unix:".len()..]),
        ("net", "allow") => value.to_owned(),
        ("net", "loopback") => format!("127.0.0.0/8 and ::1 are {OWN}"),
        ("write_filter", "protect") => format!("{value} cannot be changed or created"),
        ("write_filter", "allow") => format!("can be changed: {value}"),
        ("seccomp", "path") => format!("can be read: {value}"),
        ("seccomp", "program") => format!("can be run: {value}"),
        ("seccomp", "calls") => format!("calls: {}", value.replace(',', ", ")),
        ("resource", "write-bytes") => {
            format!("at most {} are written to files", value.strip_prefix("file=").unwrap_or(value))
        }
        ("resource", limit) if LIMITS.contains(&limit) => {
            format!("{limit}: at most {value}, all programs together")
        }
        _ => return None,
    })
}

fn as_json(sandbox: &Sandbox, options: &Options) -> serde_json::Value {
    let tree = &sandbox.tree;
    let volumes = tree.volumes.iter().map(|volume| {
        let state = volume.overlay.as_ref().map(|state| shown(&state.file));
        json!({"guest": shown(&volume.guest), "host": shown(&volume.host), "read_only": volume.read_only, "overlay": state})
    });
    let memory = tree.scratch.iter().map(|path| json!({"guest": shown(path)}));
    let tmpfs = tree.tmpfs.iter().map(|tmpfs| json!({"guest": shown(&tmpfs.guest), "size": tmpfs.size}));
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
        "line": sandbox.grates.iter().map(shown).collect::<Vec<_>>(),
        "command": sandbox.command.iter().map(shown).collect::<Vec<_>>(),
    })
}
