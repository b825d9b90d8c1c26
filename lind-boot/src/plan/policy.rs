//! Policies: the permissions of a sandbox, as a TOML file. The policies that come with lind-boot
//! are such files too (`policies/`).
//!
//! The fields of [`Policy`] are the keys of a policy, and their comments are the list of keys in
//! `docs/sandbox.md`, which `tests/docs/policy_keys.py` writes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use lind_kernel::text::is_seen;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::checked;
pub use super::checked::HASH;
use super::source::Source;
use crate::cli::sandbox::{Amounts, Network};
use crate::config;
use crate::named::{Changed, For, Named};

/// The contents of a policy file. Options of the command line take precedence.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Policy {
    /// `"none"` or `"host"`: whether programs may use the host's network
    pub network: Option<Network>,
    /// the hosts that may be reached, as `--allow` has them, such as `"example.org:443"`
    pub allow: Option<Vec<String>>,
    /// true: no volume can be changed
    pub read_only: bool,
    /// names in each volume that cannot be changed or created, such as `"**/.git/hooks"`; or a
    /// table
    #[serde(deserialize_with = "checked::list_or_table")]
    pub protect: Protect,
    /// the only system calls
    #[serde(deserialize_with = "checked::calls")]
    pub calls: Option<Vec<String>>,
    /// the only files to read or to ask about, beside those of `write` and `programs`
    #[serde(deserialize_with = "checked::patterns")]
    pub read: Option<Vec<String>>,
    /// the only files to change, make and remove
    #[serde(deserialize_with = "checked::patterns")]
    pub write: Option<Vec<String>>,
    /// the only programs that may be run
    #[serde(deserialize_with = "checked::patterns")]
    pub programs: Option<Vec<String>>,
    /// a table of limits of all programs together
    pub limits: Amounts,
    /// for a program, and all that it starts, a table with less: network, allow, read, write,
    /// programs
    #[serde(deserialize_with = "programs")]
    pub program: BTreeMap<String, Policy>,
}

/// The names in volumes that may not be changed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Protect {
    /// the names
    #[serde(deserialize_with = "checked::protected", skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// true: also each name that begins with a dot, in any directory
    pub hidden: bool,
    /// names that can be changed in spite of that; `*` and `?` match as in a shell
    #[serde(deserialize_with = "checked::excepted", skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
}

impl From<Vec<String>> for Protect {
    fn from(names: Vec<String>) -> Protect {
        Protect { names, ..Protect::default() }
    }
}

/// The rules of programs. The rules of the sandbox decide whether there is a network.
fn programs<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Policy>, D::Error> {
    let mut all: BTreeMap<String, Policy> = checked::programs(from)?;
    for rules in all.values_mut().filter(|rules| rules.allow.is_none()) {
        rules.network.get_or_insert(Network::Host);
    }
    Ok(all)
}

/// The policies that come with lind-boot.
const KNOWN: [(&str, &str); 4] = [
    ("agent", include_str!("../../policies/agent.toml")),
    ("build", include_str!("../../policies/build.toml")),
    ("readonly", include_str!("../../policies/readonly.toml")),
    ("untrusted", include_str!("../../policies/untrusted.toml")),
];

impl Policy {
    /// Reads the policy of this name: one that comes with lind-boot, one in the user's directory of
    /// policies, or the file of this path if the name has a slash or a dot. No guest of the run may
    /// be able to change the file.
    ///
    /// # Errors
    /// When the policy does not exist or has a mistake.
    pub fn named(name: &str, changed: &Changed) -> Result<Policy> {
        let option = format!("--policy {name}");
        if let Some((_, text)) = KNOWN.iter().find(|(known, _)| *known == name) {
            return Policy::parse(&option, text);
        }
        let path = file_of(OsStr::new(name))?;
        if !is_path(OsStr::new(name)) && path.symlink_metadata().is_err() {
            let own = own_names().into_iter().filter(|own| !KNOWN.iter().any(|(known, _)| known == own));
            let names = KNOWN.iter().map(|(name, _)| (*name).to_owned()).chain(own).collect::<Vec<_>>().join(", ");
            bail!("{option}: no such policy; there are {names}, or name a file (./{name})");
        }
        let file = Named::find("--policy", &path, For::Rules, changed)?.read()?;
        Policy::parse(&option, &std::io::read_to_string(file).with_context(|| option.clone())?)
    }

    /// Parses the text of a policy; `option` names it in messages.
    ///
    /// # Errors
    /// A mistake, with its line, column and key.
    pub fn parse(option: &str, text: &str) -> Result<Policy> {
        let is_unlearned = toml::de::DeTable::parse(text).is_ok_and(|table| table.get_ref().contains_key(UNLEARNED));
        ensure!(
            !is_unlearned,
            "{option}: the policy is empty, because no run that it learns from has ended; learn into it again, or remove it"
        );
        Source { name: option, text }.read()
    }

