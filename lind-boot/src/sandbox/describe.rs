//! `lind-boot run --explain`: a sandbox in sentences, or as JSON.

use std::fmt::Write as _;

use serde_json::json;

use super::options::Options;
use super::{HOME, Sandbox};

/// What `--explain` prints.
pub fn text(sandbox: &Sandbox, options: &Options) -> String {
    if options.json {
        return format!("{:#}\n", as_json(sandbox, options));
    }
    let plan = &sandbox.plan;
    let mut text = format!("policy {}\n\nmounts\n", sandbox.policy);
    let mut row = |guest: &str, what: &str, mode: &str| {
        let _ = writeln!(text, "  {guest:<24} {what} ({mode})");
    };
    row("/", &plan.image.display().to_string(), "the image, read-only");
    for volume in &plan.volumes {
        let mode = if volume.read_only { "read-only" } else { "can be changed" };
        row(&volume.guest.display().to_string(), &volume.host.display().to_string(), mode);
    }
    for path in &plan.scratch {
        row(&path.display().to_string(), "memory", "empty, gone at the end");
    }
    for tmpfs in &plan.tmpfs {
        row(&tmpfs.guest.display().to_string(), "memory", &format!("at most {}", tmpfs.size));
    }
    let _ = writeln!(text, "\nrules");
    for rule in rules(sandbox) {
        let _ = writeln!(text, "  {rule}");
    }
    if let Some(timeout) = options.timeout {
        let _ = writeln!(text, "  after {} s everything is ended, with status 124", timeout.as_secs_f64());
    }
    let _ = writeln!(text, "\nstarts in {}, with home directory {HOME}\n\nline", sandbox.workdir.display());
    let _ = writeln!(text, "  lind-boot {}", line(sandbox));
    text
}

/// Each grate of the line with its options, as words.
fn line(sandbox: &Sandbox) -> String {
    let command = sandbox.command.iter().map(|word| word.to_string_lossy().into_owned());
    let quoted = |word: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:,%+@".contains(c);
        if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    sandbox.grates.iter().cloned().chain(command).map(quoted).collect::<Vec<_>>().join(" ")
}

/// What the grates on the line mean, a sentence each.
fn rules(sandbox: &Sandbox) -> Vec<String> {
    let mut rules = Vec::new();
    let mut allowed = Vec::new();
    let mut network = "the host's network, without rules".to_owned();
    for word in &sandbox.grates {
        if let Some(path) = word.strip_prefix("--protect=") {
            rules.push(format!("{path} cannot be changed, nor come to be"));
        } else if let Some(rule) = word.strip_prefix("--allow=") {
            allowed.push(rule.to_owned());
        } else if let Some(bytes) = word.strip_prefix("--write-bytes=file=") {
            rules.push(format!("at most {bytes} are written to files"));
        } else if let Some((limit, amount)) = word.strip_prefix("--").and_then(|word| word.split_once('='))
            && super::policy::LIMITS.contains(&limit)
        {
            rules.push(format!("{limit}: at most {amount}, all programs together"));
        } else if word == "net_grate" {
            network = "no network".into();
        }
    }
    rules.push(if allowed.is_empty() { network } else { format!("network: {} and nothing else", allowed.join("; ")) });
    rules
}

fn as_json(sandbox: &Sandbox, options: &Options) -> serde_json::Value {
    let plan = &sandbox.plan;
    let shown = |path: &std::path::Path| path.display().to_string();
    let volumes = plan.volumes.iter().map(
        |volume| json!({"guest": shown(&volume.guest), "host": shown(&volume.host), "read_only": volume.read_only}),
    );
    let memory = plan.scratch.iter().map(|path| json!({"guest": shown(path)}));
    let tmpfs = plan.tmpfs.iter().map(|tmpfs| json!({"guest": shown(&tmpfs.guest), "size": tmpfs.size}));
    json!({
        "policy": sandbox.policy,
        "image": shown(&plan.image),
        "volumes": volumes.collect::<Vec<_>>(),
        "memory": memory.chain(tmpfs).collect::<Vec<_>>(),
        "rules": rules(sandbox),
        "timeout": options.timeout.map(|timeout| timeout.as_secs_f64()),
        "workdir": shown(&sandbox.workdir),
        "home": HOME,
        "line": sandbox.grates,
        "command": sandbox.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>(),
    })
}
