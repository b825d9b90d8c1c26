//! The description that a grate gives of itself. The grate is started with `--explain` before its
//! options, in a process whose one cage can only read, and prints what it would register
//! (grates/sdk/c/core/explain.c).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use lind_abi::NR_ANY;
use lind_engine::code::manifest::{Manifest, Role};
use lind_kernel::text::is_seen;
use lind_kernel::threei::outside_default;
use serde::Deserialize;

/// The longest description, in bytes.
const MOST: u64 = 1 << 20;

/// The calls in one list of a description, by number: the grate's own words, or None if its
/// manifest has the role.
type Calls = BTreeMap<u32, Option<String>>;

/// The description of a grate.
#[derive(Deserialize)]
pub struct Said {
    /// Notes that hold for all calls.
    pub notes: Vec<String>,
    /// The calls that it handles.
    #[serde(default)]
    pub calls: Calls,
    /// The calls that it leaves alone though it handles all others.
    #[serde(default)]
    pub left: Calls,
    /// The calls that a composer sees if a grate inside handles them, and when they enter; None if
    /// they never do.
    #[serde(default)]
    pub handled: Calls,
    /// The calls that a composer sees if no grate inside handles them.
    #[serde(default)]
    pub others: Calls,
}

/// The role of the grate for a call that has a handler and is in `manifest`.
pub fn declared(manifest: &Manifest, nr: u32) -> Option<Role> {
    let own = manifest.role(nr);
    // Calls that the SDK watches to know its clients go on to the handler for any call, which
    // leaves some out.
    let any = || if outside_default(u64::from(nr)) { None } else { manifest.role_of_any() };
    own.filter(|role| *role > Role::Follows).or_else(any).or(own)
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

impl Said {
    /// Asks a grate in `root` or `folders` for its description. `line` has its options and the
    /// words after them.
    ///
    /// # Errors
    /// The message that the grate prints with these options.
    pub fn ask(root: &Path, folders: &[PathBuf], name: &str, line: &[OsString]) -> Result<Said> {
        let mut command = Command::new("/proc/self/exe");
        command.arg("--root").arg(root);
        for folder in folders {
            command.arg("--grates").arg(folder);
        }
        command.args(["--explain", name]).args(line);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start lind-boot to ask the grate")?;
        let errors = child.stderr.take();
        let errors = std::thread::spawn(move || read(errors));
        let text = read(child.stdout.take());
        if text.len() as u64 == MOST {
            let _ = child.kill();
        }
        let errors = errors.join().unwrap_or_default();
        let ended_well = child.wait()?.success();
        if !ended_well && !errors.is_empty() {
            let errors = errors.trim_end();
            bail!("{}", errors.strip_prefix("lind-boot: ").unwrap_or(errors));
        }
        let said = Said::parse(&text).filter(|_| ended_well);
        said.with_context(|| format!("{name}: the grate did not describe what it would do"))
    }

    fn parse(text: &str) -> Option<Said> {
        let said: Said = serde_json::from_str(text).ok()?;
        let calls = [&said.calls, &said.left, &said.handled, &said.others];
        let is_fit = |words: &String| words.chars().all(is_seen);
        calls.iter().flat_map(|calls| calls.values().flatten()).all(is_fit).then_some(said)
    }

    /// The role for a call, in words. None if the call does not enter the grate.
    pub fn role(&self, manifest: Option<&Manifest>, nr: u32) -> Option<String> {
        let any = || {
            if self.left.contains_key(&nr) || outside_default(u64::from(nr)) { None } else { self.calls.get(&NR_ANY) }
        };
        let own = self.calls.get(&nr).or_else(any)?;
        let by_manifest = || manifest.and_then(|manifest| declared(manifest, nr)).map_or_else(unknown, words);
        Some(own.clone().unwrap_or_else(by_manifest))
    }
}

fn unknown() -> String {
    "unknown: it declares nothing".to_owned()
}

/// Reads a pipe up to a limit; a process that writes more gets a closed pipe.
fn read(from: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        let _ = from.take(MOST).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lind_abi::nr;

    #[test]
    fn what_is_said_decides_and_the_manifest_has_the_rest() {
        let manifest = Manifest::parse(b"observes any\0alters open\0follows clone\0").unwrap();
        let said = r#"{"notes": ["a"], "calls": {"2": null, "57": null, "4294967295": null, "0": "reads"}, "left": {"1": null}}"#;
        let said = Said::parse(said).unwrap();
        assert_eq!(said.notes, ["a"]);
        let role = |nr| said.role(Some(&manifest), nr);
        assert_eq!(role(nr::read).as_deref(), Some("reads"));
        assert_eq!(role(nr::open).as_deref(), Some("may change or refuse"));
        assert_eq!([role(nr::getpid), role(nr::clone)].map(Option::unwrap), ["sees", "sees"]);
        assert_eq!([role(nr::write), role(nr::exit)], [None, None]);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"notes": [], "calls": {"x": null}}"#,
            r#"{"notes": [], "calls": {"1": "\u001b[2J"}}"#,
            r#"{"notes": [3]}"#,
        ] {
            assert!(Said::parse(text).is_none(), "{text}");
        }
    }
}