    /// A policy with this key alone.
    ///
    /// # Errors
    /// A mistake in the value.
    pub fn of_rule(key: &str, value: Value) -> Result<Policy> {
        let table = Value::Object([(key.to_owned(), value)].into_iter().collect());
        Policy::deserialize(table).with_context(|| key.to_owned())
    }

    /// Allows changes of a name that is protected in every directory.
    ///
    /// # Errors
    /// A text that is not a single name.
    pub fn allow_name(&mut self, name: &str) -> Result<()> {
        checked::single(name).map_err(anyhow::Error::msg)?;
        self.protect.except.push(name.to_owned());
        Ok(())
    }

    /// The protected names, without those that may be changed in spite of that.
    pub fn protected(&self) -> impl Iterator<Item = &String> {
        let Protect { names, except, .. } = &self.protect;
        let excepted = |name: &str| except.iter().any(|except| except.eq_ignore_ascii_case(name));
        names.iter().filter(move |name| !name.strip_prefix("**/").is_some_and(excepted))
    }

    /// Whether it lists calls, files or programs.
    pub fn has_lists(&self) -> bool {
        [&self.calls, &self.read, &self.write, &self.programs].into_iter().any(Option::is_some)
    }

    /// The text of the policy's file, without the comments of the old one.
    ///
    /// # Errors
    /// None that a policy can have.
    pub fn text(&self) -> Result<String> {
        Ok(table_text("", serde_json::to_value(self)?.as_object().context("a table")?))
    }
}

/// The key of a policy that is being learned.
pub const UNLEARNED: &str = "unlearned";

/// A table as TOML: its values, then the tables in it. Nothing stands for what has no effect.
fn table_text(name: &str, table: &Map<String, Value>) -> String {
    let shown = |value: &Value| match value {
        Value::String(text) => Some(quoted(text)),
        Value::Array(all) => {
            let lines = all.iter().filter_map(Value::as_str).map(|one| format!("\n    {},", quoted(one)));
            Some(format!("[{}{}]", lines.collect::<String>(), if all.is_empty() { "" } else { "\n" }))
        }
        Value::Null | Value::Bool(false) | Value::Object(_) => None,
        other => Some(other.to_string()),
    };
    let values = table.iter().filter_map(|(key, value)| Some(format!("{key} = {}\n", shown(value)?)));
    let mut text: String = values.collect();
    if !name.is_empty() && !text.is_empty() {
        text.insert_str(0, &format!("\n[{name}]\n"));
    }
    let tables = table.iter().filter_map(|(key, value)| Some((key, value.as_object()?)));
    text.extend(tables.map(|(key, table)| {
        let is_bare = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let key = if is_bare { key.clone() } else { quoted(key) };
        table_text(&if name.is_empty() { key } else { format!("{name}.{key}") }, table)
    }));
    text
}

/// Whether the name of a policy is the path of a file.
fn is_path(name: &OsStr) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    name.as_bytes().iter().any(|byte| b"/.".contains(byte))
}

/// The file of a policy. A name without a slash or a dot is a file in the user's directory of
/// policies.
///
/// # Errors
/// When that directory is unknown, or the name is a policy that comes with lind-boot.
pub fn file_of(name: &OsStr) -> Result<PathBuf> {
    if is_path(name) {
        return Ok(name.into());
    }
    let known = KNOWN.iter().any(|(known, _)| *known == name);
    ensure!(!known, "{}: this policy comes with lind-boot and cannot be changed; choose another name", name.display());
    ensure!(!name.is_empty(), "the name of the policy is empty");
    Ok(config::policies()?.join(name).with_extension("toml"))
}

/// The policies in the user's directory.
fn own_names() -> Vec<String> {
    let entries = config::policies().and_then(|folder| Ok(std::fs::read_dir(folder)?)).into_iter().flatten();
    let name = |entry: std::fs::DirEntry| entry.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned);
    let mut names: Vec<_> = entries.filter_map(Result::ok).filter_map(name).collect();
    names.sort();
    names
}

