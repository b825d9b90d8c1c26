//! What a grate's options leave of what it declares, for the grates that are known here. Of others it may be all.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};
use lind_abi::Syscall;
use lind_engine::code::manifest::{Manifest, Role};

use super::clamp::Clamp;
use super::line::Node;
use super::options::{self, Calls, Given};
use super::policy::{Policy, Verdict};
use super::{fault, net, resource, sources};

/// What a grate does with the calls that it looks at, in words; and what holds for all.
#[derive(Default)]
pub struct Says {
    /// By number. No words: what the grate declares.
    pub calls: BTreeMap<u32, Option<String>>,
    /// For the top.
    pub notes: Vec<String>,
}

/// The text of a file that a grate reads: the user's, or behind `root:` one below the root. None if it cannot be read here.
pub fn text_of(path: &str, root: &Path) -> Option<String> {
    let inside = path.strip_prefix("root:").map(|path| root.join(path.trim_start_matches('/')));
    std::fs::read_to_string(inside.unwrap_or_else(|| path.into())).ok()
}

/// What is known of a grate's options.
pub enum Known {
    /// Nothing: it may do what it declares.
    Nothing,
    /// It looks at these calls alone.
    Calls(Calls),
    /// A policy that is read from a file.
    Policy(Policy),
    /// A file that cannot be read here, or says what is not understood here.
    Unread(String),
    /// What it does by its options.
    Says(Says),
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
        let name = file_name(grate);
        let Some(specs) = sources::options(&name) else { return Ok(Known::Nothing) };
        let given = options::read(grate, &specs, words)?;
        Ok(match &name[..] {
            "namespace_grate" => Known::Clamp(Clamp::read(grate, given, root)?),
            "tee_grate" => Known::Tee(!given.is_empty()),
            "seccomp_grate" => policy(grate, &given, root)?,
            "strace_grate" => traced(grate, &given)?,
            "witness_grate" => Known::Says(witnessed(grate, &given)?),
            "fault_grate" => fault::read(grate, &given, root)?,
            "net_grate" => net::read(&given, root),
            "resource_grate" => resource::read(grate, &given, root)?,
            "forward_grate" => {
                let mut calls = Calls::default();
                for (_, number) in given.into_iter().filter(|(name, _)| *name == "nr") {
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
    pub fn role(&self, manifest: &Manifest, declared: Option<Role>, row: &Syscall, node: &Node) -> Option<String> {
        let follows = sources::follows(&file_name(&node.name));
        let of_sdk = (follows && manifest.follows(row.nr)).then_some(Role::Follows);
        match self {
            Known::Calls(calls) if !calls.has(row.nr) => of_sdk.map(words),
            Known::Policy(policy) => match policy.verdict(row) {
                Verdict::Passes => of_sdk.map(words),
                Verdict::Always(what) => Some(what),
                Verdict::Depends => Some("may refuse, by what the call is about".to_owned()),
            },
            Known::Says(says) => match says.calls.get(&row.nr) {
                Some(Some(what)) => Some(what.clone()),
                Some(None) => declared.map(words),
                None => of_sdk.map(words),
            },
            // What goes on past it is made under its own number; this one returns nowhere.
            Known::Learns => (!matches!(row.name, "rt_sigreturn" | "forward")).then(|| words(Role::Observes)),
            // Options can make it look at less.
            Known::Nothing if !node.options.is_empty() && declared == Some(Role::Observes) => {
                Some("may see".to_owned())
            }
            _ => declared.map(words),
        }
    }
}

/// The name of a grate's file without folder and suffix, as it is looked for.
pub fn file_name(grate: &str) -> String {
    let name = grate.rsplit('/').next().unwrap_or(grate);
    let name = name.strip_suffix(".cwasm").or_else(|| name.strip_suffix(".wasm")).unwrap_or(name);
    name.replace("-grate", "_grate")
}

fn policy(grate: &str, given: &[Given], root: &Path) -> Result<Known> {
    let last = |names: &[&str]| given.iter().rev().find(|(known, _)| names.contains(known));
    let capabilities = last(&["capabilities"]).map(|(_, list)| list.as_str());
    Ok(match (last(&["policy", "docker"]), last(&["learn"])) {
        (None, None) if last(&["calls", "path", "program"]).is_some() => Known::Nothing,
        (None, None) => bail!("{grate}: give it --policy FILE or --learn FILE"),
        (Some(_), Some(_)) => bail!("{grate}: --policy and --learn exclude each other"),
        (None, Some(_)) => Known::Learns,
        (Some((name, file)), None) => {
            let docker = *name == "docker" || file.ends_with(".json");
            let read = |text: String| if docker { Policy::docker(&text, capabilities) } else { Policy::toml(&text) };
            text_of(file, root).and_then(read).map_or(Known::Unread(file.clone()), Known::Policy)
        }
    })
}

/// The calls that an expression of strace(1) names, added to those before.
fn select(calls: &mut Calls, expression: &str) -> Result<()> {
    let list = match expression.split_once('=') {
        Some(("trace", list)) => list,
        Some(_) => bail!("only trace= is understood"),
        None => expression,
    };
    let (not, list) = list.strip_prefix('!').map_or(("", list), |list| ("!", list));
    calls.change(not, &in_class)?;
    for word in list.split(',').filter(|word| *word != "none") {
        let maybe = word.strip_prefix('?');
        let number = word.parse::<u32>().is_ok() || word.is_empty();
        let done = if number {
            Err(anyhow::anyhow!("no such system call or class: {word}"))
        } else {
            calls.change(&format!("{not}{}", maybe.unwrap_or(word)), &in_class)
        };
        if maybe.is_none() {
            done?;
        }
    }
    Ok(())
}

fn traced_calls(grate: &str, given: &[Given]) -> Result<Calls> {
    let mut calls = Calls::default();
    for (_, expression) in given.iter().filter(|(name, _)| *name == "e") {
        if let Err(wrong) = select(&mut calls, expression) {
            bail!("{grate}: -e: '{expression}': {wrong}");
        }
    }
    Ok(calls)
}

/// Calls between grates and the runtime are not the program's, and this one returns nowhere.
fn shown(row: &Syscall) -> bool {
    (row.nr <= 1000 || row.name == "spawn") && row.name != "rt_sigreturn"
}

/// What the strace grate shows.
fn traced(grate: &str, given: &[Given]) -> Result<Known> {
    let calls = traced_calls(grate, given)?;
    if !calls.chosen() {
        return Ok(Known::Calls(calls));
    }
    let rows = options::all_calls().filter(|row| shown(row) && calls.has(row.nr));
    Ok(Known::Says(Says { calls: rows.map(|row| (row.nr, None)).collect(), notes: Vec::new() }))
}

/// What the witness grate logs.
fn witnessed(grate: &str, given: &[Given]) -> Result<Says> {
    if given.iter().any(|(name, _)| *name == "verify") {
        bail!("{grate}: --verify: has to be the first option, and runs nothing");
    }
    if !given.iter().any(|(name, _)| *name == "log") {
        bail!("{grate}: give it a log: --log FILE");
    }
    let calls = traced_calls(grate, given)?;
    let others = sources::calls_in(sources::WITNESS, "others");
    let by_default =
        |row: &Syscall| options::takes_path(row) || options::takes_address(row) || others.contains(row.name);
    let chosen = |row: &&Syscall| if calls.chosen() { calls.has(row.nr) } else { by_default(row) };
    let what = |row: &Syscall| match row.name {
        "exit" | "exit_group" => "sees, and logs",
        _ => "sees, and logs; refuses with EIO if it cannot",
    };
    let rows = options::all_calls().filter(|row| shown(row)).filter(chosen);
    Ok(Says { calls: rows.map(|row| (row.nr, Some(what(row).to_owned()))).collect(), notes: Vec::new() })
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
fn in_class(word: &str, row: &Syscall) -> bool {
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