/// A text as a TOML string.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for c in Value::from(text).to_string().chars() {
        if is_seen(c) { quoted.push(c) } else { quoted += &format!("\\U{:08x}", u32::from(c)) }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Kind;

    #[test]
    fn the_policies_that_come_with_it_are_sound() {
        for (name, _) in KNOWN {
            let policy = Policy::named(name, &Changed::default()).unwrap();
            assert!(policy.network != Some(Network::Host) && policy.limits.memory.is_some(), "{name}");
        }
        assert!(
            Policy::named("agent", &Changed::default()).unwrap().protect.names.contains(&"**/.git/hooks".to_owned())
        );
        assert!(Policy::named("untrusted", &Changed::default()).unwrap().read_only);
    }

    #[test]
    fn programs_have_rules_of_their_own() {
        let parse = |text: &str| Policy::parse("--policy p.toml", text);
        let policy =
            parse("[program.\"/bin/git\"]\nwrite = [\"/p/**\"]\n[program.\"/bin/curl\"]\nnetwork = \"none\"\n")
                .unwrap();
        let (git, curl) = (&policy.program["/bin/git"], &policy.program["/bin/curl"]);
        assert_eq!((&git.write, git.network), (&Some(vec!["/p/**".into()]), Some(Network::Host)));
        assert!(curl.network == Some(Network::None) && curl.write.is_none());
        assert_eq!(parse(&policy.text().unwrap()).unwrap(), policy);
        let none = parse("[program.\"/a\"]\nallow = []\n").unwrap();
        assert_eq!((none.program["/a"].network, parse(&none.text().unwrap()).unwrap()), (None, none));
        let hash = format!("[program.\"blake3:{}\"]\nprograms = []\n", "0a".repeat(32));
        assert!(parse(&hash).is_ok());
        for wrong in
            ["[program.git]\n", "[program.\"blake3:0a\"]\n", "[program.\"/a\"]\nlimits = {}\n", "program = 1\n"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let policy = Policy {
            allow: Some(list(&["example.org:443"])),
            protect: Protect { names: list(&[".git/hooks"]), hidden: true, except: list(&[".gitignore", ".*.swp"]) },
            limits: Amounts { memory: Kind::Bytes.parse("64M").ok(), ..Amounts::default() },
            calls: Some(list(&["read"])),
            read: Some(list(&["/a \"b\"\\c\n\u{7f}", "/**"])),
            write: Some(Vec::new()),
            ..Policy::default()
        };
        assert_eq!(Policy::parse("--policy p.toml", &policy.text().unwrap()).unwrap(), policy);
    }

    #[test]
    fn mistakes_are_told_with_line_and_column() {
        let wrong = |text: &str| format!("{:#}", Policy::parse("--policy p.toml", text).unwrap_err());
        assert_eq!(wrong("network = 1"), "--policy p.toml:1:11: network: expected a string");
        assert!(wrong("network = \"hots\"").ends_with("network: must be one of none, host; is host meant?"));
        let unknown = wrong("netwrok = \"none\"");
        assert!(unknown.starts_with("--policy p.toml:1:1: netwrok: unknown key; the keys are network, allow, "));
        assert!(unknown.ends_with("; is network meant?"));
        assert!(wrong("protect = [\"/etc\"]").contains("relative"));
        assert!(wrong("protect = [\"a/../b\"]").contains("relative"));
        assert!(wrong("protect = [\"a/**/b\"]").contains("only at the beginning"));
        assert!(wrong("[protect]\nexcept = [\"a/b\"]").contains("protect.except[0]: a/b: expected a name"));
        assert!(wrong("[protect]\nall = true").contains("protect.all: unknown"));
        assert!(wrong("read = [\"../etc\"]").contains("begin with /"));
        assert_eq!(
            wrong("calls = [\"raed\"]"),
            "--policy p.toml:1:10: calls[0]: raed: not a system call; `lind-boot syscalls` lists them"
        );
        assert_eq!(
            wrong("[limits]\nmemory = \"1X\""),
            "--policy p.toml:2:10: limits.memory: must be a size such as 64M, 1.5G"
        );
        assert!(wrong("[limits]\nmemroy = 1").contains("limits.memroy: unknown key; the keys are memory, "));
        assert!(
            Policy::named("nobody", &Changed::default()).is_err()
                && Policy::named("./nowhere.toml", &Changed::default()).is_err()
        );
        assert!(wrong("network = ").starts_with("--policy p.toml:1:"));
        let nested = wrong("# one\nread = [\n  \"/a\",\n  \"../b\"]");
        assert!(nested.starts_with("--policy p.toml:4:3: read[1]: ../b: "), "{nested}");
        assert!(
            wrong("[program.\"/a\"]\nread = []\nlimits = {}")
                .starts_with("--policy p.toml:3:1: program./a.limits: unknown key; the keys of a program are ")
        );
        let unit = wrong("[limits]\nmemory = 100");
        assert!(unit.starts_with("--policy p.toml:2:10: limits.memory: 100 has no unit"), "{unit}");
    }
}
